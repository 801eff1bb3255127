"""Matrices: correlations between columns, one per level, and differences between systems, one per column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from judge.core.format import format_interval, format_p, number, plural, signed
from judge.core.records import Column
from judge.report.views.columns import compared_columns
from judge.report.views.leaderboard_old import Leaderboard
from judge.results.result import Result
from judge.stats.coefficients import Level
from judge.stats.correlation import Matrix
from judge.stats.paired_differences import MOST
from judge.stats.power import ALPHA
from judge.stats.system_differences import Comparison, Difference, Rank

_LEVELS: Mapping[Level, str] = {"item": "Item level", "document": "Document level", "system": "System level"}
_SCOPES = {
    "item": "over all texts",
    "document": "between the systems of an item, mean over items",
    "system": "between the systems' means",
}
_MAX_ROWS = 100  # if there are so many systems that each is compared only with the best one
_UNITS = {"item": "texts", "document": "items", "system": "systems"}


@dataclass(frozen=True, slots=True)
class CorrelationCell:
    """Two columns: Spearman's rho (-1 to 1, None where it is undefined), as text, and it in words with its interval."""

    value: float | None
    text: str
    title: str

    @property
    def side(self) -> str:
        """The colour class: "won" if the columns rise together, "lost" if not, "" if undefined."""
        return "" if self.value is None else "won" if self.value > 0 else "lost"

    @property
    def shade(self) -> int:
        """The colour's strength in percent."""
        return round(70 * abs(self.value or 0.0))


@dataclass(frozen=True, slots=True)
class Heat:
    """One level: `cells` are rows and columns in the order of `names`, `caption` explains the numbers."""

    level: str
    names: tuple[str, ...]
    cells: tuple[tuple[CorrelationCell, ...], ...]
    caption: str


def heats(result: Result) -> tuple[Heat, ...]:
    """Return Spearman's rho between all columns, at each level that has values."""
    matrices = {matrix.level: matrix for matrix in result.matrices if matrix.coefficient == "spearman"}
    heat_maps = []
    for level, title in _LEVELS.items():
        matrix = matrices.get(level)
        # The diagonal has values even if no two columns can be compared.
        if matrix is None or not any(
            value is not None for i, row in enumerate(matrix.values) for j, value in enumerate(row) if i != j
        ):
            continue
        size = range(len(matrix.names))
        note = f" {matrix.note[0].upper()}{matrix.note[1:]}." if matrix.note else ""
        heat_maps.append(
            Heat(
                title,
                matrix.names,
                tuple(tuple(_correlation_cell(matrix, row, column) for column in size) for row in size),
                f"Spearman's rho {_SCOPES[level]}: 1 where two columns rank alike, −1 where they rank the other way "
                f"round. Point at a cell for its interval.{note}",
            )
        )
    return tuple(heat_maps)


def _correlation_cell(matrix: Matrix, row: int, column: int) -> CorrelationCell:
    value = matrix.values[row][column]
    if row == column or value is None:
        return CorrelationCell(None, "" if row == column else "–", "" if row == column else "not defined")
    text = number(value, 2)
    ends = format_interval(matrix.low[row][column], matrix.high[row][column], 2)
    return CorrelationCell(
        value, text, f"{text} {ends}".rstrip() + f", {matrix.n[row][column]:,} {_UNITS[matrix.level]}"
    )


@dataclass(frozen=True, slots=True)
class DifferenceCell:
    """A cell: the mean of the row's system less that of the column's, its interval, and won/tied/lost items.

    `side` is who is told to be the better one: the row ("won"), the column ("lost") or neither. `tests` are p after
    Holm and Cliff's delta, "" where they do not exist.
    """

    difference: str
    interval: str
    record: str
    side: Literal["won", "lost", ""]
    tests: str


