"""The table of a paper on metrics: how every judge and metric agrees with people, by criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from judge.core.records import Estimate
from judge.report.document import Cell, Column, Content, Table, Tone, table
from judge.report.format import column_title
from judge.report.views.agreement_finding import places, usable_level
from judge.report.views.columns import estimate_cell
from judge.stats.coefficients import Level
from judge.stats.correlation import OVER
from judge.stats.human_agreement import Rated

NAME = "metrics"


@dataclass(frozen=True, slots=True)
class _CriterionColumn:
    """The correlations with people on one criterion, by the name of the judge or metric.

    `leads` has the best one's Spearman minus that of each other one, None if it is undefined.
    """

    rated: Rated
    level: Level
    correlations: Mapping[str, Estimate]
    best: str
    leads: Mapping[str, Estimate | None]


def metrics_table(criteria: Sequence[Rated], level: Level) -> Table | None:
    """Tabulate Spearman's correlation with people: a row per judge or metric, a column per criterion.

    Rows are sorted by their mean over the criteria. None if there is only one row.
    """
    columns = [_criterion_column(rated, usable_level(rated, level)) for rated in criteria]
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
    return table(
        ("", *heads),
        rows,
        _key(columns),
        star="* significantly above all others.",
        name=NAME,
        caption=f"Spearman's correlation with people's ratings, {'; or '.join(levels)}.",
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
    leads = {name: _lead(rated, best, name, level) for name in others}
    return _CriterionColumn(rated, level, correlations, best, leads)


def _lead(rated: Rated, best: str, other: str, level: Level) -> Estimate | None:
    """Return the best one's lead over another one, with the interval that the sentences use."""
    difference = rated.differences.get((best, other, level))
    if difference is not None:
        return difference
    reverse = rated.differences.get((other, best, level))
    if reverse is not None:
        return reverse.times(-1)
    return rated.behind.get((other, level))


def _key(columns: Sequence[_CriterionColumn]) -> str:
    """Explain the bold values."""
    leads = [lead for column in columns for lead in column.leads.values()]
    if not any(lead is not None and lead.low is not None for lead in leads):
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
        if column.leads and all(map(_is_apart, column.leads.values())):
            mark = "*"
    elif _is_near(column.leads[row_name]):
        tone = "strong"
    return estimate_cell(estimate, places(estimate), tone=tone, mark=mark)


def _is_near(difference: Estimate | None) -> bool:
    """Return whether the best column was tested and is not significantly ahead."""
    if difference is None or difference.low is None:
        return False
    return difference.low <= 0


def _is_apart(difference: Estimate | None) -> bool:
    """Return whether the interval of the best column's lead excludes 0."""
    if difference is None or difference.low is None:
        return False
    return difference.low > 0
