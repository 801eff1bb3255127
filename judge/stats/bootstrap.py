"""Compute intervals: of means, of shares, and of any other statistic by resampled items.

`item_means` returns the mean of every system and column, `mean_interval` its interval,
`wilson_interval` that of a share of independent trials. `Bootstrap` resamples any other statistic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import cbrt, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from scipy.special import stdtr, stdtrit
from threadpoolctl import threadpool_limits

from judge.core.records import Estimate, Score
from judge.table import Table

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.intp]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

NORMAL = NormalDist()
CONFIDENCE = 0.95
MIN_INTERVAL_ITEMS = 5
"""Fewer items have no interval, because none would hold its level (`benchmarks/claims.py`)."""
_MAX_DRAWN = 1_000_000  # drawn items in memory, at most about 32 MB
_MAX_CACHED = 4_000_000  # counts cached for the next statistic, 32 MB
_ROUNDING = 1e-9  # relative

P = ParamSpec("P")
R = TypeVar("R")


def without_interval(
    name: str,
    value: float,
    n: int,
    reason: str,
    *,
    p: float | None = None,
    test: str = "",
) -> Estimate:
    """Return an estimate without an interval; its method is the `reason` for that."""
    return Estimate(
        name, value, low=None, high=None, n=n, method=reason, p=p, test=test
    )


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that multiplies many small matrices, so that it uses one thread.

    A second thread costs more than it saves for small matrices.
    """
    decorate = threadpool_limits.wrap(limits=1, user_api="blas")
    limited: Callable[P, R] = decorate(function)
    return limited


def without_nan(values: Floats) -> Floats:
    """Return the values that are not NaN, as one axis."""
    known_values: Floats = values[~np.isnan(values)]
    return known_values


def all_known(*values: Floats) -> Bools:
    """Return at which positions none of these arrays is NaN."""
    known: Bools = np.logical_and.reduce([~np.isnan(array) for array in values])
    return known


def sum_of_squares(values: np.ndarray[Any, Any]) -> float:
    """Return the sum of the squared values."""
    return float((values**2).sum())


def item_means(table: Table) -> dict[tuple[str, str], Estimate]:
    """Return the mean over items of every (system, column) with a score.

    `n` counts the scored items. A value of all texts of a system is its own estimate, with the
    interval that its metric computed.
    """
    estimates: dict[tuple[str, str], Estimate] = {}
    for column_name in sorted(table.corpus_columns):
        for score in table.column_scores(column_name):
            estimates[score.system, column_name] = _corpus_estimate(score)
    for column in table.columns:
        if column.name in table.corpus_columns:
            continue
        values_by_system = table.matrix(column.name)
        for system, values in zip(table.systems, values_by_system, strict=True):
            known_values = without_nan(values)
            if len(known_values):
                mean = mean_estimate(known_values, column.low, column.high)
                estimates[system, column.name] = mean
    return estimates


def _corpus_estimate(score: Score) -> Estimate:
    """Return the value of all texts of a system together, such as corpus BLEU, as an estimate."""
    provenance = score.provenance
    method = provenance.note or "of all texts together"
    lower_bound = provenance.low
    upper_bound = provenance.high
    return Estimate(
        name="whole",
        value=score.value,
        low=lower_bound,
        high=upper_bound,
        n=provenance.n,
        method=method,
    )


def mean_estimate(
    values: Floats,
    low: float | None = None,
    high: float | None = None,
    *,
    confidence: float = CONFIDENCE,
    fewest: int = MIN_INTERVAL_ITEMS,
) -> Estimate:
    """Return the mean of one value per item (at least one), with the interval of `mean_interval`.

    The scale is from `low` to `high`.
    """
    n = len(values)
    # The mean of equal numbers may differ from them by rounding.
    mean = float(values.mean()) if np.ptp(values) else float(values[0])
    deviations = values - mean
    squares = sum_of_squares(deviations)
    variance = squares / max(1, n - 1)
    ends = mean_interval(
        mean,
        variance,
        n,
        low,
        high,
        third=third_cumulant(deviations),
        confidence=confidence,
        fewest=fewest,
    )
    return Estimate(
        name="mean",
        value=mean,
        low=ends.low,
        high=ends.high,
        n=n,
        method=ends.method,
    )


