"""The report of `judge compare`: the means that changed between two runs, and on which items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from shlex import quote
from typing import Any, Literal, NamedTuple

from judge.commands.compare import marks
from judge.commands.compare.finding import finding
from judge.commands.compare.means import Mean, all_means, is_split
from judge.core.failure_kinds import failure_kind
from judge.core.format import (
    escape_controls,
    first_names,
    one_line,
    plural,
)
from judge.core.messages import Remark
from judge.core.records import Column as Measured
from judge.core.records import Failure, Score
from judge.core.signature import Signature
from judge.report.charts.axes import around
from judge.report.charts.bars import Bar, Panel, intervals
from judge.report.document import (
    ARROWS,
    Block,
    Bullets,
    Cell,
    Chart,
    Column,
    Content,
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
    table,
)
from judge.report.format import (
    column_title,
    decimal_places,
    score_text,
    share_label,
)
from judge.report.views.columns import contradicts_test, p_cell, score_places
from judge.results.comparison import Change, RunComparison
from judge.results.result import Result
from judge.stats.bootstrap import MIN_INTERVAL_ITEMS
from judge.stats.run_differences import MeanChange, Shift

SCHEMA = "judge.compare/1"
_MAX_ROWS = 7  # of the summary's table
_MAX_REMARKS = 3  # in the summary
_MAX_EXCERPTS = 2  # in the summary
_MAX_NAMED = 8  # names of a list
_MAX_PANELS = 4  # columns of the chart
_MAX_ITEMS = 20  # items that are shown with their texts
_MAX_SHIFTS = 5  # values that are shown of each item
_MAX_TEXT = 2_000  # characters of a text


def view(comparison: RunComparison) -> Document:
    """Make the report of a comparison."""
    runs = comparison.runs
    differences = list(_other_differences(comparison))
    summary = list(summary_blocks(comparison))
    if differences:
        summary.append(Bullets(tuple(differences[:_MAX_REMARKS])))
    texts = plural(runs.texts, "text")
    footer = f"{texts} in both runs"
    if runs.appeared or runs.vanished:
        new_failures = plural(len(runs.appeared), "new failure")
        footer += f" · {new_failures}, {len(runs.vanished):,} gone"
    before, after = map(one_line, comparison.names)
    short_before, short_after = (one_line(name, 40) for name in comparison.names)
    items = plural(runs.items, "item")
    remarks = [one_line(note) for note in comparison.notes if isinstance(note, Remark)]
    notices = [
        one_line(note) for note in comparison.notes if not isinstance(note, Remark)
    ]
    return Document(
        title=f"{before} → {after}",
        finding=tuple(finding(comparison)),
        scope=f"{short_before} → {short_after} · {items}",
        notices=tuple(notices),
        remarks=tuple(remarks),
        summary=tuple(summary),
        sections=tuple(_sections(comparison, differences[_MAX_REMARKS:])),
        footer=(footer,),
        next=_next_commands(comparison),
        data=data(comparison),
        records=tuple(_records(comparison)),
    )


def _other_differences(comparison: RunComparison) -> Iterator[str]:
    """Yield the pass marks, the settings that differ, and what is not compared."""
    for mark in comparison.pass_marks:
        yield marks.remark(mark)
    for change in comparison.changes:
        setting = _setting(comparison, change)
        value_before = one_line(change.before, 80)
        value_after = one_line(change.after, 80)
        yield f"{setting}: {value_before} → {value_after}"
    yield from _not_compared(comparison)


def _sections(
    comparison: RunComparison, more_remarks: Sequence[str]
) -> Iterator[Section]:
    """Yield the sections that have something to show."""
    runs = comparison.runs
    if runs.means:
        yield Section("means", "Means", lambda: mean_blocks(comparison))
    pass_marks = comparison.pass_marks
    if pass_marks:
        yield Section("marks", "Pass marks", lambda: marks.mark_blocks(pass_marks))
    prompts: list[Block] = []
    for change in comparison.changes:
        if change.diff:
            heading = _setting(comparison, change)
            lines = tuple(map(escape_controls, change.diff))
            prompts += [Heading(heading), Diff(lines)]
    if prompts:
        yield Section("prompts", "Prompts", lambda: prompts)
    if runs.appeared or runs.vanished:
        yield Section("failures", "Failures", lambda: _failure_blocks(comparison))
    if runs.changed_items:
        yield Section(
            "items", "Items that changed most", lambda: _item_blocks(comparison)
        )
    if more_remarks:
        bullets = Bullets(tuple(more_remarks))
        yield Section("remarks", "Other differences", lambda: (bullets,))


def _next_commands(comparison: RunComparison) -> tuple[str, ...]:
    """Return the commands that show more; none if the runs are not in folders, or are equal."""
    if comparison.names == ("before", "after"):
        return ()
    means = comparison.runs.means
    if not any(mean.up or mean.down for mean in means):
        return ()
    before, after = (quote(name) for name in comparison.names)
    full_report = f"judge compare {before} {after} --full"
    if any(mean.significant for mean in means):
        return (full_report,)
    # The plan says how many items a significant difference would need.
    return (full_report, f"judge plan {after}")


def summary_blocks(comparison: RunComparison) -> Iterator[Block]:
    """Yield a short table of the means and the items that changed most."""
    yield from _overview(comparison)
    excerpts = []
    for item in comparison.runs.changed_items[:_MAX_EXCERPTS]:
        shift = item.shifts[0]
        values = _values(comparison, shift)
        system = one_line(shift.system)
        item_name = one_line(shift.item)
        title = column_title(shift.column)
        excerpts.append(Excerpt(values, system, item_name, title))
    if excerpts:
        n_more = comparison.runs.n_changed_items - len(excerpts)
        yield Excerpts("Changed", tuple(excerpts), n_more)


def data(comparison: RunComparison) -> dict[str, Any]:
    """Return what JSON writes."""
    return {
        "schema": SCHEMA,
        "before": comparison.names[0],
        "after": comparison.names[1],
        "finding": list(finding(comparison)),
        "notes": comparison.notes,
        "changes": comparison.changes,
        "pass_marks": comparison.pass_marks,
        **asdict(comparison.runs),
    }


def _records(comparison: RunComparison) -> Iterator[dict[str, Any]]:
    """Yield a record per column and system; an empty system stands for all."""
    for row in comparison.runs.means:
        record = asdict(row)
        # CSV has no nested values, so each part of an estimate gets a column.
        for field in ("estimate", "judge", "system_change", "system_adjusted"):
            del record[field]
        estimate = row.estimate
        record["change"] = estimate.value
        record["low"] = estimate.low
        record["high"] = estimate.high
        record["n"] = estimate.n
        record["p"] = estimate.p
        record["method"] = estimate.method
        record["test"] = estimate.test
        parts = {"judge": row.judge, "system_change": row.system_change}
        for part_name, part in parts.items():
            record[part_name] = part.value if part else None
            record[f"{part_name}_low"] = part.low if part else None
            record[f"{part_name}_high"] = part.high if part else None
        record["system_adjusted"] = row.system_adjusted
        yield record


# Means


def _overview(comparison: RunComparison) -> Iterator[Block]:
    """Yield a table of the second run's means, with their changes.

    It has a row for each system, and a column for each column whose mean changed.
    """
    means = all_means(comparison)
    better_by_column = {
        mean.row.column: mean.column.better for mean in means if mean.differs
    }
    if not better_by_column:
        return
    cells = {}
    for mean in means:
        cell_text = mean.text(mean.row.after)
        if mean.differs:
            cell_text += f" {mean.change_cell.text}"
        system_and_column = (mean.system, mean.row.column)
        cells[system_and_column] = replace(mean.change_cell, text=cell_text, note="")

    # All systems together come first, then those that changed most.
    def order(mean: Mean) -> tuple[bool, tuple[int, float]]:
        return bool(mean.row.system), mean.importance

    changed_means = [mean for mean in means if mean.row.column in better_by_column]
    largest_first = sorted(changed_means, key=order)
    systems = list(dict.fromkeys(mean.system for mean in largest_first))
    key_parts = ["mean after, and its change"]
    n_hidden = len(systems) - _MAX_ROWS
    if n_hidden > 0:
        hidden_systems = plural(n_hidden, "system")
        key_parts.append(f"{hidden_systems} with smaller changes")
    heads = [
        Column(column_title(column_name), better=better)
        for column_name, better in better_by_column.items()
    ]
    rows = []
    for system in systems[:_MAX_ROWS]:
        system_cells = [
            cells.get((system, column_name)) for column_name in better_by_column
        ]
        rows.append((system, *system_cells))
    yield table(
        ("", *heads),
        rows,
        caption="Changes of the means.",
        key=" · ".join(key_parts),
        star="* significant",
        name="changes",
        short=True,
    )


def mean_blocks(comparison: RunComparison) -> Iterator[Block]:
    """Yield the chart of the changes, and a table of the columns in which any value differs."""
    means_by_column: dict[str, list[Mean]] = {}
    for mean in all_means(comparison):
        means_by_column.setdefault(mean.row.column, []).append(mean)
    changed = []
    equal = []
    for column_name, means in means_by_column.items():
        if any(mean.differs for mean in means):
            changed.append(means)
        else:
            equal.append(column_title(column_name))
    if changed:
        yield _chart(changed[:_MAX_PANELS])
        means_in_table = [mean for means in changed for mean in means]
        yield _mean_table(means_in_table, comparison.runs.anchors)
    if equal:
        yield Paragraph(f"No value differs in {_listed(equal)}.")


def _mean_table(means: Sequence[Mean], anchors: int) -> Table:
    # Intervals of different columns may use different methods: name the most common one.
    estimates = [mean.row.estimate for mean in means]
    methods = Counter(
        estimate.described for estimate in estimates if estimate.low is not None
    )
    interval = ""
    if methods:
        [(most_common, _)] = methods.most_common(1)
        interval = f" [low, high]: {most_common}."
    same_items = plural(anchors, "item")
    table_key = "↑ = ↓: texts whose value rose, stayed and fell."
    if any(_contradicts_test(mean.row) for mean in means):
        table_key += " Intervals are of each change alone; p decides."
    about = (
        f"Judge's part: the change of scores of {same_items} with the same text in both runs "
        "(those of the system if there are five), assumed to be the same for the changed texts."
    )
    parts = (
        Column("judge's part", optional=True, about=(about,)),
        Column("system's part", optional=True),
        Column("its p", optional=True),
    )
    counts = [Column(head, group="texts") for head in ("↑", "=", "↓")]
    system = Column("system", numeric=False)
    return table(
        ("column", system, "before", "after", "change", "p", *parts, *counts),
        [_mean_row(mean) for mean in means],
        caption=f"Means before and after, over the items of both runs.{interval}",
        key=table_key,
        star="* p < .05 after Holm's correction.",
        name="means",
    )


def _contradicts_test(row: MeanChange) -> bool:
    """Return whether the interval and p of a change, or of the system's part, disagree."""
    change = row.estimate
    if contradicts_test(change.low, change.high, row.adjusted):
        return True
    of_system = row.system_change
    if of_system is None or not is_split(row):
        return False
    return contradicts_test(of_system.low, of_system.high, row.system_adjusted)


