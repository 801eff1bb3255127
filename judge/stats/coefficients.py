"""Spearman, Kendall's tau-b and Pearson between tables of items × systems, and what resampled items make of them.

All three are one: Γ = Σ a_kl b_kl / √(Σ a_kl² Σ b_kl²) over pairs of texts (Daniels 1944), in which a_kl is the sign of
x_k − x_l (tau-b), the difference of their mid-ranks (Spearman) or of the values (Pearson). NaN stands for a missing
value; what lacks a partner on the other side does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from judge.stats.bootstrap import Statistic
from judge.stats.resampling import Floats

Ints = np.ndarray[Any, np.dtype[np.intp]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Coefficient = Literal["spearman", "kendall", "pearson"]
COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)

_PLACES = 9  # equal values may differ by rounding
_HELD = 2_000_000  # numbers held at once


def rounded(x: Floats) -> Floats:
    """The values without what may be rounding alone, which would break ties."""
    rows: Floats = np.round(x, _PLACES)
    return rows


def paired(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The two with NaN in both where it is in either."""
    both = ~(np.isnan(x) | np.isnan(y))
    return np.where(both, rounded(x), np.nan), np.where(both, rounded(y), np.nan)


def within(x: Floats, y: Floats, coefficient: Coefficient) -> Floats:
    """The coefficient of each row; NaN where a side does not vary."""
    found: Floats = between(np.stack(paired(x, y)), coefficient)[:, 0, 1]
    return found


def between(columns: Floats, coefficient: Coefficient) -> Floats:
    """Columns × rows × values, missing in the same places, to each row's coefficients: rows × columns × columns.

    NaN where a side does not vary.
    """
    number, rows, size = columns.shape
    step = max(1, _HELD // max(1, number * size * (size if coefficient == "kendall" else 1)))
    parts = [_between(columns[:, at : at + step], coefficient) for at in range(0, rows, step)]
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
        of = counts @ number
        return rounded(np.stack([share(counts @ one, of) for one in filled]))

    return statistic


def share(part: Any, whole: Any) -> Floats:
    """The quotient; NaN where the whole is nothing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def _between(columns: Floats, coefficient: Coefficient) -> Floats:
    turned = np.moveaxis(_FEATURES[coefficient](columns), 0, 1)
    products = turned @ np.swapaxes(turned, 1, 2)
    norms = np.diagonal(products, axis1=1, axis2=2)
    return np.clip(share(products, np.sqrt(norms[:, :, None] * norms[:, None, :])), -1.0, 1.0)


def _signs(x: Floats) -> Floats:
    """The signs of x_k − x_l for every two, 0 where either is missing."""
    one, other = np.triu_indices(x.shape[-1], 1)
    return np.nan_to_num(np.sign(x[..., one] - x[..., other]))


def _ranks(x: Floats) -> Floats:
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
    found = np.empty(x.shape)
    np.put_along_axis(found, order, (first + last).astype(np.float64), axis=-1)
    return np.where(known, found - known.sum(axis=-1, keepdims=True), 0.0)


def _centred(x: Floats) -> Floats:
    """The values less their mean, 0 where they are missing, and all of them where they do not vary."""
    known = ~np.isnan(x)
    varies = np.where(known, x, -np.inf).max(axis=-1) > np.where(known, x, np.inf).min(axis=-1)
    filled = np.where(known, x, 0.0)
    middle = share(filled.sum(axis=-1), known.sum(axis=-1))
    return np.where(known & varies[..., None], filled - middle[..., None], 0.0)


_FEATURES: dict[Coefficient, Callable[[Floats], Floats]] = {"spearman": _ranks, "kendall": _signs, "pearson": _centred}
