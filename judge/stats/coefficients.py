"""Compute Spearman, Kendall's tau-b and Pearson of columns at three levels.

They are computed on tables and on resampled items. `within` and `between` return the coefficients
of rows; `coefficients` and `of_pair` return a `Statistic` of resampled items. All three are Γ = Σ
a_kl b_kl / √(Σ a_kl² Σ b_kl²) over pairs of texts (Daniels 1944). a_kl is the sign of x_k − x_l
(tau-b), the difference of their mid-ranks (Spearman) or of the values (Pearson). NaN is a missing
value; a value without a partner on the other side does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isnan, lcm
from typing import Any, Literal, get_args

import numpy as np

from judge.stats.bootstrap import Floats, Ints, Statistic, all_known, without_nan

Coefficient = Literal["spearman", "kendall", "pearson"]
COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)
Level = Literal["within-items", "all-texts", "systems"]
"""The three levels.

`within-items`: between the systems of an item, averaged over items (as in G-Eval); `all-texts`:
over all texts; `systems`: between system means.
"""
LEVELS: tuple[Level, ...] = get_args(Level)
Key = tuple[Level, Coefficient]
Cells = tuple[tuple[float | None, ...], ...]
"""Rows of numbers, None for a missing one."""
Pair = tuple[Floats, Floats]
"""Two sides, items × systems, NaN in both if either is missing."""
EXACT = 1_000
"""Spearman is ranked again in every resample up to this many texts.

25,600 of them would take seconds per pair (docs/decisions/0019).
"""
_EXACT_TAU = 300  # tau-b takes time with the square of the number of texts
_MAX_NUMBERS = 2_000_000  # numbers in memory
_DECIMALS = 9  # equal values may differ by rounding
_MAX_DENOMINATOR = 100  # of ratings: means over up to 100 raters, and two decimals
_ROUNDING = 1e-12  # smaller variance (of values scaled to a range of 1) counts as none
_MAX_CELLS = 100_000  # of a table of counts of value pairs
_BINS = 256  # of values for the derivative, if that table would be larger


def rounded(values: Floats) -> Floats:
    """Round values so that floating-point errors do not break ties."""
    rows: Floats = np.round(values, _DECIMALS)
    return rows


def share(part: Any, whole: Any) -> Floats:
    """Return the quotient, NaN if the divisor is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def none_for_nan(values: Floats) -> Cells:
    """Return the rows of an array with None for NaN."""
    rows: list[tuple[float | None, ...]] = []
    for row in values.tolist():
        cells = [None if isnan(value) else value for value in row]
        rows.append(tuple(cells))
    return tuple(rows)


def average(values: Any) -> Floats:
    """Return the mean over the first axis, without NaN."""
    is_known = ~np.isnan(values)
    total = np.where(is_known, values, 0.0).sum(axis=0)
    return share(total, is_known.sum(axis=0))


def paired(first_values: Floats, second_values: Floats) -> Pair:
    """Return both with NaN where either has NaN."""
    both = all_known(first_values, second_values)
    first_known = np.where(both, rounded(first_values), np.nan)
    second_known = np.where(both, rounded(second_values), np.nan)
    return first_known, second_known


# Coefficients of rows


def within(
    first_values: Floats, second_values: Floats, coefficient: Coefficient
) -> Floats:
    """Return the coefficient of each row; NaN if a side does not vary."""
    columns = np.stack(paired(first_values, second_values))
    values: Floats = between(columns, coefficient)[:, 0, 1]
    return values


