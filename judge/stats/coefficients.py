"""Spearman, Kendall's tau-b and Pearson, on tables and on resampled items, and Williams' test of two correlations.

`within` and `between` compute the coefficients of rows; `of_means` and `pooled` make a `Statistic` of resampled items.
All three coefficients are one: Γ = Σ a_kl b_kl / √(Σ a_kl² Σ b_kl²) over pairs of texts (Daniels 1944), in which a_kl
is the sign of x_k − x_l (tau-b), the difference of their mid-ranks (Spearman) or of the values (Pearson). NaN stands
for a missing value; a value without a partner on the other side does not count.

`pooled` rank correlations can be linear in how often items are drawn: the value is exact, and a resample's is that plus
its counts less 1 times the derivative by each (the infinitesimal jackknife; Efron 1982, ch. 6).
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np

from judge.stats.bootstrap import Floats, Statistic


def williams(r_one: float, r_other: float, between: float, n: int) -> tuple[float, float] | None:
    """t with n − 3 degrees of freedom and its two-sided p for r_one = r_other (Williams 1959; Steiger 1980, eq. 7).

    Two variables correlate with a third, by r_one and r_other, and with each other, by `between`, over n independent
    cases. None for fewer than four of them, and where the three variables leave nothing to chance.
    """
    from scipy.special import stdtr

    if n < 4:
        return None
    determinant = 1 - r_one**2 - r_other**2 - between**2 + 2 * r_one * r_other * between
    spread = 2 * (n - 1) / (n - 3) * max(determinant, 0.0) + ((r_one + r_other) / 2) ** 2 * (1 - between) ** 3
    if r_one == r_other:
        return 0.0, 1.0
    if not spread > 0:
        return None
    t = (r_one - r_other) * sqrt((n - 1) * (1 + between) / spread)
    return t, float(2 * stdtr(n - 3, -abs(t)))


Ints = np.ndarray[Any, np.dtype[np.intp]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Coefficient = Literal["spearman", "kendall", "pearson"]
COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)

_DECIMALS = 9  # equal values may differ by rounding
_MAX_NUMBERS = 2_000_000  # numbers held at once


def rounded(x: Floats) -> Floats:
    """The values without what may be rounding alone, which would break ties."""
    rows: Floats = np.round(x, _DECIMALS)
    return rows


def paired(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The two with NaN in both where it is in either."""
    both = ~(np.isnan(x) | np.isnan(y))
    return np.where(both, rounded(x), np.nan), np.where(both, rounded(y), np.nan)


def within(x: Floats, y: Floats, coefficient: Coefficient) -> Floats:
    """The coefficient of each row; NaN where a side does not vary."""
    values: Floats = between(np.stack(paired(x, y)), coefficient)[:, 0, 1]
    return values


