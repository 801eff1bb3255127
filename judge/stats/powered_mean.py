"""Estimate a mean from ratings of some items and a judge's scores of all of them.

It is PPI++ for means (Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453). The judge need not be
calibrated, nor use people's scale: its mean error is measured on the rated items and subtracted.
Its correlation with people decides only how much narrower the interval is. The rated items must be
a random sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal, NamedTuple

import numpy as np

from judge.core.records import Estimate
from judge.stats.bootstrap import (
    Floats,
    skewed_ends,
    sum_of_squares,
    t_quantile,
    t_test,
    third_cumulant,
    without_interval,
)
from judge.stats.power import ALPHA

Quantity = Literal["mean", "difference"]
"""What is estimated. Only means are corrected for skewness, and only differences have a p."""
_TOLERANCE = 1e-9  # relative rounding error of a value


@dataclass(frozen=True, slots=True)
class Powered:
    """An estimate from ratings and a judge's scores.

    It is the mean of `system`, or of `system` minus `other`. `estimate` is on people's scale, its
    `n` the rated items; `judged` counts those with only the judge's score. `people` is the estimate
    from the ratings alone. `weight` is λ, from 0 (the judge does not count) to 1. `adjusted` is a
    difference's p after Holm's correction within its column.
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
        """Return how many ratings without a judge would give an equally narrow interval.

        Return None without an interval.
        """
        width = _width(self.estimate)
        width_without_judge = _width(self.people)
        if width is None or width_without_judge is None or width <= 0:
            return None
        return round(self.estimate.n * (width_without_judge / width) ** 2)

    @property
    def apart(self) -> bool:
        """Return whether a difference is significant."""
        return self.adjusted is not None and self.adjusted < ALPHA


def _width(estimate: Estimate) -> float | None:
    """Return the width of an estimate's interval, None without one."""
    if estimate.low is None or estimate.high is None:
        return None
    return estimate.high - estimate.low


MeanEstimator = Callable[[Floats, Floats, Floats], Powered]
"""Estimates a mean from ratings, their scores, and the scores of texts that are only judged."""


def powered(
    ratings: Floats,
    scores: Floats,
    others: Floats,
    *,
    weight: float | None = None,
    name: Quantity = "mean",
) -> Powered:
    """Return the mean rating of all items, from rated and judged ones.

    Two or more items are rated (`ratings`, `scores`); `others` are the scores of the items that are
    only judged. θ = mean Y + λ (mean f of the others − mean f of the rated), with
    λ = cov(Y, f) / ((1 + n/N) var f), the variance that of all items (sections 2 and 6 of the
    paper), limited to 0–1, or with the given λ. f is the judge's score scaled to the ratings'
    standard deviation, so that its scale does not matter. The variance is that of Y − λf over n,
    plus λ² var f over N.

    Unlike the paper, intervals use Student's t with Welch-Satterthwaite degrees of freedom, n − 2
    as divisor if λ is estimated, and a skewness correction for means (Hall 1992). Otherwise they
    are too narrow for few ratings or many at one end of the scale (docs/decisions/0018). There is
    no interval if all ratings are equal. A difference has the p of being 0.
    """
    n_rated = len(ratings)
    n_others = len(others)
    mean_rating = float(ratings.mean())
    ratings_alone = [_part(ratings, n_rated - 1)]
    people = _estimate_of_parts(
        name, mean_rating, ratings_alone, n_rated, "ratings alone"
    )
    scale = _scale_to_ratings(ratings, scores)
    judge_weight = weight
    if judge_weight is None:
        judge_weight = _best_weight(ratings, scores, others, scale)
    # Without other texts, with λ = 0 or with equal scores the judge's term is 0.
    if not (n_others and judge_weight and scale):
        return Powered(people, people, 0.0, n_others)
    slope = judge_weight * scale
    # An estimated λ costs a degree of freedom, as a slope does in a regression.
    freedom = n_rated - 2 if weight is None else n_rated - 1
    residuals = ratings - slope * scores
    error_parts = [_part(residuals, max(1, freedom))]
    if n_others > 1:
        error_parts.append(_part(slope * others, n_others - 1))
    correction = slope * (others.mean() - scores.mean())
    value = mean_rating + float(correction)
    method = f"PPI++, judge's weight {judge_weight:.2f}, {n_others:,} more items judged"
    estimate = _estimate_of_parts(name, value, error_parts, n_rated, method)
    return Powered(estimate, people, judge_weight, n_others)


