"""Compute intervals: of means, of shares, and of any other statistic by resampled items.

`item_means` returns the mean of every system and column, `mean_interval` its interval, `wilson_interval` that of a
share of independent trials. `Bootstrap` resamples any other statistic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import cbrt, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from scipy.special import stdtr, stdtrit
from threadpoolctl import threadpool_limits

from judge.core.records import Estimate
from judge.table import Table

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.intp]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

NORMAL = NormalDist()
_MAX_DRAWN = 1_000_000  # drawn items in memory, at most about 32 MB
_ROUNDING = 1e-9  # relative

P = ParamSpec("P")
R = TypeVar("R")


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that multiplies many small matrices, for which a second thread costs more than it saves."""
    limited: Callable[P, R] = threadpool_limits.wrap(limits=1, user_api="blas")(function)
    return limited


CONFIDENCE = 0.95
MIN_INTERVAL_ITEMS = 5
"""Fewer items have no interval, because none would hold its level (`benchmarks/claims.py`)."""


def item_means(table: Table) -> dict[tuple[str, str], Estimate]:
    """Return the mean over items of every (system, column) with a score; `n` counts the scored items.

    A value of all texts of a system is its own estimate, with the interval that its metric computed.
    """
    estimates: dict[tuple[str, str], Estimate] = {}
    for name in sorted(table.corpus_columns):
        for score in table.column_scores(name):
            p = score.provenance
            note = p.note or "of all texts together"
            estimates[score.system, name] = Estimate("whole", score.value, p.low, p.high, p.n, note)
    for column in table.columns:
        if column.name not in table.corpus_columns:
            for system, row in zip(table.systems, table.matrix(column.name), strict=True):
                if len(known := row[~np.isnan(row)]):
                    estimates[system, column.name] = mean_estimate(known, column.low, column.high)
    return estimates


def mean_estimate(
    values: Floats,
    low: float | None = None,
    high: float | None = None,
    *,
    confidence: float = CONFIDENCE,
    fewest: int = MIN_INTERVAL_ITEMS,
) -> Estimate:
    """Return the mean of one value per item, with the interval of `mean_interval` for a scale from `low` to `high`."""
    n = len(values)
    mean = float(values.mean()) if np.ptp(values) else float(values[0])
    away = values - mean
    variance = float((away**2).sum()) / max(1, n - 1)
    third = float((away**3).sum()) * n / ((n - 1) * (n - 2)) if n > 2 else 0.0
    ends = mean_interval(
        mean, variance, n, low, high, third=third, confidence=confidence, fewest=fewest
    )
    return Estimate("mean", mean, ends.low, ends.high, n, ends.method)


class Interval(NamedTuple):
    """Both ends, None for too few items, and the method or the reason."""

    low: float | None
    high: float | None
    method: str


def mean_interval(
    mean: float,
    variance: float,
    n: int,
    low: float | None = None,
    high: float | None = None,
    *,
    third: float = 0.0,
    confidence: float = CONFIDENCE,
    fewest: int = MIN_INTERVAL_ITEMS,
) -> Interval:
    """Return the interval of a mean over n items with this variance (divisor n − 1) and third cumulant.

    On a scale from `low` to `high` it is Wilson's (1927) with Student's t. Its number of tries is the one that gives
    the variance (Franco et al. 2019): for shares of two labels about n. If all values are equal each item is one try.
    Without a scale it is Student's t corrected for skewness (Hall 1992), and equal values have no interval. Fewer than
    `fewest` items (at least 2) have none.
    """
    if n < fewest:
        return Interval(None, None, too_few(n))
    t, usual = t_quantile((1 - confidence) / 2, n - 1), f"{100 * confidence:g}% {{}} over items"
    varies = variance > (_ROUNDING * mean) ** 2
    if low is not None and high is not None and low < high and low <= mean <= high:
        width = high - low
        share = (mean - low) / width
        tries = n * share * (1 - share) * width**2 / variance if varies else n
        ends = [low + width * end for end in wilson_ends(share, tries, t)]
        return Interval(
            min(ends[0], mean), max(ends[1], mean), usual.format("Wilson interval with Student's t")
        )
    if not varies:
        return Interval(None, None, "all values equal: no interval without a scale")
    error = sqrt(variance / n)
    ends = [mean - error * unskewed_quantile(at, third / n**2 / error**3) for at in (t, -t)]
    return Interval(ends[0], ends[1], usual.format("t interval corrected for skewness"))


