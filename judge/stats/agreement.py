"""Measure agreement between raters: the judges of a panel, people, or a judge and people.

`alpha` takes the columns of a panel. `agree` takes an array of votes (raters × items × systems, NaN
for a missing vote). `repeats` measures how much one judge varies from draw to draw. Intervals
resample items with all their texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, combinations
from math import fsum, sqrt
from typing import Literal, get_args

import numpy as np

from judge.core.records import IDENTICAL, Column, Estimate, Provenance, Score
from judge.stats.bootstrap import (
    DEFAULT,
    Bools,
    Bootstrap,
    Floats,
    Ints,
    Statistic,
    all_known,
    item_means,
    sums_by_item,
    without_nan,
)
from judge.stats.coefficients import average, rounded, share
from judge.table import Table

# A resample with less variance (of values scaled to a range of 1) varies by rounding only.
_ROUNDING = 1e-12


def alpha(
    table: Table, columns: Sequence[str], bootstrap: Bootstrap = DEFAULT
) -> Estimate | None:
    """Return Krippendorff's alpha between the judges of one criterion, given by their `columns`.

    Sources: Krippendorff (2011) and (2018, ch. 12). 1 is perfect agreement, 0 is chance; below 0
    judges disagree more than by chance. The unit is the text or, in a comparison, the two texts in
    one order. Identical texts, about which no judge was asked, are excluded. Failed values are
    missing; `n` counts the texts with at least two values. The distance is (v − w)² on the values
    of the scale, for labels too.

    Return None if alpha is undefined: fewer than two judges, fewer than two texts with two values,
    or no variation. The interval resamples items, also with added texts (`_estimate`). Resamples
    without variation are excluded, and fewer than 10 items have no interval.
    """
    values_by_judge = [_values_by_text(table, column) for column in columns]
    votes = _votes_of_judges(values_by_judge)
    agreement = agree(votes, ("alpha_interval",), bootstrap)
    estimate = agreement.estimates.get("alpha_interval")
    if estimate is None:
        return None
    raters = f"{len(columns)} raters"
    judges = f"{len(columns)} judges"
    method = estimate.method.replace(raters, judges)
    return replace(estimate, name="alpha", method=method)


# item, system and, in a comparison, the system of the other text
_JudgedText = tuple[str, str, str]


def _values_by_text(table: Table, column: str) -> dict[_JudgedText, float]:
    """Return a judge's values, except the values of identical texts."""
    values: dict[_JudgedText, float] = {}
    for score in table.column_scores(column):
        if score.provenance.method != IDENTICAL:
            values[score.item, score.system, score.opponent] = score.value
    return values


def _votes_of_judges(values_by_judge: Sequence[Mapping[_JudgedText, float]]) -> Floats:
    """Return the values as judges × items × variants; a variant is a system, or two systems."""
    number_of_values = Counter(chain.from_iterable(values_by_judge))
    shared_texts = [text for text, number in number_of_values.items() if number > 1]
    items = sorted({item for item, _, _ in shared_texts})
    variants = list(dict.fromkeys(text[1:] for text in shared_texts))
    shape = (len(values_by_judge), len(items), len(variants))
    votes = np.full(shape, np.nan)
    for judge, value_by_text in enumerate(values_by_judge):
        for row, item in enumerate(items):
            for position, variant in enumerate(variants):
                text = (item, *variant)
                votes[judge, row, position] = value_by_text.get(text, np.nan)
    return votes


Measure = Literal[
    "alpha_interval",
    "kappa_quadratic",
    "icc_2_1",
    "icc_2_k",
    "alpha_ordinal",
    "alpha_nominal",
    "kappa_linear",
]
MEASURES: tuple[Measure, ...] = get_args(Measure)
TITLES: Mapping[Measure, str] = {
    "alpha_interval": "alpha",
    "kappa_quadratic": "kappa",
    "icc_2_1": "ICC(2,1)",
    "icc_2_k": "ICC(2,k)",
    "alpha_ordinal": "alpha, ordinal",
    "alpha_nominal": "alpha, nominal",
    "kappa_linear": "kappa, linear",
}
_METHODS: Mapping[Measure, str] = {
    "alpha_interval": "Krippendorff's alpha, interval distance",
    "alpha_ordinal": "Krippendorff's alpha, ordinal distance",
    "alpha_nominal": "Krippendorff's alpha, nominal distance",
    "kappa_quadratic": "Cohen's kappa, quadratic weights",
    "kappa_linear": "Cohen's kappa, linear weights",
    "icc_2_1": "ICC(2,1), absolute agreement of one rater",
    "icc_2_k": "ICC(2,k), absolute agreement of the raters' mean",
}
# Kappa, ordinal and nominal alpha need a table of categories by categories, which is quadratic in
# the number of distinct values. The other measures need sums only (docs/decisions/0019).
_MAX_CATEGORIES = 100
_WITHOUT_CATEGORIES: tuple[Measure, ...] = ("alpha_interval", "icc_2_1", "icc_2_k")


