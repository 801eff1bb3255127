"""The report of `judge report --by`: means and differences in parts of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial

from judge.commands.slices.record import Slices
from judge.core.format import format_p, number, plural
from judge.report.document import Block, Bullets, Column, Content, Document, Section, Table, table
from judge.report.format import column_title, decimal_places, mean_text
from judge.report.views.columns import change_text, marked_mean

SCHEMA = "judge.slices/1"
_MAX_ROWS, _MAX_SYSTEMS, _MAX_FOUND = 8, 5, 3  # of the summary


def view(slices: Slices) -> Document:
    """Make the report."""
    finding = list(_finding(slices))
    sections = []
    for name in slices.columns:
        blocks: list[Block] = [_table(slices, name)]
        if contradictions := _contradictions(slices, name):
            blocks.append(Bullets(tuple(contradictions)))
        sections.append(Section(f"slices-{name}", column_title(name), partial(tuple, blocks)))
    return Document(
        title=f"Scores by {slices.by}",
        finding=tuple(finding),
        scope=f"{plural(len(slices.items), 'slice')}, {plural(sum(slices.items.values()), 'item')}",
        notices=slices.notes,
        summary=(_table(slices, slices.main, short=True),),
        sections=tuple(sections),
        data={
            "schema": SCHEMA,
            "finding": finding,
            "by": slices.by,
            "items": slices.items,
            "means": [asdict(mean) | {"significant": mean.significant} for mean in slices.means],
            "differences": [asdict(each) | {"contradicts": each.contradicts} for each in slices.differences],
            "notes": slices.notes,
        },
        records=tuple(
            {
                "slice": mean.slice, "column": mean.column, "system": mean.system, "mean": e.value, "low": e.low,
                "high": e.high, "n": e.n, "gap": mean.gap, "p": mean.adjusted, "significant": mean.significant,
            }
            for mean in slices.means
            for e in [mean.mean]
        ),
    )  # fmt: skip


def _finding(slices: Slices) -> Iterator[str]:
    """Say which slices are worse than the rest, and which contradict the whole."""
    worst, against = slices.worst, slices.contradictions
    if worst or against:
        headline = "Significantly worse than the rest" if worst else "Contradicting the whole data"
        names = dict.fromkeys(each.slice for each in worst or against)
        yield f"{headline}: {slices.by} = {', '.join(list(names)[:_MAX_FOUND])}"
    else:
        tested = any(mean.gap is not None for mean in slices.means)
        result = "is significantly worse than the rest" if tested else "could be tested"
        yield f"No slice of {slices.by} {result}"
    for mean in worst[:_MAX_FOUND]:
        column, gap = slices.columns[mean.column], mean.gap or 0.0
        places = decimal_places(column, [mean.mean.value])
        yield (
            f"{column_title(mean.column)} of {mean.system} in {mean.slice}: "
            f"{mean_text(column, mean.mean.value, places)}, {number(abs(gap), places)} "
            f"{'above' if gap > 0 else 'below'} the rest ({format_p(mean.adjusted or 0.0)})."
        )
    yield from _contradictions(slices)[:_MAX_FOUND]


def _contradictions(slices: Slices, column: str = "") -> list[str]:
    """Say where the worse of two systems is better, in all columns or in one."""
    sentences = []
    for each in slices.contradictions:
        if column in ("", each.column):
            e = each.estimate if each.estimate.value > 0 else each.estimate.times(-1)
            size = change_text(e, decimal_places(slices.columns[each.column], [e.value]))
            pair = f"{each.worse} is better than {each.better} on {column_title(each.column)}"
            sentences.append(f"In {each.slice}, {pair}, by {size}; in the whole data it is worse.")
    return sentences


def _table(slices: Slices, name: str, *, short: bool = False) -> Table:
    """Return a row per slice and a column per system."""
    column = slices.columns[name]
    means = {(mean.slice, mean.system): mean for mean in slices.means if mean.column == name}
    places = decimal_places(column, [mean.mean.value for mean in means.values()])
    systems = slices.systems[: _MAX_SYSTEMS if short else None]
    rows: list[list[Content]] = []
    for each in list(slices.items)[: _MAX_ROWS if short else None]:
        cells = [
            marked_mean(
                column,
                mean.mean,
                places,
                mean.gap,
                mean.adjusted,
                marked=mean.significant,
                since="against the rest",
            )
            if (mean := means.get((each, system)))
            else None
            for system in systems
        ]
        rows.append([each, slices.items[each], *cells])
    key = "▲ ▼: significantly above or below the other items."
    key += (
        f" {plural(len(slices.items) - len(rows), 'more slice')}: --full."
        if len(rows) < len(slices.items)
        else ""
    )
    return table(
        (slices.by, "items", *(Column(system, better=column.better) for system in systems)),
        rows,
        key,
        caption=column_title(name) if short else "",
        name=f"slices-{name}",
        short=short,
        sorts=True,
    )
