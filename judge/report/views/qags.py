"""The questions and answers behind a value of QAGS, as reports show them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from judge.core.format import number, one_line
from judge.core.records import Column, Failure, Score

_GAP = "____"  # replaces the theme in a question
_MAX_CELLS = 60  # of a terminal, for the words around the gap
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
        """The question, or the words around its gap; a side may use the room that the other one leaves."""
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
    """Cut a text to a number of terminal cells."""
    end = 0
    while end < len(text) and (cells := cells - cell_len(text[end])) >= 0:
        end += 1
    return text[:end]


def qags_table(column: Column, row: Score | Failure | None) -> tuple[Line, ...]:
    """Return the questions behind a value of QAGS; none for other columns and for a damaged record."""
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
    """Read a stored line; old runs have no reason. Raises TypeError or ValueError for another shape."""
    *texts, alike, left_out = stored if len(stored) > 5 else [*stored, ""]
    theme, question, source, output = texts
    if not all(isinstance(text, str) for text in (*texts, left_out)) or not isinstance(alike, dict):
        raise TypeError("not a line of a working")
    scores = ", ".join(f"{name} {number(value, 2)}" for name, value in alike.items())
    reason = f"left out: {left_out}" if left_out else "left out"
    return Line(theme, question, source or "–", output or "–", scores or reason)
