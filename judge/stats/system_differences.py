"""Compare systems in every column.

A comparison has differences with tests, ranks, and the systems that may be the best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from judge.core.records import Column, Estimate
from judge.stats.bootstrap import Floats, without_nan
from judge.stats.paired_differences import (
    MOST,
    PLACES,
    TESTED,
    Pair,
    best_first,
    cliffs_delta,
    differences,
    holm,
    mean_differences,
    pairs,
    partly_scored,
    row_of,
    tests,
)
from judge.stats.power import ALPHA, scatter_of_pairs
from judge.stats.ranks import Rank, leaders, rank_by_means
from judge.table import Table

TOO_FEW = "too few items for any significant difference"
_MAX_DIFFERENCES = 4_000_000  # differences in memory at once


@dataclass(frozen=True, slots=True)
class Difference:
    """One system against another in one column, paired by item.

    `estimate` is the mean of `system` minus that of `other` over the items of both, with its
    interval and `p` (see `mean_differences`), None for one item. `adjusted` is p after Holm's
    correction over all differences of the column. `delta` is Cliff's delta, −1 to 1, positive if
    the values of `system` tend to be larger. `wins` counts the items in which `system` is better.
    """

    system: str
    other: str
    estimate: Estimate
    adjusted: float | None
    delta: float | None
    wins: int
    ties: int
    losses: int

    @property
    def apart(self) -> bool:
        """Whether the difference is significant."""
        return self.adjusted is not None and self.adjusted < ALPHA


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between systems in one column.

    - `differences`: best first: the first system with the second, the third, …, then the second
      with the third. For more than 30 systems, only those with the first.
    - `best`: the leader and the systems that do not differ significantly from it. The leader has
      the best mean of the systems that no other one beats significantly on their shared items.
    - `partly_scored`: the systems with values for less than half of the items, which lead only if
      they beat all others.
    - `items`: the number of items with any value.
    - `detectable`: the smallest difference that this many items detect with 80% power, for the pair
      with the median standard deviation.
    - `against`: the system that all others are compared with. Each difference is then another
      system minus it, and `best` is empty.
    - `note`: what could not be computed.
    """

    column: str
    differences: tuple[Difference, ...] = ()
    ranks: tuple[Rank, ...] = ()
    best: tuple[str, ...] = ()
    detectable: float | None = None
    note: str = ""
    against: str = ""
    partly_scored: tuple[str, ...] = ()
    items: int = 0


@dataclass(frozen=True, slots=True)
class _ColumnValues:
    """A column's values, systems × items.

    - `order`: the rows of the systems with any value, best first.
    - `pairs`: the pairs of rows to compare.
    - `partly`: the rows with values for less than half of the items.
    - `against`: the system with which all others are compared, "" if every two are.
    """

    column: Column
    systems: Sequence[str]
    values: Floats
    order: list[int]
    pairs: list[Pair]
    partly: set[int]
    against: str = ""

    @property
    def names(self) -> list[str]:
        """The systems with any value, best first."""
        return [self.systems[row] for row in self.order]

    @property
    def partly_scored(self) -> list[str]:
        """The systems with values for less than half of the items, best first."""
        return [self.systems[row] for row in self.order if row in self.partly]

    @property
    def tests(self) -> int:
        """The number of tests for Holm's correction."""
        return tests(len(self.order), against=bool(self.against))

    @property
    def sign(self) -> int:
        """1 if larger values are better, −1 if smaller ones are."""
        return -1 if self.column.better == "lower" else 1

    @property
    def constant(self) -> bool:
        """Whether all known values are equal."""
        known_values = without_nan(self.values)
        # Values that differ by rounding only are equal.
        distinct = np.unique(np.round(known_values, PLACES))
        return len(distinct) < 2


