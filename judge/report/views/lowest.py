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



def worst_texts(result: Result, n: int) -> list[Text]:
    """Return the lowest scores of criteria, the worst first, at most one per text.

    Scores are compared as shares of their scales; equal ones are ordered by the text's mean share,
    then as in the data.
    """
    columns = {}
    for column in result.table.columns:
        is_whole_criterion = column.kind == "criterion" and not column.judge
        if is_whole_criterion and column.better and column.low is not None and column.weight:
            columns[column.name] = column
    scores_by_text: dict[tuple[str, str], list[Text]] = {}
    for score in result.table.scores:
        if score.column not in columns or score.rival:
            continue
        column = columns[score.column]
        share = share_of_scale(column, score.value)
        if share is not None:
            scores_by_text.setdefault(score.key, []).append((share, score, column))
    lowest: list[tuple[Text, float]] = []
    for scores in scores_by_text.values():
        mean = sum(share for share, _, _ in scores) / len(scores)
        lowest.append((min(scores, key=lambda text: text[0]), mean))
    lowest.sort(key=lambda pair: (pair[0][0], pair[1]))
    return [text for text, _ in lowest[:n]]


def excerpt(result: Result, share: float, score: Score, column: Column) -> Excerpt:
    """Show a low score with its reason, and the other systems' scores of the item."""
    score = lowest.score
    column = lowest.column
    rivals = [
        f"{other.system} {score_text(column, other.value)}"
        for other in result.table.column_scores(column.name)
        if other.item == score.item and other.system != score.system
    ]
    outputs = [sample.output for sample in result.table.samples if sample.key == score.key]
    text = one_line(outputs[0], _MAX_TEXT) if outputs else ""
    return Excerpt(
        score_text(column, score.value),
        score.system,
        score.item,
        column_title(column.name),
        reason=score.provenance.reason or score.provenance.quote or text,
        note=" · ".join(rivals[:3]),
        tone="bad" if column.passes(score.value) is False or lowest.share < NEUTRAL else "",
        link=items.link(item=score.item, system=score.system, column=column.name),
    )
