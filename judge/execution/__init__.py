"""Send requests within limits, and keep every reply."""
