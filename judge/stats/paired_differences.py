"""Paired differences between systems: which pairs to test, their means, intervals, tests and effect size.

`mean_differences` has bootstrap intervals and the p of `sign_flip`, a permutation test; `holm` corrects for several
tests. `pairs` says which systems are compared: every two, or of many each with the best one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from judge.core.records import Estimate
from judge.stats.bootstrap import Floats, resample_weights

Bools = np.ndarray[Any, np.dtype[np.bool_]]

EXACT = 12
"""Differences other than 0 up to which every assignment of signs is looked at."""
# How far a sum of a row whose squares add up to 1 may be off, in double and in single precision.
_TOLERANCE, _SINGLE_TOLERANCE = 1e-9, 1e-4
_MAX_NUMBERS = 4_000_000  # numbers held at once


def sign_flip(differences: Floats, *, n_flips: int = 10_000, seed: int = 0) -> tuple[Floats, Bools]:
    """Two-sided p of each row (rows × items, NaN where there is none), and whether it is exact.

    Where systems do not differ, a difference is as likely with the other sign (Fisher 1935, ch. 3): p is the share of
    flips whose sum is as far from 0 as the one found, or further. Up to `EXACT` differences other than 0 these are all
    flips; else `n_flips` that are drawn, the same for all rows, and p is (b + 1) / (n_flips + 1), b as far (Phipson and
    Smyth 2010). NaN for a row of fewer than two values.
    """
    known = np.nan_to_num(differences)
    norm = np.sqrt((known**2).sum(axis=1, keepdims=True))
    known = known / np.where(norm > 0, norm, 1.0)
    observed = np.abs(known.sum(axis=1))
    exact = (known != 0).sum(axis=1) <= EXACT
    p = np.empty(len(known))
    p[exact] = _share_of_all_flips(known[exact], observed[exact] - _TOLERANCE)
    p[~exact] = (_count_drawn_flips(known[~exact], observed[~exact] - _SINGLE_TOLERANCE, n_flips, seed) + 1) / (
        n_flips + 1
    )
    p[(~np.isnan(differences)).sum(axis=1) < 2] = np.nan
    return p, exact


def _share_of_all_flips(rows: Floats, observed: Floats) -> Floats:
    """Return the share of all flips that reach the observed sum. One sign stays: the other half is the mirror image."""
    places = np.argsort(rows == 0, axis=1, kind="stable")[:, :EXACT]
    values = np.take_along_axis(rows, places, axis=1)
    size = values.shape[1]
    signs = 1.0 - 2.0 * (np.arange(2 ** max(0, size - 1))[:, None] >> np.arange(size) & 1)
    step = max(1, _MAX_NUMBERS // len(signs))
    parts = [
        (np.abs(values[at : at + step] @ signs.T) >= observed[at : at + step, None]).mean(axis=1)
        for at in range(0, len(rows), step)
    ]
    return np.concatenate([np.empty(0), *parts])


def _count_drawn_flips(rows: Floats, observed: Floats, n_flips: int, seed: int) -> Floats:
    """Count the drawn flips that reach the observed sum."""
    counts = np.zeros(len(rows))
    if not len(rows):
        return counts
    random = np.random.default_rng(seed)
    values = rows.T.astype(np.float32)
    step = max(1, _MAX_NUMBERS // max(rows.shape))
    for first in range(0, n_flips, step):
        drawn = random.integers(2, size=(min(step, n_flips - first), rows.shape[1]))
        counts += (np.abs((2 * drawn - 1).astype(np.float32) @ values) >= observed.astype(np.float32)).sum(axis=0)
    return counts


def holm(p: Sequence[float], of: int = 0) -> list[float]:
    """The p-values as Holm (1979) adjusts them: where one is below alpha, so is the chance of any false finding.

    `of` are all the tests that these were picked from by looking at the data, where that is more than there are.
    """
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    times = max(of, len(p)) - np.arange(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(np.asarray(p)[order] * times))
    return [float(value) for value in adjusted]


Singles = np.ndarray[Any, np.dtype[np.float32]]

_MAX_SINGLES = 8_000_000  # numbers of single precision held at once
_DECIMALS = 6  # decimals of means of values up to 1


def mean_differences(
    values: Floats,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    n_flips: int = 10_000,
    seed: int = 0,
) -> list[Estimate | None]:
    """The mean of each row of paired differences (rows × items, NaN where there is none); None for a row without any.

    Items are drawn anew, the same for all rows. The interval is the expanded percentile one (Hesterberg 2015, section
    3.5): at quantiles as far out as Student's t is beyond the normal distribution, without which intervals of 20 items
    are too narrow. p is that of `sign_flip`. Below two items there is neither.
    """
    estimates: list[Estimate | None] = []
    step = max(1, _MAX_SINGLES // n_resamples)
    for first in range(0, len(values), step):
        block = values[first : first + step]
        p, exact = sign_flip(block, n_flips=n_flips, seed=seed)
        drawn = np.ascontiguousarray(resampled(block, n_resamples, seed).T)
        for row, means, one_p, is_exact in zip(block, drawn, p.tolist(), exact.tolist(), strict=True):
            test = "exact" if is_exact else f"{n_flips} flips, seed {seed}"
            method = f"over items, {n_resamples} resamples, seed {seed}; p: sign-flip permutation test, {test}"
            estimates.append(_mean_difference(row[~np.isnan(row)], means, one_p, confidence, method))
    return estimates


def resampled(values: Floats, n_resamples: int, seed: int) -> Singles:
    """The means, resamples × rows, of rows × items (NaN for missing ones); NaN where no item of a row was drawn."""
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0).T.astype(np.float32)
    partial = ~known.all(axis=1)
    masks = known[partial].T.astype(np.float32)
    result = np.empty((n_resamples, len(values)), dtype=np.float32)
    at = 0
    for drawn in resample_weights(values.shape[1], n_resamples, seed):
        counts, here = drawn.astype(np.float32), slice(at, at + len(drawn))
        number = np.full((len(counts), len(values)), np.float32(values.shape[1]))
        number[:, partial] = counts @ masks
        with np.errstate(invalid="ignore", divide="ignore"):
            result[here] = (counts @ filled) / number
        at += len(counts)
    return result


def _mean_difference(values: Floats, drawn: Singles, p: float, confidence: float, method: str) -> Estimate | None:
    n = len(values)
    if not n:
        return None
    mean = float(values.mean())
    if n < 2:
        return Estimate("difference", mean, None, None, n, "one item: too few for an interval and a test")
    if values.min() == values.max():
        value = float(values[0])
        test = method.rpartition("; ")[2]
        return Estimate("difference", value, value, value, n, f"all differences equal; {test}", p)
    tail = expanded_tail((1 - confidence) / 2, n)
    largest = float(np.abs(values).max())
    ends = np.quantile(drawn[~np.isnan(drawn)], (tail, 1 - tail)) / largest
    low, high = (round(end, _DECIMALS) * largest for end in ends.tolist())  # what single precision made of 0 is 0
    name = f"{100 * confidence:g}% expanded percentile bootstrap"
    return Estimate("difference", mean, low, high, n, f"{name} {method}", p)


def expanded_tail(tail: float, n: int) -> float:
    """The share of a normal distribution that lies beyond √(n / (n − 1)) of Student's t quantile of `tail`."""
    from scipy.special import stdtrit

    return NormalDist().cdf(sqrt(n / (n - 1)) * float(stdtrit(n - 1, tail)))


def cliffs_delta(first: Floats, second: Floats) -> float:
    """Cliff's delta (1993), −1 to 1: how often a value of `first` is above one of `second`, less how often it is below.

    Over all pairs of values, also of samples that are paired: it says how far the two distributions lie apart, and not
    in how many items one is ahead. Counted by rank, in n · log n.
    """
    ranked = np.sort(second)
    below, upto = (np.searchsorted(ranked, first, side) for side in ("left", "right"))
    return float((below + upto - len(second)).sum() / (len(first) * len(second)))


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


def differences(values: Floats, compared: Sequence[Pair]) -> Floats:
    """Pairs × items: the first one's values less the other's, NaN where either has none."""
    first, second = ([pair[side] for pair in compared] for side in (0, 1))
    rows: Floats = np.round(values[first] - values[second], PLACES)
    return rows
