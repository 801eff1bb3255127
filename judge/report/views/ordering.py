"""By which column the systems of a result are put in order, and how its numbers are written."""

from __future__ import annotations

from collections.abc import Mapping

from judge.core.records import Column
from judge.report.format import decimals
from judge.report.views.panel import Group, groups
from judge.results.result import Result
from judge.stats.system_differences import Comparison


def laid(result: Result) -> tuple[Group, ...]:
    """The columns as they are shown: the overall score, where there is one, before the criteria and the metrics."""
    found = groups(result)
    if result.overall is None:
        return found
    column = result.overall.column
    return (Group(column.name, (column,), {column.name: ""}), *found)


def lead(result: Result) -> Comparison | None:
    """What the systems are ordered by: the overall score, else the first criterion, else the first metric by which the
    best can be told; where there is none, the first that has values. None where nothing was compared, as in a run that
    was too large to be held.
    """
    by_column = compared(result)
    columns = [column.name for group in laid(result) for column in group.columns if not column.judge]
    found = [by_column[name] for name in columns if name in by_column and by_column[name].ranks]
    return next((one for one in found if one.best), found[0] if found else None)


def compared(result: Result) -> Mapping[str, Comparison]:
    """The comparisons by column."""
    return {comparison.column: comparison for comparison in result.comparisons}


def places(result: Result, column: Column) -> int:
    """The decimals that a column's numbers are shown with."""
    if column.low is not None and column.high is not None:
        return decimals([column.low, column.high])
    return decimals([e.value for (_, name), e in result.estimates.items() if name == column.name])
