"""Compare systems by paired differences.

This module has the pairs to test, their means, intervals, tests and effect size. `mean_differences`
has t intervals and the p of `sign_flip`, a permutation test. `holm` corrects for several tests.
`pairs` lists the compared systems: all pairs, for many systems each with the best one, or each with
a given one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import combinations
from math import ceil, sqrt
from typing import Literal, NamedTuple

import numpy as np

from judge.core.records import Estimate
from judge.stats.bootstrap import (
    MIN_INTERVAL_ITEMS,
    Bools,
    Floats,
    Ints,
    t_quantile,
    too_few,
    without_interval,
    without_nan,
)
from judge.stats.exact_sign_flip import lattice_p

EXACT = 12
"""Nonzero differences up to which all assignments of signs are used."""
# Rounding error of the sum of a row with norm 1, in double and in single precision.
_TOLERANCE = 1e-9
_SINGLE_TOLERANCE = 1e-4
_MAX_NUMBERS = 4_000_000  # numbers in memory
_SMALL_P = 0.01
"""A smaller p is drawn again, with more flips.

Of 10,000 flips, 4 give .0004 with a standard error of .0002, which Holm's correction multiplies.
"""
_MANY_FLIPS = 100_000
_MAX_SIGNS = 20_000_000  # signs of many flips: a tenth of a second for 100 items


class SignFlips(NamedTuple):
    """The two-sided p of each row, whether it is exact, and else its number of flips."""

    p: Floats
    exact: Bools
    n_flips: Ints


def sign_flip(
    differences: Floats, *, n_resamples: int = 10_000, seed: int = 0
) -> SignFlips:
    """Return the two-sided p of each row, and whether it is exact.

    `differences` are rows × items, NaN for missing values. If systems do not differ, a difference
    is equally likely with the other sign (Fisher 1935, ch. 3). p is the share of flips whose sum is
    at least as far from 0 as the observed sum. All flips are used for up to `EXACT` nonzero
    differences, and for more if they are on a lattice (`lattice_p`). Otherwise `n_resamples` are
    drawn, the same for all rows, and p is (b + 1) / (n_resamples + 1) for b extreme ones (Phipson
    and Smyth 2010). If p is small, it is that of up to 100,000 new flips. NaN for a row with fewer
    than two values.
    """
    filled_differences = np.nan_to_num(differences)
    norm = np.sqrt((filled_differences**2).sum(axis=1, keepdims=True))
    # Rows of norm 1, for which `_TOLERANCE` is the rounding error.
    scaled = filled_differences / np.where(norm > 0, norm, 1.0)
    n_rows, n_items = scaled.shape
    has_few = (scaled != 0).sum(axis=1) <= EXACT
    p_values = np.full(n_rows, np.nan)
    p_values[has_few] = _exact_p(scaled[has_few])
    p_values[~has_few] = lattice_p(filled_differences[~has_few])
    exact = ~np.isnan(p_values)
    if not exact.all():
        drawn = ~exact
        p_values[drawn] = _drawn_p(scaled[drawn], n_resamples, seed)
    number_known = (~np.isnan(differences)).sum(axis=1)
    n_flips = np.full(n_rows, n_resamples)
    n_many = min(_MANY_FLIPS, _MAX_SIGNS // max(1, n_items))
    is_small = ~exact & (p_values < _SMALL_P)
    if n_many > n_resamples and is_small.any():
        # New flips: those that made p small would keep it too small.
        p_values[is_small] = _drawn_p(scaled[is_small], n_many, seed, _coins_from_bits)
        n_flips[is_small] = n_many
    p_values[number_known < 2] = np.nan
    return SignFlips(p_values, exact, n_flips)


def _exact_p(rows: Floats) -> Floats:
    """Return p from all flips of rows with at most `EXACT` nonzero differences."""
    observed = np.abs(rows.sum(axis=1))
    zeros_last = np.argsort(rows == 0, axis=1, kind="stable")
    nonzero = np.take_along_axis(rows, zeros_last[:, :EXACT], axis=1)
    # One sign stays fixed: the other half of the flips mirrors this one.
    size = nonzero.shape[1]
    n_flips = 2 ** max(0, size - 1)
    # Bit k of the number of a flip is the sign of difference k.
    numbers = np.arange(n_flips)[:, None]
    is_negative = numbers >> np.arange(size) & 1
    signs = 1.0 - 2.0 * is_negative  # flips × differences
    p_values = np.empty(len(rows))
    step = max(1, _MAX_NUMBERS // n_flips)
    for first_row in range(0, len(rows), step):
        chunk = slice(first_row, first_row + step)
        sums = np.abs(nonzero[chunk] @ signs.T)  # rows × flips
        is_extreme = sums >= observed[chunk, None] - _TOLERANCE
        p_values[chunk] = is_extreme.mean(axis=1)
    return p_values


def _coins(random: np.random.Generator, shape: tuple[int, int]) -> Ints:
    """Return a random 0 or 1 for each sign, flips × items."""
    return random.integers(2, size=shape)


def _coins_from_bits(random: np.random.Generator, shape: tuple[int, int]) -> Ints:
    """Return a random 0 or 1 for each sign, from eight bits of a byte: a fraction of the time."""
    n_flips, n_items = shape
    n_bytes = ceil(n_items / 8)
    drawn_bytes = random.integers(256, size=(n_flips, n_bytes), dtype=np.uint8)
    bits = np.unpackbits(drawn_bytes, axis=1, count=n_items)
    return bits.astype(np.int8)


def _drawn_p(
    rows: Floats,
    n_resamples: int,
    seed: int,
    coins: Callable[[np.random.Generator, tuple[int, int]], Ints] = _coins,
) -> Floats:
    """Return p from drawn flips, the same for all rows."""
    random = np.random.default_rng(seed)
    items_by_row = rows.T.astype(np.float32)
    observed = np.abs(rows.sum(axis=1))
    # The sums below are in single precision.
    limits = (observed - _SINGLE_TOLERANCE).astype(np.float32)
    n_extreme = np.zeros(len(limits))
    step = max(1, _MAX_NUMBERS // max(items_by_row.shape))
    for first_resample in range(0, n_resamples, step):
        size = min(step, n_resamples - first_resample)
        drawn = coins(random, (size, len(items_by_row)))
        signs = (2 * drawn - 1).astype(np.float32)
        sums = np.abs(signs @ items_by_row)
        n_extreme += (sums >= limits).sum(axis=0)
    p_values: Floats = (n_extreme + 1) / (n_resamples + 1)
    return p_values


def holm(p: Sequence[float | None], n_tests: int = 0) -> list[float | None]:
    """Adjust p-values after Holm (1979).

    Rejecting those below alpha keeps the family-wise error below alpha. None is no test and stays
    None. `n_tests` is the number of tests from which these were selected by looking at the data, if
    larger.
    """
    indexed = [(value, index) for index, value in enumerate(p) if value is not None]
    tested = sorted(indexed)
    n_tests = max(n_tests, len(tested))
    adjusted: list[float | None] = [None] * len(p)
    highest = 0.0
    for rank, (value, index) in enumerate(tested):
        # A test is never more significant than one with a smaller p.
        highest = max(highest, value * (n_tests - rank))
        adjusted[index] = min(1.0, highest)
    return adjusted


ALL_EQUAL = "all differences equal: no interval"


def mean_differences(
    values: Floats,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> list[Estimate | None]:
    """Return the mean of each row of paired differences; None for an empty row.

    `values` are rows × items, NaN for missing values. The interval is Student's t over items; there
    is none below 5 items and if all differences are equal. p is that of `sign_flip`, from two items
    on.
    """
    flips = sign_flip(values, n_resamples=n_resamples, seed=seed)
    estimates: list[Estimate | None] = []
    for row, p_value, exact, n_flips in zip(values, *flips, strict=True):
        known_differences = without_nan(row)
        if not len(known_differences):
            estimates.append(None)
            continue
        estimate = mean_difference(known_differences, confidence)
        if len(known_differences) > 1:
            flips_used = "exact" if exact else f"{n_flips} flips, seed {seed}"
            test = f"sign-flip permutation test, {flips_used}"
            estimate = replace(estimate, p=float(p_value), test=test)
        estimates.append(estimate)
    return estimates


def mean_difference(differences: Floats, confidence: float) -> Estimate:
    """Return the mean of one or more differences with its t interval, without a test."""
    n = len(differences)
    varies = bool(np.ptp(differences))
    if n > 1 and not varies:
        return without_interval(
            name="difference", value=float(differences[0]), n=n, reason=ALL_EQUAL
        )
    mean = float(differences.mean())
    if n < MIN_INTERVAL_ITEMS:
        return without_interval(name="difference", value=mean, n=n, reason=too_few(n))
    t = t_quantile((1 - confidence) / 2, n - 1)
    deviation = float(differences.std(ddof=1))
    half = t * deviation / sqrt(n)
    method = f"{100 * confidence:g}% t interval over items"
    return Estimate(
        name="difference",
        value=mean,
        low=mean - half,
        high=mean + half,
        n=n,
        method=method,
    )


def cliffs_delta(first_values: Floats, second_values: Floats) -> float:
    """Return Cliff's delta (1993), −1 to 1.

    It is how often a value of `first_values` exceeds one of `second_values`, minus the reverse. It
    compares all pairs of values, also for paired samples: it measures how far the distributions
    differ, not in how many items one is better. Computed by ranks in n · log n.
    """
    ordered = np.sort(second_values)
    # For each of the first values, the number of smaller and of larger second values.
    n_smaller = np.searchsorted(ordered, first_values, "left")
    n_larger = len(ordered) - np.searchsorted(ordered, first_values, "right")
    net_wins = (n_smaller - n_larger).sum()
    n_pairs = len(first_values) * len(second_values)
    return float(net_wins / n_pairs)


MOST = 30
"""Systems up to which all pairs are compared: 435 pairs."""
TESTED = 100
"""Systems up to which the best one is tested.

