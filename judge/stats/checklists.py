"""Which questions of a checklist get the fewest yes, by system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from judge.core.records import Score
from judge.table import Table


@dataclass(frozen=True, slots=True)
class QuestionShare:
    """The answers to one question: the share of yes (0–1; the mean probability) and the number `n` by system.

    `unanswered` counts the texts without an answer, which are in no share.
    """

    question: str
    weight: float
    shares: Mapping[str, float]
    n: Mapping[str, int]
    unanswered: int

    @property
    def lowest(self) -> tuple[float, float]:
        """The lowest share of a system, and the mean over the systems; 1 if there is no answer."""
        return (
            (min(self.shares.values()), fmean(self.shares.values())) if self.shares else (1.0, 1.0)
        )


@dataclass(frozen=True, slots=True)
class Checklist:
    """The questions of a checklist's column, those that fail most first.

    Without common questions, these are the questions about two items or more, and `others` counts those about one.
    """

    column: str
    questions: tuple[QuestionShare, ...]
    others: int = 0


def checklists(table: Table) -> tuple[Checklist, ...]:
    """Return the checklists of a table. A failed text counts with the answers that it has."""
    asked_in: dict[str, dict[tuple[str, float], dict[str, list[float | None]]]] = {}
    items: dict[tuple[str, tuple[str, float]], set[str]] = {}
    texts: dict[str, int] = {}
    for row in table.rows():
        answers = row.provenance.answers if isinstance(row, Score) else row.answers
        texts[row.column] = texts.get(row.column, 0) + bool(answers)
        for answer in answers:
            key = answer.question, answer.weight
            by_system = asked_in.setdefault(row.column, {}).setdefault(key, {})
            by_system.setdefault(row.system, []).append(answer.value)
            items.setdefault((row.column, key), set()).add(row.item)
    made = []
    for column in (c.name for c in table.columns if c.name in asked_in):
        asked = asked_in[column]
        common = all(
            sum(map(len, by_system.values())) == texts[column] for by_system in asked.values()
        )
        shown = [key for key in asked if common or len(items[column, key]) > 1]
        questions = []
        for key in shown:
            answered = {
                system: [v for v in values if v is not None]
                for system, values in asked[key].items()
            }
            shares = {system: fmean(values) for system, values in answered.items() if values}
            n = {system: len(answered[system]) for system in shares}
            unanswered = sum(map(len, asked[key].values())) - sum(n.values())
            questions.append(QuestionShare(*key, shares, n, unanswered))
        questions.sort(key=lambda question: question.lowest)
        made.append(Checklist(column, tuple(questions), len(asked) - len(shown)))
    return tuple(made)
