"""Compute estimates, intervals and tests from a table of scores.

All are seeded; each estimate names its method.
"""
