"""Render the records of a Document as CSV, in full precision and safe to open in a spreadsheet, or its data as JSON."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any

from judge.core.format import json_text, to_json
from judge.report.document import Document

# What a spreadsheet takes for a formula (OWASP, "CSV Injection"), also behind blanks and behind our own apostrophe.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠])")


def render(document: Document, *, wide: bool = False) -> str:
    """Write a header line and a line per record; a number that does not exist is an empty cell.

    With `wide`, write a row per item and system. A text that a spreadsheet would take for a formula gets an apostrophe
    in front; numbers stay unchanged.
    """
    header: Iterable[str] = next(iter(document.records), document.header)
    records: Iterable[Mapping[str, Any]] = document.records
    if wide and document.wide_records:
        header, records = document.wide_records()
    text = StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(header)
    for record in records:
        cells = to_json(list(record.values()))
        writer.writerow([escape(cell) if isinstance(cell, str) else cell for cell in cells])
    return text.getvalue()


def escape(text: str) -> str:
    """Return the text as a cell that is no formula. If `_FORMULA` matches the result, its first apostrophe is ours."""
    return f"'{text}" if _FORMULA.match(text) else text


def render_json(document: Document) -> str:
    """Write the data as strict JSON; a number that does not exist is null."""
    return json_text(document.data)
