"""A panel of judges as every format shows it: its columns under their criterion, and how far the judges agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from judge.core.records import Column, Estimate
from judge.report.format import number, span
from judge.results.result import Result

ALPHA = "Krippendorff's alpha: 1 is perfect agreement, 0 that of chance; below 0 they disagree more than by chance."
_MEAN = "panel mean"
ARROWS = {"higher": "↑", "lower": "↓", "": ""}
"""The better end of a column, as its heading shows it."""


@dataclass(frozen=True, slots=True)
class Group:
    """Columns under one heading: a criterion's of a panel, its mean before its judges, or one column alone.

    `parts` are the columns' headings under it, by the columns' names: nothing for a column alone.
    """

    name: str
    columns: tuple[Column, ...]
    parts: Mapping[str, str]

    @property
    def better(self) -> Literal["higher", "lower", ""]:
        """The end that is the good one of all these columns."""
        return self.columns[0].better

    @property
    def heading(self) -> str:
        """The name with an arrow to the better end."""
        return f"{self.name} {ARROWS[self.better]}".rstrip()

    @property
    def judged(self) -> bool:
        """Whether a panel's judges have columns of their own."""
        return len(self.columns) > 1


@dataclass(frozen=True, slots=True)
class Agreed:
    """How far a panel's judges agree on one criterion: Krippendorff's alpha over `n` texts."""

    criterion: str
    alpha: str
    interval: str
    n: str
    estimate: Estimate


def groups(result: Result) -> tuple[Group, ...]:
    """The columns, criteria before metrics, a panel's together; else in the table's order."""
    together: dict[str, list[Column]] = {}
    for column in sorted(result.table.columns, key=lambda c: (c.kind != "criterion", bool(c.judge))):
        together.setdefault(column.criterion if column.judge else column.name, []).append(column)
    return tuple(
        Group(name, tuple(columns), {c.name: c.judge or (_MEAN if len(columns) > 1 else "") for c in columns})
        for name, columns in together.items()
    )


def agreement(result: Result) -> tuple[Agreed, ...]:
    """The panel's agreement by criterion."""
    return tuple(
        Agreed(name, number(e.value, 2), span(e.low, e.high, 2), f"{e.n:,}", e) for name, e in result.agreement.items()
    )
