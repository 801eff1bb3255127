"""The report of `judge compare`: which means changed between two runs, by how much, and on which items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from math import floor, log10
from shlex import quote
from typing import Any, Literal

from judge.core.format import escape_controls, format_p, number, one_line, plural, signed
from judge.core.records import Column as Measured
from judge.core.records import Failure
from judge.report.charts import intervals
from judge.report.charts.axes import Axis, even
from judge.report.document import (
    Block,
    Bullets,
    Cell,
    Chart,
    Column,
    Details,
    Diff,
    Document,
    Excerpt,
    Excerpts,
    Facts,
    Heading,
    Paragraph,
    Section,
    Table,
    Tone,
)
from judge.report.format import column_title, decimal_places, interval_text, mean_text, score_text, share_label
from judge.report.views.columns import p_cell
from judge.results.comparison import Change, RunComparison
from judge.stats.analyze import NAME as OVERALL
from judge.stats.power import items_needed
from judge.stats.run_differences import Item, MeanChange, Shift

SCHEMA = "judge.compare/1"
_ALL = "all systems"
_MAX_ROWS, _MAX_COLUMNS, _MAX_REMARKS, _MAX_EXCERPTS = 7, 6, 3, 2  # of the summary
_MAX_NAMED = 8  # names of a list
_MAX_PANELS = 4  # columns of the chart
_MAX_ITEMS, _MAX_SHIFTS = 20, 5  # items with their texts, and values of each
_MAX_TEXT = 2_000  # characters of a text


def view(comparison: RunComparison) -> Document:
    """Make the report of a comparison."""
    remarks = [*_settings(comparison), *_not_compared(comparison)]
    before, after = (one_line(name, 40) for name in comparison.names)
    others, runs, changes = remarks[_MAX_REMARKS:], comparison.runs, comparison.changes
    sections = {
        Section("means", "Means", lambda: mean_blocks(comparison)): runs.means,
        Section("prompts", "Prompts", lambda: _prompt_blocks(comparison)): any(change.diff for change in changes),
        Section("failures", "Failures", lambda: _failure_blocks(comparison)): runs.appeared or runs.vanished,
        Section("items", "Items that changed most", lambda: _item_blocks(comparison)): runs.changed_items,
        Section("remarks", "Other differences", lambda: (Bullets(tuple(others)),)): others,
    }
    return Document(
        title=f"{one_line(comparison.names[0])} → {one_line(comparison.names[1])}",
        finding=tuple(finding(comparison)),
        scope=f"{before} → {after} · {plural(runs.items, 'item')}",
        notices=tuple(map(one_line, comparison.notes)),
        summary=(*summary_blocks(comparison), *([Bullets(tuple(remarks[:_MAX_REMARKS]))] if remarks else [])),
        sections=tuple(section for section, needed in sections.items() if needed),
        footer=(_counts(comparison),),
        next=_next_commands(comparison),
        data=data(comparison),
        records=tuple(_records(comparison)),
    )


def summary_blocks(comparison: RunComparison) -> Iterator[Block]:
    """Yield a short table of the means and the items that changed most."""
    if any(row.up or row.down for row in comparison.runs.means):
        yield _overview(comparison)
    excerpts = [
        _excerpt(comparison, item.shifts[0]) for item in comparison.runs.changed_items[:_MAX_EXCERPTS] if item.shifts
    ]
    if excerpts:
        yield Excerpts("Changed", tuple(excerpts))


def data(comparison: RunComparison) -> dict[str, Any]:
    """Return what JSON writes."""
    return {
        "schema": SCHEMA,
        "before": comparison.names[0],
        "after": comparison.names[1],
        "finding": list(finding(comparison)),
        "notes": comparison.notes,
        "changes": [asdict(change) for change in comparison.changes],
        **asdict(comparison.runs),
    }


def _records(comparison: RunComparison) -> Iterator[dict[str, Any]]:
    """Yield a record per column and system; an empty system stands for all."""
    for row in comparison.runs.means:
        e = row.estimate
        yield {
            "column": row.column,
            "system": row.system,
            "before": row.before,
            "after": row.after,
            "change": e.value,
            "low": e.low,
            "high": e.high,
            "n": e.n,
            "p": e.p,
            "adjusted_p": row.adjusted,
            "significant": row.significant,
            "higher": row.up,
            "equal": row.same,
            "lower": row.down,
            "method": e.method,
        }


def _next_commands(comparison: RunComparison) -> tuple[str, ...]:
    means = comparison.runs.means
    if comparison.names == ("before", "after") or not any(row.up or row.down for row in means):
        return ()  # results in memory have no folder
    before, after = map(quote, comparison.names)
    full = f"judge compare {before} {after} --full"
    return (full,) if any(row.significant for row in means) else (full, f"judge power {after}")


# The finding


def finding(comparison: RunComparison) -> Iterator[str]:
    """Say which means changed significantly, or which changed most."""
    rows = [row for row in comparison.runs.means if row.system]
    means = plural(len(rows), "mean")
    changed = [row for row in rows if row.up or row.down]
    tested = [row for row in changed if row.adjusted is not None]
    significant, together = (
        sorted((row for row in side if row.significant), key=lambda row: _importance(comparison, row))
        for side in (tested, [row for row in comparison.runs.means if not row.system])
    )
    together = [row for row in together if row.column != OVERALL] or together
    over_all = " and ".join(_size(comparison, row) for row in together[:2])
    if not rows:
        yield "No column has values in both runs"
    elif not changed:
        yield f"No score changed: all values of {means} are equal"
    elif not significant and together:
        p = format_p(together[0].adjusted or 0.0)
        yield f"{over_all} over all systems ({p}); no system's mean changed significantly"
        return
    elif not significant:
        yield f"No significant change in {means}" if tested else f"Too few items to test the changes of {means}"
        yield from _largest_change(comparison, changed)
    elif len(significant) <= 2:
        n = len(rows) - len(significant)
        others = f"; the other {f'{n:,} means' if n > 1 else 'mean'} did not change significantly" if n else ""
        parts = [f"{_size(comparison, row)} ({format_p(row.adjusted or 0.0)})" for row in significant]
        yield f"{' and '.join(parts)}{others}"
    else:
        yield f"{len(significant):,} of {means} changed significantly; {_size(comparison, significant[0])}"
    if together:
        yield f"Over all systems, {over_all}."


def _importance(comparison: RunComparison, row: MeanChange) -> tuple[int, float]:
    """Return a key that sorts criteria before the overall score and metrics, and large changes first."""
    column = comparison.columns.get(row.column)
    if column is None or column.low is None or column.high is None or column.high == column.low:
        return 1 if row.column == OVERALL else 2, -abs(row.estimate.value)
    return 3 if column.judge else 0, -abs(row.estimate.value) / (column.high - column.low)


def _size(comparison: RunComparison, row: MeanChange) -> str:
    """Return `relevance fell by 0.31 for bart`, or for all systems `relevance fell by 0.31 [0.10, 0.52]`."""
    e, column, places = row.estimate, _column(comparison, row.column), _places(comparison, row)
    amount = f"{number(100 * abs(e.value), 0)} points" if share_label(column) else number(abs(e.value), places)
    several = len({other.system for other in comparison.runs.means if other.system}) > 1
    system = f" for {one_line(row.system, 60)}" if row.system and several else ""
    if not row.system and e.low is not None and e.high is not None and e.low * e.high > 0:
        low, high = sorted((abs(e.low), abs(e.high)))
        amount += f" {interval_text(column, low, high, places)}"
    return f"{column_title(row.column)} {'rose' if e.value > 0 else 'fell'} by {amount}{system}"


def _largest_change(comparison: RunComparison, changed: Sequence[MeanChange]) -> Iterator[str]:
    row = min(changed, key=lambda row: _importance(comparison, row))
    p = f" ({format_p(row.adjusted)})" if row.adjusted is not None else ""
    needed = items_needed(row.estimate)
    more = ""
    if needed is not None and row.estimate.n < needed <= 100_000:
        more = f" If it is real, detecting it needs about {needed:,} items."
    yield f"The largest change: {_size(comparison, row)}{p}.{more}"


def _counts(comparison: RunComparison) -> str:
    runs = comparison.runs
    parts = [f"{plural(runs.texts, 'text')} in both runs"]
    if runs.appeared or runs.vanished:
        parts.append(f"{plural(len(runs.appeared), 'new failure')}, {len(runs.vanished):,} gone")
    return " · ".join(parts)


# Means


def _column(comparison: RunComparison, name: str) -> Measured:
    return comparison.columns.get(name) or Measured(name, "metric", "")


def _places(comparison: RunComparison, row: MeanChange) -> int:
    ends = [other for other in comparison.runs.means if other.column == row.column]
    values = [value for other in ends for value in (other.before, other.after)]
    return 3 if row.column == OVERALL else decimal_places(_column(comparison, row.column), values)


def _changed_columns(comparison: RunComparison) -> list[str]:
    """Return the columns in which any value differs: overall, criteria, metrics, then single judges."""
    order = {OVERALL: -1}
    for row in comparison.runs.means:
        if row.up or row.down:
            column = _column(comparison, row.column)
            order.setdefault(row.column, 2 if column.judge else 0 if column.kind == "criterion" else 1)
    names = {row.column for row in comparison.runs.means if row.up or row.down}
    return sorted((name for name in order if name in names), key=lambda name: order[name])


def _change_text(column: Measured, value: float, places: int) -> str:
    return f"{signed(100 * value, 0)} points" if share_label(column) else signed(value, places)


def _tone(column: Measured, row: MeanChange) -> Tone:
    if not row.significant:
        return ""
    if not column.better:
        return "strong"
    return "good" if (row.estimate.value > 0) == (column.better == "higher") else "bad"


def _overview(comparison: RunComparison) -> Table:
    """Tabulate the means after with their changes: a row per system, a column per changed column."""
    names = (changed := _changed_columns(comparison))[:_MAX_COLUMNS]
    rows: dict[str, dict[str, MeanChange]] = {}
    for row in comparison.runs.means:
        if row.column in names:
            rows.setdefault(row.system, {})[row.column] = row
    systems = list(rows)
    if len(systems) > _MAX_ROWS:
        # The row of all systems together stays.
        largest = sorted(
            systems, key=lambda s: (bool(s), min(_importance(comparison, row) for row in rows[s].values()))
        )[:_MAX_ROWS]
        systems = [system for system in systems if system in largest]
    parts = ["mean after, and its change"]
    if any(row.significant for cells in rows.values() for row in cells.values()):
        parts.append("* significant")
    if hidden := len(changed) - len(names):
        parts.append(f"{plural(hidden, 'more column')}")
    if hidden := len(rows) - len(systems):
        parts.append(f"{plural(hidden, 'system')} with smaller changes")
    return Table(
        (Column("", numeric=False), *(_head(comparison, name) for name in names)),
        tuple(
            (
                Cell(one_line(system) or _ALL, tone="" if system else "strong"),
                *(_overview_cell(comparison, rows[system].get(name)) for name in names),
            )
            for system in systems
        ),
        caption="Changes of the means.",
        key=" · ".join(parts),
        name="changes",
        short=True,
    )


def _head(comparison: RunComparison, name: str) -> Column:
    return Column(column_title(name), better=_column(comparison, name).better or "")


def _overview_cell(comparison: RunComparison, row: MeanChange | None) -> Cell:
    if row is None:
        return Cell("–")
    column, places = _column(comparison, row.column), _places(comparison, row)
    mean, change = mean_text(column, row.after, places), row.estimate.value
    if row.up or row.down:
        share = f"{signed(100 * change, 0)}" if share_label(column) else signed(change, places)
        mean = f"{mean} {share}"
    return Cell(mean, mark="*" if row.significant else "", tone=_tone(column, row), value=change)


def mean_blocks(comparison: RunComparison) -> Iterator[Block]:
    """Yield a table per column in which any value differs, with the chart of the changes."""
    names = _changed_columns(comparison)
    if names:
        yield _chart(comparison, names[:_MAX_PANELS])
    for name in names:
        rows = [row for row in comparison.runs.means if row.column == name]
        lower = " (lower is better)" if _column(comparison, name).better == "lower" else ""
        yield Heading(f"{column_title(name)}{lower}")
        yield _mean_table(comparison, name, rows)
    equal = [row.column for row in comparison.runs.means if row.column not in names]
    if equal:
        yield Paragraph(f"No value differs in {_listed(map(column_title, dict.fromkeys(equal)))}.")
    if names:
        # Intervals of different columns may use different methods: name the most common one.
        methods = Counter(row.estimate.method for row in comparison.runs.means if row.estimate.low != row.estimate.high)
        lines = [
            "Change: after minus before, mean over the items of both runs.",
            "* significant: p < .05 after Holm's correction over all systems and columns in which any value differs.",
            "Texts: number of texts whose value rose, stayed and fell.",
            *(f"[low, high]: {method}." for method, _ in methods.most_common(1)),
        ]
        yield Details("How to read these tables", (Bullets(tuple(lines)),))


def _mean_table(comparison: RunComparison, name: str, rows: Sequence[MeanChange]) -> Table:
    column, cells = _column(comparison, name), []
    for row in rows:
        e, places = row.estimate, _places(comparison, row)
        counted = e.p is not None or e.n == 1
        change = Cell(
            _change_text(column, e.value, places),
            note=interval_text(column, e.low, e.high, places),
            mark="*" if row.significant else "",
            tone=_tone(column, row),
            value=e.value,
        )
        cells.append(
            (
                Cell(one_line(row.system) or _ALL),
                Cell(mean_text(column, row.before, places), value=row.before),
                Cell(mean_text(column, row.after, places), value=row.after),
                change,
                Cell(p_cell(row.adjusted), value=row.adjusted),
                *(Cell(f"{n:,}" if counted else "", value=n) for n in (row.up, row.same, row.down)),
            )
        )
    heads = (Column("before"), Column("after"), Column("change"), Column("p"))
    texts = tuple(Column(head, group="texts") for head in ("↑", "=", "↓"))
    caption = f"{column_title(name)}: means before and after."
    return Table(
        (Column("system", numeric=False), *heads, *texts), tuple(cells), caption=caption, name=f"change-{name}"
    )


def _chart(comparison: RunComparison, names: Sequence[str]) -> Chart:
    """Draw the changes of the first columns with their intervals."""
    by_key = {(row.system, row.column): row for row in comparison.runs.means}
    systems = list(dict.fromkeys(system for system, column in by_key if column in names))
    panels = []
    for name in names:
        column = _column(comparison, name)
        bars: list[intervals.Bar | None] = []
        for system in systems:
            row = by_key.get((system, name))
            if row is None:
                bars.append(None)
                continue
            e, places = row.estimate, _places(comparison, row)
            tone: Literal["", "best", "worse"] = {"good": "best", "bad": "worse"}.get(_tone(column, row), "")  # type: ignore[assignment]
            bars.append(intervals.Bar(e.value, e.low, e.high, _change_text(column, e.value, places), tone=tone))
        ends = [end for bar in bars if bar for end in (bar.value, bar.low, bar.high) if end is not None]
        panels.append(intervals.Panel(_symmetric(max(map(abs, ends))), bars, column_title(name)))
    rows = [one_line(system) or _ALL for system in systems]
    caption = "Change of the mean, after minus before, with 95% intervals."
    return intervals.intervals("changes", "Changes", rows, panels, caption=caption)


def _symmetric(furthest: float) -> Axis:
    """Return an axis with 0 in the middle that ends at a round number above `furthest`."""
    power = 10.0 ** floor(log10(furthest)) if furthest > 0 else 1.0
    limit = next(m * power for m in (1, 2, 5, 10) if m * power >= furthest)
    return even(-limit, limit, limit)


# Settings, failures, items and what is not compared


def _settings(comparison: RunComparison) -> Iterator[str]:
    """Yield a line per changed setting."""
    for change in comparison.changes:
        yield f"{_setting(comparison, change)}: {one_line(change.before, 80)} → {one_line(change.after, 80)}"


def _setting(comparison: RunComparison, change: Change) -> str:
    """Return the name of a setting, with its columns unless it is one of all criteria: `prompt of relevance`."""
    criteria = {name for name, column in comparison.columns.items() if column.kind == "criterion"}
    if not change.columns or (len(criteria) > 1 and criteria == set(change.columns)):
        return change.what
    return f"{change.what} of {_listed(map(one_line, change.columns))}"


def _prompt_blocks(comparison: RunComparison) -> Iterator[Block]:
    for change in comparison.changes:
        if change.diff:
            yield Heading(_setting(comparison, change))
            yield Diff(tuple(map(escape_controls, change.diff)))


def _failure_blocks(comparison: RunComparison) -> Iterator[Block]:
    runs, rows = comparison.runs, []
    for state, failures in (("new", runs.appeared), ("gone", runs.vanished)):
        kinds: dict[str, list[Failure]] = {}
        for row in failures:
            kinds.setdefault(row.error, []).append(row)
        for error, same in sorted(kinds.items(), key=lambda kind: -len(kind[1])):
            first = same[0]
            columns = _listed(one_line(name) for name in dict.fromkeys(row.column for row in same))
            place = f"{one_line(first.item or 'all texts', 80)}, {one_line(first.system, 80)}"
            example = f"{place}: {one_line(first.message, 200)}"
            cells = (state, one_line(error), f"{len(same):,}", columns, example)
            rows.append(tuple(map(Cell, cells)))
    if rows:
        heads = (("", False), ("error", False), ("count", True), ("columns", False), ("example", False))
        columns_ = tuple(Column(head, numeric=numeric) for head, numeric in heads)
        yield Table(columns_, tuple(rows), caption="Failures of one run only.", name="failures")


def _item_blocks(comparison: RunComparison) -> Iterator[Block]:
    """Yield the items that changed most, with the judge's words before and after."""
    keys = {_key(shift) for item in comparison.runs.changed_items for shift in item.shifts}
    words = [
        {
            key: (score.provenance.reason or score.provenance.raw or "")[:_MAX_TEXT]
            for score in result.table.scores
            if (key := (score.item, score.system, score.column)) in keys
        }
        for result in (comparison.before, comparison.after)
    ]
    outputs = {(s.item, s.system): s.output for s in comparison.after.table.samples}
    for item in comparison.runs.changed_items[:_MAX_ITEMS]:
        blocks: list[Block] = []
        shown: set[str] = set()  # systems whose text is above
        for shift in item.shifts[:_MAX_SHIFTS]:
            before, after = (side.get(_key(shift), "") for side in words)
            facts = [("judge", after)] if before == after else [("judge before", before), ("judge after", after)]
            if shift.system not in shown:
                facts.append(("text", outputs.get((shift.item, shift.system), "")[:_MAX_TEXT]))
            shown.add(shift.system)
            blocks.append(Paragraph(_shift_text(comparison, shift), tone="strong"))
            blocks.append(Facts(tuple((name, one_line(text)) for name, text in facts if text)))
        yield Details(_item_title(comparison, item), tuple(blocks))


