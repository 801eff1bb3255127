"""`judge compare`: the differences between two finished runs."""
