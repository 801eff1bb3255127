"""Correlate all columns of a run with each other, at the levels of `judge.stats.correlation`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np

from judge.core.records import Column
from judge.stats.bootstrap import DEFAULT, Bools, Bootstrap, Floats, Ints
from judge.stats.coefficients import (
    COEFFICIENTS,
    LEVELS,
    Cells,
    Coefficient,
    Key,
    Level,
    average,
    between,
    coefficients,
    none_for_nan,
    rounded,
)
from judge.stats.correlation import (
    INTERVAL_ITEMS,
    METHOD_WITHIN_ITEMS,
    NAMES,
    OVER,
    mean_over_items,
    too_few_for_level,
)
from judge.table import Table

MOST = 24
"""The most columns of a matrix."""
# With more texts, Spearman over all texts is not ranked in every resample.
_MATRIX_EXACT = 200
# For tau-b within items and between systems, which takes k (k − 1) / 2 signs per row.
_MAX_TAU_SYSTEMS = 64


@dataclass(frozen=True, slots=True)
class Matrix:
    """A coefficient between all pairs of columns at a level (see `judge.stats.correlation`).

    Rows and columns of `values`, `low`, `high` and `n` are in the order of `names`; None without a
    value or interval. The diagonal is 1 if the column varies, without an interval. `n` counts the
    items of a value (level `within-items`), the texts (`all-texts`) or the systems (`systems`); on
    the diagonal those with a value. `note` explains what was left out.
    """

    level: Level
    coefficient: Coefficient
    names: tuple[str, ...]
    values: Cells
    low: Cells
    high: Cells
    n: tuple[tuple[int, ...], ...]
    method: str = ""
    note: str = ""


def matrices(table: Table, bootstrap: Bootstrap = DEFAULT) -> tuple[Matrix, ...]:
    """Return the matrices of all columns with values of single texts.

    There is one for Spearman, tau-b and Pearson at each level. Criteria come first (a panel's mean,
    then its judges); at most 24 columns are used. A pair uses the texts with both values. Intervals
    are as in `CorrelationWithRatings`, from the same resamples for all pairs. Over all texts tau-b
    and, for more than 200, Spearman are linear in the draws (`pooled`). Return none for fewer than
    two columns and for comparisons.
    """
    if table.has_pairs:
        return ()
    scored = [column for column in table.columns if _has_values_of_texts(table, column)]
    scored.sort(key=_order_in_matrix)
    names = tuple(column.name for column in scored[:MOST])
    if len(names) < 2:
        return ()
    note = ""
    if len(scored) > MOST:
        note = f"the first {MOST} of {len(scored)} columns, criteria before metrics"
    values = np.stack([_values_in_matrix(table, column_name) for column_name in names])
    groups = _pairs_on_same_texts(~np.isnan(values))
    keys = product(LEVELS, COEFFICIENTS)
    return tuple(
        _matrix(names, values, groups, key, bootstrap, note=note) for key in keys
    )


def _has_values_of_texts(table: Table, column: Column) -> bool:
    """Return whether any text has a value; corpus columns have values of systems only."""
    if column.name in table.corpus_columns:
        return False
    return bool(table.column_scores(column.name))


def _values_in_matrix(table: Table, column_name: str) -> Floats:
    """Return the values of a column, items × systems."""
    return rounded(table.matrix(column_name).T)


def _order_in_matrix(column: Column) -> int:
    """Return 0 for a criterion or a panel, 1 for a judge of a panel, 2 for a metric."""
    if column.kind != "criterion":
        return 2
    return 1 if column.judge else 0


_PairsOfColumns = list[tuple[int, int]]


def _pairs_on_same_texts(present: Bools) -> list[_PairsOfColumns]:
    """Group all pairs of columns by the texts that have both; a group shares its resamples.

    `present` is True for cells (columns × items × systems) with a value.
    """
    groups: dict[bytes, _PairsOfColumns] = {}
    columns = range(len(present))
    for pair in combinations_with_replacement(columns, 2):
        first_column, second_column = pair
        both = present[first_column] & present[second_column]
        # As bytes, which can be the key of a dict.
        texts = np.packbits(both).tobytes()
        groups.setdefault(texts, []).append(pair)
    return list(groups.values())


def _matrix(
    names: tuple[str, ...],
    values: Floats,
    groups: Sequence[_PairsOfColumns],
    key: Key,
    bootstrap: Bootstrap,
    *,
    note: str,
) -> Matrix:
    """Return the coefficients of all pairs of columns at one level.

    `values` are columns × items × systems, NaN for missing ones.
    """
    level, coefficient = key
    cells = _cells(values, groups, key, bootstrap)
    has_value = ~np.isnan(values)
    is_known: Bools = np.asarray(has_value.any(axis=0))
    reason_empty = _reason_empty(is_known, level, coefficient)
    # A column correlates with itself by 1, unless all of its values are equal.
    is_constant = np.isnan(np.diagonal(cells.values))
    constant = [names[column] for column in np.flatnonzero(is_constant)]
    notes = [note]
    if reason_empty:
        notes.append(reason_empty)
    elif constant:
        in_items = " in each item" if level == "within-items" else ""
        notes.append(f"all values are equal{in_items}: {', '.join(constant)}")
    interval = METHOD_WITHIN_ITEMS if level == "within-items" else str(bootstrap)
    n = tuple(tuple(row) for row in cells.n.tolist())
    return Matrix(
        level,
        coefficient,
        names,
        values=none_for_nan(cells.values),
        low=none_for_nan(cells.low),
        high=none_for_nan(cells.high),
        n=n,
        method=f"{NAMES[coefficient]} {OVER[level]}; {interval}",
        note="; ".join(filter(None, notes)),
    )


@dataclass(frozen=True, slots=True)
class _CellsOfColumns:
    """Values with both ends of their interval (NaN if unknown) and n, columns × columns."""

    values: Floats
    low: Floats
    high: Floats
    n: Ints

    @classmethod
    def empty(cls, n_columns: int) -> _CellsOfColumns:
        """Return cells without values."""
        shape = (n_columns, n_columns)
        values = np.full(shape, np.nan)
        n = np.zeros(shape, dtype=np.intp)
        return cls(values, low=values.copy(), high=values.copy(), n=n)

    def fill(self, rows: Ints, columns: Ints, pairs: _CellsOfPairs) -> None:
        """Write the cells of pairs of columns into these rows and columns."""
        self.values[rows, columns] = pairs.values
        self.low[rows, columns] = pairs.low
        self.high[rows, columns] = pairs.high
        self.n[rows, columns] = pairs.n


def _cells(
    values: Floats,
    groups: Sequence[_PairsOfColumns],
    key: Key,
    bootstrap: Bootstrap,
) -> _CellsOfColumns:
    """Return the coefficients of all pairs of columns; those of a group have the same texts."""
    level, coefficient = key
    cells = _CellsOfColumns.empty(len(values))
    for pairs in groups:
        # All pairs of a group have the same texts, so the first stands for all.
        first_pair = values[list(pairs[0])]
        is_known: Bools = np.asarray(~np.isnan(first_pair).any(axis=0))
        if _reason_empty(is_known, level, coefficient):
            continue
        # The coefficients of the group's columns alone, with the pairs numbered among these.
        columns_of_group, positions = np.unique(pairs, return_inverse=True)
        columns = np.where(is_known, values[columns_of_group], np.nan)
        within_group = positions.reshape(-1, 2)
        # A column with itself has no interval.
        off_diagonal = [
            index for index, (first, second) in enumerate(pairs) if first != second
        ]
        if level == "within-items":
            group = _within_items(
                columns, within_group, coefficient, off_diagonal, bootstrap
            )
        else:
            group = _over_texts(columns, within_group, key, off_diagonal, bootstrap)
        first_columns, second_columns = np.array(pairs).T
        cells.fill(first_columns, second_columns, group)
        # The matrix is symmetric: each pair fills two cells.
        cells.fill(second_columns, first_columns, group)
    return cells


@dataclass(frozen=True, slots=True)
class _CellsOfPairs:
    """The cells of a group of pairs, one value for each pair; `n` may be one number for all."""

    values: Floats
    low: Floats
    high: Floats
    n: Ints


def _within_items(
    columns: Floats,
    pairs: Ints,
    coefficient: Coefficient,
    off_diagonal: Sequence[int],
    bootstrap: Bootstrap,
) -> _CellsOfPairs:
    """Return means over items of the coefficients of pairs of columns within items.

    `columns` are columns × items × systems, `pairs` two positions among them, and the pairs at the
    indices `off_diagonal` get an interval.
    """
    first_columns, second_columns = pairs.T
    by_item = between(columns, coefficient)[:, first_columns, second_columns]
    lower_bounds = np.full(len(pairs), np.nan)
    upper_bounds = np.full(len(pairs), np.nan)
    for index in off_diagonal:
        estimate = mean_over_items("", by_item[:, index], "", bootstrap.confidence)
        if estimate is None or estimate.low is None or estimate.high is None:
            continue
        lower_bounds[index] = estimate.low
        upper_bounds[index] = estimate.high
    n_items = (~np.isnan(by_item)).sum(axis=0)
    return _CellsOfPairs(average(by_item), lower_bounds, upper_bounds, n_items)


def _over_texts(
    columns: Floats,
    pairs: Ints,
    key: Key,
    off_diagonal: Sequence[int],
    bootstrap: Bootstrap,
) -> _CellsOfPairs:
    """Return the coefficients of pairs of columns over all texts or between systems.

    The arguments are those of `_within_items`. Between systems there are no intervals.
    """
    level, coefficient = key
    is_known = ~np.isnan(columns[0])
    statistic = coefficients(columns, pairs.tolist(), level, coefficient, _MATRIX_EXACT)
    observed, drawn = bootstrap.observed_and_resampled(statistic, len(is_known))
    lower_bounds = np.full(len(pairs), np.nan)
    upper_bounds = np.full(len(pairs), np.nan)
    n_items = int(is_known.any(axis=1).sum())
    n_systems = is_known.any(axis=0).sum()
    n_texts = is_known.sum()
    if level == "all-texts" and n_items >= INTERVAL_ITEMS[level]:
        ends = bootstrap.interval(drawn[:, off_diagonal], n_items)
        lower_bounds[off_diagonal], upper_bounds[off_diagonal] = ends
    n = n_texts if level == "all-texts" else n_systems
    return _CellsOfPairs(observed, lower_bounds, upper_bounds, np.asarray(n))


def _reason_empty(is_known: Bools, level: Level, coefficient: Coefficient) -> str:
    """Return why a matrix is empty, from which texts have values; nothing if it is not."""
    n_systems = is_known.any(axis=0).sum()
    compares_systems = level != "all-texts" and coefficient == "kendall"
    if compares_systems and n_systems > _MAX_TAU_SYSTEMS:
        return f"tau-b of more than {_MAX_TAU_SYSTEMS} systems is not computed"
    return too_few_for_level(is_known, level)