The tests from which it was selected then take 200,000 flips.
"""
PLACES = 9
"""Decimals beyond which values differ by rounding only."""
Pair = tuple[int, int]
"""The rows of two systems."""


def best_first(values: Floats, better: Literal["higher", "lower", ""]) -> list[int]:
    """Return the rows with a value, by descending mean; ties keep their order.

    `values` are systems × items, NaN for missing values.
    """
    is_known = ~np.isnan(values)
    number = is_known.sum(axis=1)
    sums = np.where(is_known, values, 0.0).sum(axis=1)
    # Means that differ by rounding only are equal, and keep their order.
    means = np.round(sums / np.maximum(number, 1), PLACES)
    order = np.argsort(means if better == "lower" else -means, kind="stable")
    return [int(row) for row in order if number[row]]


def row_of(systems: Sequence[str], against: str) -> int | None:
    """Return the row of the system with which all others are compared.

    None if `against` is "", −1 if it is not among the systems.
    """
    if not against:
        return None
    if against not in systems:
        return -1
    return list(systems).index(against)


def partly_scored(values: Floats) -> set[int]:
    """Return the rows with values for less than half of the items that any row has a value for."""
    is_known = ~np.isnan(values)
    n_items = int(is_known.any(axis=0).sum())
    items_of_row = is_known.sum(axis=1).tolist()
    return {row for row, number in enumerate(items_of_row) if number < n_items / 2}


def pairs(
    order: Sequence[int],
    against: int | None = None,
    *,
    partly: Collection[int] = (),
) -> list[Pair]:
    """Return all pairs, the better system first.

    For more than `MOST` systems, return the first one, unless it is `partly` scored, with each
    other one. If all systems are compared with the one of row `against`, return each other system
    with it.
    """
    if against is not None:
        if against not in order:
            return []
        return [(row, against) for row in order if row != against]
    if len(order) <= MOST:
        return list(combinations(order, 2))
    mostly_scored = [row for row in order if row not in partly]
    first_row = mostly_scored[0] if mostly_scored else order[0]
    return [(first_row, second_row) for second_row in order if second_row != first_row]


def tests(systems: int, *, against: bool) -> int:
    """Return the number of tests for Holm's correction.

    It includes unselected pairs, and is 0 for too many systems. If all systems are compared
    `against` one chosen before, there is one test for each other system.
    """
    if against:
        return max(0, systems - 1)
    return systems * (systems - 1) // 2 if systems <= TESTED else 0


def differences(values: Floats, compared: Sequence[Pair]) -> Floats:
    """Return the first system's values minus the second's: pairs × items.

    NaN if either is missing.
    """
    first_rows = [row for row, _ in compared]
    second_rows = [row for _, row in compared]
    paired = values[first_rows] - values[second_rows]
    rows: Floats = np.round(paired, PLACES)
    return rows
