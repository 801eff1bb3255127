"""How far a judge and an overlap metric disagree on each text: a key that the page sorts by, no statistic."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from judge.core.records import Column, Score
from judge.table import Table

Text = tuple[str, str]
"""An item and a system."""


def shares(column: Column, table: Table) -> dict[Text, float]:
    """A column's values as shares of its scale, or of what they span: 0–1, and 1 is the good end."""
    values = {(score.item, score.system): score.value for score in table.of(column.name)}
    low = min(values.values(), default=0.0) if column.low is None else column.low
    high = max(values.values(), default=1.0) if column.high is None else column.high
    span = (high - low) or 1.0
    return {text: (high - v if column.better == "lower" else v - low) / span for text, v in values.items()}


def means(each: Sequence[Mapping[Text, float]]) -> dict[Text, float]:
    """The mean over the columns, of the texts that all of them have."""
    first, *others = each or [{}]
    texts = [text for text in first if all(text in other for other in others)]
    return {text: sum(one[text] for one in each) / len(each) for text in texts}


def gaps(judged: Mapping[Text, float], measured: Sequence[Score]) -> dict[Text, float]:
    """Rank by the judge less rank by the metric, as shares of the texts that have both: -1 to 1, equals share ranks."""
    by_metric = {(score.item, score.system): score.value for score in measured}
    both = [text for text in judged if text in by_metric]
    if len(both) < 2:
        return {}
    one, other = (_ranks([values[text] for text in both]) for values in (judged, by_metric))
    return {text: round(a - b, 3) for text, a, b in zip(both, one, other, strict=True)}


def _ranks(values: Sequence[float]) -> list[float]:
    """0 for the lowest and 1 for the highest, where neither has its equal."""
    order = sorted(values)
    last = 2 * (len(order) - 1)
    return [(bisect_left(order, value) + bisect_right(order, value) - 1) / last for value in values]
