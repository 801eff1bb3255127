"""Render the records of a Document as CSV, in full precision and safe to open in a spreadsheet, or
its data as JSON."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from judge.core.format import json_text, to_json
from judge.report.document import Document

_SIGNS = "=+-@"
"""With what a formula begins (OWASP, "CSV Injection"); also in its wide or small form, such as ＝ or
﹦."""
_BREAKS = "\t\r\n"
"""A spreadsheet may begin a new cell after these, whatever stands before."""


def render(document: Document, *, wide: bool = False) -> str:
    """Write a header line and a line per record; a number that does not exist is an empty cell.

    With `wide`, write a row per item and system. A text that a spreadsheet would take for a formula
    gets an apostrophe in front; numbers stay unchanged.
    """
    header: Iterable[str] = next(iter(document.records), document.header)
    records: Iterable[Mapping[str, Any]] = document.records
    if wide and document.wide_records:
        header, records = document.wide_records()
    lines = [header] if header else []
    lines += [record.values() for record in records]
    return "".join(",".join(map(_cell, to_json(list(cells)))) + "\n" for cells in lines)


def _cell(value: Any) -> str:
    """Return a value as it stands between two commas.

    `csv.writer` leaves a carriage return unquoted, after which a spreadsheet begins a new row. All
    characters that are not printed are quoted here.
    """
    if value is None:
        return ""
    text = escape(value) if isinstance(value, str) else str(value)
    if text.isprintable() and not any(sign in text for sign in ',"'):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def escape(text: str) -> str:
    """Return the text as a cell that is no formula: with an apostrophe before it, if it could be
    one.

    A text that still looks like a formula behind its apostrophes has one more than it had.
    """
    return f"'{text}" if _is_formula(text.lstrip("'")) else text


def _is_formula(text: str) -> bool:
    """Return whether a text is a formula, also behind blanks, control characters and invisible
    ones."""
    if text[:1] in tuple(_BREAKS):
        return True
    for character in text:
        if character.isprintable() and not character.isspace():
            return unicodedata.normalize("NFKC", character) in tuple(_SIGNS)
    return False


def render_json(document: Document) -> str:
    """Write the data as strict JSON; a number that does not exist is null."""
    return json_text(document.data)
