"""The report of `judge history`: means over finished runs, and where they changed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial

from judge.core.format import format_p, listed, number, one_line, plural, signed
from judge.report import charts
from judge.report.document import Block, Cell, Column, Document, Section, Table, Tone, table
from judge.report.format import column_title, decimal_places, interval_text, mean_text, share_label
from judge.report.views.columns import change_tone
from judge.results.history import History, HistoryRun, Series, Step
from judge.stats.analyze import NAME as OVERALL

SCHEMA = "judge.history/1"
_MAX_RUNS, _MAX_SYSTEMS, _MAX_FOUND = 10, 5, 3  # of the summary
_DAY, _MINUTE = 10, 16  # characters of a date, and of a date with its time
_COMMIT = 8


def view(history: History) -> Document:
    """Make the report."""
    names = list(dict.fromkeys(each.column.name for each in history.series))
    sections = [Section(f"column-{name}", column_title(name), partial(_blocks, history, name)) for name in names]
    first = OVERALL if OVERALL in names else next(iter(names), "")
    summary = [_table(history, first, short=True)] if first else []
    newest = next(iter(history.changes), None)
    compared = [history.runs[place].folder for place in (newest[1].since or 0, newest[1].run)] if newest else []
    heads = [Column(head, numeric=False) for head in ("run", "started", "commit", "judge", "served by")]
    heads += map(Column, ("texts", "other texts", "failed"))
    runs = [
        [
            run.folder, run.started[:_MINUTE].replace("T", " "), run.commit[:_COMMIT] or "–", one_line(run.judge, 60),
            one_line(", ".join(run.served_by), 60) or "–", f"{run.texts:,}", f"{run.edited:,}", f"{run.failed:,}",
        ]
        for run in history.runs
    ]  # fmt: skip
    records = [
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
    ]  # fmt: skip
    return Document(
        title=f"History of {plural(len(history.runs), 'run')}",
        finding=tuple(_finding(history)),
        scope=f"{_day(history.runs[0])} – {_day(history.runs[-1])}",
        notices=tuple(map(one_line, history.notes)),
        summary=tuple(summary),
        sections=(*sections, Section("runs", "Runs", lambda: [table(heads, runs, name="history-runs")])),
        next=(shlex.join(["judge", "compare", *compared]),) if compared else (),
        data={
            "schema": SCHEMA,
            "finding": list(_finding(history)),
            "runs": [asdict(run) for run in history.runs],
            "series": [
                {"column": each.column.name, "system": each.system, "steps": [asdict(step) for step in each.steps]}
                for each in history.series
            ],
            "notes": list(history.notes),
        },
        records=tuple(records),
    )


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
        f"{column_title(series.column.name)} of {one_line(series.system, 40)} {verb} by {amount} on {_day(after)}, "
        f"{format_p(step.adjusted or 0.0)}: {context}."
    )


def _table(history: History, name: str, *, short: bool = False) -> Table:
    """Return a row per run and a column per system; the summary has the newest runs."""
    series = [each for each in history.series if each.column.name == name][: _MAX_SYSTEMS if short else None]
    by_run = [{step.run: step for step in each.steps} for each in series]
    places = max((decimal_places(s.column, [step.mean.value for step in s.steps]) for s in series), default=2)
    heads = [Column("run", numeric=False)]
    heads += [Column("commit", numeric=False)] if _has_commits(history) else []
    heads += [Column(one_line(each.system, 40), better=each.column.better) for each in series]
    rows = []
    for place in range(max(0, len(history.runs) - _MAX_RUNS) if short else 0, len(history.runs)):
        run = history.runs[place]
        cells = [Cell(_label(history, run), title=run.folder)]
        cells += [Cell(run.commit[:_COMMIT])] if _has_commits(history) else []
        rows.append([*cells, *(_cell(s, steps.get(place), places) for s, steps in zip(series, by_run, strict=True))])
    key = "▲ ▼: changed significantly since the last mark, or since the first run."
    hidden = len([each for each in history.series if each.column.name == name]) - len(series)
    key += f" {plural(hidden, 'more system')}: --full." if hidden else ""
    return table(heads, rows, caption=column_title(name) if short else "", key=key, name=f"history-{name}", short=short)


def _cell(series: Series, step: Step | None, places: int) -> Cell:
    if step is None:
        return Cell("–")
    column, change = series.column, step.change
    tone: Tone = ""
    mark = title = ""
    if change is not None and step.significant:
        mark = " ▲" if change.estimate.value > 0 else " ▼"
        tone = change_tone(change.estimate.value, column.better)
    if change is not None:
        title = f"{signed(change.estimate.value, places)} since run {(step.since or 0) + 1}"
        title += "" if step.adjusted is None else f", {format_p(step.adjusted)}"
    mean = step.mean
    note = interval_text(column, mean.low, mean.high, places)
    return Cell(mean_text(column, mean.value, places), note, tone, mark, title, value=mean.value)


def _blocks(history: History, name: str) -> Iterator[Block]:
    series = [each for each in history.series if each.column.name == name]
    if len(history.runs) > 1:
        lines = [
            charts.Line(
                one_line(each.system, 40),
                tuple((step.run, step.mean.value) for step in each.steps),
                frozenset(step.run for step in each.steps if step.significant),
            )
            for each in series[: charts.MAX_LINES]
        ]
        ticks = [_label(history, run) for run in history.runs]
        ends = series[0].column.low, series[0].column.high
        yield charts.lines(f"history-{name}", column_title(name), lines, ticks, ends)
    yield _table(history, name)


def _has_commits(history: History) -> bool:
    return any(run.commit for run in history.runs)


def _day(run: HistoryRun) -> str:
    return run.started[:_DAY] or run.folder


def _label(history: History, run: HistoryRun) -> str:
    """Return the run's day, with the time if another run has the same day."""
    alone = sum(_day(other) == _day(run) for other in history.runs) == 1
    return _day(run) if alone or not run.started else run.started[:_MINUTE].replace("T", " ")
