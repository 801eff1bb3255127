"""Put a judge's scores on people's scale: calibration curves, and means that combine both.

`calibration` compares the judge's values with people's in bins. `calibrate` estimates means on people's scale from a
judge's scores of all items and ratings of some.

It is PPI++ for means (Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453). The judge need not be calibrated, nor use
people's scale: its mean error is measured on the rated items and subtracted. Its correlation with people decides only
how much narrower the interval is. The rated items must be a random sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

import numpy as np

from judge.core.records import Column, Estimate
from judge.data import ledger
from judge.stats.agreement import values_by_label
from judge.stats.bootstrap import (
    DEFAULT,
    Bools,
    Bootstrap,
    Floats,
    Resampled,
    t_quantile,
    t_test,
    unskewed_quantile,
)
from judge.stats.coefficients import paired
from judge.stats.correlation import criterion
from judge.stats.paired_differences import MOST, best_first, holm, pairs, row_of
from judge.stats.power import ALPHA
from judge.table import Table, matrix

_BINS = 10
_MAX_LABELS = 11  # scales with more labels get ten equal bins


@dataclass(frozen=True, slots=True)
class Bin:
    """Texts with judge values from `low` to below `high` (the last bin includes its end).

    `value` is their mean, `people` the mean of people's ratings of them with its interval; its `n` counts the texts.
    """

    low: float
    high: float
    value: float
    people: Estimate


@dataclass(frozen=True, slots=True)
class Calibration:
    """The judge's values against people's, on a scale from `low` to `high`.

    `error` is the expected calibration error (Naeini et al. 2015) on the scale mapped to 0–1: the distance between the
    two means of each bin, weighted by its texts. `bias` is the judge's mean minus people's, in units of the scale.
    Empty bins are left out.
    """

    low: float
    high: float
    bins: tuple[Bin, ...]
    error: Estimate
    bias: Estimate


def levels(column: Column) -> tuple[float, ...]:
    """Return the values of a column's labels, ascending; empty if unknown."""
    return tuple(sorted(values_by_label(column).values()))


def edges(column: Column) -> tuple[float, ...]:
    """Return the bin edges of a column: half way between labels, or ten equal parts for more than eleven."""
    if column.low is None or column.high is None or column.low >= column.high:
        return ()
    points = levels(column)
    if 2 <= len(points) <= _MAX_LABELS:
        return column.low, *((lower + upper) / 2 for lower, upper in pairwise(points)), column.high
    return tuple(np.linspace(column.low, column.high, _BINS + 1).tolist())


def calibration(
    values: Floats, ratings: Floats, edges: Sequence[float], bootstrap: Bootstrap = DEFAULT
) -> Calibration | None:
    """Compare a judge's values with people's mean ratings on the same scale (items × systems, NaN for missing values).

    The first and the last of `edges` are the ends of the scale. Intervals resample items with all their texts. The
    error is biased upwards for few texts, because the means of small bins differ by chance. Return None if no text has
    both values.
    """
    values, ratings = paired(values, ratings)
    item, _ = known = np.nonzero(~np.isnan(values))
    if not len(item):
        return None
    place = np.searchsorted(edges[1:-1], values[known], "right")
    sums = np.zeros((3, len(values), len(edges) - 1))
    for by_item, side in zip(
        sums, (np.ones(len(item)), values[known], ratings[known]), strict=True
    ):
        np.add.at(by_item, (item, place), side)
    span = edges[-1] - edges[0]

    def statistic(counts: Floats) -> Floats:
        """Return the error, the bias, and people's mean in every bin, for each resample."""
        number, judge, people = counts @ sums
        total = number.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.abs(judge - people).sum(axis=1) / total / span
            return np.column_stack([error, (judge - people).sum(axis=1) / total, people / number])

    observed, drawn = bootstrap.observed_and_resampled(statistic, len(values))
    n, judge_sums, _ = sums.sum(axis=1)
    items = (sums[0] > 0).sum(axis=0)

    def estimate(at: int, name: str, method: str, n_items: int, n_texts: int) -> Estimate | None:
        return bootstrap.estimate(
            name, Resampled(float(observed[at]), drawn[:, at], n_items), n_texts, method
        )

    totals = len(np.unique(item)), len(item)
    error = estimate(0, "error", "expected calibration error, scale mapped to 0–1", *totals)
    bias = estimate(1, "bias", "the judge's mean minus people's", *totals)
    people = [
        estimate(2 + k, "people", "mean of people's ratings", int(items[k]), int(n[k]))
        for k in range(len(n))
    ]
    bins = [
        Bin(low, high, float(mean / number), people_mean)
        for (low, high), mean, number, people_mean in zip(
            pairwise(edges), judge_sums, n, people, strict=True
        )
        if people_mean is not None
    ]
    return Calibration(edges[0], edges[-1], tuple(bins), error, bias) if error and bias else None


