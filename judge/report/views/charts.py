"""The charts of a result: means, distributions, rankings, and the judge against people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from judge.core.format import format_interval, number, one_line, percent, plural
from judge.report.charts import (
    Axis,
    Bar,
    Panel,
    around,
    bars,
    even,
    heat_map,
    histograms,
    intervals,
    scale,
)
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
from judge.stats.coefficients import LEVELS
from judge.stats.correlation import OVER
from judge.stats.pairwise import Ranking

_MAX_METRICS = 6  # in the chart of metrics against the judge


def titles(result: Result) -> dict[str, str]:
    """Return a title for each column: its name, and the judge of a panel."""
    return {
        column.name: ", ".join(
            filter(None, (column_title(group.name), one_line(group.parts[column.name])))
        )
        for group in in_display_order(result)
        for column in group.columns
    }


def means_charts(result: Result) -> Iterator[Chart]:
    """Yield the systems' means with their intervals: a chart per column, named like the column."""
    heads, compared = titles(result), compared_columns(result)
    for column in display_columns(result):
        comparison, decimals = compared.get(column.name), places(result, column)
        best = comparison.best if comparison else ()
        apart = marks_against(comparison, column.better) if comparison else {}
        ranked = [rank.system for rank in comparison.ranks] if comparison else []
        systems = [*ranked, *(system for system in result.table.systems if system not in ranked)]
        drawn: list[Bar | None] = []
        for system in systems:
            bar = None
            if e := result.estimates.get((system, column.name)):
                interval = interval_text(column, e.low, e.high, decimals)
                text = mean_text(column, e.value, decimals)
                bar = Bar(
                    e.value, e.low, e.high, text, _note(system, text, interval, plural(e.n, "text"))
                )
            if bar and (best == (system,) or apart.get(system) == "better"):
                bar = replace(bar, tone="best", text=f"{bar.text}*")
            elif bar and (apart.get(system) == "worse" or (best and system not in best)):
                bar = replace(bar, tone="worse")
            drawn.append(bar)
        if any(drawn):
            marks = ["* significantly best"] * (len(best) == 1 < len(ranked))
            if comparison and "better" in apart.values():
                marks = [f"* significantly better than {one_line(comparison.against, 30)}"]
            marks += ["orange: significantly worse"] * any(
                bar and bar.tone == "worse" for bar in drawn
            )
            axis = _around([bar for bar in drawn if bar])
            low, high = column.low, column.high
            if column.kind == "criterion" and low is not None and high is not None and low < high:
                axis = scale(low, high)  # the whole scale
            panels = [Panel(axis, drawn)]
            title = f"{heads[column.name]}{ARROWS[column.better]}"
            yield replace(
                intervals(column.name, title, systems, panels, caption=" · ".join(marks)),
                tabled=True,
            )


def distribution_blocks(result: Result) -> Iterator[Chart]:
    """Yield the distribution of each criterion's scores: a histogram per system."""
    heads = titles(result)
    for column in display_columns(result):
        values: dict[str, list[float]] = {system: [] for system in result.table.systems}
        for score in result.table.column_scores(column.name) if column.kind == "criterion" else ():
            values[score.system].append(score.value)
        if any(values.values()):
            name, title = f"scores-{column.name}", f"Distribution: {heads[column.name]}"
            labels = dict(zip(column.labels, column.values, strict=False))
            yield histograms(name, title, values, labels, (column.low, column.high))


def ranking_charts(ranking: Ranking, label: str) -> Iterator[Chart]:
    """Yield win rates and strengths with their intervals."""
    rates: dict[str, Bar] = {}
    strengths: dict[str, Bar] = {}
    for s in ranking.standings:
        low, high = (None if end is None else 100 * end for end in (s.low, s.high))
        pairs, text = plural(s.n, "pair"), percent(s.win_rate)
        note = _note(s.system, text, format_interval(low, high, 1), pairs)
        rates[s.system] = Bar(100 * s.win_rate, low, high, text, note)
        if s.strength is not None:
            low, high, text = s.strength_low, s.strength_high, number(s.strength, 2)
            note = _note(s.system, text, format_interval(low, high, 2), pairs)
            strengths[s.system] = Bar(s.strength, low, high, text, note)
    systems = list(dict.fromkeys([*rates, *ranking.systems]))
    for name, drawn, axis in (
        ("win rate", rates, even(0, 100, 25)),
        ("strength", strengths, _around(list(strengths.values()))),
    ):
        if drawn:
            file, panels = (
                name.replace(" ", "-"),
                [Panel(axis, [drawn.get(system) for system in systems])],
            )
            title = f"{name.capitalize()}: {label}"
            yield replace(
                intervals(f"{file}-{ranking.column}", title, systems, panels), tabled=True
            )


def matrix_chart(table: Table, title: str) -> Chart:
    """Draw a table of shaded cells, with the rows' names in its first column."""
    cells = [row[1:] for row in table.rows]
    names = [row[0].text for row in table.rows]
    heads = [column.head for column in table.columns[1:]]
    return replace(heat_map(table.name, title, names, heads, cells), tabled=True)


def metric_chart(result: Result) -> Iterator[Chart]:
    """Yield how strongly each metric correlates with the judge's first column, if both vary."""
    matrices = {
        matrix.level: matrix for matrix in result.matrices if matrix.coefficient == "spearman"
    }
    kinds = {column.name: column.kind for column in result.table.columns}
    for matrix in (matrices[level] for level in LEVELS if level in matrices):
        judged = [k for k, name in enumerate(matrix.names) if kinds.get(name) == "criterion"]
        drawn = {
            column_title(name): Bar(
                value, matrix.low[k][judged[0]], matrix.high[k][judged[0]], number(value, 2)
            )
            for k, name in enumerate(matrix.names)
            if judged
            and kinds.get(name) == "metric"
            and (value := matrix.values[k][judged[0]]) is not None
        }
        if drawn:
            name = one_line(matrix.names[judged[0]])
            best = dict(sorted(drawn.items(), key=lambda pair: -abs(pair[1].value))[:_MAX_METRICS])
            caption = f"Spearman's correlation of each metric with the judge's {name}, {OVER[matrix.level]}."
            yield bars(
                "metrics",
                f"Metrics against the judge ({name})",
                [*best],
                [*best.values()],
                caption=caption,
            )
            return


def _note(system: str, text: str, interval: str, count: str) -> str:
    return f"{one_line(system)}: {f'{text} {interval}'.rstrip()}, {count}"


def _around(drawn: Sequence[Bar]) -> Axis:
    return around(end for bar in drawn for end in (bar.value, bar.low, bar.high) if end is not None)
