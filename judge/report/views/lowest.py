"""How a report shows the lowest scores of a run."""

from __future__ import annotations

from judge.core.format import one_line
from judge.report.document import Excerpt
from judge.report.format import column_title, score_text
from judge.report.views import items
from judge.results.result import Result
from judge.results.worst_texts import LowScore

NEUTRAL = 0.6
"""The share of the scale below which a score is low, and at which a heat cell has no colour."""
_MAX_TEXT = 160  # characters of a text without a reason


def excerpt(result: Result, lowest: LowScore) -> Excerpt:
    """Show a low score with its reason, and the other systems' scores of the item."""
    score = lowest.score
    column = lowest.column
    opponents = [
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
        note=" · ".join(opponents[:3]),
        tone="bad" if column.passes(score.value) is False or lowest.share < NEUTRAL else "",
        link=items.link(item=score.item, system=score.system, column=column.name),
    )
