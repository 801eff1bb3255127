"""How a report shows the lowest scores of a run."""

from __future__ import annotations

from judge.core.format import one_line
from judge.core.records import Score
from judge.report.document import Excerpt, Tone
from judge.report.format import column_title, score_text
from judge.report.views import items
from judge.report.views.columns import score_places
from judge.results.result import Result
from judge.results.worst_texts import LowScore

NEUTRAL = 0.6
"""The share of the scale below which a score is low, and at which a heat cell has no colour."""
_MAX_TEXT = 160  # characters of a text without a reason
_MAX_SYSTEMS = 3  # other systems of the item


def excerpt(result: Result, lowest: LowScore) -> Excerpt:
    """Show a low score with its reason, and the other systems' scores of the item."""
    score = lowest.score
    column = lowest.column
    places = score_places(result, column)
    notes = []
    for other_score in result.table.column_scores(column.name):
        if other_score.item == score.item and other_score.system != score.system:
            value = score_text(column, other_score.value, places)
            notes.append(f"{other_score.system} {value}")
    n_more = len(notes) - _MAX_SYSTEMS
    if n_more > 0:
        notes = [*notes[:_MAX_SYSTEMS], f"{n_more:,} more"]
    is_bad = column.passes(score.value) is False or lowest.share < NEUTRAL
    tone: Tone = "bad" if is_bad else ""
    reason = score.provenance.reason or score.provenance.quote
    if not reason:
        reason = _output(result, score)
    has_several_systems = len(result.table.systems) > 1
    return Excerpt(
        score=score_text(column, score.value, places),
        system=score.system if has_several_systems else "",
        item=score.item,
        column=column_title(column.name),
        reason=reason,
        note=" · ".join(notes),
        tone=tone,
        link=items.link(item=score.item, system=score.system, column=column.name),
    )


def _output(result: Result, score: Score) -> str:
    """Return the beginning of the text that has the score."""
    for sample in result.table.samples:
        if sample.key == score.key:
            return one_line(sample.output, _MAX_TEXT)
    return ""
