"""Paired differences between systems: which pairs to test, their means, intervals, tests and effect size.

`mean_differences` has bootstrap intervals and the p of `sign_flip`, a permutation test; `holm` corrects for several
tests. `pairs` says which systems are compared: every two, or of many each with the best one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from judge.core.records import Estimate
from judge.stats.bootstrap import Bools, Floats, expanded_tail, quantiles, resampled_means

EXACT = 12
"""Differences other than 0 up to which every assignment of signs is looked at."""
# How far a sum of a row whose squares add up to 1 may be off, in double and in single precision.
_TOLERANCE, _SINGLE_TOLERANCE = 1e-9, 1e-4
_MAX_NUMBERS = 4_000_000  # numbers held at once


class SignFlips(NamedTuple):
    """The two-sided p of each row, and whether it is exact."""

    p: Floats
    exact: Bools


def sign_flip(differences: Floats, *, n_flips: int = 10_000, seed: int = 0) -> SignFlips:
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
    few = np.flatnonzero(exact)
    # One sign stays, as the other half of the flips is the mirror image.
    places = np.argsort(known[few] == 0, axis=1, kind="stable")[:, :EXACT]
    nonzero = np.take_along_axis(known[few], places, axis=1)
    signs = 1.0 - 2.0 * (np.arange(2 ** max(0, nonzero.shape[1] - 1))[:, None] >> np.arange(nonzero.shape[1]) & 1)
    step = max(1, _MAX_NUMBERS // len(signs))
    for at in range(0, len(few), step):
        here = slice(at, at + step)
        sums = np.abs(nonzero[here] @ signs.T)
        p[few[here]] = (sums >= observed[few[here], None] - _TOLERANCE).mean(axis=1)
    if not exact.all():
        random = np.random.default_rng(seed)
        rows, limits = known[~exact].T.astype(np.float32), (observed[~exact] - _SINGLE_TOLERANCE).astype(np.float32)
        reached = np.zeros(len(limits))
        step = max(1, _MAX_NUMBERS // max(rows.shape))
        for first in range(0, n_flips, step):
            drawn = random.integers(2, size=(min(step, n_flips - first), len(rows)))
            reached += (np.abs((2 * drawn - 1).astype(np.float32) @ rows) >= limits).sum(axis=0)
        p[~exact] = (reached + 1) / (n_flips + 1)
    p[(~np.isnan(differences)).sum(axis=1) < 2] = np.nan
    return SignFlips(p, exact)


def holm(p: Sequence[float], of: int = 0) -> list[float]:
    """The p-values as Holm (1979) adjusts them: where one is below alpha, so is the chance of any false finding.

    `of` are all the tests that these were picked from by looking at the data, where that is more than there are.
    """
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    times = max(of, len(p)) - np.arange(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(np.asarray(p)[order] * times))
    return [float(value) for value in adjusted]


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

    Items are drawn anew, the same for all rows. The interval is the expanded percentile one (`expanded_tail`), without
    which intervals of 20 items are too narrow. p is that of `sign_flip`. Below two items there is neither.
    """
    estimates: list[Estimate | None] = []
    step = max(1, _MAX_SINGLES // n_resamples)
    for first in range(0, len(values), step):
        block = values[first : first + step]
        known = ~np.isnan(block)
        number, largest = known.sum(axis=1), np.abs(np.where(known, block, 0.0)).max(axis=1, initial=0.0)
        p, exact = sign_flip(block, n_flips=n_flips, seed=seed)
        drawn = np.ascontiguousarray(resampled_means(block, n_resamples, seed, np.float32).T)
        tails = np.array([expanded_tail((1 - confidence) / 2, max(2, n)) for n in number.tolist()])
        scale = np.where(largest > 0, largest, 1.0)[:, None]
        # Rounded, as what single precision makes of 0 is 0.
        ends = np.round(quantiles(drawn, np.stack([tails, 1 - tails], axis=1)) / scale, _DECIMALS) * scale
        for row, n, one_p, is_exact, (low, high) in zip(
            block, number.tolist(), p.tolist(), exact.tolist(), ends.tolist(), strict=True
        ):
            row = row[~np.isnan(row)]
            mean, method = float(row.mean()) if n else 0.0, f"over items, {n_resamples} resamples, seed {seed}"
            test = f"p: sign-flip permutation test, {'exact' if is_exact else f'{n_flips} flips, seed {seed}'}"
            if not n:
                estimates.append(None)
            elif n < 2:
                reason = "one item: too few for an interval and a test"
                estimates.append(Estimate("difference", mean, None, None, n, reason))
            elif row.min() == row.max():
                low = high = mean = float(row[0])
                estimates.append(Estimate("difference", mean, low, high, n, f"all differences equal; {test}", one_p))
            else:
                method = f"{100 * confidence:g}% expanded percentile bootstrap {method}; {test}"
                estimates.append(Estimate("difference", mean, low, high, n, method, one_p))
    return estimates


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
