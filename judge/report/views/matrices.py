"""Differences between systems, and correlations between columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from judge.core.format import format_interval, number, plural, signed
from judge.report.charts.heat_map import heat_map
from judge.report.document import Block, Cell, Chart, Content, Details, Table, table
from judge.report.format import share_label
from judge.report.views.charts import spearman_matrices, titles
from judge.report.views.columns import (
    TEST_NAME,
    compared_columns,
    contradicts_test,
    display_columns,
    estimate_cell,
    p_cell,
    places,
)
from judge.results.result import Result
from judge.stats.coefficients import LEVELS, Level
from judge.stats.correlation import OVER, UNITS
from judge.stats.correlation_matrix import Matrix
from judge.stats.power import ALPHA
from judge.stats.system_differences import Comparison, Difference

_MAX_PAIRS = 30  # in a table; if there are more, only those with the best system
_TITLES: Mapping[Level, str] = {
    "all-texts": "all texts",
    "within-items": "within items",
    "systems": "between systems",
}


def difference_blocks(result: Result) -> Iterator[Block]:
    """Yield a table of the differences between systems for each criterion.

    The tables of metrics are folded, unless no criterion was judged.
    """
    title_by_column = titles(result)
    compared = compared_columns(result)
    tables: dict[str, list[Block]] = {"criterion": [], "metric": []}
    for column in display_columns(result):
        comparison = compared.get(column.name)
        if not comparison or not comparison.differences:
            continue
        head = title_by_column[column.name]
        factor = 1
        decimals = places(result, column)
        if share_label(column):
            head = f"{head} (percentage points)"
            factor = 100
            decimals = 0
        pairs = _pairs(comparison, head, factor, decimals, TEST_NAME)
        tables[column.kind].append(pairs)
    yield from tables["criterion"] or tables["metric"]
    if tables["criterion"] and tables["metric"]:
        yield Details("Differences in metrics", tuple(tables["metric"]))


def _pairs(
    comparison: Comparison,
    head: str,
    factor: int,
    decimals: int,
    test: str,
) -> Table:
    differences = comparison.differences
    sides = "first minus second"
    if len(differences) > _MAX_PAIRS and not comparison.against:
        sides = "first minus second, pairs with the first system"
        first_system = comparison.ranks[0].system
        of_first = [pair for pair in differences if pair.system == first_system]
        differences = tuple(of_first)
    rows: list[list[Content]] = []
    for difference in differences:
        mark = "*" if difference.apart else ""
        estimate = difference.estimate.times(factor)
        delta = None
        if difference.delta is not None:
            delta = Cell(signed(difference.delta, 2), value=difference.delta)
        row: list[Content] = [
            f"{difference.system} − {difference.other}",
            estimate_cell(estimate, decimals, signed, mark=mark),
            Cell(p_cell(difference.adjusted), value=difference.adjusted),
            delta,
            difference.wins,
            difference.ties,
            difference.losses,
        ]
        rows.append(row)
    sentences = ["Won, tied, lost: items."]
    if comparison.detectable is not None:
        detectable = number(factor * comparison.detectable, decimals)
        sentences.append(f"Detectable difference: {detectable} (80% power).")
    if any(_contradicts_test(difference) for difference in differences):
        sentences.append("Intervals are Student's t, of each pair alone; p decides.")
    if comparison.note:
        sentences.append(_as_sentence(comparison.note))
    return table(
        ("systems", "difference", "p", "Cliff's delta", "won", "tied", "lost"),
        rows,
        " ".join(sentences),
        star=f"* p < {ALPHA:g} ({test}, Holm-corrected).",
        caption=f"{head}: {sides}.",
        name=f"differences-{comparison.column}",
        sorts=True,
    )


def _contradicts_test(difference: Difference) -> bool:
    estimate = difference.estimate
    return contradicts_test(estimate.low, estimate.high, difference.adjusted)


def correlation_blocks(result: Result) -> Iterator[Chart]:
    """Yield the correlations between all columns: a matrix per level that has values."""
    matrices = spearman_matrices(result)
    title_by_column = titles(result)
    for level in LEVELS:
        if level not in matrices:
            continue
        matrix = matrices[level]
        indices = range(len(matrix.names))
        cells = []
        for row in indices:
            line: list[Cell | None] = [
                _correlation(matrix, row, column) for column in indices
            ]
            line[row] = None
            cells.append(line)
        # The diagonal has values even if no two columns can be compared.
        if any(cell and cell.text != "–" for row in cells for cell in row):
            caption = f"Spearman's rho {OVER[level]}."
            if matrix.note:
                caption = f"{caption} {_as_sentence(matrix.note)}"
            title = f"Correlation of the columns, {_TITLES[level]}"
            chart_name = f"correlations-{level}"
            heads = [title_by_column[column_name] for column_name in matrix.names]
            yield heat_map(chart_name, title, heads, heads, cells, caption=caption)


def _as_sentence(note: str) -> str:
    """Return a note with a capital letter and a full stop."""
    capital = note[0].upper()
    return f"{capital}{note[1:]}."


def _correlation(matrix: Matrix, row: int, column: int) -> Cell:
    value = matrix.values[row][column]
    if value is None:
        return Cell("–", title="not defined")
    lower_bound = matrix.low[row][column]
    upper_bound = matrix.high[row][column]
    interval = format_interval(lower_bound, upper_bound, 2)
    unit_count = matrix.n[row][column]
    size = plural(unit_count, UNITS[matrix.level])
    text = number(value, 2)
    title = f"{text} {interval}".rstrip()
    return Cell(text, shade=value, title=f"{title}, {size}")
