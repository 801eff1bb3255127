"""Spearman, Kendall's tau-b and Pearson over all texts together, and what resampled items make of them.

Rank correlations can be had linear in how often items are drawn: the value is exact, and a resample's is that plus its
counts less 1 times the derivative by each (the infinitesimal jackknife; Efron 1982, ch. 6).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from judge.stats.bootstrap import Statistic
from judge.stats.coefficients import Coefficient, Ints, paired, share
from judge.stats.resampling import Floats

EXACT = 1_000
"""Texts up to which Spearman is ranked anew in every resample: 25,600 of them would take seconds for each pair."""
_ROUNDING = 1e-12  # variance of values on a range of 1, below which there is none
_HELD = 2_000_000  # numbers held at once
_CELLS = 100_000  # of a table of how often every two values meet
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
        "spearman": _linear_rho if len(item) > exact else _ranked,
        "kendall": _linear_tau if len(item) > min(exact, _EXACT_TAU) else _pairwise_tau,
        "pearson": _moments,
    }[coefficient]
    return make(x[known], y[known], item, len(x))


def _gamma(weights: Floats, a: Floats, b: Floats) -> Floats:
    """Σ w a b / √(Σ w a² Σ w b²) of each row, −1 to 1; NaN where a side has nothing."""
    norms = (weights * a * a).sum(axis=1) * (weights * b * b).sum(axis=1)
    return np.clip(share((weights * a * b).sum(axis=1), np.sqrt(norms)), -1.0, 1.0)


def _ranked(x: Floats, y: Floats, item: Ints, n_items: int) -> Statistic:
    ranks = [_weighted_ranks(x), _weighted_ranks(y)]
    step = max(1, _HELD // max(1, len(x)))

    def statistic(counts: Floats) -> Floats:
        parts = [counts[at : at + step][:, item] for at in range(0, len(counts), step)]
        return np.concatenate([_gamma(weights, *(rank(weights) for rank in ranks)) for weights in parts])

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
        [np.bincount(item, of, minlength=n_items) for of in (np.ones_like(x), x, y, x * x, y * y, x * y)], axis=1
    )

    def statistic(counts: Floats) -> Floats:
        n, *rest = (counts @ sums).T
        in_x, in_y, in_xx, in_yy, in_xy = (share(of, n) for of in rest)
        varies, follows = in_xx - in_x**2, in_yy - in_y**2
        varied = np.minimum(varies, follows) > _ROUNDING
        norm = np.sqrt(np.where(varied, varies * follows, 0.0))
        return np.clip(share(in_xy - in_x * in_y, norm), -1.0, 1.0)

    return statistic


def _linear(value: float, sums: Floats, slopes: Floats, item: Ints, n_items: int) -> Statistic:
    """From Σ a b, Σ a² and Σ b² over pairs of texts, and the derivative of each by every text's weight, 3 × texts."""
    both, first, second = (np.bincount(item, of, minlength=n_items) for of in slopes)
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

    def summed(of: Floats) -> Floats:
        by_value = np.bincount(group, of)
        found: Floats = (by_value.sum() + by_value - 2 * np.cumsum(by_value))[group]
        return found

    return summed


def _pairwise_tau(x: Floats, y: Floats, item: Ints, n_items: int) -> Statistic:
    """Over every two texts; two that are one text drawn twice are tied, as in a sample that holds it twice."""
    of_x, of_y = (np.sign(side[:, None] - side[None, :]) for side in (x, y))
    products = (of_x * of_y, np.abs(of_x), np.abs(of_y))

    def statistic(counts: Floats) -> Floats:
        weights = counts[:, item]
        both, first, second = (((weights @ one) * weights).sum(axis=1) for one in products)
        return np.clip(share(both, np.sqrt(first * second)), -1.0, 1.0)

    return statistic


def _linear_tau(x: Floats, y: Floats, item: Ints, n_items: int) -> Statistic:
    from scipy.stats import kendalltau

    (of_x, exact_x), (of_y, exact_y) = _binned(x, y), _binned(y, x)
    found = np.stack([_concordance(of_x, of_y), _untied(of_x), _untied(of_y)])
    sums = found.sum(axis=1)
    value = _ratio(sums) if exact_x and exact_y else float(kendalltau(x, y).statistic)
    return _linear(value, sums, 2 * found, item, n_items)


def _binned(x: Floats, beside: Floats) -> tuple[Ints, bool]:
    """The place of each value among the different ones, in bins where the two sides have too many; whether without."""
    _, group = np.unique(x, return_inverse=True)
    number, others = int(group.max(initial=0)) + 1, len(np.unique(beside))
    if number * others <= _CELLS or number <= _BINS:
        return group, True
    return group * _BINS // number, False


def _untied(group: Ints) -> Floats:
    """With how many other texts each one is not tied."""
    found: Floats = (len(group) - np.bincount(group)[group]).astype(np.float64)
    return found


def _concordance(x: Ints, y: Ints) -> Floats:
    """Each text's Σ_l sign(x_k − x_l) sign(y_k − y_l), from the table of how often two places meet."""
    across = int(y.max(initial=0)) + 1
    down = int(x.max(initial=0)) + 1
    table = np.bincount(x * across + y, minlength=down * across).reshape(down, across)
    signed = _signed(_signed(table).T).T
    found: Floats = signed[x, y].astype(np.float64)
    return found


def _signed(table: Ints) -> Ints:
    """For every row, the sum of the rows above it less that of the rows below."""
    up_to = np.cumsum(table, axis=0)
    found: Ints = 2 * up_to - table - up_to[-1]
    return found
