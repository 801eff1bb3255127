"""`judge validate`: judges compared with human ratings."""
