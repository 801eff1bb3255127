"""Paired differences: their means with bootstrap intervals and permutation tests."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from judge.core.records import Estimate
from judge.stats.permutation import sign_flip
from judge.stats.resampling import Floats, draws

Singles = np.ndarray[Any, np.dtype[np.float32]]

_HELD = 8_000_000  # numbers of single precision held at once
_PLACES = 6  # decimals of means of values up to 1


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
    found: list[Estimate | None] = []
    step = max(1, _HELD // n_resamples)
    for first in range(0, len(values), step):
        block = values[first : first + step]
        p, exact = sign_flip(block, n_flips=n_flips, seed=seed)
        drawn = np.ascontiguousarray(resampled(block, n_resamples, seed).T)
        for row, means, one_p, is_exact in zip(block, drawn, p.tolist(), exact.tolist(), strict=True):
            test = "exact" if is_exact else f"{n_flips} flips, seed {seed}"
            how = f"over items, {n_resamples} resamples, seed {seed}; p: sign-flip permutation test, {test}"
            found.append(_estimate(row[~np.isnan(row)], means, one_p, confidence, how))
    return found


def resampled(values: Floats, n_resamples: int, seed: int) -> Singles:
    """The means, resamples × rows, of rows × items (NaN for missing ones); NaN where no item of a row was drawn."""
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0).T.astype(np.float32)
    partial = ~known.all(axis=1)
    masks = known[partial].T.astype(np.float32)
    result = np.empty((n_resamples, len(values)), dtype=np.float32)
    at = 0
    for drawn in draws(values.shape[1], n_resamples, seed):
        counts, here = drawn.astype(np.float32), slice(at, at + len(drawn))
        number = np.full((len(counts), len(values)), np.float32(values.shape[1]))
        number[:, partial] = counts @ masks
        with np.errstate(invalid="ignore", divide="ignore"):
            result[here] = (counts @ filled) / number
        at += len(counts)
    return result


def _estimate(values: Floats, drawn: Singles, p: float, confidence: float, how: str) -> Estimate | None:
    n = len(values)
    if not n:
        return None
    mean = float(values.mean())
    if n < 2:
        return Estimate("difference", mean, None, None, n, "one item: too few for an interval and a test")
    if values.min() == values.max():
        value = float(values[0])
        test = how.rpartition("; ")[2]
        return Estimate("difference", value, value, value, n, f"all differences equal; {test}", p)
    tail = expanded((1 - confidence) / 2, n)
    unit = float(np.abs(values).max())
    ends = np.quantile(drawn[~np.isnan(drawn)], (tail, 1 - tail)) / unit
    low, high = (round(end, _PLACES) * unit for end in ends.tolist())  # what single precision made of 0 is 0
    name = f"{100 * confidence:g}% expanded percentile bootstrap"
    return Estimate("difference", mean, low, high, n, f"{name} {how}", p)


def expanded(tail: float, n: int) -> float:
    """The share of a normal distribution that lies beyond √(n / (n − 1)) of Student's t quantile of `tail`."""
    from scipy.special import stdtrit

    return NormalDist().cdf(sqrt(n / (n - 1)) * float(stdtrit(n - 1, tail)))
