"""The layout of a comparison of two runs that all formats share: changed settings, changed means, changed items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Literal

from judge.core.format import decimals, escape_controls, format_interval, number, one_line, plural, signed
from judge.core.records import Column, Failure
from judge.report import charts
from judge.report.views.columns import p_cell
from judge.results.comparison import Change, RunComparison
from judge.stats.analyze import NAME as OVERALL
from judge.stats.run_differences import Moved, Runs

EVERY = "all systems"
_MAX_ROWS, _MAX_NAMED = 12, 8  # systems of a column, and names of a list, where not all of them are shown
_MAX_TEXT = 2_000  # characters of a judge's words
LEGEND = (
    "Change: after less before, mean over the items of both runs. [low, high]: {method}. Holm's correction is over "
    "all systems and columns in which any value differs. ≠: p below .05. ↑ = ↓: texts of which the value rose, stayed "
    "or fell."
)


@dataclass(frozen=True, slots=True)
class Row:
    """A system in one column; `bar` is its change on the column's axis. `mark` is ≠ where it moved, else empty."""

    system: str
    before: str
    after: str
    change: str
    interval: str
    p: str
    texts: str
    mark: Literal["≠", ""]
    bar: charts.Bar


@dataclass(frozen=True, slots=True)
class Section:
    """A column in which something differs; `more` says how many systems are left out."""

    name: str
    axis: charts.Axis
    rows: tuple[Row, ...]
    more: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Failures of one kind that only one run has."""

    where: Literal["appeared", "vanished"]
    error: str
    count: int
    columns: str
    example: str


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One value of an item that moved; `words` are the judge's, before and after, where they are known."""

    system: str
    column: str
    before: str
    after: str
    change: str
    output: str
    words: tuple[str, str]