@dataclass(frozen=True, slots=True)
class Wins:
    """One column's matrix: `rows` and `columns` are systems, the best first, cells None where two share no item.

    `label` and `part` are the column's as in the table of means, `ranks` the rows' places; `caption` explains the
    numbers and says what could not be computed.
    """

    label: str
    part: str
    better: Literal["higher", "lower", ""]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    ranks: tuple[Rank, ...]
    cells: tuple[tuple[DifferenceCell | None, ...], ...]
    caption: str

    @property
    def title(self) -> str:
        """The column's name in a list."""
        return f"{self.label}, {self.part}" if self.part else self.label


def wins(result: Result, board: Leaderboard) -> tuple[Wins, ...]:
    """Return a matrix for each column in which systems were compared, in the order of the table of means."""
    comparisons = compared_columns(result)
    return tuple(
        _wins(comparisons[column.name], column, board.places[column.name], (group.name, group.parts[column.name]))
        for group in board.groups
        for column in group.columns
        if column.name in comparisons and comparisons[column.name].differences
    )


def _wins(comparison: Comparison, column: Column, places: int, label: tuple[str, str]) -> Wins:
    cells: dict[tuple[str, str], DifferenceCell] = {}
    for difference in comparison.differences:
        cells[difference.system, difference.other] = _difference_cell(difference, column, places, 1)
        cells[difference.other, difference.system] = _difference_cell(difference, column, places, -1)
    order = [rank.system for rank in comparison.ranks]
    rows, rivals = (order, order) if len(order) <= MOST else (order[1 : _MAX_ROWS + 1], order[:1])
    ranks = {rank.system: rank for rank in comparison.ranks}
    sizes = {difference.estimate.n for difference in comparison.differences}
    items = plural(sizes.pop(), "item") if len(sizes) == 1 else f"{min(sizes):,} to {max(sizes):,} items"
    notes = [f"Over {items}: mean of the row's system less that of the column's, 95% interval, items won/tied/lost."]
    if column.better == "lower":
        notes.append(
            "Lower is better: an item is won by the lower value, so the better system's difference is below 0."
        )
    pairs = plural(len(comparison.differences), "pair")
    notes.append(f"Coloured where the two are told apart: p < {ALPHA:g} by sign-flip test, after Holm over {pairs}.")
    if comparison.detectable is not None:
        smallest = number(comparison.detectable, places)
        notes.append(f"Smallest difference that so many items show with 80% power: {smallest}.")
    if len(order) > MOST and len(order) - 1 > _MAX_ROWS:
        notes.append(f"Shown are the first {_MAX_ROWS}.")
    if comparison.note:
        notes.append(f"{comparison.note[0].upper()}{comparison.note[1:]}.")
    return Wins(
        *label,
        column.better,
        rows=tuple(rows),
        columns=tuple(rivals),
        ranks=tuple(ranks[system] for system in rows),
        cells=tuple(tuple(cells.get((row, rival)) for rival in rivals) for row in rows),
        caption=" ".join(notes),
    )


def _difference_cell(difference: Difference, column: Column, places: int, sign: Literal[1, -1]) -> DifferenceCell:
    """Lay out a difference; with `sign` -1 that of the other system less the first."""
    e = difference.estimate
    low, high = e.low, e.high
    if sign < 0:
        low, high = (None if end is None else -end for end in (e.high, e.low))
    value, better = sign * e.value, -1 if column.better == "lower" else 1
    wins, losses = (difference.wins, difference.losses)[::sign]
    tests = [format_p(difference.adjusted)] if difference.adjusted is not None else []
    tests += [f"delta {signed(sign * difference.delta, 2)}"] if difference.delta is not None else []
    side: Literal["won", "lost", ""] = "" if not difference.apart else "won" if value * better > 0 else "lost"
    record = f"{wins:,}/{difference.ties:,}/{losses:,}"
    interval = format_interval(low, high, places)
    return DifferenceCell(signed(value, places), interval, record, side, ", ".join(tests))