def _key(shift: Shift) -> tuple[str, str, str]:
    return shift.item, shift.system, shift.column


def _item_title(comparison: RunComparison, item: Item) -> str:
    first = f": {_shift_text(comparison, item.shifts[0])}" if item.shifts else ""
    return f"{one_line(item.item, 80)} ({100 * item.size:.0f} % of the scale){first}"


def _shift_text(comparison: RunComparison, shift: Shift) -> str:
    return f"{one_line(shift.system, 80)} {column_title(shift.column)} {_values(comparison, shift)}"


def _values(comparison: RunComparison, shift: Shift) -> str:
    column = _column(comparison, shift.column)
    places = decimal_places(column, [shift.before, shift.after])
    return " → ".join(score_text(column, value, places) for value in (shift.before, shift.after))


def _excerpt(comparison: RunComparison, shift: Shift) -> Excerpt:
    return Excerpt(_values(comparison, shift), one_line(shift.system), one_line(shift.item), column_title(shift.column))


def _not_compared(comparison: RunComparison) -> Iterator[str]:
    """Say which columns, systems and texts are not compared."""
    runs = comparison.runs
    known = {row.column for row in runs.means} | dict(runs.incomparable).keys()
    had = {column.name for column in comparison.before.table.columns}
    if without := [one_line(name) for name in comparison.columns if name in had and name not in known]:
        yield f"No text has a value in both runs for {_listed(without)}."
    both = [name for name in comparison.before.table.systems if name in comparison.after.table.systems]
    scored: dict[str, set[str]] = {}
    for row in runs.means:
        scored.setdefault(row.column, set()).add(row.system)
    columns_by_systems: dict[tuple[str, ...], list[str]] = {}
    for name, systems in scored.items():
        if missing := tuple(one_line(system) for system in both if system not in systems):
            columns_by_systems.setdefault(missing, []).append(one_line(name))
    for missing, columns in columns_by_systems.items():
        yield f"No text of {_listed(missing)} has a value in both runs for {_listed(columns)}."
    for name, reason in runs.incomparable:
        yield f"{one_line(name)} is not compared: {reason}."
    for name, only in zip(comparison.names, runs.only, strict=True):
        for kind, names in (("item", only.items), ("system", only.systems), ("column", only.columns)):
            if names:
                listed = _listed(one_line(n, 80) for n in names)
                yield f"Only in {one_line(name)}: {plural(len(names), kind)} ({listed})."
    if runs.edited:
        yield f"Output, source or references differ in {plural(runs.edited, 'text')} of both runs."
    first, second = runs.unanswered
    if first or second:
        yield f"Not requested in the second run: {plural(first, 'value')}; in the first: {second:,}."


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _MAX_NAMED:,} more" if len(listed) > _MAX_NAMED else ""
    return ", ".join(listed[:_MAX_NAMED]) + more
