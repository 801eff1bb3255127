"""The summary as CSV, one row per system and column, in full precision."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import fields
from io import StringIO
from typing import Any

from judge.report.result import Result
from judge.report.view import view
from judge.report.words import plain
from judge.stats.comparison import Standing

HEADER = ("system", "column", "kind", "mean", "low", "high", "n", "total", "failed", "signature")


def render(result: Result) -> str:
    """CSV with a header line; what is no number is empty.

    Of means, a row per system and column: `HEADER`. Of rankings, a row per standing: its fields and the signature.
    """
    if result.rankings:
        return _ranking(result)
    return _written(HEADER, _means(result))


def _means(result: Result) -> Iterator[list[Any]]:
    shown = view(result)
    for column in shown.columns:
        for system in shown.systems:
            cell, e = shown.cells[system, column.name], shown.cells[system, column.name].estimate
            ends = (e.value, e.low, e.high) if e else (None, None, None)
            counts = (cell.n, cell.total, cell.failed)
            yield [system, column.name, column.kind, *ends, *counts, column.signature]


def _ranking(result: Result) -> str:
    names = [field.name for field in fields(Standing)]
    signatures = {column.name: column.signature for column in result.table.columns}
    standings = [standing for ranking in result.rankings for standing in ranking.standings]
    rows = ([*(getattr(one, name) for name in names), signatures.get(one.column)] for one in standings)
    return _written([*names, "signature"], rows)


def _written(header: Iterable[str], rows: Iterable[list[Any]]) -> str:
    text = StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(plain(row) for row in rows)
    return text.getvalue()
