"""Select rows of the data by the values of their columns, as `--where` does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from judge.core.errors import DataError
from judge.core.messages import in_python, option
from judge.core.plugins import unknown_name_message
from judge.core.records import Sample
from judge.data.rows import with_whole_number

Value = str | int | float | bool
Values = Mapping[str, Value | Sequence[Value]]
"""The value of each column that a row must have. A list allows several values."""

Mapped = Mapping[str, str | Sequence[str]]
"""The data's column for each of ours; of people's ratings also several, one for each rater."""
_SINGLE_VALUES = (str, int, float, Decimal, date, time, timedelta, UUID)
_MOST_NAMED = 10  # values of a column in a message
# Values of a column, so that a column of texts does not fill the memory.
_MOST_REMEMBERED = 1_000


class RowFilter:
    """A filter of samples, which remembers the columns and values that it sees.

    The columns of `conditions` have their names in the data or, if `mapping` renames them, ours.
    """

    def __init__(self, conditions: Values, mapping: Mapped) -> None:
        self._conditions = conditions
        self._required = _values_by_column(conditions)
        self._renamed: dict[str, str] = {}
        for field, column in mapping.items():
            if isinstance(column, str):
                self._renamed[column] = field
        self._columns: dict[str, None] = {}
        self._seen = {column_name: Counter[str]() for column_name in self._required}
        self._matched = False

    def __call__(self, sample: Sample) -> bool:
        """Return whether the sample meets all conditions."""
        names = {"item": sample.source_item, "system": sample.system}
        self._columns |= dict.fromkeys((*names, *sample.extra))
        meets_all = True
        for condition, required in self._required.items():
            column = condition
            if condition not in sample.extra:
                column = self._renamed.get(condition, condition)
            cell = names.get(column, sample.extra.get(column))
            value = _text(cell)
            value_counts = self._seen[condition]
            has_room = value in value_counts or len(value_counts) < _MOST_REMEMBERED
            if value is not None and has_room:
                value_counts[value] += 1
            if value not in required:
                meets_all = False  # the other columns' values are still counted
        self._matched |= meets_all
        return meets_all

    def check(self) -> None:
        """Raise DataError if no row had a column or value, or if no row met all conditions."""
        if not self._columns:  # no row at all is another error
            return
        for column, required in self._required.items():
            value_counts = self._seen[column]
            if not value_counts:
                # Columns may also be written as the data name them.
                known = dict.fromkeys((*self._columns, *self._renamed))
                problem = unknown_name_message("column", column, list(known))
                if column in known:
                    problem = f"no row has a text, a number or a date in {column}"
                condition = option("where", {column: required[0]})
                raise DataError(f"{condition}: {problem}")
            absent = [value for value in required if value not in value_counts]
            if absent:
                known_values = _list_of_values(value_counts)
                condition = option("where", {column: absent[0]})
                hint = _hint_for_several_values(column, absent[0], value_counts)
                raise DataError(
                    f"{condition}: no row has it; {column} is {known_values}{hint}"
                )
        if not self._matched:
            where = option("where")
            conditions = describe_filter(self._conditions)
            raise DataError(
                f"{where} {conditions}: rows meet each condition, but no row meets all"
            )


def _list_of_values(value_counts: Counter[str]) -> str:
    """Return the commonest values of a column with how often each occurs."""
    commonest = value_counts.most_common(_MOST_NAMED)
    listed = ", ".join(f"{value!r} ({count:,})" for value, count in commonest)
    n_further = len(value_counts) - len(commonest)
    if n_further:
        return f"{listed} and {n_further:,} more"
    return listed


def _hint_for_several_values(
    column: str, absent: str, value_counts: Counter[str]
) -> str:
    """Return how to write several values if this is a list of known ones: `ja,ko`, else ""."""
    parts = [part.strip() for part in absent.split(",")]
    if len(parts) < 2 or not all(part in value_counts for part in parts):
        return ""
    if in_python():
        condition = option("where", {column: parts})
    else:
        conditions = ",".join(f"{column}={part}" for part in parts)
        condition = option("where", conditions)
    return f". For rows with any of these values, write {condition}"


def filter_rows(
    samples: Iterable[Sample], conditions: Values, mapping: Mapped
) -> list[Sample]:
    """Return the samples that meet the conditions. Raises DataError as `RowFilter.check` does."""
    where = RowFilter(conditions, mapping)
    matching = [sample for sample in samples if where(sample)]
    where.check()
    return matching


def describe_filter(conditions: Values) -> str:
    """Return the conditions in words: `lang=ja, channel=email or phone`."""
    described: list[str] = []
    for column, values in _values_by_column(conditions).items():
        allowed = " or ".join(values)
        described.append(f"{column}={allowed}")
    return ", ".join(described)


def _values_by_column(conditions: Values) -> dict[str, list[str]]:
    """Return the values as text, by column."""
    texts_by_column: dict[str, list[str]] = {}
    for column, value in conditions.items():
        values: Iterable[Any] = [value]
        if isinstance(value, Iterable) and not isinstance(value, str):
            values = value
        texts = [_text(each_value) for each_value in values]
        known_texts = [text for text in texts if text is not None]
        if not known_texts:
            raise DataError(
                f"{option('where')}: {column} needs a value, or a list of values"
            )
        texts_by_column[column] = known_texts
    return texts_by_column


def _text(value: Any) -> str | None:
    """Return a cell as text, or None if it is empty or not a single value."""
    if isinstance(value, bool):
        # A condition is typed as `true`, as JSON and YAML write it.
        return str(value).lower()
    value = with_whole_number(value)
    if isinstance(value, _SINGLE_VALUES):
        return str(value).strip()
    return None
