"""Compare systems by paired differences: which pairs to test, their means, intervals, tests and effect size.

`mean_differences` has t intervals and the p of `sign_flip`, a permutation test. `holm` corrects for several
tests. `pairs` lists the compared systems: all pairs, for many systems each with the best one, or each with a given one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt
from typing import Literal, NamedTuple

import numpy as np

from judge.core.records import Estimate
from judge.stats.bootstrap import MIN_INTERVAL_ITEMS, Bools, Floats, t_quantile, too_few

EXACT = 12
"""Nonzero differences up to which all assignments of signs are used."""
# Rounding error of the sum of a row with norm 1, in double and in single precision.
_TOLERANCE, _SINGLE_TOLERANCE = 1e-9, 1e-4
_MAX_NUMBERS = 4_000_000  # numbers in memory


class SignFlips(NamedTuple):
    """The two-sided p of each row, and whether it is exact."""

    p: Floats
    exact: Bools


def sign_flip(differences: Floats, *, n_flips: int = 10_000, seed: int = 0) -> SignFlips:
    """Return the two-sided p of each row (rows × items, NaN for missing values), and whether it is exact.

    If systems do not differ, a difference is equally likely with the other sign (Fisher 1935, ch. 3). p is the share of
    flips whose sum is at least as far from 0 as the observed sum. Up to `EXACT` nonzero differences all flips are used.
    Otherwise `n_flips` are drawn, the same for all rows, and p is (b + 1) / (n_flips + 1) for b extreme ones (Phipson
    and Smyth 2010). NaN for a row with fewer than two values.
    """
    known = np.nan_to_num(differences)
    norm = np.sqrt((known**2).sum(axis=1, keepdims=True))
    known = known / np.where(norm > 0, norm, 1.0)
    observed = np.abs(known.sum(axis=1))
    exact = (known != 0).sum(axis=1) <= EXACT
    p = np.empty(len(known))
    few = np.flatnonzero(exact)
    # One sign stays fixed: the other half of the flips mirrors this one.
    places = np.argsort(known[few] == 0, axis=1, kind="stable")[:, :EXACT]
    nonzero = np.take_along_axis(known[few], places, axis=1)
    signs = 1.0 - 2.0 * (
        np.arange(2 ** max(0, nonzero.shape[1] - 1))[:, None] >> np.arange(nonzero.shape[1]) & 1
    )
    step = max(1, _MAX_NUMBERS // len(signs))
    for at in range(0, len(few), step):
        here = slice(at, at + step)
        sums = np.abs(nonzero[here] @ signs.T)
        p[few[here]] = (sums >= observed[few[here], None] - _TOLERANCE).mean(axis=1)
    if not exact.all():
        random = np.random.default_rng(seed)
        rows, limits = (
            known[~exact].T.astype(np.float32),
            (observed[~exact] - _SINGLE_TOLERANCE).astype(np.float32),
        )
        reached = np.zeros(len(limits))
        step = max(1, _MAX_NUMBERS // max(rows.shape))
        for first in range(0, n_flips, step):
            drawn = random.integers(2, size=(min(step, n_flips - first), len(rows)))
            reached += (np.abs((2 * drawn - 1).astype(np.float32) @ rows) >= limits).sum(axis=0)
        p[~exact] = (reached + 1) / (n_flips + 1)
    p[(~np.isnan(differences)).sum(axis=1) < 2] = np.nan
    return SignFlips(p, exact)


def holm(p: Sequence[float | None], n_tests: int = 0) -> list[float | None]:
    """Adjust p-values after Holm (1979): rejecting those below alpha keeps the family-wise error below alpha.

    None is no test and stays None. `n_tests` is the number of tests from which these were selected by looking at the
    data, if larger.
    """
    tested = sorted((value, place) for place, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    highest = 0.0
    for rank, (value, place) in enumerate(tested):
        highest = max(highest, value * (max(n_tests, len(tested)) - rank))
        adjusted[place] = min(1.0, highest)
    return adjusted


ALL_EQUAL = "all differences equal: no interval"


def mean_differences(
    values: Floats, *, confidence: float = 0.95, n_flips: int = 10_000, seed: int = 0
) -> list[Estimate | None]:
    """Return the mean of each row of paired differences (rows × items, NaN for missing values); None for an empty row.

    The interval is Student's t over items; there is none below 5 items and if all differences are equal. p is that of
    `sign_flip`, from two items on.
    """
    estimates: list[Estimate | None] = []
    for row, p, exact in zip(values, *sign_flip(values, n_flips=n_flips, seed=seed), strict=True):
        known = row[~np.isnan(row)]
        n = len(known)
        if not n:
            estimates.append(None)
            continue
        mean, low, high, method = float(known.mean()), None, None, too_few(n)
        if n >= MIN_INTERVAL_ITEMS and np.ptp(known):
            half = t_quantile((1 - confidence) / 2, n - 1) * float(known.std(ddof=1)) / sqrt(n)
            low, high, method = (
                mean - half,
                mean + half,
                f"{100 * confidence:g}% t interval over items",
            )
        elif n > 1 and not np.ptp(known):
            mean, method = float(known[0]), ALL_EQUAL
        estimate = Estimate("difference", mean, low, high, n, method)
        if n > 1:
            flips = "exact" if exact else f"{n_flips} flips, seed {seed}"
            test = f"sign-flip permutation test, {flips}"
            estimate = replace(estimate, p=float(p), test=test)
        estimates.append(estimate)
    return estimates


def cliffs_delta(first: Floats, second: Floats) -> float:
    """Return Cliff's delta (1993), −1 to 1: how often a value of `first` exceeds one of `second`, minus the reverse.

    It compares all pairs of values, also for paired samples: it measures how far the distributions differ, not in how
    many items one is better. Computed by ranks in n · log n.
    """
    ranked = np.sort(second)
    below, upto = (np.searchsorted(ranked, first, side) for side in ("left", "right"))
    return float((below + upto - len(second)).sum() / (len(first) * len(second)))


MOST = 30
"""Systems up to which all pairs are compared: 435 pairs."""
TESTED = 100
"""Systems up to which the best one is tested; the tests from which it was selected then take 200,000 flips."""
PLACES = 9
"""Decimals beyond which values differ by rounding only."""
Pair = tuple[int, int]
"""The rows of two systems."""


def best_first(values: Floats, better: Literal["higher", "lower", ""]) -> list[int]:
    """Return the rows of systems × items (NaN for missing values) with a value, by descending mean; ties keep order."""
    known = ~np.isnan(values)
    number = known.sum(axis=1)
    means = np.round(np.where(known, values, 0.0).sum(axis=1) / np.maximum(number, 1), PLACES)
    order = np.argsort(means if better == "lower" else -means, kind="stable")
    return [int(row) for row in order if number[row]]


def row_of(systems: Sequence[str], against: str) -> int | None:
    """Return the row of the system with which all others are compared: None if "" is given, −1 if it is not there."""
    if not against:
        return None
    return list(systems).index(against) if against in systems else -1


def partly_scored(values: Floats) -> set[int]:
    """Return the rows with values for less than half of the items that any row has a value for."""
    known = ~np.isnan(values)
    items = int(known.any(axis=0).sum())
    return {row for row, number in enumerate(known.sum(axis=1).tolist()) if 2 * number < items}


def pairs(
    order: Sequence[int], against: int | None = None, *, partly: Collection[int] = ()
) -> list[Pair]:
    """Return all pairs, the better system first.

    For more than `MOST` systems, return the first one, unless it is `partly` scored, with each other one. If all
    systems are compared with the one of row `against`, return each other system with it.
    """
    if against is not None:
        return [(row, against) for row in order if row != against] if against in order else []
    if len(order) <= MOST:
        return list(combinations(order, 2))
    first = next((row for row in order if row not in partly), order[0])
    return [(first, second) for second in order if second != first]


def tests(systems: int, *, against: bool) -> int:
    """Return the number of tests for Holm's correction, including unselected pairs; 0 for too many systems.

    If all systems are compared `against` one chosen before, there is one test for each other system.
    """
    if against:
        return max(0, systems - 1)
    return systems * (systems - 1) // 2 if systems <= TESTED else 0


def differences(values: Floats, compared: Sequence[Pair]) -> Floats:
    """Return the first system's values minus the second's (pairs × items), NaN if either is missing."""
    first, second = ([pair[side] for pair in compared] for side in (0, 1))
    rows: Floats = np.round(values[first] - values[second], PLACES)
    return rows
