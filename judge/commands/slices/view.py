"""The report of `judge report --by`: means and differences in parts of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from judge.commands.slices.record import Slices
from judge.commands.slices.statistics import SliceMean
from judge.core.format import first_names, format_p, number, plural
from judge.core.messages import full_report
from judge.core.records import Column as ScoreColumn
from judge.report.document import (
    Block,
    Bullets,
    Column,
    Content,
    Document,
    Section,
    Table,
    table,
)
from judge.report.format import column_title, decimal_places, mean_text, share_label
from judge.report.views.columns import change_text, marked_mean
from judge.report.views.system_names import listed

SCHEMA = "judge.slices/1"
# In the summary.
_MAX_ROWS = 8
_MAX_SYSTEMS = 5
_MAX_FINDINGS = 3
_NEAR = 0.2  # p below which a difference that is not significant is named
_ROUNDING = 1e-9


def view(slices: Slices) -> Document:
    """Make the report."""
    finding = list(_finding(slices))
    slices_text = plural(len(slices.items), "slice")
    items_text = plural(sum(slices.items.values()), "item")
    summary = _table(slices, slices.main, short=True)
    sections = [_section(slices, column_name) for column_name in slices.columns]
    records = [_record(slice_mean) for slice_mean in slices.means]
    return Document(
        title=f"Scores by {slices.by}",
        finding=tuple(finding),
        scope=f"{slices_text}, {items_text}",
        notices=slices.notes,
        summary=(summary,),
        sections=tuple(sections),
        data=_data(slices, finding),
        records=tuple(records),
    )


def _section(slices: Slices, column_name: str) -> Section:
    """Return the table of a column, and the slices that contradict the whole data."""
    blocks: list[Block] = [_table(slices, column_name)]
    contradictions = _contradictions(slices, column_name)
    if contradictions:
        blocks.append(Bullets(tuple(contradictions)))
    return Section(
        f"slices-{column_name}", column_title(column_name), partial(tuple, blocks)
    )


def _record(slice_mean: SliceMean) -> dict[str, Any]:
    """Return a row for CSV."""
    estimate = slice_mean.mean
    return {
        "slice": slice_mean.slice,
        "column": slice_mean.column,
        "system": slice_mean.system,
        "mean": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "gap": slice_mean.gap,
        "p": slice_mean.adjusted,
        "significant": slice_mean.significant,
    }


def _data(slices: Slices, finding: list[str]) -> dict[str, Any]:
    """Return the report as JSON has it."""
    means = [
        asdict(slice_mean) | {"significant": slice_mean.significant}
        for slice_mean in slices.means
    ]
    differences = [
        asdict(difference) | {"contradicts": difference.contradicts}
        for difference in slices.differences
    ]
    return {
        "schema": SCHEMA,
        "finding": finding,
        "by": slices.by,
        "items": slices.items,
        "means": means,
        "differences": differences,
        "notes": slices.notes,
    }


def _finding(slices: Slices) -> Iterator[str]:
    """Say which slices are worse than the rest, and which contradict the whole."""
    worst = slices.worst
    contradictions = slices.contradictions
    if worst or contradictions:
        headline = "Contradicting the whole data"
        slice_names = dict.fromkeys(record.slice for record in worst or contradictions)
        entries = list(slice_names)
        if worst:
            headline = "Significantly worse than the rest"
            entries = [_with_worse_systems(slices, name) for name in slice_names]
        shown_names = first_names(entries, _MAX_FINDINGS)
        yield f"{headline}: {slices.by} = {shown_names}"
    else:
        yield from _no_finding(slices)
    for slice_mean in worst[:_MAX_FINDINGS]:
        yield _worse_sentence(slices, slice_mean)
    yield from _contradictions(slices)[:_MAX_FINDINGS]


def _with_worse_systems(slices: Slices, slice_name: str) -> str:
    """Return `mail (a and b)`: a slice and the systems that are worse in it, if not all are."""
    is_worse = {mean.system for mean in slices.worst if mean.slice == slice_name}
    systems = [system for system in slices.systems if system in is_worse]
    if len(systems) == len(slices.systems):
        return slice_name
    return f"{slice_name} ({listed(systems)})"


def _no_finding(slices: Slices) -> Iterator[str]:
    """Say that no slice is significantly worse, and which one comes nearest."""
    tested = [
        slice_mean for slice_mean in slices.means if slice_mean.adjusted is not None
    ]
    outcome = "is significantly worse than the rest" if tested else "could be tested"
    yield f"No slice of {slices.by} {outcome}"
    if not slices.means:
        yield "No text has a score."
    near = []
    for slice_mean in tested:
        # Equal means may differ by rounding.
        is_different = abs(slice_mean.gap or 0.0) > _ROUNDING
        if is_different and (slice_mean.adjusted or 0.0) < _NEAR:
            near.append(slice_mean)
    if near:
        nearest = min(near, key=lambda slice_mean: slice_mean.adjusted or 0.0)
        yield _nearest_sentence(slices, nearest)


def _worse_sentence(slices: Slices, slice_mean: SliceMean) -> str:
    """Say that a slice is significantly worse than the rest, and by how much."""
    column = slices.columns[slice_mean.column]
    mean = slice_mean.mean.value
    gap = slice_mean.gap or 0.0
    places = decimal_places(column, [mean])
    value = mean_text(column, mean, places)
    size = number(abs(gap), places)
    if share_label(column):
        size = f"{number(100 * abs(gap), 0)} points"
    # Slices that are worse on a column whose lower values are better lie above the rest.
    side = "above" if gap > 0 else "below"
    return (
        f"{_subject(slices, slice_mean)} in {slice_mean.slice}: {value}, {size} {side} the rest "
        f"({format_p(slice_mean.adjusted or 0.0)})."
    )


def _subject(slices: Slices, slice_mean: SliceMean) -> str:
    """Name the column of a mean, and its system if there are several."""
    of_system = f" of {slice_mean.system}" if len(slices.systems) > 1 else ""
    return f"{column_title(slice_mean.column)}{of_system}"


def _nearest_sentence(slices: Slices, slice_mean: SliceMean) -> str:
    """Name the slice that comes nearest to a significant difference."""
    gap = slice_mean.gap or 0.0
    side = "above" if gap > 0 else "below"
    return (
        f"The clearest difference: {_subject(slices, slice_mean)} in {slice_mean.slice} is {side} "
        f"the rest ({format_p(slice_mean.adjusted or 0.0)}, corrected for all slices)."
    )


def _contradictions(slices: Slices, column_name: str = "") -> list[str]:
    """Say where the worse of two systems is better, in all columns or in one."""
    sentences = []
    for difference in slices.contradictions:
        if column_name not in ("", difference.column):
            continue
        estimate = difference.estimate
        # The sentence names the direction, so the number has no sign.
        if estimate.value < 0:
            estimate = estimate.times(-1)
        column = slices.columns[difference.column]
        places = decimal_places(column, [estimate.value])
        size = change_text(estimate, places)
        pair = f"{difference.worse} is better than {difference.better}"
        sentences.append(
            f"In {difference.slice}, {pair} on {column_title(difference.column)}, by {size}; in "
            "the whole data it is worse."
        )
    return sentences


def _count(slices: Slices, slice_name: str, column_name: str) -> str | int:
    """Return the number of items of a slice; of one system, `98 of 100` if some have no score."""
    n_items = slices.items[slice_name]
    mean_key = (slice_name, column_name)
    n_scored = [
        slice_mean.mean.n
        for slice_mean in slices.means
        if (slice_mean.slice, slice_mean.column) == mean_key
    ]
    # Systems may lack scores of different items, so a table of several shows the slice's size.
    if len(slices.systems) > 1 or n_scored in ([], [n_items]):
        return n_items
    return f"{n_scored[0]:,} of {n_items:,}"


def _table(slices: Slices, column_name: str, *, short: bool = False) -> Table:
    """Return a row per slice and a column per system."""
    column = slices.columns[column_name]
    means = {}
    for slice_mean in slices.means:
        if slice_mean.column == column_name:
            means[slice_mean.slice, slice_mean.system] = slice_mean
    values = [slice_mean.mean.value for slice_mean in means.values()]
    places = decimal_places(column, values)
    slice_names = list(slices.items)
    systems = slices.systems
    if short:
        slice_names = slice_names[:_MAX_ROWS]
        systems = systems[:_MAX_SYSTEMS]
    rows: list[list[Content]] = []
    for slice_name in slice_names:
        row: list[Content] = [slice_name, _count(slices, slice_name, column_name)]
        for system in systems:
            mean = means.get((slice_name, system))
            cell = None if mean is None else _mean_cell(column, mean, places)
            row.append(cell)
        rows.append(row)
    table_key = "▲ ▼: significantly above or below the other items."
    n_hidden = len(slices.items) - len(rows)
    if n_hidden:
        hidden_slices = plural(n_hidden, "more slice")
        table_key += f" {hidden_slices}: {full_report()}."
    system_columns = [Column(system, better=column.better) for system in systems]
    return table(
        (slices.by, "items", *system_columns),
        rows,
        table_key,
        caption=column_title(column_name) if short else "",
        name=f"slices-{column_name}",
        short=short,
        sorts=True,
    )


def _mean_cell(column: ScoreColumn, slice_mean: SliceMean, places: int) -> Content:
    """Return the cell of a mean, marked if it differs significantly from the rest."""
    return marked_mean(
        column,
        slice_mean.mean,
        places,
        slice_mean.gap,
        slice_mean.adjusted,
        marked=slice_mean.significant,
        since="against the rest",
    )
