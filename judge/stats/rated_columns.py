"""A column that is held against people's ratings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from judge.core.records import Column, Failure, Score
from judge.stats.correlation import Values
from judge.table import Table


@dataclass(frozen=True, slots=True)
class Held:
    """A judge's column or a floor: of one criterion, or, where that is empty, of any. A judge's has its `scale`."""

    name: str
    signature: str
    values: Values
    criterion: str = ""
    scale: Column | None = None


def taken(column: Column, table: Table, name: str) -> Held:
    """A column of a run, under a name."""
    return measured(column, table.of(column.name), name)


def measured(column: Column, rows: Iterable[Score | Failure], name: str) -> Held:
    """A column from its rows among others."""
    values = {(r.item, r.system): r.value for r in rows if isinstance(r, Score) and r.column == column.name}
    scale = column if column.kind == "criterion" else None
    return Held(name, column.signature, values, column.criterion, scale)
