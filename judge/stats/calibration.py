"""Put a judge's scores on people's scale.

`calibrate` estimates means on people's scale from a judge's scores of all items and ratings of
some.

It is PPI++ for means (Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453). The judge need not be
calibrated, nor use people's scale: its mean error is measured on the rated items and subtracted.
Its correlation with people decides only how much narrower the interval is. The rated items must be
a random sample.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import comb, sqrt
from typing import Literal, NamedTuple

import numpy as np

from judge.core.records import Column, Estimate
from judge.data import ledger
from judge.stats.bootstrap import (
    Bools,
    Floats,
    t_quantile,
    t_test,
    unskewed_quantile,
)
from judge.stats.correlation import criterion
from judge.stats.paired_differences import MOST, best_first, holm, pairs, row_of
from judge.stats.power import ALPHA
from judge.stats.ranks import Rank, leaders, rank_by_means
from judge.stats.rating_scales import are_verdicts, votes_on
from judge.table import Table, matrix

Text = tuple[str, str]
"""Item and system."""

Quantity = Literal["mean", "difference"]
"""What is estimated. Only means are corrected for skewness, and only differences have a p."""

MIN_RATED_ITEMS = 10
"""Fewer rated items give no estimate: λ comes from them, and the intervals would be too narrow."""
_VERDICTS = "people gave verdicts, 0 or 1, and no points of its scale"
_TOLERANCE = 1e-9  # relative rounding error of a value
_UNLIKELY = 0.001  # p of a warning: .05 would warn in every twentieth run with a random sample


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


@dataclass(frozen=True, slots=True)
class Calibrated:
    """One judge's column on people's scale.

    `means` are by system, best first, and `differences` between systems, in the order of
    `Comparison.differences`. The fields `ranks`, `best` and `against` are those of `Comparison`.
    `partly_scored` is empty, because every system in `means` has enough rated items. `note`
    explains what could not be estimated.
    """

    column: str
    means: tuple[Powered, ...] = ()
    differences: tuple[Powered, ...] = ()
    note: str = ""
    ranks: tuple[Rank, ...] = ()
    best: tuple[str, ...] = ()
    against: str = ""
    partly_scored: tuple[str, ...] = ()


def calibrate(table: Table, against: str = "") -> tuple[Calibrated, ...]:
    """Return the systems' means and differences on people's scale, for every criterion with ratings.

    With `against`, the differences are those from this system. A panel is represented by its
    combined values. Several texts of a system in an item count as one, their mean. Differences are
    taken within items: those in which both texts are rated, and those in which both are only
    judged. A text whose rating was used to make the prompt counts neither as rated nor as judged,
    because its score may repeat the rating.
    """
    rated = {rating_name for sample in table.samples for rating_name in sample.human}
    calibrated: list[Calibrated] = []
    for column in table.columns:
        rating_name = criterion(column)
        represents_criterion = column.kind == "criterion" and not column.judge
        if not represents_criterion or rating_name not in rated:
            continue
        # A mean of verdicts, such as .8, is no value of a scale from 1 to 5.
        if _are_other_verdicts(table, column):
            calibrated.append(Calibrated(column.name, note=_VERDICTS))
            continue
        rated_texts = [sample for sample in table.samples if rating_name in sample.human]
        ratings = {sample.key: sample.human[rating_name] for sample in rated_texts}
        calibrated.append(calibrate_column(table, column, rating_name, ratings, against))
    return tuple(calibrated)


def _are_other_verdicts(table: Table, column: Column) -> bool:
    """Return whether people gave verdicts on a criterion whose scale is not that of verdicts."""
    if column.low is None or column.high is None or (column.low, column.high) == (0, 1):
        return False
    rating_name = criterion(column)
    votes = {vote for sample in table.samples for vote in votes_on(sample, rating_name)}
    return are_verdicts(votes, column.low, column.high)


def calibrate_overall(
    table: Table,
    overall: Table,
    weights: Mapping[str, float],
    against: str = "",
) -> Calibrated | None:
    """Return the overall score on people's scale: `overall` has its values, `table` the criteria.

    A text's overall rating is the weighted mean of its ratings, each as a share of its criterion's
    scale (`weights` are by column). Return None if a criterion has no ratings or ratings outside
    its scale.
    """
    columns = [column for column in table.columns if column.name in weights]
    ratings: list[Mapping[Text, float]] = []  # in the order of `columns`
    for column in columns:
        by_text = _shares_of_ratings(table, column)
        if not by_text:
            return None
        ratings.append(by_text)
    rated_texts = set(ratings[0]).intersection(*ratings[1:])
    totals: dict[Text, float] = {}
    for text in rated_texts:
        by_column = zip(columns, ratings, strict=True)
        totals[text] = sum(weights[column.name] * by_text[text] for column, by_text in by_column)
    (column,) = overall.columns
    names = {criterion(column) for column in columns}
    # Its rating went into the prompt of at least one of the criteria.
    withheld = {sample.key for sample in table.samples if not names.isdisjoint(sample.withheld)}
    return _estimated(overall, column, totals, withheld, against)


def _shares_of_ratings(table: Table, column: Column) -> dict[Text, float]:
    """Return the ratings of a criterion by text, 0 at the worse end of the column's scale to 1.

    Nothing if the column has no scale or if a rating is outside of it.
    """
    if column.low is None or column.high is None:
        return {}
    rating_name = criterion(column)
    shares: dict[Text, float] = {}
    for sample in table.samples:
        rating = sample.human.get(rating_name)
        if rating is None:
            continue
        share = column.share(rating)
        if share is None or not column.low <= rating <= column.high:
            return {}
        shares[sample.key] = share
    return shares


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
    people = _estimate_of_parts(name, mean_rating, ratings_alone, n_rated, "ratings alone")
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


MeanEstimator = Callable[[Floats, Floats, Floats], Powered]
"""Estimates a mean from ratings, their scores, and the scores of texts that are only judged."""


def _scale_to_ratings(ratings: Floats, scores: Floats) -> float:
    """Return the factor that gives scores the ratings' standard deviation, or 0 if equal."""
    score_deviation = float(scores.std(ddof=1))
    if score_deviation <= _TOLERANCE * float(np.abs(scores).max()):
        return 0.0
    return float(ratings.std(ddof=1)) / score_deviation


