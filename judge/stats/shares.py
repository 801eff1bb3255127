"""Shares of a number of tries, with an interval that holds near 0 and 1."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from judge.core.records import Estimate


def share(hits: int, n: int, name: str = "share", *, confidence: float = 0.95) -> Estimate | None:
    """hits / n (0–1) with Wilson's score interval (1927); None where nothing was tried."""
    if n < 1:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p, scale = hits / n, 1 + z * z / n
    middle = (p + z * z / (2 * n)) / scale
    half = z / scale * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return Estimate(name, p, min(low, p), max(high, p), n, f"{100 * confidence:g}% Wilson score interval")