def _mean_row(mean: Mean) -> list[Content]:
    row = mean.row
    parts: tuple[Content, ...] = (None, None, None)
    if is_split(row):
        p_value_cell = Cell(p_cell(row.system_adjusted), value=row.system_adjusted)
        parts = (mean.part(row.judge), mean.system_change_cell, p_value_cell)
    counts: tuple[Content, ...] = (None, None, None)
    if row.estimate.p is not None or row.estimate.n == 1:
        counts = (row.up, row.same, row.down)
    cell_before = Cell(mean.text(row.before), value=row.before)
    cell_after = Cell(mean.text(row.after), value=row.after)
    p_of_change = Cell(p_cell(row.adjusted), value=row.adjusted)
    column_heading = column_title(row.column) + ARROWS[mean.column.better]
    return [
        column_heading,
        mean.system,
        cell_before,
        cell_after,
        mean.change_cell,
        p_of_change,
        *parts,
        *counts,
    ]


def _chart(columns: Sequence[Sequence[Mean]]) -> Chart:
    """Draw the changes of the columns with their intervals."""
    systems = list(dict.fromkeys(mean.system for means in columns for mean in means))
    tones: dict[Tone, Literal["best", "worse"]] = {"good": "best", "bad": "worse"}
    panels = []
    for means in columns:
        bar_by_system = {}
        ends: list[float] = []
        for mean in means:
            estimate = mean.row.estimate
            change = mean.change_cell
            # In the unit of the texts: shares are in percent.
            factor = 100 if share_label(mean.column) else 1
            value = factor * estimate.value
            lower_bound = None if estimate.low is None else factor * estimate.low
            upper_bound = None if estimate.high is None else factor * estimate.high
            tone: Literal["", "best", "worse"] = tones.get(change.tone, "")
            bar_by_system[mean.system] = Bar(
                value,
                lower_bound,
                upper_bound,
                change.text,
                tone=tone,
            )
            points = (value, lower_bound, upper_bound)
            ends += [point for point in points if point is not None]
        title = column_title(means[0].row.column)
        bars = [bar_by_system.get(system) for system in systems]
        extent = around(ends)
        panels.append(Panel(extent, bars, title))
    caption = "Change of the mean, after minus before, with 95% intervals."
    chart = intervals("changes", "Changes", systems, panels, caption=caption)
    return replace(chart, tabled=True)


