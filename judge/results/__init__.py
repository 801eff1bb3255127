"""Finished runs: what they hold, how they are stored and filtered."""
