"""The charts of a result: means, distributions, rankings, and the judge against people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from judge.core.format import (
    UNNAMED_SYSTEM,
    format_interval,
    number,
    one_line,
    percent,
    plural,
)
from judge.core.records import Column
from judge.report.charts.axes import Axis, around, even, scale
from judge.report.charts.bars import Bar, Panel, bars, intervals
from judge.report.charts.heat_map import heat_map
from judge.report.charts.histograms import histograms
from judge.report.document import ARROWS, Chart, Table
from judge.report.format import column_title, interval_text, mean_text
from judge.report.views.columns import (
    compared_columns,
    display_columns,
    in_display_order,
    marks_against,
    places,
)
from judge.results.result import Result
from judge.stats.coefficients import Level
from judge.stats.correlation import OVER, UNITS, usual_level
from judge.stats.correlation_matrix import Matrix
from judge.stats.pairwise import Ranking, Standing
from judge.stats.system_differences import Comparison

_MAX_METRICS = 6  # in the chart of metrics against the judge


def titles(result: Result) -> dict[str, str]:
    """Return a title for each column: its name, and the judge of a panel."""
    title_by_column = {}
    for group in in_display_order(result):
        for column in group.columns:
            judge = one_line(group.parts[column.name])
            title = column_title(group.name)
            if judge:
                title = f"{title}, {judge}"
            title_by_column[column.name] = title
    return title_by_column


def means_charts(result: Result) -> Iterator[Chart]:
    """Yield the systems' means with their intervals: a chart per column, named like the column."""
    title_by_column = titles(result)
    compared = compared_columns(result)
    for column in display_columns(result):
        comparison = compared.get(column.name)
        ranked = []
        if comparison:
            ranked = [rank.system for rank in comparison.ranks]
        # The best first; systems without a rank keep the order of the data.
        systems = list(dict.fromkeys([*ranked, *result.table.systems]))
        drawn_bars = _mean_bars(result, column, systems, comparison)
        known_bars = [bar for bar in drawn_bars if bar is not None]
        if not known_bars:
            continue
        caption = " · ".join(_marks(column, comparison, known_bars))
        title = title_by_column[column.name] + ARROWS[column.better]
        panel = Panel(
            _axis_of_means(column, known_bars),
            drawn_bars,
            label=title_by_column[column.name],
        )
        labels = _row_labels(systems)
        chart = intervals(column.name, title, labels, [panel], caption=caption)
        yield replace(chart, tabled=True)


def _axis_of_means(column: Column, drawn_bars: Sequence[Bar]) -> Axis:
    """Return the whole scale of a criterion; of any other column an axis that holds the bars."""
    if column.kind != "criterion" or column.low is None or column.high is None:
        return _around(drawn_bars)
    if column.low >= column.high:
        return _around(drawn_bars)
    return scale(column.low, column.high)


def _mean_bars(
    result: Result,
    column: Column,
    systems: Sequence[str],
    comparison: Comparison | None,
) -> list[Bar | None]:
    """Return a bar for each system's mean, coloured if it differs significantly; None without."""
    decimals = places(result, column)
    best = comparison.best if comparison else ()
    marks = marks_against(comparison, column.better) if comparison else {}
    bars_of_systems: list[Bar | None] = []
    for system, row_label in zip(systems, _row_labels(systems), strict=True):
        estimate = result.estimates.get((system, column.name))
        if not estimate:
            bars_of_systems.append(None)
            continue
        interval = interval_text(column, estimate.low, estimate.high, decimals)
        text = mean_text(column, estimate.value, decimals)
        items = plural(estimate.n, "item")
        note = _note(row_label, text, interval, items)
        bar = Bar(estimate.value, estimate.low, estimate.high, text, note)
        is_below_best = bool(best) and system not in best
        if best == (system,) or marks.get(system) == "better":
            bar = replace(bar, tone="best", text=f"{bar.text}*")
        elif marks.get(system) == "worse" or is_below_best:
            bar = replace(bar, tone="worse")
        bars_of_systems.append(bar)
    return bars_of_systems