# Settings, failures, items and what is not compared


def _setting(comparison: RunComparison, change: Change) -> str:
    """Return the name of a setting with its columns: `prompt of relevance`.

    A setting of all criteria is named alone.
    """
    criteria = {
        criterion_name
        for criterion_name, column in comparison.columns.items()
        if column.kind == "criterion"
    }
    concerns_all = len(criteria) > 1 and criteria == set(change.columns)
    if not change.columns or concerns_all:
        return change.what
    columns = _listed(map(one_line, change.columns))
    return f"{change.what} of {columns}"


def _failure_blocks(comparison: RunComparison) -> Iterator[Block]:
    runs = comparison.runs
    failures_by_kind: dict[tuple[str, str], list[Failure]] = {}
    for state, failures in (("new", runs.appeared), ("gone", runs.vanished)):
        for failure in failures:
            state_and_error = (state, failure.error)
            failures_by_kind.setdefault(state_and_error, []).append(failure)
    rows: list[tuple[Content, ...]] = []
    for (state, error), similar in failures_by_kind.items():
        first_failure = similar[0]
        # A metric of a whole system fails for all its texts together.
        item = one_line(first_failure.item or "all texts", 80)
        system = one_line(first_failure.system, 80)
        column_names = [one_line(failure.column) for failure in similar]
        columns = _listed(dict.fromkeys(column_names))
        message = one_line(first_failure.message, 200)
        example = f"{item}, {system}: {message}"
        kind = one_line(failure_kind(error))
        rows.append((f"{state} {kind}", len(similar), columns, example))
    heads = [
        Column("failure", numeric=False),
        Column("count"),
        Column("columns", numeric=False),
        Column("example", numeric=False),
    ]
    yield table(heads, rows, caption="Failures of one run only.", name="failures")


