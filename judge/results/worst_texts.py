"""The lowest scores of a run, at most one per text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.records import Column, Score
from judge.results.wide_rows import with_own_columns
from judge.table import Table, Text

if TYPE_CHECKING:
    import pandas as pd


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


def worst_frame(table: Table, n: int, column: str = "") -> pd.DataFrame:
    """Return the frame of `Result.worst`, which documents it. Raises ConfigError."""
    import pandas as pd

    if not isinstance(n, Integral) or n < 0:
        raise ConfigError(f"n must be a whole number of 0 or more, not {n!r}")
    lowest = _lowest_scores(table, n, column)
    samples = {sample.key: sample for sample in table.samples}
    names = ["item", "system", "column", "score", "reason", "source", "output"]
    rows: list[dict[str, Any]] = []
    for score in lowest:
        sample = samples[score.key]
        row = {
            "item": score.item,
            "system": score.system,
            "column": score.column,
            "score": score.value,
            "reason": score.provenance.reason or "",
            "source": sample.source,
            "output": sample.output,
        }
        rows.append(row)
    own_cells: dict[str, list[Any]] = {}
    for column_name, heading in table.own_columns(names).items():
        own_cells[heading] = [
            samples[score.key].extra.get(column_name) for score in lowest
        ]
    # The names again: a frame without rows would have no columns.
    frame = pd.DataFrame(rows, columns=names)
    return with_own_columns(frame, own_cells)


def _lowest_scores(table: Table, n: int, column: str) -> list[Score]:
    """Return the worst scores of a column, or of all criteria, one for each text."""
    if not column:
        return [text.score for text in worst_texts(table, n)]
    ranked_by_name = {ranked.name: ranked for ranked in table.ranked_columns}
    plugins.require_known("column", [column], ranked_by_name)
    scores = sorted(table.column_scores(column), key=lambda score: score.value)
    if ranked_by_name[column].better == "lower":
        scores.reverse()
    return scores[:n]
