"""The summary as CSV, one row per system and column, in full precision, and safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import fields
from io import StringIO
from typing import Any

from judge.core.format import to_json
from judge.report.views.leaderboard_old import build_leaderboard
from judge.results.result import Result
from judge.stats.pairwise import Standing

# What a spreadsheet takes for a formula (OWASP, "CSV Injection"), also behind blanks and behind our own mark.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠])")

HEADER = (
    *("system", "column", "kind", "mean", "low", "high", "n", "total", "failed", "signature"),
    *("rank", "rank_low", "rank_high", "mark"),
)


def render(result: Result) -> str:
    """CSV with a header line; a number that does not exist is an empty cell.

    A text that a spreadsheet would take for a formula has an apostrophe before it; numbers stay as they are. Of means,
    a row per system and column: `HEADER`, where `mark` is "best" for a system that is told apart from all others and
    "same" for each of several that are not told apart from the first. Of rankings, a row per standing: its fields and
    the signature.
    """
    if result.rankings:
        names = [field.name for field in fields(Standing)]
        signatures = {column.name: column.signature for column in result.table.columns}
        standings = [standing for ranking in result.rankings for standing in ranking.standings]
        rows = (
            [*(getattr(standing, name) for name in names), signatures.get(standing.column)] for standing in standings
        )
        return written([*names, "signature"], rows)
    board = build_leaderboard(result)
    ranks = {(comparison.column, rank.system): rank for comparison in result.comparisons for rank in comparison.ranks}
    means: list[list[Any]] = []
    for column in board.columns:
        for system in board.systems:
            cell, e = board.cells[system, column.name], board.cells[system, column.name].estimate
            interval = (e.value, e.low, e.high) if e else (None, None, None)
            counts = (cell.n, cell.total, cell.failed)
            rank = ranks.get((column.name, system))
            places = (rank.rank, rank.low, rank.high) if rank else (None, None, None)
            mark = "best" if cell.best else "same" if cell.same else ""
            means.append([system, column.name, column.kind, *interval, *counts, column.signature, *places, mark])
    return written(HEADER, means)


def written(header: Iterable[str], rows: Iterable[list[Any]]) -> str:
    """CSV of these rows, safe to open in a spreadsheet."""
    text = StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([inert(cell) if isinstance(cell, str) else cell for cell in to_json(row)] for row in rows)
    return text.getvalue()


def inert(text: str) -> str:
    """The text as a cell that is no formula. Where `_FORMULA` matches the result, its first apostrophe is ours."""
    return f"'{text}" if _FORMULA.match(text) else text
