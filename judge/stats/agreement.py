"""Measure agreement between raters: the judges of a panel, people, or a judge and people.

`alpha` takes the columns of a panel. `agree` takes an array of votes (raters × items × systems, NaN for a missing
vote). `repeats` measures how much one judge varies from draw to draw. Intervals resample items with all their
texts.
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
    item_means,
    sums_by_item,
)
from judge.stats.coefficients import average, rounded, share
from judge.table import Table

# A resample with less variance (of values scaled to a range of 1) varies by rounding only.
_ROUNDING = 1e-12


def alpha(table: Table, columns: Sequence[str], bootstrap: Bootstrap = DEFAULT) -> Estimate | None:
    """Return Krippendorff's alpha (2011; 2018, ch. 12) between the judges of one criterion, given by their `columns`.

    1 is perfect agreement, 0 is chance; below 0 judges disagree more than by chance. The unit is the text or, in a
    comparison, the two texts in one order. Identical texts, about which no judge was asked, are excluded. Failed values
    are missing; `n` counts the texts with at least two values. The distance is (v − w)² on the values of the scale, for
    labels too.

    Return None if alpha is undefined: fewer than two judges, fewer than two texts with two values, or no variation. The
    interval resamples items, also with added texts (`_estimate`). Resamples without variation are excluded, and fewer
    than 10 items have no interval.
    """
    by_judge = [
        {(score.item, score.system, score.rival): score.value for score in table.column_scores(name)
         if score.provenance.method != IDENTICAL}
        for name in columns
    ]  # fmt: skip
    units = [unit for unit, judges in Counter(chain.from_iterable(by_judge)).items() if judges > 1]
    items, texts = (
        sorted({item for item, *_ in units}),
        list(dict.fromkeys(unit[1:] for unit in units)),
    )
    cells = [
        values.get((item, *text), np.nan) for values in by_judge for item in items for text in texts
    ]
    votes = np.array(cells).reshape(len(columns), len(items), len(texts))
    estimate = agree(votes, ("alpha_interval",), bootstrap).estimates.get("alpha_interval")
    if estimate is None:
        return None
    method = estimate.method.replace(f"{len(columns)} raters", f"{len(columns)} judges")
    return replace(estimate, name="alpha", method=method)


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
_MAX_CATEGORIES = 100  # distinct values for kappa, ordinal and nominal alpha


@dataclass(frozen=True, slots=True)
class Agreement:
    """Estimates by measure, and the reason for each missing measure."""

    estimates: Mapping[Measure, Estimate] = field(default_factory=dict)
    lacking: Mapping[Measure, str] = field(default_factory=dict)


def agree(
    votes: Floats, measures: Sequence[Measure] = MEASURES, bootstrap: Bootstrap = DEFAULT
) -> Agreement:
    """Measure how well raters agree. An estimate's `n` counts its texts.

    `alpha_…` (Krippendorff 2011) and `kappa_…` (Cohen 1968; for more than two raters the mean over pairs, Light 1971)
    use the texts that at least two raters rated. `icc_…` (Shrout and Fleiss 1979, two-way random effects) uses those
    that all rated. Alpha ignores who rated; kappa and ICC assume that a position is always the same rater.
    """
    votes = rounded(votes)
    estimates, lacking = {}, {}
    for measure in measures:
        rated = (~np.isnan(votes)).sum(axis=0)
        enough: Bools = rated == len(votes) if measure.startswith("icc") else rated > 1
        texts = enough & (len(votes) > 1)
        used, number = int(texts.any(axis=1).sum()), int(texts.sum())
        known = votes[:, texts]
        different = len(np.unique(known[~np.isnan(known)]))
        if number < 2:
            raters = (
                f"all {len(votes)} raters"
                if measure.startswith("icc") and len(votes) > 2
                else "two raters"
            )
            lacking[measure] = f"fewer than two texts have the ratings of {raters}"
        elif different < 2:
            lacking[measure] = "all ratings are equal"
        elif different > _MAX_CATEGORIES and measure not in (
            "alpha_interval",
            "icc_2_1",
            "icc_2_k",
        ):
            lacking[measure] = (
                f"the ratings have {different:,} distinct values, more than {_MAX_CATEGORIES}"
            )
        if measure in lacking:
            continue
        method = f"{_METHODS[measure]}, {len(votes)} raters"
        method += ", mean over every two" if measure.startswith("kappa") and len(votes) > 2 else ""
        used_votes = np.where(texts, votes, np.nan)
        estimate = _estimate(measure, used_votes, (used, number), method, bootstrap)
        if estimate is None:
            lacking[measure] = "the ratings do not vary enough"
        else:
            estimates[measure] = estimate
    return Agreement(estimates, lacking)


# Intervals

_FEWEST_ITEMS = 10
"""Fewer have no interval: with 5 it held its level in 90% of simulations of two raters."""
_ADDED = 2.0
"""The weight of added texts, in texts. With 1 the interval held its level in 88–92% of some cells, without in 21–90%
(`benchmarks/claims.py`)."""


def _estimate(
    measure: Measure, votes: Floats, sizes: tuple[int, int], method: str, bootstrap: Bootstrap
) -> Estimate | None:
    """Return a measure of the used votes with its interval, or None if it is undefined.

    `sizes` counts the used items and texts. If most ratings are equal, few texts decide, and resampling alone does not
    know which other ones there could be. So the lower end is the lowest of the bootstrap intervals without and with
    added texts about whose label raters disagree, the upper end the highest of those without and with added texts that
    all rate with another label than the commonest.
    """
    items, texts = sizes
    n_items = votes.shape[1]
    padded, disagreement, consensus = _with_added_texts(votes, measure)
    statistic = _STATISTICS[measure](padded)

    def with_added(weights: Floats) -> Statistic:
        return lambda counts: statistic(
            np.hstack([counts, np.broadcast_to(weights, (len(counts), len(weights)))])
        )

    plain = with_added(np.zeros_like(disagreement))
    resampled = bootstrap.resampled(plain, n_items, items)
    estimate = bootstrap.estimate(measure, resampled, texts, method, _FEWEST_ITEMS)
    if estimate is None or estimate.low is None or estimate.high is None:
        return estimate
    low, high = estimate.low, estimate.high
    for weights in (disagreement, consensus):
        drawn = bootstrap.resampled(with_added(weights), n_items, items).resampled
        ends = bootstrap.interval(drawn, items)
        low = min(low, float(ends[0]))
        high = max(high, float(ends[1]))
    note = f"{estimate.method}, also with {_ADDED:g} added texts"
    return replace(estimate, low=low, high=high, method=note)


def _with_added_texts(votes: Floats, measure: Measure) -> tuple[Floats, Floats, Floats]:
    """Return the votes with added items of one text each, and the weights of disagreement and of consensus.

    In each of the first, one rater gives another label than the commonest; in the last, all raters give it. This label
    is the one nearest to the mean of all ratings with another label than the commonest.
    """
    labels, number = np.unique(votes[~np.isnan(votes)], return_counts=True)
    commonest = labels[number.argmax()]
    others = labels[labels != commonest]
    mean_of_others = np.average(others, weights=number[labels != commonest])
    other = others[np.abs(others - mean_of_others).argmin()]
    raters = len(votes)
    if measure.startswith("alpha"):
        # Alpha weighs a text by its ratings: an added text has as many as the others.
        of_texts = (~np.isnan(votes)).sum(axis=0)
        raters = round(float(of_texts[of_texts > 0].mean()))
    added = np.full((len(votes), raters + 1, votes.shape[2]), np.nan)
    added[:raters, :raters, 0] = np.where(np.eye(raters, dtype=bool), other, commonest)
    added[:raters, raters, 0] = other
    disagreement = np.append(np.full(raters, _ADDED / raters), 0.0)
    consensus = np.append(np.zeros(raters), _ADDED)
    return np.concatenate([votes, added], axis=1), disagreement, consensus


# Krippendorff's alpha


def _alpha_interval(votes: Floats) -> Statistic:
    """Return 1 − observed / expected disagreement (v − w)².

    Both are variances: Σ_u m_u s_u² / n within units, and s² over all n pairable values. This avoids the matrix of
    coincidences, which is quadratic in the number of distinct values. Krippendorff's and evalica's bootstraps resample
    pairs and thus treat the texts of an item as independent.
    """
    item, units = _votes_by_text(votes)
    known = units[~np.isnan(units)]
    units = (units - known.mean()) / np.ptp(known)
    number = (~np.isnan(units)).sum(axis=1)
    terms = [
        number,
        np.nansum(units, axis=1),
        np.nansum(units**2, axis=1),
        number * np.nanvar(units, axis=1, ddof=1),
    ]
    by_item = sums_by_item(item, np.stack(terms, axis=1), votes.shape[1])

    def statistic(counts: Floats) -> Floats:
        n, total, squares, within = (counts @ by_item).T
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = (squares - total**2 / n) / (n - 1)
            return np.where(variance > _ROUNDING, 1 - within / n / variance, np.nan)

    return statistic


def _alpha_of_categories(votes: Floats, ordinal: bool) -> Statistic:
    """Return 1 − observed / expected disagreement from counts of value pairs within texts (Krippendorff 2011).

    The ordinal distance of two values is that of their mid-ranks among all pairable ratings.
    """
    item, units = _votes_by_text(votes)
    known = ~np.isnan(units)
    values, places = np.unique(units[known], return_inverse=True)
    unit, _ = np.nonzero(known)
    by_unit = sums_by_item(unit, np.eye(len(values))[places], len(units))
    first, second = np.triu_indices(len(values), 1)
    coincidences = (
        by_unit[:, first] * by_unit[:, second] * 2 / (by_unit.sum(axis=1, keepdims=True) - 1)
    )
    occurring = coincidences.any(axis=0)
    first, second = first[occurring], second[occurring]
    pairs, frequencies = (
        sums_by_item(item, each, votes.shape[1]) for each in (coincidences[:, occurring], by_unit)
    )

    def statistic(counts: Floats) -> Floats:
        """Return alpha of each draw (rows of `counts`: how often the draw has each item)."""
        drawn_frequencies = counts @ frequencies
        n = drawn_frequencies.sum(axis=1)
        if not ordinal:
            observed, expected = (
                (counts @ pairs).sum(axis=1),
                n * n - (drawn_frequencies**2).sum(axis=1),
            )
        else:
            rank = np.cumsum(drawn_frequencies, axis=1) - drawn_frequencies / 2
            observed = ((counts @ pairs) * (rank[:, first] - rank[:, second]) ** 2).sum(axis=1)
            expected = 2 * (
                n * (drawn_frequencies * rank**2).sum(axis=1)
                - (drawn_frequencies * rank).sum(axis=1) ** 2
            )
        return 1 - share(observed * (n - 1), np.where(expected > _ROUNDING * n**4, expected, 0.0))

    return statistic


def _votes_by_text(votes: Floats) -> tuple[Ints, Floats]:
    """Return the item and the votes (texts × raters) of every text that at least two raters rated."""
    item, system = np.nonzero((~np.isnan(votes)).sum(axis=0) > 1)
    return item, votes[:, item, system].T


# Cohen's kappa


def _kappa(votes: Floats, power: int) -> Statistic:
    """Return 1 − observed / expected disagreement |v − w|^power, averaged over pairs of raters."""
    kappas_of_pairs = [
        _kappa_of_pair(first, second, power) for first, second in combinations(votes, 2)
    ]

    return lambda counts: average(np.stack([kappa(counts) for kappa in kappas_of_pairs]))


def _kappa_of_pair(first_votes: Floats, second_votes: Floats, power: int) -> Statistic:
    both = ~(np.isnan(first_votes) | np.isnan(second_votes))
    item, _ = np.nonzero(both)
    values, places = np.unique(
        np.stack([first_votes[both], second_votes[both]]), return_inverse=True
    )
    first, second = places.reshape(2, -1)
    distance = np.abs(values[:, None] - values) ** power
    disagreement = np.bincount(item, distance[first, second], minlength=len(first_votes))
    frequencies = [
        sums_by_item(item, np.eye(len(values))[side], len(first_votes)) for side in (first, second)
    ]

    def statistic(counts: Floats) -> Floats:
        first_counts, second_counts = (counts @ side for side in frequencies)
        return 1 - share(
            (counts @ disagreement) * first_counts.sum(axis=1),
            ((first_counts @ distance) * second_counts).sum(axis=1),
        )

    return statistic


# Intraclass correlation


def _icc(votes: Floats, of_mean: bool) -> Statistic:
    """Compute the ICC from the mean squares of texts, raters and residuals (Shrout and Fleiss 1979, p. 423)."""
    raters = len(votes)
    item, system = np.nonzero(~np.isnan(votes).any(axis=0))
    units = votes[:, item, system].T
    units = units - units.mean()
    terms = np.column_stack(
        [np.ones(len(item)), units.sum(axis=1) ** 2, (units**2).sum(axis=1), units]
    )
    by_item = sums_by_item(item, terms, votes.shape[1])

    def statistic(counts: Floats) -> Floats:
        n, rows, squares, *columns = (counts @ by_item).T
        correction = share(sum(columns) ** 2, n * raters)
        between = rows / raters - correction
        judges = share(sum(column**2 for column in columns), n) - correction
        residual = share(squares - correction - between - judges, (n - 1) * (raters - 1))
        texts, judges = share(between, n - 1), judges / (raters - 1)
        total = (
            texts + share(judges - residual, n)
            if of_mean
            else texts + (raters - 1) * residual + share(raters * (judges - residual), n)
        )
        return share(texts - residual, np.where(total > _ROUNDING, total, 0.0))

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


_MEAN_TOLERANCE = 1e-6  # between a mean over labels and the stored value


def repeats(table: Table) -> dict[tuple[str, str], Estimate]:
    """Return the mean over texts of the standard deviation of a text's draws (divisor draws − 1), by system and column.

    The unit is that of the column's scale. Only texts with at least two parsed draws count; `n` counts them.
    A column whose labels have no known values has no estimate.
    """
    columns = {column.name: column for column in table.columns if column.kind == "criterion"}
    deviations = tuple(
        replace(row, value=sd, provenance=Provenance("samples"))
        for row in table.scores
        if row.column in columns
        and (sd := deviation_of_draws(columns[row.column], row)) is not None
    )
    if not deviations:
        return {}
    unbounded = tuple(replace(column, low=None, high=None) for column in columns.values())
    means = item_means(Table(table.samples, unbounded, deviations))
    method = "mean over texts of the standard deviation of the draws of each"
    return {
        key: replace(mean, name="repeat_sd", method=f"{method}; {mean.method}")
        for key, mean in means.items()
    }


def values_by_label(column: Column) -> Mapping[str, float]:
    """Return the value of each label of a column, as far as it says.

    Otherwise two labels have the ends of the scale, whichever has which, and others are read as numbers. The result is
    empty if they are not numbers.
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

    None as well if the labels have no known values, or contradict the score, which is the mean of the draws.
    """
    p, values = score.provenance, values_by_label(column)
    shares = {label: share for label, share in (p.distribution or {}).items() if share > 0}
    mass = fsum(shares.values())
    if p.method != "samples" or p.n < 2 or not mass > 0 or shares.keys() - values.keys():
        return None
    mean = fsum(share * values[label] for label, share in shares.items()) / mass
    if len(values) > 2 and abs(mean - score.value) > _MEAN_TOLERANCE:
        return None
    squares = fsum(share * (values[label] - mean) ** 2 for label, share in shares.items()) / mass
    return sqrt(squares * p.n / (p.n - 1))
