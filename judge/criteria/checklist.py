"""The questions of a checklist: read from a header or from a text's column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from judge.core.errors import DataError
from judge.core.format import text_name
from judge.core.records import ChecklistQuestion, Criterion, Sample, Scale
from judge.data.cells import packed_value
from judge.data.rows import is_empty
from judge.text import DEFAULT_LANGUAGE, LANGUAGES

MOST_QUESTIONS = 50
_EXPECTED = (
    'write {text: "Is it polite?", weight: 2}, or the text alone, in quotes if it holds '
    "a colon"
)


def yes_no(language: str) -> Scale:
    """Return the scale of an answer: yes (1) and no (0) in a language."""
    row = LANGUAGES.get(language, LANGUAGES[DEFAULT_LANGUAGE])
    return Scale(row.yes_no, (1.0, 0.0))


def part_name(criterion_name: str, number: int) -> str:
    """Return the name of one question of a checklist, which is its key in a reply."""
    return f"{criterion_name}.{number}"


def read_questions(raw: Any) -> tuple[ChecklistQuestion, ...]:
    """Return the questions of a list of texts or of mappings with `text` and `weight`.

    Raises ValueError.
    """
    is_list = isinstance(raw, Sequence) and not isinstance(raw, str | bytes)
    if not is_list or not raw:
        raise ValueError("a checklist is a list of at least one question")
    if len(raw) > MOST_QUESTIONS:
        raise ValueError(f"{len(raw)} questions are too many; at most {MOST_QUESTIONS}")
    questions = [_question(number, entry) for number, entry in enumerate(raw, 1)]
    texts = [question.text.casefold() for question in questions]
    for number, text in enumerate(texts, 1):
        first_number = texts.index(text) + 1
        if first_number < number:
            question = questions[number - 1]
            raise ValueError(
                f"questions {first_number} and {number} are the same: {question.text!r:.80}"
            )
    return tuple(questions)


def _question(number: int, entry: Any) -> ChecklistQuestion:
    text = entry
    weight = 1.0
    if isinstance(entry, ChecklistQuestion):
        text = entry.text
        weight = entry.weight
    elif isinstance(entry, Mapping) and {"text"} <= entry.keys() <= {"text", "weight"}:
        text = entry["text"]
        weight = entry.get("weight", 1.0)
    if not isinstance(text, str):
        raise ValueError(f"question {number} is {entry!r:.80}; {_EXPECTED}")
    if not text.strip():
        raise ValueError(f"question {number} is empty")
    # bool is an int in Python, but `weight: true` is a mistake.
    if type(weight) not in (int, float) or not 0 < weight < math.inf:
        problem = f"the weight is a number above 0, not {weight!r:.40}"
        raise ValueError(f"question {number}: {problem}")
    return ChecklistQuestion(" ".join(text.split()), float(weight))


def has_questions(criterion: Criterion, sample: Sample) -> bool:
    """Return whether a checklist has questions about a text.

    If the questions are in a column, a text without them fails.
    """
    column = criterion.questions_column
    return not column or not is_empty(sample.extra.get(column))


def questions_of(criterion: Criterion, sample: Sample) -> tuple[ChecklistQuestion, ...]:
    """Return the questions that a checklist asks about a text.

    A column has a list of them, or in CSV a JSON list or one question per line. Raises DataError
    for anything else.
    """
    if not criterion.questions_column:
        return criterion.questions
    raw = sample.extra.get(criterion.questions_column)
    try:
        if isinstance(raw, str) and raw.lstrip().startswith("["):
            raw = packed_value(raw)
        elif isinstance(raw, str):
            raw = [line for line in raw.split("\n") if line.strip()]
        return read_questions(raw)
    except ValueError as error:
        location = f"{sample.where}: " if sample.where else ""
        text = text_name(sample.item, sample.system)
        raise DataError(
            f"{location}{text}, column {criterion.questions_column!r}: {error}"
        ) from error