@dataclass(frozen=True, slots=True)
class Agreement:
    """Estimates by measure, and the reason for each missing measure."""

    estimates: Mapping[Measure, Estimate] = field(default_factory=dict)
    lacking: Mapping[Measure, str] = field(default_factory=dict)


def agree(
    votes: Floats,
    measures: Sequence[Measure] = MEASURES,
    bootstrap: Bootstrap = DEFAULT,
) -> Agreement:
    """Measure how well raters agree. An estimate's `n` counts its texts.

    `alpha_…` (Krippendorff 2011) and `kappa_…` (Cohen 1968; for more than two raters the mean over
    pairs, Light 1971) use the texts that at least two raters rated. `icc_…` (Shrout and Fleiss
    1979, two-way random effects) uses the texts that all raters rated. Alpha ignores who rated;
    kappa and ICC assume that a position is always the same rater.
    """
    votes = rounded(votes)
    estimates: dict[Measure, Estimate] = {}
    lacking: dict[Measure, str] = {}
    for measure in measures:
        enough_ratings = _texts_with_enough_ratings(votes, measure)
        used_votes = np.where(enough_ratings, votes, np.nan)
        number_of_texts = int(enough_ratings.sum())
        reason = _reason_undefined(used_votes, number_of_texts, measure)
        if reason:
            lacking[measure] = reason
            continue
        number_of_items = int(enough_ratings.any(axis=1).sum())
        method = f"{_METHODS[measure]}, {len(votes)} raters"
        if measure.startswith("kappa") and len(votes) > 2:
            method += ", mean over every two"
        estimate = _estimate(
            measure,
            used_votes,
            method,
            bootstrap,
            items=number_of_items,
            texts=number_of_texts,
        )
        if estimate is None:
            lacking[measure] = "the ratings do not vary enough"
        else:
            estimates[measure] = estimate
    return Agreement(estimates, lacking)


def _texts_with_enough_ratings(votes: Floats, measure: Measure) -> Bools:
    """Return which texts (items × systems) a measure can use."""
    number_of_raters = len(votes)
    ratings_of_text = (~np.isnan(votes)).sum(axis=0)
    if number_of_raters < 2:
        return np.zeros(ratings_of_text.shape, dtype=bool)
    if measure.startswith("icc"):
        complete: Bools = ratings_of_text == number_of_raters
        return complete
    several: Bools = ratings_of_text > 1
    return several


def _reason_undefined(
    used_votes: Floats, number_of_texts: int, measure: Measure
) -> str:
    """Return why a measure of these ratings is undefined, or nothing if it is defined."""
    number_of_raters = len(used_votes)
    if number_of_texts < 2:
        raters = "two raters"
        if measure.startswith("icc") and number_of_raters > 2:
            raters = f"all {number_of_raters} raters"
        return f"fewer than two texts have the ratings of {raters}"
    ratings = without_nan(used_votes)
    distinct = len(np.unique(ratings))
    if distinct < 2:
        return "all ratings are equal"
    if distinct > _MAX_CATEGORIES and measure not in _WITHOUT_CATEGORIES:
        return f"the ratings have {distinct:,} distinct values, more than {_MAX_CATEGORIES}"
    return ""


# Intervals

_FEWEST_ITEMS = 10
"""Fewer have no interval: with 5 it held its level in 90% of simulations of two raters."""
_ADDED = 2.0
"""The weight of added texts, in texts.

With 1 the interval held its level in 88–92% of some cells, without in 21–90%
(`benchmarks/claims.py`).
"""


