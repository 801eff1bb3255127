"""Differences between systems and correlations between columns, as matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from judge.core.format import format_interval, format_p, number, plural, signed
from judge.core.records import Column
from judge.report import document as blocks
from judge.report.charts import heat_map
from judge.report.document import Block, Cell, Chart
from judge.report.format import share_label
from judge.report.views.charts import titles
from judge.report.views.columns import compared_columns, display_columns, estimate_cell, p_cell, places, test_name
from judge.results.result import Result
from judge.stats.coefficients import LEVELS, Level
from judge.stats.correlation import OVER, UNITS, Matrix
from judge.stats.paired_differences import MOST
from judge.stats.power import ALPHA
from judge.stats.system_differences import Comparison

_MAX_PAIRS = 10  # in a table; if there are more, only those with the best system
_SIGNIFICANT = 0.6  # shade
_TITLES: Mapping[Level, str] = {"item": "all texts", "document": "within items", "system": "between systems"}


def difference_blocks(result: Result) -> Iterator[Block]:
    """Yield the differences between systems: a matrix per criterion, their tests, and the matrices of metrics."""
    heads, compared = titles(result), compared_columns(result)
    charts: dict[str, list[Block]] = {"criterion": [], "metric": []}
    tables: list[Block] = []
    for column in display_columns(result):
        comparison = compared.get(column.name)
        if comparison is None or not comparison.differences:
            continue
        head, decimals = heads[column.name], places(result, column)
        if share_label(column):
            differences = tuple(replace(d, estimate=d.estimate.times(100)) for d in comparison.differences)
            detectable = None if comparison.detectable is None else 100 * comparison.detectable
            comparison = replace(comparison, differences=differences, detectable=detectable)
            head, decimals = f"{head} (percentage points)", 0
        if len(comparison.ranks) <= MOST:
            charts[column.kind].append(_matrix(comparison, column, head, decimals))
        if column.kind == "criterion":
            tables.append(_pairs(comparison, head, decimals, test_name(result)))
    yield from charts["criterion"] or charts["metric"]
    if tables:
        yield blocks.Details("Tests of each pair", tuple(tables))
    if charts["criterion"] and charts["metric"]:
        yield blocks.Details("Differences in metrics", tuple(charts["metric"]))


def _matrix(comparison: Comparison, column: Column, head: str, decimals: int) -> Chart:
    systems = [rank.system for rank in comparison.ranks]
    cells: dict[tuple[str, str], Cell] = {}
    better = -1 if column.better == "lower" else 1
    for d in comparison.differences:
        p = "" if d.adjusted is None else f", {format_p(d.adjusted)}"
        for row, rival, e in ((d.system, d.other, d.estimate), (d.other, d.system, d.estimate.times(-1))):
            shade = _SIGNIFICANT * (1 if e.value * better > 0 else -1) if d.apart else 0.0
            note = f"{row} − {rival}: {signed(e.value, decimals)} {format_interval(e.low, e.high, decimals)}{p}"
            cells[row, rival] = Cell(signed(e.value, decimals), shade=shade, title=note)
    captions = [f"Row minus column, {_items(comparison)}. Shaded: p < {ALPHA:g} (Holm-corrected)."]
    if comparison.detectable is not None:
        captions.append(f"Detectable difference: {number(comparison.detectable, decimals)} (80% power).")
    if comparison.note:
        captions.append(f"{comparison.note[0].upper()}{comparison.note[1:]}.")
    rows = [[cells.get((row, rival)) for rival in systems] for row in systems]
    chart = heat_map(
        f"differences-{column.name}", f"Differences: {head}", systems, systems, rows, caption=" ".join(captions)
    )
    return replace(chart, tabled=column.kind == "criterion")


def _items(comparison: Comparison) -> str:
    sizes = [d.estimate.n for d in comparison.differences]
    fewest, most = min(sizes), max(sizes)
    return f"{fewest:,} to {most:,} items" if fewest < most else plural(most, "item")


def _pairs(comparison: Comparison, head: str, decimals: int, test: str) -> blocks.Table:
    differences = comparison.differences
    if len(differences) > _MAX_PAIRS and not comparison.against:
        differences = tuple(d for d in differences if d.system == comparison.ranks[0].system)
    only = ", pairs with the first system" if len(differences) < len(comparison.differences) else ""
    rows = [
        (
            f"{d.system} − {d.other}",
            estimate_cell(d.estimate, decimals, signed, mark="*" * d.apart),
            Cell(p_cell(d.adjusted), value=d.adjusted),
            None if d.delta is None else Cell(signed(d.delta, 2), value=d.delta),
            d.wins,
            d.ties,
            d.losses,
        )
        for d in differences
    ]
    return blocks.table(
        ("systems", "difference", "p", "Cliff's delta", "won", "tied", "lost"),
        rows,
        f"* p < {ALPHA:g} ({test}, Holm-corrected). Won, tied, lost: items.",
        caption=f"{head}: first minus second, {_items(comparison)}{only}.",
        name=f"differences-{comparison.column}",
    )


def correlation_blocks(result: Result) -> Iterator[Chart]:
    """Yield the correlations between all columns: a matrix per level that has values."""
    matrices = {matrix.level: matrix for matrix in result.matrices if matrix.coefficient == "spearman"}
    for level in LEVELS:
        matrix = matrices.get(level)
        if matrix is None:
            continue
        size = range(len(matrix.names))
        cells = [[_correlation(matrix, row, column) if row != column else None for column in size] for row in size]
        # The diagonal has values even if no two columns can be compared.
        if any(cell and cell.text != "–" for row in cells for cell in row):
            note = f" {matrix.note[0].upper()}{matrix.note[1:]}." if matrix.note else ""
            caption = f"Spearman's rho {OVER[level]}.{note}"
            title = f"Correlation of the columns, {_TITLES[level]}"
            yield heat_map(f"correlations-{level}", title, matrix.names, matrix.names, cells, caption=caption)


def _correlation(matrix: Matrix, row: int, column: int) -> Cell:
    value = matrix.values[row][column]
    if value is None:
        return Cell("–", title="not defined")
    ends = format_interval(matrix.low[row][column], matrix.high[row][column], 2)
    size = plural(matrix.n[row][column], UNITS[matrix.level])
    return Cell(number(value, 2), shade=value, title=f"{number(value, 2)} {ends}".rstrip() + f", {size}")
