"""Which systems are held against which: the best first; of many, each against the best one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np

from judge.stats.resampling import Floats

MOST = 30
"""Systems of which every two are compared: 435 pairs."""
TESTED = 100
"""Systems of which the best one is told apart: the tests it was picked from take 200,000 flips then."""
PLACES = 9
"""Decimals beyond which values differ by rounding alone."""
Pair = tuple[int, int]
"""The rows of two systems."""


def best_first(values: Floats, better: Literal["higher", "lower", ""]) -> list[int]:
    """The rows of systems × items (NaN for missing ones) that have a value, by their mean; equal ones as they come."""
    known = ~np.isnan(values)
    number = known.sum(axis=1)
    means = np.round(np.where(known, values, 0.0).sum(axis=1) / np.maximum(number, 1), PLACES)
    order = np.argsort(means if better == "lower" else -means, kind="stable")
    return [int(row) for row in order if number[row]]


def pairs(order: Sequence[int]) -> list[Pair]:
    """Every two, the better one first; of more than `MOST` the first with each other one."""
    return [(order[0], other) for other in order[1:]] if len(order) > MOST else list(combinations(order, 2))


def tests(systems: int) -> int:
    """How many Holm counts: also those with others than the best one, which the data picked. None of too many."""
    return systems * (systems - 1) // 2 if systems <= TESTED else 0


def differences(values: Floats, of: Sequence[Pair]) -> Floats:
    """Pairs × items: the first one's values less the other's, NaN where either has none."""
    one, other = ([pair[side] for pair in of] for side in (0, 1))
    rows: Floats = np.round(values[one] - values[other], PLACES)
    return rows
