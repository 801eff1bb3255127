"""The data's own columns that raters may see.

They are facts about an item that show neither the author of a text nor anybody's opinion of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from judge.core.records import Sample

OwnColumns = tuple[tuple[str, str], ...]
"""Names and values of an item's own columns."""
_TELLING = re.compile(
    "score|rating|rated|rater|rank|grade|judg|verdict|label|human|annotat|prefer|winner|reason|"
    "system|model|generat|author|version|prompt|rouge|bleu|metric",
    re.IGNORECASE,
)
"""Parts of the names of columns that may tell a system, a score or a rating: `gpt_score`."""
# between the words of "gpt_score" and "gpt score"
_WORD_ENDS = re.compile(r"[\W_]+")


def own_columns(
    samples: Sequence[Sample],
    shown_names: Iterable[str],
    names: Iterable[str],
) -> dict[str, OwnColumns]:
    """Return the own columns of each item, which are equal for all its texts.

    `shown_names` are columns that raters see anyway. A column is left out if its name has one of
    the `names`, such as a system's, a criterion's or a rater's, as a word. If no item has texts of
    several systems, but the data has, every column may tell the system, and all are left out.
    """
    samples_by_item: dict[str, list[Sample]] = {}
    for sample in samples:
        samples_by_item.setdefault(sample.item, []).append(sample)
    systems = {sample.system for sample in samples}
    items_have_several_texts = any(len(texts) > 1 for texts in samples_by_item.values())
    if len(systems) > 1 and not items_have_several_texts:
        return {}
    hidden_words = {hidden_name.casefold() for hidden_name in (*names, *systems)}
    already_shown = set(shown_names)
    columns: dict[str, None] = {}
    for sample in samples:
        columns |= dict.fromkeys(sample.extra)
    visible: list[str] = []
    for column in columns:
        if column in already_shown or _is_telling(column, hidden_words):
            continue
        if _is_of_the_item(column, samples_by_item):
            visible.append(column)
    cells_by_item: dict[str, OwnColumns] = {}
    for item, samples_of_item in samples_by_item.items():
        cells = _cells(samples_of_item[0].extra, visible)
        cells_by_item[item] = tuple(cells)
    return cells_by_item


def _is_telling(column: str, hidden_words: Collection[str]) -> bool:
    """Return whether the name of a column may tell a system, a score or a rating."""
    if _TELLING.search(column):
        return True
    folded_name = column.casefold()
    words = {folded_name, *_WORD_ENDS.split(folded_name)}
    return not words.isdisjoint(hidden_words)


def _is_of_the_item(
    column: str, samples_by_item: Mapping[str, Sequence[Sample]]
) -> bool:
    """Return whether all texts of each item have the same value."""
    for samples_of_item in samples_by_item.values():
        first_value, *others = [sample.extra.get(column) for sample in samples_of_item]
        if any(value != first_value for value in others):
            return False
    return True


def _cells(
    extra: Mapping[str, Any], columns: Iterable[str]
) -> Iterable[tuple[str, str]]:
    """Yield the columns that have a value, which is a text, a number or a list of these."""
    for column in columns:
        value = extra.get(column)
        entries = value if isinstance(value, list | tuple) else [value]
        lines = [
            str(entry) for entry in entries if isinstance(entry, str | int | float)
        ]
        cell = "\n".join(lines)
        if cell.strip():
            yield column, cell