def _best_weight(ratings: Floats, scores: Floats, others: Floats, scale: float) -> float:
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
    third_cumulant = 0.0
    if n > 2:
        cubes = float((deviations**3).sum())
        # The unbiased estimate (Fisher's k-statistic); a mean's third cumulant is 1/n² of it.
        of_values = cubes * n / ((n - 1) * (n - 2))
        third_cumulant = of_values / n**2
    variance = float((deviations**2).sum()) / freedom / n
    return _Part(variance, third_cumulant, freedom)


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
        return Estimate(name, value, None, None, n, note)
    # Welch-Satterthwaite degrees of freedom of a sum of variances.
    scatter = sum(error_part.variance**2 / error_part.freedom for error_part in error_parts)
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
        return Estimate(name, value, lower_bound, upper_bound, n, note, p_value)
    third_cumulant = sum(error_part.third_cumulant for error_part in error_parts)
    skewness = third_cumulant / error**3
    # A skewed mean errs further towards its long tail, so the two ends need their own quantiles.
    lower_bound = value - error * unskewed_quantile(t, skewness)
    upper_bound = value - error * unskewed_quantile(-t, skewness)
    note = f"{percent} t interval corrected for skewness, {method}"
    return Estimate(name, value, lower_bound, upper_bound, n, note)


def _welch_test(first: Floats, second: Floats) -> float | None:
    """Return the two-sided p of equal means (Welch 1947), None if no value varies."""
    error_parts = [_part(first, len(first) - 1), _part(second, len(second) - 1)]
    difference = float(first.mean() - second.mean())
    n = len(first) + len(second)
    return _estimate_of_parts("difference", difference, error_parts, n, "").p


