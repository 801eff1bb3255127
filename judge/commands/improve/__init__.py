"""`judge criteria improve`: a model revises a criterion, and the best revision is kept if it is
better.
"""
