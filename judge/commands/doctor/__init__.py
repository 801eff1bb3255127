"""`judge doctor`: a check of the setup and of models."""