def _estimate(
    measure: Measure,
    votes: Floats,
    method: str,
    bootstrap: Bootstrap,
    *,
    items: int,
    texts: int,
) -> Estimate | None:
    """Return a measure of the used votes with its interval, or None if it is undefined.

    `items` and `texts` count the used ones. If most ratings are equal, few texts decide, and
    resampling alone cannot draw texts that the sample lacks. So there are three bootstrap
    intervals: without added texts, with added texts about whose label raters disagree, and with
    added texts to which all raters give another label than the commonest. The result reaches from
    the lowest end of the three to the highest.
    """
    n_items = votes.shape[1]
    padded = _with_added_texts(votes, measure)
    statistic_of = _STATISTICS[measure]
    statistic = statistic_of(padded.votes)

    def with_added(weights: Floats) -> Statistic:
        """Return the statistic of drawn items and of the added texts with these weights."""

        def weighted(counts: Floats) -> Floats:
            added_counts = np.broadcast_to(weights, (len(counts), len(weights)))
            return statistic(np.hstack([counts, added_counts]))

        return weighted

    without_added = with_added(np.zeros_like(padded.disagreement))
    resampled = bootstrap.resampled(without_added, n_items, items)
    estimate = bootstrap.estimate(measure, resampled, texts, method, _FEWEST_ITEMS)
    if estimate is None or estimate.low is None or estimate.high is None:
        return estimate
    lower_bound = estimate.low
    upper_bound = estimate.high
    for weights in (padded.disagreement, padded.consensus):
        with_weights = with_added(weights)
        drawn = bootstrap.resampled(with_weights, n_items, items).resampled
        lower_end, upper_end = bootstrap.interval(drawn, items).tolist()
        lower_bound = min(lower_bound, lower_end)
        upper_bound = max(upper_bound, upper_end)
    note = f"{estimate.method}, also with {_ADDED:g} added texts"
    return replace(estimate, low=lower_bound, high=upper_bound, method=note)


@dataclass(frozen=True, slots=True)
class _PaddedVotes:
    """Votes with added items of one text each, and the weights of the added texts.

    `disagreement` has the weights of the texts about whose label raters disagree, `consensus` those
    of the text that all rate alike. Both have one weight for each added item.
    """

    votes: Floats
    disagreement: Floats
    consensus: Floats


def _with_added_texts(votes: Floats, measure: Measure) -> _PaddedVotes:
    """Return the votes with added texts.

    In each of the first, one rater gives another label than the commonest; in the last, all raters
    give it. This label is the one nearest to the mean of all ratings with another label than the
    commonest.
    """
    ratings = without_nan(votes)
    labels, frequencies = np.unique(ratings, return_counts=True)
    commonest = labels[frequencies.argmax()]
    is_rarer = labels != commonest
    rarer_labels = labels[is_rarer]
    mean_of_rarer = np.average(rarer_labels, weights=frequencies[is_rarer])
    nearest = np.abs(rarer_labels - mean_of_rarer).argmin()
    rarer_label = rarer_labels[nearest]
    raters = len(votes)
    if measure.startswith("alpha"):
        # Alpha weighs a text by its ratings: an added text has as many as the others.
        ratings_of_text = (~np.isnan(votes)).sum(axis=0)
        raters = round(float(ratings_of_text[ratings_of_text > 0].mean()))
    one_rater_each = np.eye(raters, dtype=bool)
    # Each rater alone gives the rarer label in one text; in the last text, all give it.
    n_raters, _, n_systems = votes.shape
    added = np.full((n_raters, raters + 1, n_systems), np.nan)
    added[:raters, :raters, 0] = np.where(one_rater_each, rarer_label, commonest)
    added[:raters, raters, 0] = rarer_label
    padded = np.concatenate([votes, added], axis=1)
    weight_of_each = np.full(raters, _ADDED / raters)
    disagreement = np.append(weight_of_each, 0.0)
    consensus = np.append(np.zeros(raters), _ADDED)
    return _PaddedVotes(padded, disagreement, consensus)


# Krippendorff's alpha


