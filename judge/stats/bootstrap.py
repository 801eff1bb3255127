"""Compute intervals: resampled items and their quantiles, Student's t, and Wilson's interval of a share.

`bootstrap_means` returns the mean of every system and column on the same resamples. `Bootstrap` resamples any other
statistic; `quantiles` returns the ends of its interval. `wilson_interval` needs no resamples and is valid near 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import atan, cos, exp, lgamma, pi, sin, sqrt, tan
from statistics import NormalDist
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from judge.core.records import Estimate
from judge.table import Table

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.intp]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

NORMAL = NormalDist()
# Numbers in memory, for the drawn items and for the values: at most about 32 MB each.
_MAX_DRAWN, _MAX_VALUES = 1_000_000, 2_000_000

P = ParamSpec("P")
R = TypeVar("R")


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that multiplies many small matrices, for which a second thread costs more than it saves."""
    limited: Callable[P, R] = threadpool_limits.wrap(limits=1, user_api="blas")(function)
    return limited


def bootstrap_means(
    table: Table, *, confidence: float = 0.95, n_resamples: int = 2000, seed: int = 0
) -> dict[tuple[str, str], Estimate]:
    """Return the mean over items of every (system, column) with a score, with a BCa interval (Efron 1987).

    Each resample draws as many items as the table has, with replacement, and averages those with a score. All systems
    and columns share the draws. A resample without a scored item is excluded. `n` counts the scored items; below 2
    there is no interval. If the bias correction is infinite or the accelerated quantile undefined, the interval is the
    percentile interval, and `method` says so. Both are widened by √(n / (n − 1)) of the normal quantile (Hesterberg
    2015, on narrowness bias). Memory is bounded for any number of items.

    A value of all texts of a system is its own estimate, with the interval that its metric computed.
    """
    estimates: dict[tuple[str, str], Estimate] = {}
    for name in sorted(table.corpus_columns):
        for score in table.column_scores(name):
            p = score.provenance
            note = p.note or "of all texts together"
            estimates[score.system, name] = Estimate("whole", score.value, p.low, p.high, p.n, note)
    step = max(1, _MAX_VALUES // max(1, len(table.systems) * len(table.items)))
    of_items = [column.name for column in table.columns if column.name not in table.corpus_columns]
    for first in range(0, len(of_items), step):
        names = of_items[first : first + step]
        values = np.concatenate([table.matrix(name) for name in names])
        keys = [(system, name) for name in names for system in table.systems]
        scored = np.flatnonzero(~np.isnan(values).all(axis=1))
        values, keys = values[scored], [keys[place] for place in scored]
        drawn = np.ascontiguousarray(resampled_means(values, n_resamples, seed).T)
        tails = [bca_tails(row[~np.isnan(row)], means, confidence) for row, means in zip(values, drawn, strict=True)]
        ends = quantiles(drawn, [[low, high] for _, low, high in tails]).tolist() if tails else []
        for key, row, (name, _, _), (low, high) in zip(keys, values, tails, ends, strict=True):
            known = row[~np.isnan(row)]
            mean, n = float(known.mean()), len(known)
            method = f"{100 * confidence:g}% {name} bootstrap over items, {n_resamples} resamples, seed {seed}"
            if n < 2:
                estimates[key] = Estimate("mean", mean, None, None, n, "one item: too few for an interval")
            elif known.min() == known.max():
                value = float(known[0])
                estimates[key] = Estimate("mean", value, value, value, n, "all values equal")
            else:
                estimates[key] = Estimate("mean", mean, low, high, n, method)
    return estimates


def resampled_means(values: Floats, n_resamples: int, seed: int, dtype: Any = np.float64) -> Any:
    """Return means of rows × items (NaN for missing values) by resample: resamples × rows; NaN if no item was drawn."""
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0).T.astype(dtype)
    partial = ~known.all(axis=1)
    masks = known[partial].T.astype(dtype)
    means = np.empty((n_resamples, len(values)), dtype)
    at = 0
    for drawn in resample_weights(values.shape[1], n_resamples, seed):
        counts = drawn.astype(dtype, copy=False)
        number = np.full((len(counts), len(values)), dtype(values.shape[1]))
        number[:, partial] = counts @ masks
        with np.errstate(invalid="ignore", divide="ignore"):
            means[at : at + len(counts)] = (counts @ filled) / number
        at += len(counts)
    return means


