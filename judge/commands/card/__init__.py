"""The judge card: may this judge be trusted for this job?."""
