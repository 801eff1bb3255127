"""Differences between systems, and correlations between columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from judge.core.format import format_interval, number, plural, signed
from judge.report.charts import heat_map
from judge.report.document import Block, Cell, Chart, Details, Table, table
from judge.report.format import share_label
from judge.report.views.charts import titles
from judge.report.views.columns import (
    TEST_NAME,
    compared_columns,
    display_columns,
    estimate_cell,
    p_cell,
    places,
)
from judge.results.result import Result
from judge.stats.coefficients import LEVELS, Level
from judge.stats.correlation import OVER, UNITS, Matrix
from judge.stats.power import ALPHA
from judge.stats.system_differences import Comparison

_MAX_PAIRS = 30  # in a table; if there are more, only those with the best system
_TITLES: Mapping[Level, str] = {
    "all-texts": "all texts",
    "within-items": "within items",
    "systems": "between systems",
}


def difference_blocks(result: Result) -> Iterator[Block]:
    """Yield the differences between systems: a table per criterion, and the tables of metrics folded."""
    heads, compared = titles(result), compared_columns(result)
    tables: dict[str, list[Block]] = {"criterion": [], "metric": []}
    for column in display_columns(result):
        comparison = compared.get(column.name)
        if comparison and comparison.differences:
            in_percent = bool(share_label(column))
            head = f"{heads[column.name]} (percentage points)" if in_percent else heads[column.name]
            factor, decimals = (100, 0) if in_percent else (1, places(result, column))
            tables[column.kind].append(_pairs(comparison, head, factor, decimals, TEST_NAME))
    yield from tables["criterion"] or tables["metric"]
    if tables["criterion"] and tables["metric"]:
        yield Details("Differences in metrics", tuple(tables["metric"]))


def _pairs(comparison: Comparison, head: str, factor: int, decimals: int, test: str) -> Table:
    differences = comparison.differences
    if len(differences) > _MAX_PAIRS and not comparison.against:
        differences = tuple(d for d in differences if d.system == comparison.ranks[0].system)
    only = ", pairs with the first system" if len(differences) < len(comparison.differences) else ""
    rows = [
        (
            f"{d.system} − {d.other}",
            estimate_cell(d.estimate.times(factor), decimals, signed, mark="*" * d.apart),
            Cell(p_cell(d.adjusted), value=d.adjusted),
            None if d.delta is None else Cell(signed(d.delta, 2), value=d.delta),
            d.wins,
            d.ties,
            d.losses,
        )
        for d in differences
    ]
    key = [f"* p < {ALPHA:g} ({test}, Holm-corrected). Won, tied, lost: items."]
    if comparison.detectable is not None:
        key.append(
            f"Detectable difference: {number(factor * comparison.detectable, decimals)} (80% power)."
        )
    if comparison.note:
        key.append(f"{comparison.note[0].upper()}{comparison.note[1:]}.")
    return table(
        ("systems", "difference", "p", "Cliff's delta", "won", "tied", "lost"),
        rows,
        " ".join(key),
        caption=f"{head}: first minus second{only}.",
        name=f"differences-{comparison.column}",
        sorts=True,
    )


def correlation_blocks(result: Result) -> Iterator[Chart]:
    """Yield the correlations between all columns: a matrix per level that has values."""
    matrices = {
        matrix.level: matrix for matrix in result.matrices if matrix.coefficient == "spearman"
    }
    for level in (level for level in LEVELS if level in matrices):
        matrix = matrices[level]
        size = range(len(matrix.names))
        cells = [
            [_correlation(matrix, row, column) if row != column else None for column in size]
            for row in size
        ]
        # The diagonal has values even if no two columns can be compared.
        if any(cell and cell.text != "–" for row in cells for cell in row):
            note = f" {matrix.note[0].upper()}{matrix.note[1:]}." if matrix.note else ""
            caption = f"Spearman's rho {OVER[level]}.{note}"
            title = f"Correlation of the columns, {_TITLES[level]}"
            yield heat_map(
                f"correlations-{level}", title, matrix.names, matrix.names, cells, caption=caption
            )


def _correlation(matrix: Matrix, row: int, column: int) -> Cell:
    value = matrix.values[row][column]
    if value is None:
        return Cell("–", title="not defined")
    ends = format_interval(matrix.low[row][column], matrix.high[row][column], 2)
    size = plural(matrix.n[row][column], UNITS[matrix.level])
    return Cell(
        number(value, 2), shade=value, title=f"{number(value, 2)} {ends}".rstrip() + f", {size}"
    )
