"""What judge.compare gives: two runs on the same texts, and what moved between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.records import Column
from judge.results.result import Result
from judge.stats.run_differences import Runs

FORMATS = ("console", "markdown", "html", "json")


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is not the same about how the runs were made; `columns` are those it is about, none for all.

    `diff` are the lines of the two prompts that differ, in the unified form.
    """

    what: str
    before: str
    after: str
    columns: tuple[str, ...] = ()
    diff: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class RunComparison:
    """What `judge.compare` gives: the two results, called by `names`, and what moved between them.

    `changes` are what is different about how they were made, `notes` what there is to know besides.
    """

    names: tuple[str, str]
    before: Result
    after: Result
    runs: Runs
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        rows = [row for row in self.runs.moved if row.system]
        changed, every = sum(row.up + row.down for row in rows), sum(row.up + row.down + row.same for row in rows)
        means = f"{sum(row.moved for row in rows)} of {plural(len(rows), 'mean')} moved beyond chance"
        return f"<RunComparison: {changed:,} of {every:,} values differ, {means}>"

    def _repr_html_(self) -> str:
        """What moved, for notebooks."""
        return str(plugins.report("notebook_comparison")(self))

    def report(self, format: str = "console", *, colour: bool = False) -> str:
        """As console (in `colour` with a terminal's codes), markdown, html or json. Raises ConfigError for another."""
        check(format)
        return str(plugins.report("comparison")(self, format, colour=colour))

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """The columns of the second run by name."""
        return {column.name: column for column in self.after.table.columns}


def check(format: str) -> None:
    """Raises ConfigError for a format that there is not."""
    if format not in FORMATS:
        raise ConfigError(plugins.unknown_name_message("format", format, list(FORMATS)))
