"""Bootstrap over items, and Wilson's interval of a share.

`bootstrap_means` gives the mean of every system and column, on the same resamples. `Bootstrap` resamples any other
statistic. `wilson_interval` needs no resamples and holds near 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from judge.core.records import Estimate
from judge.table import Table

Floats = np.ndarray[Any, np.dtype[np.float64]]

_NORMAL = NormalDist()
# Numbers held at once, for the drawn items and for the values: about 32 MB each at the most.
_MAX_DRAWN, _MAX_VALUES = 1_000_000, 2_000_000


def bootstrap_means(
    table: Table, *, confidence: float = 0.95, n_resamples: int = 2000, seed: int = 0
) -> dict[tuple[str, str], Estimate]:
    """Mean over items of every (system, column) that has a score, with a BCa interval (Efron 1987).

    Items are the unit: each resample draws as many items as the table has, with replacement, and takes the mean of
    those that were scored. All systems and columns see the same draws, so their resamples are paired. A resample
    that drew no scored item is left out. `n` counts the scored items; below 2 there is no interval. Where the bias
    correction is infinite or the accelerated quantile undefined, the interval is the percentile one and `method`
    says so. Either is widened for small n, by √(n / (n − 1)) of the normal quantile (Hesterberg 2015, on narrowness
    bias). Memory stays bounded for any number of items.

    A value of all a system's texts together is its own estimate, with the interval its metric gave it.
    """
    estimates: dict[tuple[str, str], Estimate] = {}
    for name in sorted(table.corpus_columns):
        for score in table.column_scores(name):
            p = score.provenance
            note = p.note or "of all texts together"
            estimates[score.system, name] = Estimate("whole", score.value, p.low, p.high, p.n, note)
    rows = max(1, len(table.systems) * len(table.items))
    step = max(1, _MAX_VALUES // rows)
    of_items = [column for column in table.columns if column.name not in table.corpus_columns]
    for first in range(0, len(of_items), step):
        columns = of_items[first : first + step]
        keys = [(system, column.name) for column in columns for system in table.systems]
        values = [table.matrix(column.name) for column in columns]
        block = np.concatenate(values) if values else np.empty((0, 0))
        resampled = _resampled_means(block, n_resamples, seed)
        estimates |= {
            key: _mean_with_interval(
                row[~np.isnan(row)], drawn[~np.isnan(drawn)], confidence, f"{n_resamples} resamples, seed {seed}"
            )
            for key, row, drawn in zip(keys, block, resampled, strict=True)
            if not np.isnan(row).all()
        }
    return estimates


def _resampled_means(values: Floats, n_resamples: int, seed: int) -> Floats:
    """Resampled means, rows × resamples, of values that are rows × items with NaN for missing ones."""
    scored = ~np.isnan(values)
    filled = np.where(scored, values, 0.0).T
    partial = ~scored.all(axis=1)
    masks = scored[partial].T.astype(np.float64)
    result = np.empty((n_resamples, len(values)))
    at = 0
    for counts in resample_weights(values.shape[1], n_resamples, seed):
        here = slice(at, at + len(counts))
        number = np.full((len(counts), len(values)), float(values.shape[1]))
        number[:, partial] = counts @ masks
        with np.errstate(invalid="ignore", divide="ignore"):
            result[here] = (counts @ filled) / number
        at += len(counts)
    return result.T


def resample_weights(n_items: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """How often each item was drawn, resamples × items, in chunks: the same for the same seed, whatever the chunks."""
    random = np.random.default_rng(seed)
    chunk = max(1, _MAX_DRAWN // max(1, n_items))
    for first in range(0, n_resamples, chunk):
        size = min(chunk, n_resamples - first)
        drawn = random.integers(n_items, size=(size, n_items)) + np.arange(size)[:, None] * n_items
        yield np.bincount(drawn.ravel(), minlength=size * n_items).reshape(size, n_items).astype(np.float64)


def _mean_with_interval(values: Floats, drawn: Floats, confidence: float, resampling: str) -> Estimate:
    """Mean of the scored values with the interval that their resampled means support."""
    mean = float(values.mean())
    n = len(values)
    if n < 2:
        return Estimate("mean", mean, None, None, n, "one item: too few for an interval")
    if values.min() == values.max():
        value = float(values[0])
        return Estimate("mean", value, value, value, n, "all values equal")
    # A resample's variance is (n − 1) / n of the one it stands for: widened by that, few items are covered as many are.
    tail = _NORMAL.cdf((n / (n - 1)) ** 0.5 * _NORMAL.inv_cdf((1 - confidence) / 2))
    quantiles = _bca_quantiles(values, drawn, tail)
    name = "BCa" if quantiles else "percentile"
    low, high = np.quantile(drawn, quantiles or (tail, 1 - tail))
    return Estimate(
        "mean", mean, float(low), float(high), n, f"{100 * confidence:g}% {name} bootstrap over items, {resampling}"
    )


def _bca_quantiles(values: Floats, drawn: Floats, tail: float) -> tuple[float, float] | None:
    """The two quantiles of the BCa interval (Efron 1987), None where they are undefined.

    Efron and Tibshirani 1993: quantiles 14.10, bias 14.14, acceleration 14.15, for a mean Σd³ / (6 (Σd²)^1.5) with d
    the distances from it. Resamples equal to the mean count half below it, as discrete scores give many of them.
    """
    mean = values.mean()
    tolerance = 1e-12 * max(1.0, float(np.abs(values).max()))  # the sums' rounding
    share = float(((drawn < mean - tolerance).mean() + (drawn <= mean + tolerance).mean()) / 2)
    if not 0 < share < 1:
        return None
    bias = _NORMAL.inv_cdf(share)
    deviations = values - mean
    acceleration = float((deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5))
    shifts = [bias + _NORMAL.inv_cdf(p) for p in (tail, 1 - tail)]
    stretch = [1 - acceleration * shift for shift in shifts]
    if min(stretch) <= 0:
        return None
    low, high = (_NORMAL.cdf(bias + s / t) for s, t in zip(shifts, stretch, strict=True))
    return low, high


Statistic = Callable[[Floats], Floats]
"""How often each item was drawn, resamples × items, to a value of each resample, NaN where it has none."""

_MAX_CACHED = 4_000_000  # counts that are kept for the next statistic, 32 MB


@lru_cache(maxsize=1)
def _cached_weights(n_items: int, n_resamples: int, seed: int) -> tuple[Floats, ...]:
    return tuple(resample_weights(n_items, n_resamples, seed))


class Resampled(NamedTuple):
    """A value, and that of each resample of so many items; NaN where there is none."""

    value: float
    resampled: Floats
    items: int


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Resamples of items. Those of equal ones are the same, so that what is asked of them is paired."""

    n_resamples: int = 1000
    seed: int = 0
    confidence: float = 0.95

    def __str__(self) -> str:
        resampling = f"{self.n_resamples} resamples, seed {self.seed}"
        return f"{100 * self.confidence:g}% percentile bootstrap over items, {resampling}"

    def observed_and_resampled(self, statistic: Statistic, n_items: int) -> tuple[Floats, Floats]:
        """A statistic (of one or more numbers) of all the items, and of the resamples."""
        weights = _cached_weights if n_items * self.n_resamples <= _MAX_CACHED else resample_weights
        drawn = [statistic(counts) for counts in weights(n_items, self.n_resamples, self.seed)]
        return statistic(np.ones((1, n_items)))[0], np.concatenate(drawn)

    def resampled(self, statistic: Statistic, n_items: int, used: int) -> Resampled:
        """A statistic of one number, in which `used` of the items play a part."""
        value, drawn = self.observed_and_resampled(statistic, n_items)
        return Resampled(float(value), drawn, used)

    def estimate(self, name: str, resampled: Resampled, n: int, method: str) -> Estimate | None:
        """The estimate with its interval; None where the value is undefined."""
        drawn = resampled.resampled[~np.isnan(resampled.resampled)]
        if np.isnan(resampled.value):
            return None
        if min(resampled.items, n) < 2 or not len(drawn):
            return Estimate(name, resampled.value, None, None, n, f"{method}; one item: too few for an interval")
        low, high = self.interval(drawn)
        return Estimate(name, resampled.value, float(low), float(high), n, f"{method}; {self}")

    def interval(self, drawn: Floats) -> Floats:
        """Both ends of the interval, first axis: the lower, the upper one; NaN where no resample has a value."""
        tails = np.array([(1 - self.confidence) / 2, (1 + self.confidence) / 2])
        rows = drawn.reshape(len(drawn), -1)
        known = ~np.isnan(rows)
        bounds = np.full((2, rows.shape[1]), np.nan)
        whole, some = known.all(axis=0), known.any(axis=0)
        bounds[:, whole] = np.quantile(rows[:, whole], tails, axis=0)
        bounds[:, some & ~whole] = np.nanquantile(rows[:, some & ~whole], tails, axis=0)
        return bounds.reshape(2, *drawn.shape[1:])


DEFAULT = Bootstrap()


def wilson_interval(hits: int, n: int, name: str = "share", *, confidence: float = 0.95) -> Estimate | None:
    """hits / n (0–1) with Wilson's score interval (1927); None where nothing was tried."""
    if n < 1:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p, scale = hits / n, 1 + z * z / n
    middle = (p + z * z / (2 * n)) / scale
    half = z / scale * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return Estimate(name, p, min(low, p), max(high, p), n, f"{100 * confidence:g}% Wilson score interval")
