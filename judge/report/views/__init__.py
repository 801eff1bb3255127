"""One view per report: what it shows, in which order."""
