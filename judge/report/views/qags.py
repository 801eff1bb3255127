"""The questions and answers behind a value of QAGS, as reports show them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from judge.core.messages import number, one_line
from judge.core.records import Column, Failure, Sample, Score
from judge.results.result import Result

_GAP, _MAX_CELLS = "____", 60
"""What stands for the theme in a question, and the terminal cells of words shown around it."""
HEADS = ("theme", "question", "answer from the source", "answer from the output", "similarity")


@dataclass(frozen=True, slots=True)
class Line:
    """One theme, its question and the two answers; "–" where a text answers nothing. `similarity` is in words."""

    theme: str
    question: str
    from_source: str
    from_output: str
    similarity: str

    @property
    def brief(self) -> str:
        """The question, or the words around its gap: as many on either side, more where the other has fewer."""
        before, gap, after = self.question.partition(_GAP)
        if not gap:
            return self.question
        left = _clip(before[::-1], _MAX_CELLS - min(cell_len(after), _MAX_CELLS // 2))[::-1]
        right = _clip(after, _MAX_CELLS - min(cell_len(before), _MAX_CELLS // 2))
        return f"{'…' * (left != before)}{left}{gap}{right}{'…' * (right != after)}"

    @property
    def cells(self) -> list[str]:
        """What a terminal shows, under `HEADS`."""
        return [
            one_line(text) for text in (self.theme, self.brief, self.from_source, self.from_output, self.similarity)
        ]


def _clip(text: str, cells: int) -> str:
    """As much of a text as is no wider than so many cells of a terminal."""
    end = 0
    while end < len(text) and (cells := cells - cell_len(text[end])) >= 0:
        end += 1
    return text[:end]


def qags_table(column: Column, row: Score | Failure | None) -> tuple[Line, ...]:
    """What the working of a row of QAGS says; nothing of any other column, nor where there is none or it is broken."""
    raw = row.provenance.raw if isinstance(row, Score) else row.raw if row else ""
    if not (raw and is_qags(column)):
        return ()
    try:
        return tuple(map(_line, json.loads(raw)["qags"]))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return ()


def is_qags(column: Column) -> bool:
    return column.kind == "metric" and column.name.startswith("qags_")


def _line(stored: list[Any]) -> Line:
    """A line as it is stored, in old runs without the reason. Raises TypeError or ValueError for another shape."""
    *texts, alike, left_out = stored if len(stored) > 5 else [*stored, ""]
    theme, question, source, output = texts
    if not all(isinstance(text, str) for text in (*texts, left_out)) or not isinstance(alike, dict):
        raise TypeError("not a line of a working")
    scores = ", ".join(f"{name} {number(value, 2)}" for name, value in alike.items())
    return Line(
        theme, question, source or "–", output or "–", scores or (f"left out: {left_out}" if left_out else "left out")
    )


def qags_tables(result: Result, samples: Sequence[Sample]) -> Iterator[tuple[str, tuple[Line, ...]]]:
    """The heading of each of these outputs, with its value or what is wrong with it, and its questions and answers."""
    columns = [column for column in result.table.columns if is_qags(column)]
    rows = {(row.item, row.system, row.column): row for row in result.table.rows()}
    for sample in samples:
        column_rows = [rows.get((sample.item, sample.system, column.name)) for column in columns]
        values = ", ".join(f"{row.column} {number(row.value, 3)}" for row in column_rows if isinstance(row, Score))
        failed = next((f"{row.error}: {row.message}" for row in column_rows if isinstance(row, Failure)), "")
        lines = (qags_table(column, row) for column, row in zip(columns, column_rows, strict=True))
        yield f"{sample.item}, {sample.system}: {values or failed}", next(filter(None, lines), ())