def _alpha_interval(votes: Floats) -> Statistic:
    """Return 1 − observed / expected disagreement (v − w)².

    Both are variances: Σ_u m_u s_u² / n within units, and s² over all n pairable values. This
    avoids the matrix of coincidences, which is quadratic in the number of distinct values.
    Krippendorff's and evalica's bootstraps resample pairs and thus treat the texts of an item as
    independent.
    """
    item, units = _votes_by_text(votes)
    known_values = without_nan(units)
    # Sums of squares lose no digits if the values are centred; a range of 1 fits `_ROUNDING`.
    units = (units - known_values.mean()) / np.ptp(known_values)
    ratings_of_unit = (~np.isnan(units)).sum(axis=1)
    variances = np.nanvar(units, axis=1, ddof=1)
    terms = [
        ratings_of_unit,
        np.nansum(units, axis=1),
        np.nansum(units**2, axis=1),
        ratings_of_unit * variances,
    ]
    terms_of_unit = np.stack(terms, axis=1)
    terms_by_item = sums_by_item(item, terms_of_unit, votes.shape[1])

    def statistic(counts: Floats) -> Floats:
        n, total, squares, within = (counts @ terms_by_item).T
        # A resample can have no text, or texts that all have one value: its alpha is NaN.
        with np.errstate(invalid="ignore", divide="ignore"):
            observed = within / n
            expected = (squares - total**2 / n) / (n - 1)
            alpha_of_draw = 1 - observed / expected
            return np.where(expected > _ROUNDING, alpha_of_draw, np.nan)

    return statistic


def _alpha_of_categories(votes: Floats, ordinal: bool) -> Statistic:
    """Return 1 − observed / expected disagreement from counts of value pairs within texts.

    The source is Krippendorff (2011). The ordinal distance of two values is that of their mid-ranks
    among all pairable ratings.
    """
    counted = _counted_categories(votes)
    disagreements = _ordinal_disagreements if ordinal else _nominal_disagreements

    def statistic(counts: Floats) -> Floats:
        """Return alpha of each draw (rows of `counts`: how often the draw has each item)."""
        drawn = replace(
            counted,
            coincidences=counts @ counted.coincidences,
            frequencies=counts @ counted.frequencies,
        )
        distances = disagreements(drawn)
        n = drawn.frequencies.sum(axis=1)
        # If all values agree, the expected disagreement consists of rounding errors.
        is_varying = distances.expected > _ROUNDING * n**4
        expected = np.where(is_varying, distances.expected, 0.0)
        return 1 - share(distances.observed * (n - 1), expected)

    return statistic


@dataclass(frozen=True, slots=True)
class _CountedCategories:
    """The values of an item or of a draw (row), counted.

    `frequencies` has a column for each distinct value, and `coincidences` one for each pair of
    different values that occurs in a text: the categories `first` and `second`.
    """

    first: Ints
    second: Ints
    coincidences: Floats
    frequencies: Floats


def _counted_categories(votes: Floats) -> _CountedCategories:
    """Count the values of each item, and the pairs of different values within its texts."""
    item, units = _votes_by_text(votes)
    counts_by_unit = _category_counts(units)
    n_categories = counts_by_unit.shape[1]
    first, second = np.triu_indices(n_categories, 1)
    # Both orders of a pair; a text of m ratings has m (m − 1) pairs and weighs m.
    number_of_pairs = 2 * counts_by_unit[:, first] * counts_by_unit[:, second]
    ratings_of_unit = counts_by_unit.sum(axis=1, keepdims=True)
    coincidences = number_of_pairs / (ratings_of_unit - 1)
    # Most pairs of categories never meet in a text: without them the products are much smaller.
    occurring = coincidences.any(axis=0)
    n_items = votes.shape[1]
    return _CountedCategories(
        first[occurring],
        second[occurring],
        sums_by_item(item, coincidences[:, occurring], n_items),
        sums_by_item(item, counts_by_unit, n_items),
    )


@dataclass(frozen=True, slots=True)
class _Disagreements:
    """The summed distances for each draw: of value pairs within texts, and of all value pairs.

    The latter are what chance alone would give, times the number of ratings less 1.
    """

    observed: Floats
    expected: Floats


def _ordinal_disagreements(drawn: _CountedCategories) -> _Disagreements:
    frequencies = drawn.frequencies
    # The mid-rank of a value: all ratings below it, and half of its own.
    rank = np.cumsum(frequencies, axis=1) - frequencies / 2
    distances = (rank[:, drawn.first] - rank[:, drawn.second]) ** 2
    observed = (drawn.coincidences * distances).sum(axis=1)
    n = frequencies.sum(axis=1)
    sum_of_ranks = (frequencies * rank).sum(axis=1)
    sum_of_squares = (frequencies * rank**2).sum(axis=1)
    # Σ n_c n_k (r_c − r_k)² over all c and k, without the matrix of all pairs.
    expected = 2 * (n * sum_of_squares - sum_of_ranks**2)
    return _Disagreements(observed, expected)


