"""Put a judge's scores on people's scale.

`calibrate` estimates means on people's scale from a judge's scores of all items and ratings of
some, with the estimator of `judge.stats.powered_mean`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import comb

import numpy as np

from judge.core.records import Column
from judge.data import ledger
from judge.stats.bootstrap import Bools, Floats
from judge.stats.correlation import criterion
from judge.stats.paired_differences import (
    MOST,
    best_first,
    holm,
    pairs,
    partly_scored,
    row_of,
)
from judge.stats.powered_mean import MeanEstimator, Powered, powered, welch_test
from judge.stats.ranks import Rank, leaders, rank_by_means
from judge.stats.rating_scales import are_verdicts, votes_on
from judge.table import Table, Text, matrix

MIN_RATED_ITEMS = 10
"""Fewer rated items give no estimate: λ comes from them, and the intervals would be too narrow."""
_VERDICTS = "people gave verdicts, 0 or 1, and no points of its scale"
# p of a warning: .05 would warn in every twentieth run with a random sample.
_UNLIKELY = 0.001


@dataclass(frozen=True, slots=True)
class Calibrated:
    """One judge's column on people's scale.

    `means` are by system, best first, and `differences` between systems, in the order of
    `Comparison.differences`. The fields `ranks`, `best`, `against` and `partly_scored` are those of
    `Comparison`. `note` explains what could not be estimated.
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
    """Return the systems' means and differences on people's scale for each criterion with ratings.

    With `against`, the differences are those from this system. A panel is represented by its
    combined values. Several texts of a system in an item count as one, their mean. Differences are
    taken within items: those in which both texts are rated, and those in which both are only
    judged. A text whose rating was used to make the prompt counts neither as rated nor as judged,
    because its score may repeat the rating.
    """
    calibrated: list[Calibrated] = []
    for column in table.columns:
        if column.kind != "criterion" or column.judge:
            continue
        rating_name = criterion(column)
        ratings = table.ratings(rating_name)
        if not ratings:
            continue
        # A mean of verdicts, such as .8, is no value of a scale from 1 to 5.
        if _are_other_verdicts(table, column):
            calibrated.append(Calibrated(column.name, note=_VERDICTS))
            continue
        on_ratings = calibrate_column(table, column, rating_name, ratings, against)
        calibrated.append(on_ratings)
    return tuple(calibrated)


def _are_other_verdicts(table: Table, column: Column) -> bool:
    """Return whether people gave verdicts on a criterion whose scale is not that of verdicts."""
    if column.low is None or column.high is None:
        return False
    if (column.low, column.high) == (0, 1):
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
    weights_in_order = [weights[column.name] for column in columns]
    for text in rated_texts:
        shares = [by_text[text] for by_text in ratings]
        weighted = zip(weights_in_order, shares, strict=True)
        totals[text] = sum(weight * share for weight, share in weighted)
    names = {criterion(column) for column in columns}
    # Its rating went into the prompt of at least one of the criteria.
    withheld = {
        sample.key for sample in table.samples if not names.isdisjoint(sample.withheld)
    }
    (overall_column,) = overall.columns
    return _estimated(overall, overall_column, totals, withheld, against)


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
        estimator = partial(powered, name="difference")
        estimate = _powered_if_enough(ratings, scores, estimator)
        if estimate is None:
            return None
        first_system = self.systems[first_index]
        second_system = self.systems[second_index]
        return replace(estimate, system=first_system, other=second_system)


def _powered_if_enough(
    ratings: Floats, scores: Floats, estimator: MeanEstimator
) -> Powered | None:
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
    calibrated = _estimated(
        table, column, ratings, withheld, against, estimate_mean=estimate_mean
    )
    excluded = ledger.excluded(table.samples, name)
    if not excluded:
        return calibrated
    remark = (
        f"{excluded}; the others are a random sample only if these were drawn at random"
    )
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

    # A mean over a few easy items must not lead (`Comparison.partly_scored`).
    partly = partly_scored(data.scores)
    tested = pairs(order, row_of(table.systems, against), partly=partly)
    # Beyond `MOST` systems only some pairs are tested, but the best was selected from all of them.
    n_tests = len(tested) if against else comb(len(order), 2)
    differences = _tested_differences(data, tested, n_tests)
    significant = [difference for difference in differences if difference.apart]
    decided = [_loser_and_winner(difference, column) for difference in significant]

    names = [table.systems[row] for row in order]
    ranks: tuple[Rank, ...] = ()
    if names:
        ranks = tuple(rank_by_means(names, values[order, 0], decided))
    mostly_scored = [table.systems[row] for row in order if row not in partly]
    best: tuple[str, ...] = ()
    if differences and not against:
        best = leaders(names, mostly_scored, decided)
    n_missing = len(tested) - len(differences)
    return Calibrated(
        column.name,
        means=tuple(means[row] for row in order),
        differences=differences,
        note=_note(data, order, n_missing, against),
        ranks=ranks,
        best=best,
        against=against,
        partly_scored=tuple(table.systems[row] for row in order if row in partly),
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
    estimates = [data.difference(*pair) for pair in tested]
    compared = [difference for difference in estimates if difference is not None]
    p_values = [difference.estimate.p for difference in compared]
    adjusted = holm(p_values, n_tests)
    differences: list[Powered] = []
    for difference, p_value in zip(compared, adjusted, strict=True):
        differences.append(replace(difference, adjusted=p_value))
    return tuple(differences)


def _loser_and_winner(difference: Powered, column: Column) -> tuple[str, str]:
    """Return both systems of a difference, the worse one first."""
    sign = -1 if column.better == "lower" else 1
    if sign * difference.estimate.value > 0:
        return difference.other, difference.system
    return difference.system, difference.other


def _note(
    data: _RatedScores, order: Sequence[int], missing_pairs: int, against: str
) -> str:
    """Describe what was not estimated or not compared, and what is wrong with the sample."""
    remarks = [_remark_on_missing(data, order, missing_pairs)]
    if len(order) > MOST and not against:
        remarks.append(f"more than {MOST} systems: compared with the best one only")
    remarks.append(_remark_on_sample(data, order))
    return "; ".join(remark for remark in remarks if remark)


def _remark_on_missing(
    data: _RatedScores, order: Sequence[int], missing_pairs: int
) -> str:
    """Describe what has no estimate because too few items are rated; `order` has the others."""
    remarks: list[str] = []
    without_mean = [
        system for row, system in enumerate(data.systems) if row not in order
    ]
    if without_mean:
        names = ", ".join(without_mean)
        remarks.append(
            f"fewer than {MIN_RATED_ITEMS} rated items with a score: {names}"
        )
    if order and missing_pairs > 0:
        remarks.append(
            f"pairs of systems that are rated on fewer than {MIN_RATED_ITEMS} items together: "
            f"{missing_pairs:,}"
        )
    return "; ".join(remarks)


def _remark_on_sample(data: _RatedScores, order: Sequence[int]) -> str:
    """Describe what is wrong with the sample of rated items, or return nothing."""
    remarks: list[str] = []
    all_are_rated = (data.rated == data.judged)[list(order)].all()
    if order and all_are_rated:
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
    p_value = welch_test(rated_means, other_means)
    return p_value is not None and p_value < _UNLIKELY
