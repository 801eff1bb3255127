"""Where requests run. An engine knows requests and answers; no sample, criterion or score."""