MIN_RATED_ITEMS = 10
"""Fewer rated items give no estimate: λ comes from them, and the intervals would be too narrow."""
_TOLERANCE = 1e-9  # relative rounding error of a value
_UNLIKELY = 0.001


@dataclass(frozen=True, slots=True)
class Powered:
    """An estimate from ratings and a judge's scores: the mean of `system`, or of `system` minus `other`.

    `estimate` is on people's scale, its `n` the rated items; `judged` counts those with only the judge's score.
    `people` is the estimate from the ratings alone. `weight` is λ, from 0 (the judge does not count) to 1. `adjusted`
    is a difference's p after Holm's correction within its column.
    """

    estimate: Estimate
    people: Estimate
    weight: float
    judged: int
    system: str = ""
    other: str = ""
    adjusted: float | None = None

    @property
    def effective_ratings(self) -> int | None:
        """Return how many ratings without a judge would give an equally narrow interval; None without an interval."""
        ends = self.estimate, self.people
        widths = [e.high - e.low for e in ends if e.low is not None and e.high is not None]
        return (
            round(self.estimate.n * (widths[1] / widths[0]) ** 2)
            if len(widths) == 2 and widths[0] > 0
            else None
        )

    @property
    def apart(self) -> bool:
        """Return whether a difference is significant."""
        return self.adjusted is not None and self.adjusted < ALPHA


@dataclass(frozen=True, slots=True)
class Calibrated:
    """One judge's column on people's scale: `means` by system, best first, and `differences` between systems.

    Their order is that of `Comparison`. `note` explains what could not be estimated.
    """

    column: str
    means: tuple[Powered, ...] = ()
    differences: tuple[Powered, ...] = ()
    note: str = ""


def calibrate(table: Table, against: str = "") -> tuple[Calibrated, ...]:
    """Return the systems' means and differences, all or those from the system `against`, on people's scale.

    Return them for every criterion with ratings. A panel is represented by its mean. Each system has one text per item;
    differences are taken within items: those in which both texts are rated, and those in which both are only judged. A
    text whose rating was used to make the prompt counts neither as rated nor as judged, because its score may repeat
    the rating.
    """
    rated = {name for sample in table.samples for name in sample.human}
    columns = [
        c for c in table.columns if c.kind == "criterion" and not c.judge and criterion(c) in rated
    ]
    return tuple(_calibrated(table, column, against) for column in columns)


def powered(
    ratings: Floats,
    scores: Floats,
    others: Floats,
    *,
    weight: float | None = None,
    name: str = "mean",
) -> Powered:
    """Return the mean rating of all items, from two or more rated items (`ratings`, `scores`) and judged `others`.

    θ = mean Y + λ (mean f of the others − mean f of the rated), with λ = cov(Y, f) / ((1 + n/N) var f), the variance
    that of all items (sections 2 and 6 of the paper), limited to 0–1, or with the given λ. f is the judge's score
    scaled to the ratings' standard deviation, so that its scale does not matter. The variance is that of Y − λf over n,
    plus λ² var f over N.

    Unlike the paper, intervals use Student's t with Welch-Satterthwaite degrees of freedom, n − 2 as divisor if λ is
    estimated, and a skewness correction for means (Hall 1992). Otherwise they are too narrow for few ratings or many at
    one end of the scale. Return None if all ratings are equal. A difference has the p of being 0.
    """
    n, n_others = len(ratings), len(others)
    people = _estimate_of_parts(
        name, float(ratings.mean()), [_part(ratings, n - 1)], n, "ratings alone"
    )
    score_sd = float(scores.std(ddof=1))
    scale = (
        float(ratings.std(ddof=1)) / score_sd
        if score_sd > _TOLERANCE * float(np.abs(scores).max())
        else 0.0
    )
    share, all_scores = weight or 0.0, np.concatenate([scores, others]) * scale
    if weight is None and n_others and all_scores.any():
        covariance = float(
            ((ratings - ratings.mean()) * (scores - scores.mean()) * scale).sum() / (n - 1)
        )
        share = min(
            1.0, max(0.0, covariance / ((1 + n / n_others) * float(all_scores.var(ddof=1))))
        )
    if not (n_others and share and scale):
        return Powered(people, people, 0.0, n_others)
    slope = share * scale
    parts = [_part(ratings - slope * scores, max(1, n - 2 if weight is None else n - 1))]
    parts += [_part(slope * others, n_others - 1)] if n_others > 1 else []
    value = float(ratings.mean() + slope * (others.mean() - scores.mean()))
    method = f"PPI++, judge's weight {share:.2f}, {n_others:,} more items judged"
    return Powered(_estimate_of_parts(name, value, parts, n, method), people, share, n_others)


class _Part(NamedTuple):
    """The contribution of a mean to the variance and third cumulant of a sum, and its degrees of freedom."""

    variance: float
    third: float
    free: int


