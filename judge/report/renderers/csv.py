"""Render the records of a Document as CSV, or its data as JSON (`render_json`).

The CSV has full precision and is safe to open in a spreadsheet.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from judge.core.format import json_text, to_json
from judge.report.document import Document

_SIGNS = ("=", "+", "-", "@")
"""The characters that begin a formula (OWASP, "CSV Injection").

Spreadsheets also accept their wide and small forms, such as ＝ and ﹦.
"""
_BREAKS = ("\t", "\r", "\n")
"""The characters after which a spreadsheet may begin a new cell."""


def render(document: Document, *, wide: bool = False) -> str:
    """Write a header line and a line per record; a number that does not exist is an empty cell.

    With `wide`, write a row per item and system. A text that a spreadsheet would take for a formula
    gets an apostrophe in front; numbers stay unchanged. A list or a mapping is JSON.
    """
    header: Iterable[str] = document.header
    if document.records:
        header = document.records[0]
    records: Iterable[Mapping[str, Any]] = document.records
    if wide and document.wide_records:
        header, records = document.wide_records()
    rows: list[Iterable[Any]] = []
    if header:
        rows.append(header)
    rows += [record.values() for record in records]
    lines = []
    for row in rows:
        values = to_json(list(row))
        line = ",".join(map(_cell, values))
        lines.append(f"{line}\n")
    return "".join(lines)


def with_byte_order_mark(text: str) -> str:
    """Return the text of a CSV file so that Excel reads it as UTF-8, whatever its language."""
    return text if text.isascii() else f"\ufeff{text}"


def _cell(value: Any) -> str:
    """Return the text of a value between two commas, quoted if necessary."""
    if value is None:
        return ""
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    text = str(value)
    if isinstance(value, str):
        text = escape(value)
    # `csv.writer` would leave a carriage return unquoted, after which a spreadsheet begins a new
    # row. Here, all characters that are not printable are quoted.
    if text.isprintable() and not any(sign in text for sign in ',"'):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def escape(text: str) -> str:
    """Return the text as a cell that is no formula, with an apostrophe before it if necessary.

    A formula behind apostrophes gets one more: removing one apostrophe then gives the text back.
    """
    without_apostrophes = text.lstrip("'")
    if _is_formula(without_apostrophes):
        return f"'{text}"
    return text


def _is_formula(text: str) -> bool:
    """Return whether a spreadsheet may read the text as a formula.

    Blanks, control characters and invisible ones before the formula do not count.
    """
    if text.startswith(_BREAKS):
        return True
    for character in text:
        if character.isprintable() and not character.isspace():
            usual_form = unicodedata.normalize("NFKC", character)
            return usual_form in _SIGNS
    return False


def render_json(document: Document) -> str:
    """Write the data as strict JSON; a number that does not exist is null."""
    return json_text(document.data)
