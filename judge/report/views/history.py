"""The report of `judge history`: means over finished runs, and where they changed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial

from judge.core.format import format_p, listed, number, plural
from judge.report import charts
from judge.report.document import Block, Cell, Column, Content, Document, Section, Table, table
from judge.report.format import column_title, decimal_places, share_label
from judge.report.views.columns import marked_mean
from judge.results.history import History, HistoryRun, Series, Step
from judge.stats.analyze import NAME as OVERALL

SCHEMA = "judge.history/1"
_MAX_RUNS, _MAX_SYSTEMS, _MAX_FOUND = 10, 5, 3  # of the summary
_DAY, _MINUTE, _SECOND = 10, 16, 19  # characters of a date, and of a date with its time
_COMMIT = 8


def view(history: History) -> Document:
    """Make the report."""
    names = list(dict.fromkeys(each.column.name for each in history.series))
    finding = list(_finding(history))
    newest = next(iter(history.changes), None)
    compared = [history.runs[place].folder for place in (newest[1].since or 0, newest[1].run)] if newest else []
    runs = [
        (
            run.folder, _label(history, run), run.commit[:_COMMIT] or None, run.judge,
            ", ".join(run.served_by) or None, run.texts, run.edited, run.failed,
        )
        for run in history.runs
    ]  # fmt: skip
    heads = (Column(head, numeric=False) for head in ("run", "started", "commit", "judge", "served by"))
    run_table = table((*heads, "texts", "other texts", "failed"), runs, name="history-runs")
    return Document(
        title=f"History of {plural(len(history.runs), 'run')}",
        finding=tuple(finding),
        scope=f"{_day(history.runs[0])} – {_day(history.runs[-1])}",
        notices=history.notes,
        summary=tuple(_table(history, OVERALL if OVERALL in names else name, short=True) for name in names[:1]),
        sections=(
            *(Section(f"column-{name}", column_title(name), partial(_blocks, history, name)) for name in names),
            Section("runs", "Runs", lambda: [run_table]),
        ),
        next=(shlex.join(["judge", "compare", *compared]),) if compared else (),
        data={
            "schema": SCHEMA,
            "finding": finding,
            "runs": history.runs,
            "series": [{"column": s.column.name, "system": s.system, "steps": s.steps} for s in history.series],
            "notes": history.notes,
        },
        records=tuple(
            {
                "run": run.folder, "started": run.started, "commit": run.commit, "served_by": " ".join(run.served_by),
                "column": each.column.name, "system": each.system, "mean": mean.value, "low": mean.low,
                "high": mean.high, "n": mean.n, "change": change.estimate.value if change else None,
                "since": history.runs[step.since].folder if step.since is not None else "", "p": step.adjusted,
                "significant": step.significant,
            }
            for each in history.series
            for step in each.steps
            for run, mean, change in [(history.runs[step.run], step.mean, step.change)]
        ),
    )  # fmt: skip


def _finding(history: History) -> Iterator[str]:
    """Yield what changed, the newest first, or that nothing did."""
    runs = plural(len(history.runs), "run")
    if not history.changes:
        yield f"No significant change in {runs}"
        return
    n = len(history.changes)
    yield f"{plural(n, 'significant change')} in {runs}"
    for series, step in history.changes[:_MAX_FOUND]:
        yield _sentence(history, series, step)
    if n > _MAX_FOUND:
        yield f"{n - _MAX_FOUND:,} more in the tables."


def _sentence(history: History, series: Series, step: Step) -> str:
    """Say what changed, by how much, since when, and whether texts or the judge changed too."""
    change, since = step.change, step.since
    if change is None or since is None:
        return ""
    places = decimal_places(series.column, [step.mean.value])
    share = share_label(series.column)
    size = abs(change.estimate.value)
    amount = f"{number(100 * size, 0)} points" if share else number(size, places)
    before, after = history.runs[since], history.runs[step.run]
    verb = "rose" if change.estimate.value > 0 else "fell"
    others = [f"other texts of {plural(step.edited, 'item')}"] if step.edited else []
    if step.settings:
        others.append(f"the judge's {listed(step.settings)} differ{'s' if len(step.settings) == 1 else ''}")
    if before.served_by != after.served_by and "model" not in step.settings:
        others.append(f"another model answered ({', '.join(after.served_by) or after.judge})")
    context = "; ".join(others) or "same texts and judge"
    return (
        f"{column_title(series.column.name)} of {series.system} {verb} by {amount} on {_day(after)}, "
        f"{format_p(step.adjusted or 0.0)}: {context}."
    )


def _table(history: History, name: str, *, short: bool = False) -> Table:
    """Return a row per run and a column per system; the summary has the newest runs."""
    every = [each for each in history.series if each.column.name == name]
    series = every[: _MAX_SYSTEMS if short else None]
    places = max((decimal_places(s.column, [step.mean.value for step in s.steps]) for s in series), default=2)
    by_run = [
        {
            step.run: marked_mean(
                each.column,
                step.mean,
                places,
                step.change.estimate.value if step.change else None,
                step.adjusted,
                marked=step.significant,
                since=f"since run {(step.since or 0) + 1}",
            )
            for step in each.steps
        }
        for each in series
    ]
    rows: list[tuple[Content, ...]] = [
        (
            Cell(_label(history, run), title=run.folder),
            run.commit[:_COMMIT] or None,
            *(cells.get(place) for cells in by_run),
        )
        for place, run in enumerate(history.runs)
    ]
    key = "▲ ▼: changed significantly since the last mark, or since the first run."
    key += f" {plural(len(every) - len(series), 'more system')}: --full." if len(series) < len(every) else ""
    return table(
        (
            "run",
            Column("commit", numeric=False, optional=True),
            *(Column(each.system, better=each.column.better) for each in series),
        ),
        rows[-_MAX_RUNS if short else 0 :],
        key,
        caption=column_title(name) if short else "",
        name=f"history-{name}",
        short=short,
    )


def _blocks(history: History, name: str) -> Iterator[Block]:
    series = [each for each in history.series if each.column.name == name]
    if len(history.runs) > 1:
        lines = [
            charts.Line(
                each.system,
                tuple((step.run, step.mean.value) for step in each.steps),
                frozenset(step.run for step in each.steps if step.significant),
            )
            for each in series[: charts.MAX_LINES]
        ]
        ends = series[0].column.low, series[0].column.high
        yield charts.lines(f"history-{name}", column_title(name), lines, [_day(run) for run in history.runs], ends)
    yield _table(history, name)


def _day(run: HistoryRun) -> str:
    return run.started[:_DAY] or run.folder


def _label(history: History, run: HistoryRun) -> str:
    """Return the minute in which a run began, or the second if another one began in that minute; else its folder."""
    for end in (_MINUTE, _SECOND):
        if sum(other.started[:end] == run.started[:end] for other in history.runs) == 1:
            return run.started[:end].replace("T", " ") or run.folder
    return run.folder
