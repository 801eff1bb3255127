"""What each command does; these functions are also the Python API."""
