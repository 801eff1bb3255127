"""The columns of a result for all formats: groups, order, decimals, and which one ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from judge.core.format import (
    format_interval,
    format_p,
    number,
    p_places,
    signed,
    whole_percent,
)
from judge.core.records import Column, Estimate
from judge.core.scale_words import pass_text
from judge.report.document import Cell, Tone
from judge.report.format import (
    decimal_places,
    interval_text,
    mean_text,
    shortest_places,
)
from judge.results.result import Result
from judge.stats.calibration import Calibrated
from judge.stats.derived_columns import pass_columns
from judge.stats.power import ALPHA
from judge.stats.system_differences import Comparison

TEST_NAME = "sign-flip test"
"""The name of the test of differences between systems."""


@dataclass(frozen=True, slots=True)
class Group:
    """Columns under one heading: a panel's on one criterion, or a single column.

    A panel's own value comes before its judges' values. `parts` are the headings of the columns
    under the group's heading, by the columns' names. A single column has an empty heading.
    """

    name: str
    columns: tuple[Column, ...]
    parts: Mapping[str, str]

    @property
    def better(self) -> Literal["higher", "lower", ""]:
        """The better end, the same for all these columns."""
        return self.columns[0].better


def groups(result: Result) -> tuple[Group, ...]:
    """Group the columns: criteria before metrics, a panel's columns together.

    Else they keep the order of the table.
    """

    def order(column: Column) -> tuple[bool, bool]:
        return column.kind != "criterion", bool(column.judge)

    columns_by_name: dict[str, list[Column]] = {}
    for column in sorted(result.table.columns, key=order):
        group_name = column.criterion if column.judge else column.name
        columns_by_name.setdefault(group_name, []).append(column)
    column_groups = []
    for group_name, columns in columns_by_name.items():
        part_by_column = {}
        for column in columns:
            part = column.judge
            if not part and len(columns) > 1:
                part = f"panel {column.panel}"
            part_by_column[column.name] = part
        group = Group(group_name, tuple(columns), part_by_column)
        column_groups.append(group)
    return tuple(column_groups)


def in_display_order(result: Result) -> tuple[Group, ...]:
    """Return the groups in display order.

    The overall score, if there is one, comes before the criteria and the metrics.
    """
    column_groups = groups(result)
    if result.overall is None:
        return column_groups
    column = result.overall.column
    overall = Group(column.name, (column,), {column.name: ""})
    return (overall, *column_groups)


def display_columns(result: Result) -> list[Column]:
    """Return the columns of all groups in display order."""
    return [column for group in in_display_order(result) for column in group.columns]


def shown_pass_rates(result: Result) -> dict[str, Column]:
    """Return the columns of pass rates by criterion, unless they only repeat the means."""
    means = result.estimates
    # On a yes/no criterion, the pass rate is the mean.
    differ = set()
    for (system, column_name), rate in result.pass_rates.items():
        mean = means.get((system, column_name))
        if mean is not None and rate.value != mean.value:
            differ.add(column_name)
    whole = [column for column in result.table.columns if not column.judge]
    columns = pass_columns(whole)
    return {name: column for name, column in columns.items() if name in differ}


def with_pass_rate(group: Group, rates: Mapping[str, Column]) -> Group:
    """Return the group with the pass rate after the mean, if there is one."""
    mean, *others = group.columns
    rate = rates.get(mean.name)
    if rate is None:
        return group
    title_of_mean = group.parts[mean.name] or "mean"
    title_of_rate = f"pass at {pass_text(mean)}"
    part_by_column = {
        **group.parts,
        mean.name: title_of_mean,
        rate.name: title_of_rate,
    }
    return Group(group.name, (mean, rate, *others), part_by_column)


def main_comparison(result: Result) -> Comparison | None:
    """Return the comparison that orders the systems, None if nothing was compared.

    It is the first column in display order with a best system (or several tied ones), else the
    first with values. Metrics count only if no criterion has values.
    """
    by_column = compared_columns(result)
    columns = []
    for column in display_columns(result):
        comparison = by_column.get(column.name)
        if comparison is not None and comparison.ranks and not column.judge:
            columns.append(column)
    criteria = [column for column in columns if column.kind == "criterion"]
    candidates = [by_column[column.name] for column in criteria or columns]
    for candidate in candidates:
        if candidate.best or _is_tested_against(candidate):
            return candidate
    return candidates[0] if candidates else None


def main_order(result: Result) -> Comparison | Calibrated | None:
    """Return what orders the systems: the main comparison, on people's scale if calibrated."""
    comparison = main_comparison(result)
    for calibrated in result.calibrated:
        is_main = comparison is not None and calibrated.column == comparison.column
        if is_main and len(calibrated.ranks) > 1:
            return calibrated
    return comparison


def calibrated_columns(result: Result) -> dict[str, Column]:
    """Return the columns of means on people's scale by the columns of the judge."""
    columns = [column for column in display_columns(result) if not column.judge]
    names = {calibrated.column for calibrated in result.calibrated if calibrated.means}
    column_by_name = {}
    for column in columns:
        if column.name in names:
            column_by_name[column.name] = _on_peoples_scale(result, column)
    return column_by_name


