"""Measure agreement between raters: the judges of a panel, people, or a judge and people.

`alpha` takes the columns of a panel. `agree` takes an array of votes (raters × items × systems, NaN for a missing
vote). `repeats` measures how much one judge varies from draw to draw. Intervals resample items with all their texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, combinations, product
from math import fsum, sqrt
from typing import Literal, get_args

import numpy as np

from judge.core.records import IDENTICAL, Column, Estimate, Provenance, Score
from judge.stats.bootstrap import DEFAULT, Bools, Bootstrap, Floats, Ints, Statistic, item_means
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
    interval is the percentile interval over resampled items. Resamples without variation are excluded, and fewer than 2
    items have no interval.
    """
    by_judge = [
        {(score.item, score.system, score.rival): score.value for score in table.column_scores(name)
         if score.provenance.method != IDENTICAL}
        for name in columns
    ]  # fmt: skip
    units = [unit for unit, judges in Counter(chain.from_iterable(by_judge)).items() if judges > 1]
    down = {item: place for place, item in enumerate(sorted({item for item, _, _ in units}))}
    across = {texts: place for place, texts in enumerate(dict.fromkeys(unit[1:] for unit in units))}
    votes = np.full((len(columns), len(down), len(across)), np.nan)
    for (judge, values), unit in product(enumerate(by_judge), units):
        votes[judge, down[unit[0]], across[unit[1:]]] = values.get(unit, np.nan)
    estimate = agree(votes, ("alpha_interval",), bootstrap).estimates.get("alpha_interval")
    if estimate is None:
        return None
    method = estimate.method.replace(f"{len(columns)} raters", f"{len(columns)} judges")
    return replace(estimate, name="alpha", method=method)


def unit_terms(values: Floats) -> Floats:
    """Return each unit's contribution to alpha: number of values, their sum, sum of squares, and number × variance."""
    number = (~np.isnan(values)).sum(axis=1)
    within = number * np.nanvar(values, axis=1, ddof=1)
    return np.stack([number, np.nansum(values, axis=1), np.nansum(values**2, axis=1), within], axis=1)