def third_cumulant(deviations: Floats) -> float:
    """Return the unbiased third cumulant of values (Fisher's k-statistic) from their deviations.

    Deviations are from the mean. The third cumulant is 0 for fewer than three values.
    """
    n = len(deviations)
    if n < 3:
        return 0.0
    cubes = float((deviations**3).sum())
    return cubes * n / ((n - 1) * (n - 2))


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
    """Return the interval of a mean over n items.

    The variance has the divisor n − 1, and `third` is the third cumulant of the values. On a scale
    from `low` to `high` it is Wilson's (1927) with Student's t. Its number of tries is the one that
    gives the variance (Franco et al. 2019): for shares of two labels about n. If all values are
    equal each item is one try. Without a scale it is Student's t corrected for skewness (Hall
    1992), and equal values have no interval. Fewer than `fewest` items (at least 2) have none.
    """
    if n < fewest:
        return Interval(None, None, too_few(n))
    t = t_quantile((1 - confidence) / 2, n - 1)
    percent = f"{100 * confidence:g}%"
    varies = variance > (_ROUNDING * mean) ** 2
    if low is not None and high is not None and low < high and low <= mean <= high:
        width = high - low
        share = (mean - low) / width
        tries: float = n
        if varies:
            tries = n * share * (1 - share) * width**2 / variance
        lower_share, upper_share = wilson_ends(share, tries, t)
        # Rounding must not leave the mean outside of its interval.
        lower_bound = min(low + width * lower_share, mean)
        upper_bound = max(low + width * upper_share, mean)
        method = f"{percent} Wilson interval with Student's t over items"
        return Interval(lower_bound, upper_bound, method)
    if not varies:
        return Interval(None, None, "all values equal: no interval without a scale")
    # The third cumulant of a mean is 1/n² of that of the values.
    lower_bound, upper_bound = skewed_ends(mean, sqrt(variance / n), third / n**2, t)
    method = f"{percent} t interval corrected for skewness over items"
    return Interval(lower_bound, upper_bound, method)


def skewed_ends(
    mean: float, error: float, third: float, t: float
) -> tuple[float, float]:
    """Return both ends of Student's t interval of a mean, corrected for skewness (Hall 1992).

    `error` is the mean's standard error, `third` its third cumulant, `t` the quantile.
    """
    skewness = third / error**3
    # A skewed mean errs further towards its long tail, so the two ends need their own quantiles.
    lower_bound = mean - error * _unskewed_quantile(t, skewness)
    upper_bound = mean - error * _unskewed_quantile(-t, skewness)
    return lower_bound, upper_bound


def too_few(n: int) -> str:
    """Return the reason for a missing interval."""
    items = "items" if n > 1 else "item"
    return f"{n} {items}: too few for an interval"


def _unskewed_quantile(t: float, skewness: float) -> float:
    """Return the quantile of a skewed studentised mean at which its cubic transform is t.

    The source is Hall (1992).
    """
    if abs(skewness) < _ROUNDING:
        return t
    transformed = cbrt(1 + skewness * (t - skewness / 6))
    return 3 / skewness * (transformed - 1)


