"""`judge label`: a page on which people rate texts."""