def too_few(n: int) -> str:
    """Return the reason for a missing interval."""
    return f"{n} item{'s' * (n > 1)}: too few for an interval"


def unskewed_quantile(t: float, skewness: float) -> float:
    """Return the quantile of a skewed studentised mean at which its cubic transform is t (Hall 1992)."""
    if abs(skewness) < _ROUNDING:
        return t
    return 3 / skewness * (cbrt(1 + skewness * (t - skewness / 6)) - 1)


def resample_weights(n_items: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """Yield how often each item was drawn (resamples × items) in chunks. The chunk size does not change the draws."""
    random = np.random.default_rng(seed)
    chunk = max(1, _MAX_DRAWN // max(1, n_items))
    for first in range(0, n_resamples, chunk):
        size = min(chunk, n_resamples - first)
        drawn = random.integers(n_items, size=(size, n_items)) + np.arange(size)[:, None] * n_items
        yield (
            np.bincount(drawn.ravel(), minlength=size * n_items)
            .reshape(size, n_items)
            .astype(np.float64)
        )


def t_quantile(tail: float, freedom: float) -> float:
    """Return the value that Student's t exceeds with probability `tail` (below one half)."""
    return -float(stdtrit(freedom, tail))


def t_test(t: float, freedom: float) -> float:
    """Return the two-sided p of Student's t."""
    return 2 * float(stdtr(freedom, -abs(t)))


def sums_by_item(item: Ints, values: Floats, n_items: int) -> Floats:
    """Return the sums of `values` (texts × any) over the texts of each item."""
    sums = np.zeros((n_items, *values.shape[1:]))
    np.add.at(sums, item, values)
    return sums


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
    confidence: float = CONFIDENCE

    def __str__(self) -> str:
        resampling = f"{self.n_resamples} resamples, seed {self.seed}"
        return f"{100 * self.confidence:g}% expanded percentile bootstrap over items, {resampling}"

    def observed_and_resampled(self, statistic: Statistic, n_items: int) -> tuple[Floats, Floats]:
        """Return a statistic (one or more numbers) of all items, and of the resamples."""
        weights = _cached_weights if n_items * self.n_resamples <= _MAX_CACHED else resample_weights
        drawn = [statistic(counts) for counts in weights(n_items, self.n_resamples, self.seed)]
        return statistic(np.ones((1, n_items)))[0], np.concatenate(drawn)

    def resampled(self, statistic: Statistic, n_items: int, used: int) -> Resampled:
        """Return a statistic of one number, to which `used` items contribute."""
        value, drawn = self.observed_and_resampled(statistic, n_items)
        return Resampled(float(value), drawn, used)

    def estimate(
        self, name: str, resampled: Resampled, n: int, method: str, fewest: int = MIN_INTERVAL_ITEMS
    ) -> Estimate | None:
        """Return the estimate, with its interval from `fewest` items on, or None if the value is undefined."""
        if np.isnan(resampled.value):
            return None
        items = resampled.items
        if items < fewest or n < 2 or np.isnan(resampled.resampled).all():
            return Estimate(name, resampled.value, None, None, n, f"{method}; {too_few(items)}")
        low, high = self.interval(resampled.resampled, items).tolist()
        return Estimate(name, resampled.value, low, high, n, f"{method}; {self}")

    def interval(self, drawn: Floats, items: int) -> Floats:
        """Return the lower and the upper ends (first axis) for this many items; NaN if no resample has a value.

        The percentile interval is expanded: its quantiles are those of √(n / (n − 1)) times Student's t (Hesterberg
        2015, section 3.5).
        """
        ordered = np.sort(
            np.ascontiguousarray(drawn.reshape(len(drawn), -1).T), axis=-1
        )  # NaN comes last
        last = np.maximum((~np.isnan(ordered)).sum(axis=-1, keepdims=True) - 1, 0)
        tail = (1 - self.confidence) / 2
        if items > 1:
            tail = NORMAL.cdf(-sqrt(items / (items - 1)) * t_quantile(tail, items - 1))
        # Linear between neighbours, as in numpy, whose partition takes five times as long.
        place = np.array([tail, 1 - tail]) * last
        below = place.astype(np.intp)
        low, high = (
            np.take_along_axis(ordered, np.minimum(at, last), -1) for at in (below, below + 1)
        )
        ends: Floats = low + (high - low) * (place - below)
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
