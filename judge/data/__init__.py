"""Read samples from files and data frames."""
