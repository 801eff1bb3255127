"""The part of a table about the texts that have some values, such as one channel or language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.records import Column, Failure, Sample, Score, is_unwritten
from judge.data import samples
from judge.stats.panels import judged_columns
from judge.table import Table


@dataclass(frozen=True, slots=True)
class MatchingPart:
    """The texts with these values, their columns and rows, and notes on what was left out.

    A panel's own column has no rows, because `analyzed` combines its judges' rows.
    """

    samples: Sequence[Sample]
    columns: list[Column]
    rows: list[Score | Failure]
    notes: list[str]


def matching_part(
    table: Table,
    values: samples.Values,
    column_map: Mapping[str, str | tuple[str, ...]],
) -> MatchingPart:
    """Return the part of a table about the texts that have these values.

    `column_map` has the columns of the data by the names of judge's fields. Raises ConfigError if
    no column is named, DataError for a column or a value that no text has.
    """
    if not values:
        raise ConfigError('name a column and a value, such as where(lang="ja")')
    matching = samples.filter_rows(table.samples, values, column_map)
    rows = list(_remaining_rows(table, matching))
    remaining_names = {row.column for row in rows}
    remaining_judges = [
        column for column in table.columns if column.name in remaining_names
    ]
    # The column of a panel remains with its judges' columns.
    remaining_names.update(judged_columns(remaining_judges))
    columns: list[Column] = []
    dropped: list[str] = []
    for column in table.columns:
        if column.name in remaining_names:
            columns.append(column)
        else:
            dropped.append(column.name)
    all_texts = plural(len(table.samples), "text")
    filtered = samples.describe_filter(values)
    notes = [
        f"Only texts with {filtered}: {len(matching):,} of {all_texts}. All means, intervals and "
        "tests use only these; requests, tokens, cost, time and the run's other notices are of the "
        "whole run."
    ]
    if dropped:
        notes.append(
            f"Left out, as measured over all texts of a system together: {', '.join(dropped)}."
        )
    column_names = {column.name for column in columns}
    rows_of_columns = [row for row in rows if row.column in column_names]
    return MatchingPart(matching, columns, rows_of_columns, notes)


def _remaining_rows(
    table: Table, matching: Sequence[Sample]
) -> Iterator[Score | Failure]:
    """Yield the rows of these texts.

    The rows of a whole corpus remain for systems that keep all their texts.
    """
    texts = {sample.key for sample in matching}
    items = {item for item, _ in texts}
    incomplete = {sample.system for sample in table.samples if sample.key not in texts}
    complete_systems = {system for _, system in texts} - incomplete
    # The rows of a panel are recomputed from its judges' rows.
    panels = judged_columns(table.columns)
    for row in table.rows():
        if row.column in panels:
            continue
        sides = [side for side in (row.system, row.opponent) if side]
        if is_unwritten(row):
            matches = row.item in items
        elif row.item:
            matches = all((row.item, side) in texts for side in sides)
        else:
            matches = all(side in complete_systems for side in sides)
        if matches:
            yield row