def _nominal_disagreements(drawn: _CountedCategories) -> _Disagreements:
    # The distance of two different values is 1.
    observed = drawn.coincidences.sum(axis=1)
    n = drawn.frequencies.sum(axis=1)
    expected = n * n - (drawn.frequencies**2).sum(axis=1)
    return _Disagreements(observed, expected)


def _category_counts(units: Floats) -> Floats:
    """Return how often each text (row) has each value (column) among its ratings."""
    is_known = ~np.isnan(units)
    values, categories = np.unique(units[is_known], return_inverse=True)
    unit, _ = np.nonzero(is_known)
    indicators = np.eye(len(values))[categories]
    return sums_by_item(unit, indicators, len(units))


def _votes_by_text(votes: Floats) -> tuple[Ints, Floats]:
    """Return the item and the votes (texts × raters) of every text with at least two ratings."""
    ratings_of_text = (~np.isnan(votes)).sum(axis=0)
    item, system = np.nonzero(ratings_of_text > 1)
    return item, votes[:, item, system].T


# Cohen's kappa


def _kappa(votes: Floats, power: int) -> Statistic:
    """Return 1 − observed / expected disagreement |v − w|^power, averaged over pairs of raters."""
    pairs_of_raters = combinations(votes, 2)
    kappas_of_pairs = [
        _kappa_of_pair(first_votes, second_votes, power)
        for first_votes, second_votes in pairs_of_raters
    ]

    def mean_over_pairs(counts: Floats) -> Floats:
        kappas = [kappa(counts) for kappa in kappas_of_pairs]
        return average(np.stack(kappas))

    return mean_over_pairs


def _kappa_of_pair(first_votes: Floats, second_votes: Floats, power: int) -> Statistic:
    """Return kappa of two raters (votes are items × systems) on the texts that both rated."""
    both = all_known(first_votes, second_votes)
    item, _ = np.nonzero(both)
    votes_of_both = np.stack([first_votes[both], second_votes[both]])
    values, categories = np.unique(votes_of_both, return_inverse=True)
    first_categories, second_categories = categories.reshape(2, -1)
    # Weights of Cohen (1968): 1 for linear, 2 for quadratic ones.
    difference = np.abs(values[:, None] - values)
    distance = difference**power
    disagreement_of_text = distance[first_categories, second_categories]
    disagreement = np.bincount(item, disagreement_of_text, minlength=len(first_votes))
    indicators = np.eye(len(values))
    first_frequencies = sums_by_item(
        item, indicators[first_categories], len(first_votes)
    )
    second_frequencies = sums_by_item(
        item, indicators[second_categories], len(first_votes)
    )

    def statistic(counts: Floats) -> Floats:
        first_counts = counts @ first_frequencies
        second_counts = counts @ second_frequencies
        observed = (counts @ disagreement) * first_counts.sum(axis=1)
        expected = ((first_counts @ distance) * second_counts).sum(axis=1)
        return 1 - share(observed, expected)

    return statistic


# Intraclass correlation


def _icc(votes: Floats, of_mean: bool) -> Statistic:
    """Compute the ICC from the mean squares of texts (B), raters (J) and residuals (E).

    For k raters of n texts it is (B − E) / (B + (k − 1) E + k (J − E) / n) of one rater, and
    (B − E) / (B + (J − E) / n) of their mean (Shrout and Fleiss 1979, p. 423).
    """
    raters = len(votes)
    complete = ~np.isnan(votes).any(axis=0)
    item, system = np.nonzero(complete)
    units = votes[:, item, system].T
    # The ICC does not depend on the mean; sums of squares of centred values lose fewer digits.
    units = units - units.mean()
    sum_of_unit = units.sum(axis=1)
    squares_of_unit = (units**2).sum(axis=1)
    ones = np.ones(len(item))
    terms = np.column_stack([ones, sum_of_unit**2, squares_of_unit, units])
    terms_by_item = sums_by_item(item, terms, votes.shape[1])

    def statistic(counts: Floats) -> Floats:
        n, rows, squares, *columns = (counts @ terms_by_item).T
        correction = share(sum(columns) ** 2, n * raters)
        between_texts = rows / raters - correction
        column_squares = sum(column**2 for column in columns)
        between_raters = share(column_squares, n) - correction
        unexplained = squares - correction - between_texts - between_raters
        residual = share(unexplained, (n - 1) * (raters - 1))
        texts_square = share(between_texts, n - 1)
        raters_square = between_raters / (raters - 1)
        if of_mean:
            total = texts_square + share(raters_square - residual, n)
        else:
            rater_error = share(raters * (raters_square - residual), n)
            total = texts_square + (raters - 1) * residual + rater_error
        varying = np.where(total > _ROUNDING, total, 0.0)
        return share(texts_square - residual, varying)

    return statistic