def compare(
    table: Table,
    *,
    seed: int = 0,
    n_resamples: int = 10_000,
    against: str = "",
) -> tuple[Comparison, ...]:
    """Compare the systems in every column with values of single texts and a better end.

    Compare every two, or each with the system `against`. All systems and columns share the sign
    flips. Comparisons of two texts have rankings instead.
    """
    if table.has_pairs:
        return ()
    columns = table.ranked_columns
    n_systems = len(table.systems)
    # All with `against`, or of very many systems all with the best one.
    max_pairs = n_systems
    if not against and n_systems <= MOST:
        max_pairs = n_systems * (n_systems - 1) // 2
    # As many columns at once as fit into memory.
    differences_of_column = max_pairs * len(table.items)
    columns_at_once = max(1, _MAX_DIFFERENCES // max(1, differences_of_column))
    comparisons: list[Comparison] = []
    for first_column in range(0, len(columns), columns_at_once):
        some_columns = columns[first_column : first_column + columns_at_once]
        group = [_column_values(table, column, against) for column in some_columns]
        comparisons += _compare_columns(group, n_resamples, seed)
    return tuple(comparisons)


def _column_values(table: Table, column: Column, against: str) -> _ColumnValues:
    """Return a column's values with the order of the systems and the pairs to compare."""
    values = table.matrix(column.name)
    order = best_first(values, column.better)
    partly = partly_scored(values)
    compared = pairs(order, row_of(table.systems, against), partly=partly)
    return _ColumnValues(
        column, table.systems, values, order, compared, partly, against
    )


def _compare_columns(
    group: Sequence[_ColumnValues],
    n_resamples: int,
    seed: int,
) -> Iterator[Comparison]:
    """Compare the systems in each of these columns, with the same sign flips for all."""
    rows_by_column = [differences(data.values, data.pairs) for data in group]
    rows = np.concatenate(rows_by_column)
    # With fewer flips p could not be small enough after Holm's correction.
    needed_flips = [ceil(2 * data.tests / ALPHA) for data in group]
    n_resamples = max(n_resamples, *needed_flips)
    estimates = mean_differences(rows, n_resamples=n_resamples, seed=seed)
    first_pair = 0
    for data in group:
        after_last = first_pair + len(data.pairs)
        pairs_of_column = slice(first_pair, after_last)
        yield _comparison(data, rows[pairs_of_column], estimates[pairs_of_column])
        first_pair = after_last


def _comparison(
    data: _ColumnValues,
    rows: Floats,
    estimates: Sequence[Estimate | None],
) -> Comparison:
    """Compare the systems in one column, from the differences of its pairs (pairs × items)."""
    tested = tuple(_test_differences(data, rows, estimates))
    scatter = scatter_of_pairs(
        data.column.name,
        data.systems,
        data.pairs,
        rows,
        systems=len(data.order),
        against=data.against,
    )
    with_p = [difference for difference in tested if difference.adjusted is not None]
    sizes = [difference.estimate.n for difference in with_p]
    significant = [difference for difference in tested if difference.apart]
    decided = [_loser_and_winner(data, difference) for difference in significant]
    best: tuple[str, ...] = ()
    if sizes and not data.constant and not data.against:
        best = _best(data, decided)
    # With fewer items than `least` no p can be below the level after Holm's correction.
    too_few = bool(sizes) and max(sizes) < scatter.least
    has_value = (~np.isnan(data.values)).any(axis=0)
    detectable = scatter.median.detectable() if scatter.pairs else None
    return Comparison(
        data.column.name,
        differences=tested,
        ranks=tuple(_rank_systems(data, decided)),
        best=best,
        detectable=detectable,
        note=_note(data, tested, too_few=too_few),
        against=data.against,
        partly_scored=tuple(data.partly_scored),
        items=int(has_value.sum()),
    )


def _loser_and_winner(data: _ColumnValues, difference: Difference) -> tuple[str, str]:
    """Return both systems of a difference, the worse one on their shared items first."""
    if difference.estimate.value * data.sign > 0:
        return difference.other, difference.system
    return difference.system, difference.other


def _best(data: _ColumnValues, decided: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the leader, and the systems without a significant difference from it.

    These include systems that share no items with the leader. `decided` has the loser and the
    winner of each significant difference.
    """
    # A mean over a few easy items must not lead (`Comparison.partly_scored`).
    mostly_scored = [
        system for system in data.names if system not in data.partly_scored
    ]
    return leaders(data.names, mostly_scored, decided)


def _test_differences(
    data: _ColumnValues,
    rows: Floats,
    estimates: Sequence[Estimate | None],
) -> Iterator[Difference]:
    """Yield the differences with Holm's correction, without pairs that share no item."""
    n_tests = data.tests
    # Beyond `TESTED` systems there are no tests, and so no p.
    p_values = [estimate.p if estimate and n_tests else None for estimate in estimates]
    adjusted_p = holm(p_values, n_tests)
    # Values that differ by rounding only are ties for Cliff's delta.
    values = np.round(data.values, PLACES)
    compared = zip(data.pairs, rows, estimates, adjusted_p, strict=True)
    for (first_index, second_index), row, estimate, adjusted in compared:
        if estimate is None:
            continue
        shared = ~np.isnan(row)
        better = row * data.sign
        wins = int((better > 0).sum())
        losses = int((better < 0).sum())
        delta = cliffs_delta(values[first_index][shared], values[second_index][shared])
        yield Difference(
            data.systems[first_index],
            data.systems[second_index],
            estimate,
            adjusted,
            delta=delta,
            wins=wins,
            ties=estimate.n - wins - losses,
            losses=losses,
        )


def _rank_systems(
    data: _ColumnValues, decided: Sequence[tuple[str, str]]
) -> Iterator[Rank]:
    """Yield the systems' ranks by the mean of each system's own items.

    The items that two systems share may order them differently.
    """
    if data.order:
        means = np.nanmean(data.values[data.order], axis=1)
        yield from rank_by_means(data.names, means, decided)


def _note(data: _ColumnValues, compared: Sequence[Difference], *, too_few: bool) -> str:
    """Explain what could not be computed.

    `compared` are the pairs of systems that share an item. `too_few` says that so few items could
    not show any difference.
    """
    if not data.order:
        return "no text has a value"
    is_known = ~np.isnan(data.values[data.order])
    if len(data.order) == 1:
        return "only one system has values"
    n_items = is_known.any(axis=0).sum()
    if n_items == 1:
        return "one item is too few for intervals and tests"
    if data.constant:
        return "all values are equal"
    if data.against and not data.pairs:
        return f"{data.against} has no value to compare with"
    if data.pairs and not compared:
        return "no two systems share an item"
    if data.pairs and max(difference.estimate.n for difference in compared) == 1:
        systems = "two systems share at most"
        if len(data.pairs) == 1:
            systems = "the systems share"
        return f"{systems} one item, which is too few for a test"
    remarks: list[str] = []
    if len(data.order) > MOST and not data.against:
        remarks.append(f"more than {MOST} systems: compared with the best one only")
    have_same_items = (is_known == is_known[0]).all()
    if not have_same_items:
        remarks.append(
            "systems have different items, and differences use the shared ones"
        )
    without_shared_item = len(data.pairs) - len(compared)
    if without_shared_item > 0:
        n_pairs = len(data.pairs)
        remarks.append(
            f"{without_shared_item:,} of {n_pairs:,} pairs of systems share no item"
        )
    if not data.tests:
        remarks.append(f"more than {TESTED} systems: too many to test")
    if too_few:
        remarks.append(TOO_FEW)
    return "; ".join(remarks)