def between(columns: Floats, coefficient: Coefficient) -> Floats:
    """Return each row's coefficients of all pairs of columns: rows × columns × columns.

    `columns` are columns × rows × values, missing in the same places. NaN if a side does not vary.
    """
    n_columns, n_rows, n_values = columns.shape
    if not n_rows:
        return np.empty((0, n_columns, n_columns))
    features_of = _FEATURES[coefficient]
    numbers_in_row = n_columns * n_values
    if coefficient == "kendall":  # its features are signs of all pairs of values
        numbers_in_row *= n_values
    # As many rows at once as fit into memory.
    step = max(1, _MAX_NUMBERS // max(1, numbers_in_row))
    chunks: list[Floats] = []
    for first_row in range(0, n_rows, step):
        some_rows = columns[:, first_row : first_row + step]
        # rows × columns × features
        features = np.moveaxis(features_of(some_rows), 0, 1)
        # Σ a b, rows × columns × columns
        products = features @ np.swapaxes(features, 1, 2)
        squares = np.diagonal(products, axis1=1, axis2=2)  # Σ a², rows × columns
        squares_of_pair = squares[:, :, None] * squares[:, None, :]
        norms = np.sqrt(squares_of_pair)
        chunks.append(np.clip(share(products, norms), -1.0, 1.0))
    return np.concatenate(chunks)


def _signs(values: Floats) -> Floats:
    """Return the signs of v_k − v_l for all pairs of values, 0 if either is missing."""
    first_index, second_index = np.triu_indices(values.shape[-1], 1)
    signs = np.sign(values[..., first_index] - values[..., second_index])
    return np.nan_to_num(signs)


def _centred_ranks(values: Floats) -> Floats:
    """Return twice the mid-rank minus its mean, 0 for a missing value."""
    is_known = ~np.isnan(values)
    size = values.shape[-1]
    positions = np.arange(size)
    order = np.argsort(values, axis=-1, kind="stable")  # NaN comes last
    filled = np.where(is_known, values, np.inf)
    ordered = np.take_along_axis(filled, order, axis=-1)
    # A group of equal values starts after each rise. Spread its first and its last position over
    # the group; their sum is twice the mid-rank.
    rises = ordered[..., 1:] > ordered[..., :-1]
    first_positions = np.zeros(values.shape, dtype=np.intp)
    first_positions[..., 1:] = np.where(rises, positions[1:], 0)
    first_positions = np.maximum.accumulate(first_positions, axis=-1)
    last_positions = np.full(values.shape, size)
    last_positions[..., :-1] = np.where(rises, positions[1:], size)
    from_the_end = np.minimum.accumulate(last_positions[..., ::-1], axis=-1)
    last_positions = from_the_end[..., ::-1]
    doubled_ranks = np.empty(values.shape)
    sum_of_ends = (first_positions + last_positions).astype(np.float64)
    np.put_along_axis(doubled_ranks, order, sum_of_ends, axis=-1)
    number_known = is_known.sum(axis=-1, keepdims=True)
    return np.where(is_known, doubled_ranks - number_known, 0.0)


def _centred(values: Floats) -> Floats:
    """Return the values minus their mean; 0 for missing values and for rows that do not vary."""
    is_known = ~np.isnan(values)
    # By the ends and not by the deviations, which rounding keeps from being 0.
    highest = np.where(is_known, values, -np.inf).max(axis=-1)
    lowest = np.where(is_known, values, np.inf).min(axis=-1)
    filled = np.where(is_known, values, 0.0)
    total = filled.sum(axis=-1)
    means = share(total, is_known.sum(axis=-1))
    varying = is_known & (highest > lowest)[..., None]
    return np.where(varying, filled - means[..., None], 0.0)


_FEATURES: dict[Coefficient, Callable[[Floats], Floats]] = {
    "spearman": _centred_ranks,
    "kendall": _signs,
    "pearson": _centred,
}


# Coefficients over all texts of resampled items. Each function takes columns × texts and every
# text's item. It returns a function from counts (resamples × items) to the Σ a b of two columns.

_Products = Callable[[int, int], Floats]
_ProductsOfResamples = Callable[[Floats], _Products]


def pooled(
    columns: Floats,
    pairs: Sequence[Sequence[int]],
    coefficient: Coefficient,
    *,
    exact: int,
) -> Statistic:
    """Return the coefficients of pairs of columns over all texts.

    `columns` are columns × items × systems, missing in the same places. Pearson is computed for
    each resample, Spearman for up to `exact` texts, tau-b for up to 300 of these. Otherwise they
    are linear in how often items are drawn: the value is exact, and a resample's is the value plus
    (counts − 1) times the derivative by each count (the infinitesimal jackknife; Efron 1982,
    ch. 6).
    """
    is_known = ~np.isnan(columns[0])
    item, system = np.nonzero(is_known)
    values = np.stack([column[item, system] for column in columns])
    n_items = columns.shape[1]
    if coefficient == "spearman" and len(item) > exact:
        return _linear(_rank_terms(values), pairs, item, n_items)
    if coefficient == "kendall" and len(item) > min(exact, _EXACT_TAU):
        return _linear(_tau_terms(values), pairs, item, n_items)
    products_of = _PREPARE[coefficient](values, item, n_items)
    step = max(1, _MAX_NUMBERS // max(1, len(item)))

    def statistic(counts: Floats) -> Floats:
        chunks: list[Floats] = []
        for first_resample in range(0, len(counts), step):
            products = products_of(counts[first_resample : first_resample + step])
            squares = [products(column, column) for column in range(len(values))]
            by_pair: list[Floats] = []
            for first_column, second_column in pairs:
                norms = np.sqrt(squares[first_column] * squares[second_column])
                by_pair.append(share(products(first_column, second_column), norms))
            by_resample = np.stack(by_pair, axis=1)
            chunks.append(np.clip(by_resample, -1.0, 1.0))
        return np.concatenate(chunks)

    return statistic


def _linear(
    terms: Callable[[int, int], _Terms],
    pairs: Sequence[Sequence[int]],
    item: Ints,
    n_items: int,
) -> Statistic:
    """Return coefficients that are linear in how often each item is drawn (see `pooled`)."""
    observed: list[float] = []
    slopes: list[Floats] = []  # the derivatives by how often each item is drawn
    for first_column, second_column in pairs:
        terms_of_pair = terms(first_column, second_column)
        slopes_by_item = [
            np.bincount(item, slope_by_text, minlength=n_items)
            for slope_by_text in terms_of_pair.slopes
        ]
        product_slope, first_slope, second_slope = slopes_by_item
        _, first_square, second_square = terms_of_pair.sums
        with np.errstate(invalid="ignore", divide="ignore"):
            # The derivative of Σ a b / √(Σ a² Σ b²) by the product and quotient rules.
            of_product = product_slope / np.sqrt(first_square * second_square)
            of_norms = first_slope / first_square + second_slope / second_square
            slope = of_product - terms_of_pair.coefficient / 2 * of_norms
        observed.append(terms_of_pair.coefficient)
        slopes.append(slope)
    values = np.array(observed)
    slope_by_pair = np.stack(slopes, axis=1)

    def statistic(counts: Floats) -> Floats:
        change = (counts - 1) @ slope_by_pair
        return np.clip(values + change, -1.0, 1.0)

    return statistic


def _moments(values: Floats, item: Ints, n_items: int) -> _ProductsOfResamples:
    """Return covariances: products of the values minus their mean in the resample."""
    # A range of 1 makes `_ROUNDING` fit every column, and sums of squares lose fewer digits.
    ranges = np.ptp(values, axis=1, keepdims=True)
    centred = values - values.mean(axis=1, keepdims=True)
    scaled = centred / np.where(ranges > 0, ranges, 1.0)
    number = np.bincount(item, minlength=n_items)
    sums_of_columns = [
        np.bincount(item, column, minlength=n_items) for column in scaled
    ]
    sums = np.stack(sums_of_columns, axis=1)

    def products_of(counts: Floats) -> _Products:
        n = counts @ number
        means = share(counts @ sums, n[:, None])

        def covariance(first: int, second: int) -> Floats:
            product = scaled[first] * scaled[second]
            moment = counts @ np.bincount(item, product, minlength=n_items)
            product_of_means = means[:, first] * means[:, second]
            spread = share(moment, n) - product_of_means
            # A variance of rounding errors would give a coefficient to equal values.
            if first == second:
                return np.where(spread > _ROUNDING, spread, 0.0)
            return spread

        return covariance

    return products_of


def _weighted_ranks(values: Floats, item: Ints, n_items: int) -> _ProductsOfResamples:
    """Return mid-ranks minus their mean; each text counts as often as it was drawn."""
    groups: list[_Groups] = []
    for column in values:
        order = np.argsort(column, kind="stable")
        ascending = column[order]
        _, starts, position = np.unique(
            ascending, return_index=True, return_inverse=True
        )
        group_of_text = position[np.argsort(order)]
        groups.append(_Groups(order, starts, group_of_text))

    def products_of(counts: Floats) -> _Products:
        weights = np.ascontiguousarray(counts.T)[item]  # texts × resamples
        ranks: list[Floats] = []
        for column in groups:
            ordered_weights = weights[column.order]
            by_value = np.add.reduceat(ordered_weights, column.starts, axis=0)
            mid_ranks = np.cumsum(by_value, axis=0) - by_value / 2
            centred = mid_ranks - by_value.sum(axis=0) / 2
            ranks.append(centred[column.group_of_text])

        def product(first: int, second: int) -> Floats:
            # Sum over texts t for each resample r.
            sums: Floats = np.einsum(
                "tr,tr,tr->r", weights, ranks[first], ranks[second]
            )
            return sums

        return product

    return products_of


@dataclass(frozen=True, slots=True)
class _Groups:
    """A column's groups of equal values: texts by value, where each group starts, and its texts."""

    order: Ints
    starts: Ints
    group_of_text: Ints


def _weighted_signs(values: Floats, item: Ints, n_items: int) -> _ProductsOfResamples:
    """Return signs over all pairs of texts. A text drawn twice is tied with itself."""
    signs = [np.sign(np.subtract.outer(column, column)) for column in values]

    def products_of(counts: Floats) -> _Products:
        weights = counts[:, item]

        def product(first: int, second: int) -> Floats:
            concordance = signs[first] * signs[second]
            sums: Floats = np.einsum("rt,rt->r", weights @ concordance, weights)
            return sums

        return product

    return products_of


_PREPARE: dict[Coefficient, Callable[[Floats, Ints, int], _ProductsOfResamples]] = {
    "spearman": _weighted_ranks,
    "kendall": _weighted_signs,
    "pearson": _moments,
}


@dataclass(frozen=True, slots=True)
class _Terms:
    """The coefficient of two columns, and the parts of its fraction.

    `sums` are Σ a b, Σ a² and Σ b²; `slopes` has the derivative of each by every text's weight.
    """

    coefficient: float
    sums: Floats
    slopes: Floats


def _ratio(sums: Floats) -> float:
    """Return the coefficient of Σ a b, Σ a² and Σ b²; NaN if a side does not vary."""
    product, first_square, second_square = sums
    norm = np.sqrt(first_square * second_square)
    return float(np.clip(share(product, norm), -1.0, 1.0))


def _rank_terms(values: Floats) -> Callable[[int, int], _Terms]:
    """Return the parts of Spearman: Σ a b = Σ_k A_k B_k.

    A_k is twice the mid-rank minus its mean. The sign of x_k − x_i changes it with text i.
    """
    groups = [np.unique(column, return_inverse=True)[1] for column in values]

    def above(column: int, numbers: Floats) -> Floats:
        """Return Σ_k sign(x_k − x_i) · numbers_k for each text i."""
        by_value = np.bincount(groups[column], numbers)
        up_to_value = np.cumsum(by_value)
        above_minus_below = by_value.sum() + by_value - 2 * up_to_value
        return np.asarray(above_minus_below[groups[column]])

    ones = np.ones(values.shape[1])
    ranks = [-above(column, ones) for column in range(len(values))]

    def slope_of_product(first: int, second: int) -> Floats:
        """Return the derivative of Σ_k A_k B_k by each text's weight, by the product rule."""
        own_product = ranks[first] * ranks[second]
        change_of_second = above(first, ranks[second])
        change_of_first = above(second, ranks[first])
        return own_product + change_of_second + change_of_first

    def terms(first: int, second: int) -> _Terms:
        products = [(first, second), (first, first), (second, second)]
        scalar_products = [
            ranks[column] @ ranks[partner] for column, partner in products
        ]
        sums = np.array(scalar_products)
        slopes = [slope_of_product(column, partner) for column, partner in products]
        return _Terms(_ratio(sums), sums, np.stack(slopes))

    return terms


def _tau_terms(values: Floats) -> Callable[[int, int], _Terms]:
    """Return the parts of tau-b, from counts of how often two ranks meet.

    Each text contributes Σ_l sign(x_k − x_l) sign(y_k − y_l).
    """
    groups = [np.unique(column, return_inverse=True)[1] for column in values]
    sizes = [int(group.max(initial=0)) + 1 for group in groups]

    def binned(column: int) -> Ints:
        """Return a column's ranks in at most `_BINS` bins."""
        if sizes[column] <= _BINS:
            return groups[column]
        bins: Ints = groups[column] * _BINS // sizes[column]
        return bins

    def terms(first: int, second: int) -> _Terms:
        too_large = sizes[first] * sizes[second] > _MAX_CELLS
        rows = binned(first) if too_large else groups[first]
        columns = binned(second) if too_large else groups[second]
        concordance = _concordance(rows, columns)
        untied = [_untied_texts(ranks) for ranks in (rows, columns)]
        slopes = np.stack([concordance, *untied]).astype(np.float64)
        sums = slopes.sum(axis=1)
        # Bins are good enough for the derivative; the value itself is exact.
        coefficient = _tau(groups[first], groups[second]) if too_large else _ratio(sums)
        return _Terms(coefficient, sums, 2 * slopes)

    return terms


def _untied_texts(ranks: Ints) -> Ints:
    """Return for each text the number of texts with another rank."""
    tied = np.bincount(ranks)[ranks]
    untied: Ints = len(ranks) - tied
    return untied


def _concordance(first_ranks: Ints, second_ranks: Ints) -> Ints:
    """Return each text's concordant minus discordant pairs, from its two ranks."""
    width = int(second_ranks.max(initial=0)) + 1
    height = int(first_ranks.max(initial=0)) + 1
    cell_of_text = first_ranks * width + second_ranks
    table = np.bincount(cell_of_text, minlength=height * width).reshape(height, width)
    by_column = _less_above(table).T
    by_cell = _less_above(by_column).T
    concordance: Ints = by_cell[first_ranks, second_ranks]
    return concordance


def _less_above(table: Ints) -> Ints:
    """Return for every row the sum of the rows above minus that of the rows below."""
    up_to = np.cumsum(table, axis=0)
    difference: Ints = 2 * up_to - table - up_to[-1]
    return difference


def _tau(first_ranks: Ints, second_ranks: Ints) -> float:
    """Return tau-b of two rankings, counting discordant pairs in a merge sort (Knight 1966)."""
    size = len(first_ranks)
    joint_ranks = first_ranks * (int(second_ranks.max()) + 1) + second_ranks
    tied_first = _pairs_in_groups(first_ranks)
    tied_second = _pairs_in_groups(second_ranks)
    tied_both = _pairs_in_groups(joint_ranks)
    discordant = _inversions(second_ranks[np.argsort(joint_ranks)])
    all_pairs = size * size
    # Each sum counts a pair in both orders; `discordant` counts it once.
    untied = all_pairs - tied_first - tied_second + tied_both
    concordant_less_discordant = untied - 4 * discordant
    sums = [concordant_less_discordant, all_pairs - tied_first, all_pairs - tied_second]
    return _ratio(np.array(sums, dtype=np.float64))


def _inversions(ranks: Ints) -> int:
    """Return the number of pairs whose first rank is larger than the second, in a merge sort."""
    size = len(ranks)
    # A number larger than every rank fills the list up to a power of two.
    beyond = int(ranks.max()) + 1
    ordered = np.full(1 << (size - 1).bit_length(), beyond)
    ordered[:size] = ranks
    inversions = 0
    width = 1
    while width < size:
        # Blocks of two sorted halves. An offset for each block keeps the search within its block.
        n_blocks = len(ordered) // (2 * width)
        offsets = (beyond + 1) * np.arange(n_blocks)
        halves = ordered.reshape(-1, 2, width) + offsets[:, None, None]
        first_halves = halves[:, 0].ravel()
        second_halves = halves[:, 1].ravel()
        # Ranks of all first halves up to each rank of a second half. Those of its own block that
        # are not among them are larger.
        up_to_rank = np.searchsorted(first_halves, second_halves, "right")
        end_of_block = np.arange(1, n_blocks + 1) * width
        ends = np.repeat(end_of_block, width)
        inversions += int((ends - up_to_rank).sum())
        width *= 2
        merged = np.sort(ordered.reshape(-1, width), axis=1)
        ordered = merged.ravel()
    return inversions


def _pairs_in_groups(groups: Ints) -> int:
    """Return the number of pairs of texts (in both orders, each with itself too) in one group."""
    _, counts = np.unique(groups, return_counts=True)
    return int((counts**2).sum())


# Statistics at each level


def mean(by_item: Floats) -> Statistic:
    """Return the mean over the drawn items (the first axis) with a value."""
    is_known = ~np.isnan(by_item)
    values = np.where(is_known, by_item, 0.0)
    number = is_known.astype(np.float64)
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
    first_columns, second_columns = np.array(pairs).T
    if level == "within-items":
        return mean(between(columns, name)[:, first_columns, second_columns])
    if level == "all-texts":
        return pooled(columns, pairs, name, exact=exact)
    between_columns = _between_systems(columns, name)
    return lambda counts: between_columns(counts)[:, first_columns, second_columns]


def _between_systems(columns: Floats, coefficient: Coefficient) -> Statistic:
    """Return the coefficients of system means: resamples × columns × columns."""
    is_known = (~np.isnan(columns[0])).astype(np.float64)
    # One product for all columns: items × (columns · systems).
    whole = np.stack([_whole_numbers(column) for column in columns])
    by_item = np.moveaxis(np.nan_to_num(whole), 0, 1)
    filled = by_item.reshape(columns.shape[1], -1)
    step = max(1, _MAX_NUMBERS // max(1, filled.shape[1]))

    def statistic(counts: Floats) -> Floats:
        chunks: list[Floats] = []
        for first_resample in range(0, len(counts), step):
            drawn = counts[first_resample : first_resample + step]
            sums = drawn @ filled
            sums_by_column = sums.reshape(len(drawn), len(columns), -1)
            number_drawn = (drawn @ is_known)[:, None]
            means = share(sums_by_column, number_drawn)  # resamples × columns × systems
            chunks.append(between(np.moveaxis(means, 1, 0), coefficient))
        return np.concatenate(chunks)

    return statistic


def _whole_numbers(values: Floats) -> Floats:
    """Return values times their common denominator (such as 3 for means of three raters).

    If there is none, return them times 10⁹. Sums of whole numbers are exact, so that equal means
    are equal numbers: sums of thirds rounded to any decimals are not.
    """
    common = 1
    for value in np.unique(without_nan(values)).tolist():
        denominator = _denominator(value)
        common = lcm(common, denominator)
        # Larger multiples would not be exact as sums of floats.
        if not denominator or common > _MAX_DENOMINATOR**2:
            common = 10**_DECIMALS
            break
    whole: Floats = np.rint(values * common)
    return whole


@lru_cache(maxsize=10_000)
def _denominator(value: float) -> int:
    """Return the denominator of the fraction that equals a value up to rounding errors.

    Return 0 if no fraction with a small denominator does.
    """
    fraction = Fraction(value).limit_denominator(_MAX_DENOMINATOR)
    distance = abs(fraction - Fraction(value))
    if distance > 10 * 0.1**_DECIMALS:
        return 0
    return fraction.denominator


def of_pair(
    first_values: Floats,
    second_values: Floats,
    level: Level,
    coefficient: Coefficient,
    *,
    exact: int = EXACT,
) -> Statistic:
    """Return the coefficient of two columns on the texts of both.

    They are items × systems with NaN for missing values.
    """
    columns = np.stack(paired(first_values, second_values))
    statistic = coefficients(columns, [(0, 1)], level, coefficient, exact)
    return lambda counts: statistic(counts)[:, 0]
