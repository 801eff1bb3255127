"""`judge.history`: the means of finished runs over time, and where they changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import ceil
from pathlib import Path

from judge.commands.compare import changed_settings
from judge.commands.public import public_api
from judge.commands.validate import open_run
from judge.core.errors import ConfigError
from judge.core.format import first_names, listed, one_line
from judge.core.plugins import require_known
from judge.core.records import Column
from judge.report.views.provenance import UNFINISHED
from judge.results.comparison import Change
from judge.results.history import History, HistoryRun, Series, Step
from judge.results.result import Result
from judge.stats.analyze import NAME as OVERALL
from judge.stats.analyze import overall
from judge.stats.power import ALPHA
from judge.stats.run_differences import MeanChange, Runs, compare_runs


@public_api()
def history(
    runs: Sequence[Result | str | Path], *, columns: Sequence[str] = (), seed: int = 0, n_flips: int = 10_000
) -> History:
    """Show the means of two or more finished runs over time, and where they changed.

    Runs are ordered by their start. `columns` are by default the criteria and the overall score. Each run is compared
    with the last one that changed (at first with the oldest), column by column and system by system, so that a slow
    drift is found too: a paired sign-flip test over items, on the texts of both. p is corrected (Bonferroni) for the
    number of all changes that the history can show.

    Rankings are left out. Raises ConfigError for fewer than two other runs and for an unknown column, and StorageError.
    """
    loaded, notes = _load(runs)
    shown = _columns([run.result for run in loaded], columns)
    systems = list(dict.fromkeys(system for run in loaded for system in run.result.table.systems))
    pairs = [(column, system) for column in shown.values() for system in systems]
    tests = max(1, len(pairs) * (len(loaded) - 1))

    @cache
    def compared(before: int, after: int) -> Runs:
        """Compare two runs, by their places; once for all columns and systems."""
        tables = loaded[before].result.table, loaded[after].result.table
        return compare_runs(*tables, seed=seed, n_flips=max(n_flips, ceil(2 * tests / ALPHA)))

    @cache
    def changes(before: int, after: int) -> Mapping[tuple[str, str], MeanChange]:
        return {(row.column, row.system): row for row in compared(before, after).means}

    @cache
    def settings(before: int, after: int) -> list[Change]:
        return [change for change in changed_settings(loaded[before].result, loaded[after].result) if change.columns]

    def steps(column: str, system: str) -> Iterator[Step]:
        """Yield a system's mean in each run, compared with the last run in which it changed."""
        since: int | None = None
        for place, run in enumerate(loaded):
            mean = run.result.estimates.get((system, column))
            if mean is None:
                continue
            change = changes(since, place).get((column, system)) if since is not None else None
            p = change.estimate.p if change is not None else None
            adjusted = None if p is None else min(1.0, p * tests)
            differ = settings(since, place) if since is not None else ()
            named = tuple(dict.fromkeys(each.what for each in differ if column in (*each.columns, OVERALL)))
            step = Step(place, mean, since, change, adjusted, change.edited if change else 0, named)
            yield step
            since = place if since is None or step.significant else since

    series = [Series(column, system, tuple(steps(column.name, system))) for column, system in pairs]
    neighbours = [compared(place - 1, place) for place in range(1, len(loaded))]
    edited = [0, *(each.edited for each in neighbours)]
    refused = dict.fromkeys(pair for each in neighbours for pair in each.incomparable)
    return History(
        runs=tuple(replace(run.about, edited=n) for run, n in zip(loaded, edited, strict=True)),
        series=tuple(each for each in series if each.steps),
        notes=(
            *notes,
            *(f"{one_line(name)} is not compared everywhere: {why}." for name, why in refused if name in shown),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Loaded:
    result: Result
    about: HistoryRun


def _load(runs: Sequence[Result | str | Path]) -> tuple[list[_Loaded], list[str]]:
    """Return the runs by their start, and notes; rankings are left out. Raises ConfigError for too few runs."""
    found, rankings = [], []
    for number, run in enumerate(runs, 1):
        folder = f"run {number}" if isinstance(run, Result) else str(run)
        run = open_run(run)
        if run.rankings or run.table.has_pairs:
            rankings.append(folder)
            continue
        info = run.info
        about = HistoryRun(
            folder=folder,
            started=str(info.get("started") or ""),
            commit=str(info.get("commit") or ""),
            judge=str(info.get("model") or ""),
            served_by=tuple(info.get("served_by") or ()),
            texts=len(run.table.samples),
            failed=run.failed,
        )
        found.append(_Loaded(run, about))
    notes = [f"Left out, because rankings have no means: {first_names(rankings)}."] if rankings else []
    if len(found) < 2:
        raise ConfigError(" ".join(["a history needs two runs or more; name their folders, such as runs/*.", *notes]))
    found.sort(key=lambda run: run.about.started)
    states = [(run.about.folder, run.result.info.get("status")) for run in found]
    return found, [*(f"{folder}: {UNFINISHED[state]}" for folder, state in states if state in UNFINISHED), *notes]


def _columns(results: Sequence[Result], names: Sequence[str]) -> dict[str, Column]:
    """Return the columns to show: the named ones, or the criteria and the overall score."""
    known: dict[str, Column] = {}
    for result in results:
        weighted = overall(result.table)
        known |= {weighted.summary.column.name: weighted.summary.column} if weighted else {}
        known |= {column.name: column for column in result.table.columns}
    require_known("column", names, known)
    if names:
        return {name: known[name] for name in names}
    shown = {name: c for name, c in known.items() if c.kind == "criterion" and not c.judge}
    if not shown:
        raise ConfigError(f"these runs judged no criterion; name a column: {listed(list(known)[:5])}")
    return shown
