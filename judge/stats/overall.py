"""The criteria of every text in one number, weighted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judge.core.records import Column, Provenance, Score
from judge.table import Table

NAME = "overall"
"""The column's name."""
_MADE = Provenance("overall")


@dataclass(frozen=True, slots=True)
class Overall:
    """How the column `overall` was made: each criterion's share of it (they sum to 1).

    Its values are from 0 to 1, the ends of the criteria's scales, 1 the good one. `n` texts of `of` have one: those
    with a value of every criterion.
    """

    weights: Mapping[str, float]
    n: int
    of: int

    @property
    def column(self) -> Column:
        """The column of these values."""
        signature = " + ".join(f"{share:.4g} {name}" for name, share in self.weights.items())
        return Column(NAME, "criterion", f"{NAME}|{signature}|0–1", 0.0, 1.0, criterion=NAME)


def overall(table: Table) -> tuple[Overall, Table] | None:
    """The weighted mean of the criteria's columns (of a panel, of its means), and a table of the same texts with it.

    None for fewer than two criteria with a weight, where a column is called `overall` already, and for comparisons.
    """
    columns = [column for column in table.columns if _counts(column)]
    compared = any(row.rival for rows in (table.scores, table.failures) for row in rows)
    if len(columns) < 2 or compared or any(column.name == NAME for column in table.columns):
        return None
    total = sum(column.weight for column in columns)
    weights = {column.name: column.weight / total for column in columns}
    scores = _scores(table, columns, weights)
    made = Overall(weights, len(scores), len(table.samples))
    return made, Table(table.samples, (made.column,), tuple(scores))


def _counts(column: Column) -> bool:
    """Whether a column is a criterion's, and not that of one judge of a panel, on a scale that has two ends."""
    ends = column.low is not None and column.high is not None and column.low < column.high
    return column.kind == "criterion" and not column.judge and bool(column.better) and ends and column.weight > 0


def _scores(table: Table, columns: Sequence[Column], weights: Mapping[str, float]) -> list[Score]:
    values = sum(weights[column.name] * _scaled(table, column) for column in columns)
    down = {name: place for place, name in enumerate(table.systems)}
    across = {name: place for place, name in enumerate(table.items)}
    found = [(s, float(np.asarray(values)[down[s.system], across[s.item]])) for s in table.samples]
    return [Score(s.item, s.system, NAME, value, _MADE) for s, value in found if not np.isnan(value)]


def _scaled(table: Table, column: Column) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Systems × items, 0 at the bad end of the scale and 1 at the good one."""
    low, high = float(column.low or 0.0), float(column.high or 0.0)
    bad, good = (high, low) if column.better == "lower" else (low, high)
    return (table.matrix(column.name) - bad) / (good - bad)
