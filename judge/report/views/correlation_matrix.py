"""How the columns go with one another, as a heat map for every level."""

from __future__ import annotations

from dataclasses import dataclass

from judge.report.format import number, span
from judge.results.result import Result
from judge.stats.correlation_matrix import Matrix

_LEVELS = {"item": "Item level", "document": "Document level", "system": "System level"}
_SAYS = {
    "item": "over all texts",
    "document": "between the systems of an item, mean over items",
    "system": "between the systems' means",
}
_UNITS = {"item": "texts", "document": "items", "system": "systems"}


@dataclass(frozen=True, slots=True)
class Met:
    """Two columns: Spearman's rho (-1 to 1, None where it is undefined), as text, and it in words with its interval."""

    value: float | None
    text: str
    title: str

    @property
    def side(self) -> str:
        """Which colour: of those that rise together or of those that do not."""
        return "" if self.value is None else "won" if self.value > 0 else "lost"

    @property
    def shade(self) -> int:
        """How much of the colour, in per cent."""
        return round(70 * abs(self.value or 0.0))


@dataclass(frozen=True, slots=True)
class Heat:
    """One level: `cells` are rows and columns in the order of `names`, `told` says what the numbers are."""

    level: str
    names: tuple[str, ...]
    cells: tuple[tuple[Met, ...], ...]
    told: str


def heats(result: Result) -> tuple[Heat, ...]:
    """Spearman's rho at each level that has any."""
    found = {m.level: m for m in result.matrices if m.coefficient == "spearman"}
    return tuple(_heat(found[level]) for level in _LEVELS if level in found and _says(found[level]))


def _says(matrix: Matrix) -> bool:
    """Whether two different columns have a value."""
    return any(v is not None for i, row in enumerate(matrix.values) for j, v in enumerate(row) if i != j)


def _heat(matrix: Matrix) -> Heat:
    size = range(len(matrix.names))
    note = f" {matrix.note[0].upper()}{matrix.note[1:]}." if matrix.note else ""
    return Heat(
        _LEVELS[matrix.level],
        matrix.names,
        tuple(tuple(_met(matrix, row, column) for column in size) for row in size),
        f"Spearman's rho {_SAYS[matrix.level]}: 1 where two columns rank alike, −1 where they rank the other way round."
        f" Point at a cell for its interval.{note}",
    )


def _met(matrix: Matrix, row: int, column: int) -> Met:
    value = matrix.values[row][column]
    if row == column or value is None:
        return Met(None, "" if row == column else "–", "" if row == column else "not defined")
    text = number(value, 2)
    ends = span(matrix.low[row][column], matrix.high[row][column], 2)
    return Met(value, text, f"{text} {ends}".rstrip() + f", {matrix.n[row][column]:,} {_UNITS[matrix.level]}")
