"""The column of the data that a report suggests for `judge report RUN --by`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from judge.core.records import Sample
from judge.stats.bootstrap import MIN_INTERVAL_ITEMS

_MAX_SLICES = 10
"""More values are names or numbers rather than groups."""


def slicing_column(samples: Sequence[Sample]) -> str:
    """Return the first of the data's own columns that divides the items into groups, or "".

    It has one value for each item and at most ten values, and at least two of these have enough
    items for a test.
    """
    # The names of all columns, each once, in the order of the data.
    names = dict.fromkeys(name for sample in samples for name in sample.extra)
    for name in names:
        value_by_item = _value_by_item(samples, name)
        sizes = Counter(value_by_item.values())
        n_large = sum(size >= MIN_INTERVAL_ITEMS for size in sizes.values())
        if n_large >= 2 and len(sizes) <= _MAX_SLICES:
            return name
    return ""


def _value_by_item(samples: Sequence[Sample], name: str) -> dict[str, str]:
    """Return the value of each item; nothing if the texts of an item differ or one has none."""
    value_by_item: dict[str, str] = {}
    for sample in samples:
        value = sample.extra.get(name)
        text = "" if value is None else str(value).strip()
        value_of_item = value_by_item.setdefault(sample.source_item, text)
        if not text or value_of_item != text:
            return {}
    return value_by_item
