"""What a result would be if failed judgments had the worst score: failures that depend on the system mislead means."""

from __future__ import annotations

from collections.abc import Iterator

from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.records import Column, Failure, Provenance, Score, is_unwritten
from judge.results.result import Result, analyzed

WORST = "worst"
"""The way to count failures, and the method of the scores that stand for them."""


def failures_as_worst(result: Result) -> Result:
    """Return the result with the worst score of its scale for each failed judgment.

    Means, intervals and tests are recomputed. Failures of metrics and of texts that were not written stay failures.
    Raises ConfigError for a result of comparisons, whose values belong to two texts.
    """
    if result.rankings:
        raise ConfigError(
            "failures as the worst score: only for scores of single texts, not for comparisons"
        )
    rows = list(_rows(result))
    number = sum(isinstance(row, Score) and row.provenance.method == WORST for row in rows)
    note = f"{plural(number, 'failed judgment')} counted as the worst score of the scale."
    info = {**result.info, "notes": [note, *result.info.get("notes", ())]}
    panels = {column.criterion for column in result.table.columns if column.judge}
    own = [row for row in rows if row.column not in panels]
    return analyzed(result.table.samples, result.table.columns, own, info)


def _rows(result: Result) -> Iterator[Score | Failure]:
    columns = {column.name: column for column in result.table.columns}
    for row in result.table.rows():
        column = columns[row.column]
        worst = worst_score(column)
        if isinstance(row, Score) or worst is None or is_unwritten(row):
            yield row
        else:
            how = Provenance(WORST, note=f"failed: {row.message}")
            yield Score(row.item, row.system, row.column, worst, how)


def worst_score(column: Column) -> float | None:
    """Return the worst value of a criterion's scale; None for a metric or without a scale."""
    if column.kind != "criterion":
        return None
    return column.high if column.better == "lower" else column.low
