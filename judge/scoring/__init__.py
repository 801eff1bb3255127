"""Turn replies into scores."""
