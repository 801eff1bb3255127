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
_FORMS = (
    'write {text: "Is it polite?", weight: 2}, or the text alone, in quotes if it holds a colon'
)


def yes_no(language: str) -> Scale:
    """Return the scale of an answer: yes (1) and no (0) in a language."""
    return Scale(LANGUAGES.get(language, LANGUAGES[DEFAULT_LANGUAGE]).yes_no, (1.0, 0.0))


def part_name(name: str, number: int) -> str:
    """Return the name of the criterion that asks one question of a checklist: its key in a reply."""
    return f"{name}.{number}"


def read_questions(raw: Any) -> tuple[ChecklistQuestion, ...]:
    """Return the questions of a list of texts or mappings with `text` and `weight`. Raises ValueError."""
    if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Sequence) or not raw:
        raise ValueError("a checklist is a list of at least one question")
    if len(raw) > MOST_QUESTIONS:
        raise ValueError(f"{len(raw)} questions are too many; at most {MOST_QUESTIONS}")
    questions = [_question(number, entry) for number, entry in enumerate(raw, 1)]
    texts = [question.text.casefold() for question in questions]
    for number, text in enumerate(texts, 1):
        if (first := texts.index(text) + 1) < number:
            raise ValueError(
                f"questions {first} and {number} are the same: {questions[number - 1].text!r:.80}"
            )
    return tuple(questions)


def _question(number: int, entry: Any) -> ChecklistQuestion:
    text, weight = entry, 1.0
    if isinstance(entry, ChecklistQuestion):
        text, weight = entry.text, entry.weight
    elif isinstance(entry, Mapping) and "text" in entry and entry.keys() <= {"text", "weight"}:
        text, weight = entry["text"], entry.get("weight", 1.0)
    if not isinstance(text, str):
        raise ValueError(f"question {number} is {entry!r:.80}; {_FORMS}")
    if not text.strip():
        raise ValueError(f"question {number} is empty")
    if type(weight) not in (int, float) or not 0 < weight < math.inf:
        raise ValueError(f"question {number}: the weight is a number above 0, not {weight!r:.40}")
    return ChecklistQuestion(" ".join(text.split()), float(weight))


def has_questions(criterion: Criterion, sample: Sample) -> bool:
    """Return whether a checklist has anything to ask about a text; without its own questions, a text fails."""
    column = criterion.questions_column
    return not column or not is_empty(sample.extra.get(column))


def questions_of(criterion: Criterion, sample: Sample) -> tuple[ChecklistQuestion, ...]:
    """Return the questions that a checklist asks about a text.

    A column has a list of them, or in CSV a JSON list or one question per line. Raises DataError for what it has else.
    """
    if not criterion.questions_column:
        return criterion.questions
    raw = sample.extra.get(criterion.questions_column)
    try:
        if isinstance(raw, str):
            lines = [line for line in raw.split("\n") if line.strip()]
            raw = packed_value(raw) if raw.lstrip().startswith("[") else lines
        return read_questions(raw)
    except ValueError as error:
        place = f"{sample.where}: " if sample.where else ""
        raise DataError(
            f"{place}{text_name(sample.item, sample.system)}, column {criterion.questions_column!r}: {error}"
        ) from error
