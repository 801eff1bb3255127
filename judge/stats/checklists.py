"""Which questions of a checklist get the fewest yes, by system."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from judge.core.records import Failure, Score
from judge.table import Table


@dataclass(frozen=True, slots=True)
class QuestionShare:
    """The answers to one question.

    `shares` has the share of yes (0–1; the mean probability) and `n` the number by system.
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
        shares = self.shares.values()
        if not shares:
            return 1.0, 1.0
        return min(shares), fmean(shares)


@dataclass(frozen=True, slots=True)
class Checklist:
    """The questions of a checklist's column, those that fail most first.

    Without common questions, these are the questions about two items or more, and `others` counts
    those about one.
    """

    column: str
    questions: tuple[QuestionShare, ...]
    others: int = 0


_Question = tuple[str, float]
"""A question and its weight."""


class _AnswersOfColumn:
    """The answers in one column: by question and system, and the items of each question."""

    def __init__(self) -> None:
        self.values: dict[_Question, dict[str, list[float | None]]] = {}
        self.items: dict[_Question, set[str]] = {}
        self.texts = 0

    def add(self, row: Score | Failure) -> None:
        """Add the answers about one text."""
        answers = row.provenance.answers if isinstance(row, Score) else row.answers
        if answers:
            self.texts += 1
        for answer in answers:
            question = (answer.question, answer.weight)
            values_by_system = self.values.setdefault(question, {})
            values_by_system.setdefault(row.system, []).append(answer.value)
            self.items.setdefault(question, set()).add(row.item)

    def times_asked(self, question: _Question) -> int:
        """Return how many texts the question was asked about, with or without an answer."""
        values_by_system = self.values[question]
        return sum(len(values) for values in values_by_system.values())

    def shown_questions(self) -> list[_Question]:
        """Return the common questions, or those about two items or more if they differ by item."""
        questions = list(self.values)
        if all(self.times_asked(question) == self.texts for question in questions):
            return questions
        # Questions from the data are different for each item: too many for a table.
        return [question for question in questions if len(self.items[question]) > 1]

    def share(self, question: _Question) -> QuestionShare:
        """Return the share of yes to a question by system."""
        shares: dict[str, float] = {}
        number_answered: dict[str, int] = {}
        for system, values in self.values[question].items():
            answered = [value for value in values if value is not None]
            # Without an answer there is no share.
            if answered:
                shares[system] = fmean(answered)
                number_answered[system] = len(answered)
        text, weight = question
        unanswered = self.times_asked(question) - sum(number_answered.values())
        return QuestionShare(text, weight, shares, number_answered, unanswered)


def checklists(table: Table) -> tuple[Checklist, ...]:
    """Return the checklists of a table. A failed text counts with the answers that it has."""
    answers_by_column = defaultdict[str, _AnswersOfColumn](_AnswersOfColumn)
    for row in table.rows():
        answers_by_column[row.column].add(row)
    columns: list[Checklist] = []
    for column in table.columns:
        answers = answers_by_column.get(column.name)
        if answers is None or not answers.values:
            continue
        shown_questions = answers.shown_questions()
        questions = [answers.share(question) for question in shown_questions]
        questions.sort(key=lambda question: question.lowest)
        not_shown = len(answers.values) - len(shown_questions)
        columns.append(Checklist(column.name, tuple(questions), not_shown))
    return tuple(columns)