def _scale_to_ratings(ratings: Floats, scores: Floats) -> float:
    """Return the factor that gives scores the ratings' standard deviation, or 0 if equal."""
    score_deviation = float(scores.std(ddof=1))
    if score_deviation <= _TOLERANCE * float(np.abs(scores).max()):
        return 0.0
    return float(ratings.std(ddof=1)) / score_deviation


def _best_weight(
    ratings: Floats, scores: Floats, others: Floats, scale: float
) -> float:
    """Return the λ with the smallest variance, limited to 0–1 (section 6 of the paper)."""
    all_scores = np.concatenate([scores, others]) * scale
    if not len(others) or not all_scores.any():
        return 0.0
    n_rated = len(ratings)
    rating_deviations = ratings - ratings.mean()
    products = rating_deviations * (scores - scores.mean()) * scale
    covariance = float(products.sum() / (n_rated - 1))
    variance = float(all_scores.var(ddof=1))
    weight = covariance / ((1 + n_rated / len(others)) * variance)
    return min(1.0, max(0.0, weight))


class _Part(NamedTuple):
    """The error of one mean in a sum of independent means.

    `variance` and `third_cumulant` are the mean's, `freedom` are its degrees of freedom.
    """

    variance: float
    third_cumulant: float
    freedom: int


def _part(values: Floats, freedom: int) -> _Part:
    """Return the error of the mean of these values."""
    n = len(values)
    deviations = values - values.mean()
    variance = sum_of_squares(deviations) / freedom / n
    third_of_mean = third_cumulant(deviations) / n**2
    return _Part(variance, third_of_mean, freedom)


def _estimate_of_parts(
    name: Quantity,
    value: float,
    error_parts: Sequence[_Part],
    n: int,
    method: str,
) -> Estimate:
    """Return an estimate whose error is the sum of independent parts."""
    variance = sum(error_part.variance for error_part in error_parts)
    if not variance > (_TOLERANCE * value) ** 2:
        note = f"{method}; all ratings are equal: no interval"
        return without_interval(name=name, value=value, n=n, reason=note)
    # Welch-Satterthwaite degrees of freedom of a sum of variances.
    scatter = sum(
        error_part.variance**2 / error_part.freedom for error_part in error_parts
    )
    freedom = variance**2 / scatter
    error = sqrt(variance)
    t = t_quantile(ALPHA / 2, freedom)
    percent = f"{100 * (1 - ALPHA):g}%"
    if name == "difference":
        # Only means are corrected for skewness (docs/decisions/0018).
        lower_bound = value - t * error
        upper_bound = value + t * error
        p_value = t_test(value / error, freedom)
        note = f"{percent} t interval, {method}"
        return Estimate(
            name=name,
            value=value,
            low=lower_bound,
            high=upper_bound,
            n=n,
            method=note,
            p=p_value,
        )
    third_of_sum = sum(error_part.third_cumulant for error_part in error_parts)
    lower_bound, upper_bound = skewed_ends(value, error, third_of_sum, t)
    note = f"{percent} t interval corrected for skewness, {method}"
    return Estimate(
        name=name,
        value=value,
        low=lower_bound,
        high=upper_bound,
        n=n,
        method=note,
    )


def welch_test(first: Floats, second: Floats) -> float | None:
    """Return the two-sided p of equal means (Welch 1947), None if no value varies."""
    error_parts = [_part(values, len(values) - 1) for values in (first, second)]
    difference = float(first.mean() - second.mean())
    n = len(first) + len(second)
    estimate = _estimate_of_parts("difference", difference, error_parts, n, "")
    return estimate.p