_STATISTICS: Mapping[Measure, Callable[[Floats], Statistic]] = {
    "alpha_interval": _alpha_interval,
    "alpha_ordinal": partial(_alpha_of_categories, ordinal=True),
    "alpha_nominal": partial(_alpha_of_categories, ordinal=False),
    "kappa_quadratic": partial(_kappa, power=2),
    "kappa_linear": partial(_kappa, power=1),
    "icc_2_1": partial(_icc, of_mean=False),
    "icc_2_k": partial(_icc, of_mean=True),
}


# Draws of one judge

_MEAN_TOLERANCE = 1e-6  # between a mean over labels and the stored value


def repeats(table: Table) -> dict[tuple[str, str], Estimate]:
    """Return how much the draws of a text vary, by system and column.

    It is the mean over texts of the standard deviation of a text's draws (divisor draws − 1), in
    units of the column's scale. Only texts with at least two parsed draws count; `n` counts them. A
    column whose labels have no known values has no estimate.
    """
    columns = {
        column.name: column for column in table.columns if column.kind == "criterion"
    }
    deviations: list[Score] = []
    for row in table.scores:
        column = columns.get(row.column)
        if column is None:
            continue
        deviation = deviation_of_draws(column, row)
        if deviation is not None:
            # As a score of the text, so that `item_means` gives its mean and interval.
            deviation_row = replace(
                row, value=deviation, provenance=Provenance("samples")
            )
            deviations.append(deviation_row)
    if not deviations:
        return {}
    # The ends of the scale bound scores, but not their standard deviations.
    unbounded = tuple(
        replace(column, low=None, high=None) for column in columns.values()
    )
    means = item_means(Table(table.samples, unbounded, tuple(deviations)))
    estimates: dict[tuple[str, str], Estimate] = {}
    for key, mean in means.items():
        method = f"mean over texts of the standard deviation of the draws of each; {mean.method}"
        estimates[key] = replace(mean, name="repeat_sd", method=method)
    return estimates


def values_by_label(column: Column) -> Mapping[str, float]:
    """Return the value of each label of a column.

    If the column does not state the values, two labels have the ends of the scale, in any order,
    and other labels are read as numbers. The result is empty if they are not numbers.
    """
    if column.values:
        return dict(zip(column.labels, column.values, strict=True))
    if len(column.labels) == 2 and column.low is not None and column.high is not None:
        return dict(zip(column.labels, (column.low, column.high), strict=True))
    try:
        return {label: float(label) for label in column.labels}
    except ValueError:
        return {}


def deviation_of_draws(column: Column, score: Score) -> float | None:
    """Return the standard deviation of a score's parsed draws; None for fewer than two.

    None as well if the labels have no known values, or if they contradict the score, which is the
    mean of the draws.
    """
    provenance = score.provenance
    if provenance.method != "samples" or provenance.n < 2:
        return None
    values = values_by_label(column)
    distribution = provenance.distribution or {}
    # A label without draws needs no value.
    shares = {label: share for label, share in distribution.items() if share > 0}
    mass = fsum(shares.values())
    if not mass > 0 or shares.keys() - values.keys():
        return None
    weighted_values = [share * values[label] for label, share in shares.items()]
    mean = fsum(weighted_values) / mass
    # With two labels, which of them has which end of the scale is a guess (`values_by_label`). The
    # deviation is the same for both guesses, so a contradicting mean does not matter.
    if len(values) > 2 and abs(mean - score.value) > _MEAN_TOLERANCE:
        return None
    squares: list[float] = []
    for label, share_of_label in shares.items():
        distance = values[label] - mean
        squares.append(share_of_label * distance**2)
    variance = fsum(squares) / mass
    # The draws estimate their own mean: the divisor of their variance is draws − 1.
    return sqrt(variance * provenance.n / (provenance.n - 1))
