"""How far people, or a judge and people, agree: Krippendorff's alpha, weighted kappa, intraclass correlation.

Votes are raters × items × systems, NaN where one did not rate. Each function makes a `Statistic`: all items are drawn
anew with all their texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from judge.core.records import Estimate
from judge.stats import agreement
from judge.stats.bootstrap import DEFAULT, Bootstrap, Statistic
from judge.stats.coefficients import Bools, Ints, rounded, share
from judge.stats.resampling import Floats

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
_MOST = 100  # different values of which kappa, and alpha but with the interval distance, are made
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Agreement:
    """What could be estimated, and why a measure could not."""

    estimates: Mapping[Measure, Estimate] = field(default_factory=dict)
    lacking: Mapping[Measure, str] = field(default_factory=dict)


def agree(votes: Floats, measures: Sequence[Measure] = MEASURES, bootstrap: Bootstrap = DEFAULT) -> Agreement:
    """How far raters agree. An estimate's `n` counts its texts.

    `alpha_…` (Krippendorff 2011) and `kappa_…` (Cohen 1968; of more than two raters the mean over every two, Light
    1971) are over the texts that two raters or more rated, `icc_…` (Shrout and Fleiss 1979, two-way random effects)
    over those that all did. Alpha does not ask who rated what; kappa and ICC take the places in a list for persons.
    """
    votes = rounded(votes)
    estimates, lacking = {}, {}
    for measure in measures:
        texts = _texts(votes, measure)
        if why := _lacking(votes, texts, measure):
            lacking[measure] = why
            continue
        used, number = int(texts.any(axis=1).sum()), int(texts.sum())
        found = bootstrap.resampled(_MAKE[measure](np.where(texts, votes, np.nan)), len(texts), used)
        how = f"{_METHODS[measure]}, {len(votes)} raters"
        how += ", mean over every two" if measure.startswith("kappa") and len(votes) > 2 else ""
        estimate = bootstrap.estimate(measure, found, number, how)
        if estimate is None:
            lacking[measure] = "the ratings do not vary enough"
        else:
            estimates[measure] = estimate
    return Agreement(estimates, lacking)


def _texts(votes: Floats, measure: Measure) -> Bools:
    """The texts that count, items × systems."""
    rated = (~np.isnan(votes)).sum(axis=0)
    found: Bools = rated == len(votes) if measure.startswith("icc") else rated > 1
    return found & (len(votes) > 1)


def _lacking(votes: Floats, texts: Bools, measure: Measure) -> str:
    if texts.sum() < 2:
        who = f"all {len(votes)} raters" if measure.startswith("icc") and len(votes) > 2 else "two raters"
        return f"fewer than two texts have the ratings of {who}"
    different = len(np.unique(votes[:, texts][~np.isnan(votes[:, texts])]))
    if different < 2:
        return "all ratings are equal"
    if different > _MOST and measure not in ("alpha_interval", "icc_2_1", "icc_2_k"):
        return f"the ratings have {different:,} different values: more than {_MOST} are no categories"
    return ""


# Krippendorff's alpha


def _alpha_interval(votes: Floats) -> Statistic:
    item, units = _units(votes)
    known = units[~np.isnan(units)]
    terms = np.zeros((votes.shape[1], 4))
    np.add.at(terms, item, agreement.unit_terms((units - known.mean()) / np.ptp(known)))
    return lambda counts: agreement.alpha_of(counts @ terms)


def _alpha_of_categories(votes: Floats, ordinal: bool) -> Statistic:
    """1 − observed / expected disagreement from how often every two values meet in a text (Krippendorff 2011).

    The ordinal distance of two values is that of their mid-ranks among all the ratings that can be paired.
    """
    from scipy.sparse import csr_array

    item, units = _units(votes)
    known = ~np.isnan(units)
    values, places = np.unique(units[known], return_inverse=True)
    unit, _ = np.nonzero(known)
    by_unit = np.zeros((len(units), len(values)))
    np.add.at(by_unit, (unit, places), 1.0)
    one, other = np.triu_indices(len(values), 1)
    met = by_unit[:, one] * by_unit[:, other] * 2 / (by_unit.sum(axis=1, keepdims=True) - 1)
    some = met.any(axis=0)
    one, other = one[some], other[some]
    gathered = csr_array((np.ones(len(item)), (item, np.arange(len(item)))), shape=(votes.shape[1], len(item)))
    pairs, frequencies = gathered @ met[:, some], gathered @ by_unit

    def statistic(counts: Floats) -> Floats:
        often = counts @ frequencies
        n = often.sum(axis=1)
        if not ordinal:
            observed, expected = (counts @ pairs).sum(axis=1), n * n - (often * often).sum(axis=1)
        else:
            rank = np.cumsum(often, axis=1) - often / 2
            observed = ((counts @ pairs) * (rank[:, one] - rank[:, other]) ** 2).sum(axis=1)
            expected = 2 * (n * (often * rank**2).sum(axis=1) - (often * rank).sum(axis=1) ** 2)
        return 1 - share(observed * (n - 1), np.where(expected > _ROUNDING * n**4, expected, 0.0))

    return statistic


def _units(votes: Floats) -> tuple[Ints, Floats]:
    """The item of every text that two or more rated, and its votes: texts × raters."""
    item, system = np.nonzero((~np.isnan(votes)).sum(axis=0) > 1)
    return item, votes[:, item, system].T


# Cohen's kappa


def _kappa(votes: Floats, power: int) -> Statistic:
    """1 − observed / expected disagreement |v − w|^power of two raters, the mean over every two."""
    each = [_kappa_of_two(one, other, power) for one, other in combinations(votes, 2)]

    def statistic(counts: Floats) -> Floats:
        found = np.stack([of(counts) for of in each])
        known = ~np.isnan(found)
        return share(np.where(known, found, 0.0).sum(axis=0), known.sum(axis=0))

    return statistic


def _kappa_of_two(one: Floats, other: Floats, power: int) -> Statistic:
    both = ~(np.isnan(one) | np.isnan(other))
    item, _ = np.nonzero(both)
    values, places = np.unique(np.stack([one[both], other[both]]), return_inverse=True)
    first, second = places.reshape(2, -1)
    distance = np.abs(values[:, None] - values) ** power
    apart = np.bincount(item, distance[first, second], minlength=len(one))
    often = [_counted(item, side, (len(one), len(values))) for side in (first, second)]

    def statistic(counts: Floats) -> Floats:
        ours, theirs = (counts @ side for side in often)
        return 1 - share((counts @ apart) * ours.sum(axis=1), ((ours @ distance) * theirs).sum(axis=1))

    return statistic


def _counted(item: Ints, place: Ints, shape: tuple[int, int]) -> Floats:
    found = np.zeros(shape)
    np.add.at(found, (item, place), 1.0)
    return found


# Intraclass correlation


def _icc(votes: Floats, of_mean: bool) -> Statistic:
    """Shrout and Fleiss 1979, p. 423: from the mean squares of texts, raters and residuals."""
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
        middle = share(columns.sum(axis=1) ** 2, n * raters)
        between = rows / raters - middle
        judges = share((columns**2).sum(axis=1), n) - middle
        left = share(squares - middle - between - judges, (n - 1) * (raters - 1))
        texts, judges = share(between, n - 1), judges / (raters - 1)
        total = (
            texts + share(judges - left, n)
            if of_mean
            else texts + (raters - 1) * left + share(raters * (judges - left), n)
        )
        return share(texts - left, np.where(total > _ROUNDING, total, 0.0))

    return statistic


_MAKE: Mapping[Measure, Callable[[Floats], Statistic]] = {
    "alpha_interval": _alpha_interval,
    "alpha_ordinal": partial(_alpha_of_categories, ordinal=True),
    "alpha_nominal": partial(_alpha_of_categories, ordinal=False),
    "kappa_quadratic": partial(_kappa, power=2),
    "kappa_linear": partial(_kappa, power=1),
    "icc_2_1": partial(_icc, of_mean=False),
    "icc_2_k": partial(_icc, of_mean=True),
}
