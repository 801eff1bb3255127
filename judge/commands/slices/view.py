"""The report of `judge report --by`: means and differences in parts of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial

from judge.commands.slices.record import Slices
from judge.commands.slices.statistics import SliceMean
from judge.core.format import format_p, number, plural
from judge.core.messages import full_report
from judge.report.document import Block, Bullets, Column, Content, Document, Section, Table, table
from judge.report.format import column_title, decimal_places, mean_text, share_label
from judge.report.views.columns import change_text, marked_mean

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
    sections = []
    for name in slices.columns:
        blocks: list[Block] = [_table(slices, name)]
        contradictions = _contradictions(slices, name)
        if contradictions:
            blocks.append(Bullets(tuple(contradictions)))
        sections.append(Section(f"slices-{name}", column_title(name), partial(tuple, blocks)))
    means = []
    records = []
    for mean in slices.means:
        estimate = mean.mean
        means.append(asdict(mean) | {"significant": mean.significant})
        records.append(
            {
                "slice": mean.slice,
                "column": mean.column,
                "system": mean.system,
                "mean": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": estimate.n,
                "gap": mean.gap,
                "p": mean.adjusted,
                "significant": mean.significant,
            }
        )
    differences = [
        asdict(difference) | {"contradicts": difference.contradicts}
        for difference in slices.differences
    ]
    items = plural(sum(slices.items.values()), "item")
    return Document(
        title=f"Scores by {slices.by}",
        finding=tuple(finding),
        scope=f"{plural(len(slices.items), 'slice')}, {items}",
        notices=slices.notes,
        summary=(_table(slices, slices.main, short=True),),
        sections=tuple(sections),
        data={
            "schema": SCHEMA,
            "finding": finding,
            "by": slices.by,
            "items": slices.items,
            "means": means,
            "differences": differences,
            "notes": slices.notes,
        },
        records=tuple(records),
    )


def _finding(slices: Slices) -> Iterator[str]:
    """Say which slices are worse than the rest, and which contradict the whole."""
    worst = slices.worst
    contradictions = slices.contradictions
    if worst or contradictions:
        headline = "Significantly worse than the rest" if worst else "Contradicting the whole data"
        names = dict.fromkeys(record.slice for record in worst or contradictions)
        yield f"{headline}: {slices.by} = {', '.join(list(names)[:_MAX_FINDINGS])}"
    else:
        tested = [mean for mean in slices.means if mean.adjusted is not None]
        result = "is significantly worse than the rest" if tested else "could be tested"
        yield f"No slice of {slices.by} {result}"
        if not slices.means:
            yield "No text has a score."
        different = [
            mean
            for mean in tested
            if abs(mean.gap or 0.0) > _ROUNDING and (mean.adjusted or 0.0) < _NEAR
        ]
        if different:
            yield _nearest(slices, min(different, key=lambda mean: mean.adjusted or 0.0))
    for mean in worst[:_MAX_FINDINGS]:
        column = slices.columns[mean.column]
        gap = mean.gap or 0.0
        places = decimal_places(column, [mean.mean.value])
        value = mean_text(column, mean.mean.value, places)
        size = number(abs(gap), places)
        if share_label(column):
            size = f"{number(100 * abs(gap), 0)} points"
        side = "above" if gap > 0 else "below"
        yield (
            f"{_subject(slices, mean)} in {mean.slice}: {value}, {size} {side} the rest "
            f"({format_p(mean.adjusted or 0.0)})."
        )
    yield from _contradictions(slices)[:_MAX_FINDINGS]


def _subject(slices: Slices, mean: SliceMean) -> str:
    """Name the column of a mean, and its system if there are several."""
    of_system = f" of {mean.system}" if len(slices.systems) > 1 else ""
    return f"{column_title(mean.column)}{of_system}"


def _nearest(slices: Slices, mean: SliceMean) -> str:
    """Name the slice that comes nearest to a significant difference."""
    gap = mean.gap or 0.0
    side = "above" if gap > 0 else "below"
    return (
        f"The clearest difference: {_subject(slices, mean)} in {mean.slice} is {side} the rest "
        f"({format_p(mean.adjusted or 0.0)}, corrected for all slices)."
    )


def _contradictions(slices: Slices, column: str = "") -> list[str]:
    """Say where the worse of two systems is better, in all columns or in one."""
    sentences = []
    for difference in slices.contradictions:
        if column not in ("", difference.column):
            continue
        estimate = difference.estimate
        if estimate.value < 0:
            estimate = estimate.times(-1)
        places = decimal_places(slices.columns[difference.column], [estimate.value])
        size = change_text(estimate, places)
        pair = f"{difference.worse} is better than {difference.better}"
        sentences.append(
            f"In {difference.slice}, {pair} on {column_title(difference.column)}, by {size}; in "
            "the whole data it is worse."
        )
    return sentences


def _count(slices: Slices, slice_name: str, column: str) -> str | int:
    """Return the number of items of a slice; of one system, `98 of 100` if some have no score."""
    n_items = slices.items[slice_name]
    scored = [
        mean.mean.n for mean in slices.means if (mean.slice, mean.column) == (slice_name, column)
    ]
    if len(slices.systems) > 1 or scored in ([], [n_items]):
        return n_items
    return f"{scored[0]:,} of {n_items:,}"


def _table(slices: Slices, name: str, *, short: bool = False) -> Table:
    """Return a row per slice and a column per system."""
    column = slices.columns[name]
    means = {(mean.slice, mean.system): mean for mean in slices.means if mean.column == name}
    places = decimal_places(column, [mean.mean.value for mean in means.values()])
    systems = slices.systems[: _MAX_SYSTEMS if short else None]
    rows: list[list[Content]] = []
    for slice_name in list(slices.items)[: _MAX_ROWS if short else None]:
        row: list[Content] = [slice_name, _count(slices, slice_name, name)]
        for system in systems:
            mean = means.get((slice_name, system))
            if mean is None:
                row.append(None)
                continue
            cell = marked_mean(
                column,
                mean.mean,
                places,
                mean.gap,
                mean.adjusted,
                marked=mean.significant,
                since="against the rest",
            )
            row.append(cell)
        rows.append(row)
    key = "▲ ▼: significantly above or below the other items."
    hidden = len(slices.items) - len(rows)
    if hidden:
        key += f" {plural(hidden, 'more slice')}: {full_report()}."
    return table(
        (slices.by, "items", *(Column(system, better=column.better) for system in systems)),
        rows,
        key,
        caption=column_title(name) if short else "",
        name=f"slices-{name}",
        short=short,
        sorts=True,
    )