def alpha_of(terms: Floats) -> Floats:
    """Return 1 − observed / expected disagreement from sums of `unit_terms`; NaN if no disagreement is expected.

    With (v − w)² both are variances: Σ_u m_u s_u² / n within units, and s² over all n pairable values. This avoids the
    matrix of coincidences, which is quadratic in the number of distinct values. Krippendorff's and evalica's bootstraps
    resample pairs and thus treat the texts of an item as independent.
    """
    n, total, squares, within = np.moveaxis(terms, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (squares - total**2 / n) / (n - 1)
        return np.where(variance > _ROUNDING, 1 - within / n / variance, np.nan)


Measure = Literal[
    "alpha_interval", "kappa_quadratic", "icc_2_1", "icc_2_k", "alpha_ordinal", "alpha_nominal", "kappa_linear"
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


def agree(votes: Floats, measures: Sequence[Measure] = MEASURES, bootstrap: Bootstrap = DEFAULT) -> Agreement:
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
        if reason := _reason_undefined(votes, texts, measure):
            lacking[measure] = reason
            continue
        used, number = int(texts.any(axis=1).sum()), int(texts.sum())
        resampled = bootstrap.resampled(_STATISTICS[measure](np.where(texts, votes, np.nan)), len(texts), used)
        method = f"{_METHODS[measure]}, {len(votes)} raters"
        method += ", mean over every two" if measure.startswith("kappa") and len(votes) > 2 else ""
        estimate = bootstrap.estimate(measure, resampled, number, method)
        if estimate is None:
            lacking[measure] = "the ratings do not vary enough"
        else:
            estimates[measure] = estimate
    return Agreement(estimates, lacking)


def _reason_undefined(votes: Floats, texts: Bools, measure: Measure) -> str:
    if texts.sum() < 2:
        raters = f"all {len(votes)} raters" if measure.startswith("icc") and len(votes) > 2 else "two raters"
        return f"fewer than two texts have the ratings of {raters}"
    different = len(np.unique(votes[:, texts][~np.isnan(votes[:, texts])]))
    if different < 2:
        return "all ratings are equal"
    if different > _MAX_CATEGORIES and measure not in ("alpha_interval", "icc_2_1", "icc_2_k"):
        return f"the ratings have {different:,} distinct values, more than {_MAX_CATEGORIES}"
    return ""


# Krippendorff's alpha


def _alpha_interval(votes: Floats) -> Statistic:
    item, units = _votes_by_text(votes)
    known = units[~np.isnan(units)]
    terms = np.zeros((votes.shape[1], 4))
    np.add.at(terms, item, unit_terms((units - known.mean()) / np.ptp(known)))
    return lambda counts: alpha_of(counts @ terms)


def _alpha_of_categories(votes: Floats, ordinal: bool) -> Statistic:
    """Return 1 − observed / expected disagreement from counts of value pairs within texts (Krippendorff 2011).

    The ordinal distance of two values is that of their mid-ranks among all pairable ratings.
    """
    from scipy.sparse import csr_array

    item, units = _votes_by_text(votes)
    known = ~np.isnan(units)
    values, places = np.unique(units[known], return_inverse=True)
    unit, _ = np.nonzero(known)
    by_unit = np.zeros((len(units), len(values)))
    np.add.at(by_unit, (unit, places), 1.0)
    first, second = np.triu_indices(len(values), 1)
    coincidences = by_unit[:, first] * by_unit[:, second] * 2 / (by_unit.sum(axis=1, keepdims=True) - 1)
    occurring = coincidences.any(axis=0)
    first, second = first[occurring], second[occurring]
    units_by_item = csr_array((np.ones(len(item)), (item, np.arange(len(item)))), shape=(votes.shape[1], len(item)))
    pairs, frequencies = units_by_item @ coincidences[:, occurring], units_by_item @ by_unit

    def statistic(counts: Floats) -> Floats:
        """Return alpha of each draw (rows of `counts`: how often the draw has each item)."""
        drawn_frequencies = counts @ frequencies
        n = drawn_frequencies.sum(axis=1)
        if not ordinal:
            observed, expected = (
                (counts @ pairs).sum(axis=1),
                n * n - (drawn_frequencies * drawn_frequencies).sum(axis=1),
            )
        else:
            rank = np.cumsum(drawn_frequencies, axis=1) - drawn_frequencies / 2
            observed = ((counts @ pairs) * (rank[:, first] - rank[:, second]) ** 2).sum(axis=1)
            expected = 2 * (n * (drawn_frequencies * rank**2).sum(axis=1) - (drawn_frequencies * rank).sum(axis=1) ** 2)
        return 1 - share(observed * (n - 1), np.where(expected > _ROUNDING * n**4, expected, 0.0))

    return statistic


def _votes_by_text(votes: Floats) -> tuple[Ints, Floats]:
    """Return the item and the votes (texts × raters) of every text that at least two raters rated."""
    item, system = np.nonzero((~np.isnan(votes)).sum(axis=0) > 1)
    return item, votes[:, item, system].T


# Cohen's kappa


def _kappa(votes: Floats, power: int) -> Statistic:
    """Return 1 − observed / expected disagreement |v − w|^power, averaged over pairs of raters."""
    kappas_of_pairs = [_kappa_of_pair(first, second, power) for first, second in combinations(votes, 2)]

    return lambda counts: average(np.stack([kappa(counts) for kappa in kappas_of_pairs]))


def _kappa_of_pair(first_votes: Floats, second_votes: Floats, power: int) -> Statistic:
    both = ~(np.isnan(first_votes) | np.isnan(second_votes))
    item, _ = np.nonzero(both)
    values, places = np.unique(np.stack([first_votes[both], second_votes[both]]), return_inverse=True)
    first, second = places.reshape(2, -1)
    distance = np.abs(values[:, None] - values) ** power
    disagreement = np.bincount(item, distance[first, second], minlength=len(first_votes))
    frequencies = [np.zeros((len(first_votes), len(values))) for _ in range(2)]
    for table, side in zip(frequencies, (first, second), strict=True):
        np.add.at(table, (item, side), 1.0)

    def statistic(counts: Floats) -> Floats:
        first_counts, second_counts = (counts @ side for side in frequencies)
        return 1 - share(
            (counts @ disagreement) * first_counts.sum(axis=1), ((first_counts @ distance) * second_counts).sum(axis=1)
        )

    return statistic


# Intraclass correlation


def _icc(votes: Floats, of_mean: bool) -> Statistic:
    """Compute the ICC from the mean squares of texts, raters and residuals (Shrout and Fleiss 1979, p. 423)."""
    raters = len(votes)
    item, system = np.nonzero(~np.isnan(votes).any(axis=0))
    units = votes[:, item, system].T
    units = units - units.mean()
    terms = np.column_stack([np.ones(len(item)), units.sum(axis=1) ** 2, (units**2).sum(axis=1), units])
    by_item = np.zeros((votes.shape[1], terms.shape[1]))
    np.add.at(by_item, item, terms)

    def statistic(counts: Floats) -> Floats:
        sums = counts @ by_item
        n, rows, squares, columns = sums[:, 0], sums[:, 1], sums[:, 2], sums[:, 3:]
        correction = share(columns.sum(axis=1) ** 2, n * raters)
        between = rows / raters - correction
        judges = share((columns**2).sum(axis=1), n) - correction
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
    `label_values` gives the values of the labels; a column without them has no estimate.
    """
    columns = tuple(column for column in table.columns if column.kind == "criterion")
    values_of_labels = {column.name: label_values(column) for column in columns}
    rows = [row for row in table.scores if row.provenance.method == "samples" and values_of_labels.get(row.column)]
    deviations = tuple(
        replace(row, value=sd, provenance=Provenance("samples"))
        for row in rows
        if (sd := _deviation_of_draws(row, values_of_labels[row.column])) is not None
    )
    if not deviations:
        return {}
    unbounded = tuple(replace(column, low=None, high=None) for column in columns)
    means = item_means(Table(table.samples, unbounded, deviations))
    method = "mean over texts of the standard deviation of the draws of each"
    return {key: replace(mean, name="repeat_sd", method=f"{method}; {mean.method}") for key, mean in means.items()}


def label_values(column: Column) -> Mapping[str, float]:
    """Return the value of each label: the ends of the scale for two labels, else the labels read as numbers.

    The column does not say which of two labels has which end. The result is empty if the labels are not numbers.
    """
    if len(column.labels) == 2 and column.low is not None and column.high is not None:
        return dict(zip(column.labels, (column.low, column.high), strict=True))
    try:
        return {label: float(label) for label in column.labels}
    except ValueError:
        return {}


def values_by_label(column: Column) -> Mapping[str, float]:
    """Return the value of each label of a column, as far as it says, else `label_values`."""
    return dict(zip(column.labels, column.values, strict=True)) if column.values else label_values(column)


def _deviation_of_draws(score: Score, counts: Mapping[str, float]) -> float | None:
    """Return the standard deviation of the parsed draws, or None for one draw or labels that contradict the mean."""
    p = score.provenance
    shares = {label: share for label, share in (p.distribution or {}).items() if share > 0}
    mass = fsum(shares.values())
    if p.n < 2 or not mass > 0 or shares.keys() - counts.keys():
        return None
    mean = fsum(share * counts[label] for label, share in shares.items()) / mass
    if len(counts) > 2 and abs(mean - score.value) > _MEAN_TOLERANCE:
        return None
    squares = fsum(share * (counts[label] - mean) ** 2 for label, share in shares.items()) / mass
    return sqrt(squares * p.n / (p.n - 1))
