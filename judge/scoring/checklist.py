"""Checklists: ask the questions of a criterion, and combine the answers about a text into one score.

Each question is asked by a criterion of its own, a part, whose scale is yes (1) and no (0). The parts of a checklist
share one request, or have one each (`Criterion.ask`). Their rows never leave this module's `collect`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import fsum

from judge.core.format import plural
from judge.core.records import (
    ChecklistAnswer,
    ChecklistQuestion,
    Criterion,
    Failure,
    Provenance,
    Sample,
    Score,
)
from judge.criteria.checklist import (
    MOST_QUESTIONS,
    has_questions,
    part_name,
    questions_of,
)

METHOD = "checklist"
UNANSWERED = "UnansweredQuestions"
"""The error of a text with questions that have no answer."""
Row = Score | Failure


def parts(criterion: Criterion) -> list[Criterion]:
    """Return the parts of a checklist, as many as a text may have questions; of any other criterion, itself alone."""
    if not criterion.is_checklist:
        return [criterion]
    count = MOST_QUESTIONS if criterion.questions_column else len(criterion.questions)
    return [
        replace(criterion, name=part_name(criterion.name, n), part=n) for n in range(1, count + 1)
    ]


def whole(part: Criterion) -> Criterion:
    """Return the checklist that a part belongs to; any other criterion as it is."""
    return (
        part
        if not part.part
        else replace(part, name=part.name.removesuffix(part_name("", part.part)), part=0)
    )


def collect(
    asked: Iterable[tuple[Criterion, Sample]], suffix: str, emit: Callable[[Row], None]
) -> Callable[[Row], None]:
    """Return a function that takes rows, and emits one for each checklist and text once all its parts have theirs.

    `asked` are the parts (and other criteria, whose rows pass) with their samples; `suffix` ends the columns' names.
    """
    columns: dict[str, tuple[str, int]] = {}
    waiting: dict[tuple[str, str, str], tuple[tuple[ChecklistQuestion, ...], dict[int, Row]]] = {}
    for part, sample in asked:
        if part.part:
            column = whole(part).name + suffix
            columns[part.name + suffix] = column, part.part
            key = sample.item, sample.system, column
            if key not in waiting and has_questions(part, sample):
                waiting[key] = questions_of(part, sample), {}

    def take(row: Row) -> None:
        """Emit a row, or keep the answer to a question until all answers about its text are here."""
        if row.column not in columns:
            emit(row)
            return
        column, number = columns[row.column]
        key = row.item, row.system, column
        if key not in waiting:  # the failure of a text without questions
            emit(replace(row, column=column))
            return
        questions, rows = waiting[key]
        rows[number] = row
        if len(rows) == len(questions):
            del waiting[key]
            emit(combine(column, questions, [rows[n] for n in sorted(rows)]))

    return take if columns else emit


def combine(column: str, questions: Sequence[ChecklistQuestion], rows: Sequence[Row]) -> Row:
    """Return one row of the rows about a text: Σ w·p / Σ w over its questions, p the probability of yes.

    `low` and `high` bound the value whatever the probability that was not seen; None if no answer has probabilities.
    A question without an answer makes it a failure, which keeps the answers.
    """
    first = rows[0]
    answers = tuple(
        ChecklistAnswer(question.text, question.weight, row.value, row.provenance)
        if isinstance(row, Score)
        else ChecklistAnswer(
            question.text,
            question.weight,
            None,
            Provenance(
                row.method or "", n=0, raw=row.raw or None, note=row.message, reading=row.reading
            ),
            row.error,
        )
        for question, row in zip(questions, rows, strict=True)
    )
    failed = [(number, row) for number, row in enumerate(rows, 1) if isinstance(row, Failure)]
    if failed:
        # An error of the request is the cause of all that is missing; else each reply is a case of its own.
        cause = next((row for _, row in failed if row.stage != "parse"), None)
        error, stage = (cause.error, cause.stage) if cause else (UNANSWERED, "parse")
        listed = "; ".join(
            f"{number} ({questions[number - 1].text}): {row.message}" for number, row in failed
        )
        message = f"no answer to {len(failed)} of {plural(len(questions), 'question')}: {listed}"
        return Failure(first.item, first.system, column, stage, error, message, answers=answers)
    total = fsum(answer.weight for answer in answers)

    def share(values: Iterable[float]) -> float:
        return fsum(a.weight * value for a, value in zip(answers, values, strict=True)) / total

    values = [row.value for row in rows if isinstance(row, Score)]
    low = high = None
    if any(a.provenance.low is not None for a in answers):
        ends = [(a.provenance.low, a.provenance.high) for a in answers]
        low, high = (
            share(v if end is None else end for v, end in zip(values, side, strict=True))
            for side in zip(*ends, strict=True)
        )
    provenance = Provenance(METHOD, low=low, high=high, n=len(answers), answers=answers)
    return Score(first.item, first.system, column, share(values), provenance)


def split(row: Row) -> list[Row]:
    """Return the rows of the parts that `combine` made this row of, in its column; any other row alone."""
    source = row.provenance if isinstance(row, Score) else row
    if not source.answers:
        return [row]
    stage = row.stage if isinstance(row, Failure) else ""
    rows: list[Row] = []
    for answer in source.answers:
        p = answer.provenance
        if answer.value is not None:
            rows.append(Score(row.item, row.system, row.column, answer.value, p))
        else:
            rows.append(
                Failure(row.item, row.system, row.column, "parse" if p.method else stage, answer.error, p.note or "",
                    p.raw or "", method=p.method or None, reading=p.reading)
            )  # fmt: skip
    return rows
