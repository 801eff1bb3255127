"""The lowest scores of a run, at most one per text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from judge.core.records import Column, Score
from judge.table import Table


@dataclass(frozen=True, slots=True)
class LowScore:
    """A score, its column, and the score as a share of the column's scale: 0 the worse end, 1 the better one."""

    share: float
    score: Score
    column: Column


def worst_texts(table: Table, n: int) -> list[LowScore]:
    """Return the lowest scores of criteria, the worst first, at most one per text.

    Scores are compared as shares of their scales; equal ones are ordered by the text's mean share, then as in the data.
    """
    by_text: dict[tuple[str, str], list[LowScore]] = {}
    for low_score in _criterion_scores(table):
        by_text.setdefault(low_score.score.key, []).append(low_score)
    ranked: list[tuple[float, float, LowScore]] = []
    for scores in by_text.values():
        lowest = min(scores, key=lambda entry: entry.share)
        mean = sum(entry.share for entry in scores) / len(scores)
        ranked.append((lowest.share, mean, lowest))
    ranked.sort(key=lambda entry: entry[:2])
    return [lowest for _, _, lowest in ranked[:n]]


def _criterion_scores(table: Table) -> Iterator[LowScore]:
    """Yield the scores on criteria with a scale and a better end, without those of a panel's single judges."""
    columns = {
        column.name: column
        for column in table.columns
        if column.kind == "criterion" and not column.judge and column.better and column.weight
    }
    for score in table.scores:
        column = columns.get(score.column)
        if column is None or score.opponent:
            continue
        share = column.share(score.value)
        if share is not None:
            yield LowScore(share, score, column)
