"""Pass rates: the share of a system's texts whose value reaches the criterion's `pass_at`.

A pass rate is the mean of a derived column with 1 for each text that passes and 0 for each other one, so that means,
tests and comparisons of runs apply to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from judge.core.records import Column
from judge.table import Table


def pass_columns(columns: Iterable[Column]) -> dict[str, Column]:
    """Return the columns of pass rates by the names of their criteria's columns."""
    return {
        c.name: Column(
            f"{c.name} pass rate", "criterion", f"pass rate, value >= {c.pass_at:g}|{c.signature}", 0.0, 1.0,
            ("fail", "pass"), criterion=c.criterion, judge=c.judge, weight=0.0, values=(0.0, 1.0),
        )
        for c in columns
        if c.pass_at is not None
    }  # fmt: skip


def pass_table(table: Table) -> Table:
    """Return a table of the same texts with the columns of pass rates alone."""
    rates, columns = pass_columns(table.columns), {column.name: column for column in table.columns}
    scores = (
        replace(score, column=rates[score.column].name, value=float(columns[score.column].passes(score.value) or 0))
        for score in table.scores
        if score.column in rates
    )
    return Table(table.samples, tuple(rates.values()), tuple(scores))