def _on_peoples_scale(result: Result, column: Column) -> Column:
    """Return the column of means on people's scale, without ends if it is not the judge's scale."""
    scale_name = f"{column.name} on people's scale"
    renamed = replace(column, name=scale_name, pass_at=None)
    if column.low is None or column.high is None:
        return replace(renamed, low=None, high=None)
    for sample in result.table.samples:
        rating = sample.human.get(column.criterion)
        if rating is not None and not column.low <= rating <= column.high:
            return replace(renamed, low=None, high=None)
    return renamed


def with_calibration(group: Group, calibrated: Mapping[str, Column]) -> Group:
    """Return the group with any means on people's scale before the judge's own."""
    mean, *others = group.columns
    column = calibrated.get(mean.name)
    if column is None:
        return group
    part_by_column = {
        **group.parts,
        column.name: "people's scale",
        mean.name: "judge's mean",
    }
    return Group(group.name, (column, mean, *others), part_by_column)


def _is_tested_against(comparison: Comparison) -> bool:
    """Return whether some system was tested against the one that all are compared with."""
    was_tested = any(
        difference.adjusted is not None for difference in comparison.differences
    )
    return was_tested and comparison.against != ""


def marks_against(
    comparison: Comparison | Calibrated, better: str
) -> dict[str, Literal["better", "worse"]]:
    """Return the systems that differ significantly from the opponent of all.

    Return {} if the systems have no common opponent.
    """
    # A column without a better end has marks like one whose higher values are better.
    sign = -1 if better == "lower" else 1
    marks: dict[str, Literal["better", "worse"]] = {}
    for difference in comparison.differences:
        if comparison.against and difference.apart:
            is_better = sign * difference.estimate.value > 0
            marks[difference.system] = "better" if is_better else "worse"
    return marks


def compared_columns(result: Result) -> Mapping[str, Comparison]:
    """Return the comparisons by column."""
    return {comparison.column: comparison for comparison in result.comparisons}


def places(result: Result, column: Column) -> int:
    """Return the number of decimals of a column's means."""
    means = []
    for (_, column_name), estimate in result.estimates.items():
        if column_name == column.name:
            means.append(estimate.value)
    return decimal_places(column, means)


def score_places(result: Result, column: Column) -> int:
    """Return the number of decimals of a column's single scores, the same all over a report."""
    if column.kind != "criterion":
        return places(result, column)
    values = [score.value for score in result.table.column_scores(column.name)]
    # A mean of draws or of token probabilities lies between the labels.
    most = max(2, decimal_places(column, values))
    return shortest_places(values, most)


def estimate_cell(
    estimate: Estimate | None,
    places: int,
    write: Callable[[float, int], str] = number,
    **fields: Any,
) -> Cell:
    """Write an estimate with its interval; `–` if there is none."""
    if estimate is None:
        return Cell("–")
    interval = format_interval(estimate.low, estimate.high, places)
    text = write(estimate.value, places)
    return Cell(text, interval, value=estimate.value, **fields)


def share_cell(estimate: Estimate | None, **fields: Any) -> Cell:
    """Write a share with its interval in per cent, `64%`; `–` if there is none."""
    if estimate is None:
        return Cell("–")
    interval = format_interval(estimate.low, estimate.high, 0, 100)
    percentage = whole_percent(estimate.value)
    return Cell(percentage, interval, value=estimate.value, **fields)


def change_text(estimate: Estimate, places: int) -> str:
    """Write a difference with its interval: `+0.31 [0.10, 0.52]`."""
    change = signed(estimate.value, places)
    interval = format_interval(estimate.low, estimate.high, places)
    return f"{change} {interval}".rstrip()


def change_tone(change: float, better: str) -> Tone:
    """Return the tone of a significant change in a column with this better end."""
    if not better:
        return "strong"
    is_rise = change > 0
    should_rise = better == "higher"
    return "good" if is_rise == should_rise else "bad"


def marked_mean(
    column: Column,
    mean: Estimate,
    places: int,
    change: float | None,
    p_value: float | None,
    *,
    marked: bool,
    since: str,
) -> Cell:
    """Write a mean with its interval, and with ▲ or ▼ if its change is `marked` as significant.

    `since` ends the tooltip of the change: "since the baseline".
    """
    title = ""
    mark = ""
    tone: Tone = ""
    if change is not None:
        title = f"{signed(change, places)} {since}"
        if p_value is not None:
            title = f"{title}, {format_p(p_value)}"
        if marked:
            mark = " ▲" if change > 0 else " ▼"
            tone = change_tone(change, column.better)
    note = interval_text(column, mean.low, mean.high, places)
    text = mean_text(column, mean.value, places)
    return Cell(text, note, tone, mark, title, value=mean.value)


def contradicts_test(
    low: float | None, high: float | None, p: float | None, *, neutral: float = 0.0
) -> bool:
    """Return whether an interval and a test disagree about the value `neutral`, "no difference".

    p may have Holm's correction, which the interval has not, and it comes from another method.
    """
    if low is None or high is None or p is None:
        return False
    excludes_neutral = not low <= neutral <= high
    is_significant = p < ALPHA
    return excludes_neutral != is_significant


def p_cell(p_value: float | None) -> str:
    """Return a p-value for a table: `<.001`, `.012`, `–` for none."""
    if p_value is None:
        return "–"
    if p_value < 0.001:
        return "<.001"
    # As APA style writes p, which cannot exceed 1: without the zero before the point.
    return number(p_value, p_places(p_value)).removeprefix("0")
