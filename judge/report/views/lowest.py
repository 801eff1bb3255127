"""The lowest scores of a result, and the texts behind them."""

from __future__ import annotations

from judge.core.format import one_line
from judge.core.records import Column, Score
from judge.report.document import Excerpt
from judge.report.format import column_title, score_text, share_of_scale
from judge.report.views import items
from judge.results.result import Result

NEUTRAL = 0.6
"""The share of the scale below which a score is low, and at which a heat cell has no colour."""
_MAX_TEXT = 160  # characters of a text without a reason

Text = tuple[float, Score, Column]
"""A score as a share of its scale, the score, and its column."""


def worst_texts(result: Result, n: int) -> list[Text]:
    """Return the lowest scores of criteria, the worst first, at most one per text.

    Scores are compared as shares of their scales; equal ones are ordered by the text's mean share, then as in the data.
    """
    columns = {
        c.name: c
        for c in result.table.columns
        if c.kind == "criterion" and not c.judge and c.better and c.low is not None and c.weight
    }
    shares: dict[tuple[str, str], list[Text]] = {}
    for score in result.table.scores:
        column = columns.get(score.column)
        if (
            column
            and not score.rival
            and (share := share_of_scale(column, score.value)) is not None
        ):
            shares.setdefault(score.key, []).append((share, score, column))
    worst = [
        (min(texts, key=lambda t: t[0]), sum(t[0] for t in texts) / len(texts))
        for texts in shares.values()
    ]
    return [text for text, _ in sorted(worst, key=lambda pair: (pair[0][0], pair[1]))[:n]]


def excerpt(result: Result, share: float, score: Score, column: Column) -> Excerpt:
    """Show a low score with its reason, and the other systems' scores of the item."""
    rivals = [
        f"{other.system} {score_text(column, other.value)}"
        for other in result.table.column_scores(column.name)
        if other.item == score.item and other.system != score.system
    ]
    outputs = (one_line(s.output, _MAX_TEXT) for s in result.table.samples if s.key == score.key)
    return Excerpt(
        score_text(column, score.value),
        score.system,
        score.item,
        column_title(column.name),
        reason=score.provenance.reason or score.provenance.quote or next(outputs, ""),
        note=" · ".join(rivals[:3]),
        tone="bad" if column.passes(score.value) is False or share < NEUTRAL else "",
        link=items.link(item=score.item, system=score.system, column=column.name),
    )