@dataclass(frozen=True, slots=True)
class _RatedScores:
    """People's ratings and the scores of one column, systems × items, NaN for missing values.

    A score is missing if the prompt was made with the text's rating.
    """

    systems: Sequence[str]
    ratings: Floats
    scores: Floats
    estimate_mean: MeanEstimator

    @property
    def judged(self) -> Bools:
        is_judged: Bools = ~np.isnan(self.scores)
        return is_judged

    @property
    def rated(self) -> Bools:
        """Return which texts have a score and a rating."""
        both: Bools = self.judged & ~np.isnan(self.ratings)
        return both

    def mean(self, system: int) -> Powered | None:
        """Return the mean of one system, or None if too few items are rated."""
        ratings = self.ratings[system]
        estimate = _powered_if_enough(ratings, self.scores[system], self.estimate_mean)
        if estimate is None:
            return None
        return replace(estimate, system=self.systems[system])

    def difference(self, first_index: int, second_index: int) -> Powered | None:
        """Return the first system's mean minus the second's, or None if too few items are rated."""
        ratings = self.ratings[first_index] - self.ratings[second_index]
        scores = self.scores[first_index] - self.scores[second_index]
        estimate = _powered_if_enough(ratings, scores, partial(powered, name="difference"))
        if estimate is None:
            return None
        systems = self.systems
        return replace(estimate, system=systems[first_index], other=systems[second_index])


def _powered_if_enough(ratings: Floats, scores: Floats, estimator: MeanEstimator) -> Powered | None:
    """Return the estimate from one rating and score per item, or None if too few are rated."""
    judged = ~np.isnan(scores)
    rated = judged & ~np.isnan(ratings)
    if rated.sum() < MIN_RATED_ITEMS:
        return None
    scores_of_others = scores[judged & ~rated]
    return estimator(ratings[rated], scores[rated], scores_of_others)


def calibrate_column(
    table: Table,
    column: Column,
    name: str,
    ratings: Mapping[Text, float],
    against: str = "",
    *,
    estimate_mean: MeanEstimator | None = None,
) -> Calibrated:
    """Estimate means and differences of one column from these ratings by text.

    `name` is the criterion's. The scores of texts whose rating of it made the prompt do not count.
    `estimate_mean` estimates a system's mean from its ratings, their scores and the scores of the
    texts that are only judged (default: `powered`).
    """
    withheld = {sample.key for sample in table.samples if name in sample.withheld}
    calibrated = _estimated(table, column, ratings, withheld, against, estimate_mean=estimate_mean)
    excluded = ledger.excluded(table.samples, name)
    if not excluded:
        return calibrated
    remark = f"{excluded}; the others are a random sample only if these were drawn at random"
    note = f"{calibrated.note}; {remark}" if calibrated.note else remark
    return replace(calibrated, note=note)


def _estimated(
    table: Table,
    column: Column,
    rating_by_text: Mapping[Text, float],
    withheld_texts: Collection[Text],
    against: str,
    *,
    estimate_mean: MeanEstimator | None = None,
) -> Calibrated:
    """Estimate means and differences of one column from these ratings of its texts.

    The scores of `withheld_texts` do not count.
    """
    estimator = estimate_mean or powered
    data = _rated_scores(table, column, rating_by_text, withheld_texts, estimator)
    means: dict[int, Powered] = {}
    # One column of values, as `best_first` orders the rows of a matrix.
    values = np.full((len(table.systems), 1), np.nan)
    for system in range(len(table.systems)):
        mean = data.mean(system)
        if mean is not None:
            means[system] = mean
            values[system, 0] = mean.estimate.value
    order = best_first(values, column.better)

    tested = pairs(order, row_of(table.systems, against))
    # Beyond `MOST` systems only some pairs are tested, but the best was selected from all of them.
    n_tests = len(tested) if against else comb(len(order), 2)
    differences = _tested_differences(data, tested, n_tests)
    decided = [
        _loser_and_winner(difference, column) for difference in differences if difference.apart
    ]

    names = [table.systems[row] for row in order]
    ordered_means = tuple(means[row] for row in order)
    ranks: tuple[Rank, ...] = ()
    if names:
        ranks = tuple(rank_by_means(names, values[order, 0], decided))
    best: tuple[str, ...] = ()
    if differences and not against:
        best = leaders(names, names, decided)
    n_missing = len(tested) - len(differences)
    return Calibrated(
        column.name,
        ordered_means,
        differences,
        _note(data, order, n_missing, against),
        ranks=ranks,
        best=best,
        against=against,
    )