def _marks(
    column: Column,
    comparison: Comparison | None,
    drawn_bars: Sequence[Bar],
) -> Iterator[str]:
    """Explain the marks and colours of a chart of means."""
    if comparison is None:
        return
    if "better" in marks_against(comparison, column.better).values():
        yield f"* significantly better than {one_line(comparison.against, 30)}"
    elif len(comparison.best) == 1 < len(comparison.ranks):
        yield "* significantly best"
    if any(bar.tone == "worse" for bar in drawn_bars):
        better_system = comparison.against or comparison.best[0]
        yield f"orange: significantly worse than {one_line(better_system, 30)}"


def distribution_blocks(result: Result) -> Iterator[Chart]:
    """Yield the distribution of each criterion's scores: a histogram per system."""
    title_by_column = titles(result)
    for column in display_columns(result):
        if column.kind != "criterion":
            continue
        values: dict[str, list[float]] = {}
        for system in result.table.systems:
            values[system] = []
        for score in result.table.column_scores(column.name):
            values[score.system].append(score.value)
        if any(values.values()):
            row_labels = _row_labels(list(values))
            values_by_label = dict(zip(row_labels, values.values(), strict=True))
            title = f"Distribution: {title_by_column[column.name]}"
            # A column that an older version stored may have labels without values.
            labels = dict(zip(column.labels, column.values, strict=False))
            ends = (column.low, column.high)
            chart_name = f"scores-{column.name}"
            yield histograms(chart_name, title, values_by_label, labels, ends)


def _row_labels(systems: Sequence[str]) -> list[str]:
    """Return what a chart calls the systems: by their names, if the data has any."""
    if list(systems) == [UNNAMED_SYSTEM]:
        return ["all texts"]
    return list(systems)


def ranking_charts(ranking: Ranking, label: str) -> Iterator[Chart]:
    """Yield win rates and strengths with their intervals."""
    rates: dict[str, Bar] = {}
    strengths: dict[str, Bar] = {}
    for standing in ranking.standings:
        rates[standing.system] = _rate_bar(standing)
        if standing.strength is not None:
            strengths[standing.system] = _strength_bar(standing, standing.strength)
    systems = list(dict.fromkeys([*rates, *ranking.systems]))
    if rates:
        bars_of_systems = [rates.get(system) for system in systems]
        panels = [Panel(even(0, 100, 25), bars_of_systems, label="win rate (%)")]
        chart_name = f"win-rate-{ranking.column}"
        chart = intervals(chart_name, f"Win rate: {label}", systems, panels)
        yield replace(chart, tabled=True)
    if strengths:
        bars_of_systems = [strengths.get(system) for system in systems]
        known_bars = list(strengths.values())
        axis = _around(known_bars)
        panels = [Panel(axis, bars_of_systems, label="strength (log-odds)")]
        chart_name = f"strength-{ranking.column}"
        chart = intervals(chart_name, f"Strength: {label}", systems, panels)
        yield replace(chart, tabled=True)


def _rate_bar(standing: Standing) -> Bar:
    """Return the bar of a win rate, in percent."""
    lower_bound = None if standing.low is None else 100 * standing.low
    upper_bound = None if standing.high is None else 100 * standing.high
    text = percent(standing.win_rate)
    interval = format_interval(lower_bound, upper_bound, 1)
    pairs = plural(standing.n, "pair")
    note = _note(standing.system, text, interval, pairs)
    return Bar(100 * standing.win_rate, lower_bound, upper_bound, text, note)


def _strength_bar(standing: Standing, strength: float) -> Bar:
    """Return the bar of a strength, in log-odds."""
    lower_bound = standing.strength_low
    upper_bound = standing.strength_high
    text = number(strength, 2)
    interval = format_interval(lower_bound, upper_bound, 2)
    pairs = plural(standing.n, "pair")
    note = _note(standing.system, text, interval, pairs)
    return Bar(strength, lower_bound, upper_bound, text, note)


