"""Compute Spearman, Kendall's tau-b and Pearson of columns, on tables and on resampled items, at three levels.

`within` and `between` return the coefficients of rows; `coefficients` and `of_pair` return a `Statistic` of resampled
items. All three are Γ = Σ a_kl b_kl / √(Σ a_kl² Σ b_kl²) over pairs of texts (Daniels 1944). a_kl is the sign of x_k −
x_l (tau-b), the difference of their mid-ranks (Spearman) or of the values (Pearson). NaN is a missing value; a value
without a partner on the other side does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import lcm
from typing import Any, Literal, get_args

import numpy as np

from judge.stats.bootstrap import Floats, Ints, Statistic

Coefficient = Literal["spearman", "kendall", "pearson"]
COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)
Level = Literal["document", "item", "system"]
"""`document`: between the systems of an item, averaged over items (as in G-Eval); `item`: over all texts; `system`:
between system means.
"""
LEVELS: tuple[Level, ...] = get_args(Level)
Key = tuple[Level, Coefficient]
Pair = tuple[Floats, Floats]
"""Two sides, items × systems, NaN in both if either is missing."""
EXACT = 1_000
"""Spearman is ranked again in every resample up to this many texts; 25,600 of them would take seconds per pair."""
_EXACT_TAU = 300
_MAX_NUMBERS = 2_000_000  # numbers in memory
_DECIMALS = 9  # equal values may differ by rounding
_MAX_DENOMINATOR = 100  # of ratings: means over raters, and two decimals
_ROUNDING = 1e-12  # smaller variance (of values scaled to a range of 1) counts as none
_MAX_CELLS = 100_000  # of a table of counts of value pairs
_BINS = 256  # of values for the derivative, if that table would be larger


def rounded(x: Floats) -> Floats:
    """Round values so that floating-point errors do not break ties."""
    rows: Floats = np.round(x, _DECIMALS)
    return rows


def share(part: Any, whole: Any) -> Floats:
    """Return the quotient, NaN if the divisor is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def average(values: Any) -> Floats:
    """Return the mean over the first axis, without NaN."""
    known = ~np.isnan(values)
    return share(np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0))


def paired(x: Floats, y: Floats) -> Pair:
    """Return both with NaN where either has NaN."""
    both = ~(np.isnan(x) | np.isnan(y))
    return np.where(both, rounded(x), np.nan), np.where(both, rounded(y), np.nan)


# Coefficients of rows


def within(x: Floats, y: Floats, coefficient: Coefficient) -> Floats:
    """Return the coefficient of each row; NaN if a side does not vary."""
    values: Floats = between(np.stack(paired(x, y)), coefficient)[:, 0, 1]
    return values


