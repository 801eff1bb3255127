"""The summary as CSV, one row per system and column, in full precision."""

from __future__ import annotations

import csv
from io import StringIO

from judge.report.result import Result
from judge.report.view import view
from judge.report.words import plain

HEADER = ("system", "column", "kind", "mean", "low", "high", "n", "total", "failed", "signature")


def render(result: Result) -> str:
    """CSV with a header line; `mean`, `low` and `high` are empty where there is no such number."""
    shown = view(result)
    text = StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for column in shown.columns:
        for system in shown.systems:
            cell, e = shown.cells[system, column.name], shown.cells[system, column.name].estimate
            ends = (e.value, e.low, e.high) if e else (None, None, None)
            counts = (cell.n, cell.total, cell.failed)
            writer.writerow(plain([system, column.name, column.kind, *ends, *counts, column.signature]))
    return text.getvalue()
