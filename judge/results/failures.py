"""Give failed judgments the worst score, to see how much they could change a result.

Failures that depend on the system mislead means.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.records import Column, Failure, Provenance, Score, is_unwritten
from judge.results.result import Result, analyzed
from judge.stats.panels import judged_columns
from judge.table import split_rows

WORST = "worst"
"""The way to count failures, and the method of the scores that stand for them."""


def failures_as_worst(result: Result) -> Result:
    """Return the result with the worst score of its scale for each failed judgment.

    Means, intervals and tests are recomputed. Failures of metrics and of texts that were not
    written stay failures. Raises ConfigError for a result of comparisons, whose values belong to
    two texts.
    """
    if result.rankings:
        raise ConfigError(
            "failures as the worst score: only for scores of single texts, not for comparisons"
        )
    rows = list(_worst_rows(result))
    n_counted = sum(
        isinstance(row, Score) and row.provenance.method == WORST for row in rows
    )
    note = f"{plural(n_counted, 'failed judgment')} counted as the worst score of the scale."
    # `analyzed` recomputes the rows of a panel from its judges' rows.
    panels = judged_columns(result.table.columns)
    single_rows = [row for row in rows if row.column not in panels]
    info = result.info.with_notes(note)
    return analyzed(result.table.samples, result.table.columns, single_rows, info)


def unanalyzed_with_worst(result: Result) -> Result:
    """Return the result with failed judgments as worst scores, without new means and tests."""
    return _with_rows(result, _worst_rows(result))


def failures_as_losses(result: Result, column: str, losers: Collection[str]) -> Result:
    """Return a result of comparisons in which each failed one of a criterion is lost by a loser.

    `losers` are systems. A failed comparison of two of them, or of none, stays a failure. Means and
    tests are not computed again.
    """
    return _with_rows(result, _lost_rows(result, column, losers))


def _with_rows(result: Result, rows: Iterable[Score | Failure]) -> Result:
    """Return the result with other rows and the same statistics."""
    scores, failures = split_rows(rows)
    return replace(
        result, table=replace(result.table, scores=scores, failures=failures)
    )


def _lost_rows(
    result: Result, column: str, losers: Collection[str]
) -> Iterator[Score | Failure]:
    """Yield the rows with a loss for each failure of this column that is about one loser."""
    for row in result.table.rows():
        system_loses = row.system in losers
        opponent_loses = row.opponent in losers
        is_decided = system_loses != opponent_loses
        if isinstance(row, Failure) and row.column == column and is_decided:
            yield _score_instead(row, value=1.0 if opponent_loses else 0.0)
        else:
            yield row


def _worst_rows(result: Result) -> Iterator[Score | Failure]:
    """Yield the rows with the worst score for each failed judgment."""
    columns = {column.name: column for column in result.table.columns}
    for row in result.table.rows():
        worst = worst_score(columns[row.column])
        if isinstance(row, Failure) and worst is not None and not is_unwritten(row):
            yield _score_instead(row, worst)
        else:
            yield row


def _score_instead(failure: Failure, value: float) -> Score:
    """Return the score that stands for a failure."""
    provenance = Provenance(WORST, note=f"failed: {failure.message}")
    return Score(
        item=failure.item,
        system=failure.system,
        column=failure.column,
        value=value,
        provenance=provenance,
        opponent=failure.opponent,
    )


def worst_score(column: Column) -> float | None:
    """Return the worst value of a criterion's scale; None for a metric or without a scale."""
    if column.kind != "criterion":
        return None
    return column.high if column.better == "lower" else column.low