def _part(values: Floats, free: int) -> _Part:
    n, deviations = len(values), values - values.mean()
    third = float((deviations**3).sum()) * n / ((n - 1) * (n - 2)) / n**2 if n > 2 else 0.0
    return _Part(float((deviations**2).sum()) / free / n, third, free)


def _estimate_of_parts(
    name: str, value: float, parts: Sequence[_Part], n: int, method: str
) -> Estimate:
    """Return an estimate whose error is the sum of independent parts."""
    variance = sum(part.variance for part in parts)
    if not variance > (_TOLERANCE * value) ** 2:
        return Estimate(name, value, None, None, n, f"{method}; all ratings are equal: no interval")
    free = variance**2 / sum(part.variance**2 / part.free for part in parts)
    error, t = sqrt(variance), t_quantile(ALPHA / 2, free)
    percent = f"{100 * (1 - ALPHA):g}%"
    if name == "difference":
        p = t_test(value / error, free)
        return Estimate(
            name,
            value,
            value - t * error,
            value + t * error,
            n,
            f"{percent} t interval, {method}",
            p,
        )
    skewness = sum(part.third for part in parts) / error**3
    low, high = (value - error * unskewed_quantile(end, skewness) for end in (t, -t))
    return Estimate(
        name, value, low, high, n, f"{percent} t interval corrected for skewness, {method}"
    )


def _calibrated(table: Table, column: Column, against: str) -> Calibrated:
    name = criterion(column)
    ratings = matrix(table.samples, {s.key: s.human.get(name) for s in table.samples}).T
    withheld = matrix(table.samples, {s.key: float(name in s.withheld) for s in table.samples}).T
    scores = np.where(withheld > 0, np.nan, table.matrix(column.name))

    def estimate(first: int, second: int | None = None) -> Powered | None:
        """Return the mean of one system or the difference of two, or None if too few items are rated."""
        people, judge = (
            side[first] if second is None else side[first] - side[second]
            for side in (ratings, scores)
        )
        judged = ~np.isnan(judge)
        rated = judged & ~np.isnan(people)
        if rated.sum() < MIN_RATED_ITEMS:
            return None
        kind, other = ("mean", "") if second is None else ("difference", table.systems[second])
        found = powered(people[rated], judge[rated], judge[judged & ~rated], name=kind)
        return replace(found, system=table.systems[first], other=other)

    means = {place: mean for place in range(len(table.systems)) if (mean := estimate(place))}
    values = np.full((len(table.systems), 1), np.nan)
    values[list(means), 0] = [mean.estimate.value for mean in means.values()]
    order = best_first(values, column.better)
    rival = row_of(table.systems, against)
    tested = pairs(order, rival)
    compared = [difference for pair in tested if (difference := estimate(*pair))]
    most = len(tested) if against else len(order) * (len(order) - 1) // 2
    adjusted = holm([difference.estimate.p for difference in compared], most)
    differences = tuple(
        replace(difference, adjusted=p) for difference, p in zip(compared, adjusted, strict=True)
    )
    judged = ~np.isnan(scores)
    rated = judged & ~np.isnan(ratings)
    few = [name for place, name in enumerate(table.systems) if place not in order]
    lost = len(tested) - len(differences) if order else 0
    excluded = ledger.excluded(table.samples, name)
    remarks = {
        f"fewer than {MIN_RATED_ITEMS} rated items with a score: {', '.join(few)}": bool(few),
        f"pairs of systems that are rated on fewer than {MIN_RATED_ITEMS} items together: {lost:,}": lost
        > 0,
        f"more than {MOST} systems: compared with the best one only": len(order) > MOST
        and not against,
        f"{excluded}; the others are a random sample only if these were drawn at random": bool(
            excluded
        ),
        "every judged item is rated, so the judge adds nothing": bool(order)
        and bool((rated == judged)[order].all()),
        "the judge scores rated and other items differently: were the rated ones drawn at random?": _rated_items_differ(
            scores, rated
        ),
    }
    return Calibrated(
        column.name,
        tuple(means[place] for place in order),
        differences,
        "; ".join(text for text, holds in remarks.items() if holds),
    )


def _rated_items_differ(scores: Floats, rated: Bools) -> bool:
    """Return whether the judge's means of rated and other items differ significantly (Welch's test, p < .001)."""
    known = ~np.isnan(scores)
    number, of_rated = known.sum(axis=0), np.asarray(rated.any(axis=0))
    means = np.where(known, scores, 0.0).sum(axis=0) / np.maximum(number, 1)
    sides = [means[(number > 0) & side] for side in (of_rated, ~of_rated)]
    if any(len(side) < MIN_RATED_ITEMS for side in sides):
        return False
    parts = [_part(side, len(side) - 1) for side in sides]
    p = _estimate_of_parts(
        "difference", float(sides[0].mean() - sides[1].mean()), parts, len(means), ""
    ).p
    return p is not None and p < _UNLIKELY
