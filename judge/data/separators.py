"""The separator of a table of text.

Excel writes semicolons in many countries, and tabs into a .csv.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import islice

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_STATED = re.compile(r'\A"?sep=(.)"?\r?\n?\Z', re.DOTALL)
"""Excel's own first line, such as `sep=;`."""
_TRIED_ROWS = 50


def stated_separator(first_line: str) -> str | None:
    """Return the separator that Excel's first line states, None for any other line."""
    match = _STATED.match(first_line)
    return match[1] if match else None


def find_separator(lines: Sequence[str], usual: str) -> str:
    """Return the separator of a table, given its first lines: the usual one if it makes a table.

    Another one is taken if the header has several columns with it, and either just one with the
    usual one, or rows of another length.
    """
    fits = {separator: _columns(lines, separator) for separator in (usual, *SEPARATORS)}
    usual_columns, usual_fits = fits[usual]
    if usual_columns > 1 and usual_fits:
        return usual
    several = {separator: columns for separator, (columns, _) in fits.items() if columns > 1}
    candidates = {
        separator: columns for separator, columns in several.items() if fits[separator][1]
    }
    if not candidates and usual_columns < 2 and usual == ",":
        # A row is wrong with any separator: the message about it names the header's columns.
        candidates = several
    return max(candidates, key=lambda separator: candidates[separator], default=usual)


def _columns(lines: Sequence[str], separator: str) -> tuple[int, bool]:
    """Return the number of columns in the header, and whether the first rows have as many cells."""
    try:
        table = list(islice(csv.reader(lines, delimiter=separator, strict=True), _TRIED_ROWS))
    except csv.Error:
        return 0, False
    rows = [row for row in table if row]
    if not rows:
        return 0, False
    # The last lines may be the start of a cell with line breaks, so that the last row is cut.
    complete = rows[1:-1] if len(table) < _TRIED_ROWS and len(rows) > 2 else rows[1:]
    return len(rows[0]), all(len(row) == len(rows[0]) for row in complete)
