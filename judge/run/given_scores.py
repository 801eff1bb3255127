"""Scores in the data of a run, in addition to its judges' and metrics' scores."""

from __future__ import annotations

from dataclasses import dataclass, replace

from judge.core.records import Column, Failure, Score


@dataclass(frozen=True, slots=True)
class GivenScores:
    """Columns with a judge's scores, and a row for each text or pair and column."""

    columns: tuple[Column, ...] = ()
    rows: tuple[Score | Failure, ...] = ()

    def compared_with(self, system: str) -> tuple[GivenScores, int]:
        """Return the rows of pairs with this system, and the number of the other rows."""
        rows = [row for row in self.rows if system in (row.system, row.opponent)]
        n_others = len(self.rows) - len(rows)
        scores = replace(self, rows=tuple(rows))
        return scores, n_others
