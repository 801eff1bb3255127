"""The column of the data that a report suggests for `judge report RUN --by`."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from judge.core.option_values import finite_number
from judge.core.records import Sample
from judge.stats.bootstrap import MIN_INTERVAL_ITEMS
from judge.table import Table

_MAX_SLICES = 10
"""More values are names or numbers rather than groups."""
# " (1-5)" in the header "helpful (1-5)" of a column of scores
_SCALE_IN_HEADER = re.compile(r"\s*\([^()]*\d\)$")


def slicing_column(table: Table) -> str:
    """Return the first of the data's own columns that divides the items into groups, or "".

    It has one value for each item and at most ten values, and at least two of these have enough
    items for a test. Numbers may be scores, by which nobody should slice.
    """
    for name in own_columns(table):
        value_by_item = _value_by_item(table.samples, name)
        sizes = Counter(value_by_item.values())
        n_large = sum(size >= MIN_INTERVAL_ITEMS for size in sizes.values())
        are_numbers = all(finite_number(value) is not None for value in sizes)
        if n_large >= 2 and len(sizes) <= _MAX_SLICES and not are_numbers:
            return name
    return ""


def own_columns(table: Table) -> list[str]:
    """Return the data's own columns in their order, without those that a score was read from."""
    names: dict[str, None] = {}
    for sample in table.samples:
        names |= dict.fromkeys(sample.extra)
    return [name for name in names if not is_score(table, name)]


def is_score(table: Table, name: str) -> bool:
    """Return whether the scores of a criterion or a metric were read from this column of the data.

    Slices by a score differ in this score, whatever the texts are. The column of the scores may
    lack the scale that the header has: `helpful` for `helpful (1-5)`.
    """
    plain_name = unicodedata.normalize("NFKC", name)
    names = {name, _SCALE_IN_HEADER.sub("", plain_name)}
    for column in table.columns:
        plain_column_name = unicodedata.normalize("NFKC", column.name)
        if column.signature.is_external and plain_column_name in names:
            return True
    return False


def _value_by_item(samples: Sequence[Sample], name: str) -> dict[str, str]:
    """Return the value of each item; nothing if the texts of an item differ or one has none."""
    value_by_item: dict[str, str] = {}
    for sample in samples:
        value = sample.extra.get(name)
        text = "" if value is None else str(value).strip()
        first_value = value_by_item.setdefault(sample.source_item, text)
        if not text or first_value != text:
            return {}
    return value_by_item