def between(columns: Floats, coefficient: Coefficient) -> Floats:
    """Return each row's coefficients (rows × columns × columns) of columns × rows × values, missing in the same places.

    NaN if a side does not vary.
    """
    number, rows, size = columns.shape
    step = max(1, _MAX_NUMBERS // max(1, number * size * (size if coefficient == "kendall" else 1)))
    parts = []
    for at in range(0, rows, step):
        features = np.moveaxis(_FEATURES[coefficient](columns[:, at : at + step]), 0, 1)
        products = features @ np.swapaxes(features, 1, 2)
        norms = np.diagonal(products, axis1=1, axis2=2)
        parts.append(
            np.clip(share(products, np.sqrt(norms[:, :, None] * norms[:, None, :])), -1.0, 1.0)
        )
    return np.concatenate(parts) if parts else np.empty((0, number, number))


def _signs(x: Floats) -> Floats:
    """Return the signs of x_k − x_l for all pairs, 0 if either is missing."""
    first, second = np.triu_indices(x.shape[-1], 1)
    return np.nan_to_num(np.sign(x[..., first] - x[..., second]))


def _centred_ranks(x: Floats) -> Floats:
    """Return twice the mid-rank minus its mean, 0 for a missing value."""
    known = ~np.isnan(x)
    order = np.argsort(x, axis=-1, kind="stable")  # NaN comes last
    ordered = np.take_along_axis(np.where(known, x, np.inf), order, axis=-1)
    place, size = np.arange(x.shape[-1]), x.shape[-1]
    new = ordered[..., 1:] > ordered[..., :-1]
    first, last = np.zeros(x.shape, dtype=np.intp), np.full(x.shape, size)
    first[..., 1:] = np.where(new, place[1:], 0)
    last[..., :-1] = np.where(new, place[1:], size)
    first = np.maximum.accumulate(first, axis=-1)
    last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
    doubled = np.empty(x.shape)
    np.put_along_axis(doubled, order, (first + last).astype(np.float64), axis=-1)
    return np.where(known, doubled - known.sum(axis=-1, keepdims=True), 0.0)


def _centred(x: Floats) -> Floats:
    """Return the values minus their mean; 0 for missing values and for rows that do not vary."""
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


# Coefficients over all texts of resampled items. Each function takes columns × texts and every text's item. It returns
# a function from counts (resamples × items) to the Σ a b of two columns.

_Products = Callable[[int, int], Floats]


def pooled(
    columns: Floats, pairs: Sequence[Sequence[int]], coefficient: Coefficient, *, exact: int
) -> Statistic:
    """Return the coefficients of pairs of columns over all texts.

    `columns` are columns × items × systems, missing in the same places. Pearson is computed for each resample, Spearman
    for up to `exact` texts, tau-b for up to 300 of these. Otherwise they are linear in how often items are drawn: the
    value is exact, and a resample's is the value plus (counts − 1) times the derivative by each count (the
    infinitesimal jackknife; Efron 1982, ch. 6).
    """
    item, _ = known = np.nonzero(~np.isnan(columns[0]))
    values, n_items = np.stack([column[known] for column in columns]), columns.shape[1]
    if coefficient != "pearson" and len(item) > (
        exact if coefficient == "spearman" else min(exact, _EXACT_TAU)
    ):
        terms = _rank_terms(values) if coefficient == "spearman" else _tau_terms(values)
        observed, slopes = [], []  # the derivatives by how often each item is drawn
        for value, sums, of_texts in (terms(i, j) for i, j in pairs):
            both, first, second = (np.bincount(item, each, minlength=n_items) for each in of_texts)
            with np.errstate(invalid="ignore", divide="ignore"):
                slope = both / np.sqrt(sums[1] * sums[2]) - value / 2 * (
                    first / sums[1] + second / sums[2]
                )
            observed.append(value)
            slopes.append(slope)
        slope_by_pair = np.stack(slopes, axis=1)
        return lambda counts: np.clip(np.array(observed) + (counts - 1) @ slope_by_pair, -1.0, 1.0)
    prepare = {"pearson": _moments, "spearman": _weighted_ranks, "kendall": _weighted_signs}[
        coefficient
    ]
    products_of = prepare(values, item, n_items)
    step = max(1, _MAX_NUMBERS // max(1, len(item)))

    def statistic(counts: Floats) -> Floats:
        parts = []
        for at in range(0, len(counts), step):
            products = products_of(counts[at : at + step])
            norms = [products(column, column) for column in range(len(values))]
            each = [share(products(i, j), np.sqrt(norms[i] * norms[j])) for i, j in pairs]
            parts.append(np.clip(np.stack(each, axis=1), -1.0, 1.0))
        return np.concatenate(parts)

    return statistic


def _moments(values: Floats, item: Ints, n_items: int) -> Callable[[Floats], _Products]:
    spans = np.ptp(values, axis=1, keepdims=True)
    values = (values - values.mean(axis=1, keepdims=True)) / np.where(spans > 0, spans, 1.0)
    number = np.bincount(item, minlength=n_items)
    sums = np.stack([np.bincount(item, column, minlength=n_items) for column in values], axis=1)

    def products_of(counts: Floats) -> _Products:
        n = counts @ number
        means = share(counts @ sums, n[:, None])

        def covariance(i: int, j: int) -> Floats:
            moment = counts @ np.bincount(item, values[i] * values[j], minlength=n_items)
            spread = share(moment, n) - means[:, i] * means[:, j]
            return np.where(spread > _ROUNDING, spread, 0.0) if i == j else spread

        return covariance

    return products_of


def _weighted_ranks(values: Floats, item: Ints, n_items: int) -> Callable[[Floats], _Products]:
    """Return mid-ranks minus their mean; each text counts as often as it was drawn."""
    grouped = []
    for column in values:
        order = np.argsort(column, kind="stable")
        _, starts, place = np.unique(column[order], return_index=True, return_inverse=True)
        grouped.append((order, starts, place[np.argsort(order)]))

    def products_of(counts: Floats) -> _Products:
        weights = np.ascontiguousarray(counts.T)[item]  # texts × resamples
        ranks = []
        for order, starts, place in grouped:
            by_value = np.add.reduceat(weights[order], starts, axis=0)
            middle = np.cumsum(by_value, axis=0) - by_value / 2 - by_value.sum(axis=0) / 2
            ranks.append(middle[place])
        return lambda i, j: np.einsum("tr,tr,tr->r", weights, ranks[i], ranks[j])

    return products_of


def _weighted_signs(values: Floats, item: Ints, n_items: int) -> Callable[[Floats], _Products]:
    """Return signs over all pairs of texts. A text drawn twice is tied with itself."""
    signs = [np.sign(column[:, None] - column[None, :]) for column in values]

    def products_of(counts: Floats) -> _Products:
        weights = counts[:, item]
        return lambda i, j: np.einsum("rt,rt->r", weights @ (signs[i] * signs[j]), weights)

    return products_of


_Terms = tuple[float, Floats, Floats]
"""The coefficient of two columns, their Σ a b, Σ a² and Σ b², and the derivative of each by every text's weight."""


def _ratio(sums: Floats) -> float:
    return float(np.clip(share(sums[0], np.sqrt(sums[1] * sums[2])), -1.0, 1.0))


def _rank_terms(values: Floats) -> Callable[[int, int], _Terms]:
    """Return Σ a b = Σ_k A_k B_k, A_k twice the mid-rank minus its mean, which the sign of x_k − x_i changes with i."""
    groups = [np.unique(column, return_inverse=True)[1] for column in values]

    def above(column: int, numbers: Floats) -> Floats:
        """Return each text's Σ_k sign(x_k − x_i) of these numbers."""
        by_value = np.bincount(groups[column], numbers)
        return np.asarray((by_value.sum() + by_value - 2 * np.cumsum(by_value))[groups[column]])

    ranks = [-above(column, np.ones(values.shape[1])) for column in range(len(values))]

    def terms(i: int, j: int) -> _Terms:
        products = [(i, j), (i, i), (j, j)]
        sums = np.array([ranks[a] @ ranks[b] for a, b in products])
        slopes = [
            ranks[a] * ranks[b] + above(a, ranks[b]) + above(b, ranks[a]) for a, b in products
        ]
        return _ratio(sums), sums, np.stack(slopes)

    return terms


def _tau_terms(values: Floats) -> Callable[[int, int], _Terms]:
    """Return each text's Σ_l sign(x_k − x_l) sign(y_k − y_l), from counts of how often two ranks meet."""
    groups = [np.unique(column, return_inverse=True)[1] for column in values]
    sizes = [int(group.max(initial=0)) + 1 for group in groups]

    def less_above(table: Ints) -> Ints:
        """Return for every row the sum of the rows above minus that of the rows below."""
        up_to = np.cumsum(table, axis=0)
        difference: Ints = 2 * up_to - table - up_to[-1]
        return difference

    def terms(i: int, j: int) -> _Terms:
        binned = sizes[i] * sizes[j] > _MAX_CELLS
        first, second = (
            groups[k] * _BINS // sizes[k] if binned and sizes[k] > _BINS else groups[k]
            for k in (i, j)
        )
        across = int(second.max(initial=0)) + 1
        down = int(first.max(initial=0)) + 1
        table = np.bincount(first * across + second, minlength=down * across).reshape(down, across)
        concordance = less_above(less_above(table).T).T[first, second]
        untied = [len(group) - np.bincount(group)[group] for group in (first, second)]
        slopes = np.stack([concordance, *untied]).astype(np.float64)
        sums = slopes.sum(axis=1)
        return _tau(groups[i], groups[j]) if binned else _ratio(sums), sums, 2 * slopes

    return terms


def _tau(first: Ints, second: Ints) -> float:
    """Return tau-b of two rankings, counting discordant pairs in a merge sort (Knight 1966)."""
    size, joint = len(first), first * (int(second.max()) + 1) + second
    tied = [
        int((np.unique(places, return_counts=True)[1] ** 2).sum())
        for places in (first, second, joint)
    ]
    width, discordant, beyond = 1, 0, int(second.max()) + 1
    ordered = np.full(1 << (size - 1).bit_length(), beyond)
    ordered[:size] = second[np.argsort(joint)]
    while width < size:
        halves = (
            ordered.reshape(-1, 2, width)
            + (beyond + 1) * np.arange(len(ordered) // (2 * width))[:, None, None]
        )
        smaller = np.searchsorted(halves[:, 0].ravel(), halves[:, 1].ravel(), "right")
        discordant += int((np.repeat(np.arange(1, len(halves) + 1) * width, width) - smaller).sum())
        width *= 2
        ordered = np.sort(ordered.reshape(-1, width), axis=1).ravel()
    concordant_less = size * size - tied[0] - tied[1] + tied[2] - 4 * discordant
    return _ratio(
        np.array([concordant_less, size * size - tied[0], size * size - tied[1]], dtype=np.float64)
    )


# Statistics at each level


def mean(by_item: Floats) -> Statistic:
    """Return the mean over the drawn items (the first axis) with a value."""
    known = ~np.isnan(by_item)
    values, number = np.where(known, by_item, 0.0), known.astype(np.float64)
    return lambda counts: share(counts @ values, counts @ number)


def coefficients(
    columns: Floats,
    pairs: Sequence[Sequence[int]],
    level: Level,
    name: Coefficient,
    exact: int = EXACT,
) -> Statistic:
    """Return the coefficient of pairs of columns at a level: resamples × pairs.

    `columns` are columns × items × systems, missing in the same places.
    """
    first, second = np.array(pairs).T
    if level == "document":
        return mean(between(columns, name)[:, first, second])
    if level == "item":
        return pooled(columns, pairs, name, exact=exact)
    number = (~np.isnan(columns[0])).astype(np.float64)
    # One product for all columns: items × (columns · systems).
    whole = np.stack([_whole_numbers(column) for column in columns])
    filled = np.moveaxis(np.nan_to_num(whole), 0, 1).reshape(columns.shape[1], -1)
    step = max(1, _MAX_NUMBERS // max(1, filled.shape[1]))

    def between_systems(counts: Floats) -> Floats:
        parts = []
        for at in range(0, len(counts), step):
            drawn = counts[at : at + step]
            sums = (drawn @ filled).reshape(len(drawn), len(columns), -1)
            means = np.moveaxis(share(sums, (drawn @ number)[:, None]), 1, 0)
            parts.append(between(means, name)[:, first, second])
        return np.concatenate(parts)

    return between_systems


def _whole_numbers(values: Floats) -> Floats:
    """Return values times their common denominator (such as 3 for means of three raters), or else times 10⁹.

    Sums of whole numbers are exact, so that equal means are equal numbers: of thirds rounded to any decimals they are
    not.
    """
    common = 1
    for value in np.unique(values[~np.isnan(values)]).tolist():
        fraction = Fraction(value).limit_denominator(_MAX_DENOMINATOR)
        common = lcm(common, fraction.denominator)
        if abs(fraction - Fraction(value)) > 10 * 0.1**_DECIMALS or common > _MAX_DENOMINATOR**2:
            common = 10**_DECIMALS
            break
    whole: Floats = np.rint(values * common)
    return whole


def of_pair(
    x: Floats, y: Floats, level: Level, coefficient: Coefficient, *, exact: int = EXACT
) -> Statistic:
    """Return the coefficient of two columns, items × systems with NaN for missing values, on the texts of both."""
    statistic = coefficients(np.stack(paired(x, y)), [(0, 1)], level, coefficient, exact)
    return lambda counts: statistic(counts)[:, 0]