def resample_weights(n_items: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """Yield how often each item was drawn (resamples × items) in chunks. The chunk size does not change the draws."""
    random = np.random.default_rng(seed)
    chunk = max(1, _MAX_DRAWN // max(1, n_items))
    for first in range(0, n_resamples, chunk):
        size = min(chunk, n_resamples - first)
        drawn = random.integers(n_items, size=(size, n_items)) + np.arange(size)[:, None] * n_items
        yield np.bincount(drawn.ravel(), minlength=size * n_items).reshape(size, n_items).astype(np.float64)


def quantiles(drawn: Any, shares: Any) -> Floats:
    """Return quantiles of each row (rows × resamples, without NaN) at k shares for all rows or rows × k: rows × k.

    They are linear between neighbours, as in numpy, whose partition takes five times as long. NaN for a row without a
    number.
    """
    ordered = np.sort(drawn, axis=-1)  # NaN comes last
    last = np.maximum((~np.isnan(drawn)).sum(axis=-1, keepdims=True) - 1, 0)
    place = np.asarray(shares) * last
    below = place.astype(np.intp)
    low, high = (np.take_along_axis(ordered, np.minimum(at, last), -1).astype(np.float64) for at in (below, below + 1))
    ends: Floats = low + (high - low) * (place - below)
    return ends


def bca_tails(values: Floats, drawn: Floats, confidence: float) -> tuple[str, float, float]:
    """Return the method and the two quantiles of the BCa interval (Efron 1987), or of the percentile interval.

    Efron and Tibshirani 1993: quantiles 14.10, bias 14.14, acceleration 14.15, for a mean Σd³ / (6 (Σd²)^1.5) with d
    the distances from it. If these are undefined, the percentile interval is used. Resamples equal to the mean count
    half, because discrete scores produce many of them.
    """
    n, mean = len(values), values.mean()
    # A resample's variance is (n − 1) / n of the true one: widen the interval, so that few items are covered as well.
    tail = NORMAL.cdf(sqrt(n / max(1, n - 1)) * NORMAL.inv_cdf((1 - confidence) / 2))
    drawn = drawn[~np.isnan(drawn)]
    tolerance = 1e-12 * max(1.0, float(np.abs(values).max()))  # rounding of sums
    below, level = int((drawn < mean - tolerance).sum()), int((drawn <= mean + tolerance).sum())
    deviations = values - mean
    scatter = float((deviations**2).sum()) ** 1.5
    if 0 < below + level < 2 * len(drawn) and scatter > 0:
        bias = NORMAL.inv_cdf((below + level) / (2 * len(drawn)))
        acceleration = float((deviations**3).sum()) / (6 * scatter)
        shifts = [bias + NORMAL.inv_cdf(p) for p in (tail, 1 - tail)]
        if all(acceleration * shift < 1 for shift in shifts):
            low, high = (NORMAL.cdf(bias + shift / (1 - acceleration * shift)) for shift in shifts)
            return "BCa", low, high
    return "percentile", tail, 1 - tail


@lru_cache(maxsize=4096)
def t_quantile(tail: float, freedom: int) -> float:
    """Return the value that Student's t exceeds with probability `tail` (below one half).

    Solved by Newton's steps on the angle in the finite series of the distribution (Abramowitz and Stegun 1964,
    26.7.3–4). Importing scipy.special would take longer than a run's analysis.
    """
    odd = freedom % 2
    j = np.arange(1, (freedom - odd) // 2)
    ratios = (2 * j - 1 + odd) / (2 * j + odd)
    slope = 2 * exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(pi)
    angle = atan(NORMAL.inv_cdf(1 - tail) / sqrt(freedom))  # start at the normal quantile: the steps only go up
    for _ in range(100):
        inside = sin(angle) * (1 + float(np.cumprod(ratios * cos(angle) ** 2).sum()))
        if odd:
            inside = 2 / pi * (angle + (inside * cos(angle) if freedom > 1 else 0.0))
        step = (1 - 2 * tail - inside) / (slope * cos(angle) ** (freedom - 1))
        angle += step
        if abs(step) < 1e-15:
            break
    return tan(angle) * sqrt(freedom)


def expanded_tail(tail: float, n: int) -> float:
    """Return the normal tail beyond √(n / (n − 1)) times Student's t quantile of `tail`.

    The percentile interval at these quantiles is the expanded one (Hesterberg 2015, section 3.5).
    """
    return NORMAL.cdf(-sqrt(n / (n - 1)) * t_quantile(tail, n - 1))


Statistic = Callable[[Floats], Floats]
"""Maps how often each item was drawn (resamples × items) to a value per resample, NaN if undefined."""

_MAX_CACHED = 4_000_000  # counts cached for the next statistic, 32 MB


@lru_cache(maxsize=1)
def _cached_weights(n_items: int, n_resamples: int, seed: int) -> tuple[Floats, ...]:
    return tuple(resample_weights(n_items, n_resamples, seed))


class Resampled(NamedTuple):
    """A value and its resamples; NaN if there is none. `n` counts the items."""

    value: float
    resampled: Floats
    items: int


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Resamples of items. The same seed and items give the same resamples, so statistics are paired."""

    n_resamples: int = 1000
    seed: int = 0
    confidence: float = 0.95

    def __str__(self) -> str:
        resampling = f"{self.n_resamples} resamples, seed {self.seed}"
        return f"{100 * self.confidence:g}% percentile bootstrap over items, {resampling}"

    def observed_and_resampled(self, statistic: Statistic, n_items: int) -> tuple[Floats, Floats]:
        """Return a statistic (one or more numbers) of all items, and of the resamples."""
        weights = _cached_weights if n_items * self.n_resamples <= _MAX_CACHED else resample_weights
        drawn = [statistic(counts) for counts in weights(n_items, self.n_resamples, self.seed)]
        return statistic(np.ones((1, n_items)))[0], np.concatenate(drawn)

    def resampled(self, statistic: Statistic, n_items: int, used: int) -> Resampled:
        """Return a statistic of one number, to which `used` items contribute."""
        value, drawn = self.observed_and_resampled(statistic, n_items)
        return Resampled(float(value), drawn, used)

    def estimate(self, name: str, resampled: Resampled, n: int, method: str) -> Estimate | None:
        """Return the estimate with its interval, or None if the value is undefined."""
        if np.isnan(resampled.value):
            return None
        if min(resampled.items, n) < 2 or np.isnan(resampled.resampled).all():
            return Estimate(name, resampled.value, None, None, n, f"{method}; one item: too few for an interval")
        low, high = self.interval(resampled.resampled).tolist()
        return Estimate(name, resampled.value, low, high, n, f"{method}; {self}")

    def interval(self, drawn: Floats) -> Floats:
        """Return the lower and the upper ends (first axis); NaN if no resample has a value."""
        rows = np.ascontiguousarray(drawn.reshape(len(drawn), -1).T)
        ends = quantiles(rows, [(1 - self.confidence) / 2, (1 + self.confidence) / 2])
        return ends.T.reshape(2, *drawn.shape[1:])


DEFAULT = Bootstrap()


def wilson_interval(hits: int, n: int, name: str = "share") -> Estimate | None:
    """Return hits / n (0–1) with Wilson's score interval (1927), or None if n is 0."""
    if n < 1:
        return None
    p = hits / n
    low, high = wilson_ends(p, n, NORMAL.inv_cdf(0.975))
    return Estimate(name, p, min(low, p), max(high, p), n, "95% Wilson score interval")


def wilson_ends(share: float, tries: float, z: float) -> tuple[float, float]:
    """Return both ends of Wilson's interval (1927, as in Agresti and Coull 1998) at z standard errors."""
    add = z * z / tries
    middle, half = share + add / 2, sqrt(add * share * (1 - share) + add**2 / 4)
    return max(0.0, (middle - half) / (1 + add)), min(1.0, (middle + half) / (1 + add))
