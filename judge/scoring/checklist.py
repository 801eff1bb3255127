"""Checklists: ask the questions of a criterion and combine the answers about a text into one score.

Each question is asked by a criterion of its own, a part, whose scale is yes (1) and no (0). The
parts of a checklist share one request or have one each (`Criterion.ask`). `collect` combines their
rows before anything else sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
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
    """Return the parts of a checklist, or any other criterion alone.

    A checklist with a column of questions has as many parts as a text may have questions.
    """
    if not criterion.is_checklist:
        return [criterion]
    count = MOST_QUESTIONS if criterion.questions_column else len(criterion.questions)
    parts: list[Criterion] = []
    for number in range(1, count + 1):
        name = part_name(criterion.name, number)
        parts.append(replace(criterion, name=name, part=number))
    return parts


def whole(part: Criterion) -> Criterion:
    """Return the checklist that a part belongs to, or any other criterion unchanged."""
    if not part.part:
        return part
    suffix = part_name("", part.part)
    return replace(part, name=part.name.removesuffix(suffix), part=0)


@dataclass(frozen=True, slots=True)
class _OpenChecklist:
    """A text whose questions are not all answered yet; `rows` are by the question's number."""

    questions: tuple[ChecklistQuestion, ...]
    rows: dict[int, Row] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return len(self.rows) == len(self.questions)

    def rows_in_order(self) -> list[Row]:
        return [self.rows[number] for number in sorted(self.rows)]


def collect(
    judged: Iterable[tuple[Criterion, Sample]],
    suffix: str,
    emit: Callable[[Row], None],
) -> Callable[[Row], None]:
    """Return a function that takes rows and emits one row per checklist and text.

    It emits that row as soon as all parts have theirs. `judged` are the criteria with their
    samples; rows of criteria that are no parts pass unchanged. `suffix` ends the names of the
    columns.
    """
    # The column of the checklist and the number of the question, by the column of the part.
    question_by_column: dict[str, tuple[str, int]] = {}
    open_checklists: dict[tuple[str, str, str], _OpenChecklist] = {}
    for part, sample in judged:
        if not part.part:
            continue
        column = whole(part).name + suffix
        question_by_column[part.name + suffix] = (column, part.part)
        text_key = (sample.item, sample.system, column)
        if text_key not in open_checklists and has_questions(part, sample):
            open_checklists[text_key] = _OpenChecklist(questions_of(part, sample))

    def take(row: Row) -> None:
        """Emit a row, or keep the answer to a question until the text has all its answers."""
        if row.column not in question_by_column:
            emit(row)
            return
        column, number = question_by_column[row.column]
        text_key = (row.item, row.system, column)
        if text_key not in open_checklists:
            # The text has no questions. Its only row is the failure that says so.
            emit(replace(row, column=column))
            return
        checklist = open_checklists[text_key]
        checklist.rows[number] = row
        if checklist.is_complete:
            del open_checklists[text_key]
            emit(combine(column, checklist.questions, checklist.rows_in_order()))

    return take if question_by_column else emit


def combine(
    column: str, questions: Sequence[ChecklistQuestion], rows: Sequence[Row]
) -> Row:
    """Combine the rows about a text into one: Σ w·p / Σ w, with p the probability of yes.

    `low` and `high` bound the value for any assignment of the probability that was not seen. They
    are None if no answer has probabilities. If a question has no answer, the result is a failure
    that keeps the other answers.
    """
    answers: list[ChecklistAnswer] = []
    unanswered: list[tuple[int, Failure]] = []
    scores: list[Score] = []
    for number, (question, row) in enumerate(zip(questions, rows, strict=True), 1):
        answers.append(_answer(question, row))
        if isinstance(row, Failure):
            unanswered.append((number, row))
        else:
            scores.append(row)
    first = rows[0]
    if unanswered:
        failure = _failure(first, questions, unanswered)
        return replace(failure, column=column, answers=tuple(answers))
    weights = [answer.weight for answer in answers]
    value = _weighted_mean([score.value for score in scores], weights)
    low: float | None = None
    high: float | None = None
    if any(score.provenance.low is not None for score in scores):
        low = _weighted_mean([_lower_bound(score) for score in scores], weights)
        high = _weighted_mean([_upper_bound(score) for score in scores], weights)
    provenance = Provenance(
        METHOD,
        low=low,
        high=high,
        n=len(answers),
        answers=tuple(answers),
    )
    return Score(
        item=first.item,
        system=first.system,
        column=column,
        value=value,
        provenance=provenance,
    )


def _lower_bound(score: Score) -> float:
    """Return the lower bound of an answer; a plain yes or no is its own."""
    low = score.provenance.low
    return score.value if low is None else low


def _upper_bound(score: Score) -> float:
    """Return the upper bound of an answer; a plain yes or no is its own."""
    high = score.provenance.high
    return score.value if high is None else high


def _weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    products = [weight * value for value, weight in zip(values, weights, strict=True)]
    return fsum(products) / fsum(weights)


def _answer(question: ChecklistQuestion, row: Row) -> ChecklistAnswer:
    """Return what a part's row says about its question; `split` reads it back."""
    if isinstance(row, Score):
        return ChecklistAnswer(
            question.text, question.weight, row.value, row.provenance
        )
    provenance = Provenance(
        row.method or "",
        n=0,
        raw=row.raw or None,
        note=row.message,
        reading=row.reading,
    )
    return ChecklistAnswer(question.text, question.weight, None, provenance, row.error)


def _failure(
    row: Row,
    questions: Sequence[ChecklistQuestion],
    unanswered: Sequence[tuple[int, Failure]],
) -> Failure:
    """Return the failure of the text of `row`, given the numbers and rows without an answer."""
    error = UNANSWERED
    stage = "parse"
    # A failed request is the cause of everything that is missing. Without one, each reply failed
    # for a reason of its own, and no single error names them all.
    for _, failure in unanswered:
        if failure.stage != "parse":
            error = failure.error
            stage = failure.stage
            break
    details: list[str] = []
    for number, failure in unanswered:
        question = questions[number - 1]
        details.append(f"{number} ({question.text}): {failure.message}")
    total = plural(len(questions), "question")
    listed = "; ".join(details)
    message = f"no answer to {len(unanswered)} of {total}: {listed}"
    return Failure(
        item=row.item,
        system=row.system,
        column=row.column,
        stage=stage,
        error=error,
        message=message,
    )


def split(row: Row) -> list[Row]:
    """Return the rows that `combine` made this row from, in its column; any other row alone."""
    source = row.provenance if isinstance(row, Score) else row
    if not source.answers:
        return [row]
    stage = row.stage if isinstance(row, Failure) else ""
    rows: list[Row] = []
    for answer in source.answers:
        provenance = answer.provenance
        if answer.value is not None:
            score = Score(
                item=row.item,
                system=row.system,
                column=row.column,
                value=answer.value,
                provenance=provenance,
            )
            rows.append(score)
            continue
        # Only a reply has a method. Without one, the request failed, at the stage of the text.
        failed_stage = "parse" if provenance.method else stage
        failure = Failure(
            row.item,
            row.system,
            row.column,
            stage=failed_stage,
            error=answer.error,
            message=provenance.note or "",
            raw=provenance.raw or "",
            method=provenance.method or None,
            reading=provenance.reading,
        )
        rows.append(failure)
    return rows