def matrix_chart(table: Table, title: str) -> Chart:
    """Draw a table of shaded cells, with the rows' names in its first column."""
    cells = [row[1:] for row in table.rows]
    names = [row[0].text for row in table.rows]
    heads = [column.head for column in table.columns[1:]]
    chart = heat_map(table.name, title, names, heads, cells)
    return replace(chart, tabled=True)


def spearman_matrices(result: Result) -> dict[Level, Matrix]:
    """Return the matrices of Spearman's correlations by their level."""
    matrices: dict[Level, Matrix] = {}
    for matrix in result.matrices:
        if matrix.coefficient == "spearman":
            matrices[matrix.level] = matrix
    return matrices


def metric_chart(result: Result) -> Iterator[Chart]:
    """Yield how strongly each metric correlates with the judge's first column, if both vary.

    Metrics with too few items for an interval are left out.
    """
    kinds = {column.name: column.kind for column in result.table.columns}
    matrices = spearman_matrices(result)
    for level in dict.fromkeys((usual_level(result.table.samples), "all-texts")):
        if level not in matrices:
            continue
        matrix = matrices[level]
        judged = [name for name in matrix.names if kinds.get(name) == "criterion"]
        if not judged:
            continue
        judge = matrix.names.index(judged[0])
        bar_by_title: dict[str, Bar] = {}
        sizes: list[int] = []
        for index, column_name in enumerate(matrix.names):
            value = matrix.values[index][judge]
            lower_bound = matrix.low[index][judge]
            upper_bound = matrix.high[index][judge]
            is_metric = kinds.get(column_name) == "metric"
            if is_metric and value is not None and lower_bound is not None:
                title = column_title(column_name)
                text = number(value, 2)
                bar_by_title[title] = Bar(value, lower_bound, upper_bound, text)
                sizes.append(matrix.n[index][judge])
        if bar_by_title:
            name_of_judge = one_line(matrix.names[judge])
            size = plural(max(sizes), UNITS[matrix.level])
            if min(sizes) < max(sizes):
                size = f"{min(sizes):,} to {size}"
            yield _metric_bars(name_of_judge, size, bar_by_title, OVER[matrix.level])
            return


def _metric_bars(
    judged: str,
    size: str,
    bar_by_title: Mapping[str, Bar],
    over: str,
) -> Chart:
    """Draw the strongest correlations of metrics with a judge's column."""

    def strongest_first(title: str) -> float:
        return -abs(bar_by_title[title].value)

    by_strength = sorted(bar_by_title, key=strongest_first)
    strongest = {title: bar_by_title[title] for title in by_strength[:_MAX_METRICS]}
    caption = (
        f"Spearman's correlation of each metric with the judge's {judged}, {over}."
    )
    if len(bar_by_title) > _MAX_METRICS:
        caption = (
            f"Spearman's correlation of the metrics with the judge's {judged}, {over}: the "
            f"{_MAX_METRICS} strongest of {len(bar_by_title)}."
        )
    return bars(
        "metrics",
        f"Metrics against the judge ({judged}; {size})",
        [*strongest],
        [*strongest.values()],
        label="Spearman's rho",
        caption=caption,
    )


def _note(system: str, text: str, interval: str, count: str) -> str:
    """Return the tooltip of a bar: `bart: 4.20 [4.00, 4.40], 20 items`."""
    value = f"{text} {interval}".rstrip()
    return f"{one_line(system)}: {value}, {count}"


def _around(drawn_bars: Sequence[Bar]) -> Axis:
    """Return an axis that holds all values and intervals."""
    ends: list[float] = []
    for bar in drawn_bars:
        ends.append(bar.value)
        if bar.low is not None:
            ends.append(bar.low)
        if bar.high is not None:
            ends.append(bar.high)
    return around(ends)