def _rated_scores(
    table: Table,
    column: Column,
    rating_by_text: Mapping[Text, float],
    withheld_texts: Collection[Text],
    estimate_mean: MeanEstimator,
) -> _RatedScores:
    """Return the ratings and scores of a column, without the scores of `withheld_texts`."""
    keys = [sample.key for sample in table.samples]
    known_ratings = {key: rating_by_text.get(key) for key in keys}
    ratings = matrix(table.samples, known_ratings).T
    is_withheld = {key: float(key in withheld_texts) for key in keys}
    # `matrix` averages the generations of an item: one withheld generation withholds them all.
    withheld = matrix(table.samples, is_withheld).T
    scores = np.where(withheld > 0, np.nan, table.matrix(column.name))
    return _RatedScores(table.systems, ratings, scores, estimate_mean)


def _tested_differences(
    data: _RatedScores,
    tested: Sequence[tuple[int, int]],
    n_tests: int,
) -> tuple[Powered, ...]:
    """Return the differences of these pairs that have an estimate, with Holm's correction."""
    estimates = [data.difference(first_index, second_index) for first_index, second_index in tested]
    compared = [difference for difference in estimates if difference is not None]
    p_values = [difference.estimate.p for difference in compared]
    adjusted = holm(p_values, n_tests)
    differences: list[Powered] = []
    for difference, p_value in zip(compared, adjusted, strict=True):
        differences.append(replace(difference, adjusted=p_value))
    return tuple(differences)


def _loser_and_winner(difference: Powered, column: Column) -> tuple[str, str]:
    """Return both systems of a difference, the worse one first."""
    is_larger_worse = column.better == "lower"
    if (difference.estimate.value > 0) is is_larger_worse:
        return difference.system, difference.other
    return difference.other, difference.system


def _note(data: _RatedScores, order: Sequence[int], missing_pairs: int, against: str) -> str:
    """Describe what was not estimated or not compared, and what is wrong with the sample."""
    remarks = [_remark_on_missing(data, order, missing_pairs)]
    if len(order) > MOST and not against:
        remarks.append(f"more than {MOST} systems: compared with the best one only")
    remarks.append(_remark_on_sample(data, order))
    return "; ".join(remark for remark in remarks if remark)


def _remark_on_missing(data: _RatedScores, order: Sequence[int], missing_pairs: int) -> str:
    """Describe what has no estimate because too few items are rated; `order` has the others."""
    remarks: list[str] = []
    without_mean = [system for row, system in enumerate(data.systems) if row not in order]
    if without_mean:
        names = ", ".join(without_mean)
        remarks.append(f"fewer than {MIN_RATED_ITEMS} rated items with a score: {names}")
    if order and missing_pairs > 0:
        remarks.append(
            f"pairs of systems that are rated on fewer than {MIN_RATED_ITEMS} items together: "
            f"{missing_pairs:,}"
        )
    return "; ".join(remarks)


def _remark_on_sample(data: _RatedScores, order: Sequence[int]) -> str:
    """Describe what is wrong with the sample of rated items, or return nothing."""
    remarks: list[str] = []
    if order and (data.rated == data.judged)[list(order)].all():
        remarks.append("every judged item is rated, so the judge adds nothing")
    if _rated_items_differ(data):
        remarks.append(
            "the judge scores rated and other items differently: were the rated ones drawn at "
            "random?"
        )
    return "; ".join(remarks)


def _rated_items_differ(data: _RatedScores) -> bool:
    """Return whether the judge's means of rated and other items differ significantly."""
    is_judged = data.judged
    scored_systems = is_judged.sum(axis=0)
    is_scored = scored_systems > 0
    is_rated = np.asarray(data.rated.any(axis=0))
    sums = np.where(is_judged, data.scores, 0.0).sum(axis=0)
    means = sums / np.maximum(scored_systems, 1)
    # One mean per item, because the texts of an item are not independent.
    rated_means = means[is_scored & is_rated]
    other_means = means[is_scored & ~is_rated]
    if min(len(rated_means), len(other_means)) < MIN_RATED_ITEMS:
        return False
    p_value = _welch_test(rated_means, other_means)
    return p_value is not None and p_value < _UNLIKELY
