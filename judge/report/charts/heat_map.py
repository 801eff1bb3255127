"""Draw a matrix of shaded cells: correlations, win rates, differences between systems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from judge.report.charts.shapes import (
    CELL,
    MAX_ROWS,
    chart,
    cut_note,
    group,
    label_width,
    name_text,
    rect,
    text,
)
from judge.report.document import Cell, Chart

_TALL = 28  # pixels of a row
_HEADINGS = 24  # pixels of the headings
_MIN_WIDE = 60  # pixels of the narrowest column
_MAX_COLUMNS = 40
_CELLS = 12  # of a heading; longer ones become numbers that the rows repeat
_DEEPEST = 0.6  # opacity, so that a text can be read on it


def heat_map(
    chart_name: str,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    table: Sequence[Sequence[Cell | None]],
    *,
    caption: str = "",
) -> Chart:
    """Draw a shaded cell per row and column, its title as a tooltip; None leaves it empty."""
    rows_cut = cut_note(len(rows), MAX_ROWS, "row")
    columns_cut = cut_note(len(columns), _MAX_COLUMNS, "column")
    caption = f"{rows_cut}{columns_cut}{caption}".rstrip()
    rows = rows[:MAX_ROWS]
    columns = columns[:_MAX_COLUMNS]
    longest = max(map(cell_len, columns), default=0)
    # Long headings become numbers, if the rows have the same names.
    is_numbered = longest > _CELLS and list(rows) == list(columns)
    cell_width = float(_MIN_WIDE)
    labels = list(rows)
    if is_numbered:
        labels = [f"{index} {row}" for index, row in enumerate(rows, 1)]
    else:
        width_of_names = CELL * min(longest, _CELLS) + 6
        cell_width = max(cell_width, width_of_names)
    margin = label_width(labels)
    headings = _heat_headings(columns, margin, cell_width, is_numbered=is_numbered)
    elements = list(headings)
    for row_index, label in enumerate(labels):
        top = _HEADINGS + _TALL * row_index
        cells = table[row_index][: len(columns)]
        elements.append(name_text(0, top + 18, label))
        elements += _heat_cells(cells, (margin, top), cell_width)
    width = margin + cell_width * len(columns)
    height = _HEADINGS + _TALL * len(rows)
    descriptions = _strongest_cells(rows, columns, table) or ["nothing stands out"]
    return chart(
        chart_name,
        title,
        (width, height),
        elements,
        values=descriptions,
        caption=caption,
    )


def _heat_headings(
    columns: Sequence[str],
    margin: float,
    cell_width: float,
    *,
    is_numbered: bool,
) -> Iterator[str]:
    """Draw a name over the middle of each column, or its number with the name as a tooltip."""
    for index, head in enumerate(columns):
        middle = margin + cell_width * (index + 0.5)
        if is_numbered:
            heading = name_text(middle, 15, f"{index + 1}", "middle", cells=_CELLS)
            yield group(head, heading)
        else:
            yield name_text(middle, 15, head, "middle", cells=_CELLS)


def _strongest_cells(
    rows: Sequence[str],
    columns: Sequence[str],
    table: Sequence[Sequence[Cell | None]],
) -> list[str]:
    """Describe the shaded cells in words, the most shaded first."""
    depth_and_words: dict[frozenset[str], tuple[float, str]] = {}
    # The table may have more rows and columns than are drawn.
    for row, cells in zip(rows, table, strict=False):
        for column, cell in zip(columns, cells, strict=False):
            if cell is not None and cell.text and cell.shade:
                words = f"{row} and {column} {cell.text}"
                # Negative, so that sorting puts the deepest shade first.
                described = (-abs(cell.shade), words)
                # A symmetric matrix has each pair twice.
                pair = frozenset((row, column))
                depth_and_words.setdefault(pair, described)
    return [words for _, words in sorted(depth_and_words.values())]


def _heat_cells(
    cells: Sequence[Cell | None],
    corner: tuple[float, float],
    width: float,
) -> Iterator[str]:
    """Draw a row of a heat map from its upper left corner; cells without a text stay empty."""
    left_edge, top = corner
    for index, cell in enumerate(cells):
        if cell is not None and cell.text:
            yield _heat_cell(cell, (left_edge + width * index, top), width)


def _heat_cell(cell: Cell, corner: tuple[float, float], width: float) -> str:
    """Draw a cell of a heat map; the stronger its shade, the deeper the colour."""
    x, y = corner
    shade = cell.shade or 0.0
    drawn_cell = ""
    if shade:
        kind = "heat-good" if shade > 0 else "heat-bad"
        depth = _DEEPEST * min(1.0, abs(shade))
        inner_corner = (x + 1, y + 1)
        inner_size = (width - 2, _TALL - 2)
        drawn_cell = rect(kind, inner_corner, inner_size, depth)
    middle = x + width / 2
    value = text(middle, y + 18, cell.text, "value", "middle")
    return group(cell.title, drawn_cell, value)
