"""`judge criteria improve`: a model revises a criterion; keep the best revision if it is better."""
