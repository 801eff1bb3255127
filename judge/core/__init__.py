"""Values, errors, messages and files that every other package uses."""
