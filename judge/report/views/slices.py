"""The report of `judge report --by`: means and differences in parts of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial

from judge.core.format import format_p, number, one_line, plural, signed
from judge.report.document import Block, Cell, Column, Document, Section, Table, Tone, table
from judge.report.format import column_title, decimal_places, interval_text, mean_text
from judge.report.views.columns import change_tone
from judge.results.slices import Slices
from judge.stats.slices import SliceMean

SCHEMA = "judge.slices/1"
_MAX_ROWS, _MAX_SYSTEMS, _MAX_FOUND = 8, 5, 3  # of the summary
_NAME = 40


def view(slices: Slices) -> Document:
    """Make the report."""
    sections = [
        Section(f"slices-{name}", column_title(name), partial(_blocks, slices, name)) for name in slices.columns
    ]
    records = [
        {
            "slice": mean.slice, "column": mean.column, "system": mean.system, "mean": e.value, "low": e.low,
            "high": e.high, "n": e.n, "gap": mean.gap, "p": mean.adjusted, "significant": mean.significant,
        }
        for mean in slices.means
        for e in [mean.mean]
    ]  # fmt: skip
    return Document(
        title=f"Scores by {one_line(slices.by)}",
        finding=tuple(_finding(slices)),
        scope=f"{plural(len(slices.items), 'slice')}, {plural(sum(slices.items.values()), 'item')}",
        notices=tuple(map(one_line, slices.notes)),
        summary=(_table(slices, slices.main, short=True),),
        sections=tuple(sections),
        data={
            "schema": SCHEMA,
            "finding": list(_finding(slices)),
            "by": slices.by,
            "items": dict(slices.items),
            "means": [asdict(mean) | {"significant": mean.significant} for mean in slices.means],
            "differences": [asdict(each) | {"contradicts": each.contradicts} for each in slices.differences],
            "notes": list(slices.notes),
        },
        records=tuple(records),
    )


def _finding(slices: Slices) -> Iterator[str]:
    """Say which slices are worse than the rest, and which contradict the whole."""
    worst, against = slices.worst, slices.contradictions
    if all(mean.gap is None for mean in slices.means):
        yield f"No slice of {one_line(slices.by)} could be tested"
        return
    if not worst and not against:
        yield f"No slice of {one_line(slices.by)} is significantly worse than the rest"
        return
    names = dict.fromkeys(one_line(mean.slice, _NAME) for mean in worst)
    contrary = list(dict.fromkeys(one_line(each.slice, _NAME) for each in against))
    yield (
        f"Significantly worse than the rest: {slices.by} = {', '.join(list(names)[:_MAX_FOUND])}"
        if names
        else f"Contradicting the whole data: {slices.by} = {', '.join(contrary[:_MAX_FOUND])}"
    )
    for mean in worst[:_MAX_FOUND]:
        column, gap = slices.columns[mean.column], mean.gap or 0.0
        places = decimal_places(column, [mean.mean.value])
        yield (
            f"{column_title(mean.column)} of {one_line(mean.system, _NAME)} in {one_line(mean.slice, _NAME)}: "
            f"{mean_text(column, mean.mean.value, places)}, {number(abs(gap), places)} "
            f"{'above' if gap > 0 else 'below'} the rest ({format_p(mean.adjusted or 0.0)})."
        )
    for each in against[:_MAX_FOUND]:
        places = decimal_places(slices.columns[each.column], [each.estimate.value])
        name, first, second = (one_line(text, _NAME) for text in (each.slice, each.worse, each.better))
        yield (
            f"In {name}, {first} is better than {second} on {column_title(each.column)}, by "
            f"{number(abs(each.estimate.value), places)}; in the whole data it is worse."
        )


def _table(slices: Slices, name: str, *, short: bool = False) -> Table:
    """Return a row per slice and a column per system."""
    column = slices.columns[name]
    cells = {(mean.slice, mean.system): mean for mean in slices.means if mean.column == name}
    places = decimal_places(column, [mean.mean.value for mean in cells.values()])
    systems = slices.systems[: _MAX_SYSTEMS if short else None]
    names = list(slices.items)[: _MAX_ROWS if short else None]
    rows = [
        [
            Cell(one_line(each, _NAME)),
            Cell(f"{slices.items[each]:,}", value=slices.items[each]),
            *(_cell(slices, cells.get((each, system)), places) for system in systems),
        ]
        for each in names
    ]
    heads = [Column(one_line(slices.by, _NAME)), Column("items")]
    heads += [Column(one_line(system, _NAME), better=column.better) for system in systems]
    key = "▲ ▼: significantly above or below the other items."
    hidden = len(slices.items) - len(names)
    key += f" {plural(hidden, 'more slice')}: --full." if hidden else ""
    title = column_title(name) if short else ""
    return table(heads, rows, caption=title, key=key, name=f"slices-{name}", short=short, sorts=True)


def _cell(slices: Slices, mean: SliceMean | None, places: int) -> Cell:
    if mean is None:
        return Cell("–")
    column, gap = slices.columns[mean.column], mean.gap or 0.0
    mark = ("" if not mean.significant else " ▲" if gap > 0 else " ▼") if mean.gap is not None else ""
    tone: Tone = change_tone(gap, column.better) if mark else ""
    title = "" if mean.gap is None else f"{signed(gap, places)} against the rest, {format_p(mean.adjusted or 0.0)}"
    note = interval_text(column, mean.mean.low, mean.mean.high, places)
    return Cell(mean_text(column, mean.mean.value, places), note, tone, mark, title, value=mean.mean.value)


def _blocks(slices: Slices, name: str) -> Iterator[Block]:
    yield _table(slices, name)
    differences = [each for each in slices.differences if each.column == name]
    if differences:
        places = decimal_places(slices.columns[name], [each.estimate.value for each in differences])
        rows = [
            [
                Cell(one_line(each.slice, _NAME)), Cell(f"{one_line(each.better)} − {one_line(each.worse)}"),
                Cell(signed(each.overall, places), value=each.overall),
                Cell(
                    signed(each.estimate.value, places),
                    interval_text(slices.columns[name], each.estimate.low, each.estimate.high, places),
                    "bad" if each.contradicts else "", " !" if each.contradicts else "", value=each.estimate.value,
                ),
                Cell(f"{each.estimate.n:,}", value=each.estimate.n),
            ]
            for each in differences
        ]  # fmt: skip
        heads = [Column(one_line(slices.by, _NAME), numeric=False), Column("systems", numeric=False)]
        yield table(
            [*heads, "all items", "slice", "items"], rows, caption="Differences that are significant in all items",
            key="!: the other system is significantly better here.", name=f"slice-differences-{name}", sorts=True,
        )  # fmt: skip
