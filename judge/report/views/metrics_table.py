"""The table of a paper on metrics: how every judge and metric agrees with people, by criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def metrics_table(criteria: Sequence[Rated], level: Level) -> Table | None:
    """Tabulate Spearman's correlation with people: a row per judge or metric, a column per criterion.

    Rows are sorted by their mean over the criteria. None if there is only one row.
    """
    correlations_by_criterion = {}
    names: dict[str, None] = {}
    for rated in criteria:
        correlations = _correlations(rated, usable_level(rated, level))
        correlations_by_criterion[rated.criterion] = correlations
        names |= dict.fromkeys(correlations)
    if len(names) < 2:
        return None

    def mean_correlation(row_name: str) -> float:
        all_correlations = correlations_by_criterion.values()
        return fmean(
            correlations[row_name].value
            for correlations in all_correlations
            if row_name in correlations
        )

    rows: list[Sequence[Content]] = []
    for row_name in sorted(names, key=mean_correlation, reverse=True):
        cells: list[Content] = []
        for rated in criteria:
            usable = usable_level(rated, level)
            cells.append(_cell(rated, usable, row_name, correlations_by_criterion))
        rows.append((column_title(row_name), *cells))
    heads = [Column(rated.criterion, better="higher") for rated in criteria]
    usable_levels = [usable_level(rated, level) for rated in criteria]
    levels = dict.fromkeys(OVER[usable] for usable in usable_levels)
    return table(
        ("", *heads),
        rows,
        _key(criteria, level),
        star="* significantly above all others.",
        name=NAME,
        caption=f"Spearman's correlation with people's ratings, {'; or '.join(levels)}.",
        sorts=True,
    )


def _key(criteria: Sequence[Rated], level: Level) -> str:
    """Explain the bold values."""
    tested = []
    for rated in criteria:
        usable = usable_level(rated, level)
        correlations = _correlations(rated, usable)
        best = max(correlations, key=lambda name: correlations[name].value, default="")
        leads = [_lead(rated, best, name, usable) for name in correlations if name != best]
        tested += [lead for lead in leads if lead is not None and lead.low is not None]
    if not tested:
        return "Bold: best; too little data to test the differences."
    return (
        "Bold: best, or not significantly below it, by the intervals of the differences from the "
        "best (corrected by Bonferroni, unless a judge beats every baseline)."
    )


def _correlations(rated: Rated, level: Level) -> dict[str, Estimate]:
    """Return the correlations of the judges and metrics that can be compared, by name."""
    correlations: dict[str, Estimate] = {}
    for row in (*rated.judges, *rated.baselines):
        estimate = row.correlation.estimates.get((level, "spearman"))
        if estimate is not None and level not in row.few:
            correlations[row.name] = estimate
    return correlations


def _cell(
    rated: Rated,
    level: Level,
    row_name: str,
    correlations_by_criterion: Mapping[str, Mapping[str, Estimate]],
) -> Cell:
    correlations = correlations_by_criterion[rated.criterion]
    estimate = correlations.get(row_name)
    if estimate is None:
        return Cell("–")
    best = max(correlations, key=lambda column: correlations[column].value)
    tone: Tone = ""
    mark = ""
    if row_name == best:
        tone = "good"
        others = [column for column in correlations if column != best]
        leads = [_lead(rated, best, column, level) for column in others]
        if leads and all(map(_is_apart, leads)):
            mark = "*"
    elif _is_near(_lead(rated, best, row_name, level)):
        tone = "strong"
    return estimate_cell(estimate, places(estimate), tone=tone, mark=mark)


def _lead(rated: Rated, best: str, column: str, level: Level) -> Estimate | None:
    """Return the lead of the best column, by the interval that sentences on the two also use."""
    for first_name, second_name, sign in ((best, column, 1), (column, best, -1)):
        difference = rated.differences.get((first_name, second_name, level))
        if difference is not None:
            return difference.times(sign)
    return rated.behind.get((column, level))


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