def _item_blocks(comparison: RunComparison) -> Iterator[Block]:
    """Yield the items that changed most, with the judge's words before and after."""
    changed_items = comparison.runs.changed_items
    shifts = [shift for item in changed_items for shift in item.shifts]
    keys = {_ScoreKey.of(shift) for shift in shifts}
    words_before = _judge_words(comparison.before, keys)
    words_after = _judge_words(comparison.after, keys)
    samples = comparison.after.table.samples
    outputs = {sample.key: sample.output for sample in samples}
    for item in comparison.runs.changed_items[:_MAX_ITEMS]:
        blocks: list[Block] = []
        systems_with_text: set[str] = set()
        for shift in item.shifts[:_MAX_SHIFTS]:
            score_key = _ScoreKey.of(shift)
            before = words_before.get(score_key, _NO_WORDS)
            after = words_after.get(score_key, _NO_WORDS)
            fact_before = (f"{before.kind} before", before.text)
            fact_after = (f"{after.kind} after", after.text)
            facts = [fact_before, fact_after]
            if before == after:
                facts = [(after.kind, after.text)]
            # Several scores of a text need the text only once.
            if shift.system not in systems_with_text:
                output = outputs.get((shift.item, shift.system), "")
                facts.append(("text", output[:_MAX_TEXT]))
            systems_with_text.add(shift.system)
            # The title has the first one.
            if blocks:
                text = _shift_text(comparison, shift)
                blocks.append(Paragraph(text, tone="strong"))
            printable_facts = []
            for fact_name, words in facts:
                if words:
                    printable_facts.append((fact_name, one_line(words)))
            blocks.append(Facts(tuple(printable_facts)))
        largest_shift = _shift_text(comparison, item.shifts[0])
        item_name = one_line(item.item, 80)
        percentage = 100 * item.size
        title = f"{item_name} ({percentage:.0f}% of the scale): {largest_shift}"
        yield Details(title, tuple(blocks))
    n_more = comparison.runs.n_changed_items - _MAX_ITEMS
    if n_more > 0:
        more_items = plural(n_more, "more item")
        yield Paragraph(f"{more_items} changed, by less.", tone="muted")


