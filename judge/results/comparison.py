"""The result of `judge.compare`: two runs on the same texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from judge.core import plugins
from judge.core.format import plural
from judge.core.records import Column
from judge.results.result import Result
from judge.stats.derived_columns import pass_columns
from judge.stats.pass_marks import PassMark
from judge.stats.run_differences import Runs

PLACES = 3
"""Decimals of a correlation."""


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that differs between two runs.

    `columns` are the columns that it is about (none: all), `diff` is a unified diff of the prompts.
    """

    what: str
    before: str
    after: str
    columns: tuple[str, ...] = ()
    diff: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class RunComparison(plugins.Reported):
    """The result of `judge.compare`: two results, `before` and `after`, and their differences.

    - `runs`: the differences of their scores.
    - `changes`: the settings that differ.
    - `pass_marks`: the marks of criteria with `pass_at`, translated to the judge of the second run.
    - `notes`: warnings.
    """

    VIEW: ClassVar[str] = "judge.commands.compare.view:view"

    names: tuple[str, str]
    before: Result
    after: Result
    runs: Runs
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    pass_marks: tuple[PassMark, ...] = ()

    def __repr__(self) -> str:
        rows = [row for row in self.runs.means if row.system]
        differing = sum(row.up + row.down for row in rows)
        values = differing + sum(row.same for row in rows)
        significant = sum(row.significant for row in rows)
        means = f"{significant} of {plural(len(rows), 'mean')} changed significantly"
        return f"<RunComparison: {differing:,} of {values:,} values differ, {means}>"

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """Return the columns of the second run, and of its pass rates, by name."""
        columns = self.after.table.columns
        all_columns = (*columns, *pass_columns(columns).values())
        return {column.name: column for column in all_columns}
