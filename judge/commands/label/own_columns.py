"""The data's own columns that raters may see: facts about an item that tell neither who wrote a
text nor what anybody thought of it.
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
_WORD_ENDS = re.compile(r"[\W_]+")


def own_columns(
    samples: Sequence[Sample], shown_names: Iterable[str], names: Iterable[str]
) -> dict[str, OwnColumns]:
    """Return the own columns of each item, which are equal for all its texts.

    `shown` are columns that raters see anyway. A column is left out if its name has one of the
    `names`, such as a system's, a criterion's or a rater's, as a word. If no item has texts of
    several systems, but the data has, every column may tell the system, and all are left out.
    """
    samples_by_item: dict[str, list[Sample]] = {}
    for sample in samples:
        samples_by_item.setdefault(sample.item, []).append(sample)
    systems = {sample.system for sample in samples}
    if len(systems) > 1 and not any(len(texts) > 1 for texts in samples_by_item.values()):
        return {}
    hidden_words = {name.casefold() for name in names} | {name.casefold() for name in systems}
    columns = dict.fromkeys(name for sample in samples for name in sample.extra)
    visible = [
        name
        for name in columns
        if name not in {*shown_names}
        and not _is_telling(name, hidden_words)
        and _is_of_the_item(name, samples_by_item)
    ]
    return {item: tuple(_cells(texts[0].extra, visible)) for item, texts in samples_by_item.items()}


def _is_telling(column: str, hidden_words: Collection[str]) -> bool:
    """Return whether the name of a column may tell a system, a score or a rating."""
    words = {column.casefold(), *_WORD_ENDS.split(column.casefold())}
    return _TELLING.search(column) is not None or not words.isdisjoint(hidden_words)


def _is_of_the_item(column: str, samples_by_item: Mapping[str, Sequence[Sample]]) -> bool:
    """Return whether all texts of each item have the same value."""
    for texts in samples_by_item.values():
        first = texts[0].extra.get(column)
        if any(sample.extra.get(column) != first for sample in texts[1:]):
            return False
    return True


def _cells(extra: Mapping[str, Any], columns: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield the columns that have a value, which is a text, a number or a list of these."""
    for name in columns:
        value = extra.get(name)
        parts = value if isinstance(value, list | tuple) else [value]
        texts = [str(part) for part in parts if isinstance(part, str | int | float)]
        if any(text.strip() for text in texts):
            yield name, "\n".join(texts)
