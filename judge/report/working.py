"""The questions and answers behind a value of QAGS, as reports show them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from judge.records import Failure, Score
from judge.report.result import Result
from judge.report.words import number

_GAP, _AROUND = "____", 30
HEADS = ("theme", "question", "answer from the source", "answer from the output", "similarity")


@dataclass(frozen=True, slots=True)
class Asked:
    """One theme, its question and the two answers; "–" where a text answers nothing. `similarity` is in words."""

    theme: str
    question: str
    from_source: str
    from_output: str
    similarity: str

    @property
    def brief(self) -> str:
        """The question, or the words around its gap."""
        before, gap, after = self.question.partition(_GAP)
        if not gap:
            return self.question
        left, right = before[-_AROUND:], after[:_AROUND]
        return f"{'…' * (left != before)}{left}{gap}{right}{'…' * (right != after)}"

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        return self.theme, self.brief, self.from_source, self.from_output, self.similarity


def asked(row: Score | Failure | None) -> tuple[Asked, ...]:
    """What a row's working says; nothing where it has none."""
    raw = (row.provenance.raw if isinstance(row, Score) else row.raw if row else "") or ""
    if not raw.startswith('{"qags"'):
        return ()
    lines: list[tuple[str, str, str, str, dict[str, float]]] = json.loads(raw)["qags"]
    return tuple(Asked(theme, question, a or "–", b or "–", _said(alike)) for theme, question, a, b, alike in lines)


def _said(similarity: dict[str, float]) -> str:
    """`f1 0.67, exact 0.00`, or that a line does not count."""
    return ", ".join(f"{name} {number(value, 2)}" for name, value in similarity.items()) or "left out"


def workings(result: Result) -> Iterator[tuple[str, tuple[Asked, ...]]]:
    """Every output's heading, with its value or what is wrong with it, and its questions and answers."""
    columns = [column.name for column in result.table.columns if column.name.startswith("qags_")]
    rows = {(row.item, row.system, row.column): row for row in result.table.rows()}
    for sample in result.table.samples:
        found = [rows.get((sample.item, sample.system, column)) for column in columns]
        values = ", ".join(f"{row.column} {number(row.value, 3)}" for row in found if isinstance(row, Score))
        failed = next((f"{row.error}: {row.message}" for row in found if isinstance(row, Failure)), "")
        yield f"{sample.item}, {sample.system}: {values or failed}", asked(found[0] if found else None)