class _ScoreKey(NamedTuple):
    """What tells a score of a run from the others."""

    item: str
    system: str
    column: str

    @classmethod
    def of(cls, score: Shift | Score) -> _ScoreKey:
        return cls(score.item, score.system, score.column)


@dataclass(frozen=True, slots=True)
class _Words:
    """The judge's reason for a score, or else its reply.

    The kind tells a reply, such as 5, from the score, which may be the mean 4.7 of probabilities.
    """

    kind: Literal["reason", "reply"]
    text: str


_NO_WORDS = _Words("reply", "")


def _judge_words(
    result: Result, keys: Collection[_ScoreKey]
) -> dict[_ScoreKey, _Words]:
    """Return the judge's words on each of these scores."""
    words: dict[_ScoreKey, _Words] = {}
    for score in result.table.scores:
        score_key = _ScoreKey.of(score)
        if score_key not in keys:
            continue
        reason = score.provenance.reason
        reply = score.provenance.raw or ""
        if reason:
            words[score_key] = _Words("reason", reason[:_MAX_TEXT])
        else:
            words[score_key] = _Words("reply", reply[:_MAX_TEXT])
    return words


def _shift_text(comparison: RunComparison, shift: Shift) -> str:
    system = one_line(shift.system, 80)
    column = column_title(shift.column)
    return f"{system} {column} {_values(comparison, shift)}"


def _values(comparison: RunComparison, shift: Shift) -> str:
    column = comparison.columns.get(shift.column)
    if column is None:
        column = Measured(shift.column, "metric", Signature())
    places = decimal_places(column, [shift.before, shift.after])
    if column.kind == "criterion":
        runs = (comparison.before, comparison.after)
        places = max(score_places(run, column) for run in runs)
    text_before = score_text(column, shift.before, places)
    text_after = score_text(column, shift.after, places)
    return f"{text_before} → {text_after}"


def _not_compared(comparison: RunComparison) -> Iterator[str]:
    """Say which columns, systems and texts are not compared."""
    runs = comparison.runs
    yield from _systems_without_values(comparison)
    for column_name, reason in runs.incomparable:
        yield f"{one_line(column_name)} is not compared: {reason}."
    for run_name, only in zip(comparison.names, runs.only, strict=True):
        names_by_kind = {
            "item": only.items,
            "system": only.systems,
            "column": only.columns,
        }
        for noun, names in names_by_kind.items():
            if names:
                listed = _listed(one_line(shown_name, 80) for shown_name in names)
                count = plural(len(names), noun)
                yield f"Only in {one_line(run_name)}: {count} ({listed})."
    if runs.edited:
        yield f"Output, source or references differ in {plural(runs.edited, 'text')} of both runs."
        unsplit_systems = []
        for row in runs.means:
            column = comparison.columns.get(row.column)
            is_criterion = column is not None and column.kind == "criterion"
            if row.judge is None and row.system and is_criterion:
                unsplit_systems.append(one_line(row.system))
        if unsplit_systems:
            listed = _listed(dict.fromkeys(unsplit_systems))
            yield (
                f"Judge and system cannot be separated for {listed}: "
                f"{plural(runs.anchors, 'item')} with a text that is the same in both runs, of "
                f"{MIN_INTERVAL_ITEMS} needed."
            )
    missing_in_second, missing_in_first = runs.unanswered
    if missing_in_second or missing_in_first:
        values = plural(missing_in_second, "value")
        yield f"Not requested in the second run: {values}; in the first: {missing_in_first:,}."


def _systems_without_values(comparison: RunComparison) -> Iterator[str]:
    """Say which systems of both runs have no text with values in both, by column."""
    table_before = comparison.before.table
    table_after = comparison.after.table
    incomparable = dict(comparison.runs.incomparable)
    columns_by_systems: dict[tuple[str, ...], list[str]] = {}
    for column in table_before.columns:
        if column.name not in comparison.columns or column.name in incomparable:
            continue
        scored = {
            row.system for row in comparison.runs.means if row.column == column.name
        }
        in_both_runs = [
            system for system in table_before.systems if system in table_after.systems
        ]
        missing = tuple(system for system in in_both_runs if system not in scored)
        if missing:
            title = one_line(column.name)
            columns_by_systems.setdefault(missing, []).append(title)
    for systems, columns in columns_by_systems.items():
        names = _listed(map(one_line, systems))
        yield f"No text of {names} has a value in both runs for {_listed(columns)}."


def _listed(names: Iterable[str]) -> str:
    return first_names(names, _MAX_NAMED)
