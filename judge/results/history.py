"""The result of `judge.history`: means over finished runs, and where they changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from judge.core import plugins
from judge.core.format import plural
from judge.core.records import Column, Estimate
from judge.stats.power import ALPHA
from judge.stats.run_differences import MeanChange


@dataclass(frozen=True, slots=True)
class HistoryRun:
    """A finished run. `started` is an ISO date and time in UTC, `commit` the data's commit ("" if unknown).

    `served_by` are the models that answered, `judge` the names they were asked by. `edited` counts the texts that
    differ from those of the run before.
    """

    folder: str
    started: str
    commit: str
    judge: str
    served_by: tuple[str, ...]
    texts: int
    failed: int
    edited: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """A system's mean in one run, and its change since the run `since`, the last one that changed (or the first).

    The change is measured on the items that both runs have; `edited` counts those with other texts of the system, and
    `settings` names what differs in the judge's signature.
    `adjusted` is its p after Bonferroni's correction over all changes of the history. Both are None in the first run,
    and if the runs cannot be compared.
    """

    run: int
    mean: Estimate
    since: int | None = None
    change: MeanChange | None = None
    adjusted: float | None = None
    edited: int = 0
    settings: tuple[str, ...] = ()

    @property
    def significant(self) -> bool:
        """Whether the mean changed."""
        return self.adjusted is not None and self.adjusted < ALPHA


@dataclass(frozen=True, slots=True)
class Series:
    """The means of a system in a column, one for each run that has them."""

    column: Column
    system: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, repr=False)
class History(plugins.Reported):
    """The result of `judge.history`: `runs` from the oldest to the newest, and a series per column and system."""

    runs: tuple[HistoryRun, ...]
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<History: {plural(len(self.runs), 'run')}, {plural(len(self.changes), 'change')}>"

    @cached_property
    def changes(self) -> tuple[tuple[Series, Step], ...]:
        """Return the significant changes, the newest first."""
        found = [(series, step) for series in self.series for step in series.steps if step.significant]
        return tuple(sorted(found, key=lambda pair: -pair[1].run))
