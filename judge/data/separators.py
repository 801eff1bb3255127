"""The separator of a table of text.

Excel writes semicolons in many countries, and tabs into a .csv.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_STATED = re.compile(r'\A"?sep=(.)"?\r?\n?\Z', re.DOTALL)
"""Excel's own first line, such as `sep=;`."""
_TRIED_ROWS = 50


def stated_separator(first_line: str) -> str | None:
    """Return the separator that Excel's first line states, None for any other line."""
    match = _STATED.match(first_line)
    return match[1] if match else None


def find_separator(lines: Sequence[str], usual_separator: str) -> str:
    """Return the separator of a table, given its first lines: the usual one if it makes a table.

    Another one is taken if the header has several columns with it, and either just one with the
    usual one, or rows of another length.
    """
    usual_shape = _shape(lines, usual_separator)
    if usual_shape.n_columns > 1 and usual_shape.is_regular:
        return usual_separator
    n_columns: dict[str, int] = {}  # with each separator that makes several columns
    regular: list[str] = []
    for separator in (usual_separator, *SEPARATORS):
        shape = _shape(lines, separator)
        if shape.n_columns > 1:
            n_columns[separator] = shape.n_columns
            if shape.is_regular:
                regular.append(separator)
    if not regular and usual_shape.n_columns < 2 and usual_separator == ",":
        # A row is wrong with any separator: the message about it names the header's columns.
        regular = list(n_columns)
    return max(regular, key=n_columns.__getitem__, default=usual_separator)


class _Shape(NamedTuple):
    """The columns of a table's header, and whether the first rows have as many cells."""

    n_columns: int
    is_regular: bool


def _shape(lines: Sequence[str], separator: str) -> _Shape:
    """Return the shape of a table with this separator, given its first lines."""
    try:
        reader = csv.reader(lines, delimiter=separator, strict=True)
        table = list(islice(reader, _TRIED_ROWS))
    # Quotation marks in the wrong places: another separator divides these lines.
    except csv.Error:
        return _Shape(0, is_regular=False)
    rows = [row for row in table if row]
    if not rows:
        return _Shape(0, is_regular=False)
    header, *body = rows
    # The last lines may be the start of a cell with line breaks, so that the last row is cut.
    may_be_cut = len(table) < _TRIED_ROWS
    if may_be_cut and len(body) > 1:
        body.pop()
    n_columns = len(header)
    return _Shape(n_columns, all(len(row) == n_columns for row in body))