def resample_weights(n_items: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """Yield how often each item was drawn (resamples × items) in chunks.

    The chunk size does not change the draws.
    """
    random = np.random.default_rng(seed)
    chunk = max(1, _MAX_DRAWN // max(1, n_items))
    for first_resample in range(0, n_resamples, chunk):
        size = min(chunk, n_resamples - first_resample)
        drawn = random.integers(n_items, size=(size, n_items))
        # The items of the second resample are numbered from n_items on, and so forth: one call
        # then counts the items of all resamples.
        first_number = np.arange(size)[:, None] * n_items
        numbered = drawn + first_number
        counts = np.bincount(numbered.ravel(), minlength=size * n_items)
        yield counts.reshape(size, n_items).astype(np.float64)


def t_quantile(tail: float, freedom: float) -> float:
    """Return the value that Student's t exceeds with probability `tail` (below one half)."""
    return -float(stdtrit(freedom, tail))


def t_test(t: float, freedom: float) -> float:
    """Return the two-sided p of Student's t."""
    return 2 * float(stdtr(freedom, -abs(t)))


def sums_by_item(item: Ints, values: Floats, n_items: int) -> Floats:
    """Return the sums of `values` (texts × any) over the texts of each item."""
    sums = np.zeros((n_items, *values.shape[1:]))
    # `sums[item] += values` would add only one of several texts of an item.
    np.add.at(sums, item, values)
    return sums


Statistic = Callable[[Floats], Floats]
"""Maps how often each item was drawn (resamples × items) to a value per resample, or NaN."""


@lru_cache(maxsize=1)
def _cached_weights(n_items: int, n_resamples: int, seed: int) -> tuple[Floats, ...]:
    return tuple(resample_weights(n_items, n_resamples, seed))


class Resampled(NamedTuple):
    """A value and its resamples; NaN if there is none. `items` counts the items that contribute."""

    value: float
    resampled: Floats
    items: int


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Resamples of items.

    The same seed and items give the same resamples, so statistics are paired.
    """

    n_resamples: int = 1000
    seed: int = 0
    confidence: float = CONFIDENCE

    def __str__(self) -> str:
        resampling = f"{self.n_resamples} resamples, seed {self.seed}"
        return f"{100 * self.confidence:g}% expanded percentile bootstrap over items, {resampling}"

    def observed_and_resampled(
        self, statistic: Statistic, n_items: int
    ) -> tuple[Floats, Floats]:
        """Return a statistic (one or more numbers) of all items, and of the resamples.

        The first axis of the second array is the resample.
        """
        weights: Iterable[Floats]
        if n_items * self.n_resamples <= _MAX_CACHED:
            weights = _cached_weights(n_items, self.n_resamples, self.seed)
        else:
            weights = resample_weights(n_items, self.n_resamples, self.seed)
        drawn = [statistic(counts) for counts in weights]
        observed = statistic(np.ones((1, n_items)))[0]
        return observed, np.concatenate(drawn)

    def observed(self, statistic: Statistic, n_items: int, used: int) -> Resampled:
        """Return a statistic of all items without resamples, for an estimate without interval."""
        value = statistic(np.ones((1, n_items)))[0]
        return Resampled(float(value), np.empty(0), used)

    def resampled(self, statistic: Statistic, n_items: int, used: int) -> Resampled:
        """Return a statistic of one number, to which `used` items contribute."""
        value, drawn = self.observed_and_resampled(statistic, n_items)
        return Resampled(float(value), drawn, used)

    def estimate(
        self,
        name: str,
        resampled: Resampled,
        n: int,
        method: str,
        fewest: int = MIN_INTERVAL_ITEMS,
    ) -> Estimate | None:
        """Return the estimate, with an interval from `fewest` items on; None if undefined.

        `n` is the number to show, such as texts; the interval depends on `resampled.items`.
        """
        if np.isnan(resampled.value):
            return None
        items = resampled.items
        if items < fewest or n < 2 or np.isnan(resampled.resampled).all():
            note = f"{method}; {too_few(items)}"
            return without_interval(name=name, value=resampled.value, n=n, reason=note)
        lower_bound, upper_bound = self.interval(resampled.resampled, items).tolist()
        return Estimate(
            name=name,
            value=resampled.value,
            low=lower_bound,
            high=upper_bound,
            n=n,
            method=f"{method}; {self}",
        )

    def interval(self, drawn: Floats, items: int) -> Floats:
        """Return the lower and the upper ends (first axis) of resamples (first axis of `drawn`).

        They are NaN if no resample has a value. `items` is the number n of resampled items. The
        percentile interval is expanded: it uses the quantiles of √(n / (n − 1)) times Student's t
        (Hesterberg 2015, section 3.5).
        """
        # Statistics × resamples.
        by_statistic = np.ascontiguousarray(drawn.reshape(len(drawn), -1).T)
        ordered = np.sort(by_statistic, axis=-1)  # NaN comes last
        number_known = (~np.isnan(ordered)).sum(axis=-1, keepdims=True)
        last = np.maximum(number_known - 1, 0)
        tail = (1 - self.confidence) / 2
        if items > 1:
            expansion = sqrt(items / (items - 1))
            tail = NORMAL.cdf(-expansion * t_quantile(tail, items - 1))
        # Linear between neighbours, as in numpy, whose partition takes five times as long.
        position = np.array([tail, 1 - tail]) * last
        below = position.astype(np.intp)
        above = np.minimum(below + 1, last)
        lower_neighbour = np.take_along_axis(ordered, np.minimum(below, last), -1)
        upper_neighbour = np.take_along_axis(ordered, above, -1)
        step = upper_neighbour - lower_neighbour
        ends: Floats = lower_neighbour + step * (position - below)
        return ends.T.reshape(2, *drawn.shape[1:])


DEFAULT = Bootstrap()


def wilson_interval(hits: int, n: int, name: str = "share") -> Estimate | None:
    """Return hits / n (0–1) with Wilson's score interval (1927), or None if n is 0."""
    if n < 1:
        return None
    share = hits / n
    lower_bound, upper_bound = wilson_ends(share, n, NORMAL.inv_cdf(0.975))
    method = "95% Wilson score interval"
    # Rounding must not leave the share outside of its interval.
    lower_bound = min(lower_bound, share)
    upper_bound = max(upper_bound, share)
    return Estimate(
        name=name,
        value=share,
        low=lower_bound,
        high=upper_bound,
        n=n,
        method=method,
    )


def wilson_ends(share: float, tries: float, z: float) -> tuple[float, float]:
    """Return both ends of Wilson's interval (1927) at z standard errors.

    The form is that of Agresti and Coull (1998).
    """
    added = z * z / tries
    middle = share + added / 2
    variance = added * share * (1 - share) + added**2 / 4
    half = sqrt(variance)
    lower_bound = (middle - half) / (1 + added)
    upper_bound = (middle + half) / (1 + added)
    return max(0.0, lower_bound), min(1.0, upper_bound)