@dataclass(frozen=True, slots=True)
class ItemChanges:
    """An item that moved; `size` is its largest change as a share of the scale."""

    item: str
    size: str
    values: tuple[ValueChange, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that is shown, in display order."""

    title: str
    sentences: tuple[str, ...]
    notes: tuple[str, ...]
    changes: tuple[tuple[str, Change], ...]
    sections: tuple[Section, ...]
    unchanged: str
    failed: tuple[Failed, ...]
    items: tuple[ItemChanges, ...]
    legend: str


def layout(comparison: RunComparison, *, every: bool = False) -> Layout:
    """Lay out two runs; with `every` all systems of a column, else the largest changes."""
    columns: dict[str, list[Moved]] = {}
    for row in comparison.runs.moved:
        columns.setdefault(row.column, []).append(row)
    differ = {name: rows for name, rows in columns.items() if any(row.up or row.down for row in rows)}
    equal = [one_line(name) for name in columns if name not in differ]
    # Intervals of different columns may use different methods: the legend names the most common one.
    methods = Counter(row.estimate.method for row in comparison.runs.moved if row.estimate.low != row.estimate.high)
    method = methods.most_common(1)[0][0] if methods else "none, for nothing differs on two items or more"
    titles = [
        f"{change.what} of {_listed([one_line(name) for name in change.columns])}" if change.columns else change.what
        for change in comparison.changes
    ]
    return Layout(
        title=f"{one_line(comparison.names[0])} → {one_line(comparison.names[1])}",
        sentences=tuple(_sentences(comparison.runs, differ)),
        notes=(*map(one_line, comparison.notes), *_left_out(comparison)),
        changes=tuple(zip(titles, comparison.changes, strict=True)),
        sections=tuple(_section(comparison.columns.get(name), rows, every=every) for name, rows in differ.items()),
        unchanged=f"No value differs in {_listed(equal)}." if equal else "",
        failed=(*_failed("appeared", comparison.runs.appeared), *_failed("vanished", comparison.runs.vanished)),
        items=tuple(_item_changes(comparison)),
        legend=LEGEND.format(method=method),
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more


def _sentences(runs: Runs, differ: Mapping[str, Sequence[Moved]]) -> Iterator[str]:
    """Say how many texts, means and failures changed."""
    yield f"In both runs: {plural(runs.texts, 'text')} of {plural(runs.items, 'item')}."
    if not differ:
        yield "Where both have values, none differs."
    else:
        tested = [row for row in runs.moved if row.system and row.adjusted is not None and (row.up or row.down)]
        moved = sum(row.moved for row in tested)
        overall = []
        for row in runs.moved:
            if not row.system and row.moved:
                e, places = row.estimate, decimals([row.before, row.after])
                ends = [end for end in (e.low, e.high) if end is not None]
                size = [number(end, places) for end in (sorted(abs(end) for end in ends) if e.value < 0 else ends)]
                interval = f" [{', '.join(size)}]" if len(size) == 2 and min(ends) * max(ends) > 0 else ""
                direction = "rose" if e.value > 0 else "fell"
                overall.append(f"{one_line(row.column)} {direction} by {number(abs(e.value), places)}{interval}")
        if overall:
            yield f"Over all systems {'; '.join(overall)}."
        if tested:
            changes, apart = plural(len(tested), "change"), "is" if moved == 1 else "are"
            yield (
                f"{moved:,} of {changes} by system and column {apart} told apart from 0, not counting those in which "
                "no text differs."
            )
        else:
            yield "Too few items for a test."
    if runs.appeared or runs.vanished:
        yield f"{plural(len(runs.appeared), 'failure')} appeared, {len(runs.vanished):,} vanished."


def _left_out(comparison: RunComparison) -> Iterator[str]:
    """Say which columns, systems and texts are not compared."""
    runs = comparison.runs
    known = {row.column for row in runs.moved} | dict(runs.incomparable).keys()
    had = {column.name for column in comparison.before.table.columns}
    if bare := [one_line(name) for name in comparison.columns if name in had and name not in known]:
        yield f"No text has a value in both runs of {_listed(bare)}."
    both = [name for name in comparison.before.table.systems if name in comparison.after.table.systems]
    scored: dict[str, set[str]] = {}
    for row in runs.moved:
        scored.setdefault(row.column, set()).add(row.system)
    columns_by_lacking: dict[tuple[str, ...], list[str]] = {}
    for name, systems in scored.items():
        if lacking := tuple(one_line(system) for system in both if system not in systems):
            columns_by_lacking.setdefault(lacking, []).append(one_line(name))
    for lacking, columns in columns_by_lacking.items():
        yield f"No text of {_listed(lacking)} has a value in both runs of {_listed(columns)}."
    for name, why in runs.incomparable:
        yield f"{one_line(name)} is not compared: {why}."
    for name, only in zip(comparison.names, runs.only, strict=True):
        for kind, names in (("item", only.items), ("system", only.systems), ("column", only.columns)):
            if names:
                listed = _listed([one_line(n, 80) for n in names])
                yield f"Only in {one_line(name)}: {plural(len(names), kind)} ({listed})."
    if runs.edited:
        yield f"{plural(runs.edited, 'text')} of both runs differ in output, source or references."
    lost, won = runs.unanswered
    if lost or won:
        yield f"{lost:,} values of the first run were not asked for in the second, {won:,} the other way round."


def _section(column: Column | None, rows: Sequence[Moved], *, every: bool) -> Section:
    name = rows[0].column
    values = [end for row in rows for end in (row.before, row.after)]
    places = decimals(
        [column.low, column.high] if column and column.low is not None and column.high is not None else values
    )
    places = 3 if name == OVERALL else places
    ends = [abs(end) for row in rows for e in [row.estimate] for end in (e.value, e.low, e.high) if end is not None]
    furthest = max(ends)
    power = 10.0 ** floor(log10(furthest)) if furthest > 0 else 1.0
    limit = next(m * power for m in (1, 2, 5, 10) if m * power >= furthest)
    axis = charts.even(-limit, limit, limit)
    shown_rows, more = rows, ""
    if not every and len(rows) > _MAX_ROWS:
        # The row of all systems together always stays.
        largest = sorted(rows, key=lambda row: (bool(row.system), -abs(row.estimate.value)))[:_MAX_ROWS]
        shown_rows = [row for row in rows if row in largest]
        more = f"{plural(len(rows) - len(shown_rows), 'system')} that moved less are left out"
    lower = " (lower is better)" if column and column.better == "lower" else ""
    laid_out = []
    for row in shown_rows:
        e, system = row.estimate, one_line(row.system) if row.system else EVERY
        change, interval = signed(e.value, places), format_interval(e.low, e.high, places)
        laid_out.append(
            Row(
                system,
                number(row.before, places),
                number(row.after, places),
                change,
                interval,
                p_cell(row.adjusted),
                f"{row.up:,} {row.same:,} {row.down:,}" if e.p is not None or e.n == 1 else "",
                "≠" if row.moved else "",
                charts.bar(axis, e, f"{system}: {change} {interval}".rstrip()),
            )
        )
    return Section(one_line(name) + lower, axis, tuple(laid_out), more)


def _failed(where: Literal["appeared", "vanished"], rows: Iterable[Failure]) -> Iterator[Failed]:
    kinds: dict[str, list[Failure]] = {}
    for row in rows:
        kinds.setdefault(row.error, []).append(row)
    for error, failures in sorted(kinds.items(), key=lambda kind: -len(kind[1])):
        first = failures[0]
        names = _listed(list(dict.fromkeys(one_line(row.column) for row in failures)))
        example = (
            f"{one_line(first.item or 'all texts', 80)}, {one_line(first.system, 80)}: {one_line(first.message, 200)}"
        )
        yield Failed(where, one_line(error), len(failures), names, example)


def _item_changes(comparison: RunComparison) -> Iterator[ItemChanges]:
    """Lay out the items that moved, with the judge's reason or reply for each value in both runs."""
    keys = {(shift.item, shift.system, shift.column) for item in comparison.runs.items_moved for shift in item.shifts}
    texts_before, texts_after = (
        {
            key: escape_controls((score.provenance.reason or score.provenance.raw or "")[:_MAX_TEXT])
            for score in result.table.scores
            if (key := (score.item, score.system, score.column)) in keys
        }
        for result in (comparison.before, comparison.after)
    )
    outputs = {(s.item, s.system): s.output for s in comparison.after.table.samples}
    for item in comparison.runs.items_moved:
        values = []
        for shift in item.shifts:
            key = shift.item, shift.system, shift.column
            column = comparison.columns.get(shift.column)
            ends = [] if column is None else [end for end in (column.low, column.high) if end is not None]
            places = decimals(ends if len(ends) == 2 else [shift.before, shift.after])
            values.append(
                ValueChange(
                    one_line(shift.system),
                    one_line(shift.column),
                    number(shift.before, places),
                    number(shift.after, places),
                    signed(shift.after - shift.before, places),
                    escape_controls(outputs.get((shift.item, shift.system), "")[:_MAX_TEXT]),
                    (texts_before.get(key, ""), texts_after.get(key, "")),
                )
            )
        yield ItemChanges(one_line(item.item), f"{100 * item.size:.0f}%", tuple(values))
