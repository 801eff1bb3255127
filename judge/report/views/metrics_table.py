"""The table of a paper on metrics: how every judge and metric agrees with people, by criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from judge.core.records import Estimate
from judge.report.document import Cell, Column, Content, Table, Tone, table
from judge.report.format import column_title
from judge.report.views.agreement_finding import usable_level
from judge.report.views.columns import estimate_cell
from judge.stats.coefficients import Level
from judge.stats.correlation import OVER
from judge.stats.human_agreement import Rated

NAME = "metrics"
_PLACES = 2


def metrics_table(criteria: Sequence[Rated], level: Level) -> Table | None:
    """Tabulate Spearman's correlation with people: a row per judge or metric, a column per criterion.

    Rows are sorted by their mean over the criteria. None if there is only one row.
    """
    correlations_by_criterion = {
        rated.criterion: _correlations(rated, usable_level(rated, level)) for rated in criteria
    }
    names = list(
        dict.fromkeys(name for each in correlations_by_criterion.values() for name in each)
    )
    if len(names) < 2:
        return None

    def mean_correlation(name: str) -> float:
        known = [each[name].value for each in correlations_by_criterion.values() if name in each]
        return fmean(known)

    rows: list[Sequence[Content]] = []
    for name in sorted(names, key=mean_correlation, reverse=True):
        cells: list[Content] = [
            _cell(rated, usable_level(rated, level), name, correlations_by_criterion)
            for rated in criteria
        ]
        rows.append((column_title(name), *cells))
    heads = [Column(rated.criterion, better="higher") for rated in criteria]
    levels = dict.fromkeys(OVER[usable_level(rated, level)] for rated in criteria)
    return table(
        ("", *heads),
        rows,
        _key(criteria, level),
        name=NAME,
        caption=f"Spearman's correlation with people's ratings, {'; or '.join(levels)}.",
        sorts=True,
    )


def _key(criteria: Sequence[Rated], level: Level) -> str:
    """Explain the bold values and the stars."""
    tested = [
        difference
        for rated in criteria
        for (_, tested_level), difference in rated.behind.items()
        if tested_level == usable_level(rated, level) and difference.low is not None
    ]
    if not tested:
        return "Bold: best; too little data to test the differences."
    return (
        "Bold: best, or not significantly below it. * significantly above all others. Tested by "
        "the intervals of the differences from the best, 95% together (Bonferroni)."
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
    name: str,
    correlations_by_criterion: Mapping[str, Mapping[str, Estimate]],
) -> Cell:
    correlations = correlations_by_criterion[rated.criterion]
    estimate = correlations.get(name)
    if estimate is None:
        return Cell("–")
    best = max(correlations, key=lambda other: correlations[other].value)
    tone: Tone = ""
    mark = ""
    if name == best:
        tone = "good"
        behind = [rated.behind.get((other, level)) for other in correlations if other != best]
        if behind and all(map(_is_apart, behind)):
            mark = "*"
    elif _is_near(rated.behind.get((name, level))):
        tone = "strong"
    return estimate_cell(estimate, _PLACES, tone=tone, mark=mark)


def _is_near(difference: Estimate | None) -> bool:
    """Return whether the best column was tested and is not significantly ahead."""
    return difference is not None and difference.low is not None and difference.low <= 0


def _is_apart(difference: Estimate | None) -> bool:
    """Return whether the interval of the best column's lead excludes 0."""
    return difference is not None and difference.low is not None and difference.low > 0
