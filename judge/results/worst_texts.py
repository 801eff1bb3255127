"""The lowest scores of a run, at most one per text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from judge.core.records import Column, Score
from judge.table import Table, Text


@dataclass(frozen=True, slots=True)
class LowScore:
    """A score with its column.

    `share` is the score as a share of the column's scale, from 0 (worst) to 1 (best).
    """

    share: float
    score: Score
    column: Column


def worst_texts(table: Table, n: int) -> list[LowScore]:
    """Return the lowest scores of criteria, the worst first, at most one per text.

    Scores are compared as shares of their scales. Equal ones are ordered by the text's mean share,
    then as in the data.
    """
    by_text: dict[Text, list[LowScore]] = {}
    for low_score in _criterion_scores(table):
        by_text.setdefault(low_score.score.key, []).append(low_score)
    lowest_of_texts: list[LowScore] = []
    mean_of_text: dict[Text, float] = {}
    for text, low_scores in by_text.items():
        lowest_of_texts.append(min(low_scores, key=lambda low_score: low_score.share))
        sum_of_shares = sum(low_score.share for low_score in low_scores)
        mean_of_text[text] = sum_of_shares / len(low_scores)

    def order(low_score: LowScore) -> tuple[float, float]:
        return low_score.share, mean_of_text[low_score.score.key]

    return sorted(lowest_of_texts, key=order)[:n]


def _criterion_scores(table: Table) -> Iterator[LowScore]:
    """Yield the scores on criteria with a scale and a better end.

    The scores of a panel's single judges are left out, because the panel has its own score.
    """
    columns: dict[str, Column] = {}
    for column in table.columns:
        is_criterion = column.kind == "criterion" and not column.judge
        if is_criterion and column.better and column.weight:
            columns[column.name] = column
    for score in table.scores:
        scored_column = columns.get(score.column)
        if scored_column is None or score.opponent:
            continue
        share = scored_column.share(score.value)
        if share is not None:
            yield LowScore(share, score, scored_column)