def between(columns: Floats, coefficient: Coefficient) -> Floats:
    """Columns × rows × values, missing in the same places, to each row's coefficients: rows × columns × columns.

    NaN where a side does not vary.
    """
    number, rows, size = columns.shape
    step = max(1, _MAX_NUMBERS // max(1, number * size * (size if coefficient == "kendall" else 1)))
    parts = []
    for at in range(0, rows, step):
        features = np.moveaxis(_FEATURES[coefficient](columns[:, at : at + step]), 0, 1)
        products = features @ np.swapaxes(features, 1, 2)
        norms = np.diagonal(products, axis1=1, axis2=2)
        parts.append(np.clip(share(products, np.sqrt(norms[:, :, None] * norms[:, None, :])), -1.0, 1.0))
    return np.concatenate(parts) if parts else np.empty((0, number, number))


def mean(by_item: Floats) -> Statistic:
    """The mean over the drawn items (the first axis) that have a value."""
    known = ~np.isnan(by_item)
    values, number = np.where(known, by_item, 0.0), known.astype(np.float64)
    return lambda counts: share(counts @ values, counts @ number)


def of_means(x: Floats, y: Floats, coefficient: Coefficient) -> Statistic:
    """The coefficient between the systems' means over the drawn items, each over its texts that have both."""
    means = system_means(np.stack(paired(x, y)))
    return lambda counts: between(means(counts), coefficient)[:, 0, 1]


def system_means(columns: Floats) -> Statistic:
    """From columns × items × systems, missing in the same places, to means: columns × resamples × systems."""
    number = (~np.isnan(columns[0])).astype(np.float64)
    filled = np.nan_to_num(columns)

    def statistic(counts: Floats) -> Floats:
        n_texts = counts @ number
        return rounded(np.stack([share(counts @ column, n_texts) for column in filled]))

    return statistic


def share(part: Any, whole: Any) -> Floats:
    """The quotient; NaN where the whole is nothing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def _signs(x: Floats) -> Floats:
    """The signs of x_k − x_l for every two, 0 where either is missing."""
    first, second = np.triu_indices(x.shape[-1], 1)
    return np.nan_to_num(np.sign(x[..., first] - x[..., second]))


def _centred_ranks(x: Floats) -> Floats:
    """Twice the mid-rank less its mean, 0 where the value is missing."""
    known = ~np.isnan(x)
    filled = np.where(known, x, np.inf)
    order = np.argsort(filled, axis=-1, kind="stable")
    sorted_ = np.take_along_axis(filled, order, axis=-1)
    place, size = np.arange(x.shape[-1]), x.shape[-1]
    new = sorted_[..., 1:] > sorted_[..., :-1]
    first, last = np.zeros(x.shape, dtype=np.intp), np.full(x.shape, size)
    first[..., 1:] = np.where(new, place[1:], 0)
    last[..., :-1] = np.where(new, place[1:], size)
    first = np.maximum.accumulate(first, axis=-1)
    last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
    doubled = np.empty(x.shape)
    np.put_along_axis(doubled, order, (first + last).astype(np.float64), axis=-1)
    return np.where(known, doubled - known.sum(axis=-1, keepdims=True), 0.0)


def _centred(x: Floats) -> Floats:
    """The values less their mean, 0 where they are missing, and all of them where they do not vary."""
    known = ~np.isnan(x)
    varies = np.where(known, x, -np.inf).max(axis=-1) > np.where(known, x, np.inf).min(axis=-1)
    filled = np.where(known, x, 0.0)
    middle = share(filled.sum(axis=-1), known.sum(axis=-1))
    return np.where(known & varies[..., None], filled - middle[..., None], 0.0)


_FEATURES: dict[Coefficient, Callable[[Floats], Floats]] = {
    "spearman": _centred_ranks,
    "kendall": _signs,
    "pearson": _centred,
}


EXACT = 1_000
"""Texts up to which Spearman is ranked anew in every resample: 25,600 of them would take seconds for each pair."""
_ROUNDING = 1e-12  # variance of values on a range of 1, below which there is none
_MAX_CELLS = 100_000  # of a table of how often every two values meet
_EXACT_TAU = 300
_BINS = 256  # of values, for the derivative, where that table would be larger


def pooled(x: Floats, y: Floats, coefficient: Coefficient, *, exact: int = EXACT) -> Statistic:
    """The coefficient over the texts of the drawn items, of two tables of items × systems (NaN for missing ones).

    Pearson is computed anew for each resample, Spearman too of up to so many texts (`exact`), tau-b of up to 300 of
    these; else they are linear.
    """
    x, y = paired(x, y)
    item, _ = known = np.nonzero(~np.isnan(x))
    make = {
        "spearman": _linear_rho if len(item) > exact else _exact_rho,
        "kendall": _linear_tau if len(item) > min(exact, _EXACT_TAU) else _pairwise_tau,
        "pearson": _moments,
    }[coefficient]
    return make(x[known], y[known], item, len(x))


def _exact_rho(x: Floats, y: Floats, item: Ints, n_items: int) -> Statistic:
    ranks = [_weighted_ranks(x), _weighted_ranks(y)]
    step = max(1, _MAX_NUMBERS // max(1, len(x)))

    def statistic(counts: Floats) -> Floats:
        parts = []
        for at in range(0, len(counts), step):
            weights = counts[at : at + step][:, item]
            a, b = (rank(weights) for rank in ranks)
            norms = (weights * a * a).sum(axis=1) * (weights * b * b).sum(axis=1)
            parts.append(np.clip(share((weights * a * b).sum(axis=1), np.sqrt(norms)), -1.0, 1.0))
        return np.concatenate(parts)

    return statistic


def _weighted_ranks(x: Floats) -> Callable[[Floats], Floats]:
    """From weights, resamples × texts, to mid-ranks less their mean, in which a text counts as often as it weighs."""
    order = np.argsort(x, kind="stable")
    _, starts, group = np.unique(x[order], return_index=True, return_inverse=True)
    place = np.empty_like(order)
    place[order] = group

    def ranks(weights: Floats) -> Floats:
        by_value = np.add.reduceat(weights[:, order], starts, axis=1)
        middle: Floats = np.cumsum(by_value, axis=1) - by_value / 2 - by_value.sum(axis=1, keepdims=True) / 2
        return middle[:, place]

    return ranks


def _moments(x: Floats, y: Floats, item: Ints, n_items: int) -> Statistic:
    x, y = ((side - side.mean()) / (np.ptp(side) or 1.0) for side in (x, y))
    sums = np.stack(
        [np.bincount(item, moment, minlength=n_items) for moment in (np.ones_like(x), x, y, x * x, y * y, x * y)],
        axis=1,
    )

    def statistic(counts: Floats) -> Floats:
        n, *rest = (counts @ sums).T
        in_x, in_y, in_xx, in_yy, in_xy = (share(moment, n) for moment in rest)
        varies, follows = in_xx - in_x**2, in_yy - in_y**2
        varied = np.minimum(varies, follows) > _ROUNDING
        norm = np.sqrt(np.where(varied, varies * follows, 0.0))
        return np.clip(share(in_xy - in_x * in_y, norm), -1.0, 1.0)

    return statistic


def _linear(value: float, sums: Floats, slopes: Floats, item: Ints, n_items: int) -> Statistic:
    """From Σ a b, Σ a² and Σ b² over pairs of texts, and the derivative of each by every text's weight, 3 × texts."""
    both, first, second = (np.bincount(item, slopes_by_text, minlength=n_items) for slopes_by_text in slopes)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = both / np.sqrt(sums[1] * sums[2]) - value / 2 * (first / sums[1] + second / sums[2])
    return lambda counts: np.clip(value + (counts - 1) @ slope, -1.0, 1.0)


def _linear_rho(x: Floats, y: Floats, item: Ints, n_items: int) -> Statistic:
    """Σ a b is Σ_k A_k B_k with A_k twice the mid-rank less its mean, which moves by the sign of x_k − x_i with i."""
    above, below = _summed_above(x), _summed_above(y)
    a, b = -above(np.ones_like(x)), -below(np.ones_like(y))
    sums = np.array([a @ b, a @ a, b @ b])
    slopes = np.stack([a * b + above(b) + below(a), a * a + 2 * above(a), b * b + 2 * below(b)])
    return _linear(_ratio(sums), sums, slopes, item, n_items)


def _ratio(sums: Floats) -> float:
    return float(np.clip(share(sums[0], np.sqrt(sums[1] * sums[2])), -1.0, 1.0))


def _summed_above(x: Floats) -> Callable[[Floats], Floats]:
    """From numbers to each text's Σ_k sign(x_k − x_i) of them."""
    _, group = np.unique(x, return_inverse=True)

    def summed(numbers: Floats) -> Floats:
        by_value = np.bincount(group, numbers)
        sums: Floats = (by_value.sum() + by_value - 2 * np.cumsum(by_value))[group]
        return sums

    return summed


def _pairwise_tau(x: Floats, y: Floats, item: Ints, n_items: int) -> Statistic:
    """Over every two texts; two that are one text drawn twice are tied, as in a sample that holds it twice."""
    of_x, of_y = (np.sign(side[:, None] - side[None, :]) for side in (x, y))
    products = (of_x * of_y, np.abs(of_x), np.abs(of_y))

    def statistic(counts: Floats) -> Floats:
        weights = counts[:, item]
        both, first, second = (((weights @ product) * weights).sum(axis=1) for product in products)
        return np.clip(share(both, np.sqrt(first * second)), -1.0, 1.0)

    return statistic


def _linear_tau(x: Floats, y: Floats, item: Ints, n_items: int) -> Statistic:
    from scipy.stats import kendalltau

    (of_x, exact_x), (of_y, exact_y) = _binned(x, y), _binned(y, x)
    # Each text's Σ_l sign(x_k − x_l) sign(y_k − y_l), from the table of how often two places meet.
    across = int(of_y.max(initial=0)) + 1
    down = int(of_x.max(initial=0)) + 1
    table = np.bincount(of_x * across + of_y, minlength=down * across).reshape(down, across)
    signed = _above_less_below(_above_less_below(table).T).T
    concordance: Floats = signed[of_x, of_y].astype(np.float64)
    terms = np.stack([concordance, _untied(of_x), _untied(of_y)])
    sums = terms.sum(axis=1)
    value = _ratio(sums) if exact_x and exact_y else float(kendalltau(x, y).statistic)
    return _linear(value, sums, 2 * terms, item, n_items)


def _binned(x: Floats, beside: Floats) -> tuple[Ints, bool]:
    """The place of each value among the different ones, in bins where the two sides have too many; whether without."""
    _, group = np.unique(x, return_inverse=True)
    number, others = int(group.max(initial=0)) + 1, len(np.unique(beside))
    if number * others <= _MAX_CELLS or number <= _BINS:
        return group, True
    return group * _BINS // number, False


def _untied(group: Ints) -> Floats:
    """With how many other texts each one is not tied."""
    n_others: Floats = (len(group) - np.bincount(group)[group]).astype(np.float64)
    return n_others


def _above_less_below(table: Ints) -> Ints:
    """For every row, the sum of the rows above it less that of the rows below."""
    up_to = np.cumsum(table, axis=0)
    difference: Ints = 2 * up_to - table - up_to[-1]
    return difference
