"""The table of a paper on metrics: how every judge and metric agrees with people, by criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from judge.core.records import Estimate
from judge.report.document import Cell, Column, Content, Table, Tone, table
from judge.report.format import column_title
from judge.report.views.agreement_finding import (
    Lead,
    Side,
    leads_over_judges,
    places,
    usable_level,
)
from judge.report.views.columns import estimate_cell
from judge.stats.coefficients import Level
from judge.stats.correlation import OVER
from judge.stats.human_agreement import Rated

NAME = "metrics"


@dataclass(frozen=True, slots=True)
class _CriterionColumn:
    """The correlations with people on one criterion, by the name of the judge or metric.

    `sides` has the side of 0 on which the best one's lead over each other one lies.
    """

    rated: Rated
    level: Level
    correlations: Mapping[str, Estimate]
    best: str
    sides: Mapping[str, Side]


def metrics_table(criteria: Sequence[Rated], level: Level) -> Table | None:
    """Tabulate Spearman's correlation with people.

    There is a row per judge or metric and a column per criterion. Rows are sorted by their mean
    over the criteria. None if there is only one row.
    """
    columns = [
        _criterion_column(rated, usable_level(rated, level)) for rated in criteria
    ]
    values_by_name: dict[str, list[float]] = {}
    for column in columns:
        for row_name, correlation in column.correlations.items():
            values_by_name.setdefault(row_name, []).append(correlation.value)
    if len(values_by_name) < 2:
        return None
    means = {row_name: fmean(values) for row_name, values in values_by_name.items()}
    rows: list[Sequence[Content]] = []
    for row_name in sorted(means, key=means.__getitem__, reverse=True):
        cells = [_cell(column, row_name) for column in columns]
        rows.append((column_title(row_name), *cells))
    heads = [Column(column.rated.criterion, better="higher") for column in columns]
    levels = dict.fromkeys(OVER[column.level] for column in columns)
    levels_in_words = "; or ".join(levels)
    return table(
        ("", *heads),
        rows,
        bold=_bold(columns),
        star="* significantly above all others.",
        name=NAME,
        caption=f"Spearman's correlation with people's ratings, {levels_in_words}.",
        sorts=True,
    )


def _criterion_column(rated: Rated, level: Level) -> _CriterionColumn:
    """Collect the judges and metrics whose correlations on a criterion can be compared."""
    correlations: dict[str, Estimate] = {}
    for row in (*rated.judges, *rated.baselines):
        estimate = row.correlation.estimates.get((level, "spearman"))
        if estimate is not None and level not in row.few:
            correlations[row.name] = estimate
    best = max(correlations, key=lambda name: correlations[name].value, default="")
    others = [name for name in correlations if name != best]
    sides = {name: _side_of_lead(rated, best, name, level) for name in others}
    return _CriterionColumn(rated, level, correlations, best, sides)


def _side_of_lead(
    rated: Rated,
    best: str,
    row_name: str,
    level: Level,
) -> Side:
    """Return on which side of 0 the best one's lead over another one lies.

    Both the interval and its rounding are those of the sentences: a star must not contradict them.
    """
    difference = _lead(rated, best, row_name, level)
    if difference is None:
        return Side.UNTESTED
    return Lead(row_name, difference, level).side


def _lead(
    rated: Rated,
    best: str,
    row_name: str,
    level: Level,
) -> Estimate | None:
    """Return the best one's Spearman minus that of another one, None if it is undefined.

    Sentences compare judges with baselines and judges with judges; only the table compares the best
    one with others if it is a baseline.
    """
    difference = rated.differences.get((best, row_name, level))
    if difference is not None:
        return difference
    reverse = rated.differences.get((row_name, best, level))
    if reverse is not None:
        return reverse.times(-1)
    for lead in leads_over_judges(rated, best, level):
        if lead.name == row_name:
            return lead.difference
    return rated.behind.get((row_name, level))


def _bold(columns: Sequence[_CriterionColumn]) -> str:
    """Explain the bold values."""
    if all(column.level == "systems" for column in columns):
        return "Bold: best. None is tested: correlations of systems' means have no interval."
    sides = {side for column in columns for side in column.sides.values()}
    if sides <= {Side.UNTESTED}:
        return "Bold: best; too little data to test the differences."
    return (
        "Bold: best, or not significantly below it, by the intervals of the differences from the "
        "best (corrected by Bonferroni, unless a judge beats every baseline)."
    )


def _cell(column: _CriterionColumn, row_name: str) -> Cell:
    """Return a correlation: good for the best one, strong if not significantly below it."""
    estimate = column.correlations.get(row_name)
    if estimate is None:
        return Cell("–")
    tone: Tone = ""
    mark = ""
    if row_name == column.best:
        tone = "good"
        if set(column.sides.values()) == {Side.ABOVE}:
            mark = "*"
    elif column.sides[row_name] not in (Side.ABOVE, Side.UNTESTED):
        tone = "strong"
    return estimate_cell(estimate, places(estimate), tone=tone, mark=mark)
