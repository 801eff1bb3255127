"""What readers of result files return, and the rows that a run makes of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from judge.core.errors import DataError
from judge.core.format import first_names
from judge.core.messages import Remark, option
from judge.core.option_values import finite_number
from judge.core.records import Better
from judge.data.rows import RawRow, is_missing

Value = bool | float | None
"""A verdict, a score, or None for a judgment that failed."""
PREFERENCE = "preference"
"""The criterion of pairs."""
_MOST_NAMED = 5  # in a message


@dataclass(slots=True)
class JudgedText:
    """A text with a tool's scores and reasons.

    A score that is None is a judgment that failed. If the tool marks the text itself as failed,
    `error` says why, and missing scores failed with it; otherwise they were not requested. `system`
    is "" if the file names none. `own_columns` are further columns.
    """

    where: str
    item: str | int
    system: str = ""
    source: str = ""
    output: str = ""
    references: tuple[str, ...] = ()
    scores: dict[str, Value] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    generation: int | None = None
    error: str = ""
    own_columns: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class JudgedPair:
    """Two systems and what a tool preferred: 1 is the first, 0 the second, None a failure."""

    where: str
    item: str
    first: str
    second: str
    result: float | None
    own_columns: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResultFile:
    """The rows of a tool's result files.

    `criteria` are those that were judged on every text, in their order. `further` are those that
    only some texts have.
    """

    tool: str
    rows: list[RawRow]
    criteria: Mapping[str, Better]
    further: Mapping[str, Better] = field(default_factory=dict)
    are_pairs: bool = False

    def notes(self) -> list[str]:
        """Return what the run says about the file."""
        notes: list[str] = [Remark(f"Read as a result file of {self.tool}.")]
        if self.further:
            names = first_names(self.further, _MOST_NAMED)
            example = option("judge_columns", "NAME")
            notes.append(
                f"Judged on some texts only, and not read as scores: {names} ({example} reads one)."
            )
        return notes


def score(value: Any, location: str, criterion: str) -> Value:
    """Return a score or a verdict, None if there is none. Raises DataError for anything else."""
    if is_missing(value, flat=True):
        return None
    if isinstance(value, bool):
        return value
    number = finite_number(value)
    if number is None:
        raise DataError(
            f"{location}: {criterion} is {value!r:.60}, neither a number nor a verdict"
        )
    return number


def member(value: Any, key: str, location: str, expected_type: type[Any]) -> Any:
    """Return what an object has under a key. Raises DataError if it is not of this kind."""
    content = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(content, expected_type):
        expected = "a text"
        if expected_type is dict:
            expected = "an object"
        elif expected_type is list:
            expected = "a list"
        raise DataError(f"{location}: {key} is {content!r:.40}, not {expected}")
    return content


def as_text(value: Any) -> str:
    """Return a text, or what stands for it: messages, parts of a message, any JSON value."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, Mapping) for part in value):
        with_role = len(value) > 1
        return "\n\n".join(_message(part, with_role=with_role) for part in value)
    if isinstance(value, Mapping) and isinstance(value.get("content"), str | list):
        return as_text(value["content"])
    return str(value)


def _message(message: Mapping[str, Any], *, with_role: bool) -> str:
    """Return a message, or a part of a message, as text."""
    if "content" in message:
        text = as_text(message["content"])
        role = message.get("role", "")
        return f"{role}: {text}" if with_role else text
    if isinstance(message.get("text"), str):
        return str(message["text"])
    part_type = message.get("type", "part")
    return f"[{part_type}]"


def rows_of_texts(
    tool: str,
    name: str,
    texts: Sequence[JudgedText],
    lower_is_better: Collection[str],
) -> ResultFile:
    """Return one row per text. Raises DataError, with the file's `name`, if there is no score."""
    criterion_names = dict.fromkeys(chain.from_iterable(text.scores for text in texts))
    if not criterion_names:
        location = texts[0].where if texts else name
        reason = ""
        if texts and texts[0].error:
            reason = f" (error: {texts[0].error:.200})"
        raise DataError(
            f"{location}: read as a result file of {tool}, which has no score{reason}"
        )
    column_by_criterion = {name: _column_name(name, texts) for name in criterion_names}
    criteria: dict[str, Better] = {}
    further: dict[str, Better] = {}
    for criterion in criterion_names:
        # The scores that a failed text lacks failed with it.
        is_everywhere = all(text.error or criterion in text.scores for text in texts)
        group = criteria if is_everywhere else further
        group[criterion] = "lower" if criterion in lower_is_better else "higher"
    rows: list[RawRow] = []
    for text in texts:
        cells = dict(_cells(text, column_by_criterion))
        rows.append(RawRow(text.where, cells))
    return ResultFile(tool, rows, criteria, further)


def _column_name(criterion: str, texts: Sequence[JudgedText]) -> str:
    """Return the name of a criterion's column, with its scale if all scores are from 0 to 1."""
    values = [text.scores.get(criterion) for text in texts]
    known_values = [value for value in values if value is not None]
    # A verdict has a scale of its own.
    numbers = [value for value in known_values if not isinstance(value, bool)]
    is_from_0_to_1 = bool(numbers) and all(0 <= number <= 1 for number in numbers)
    return f"{criterion} (0-1)" if is_from_0_to_1 else criterion


def _cells(
    text: JudgedText, column_by_criterion: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    """Yield the cells of a text's row. Our own columns replace others of the same name."""
    yield from text.own_columns.items()
    if text.error:
        yield "error", text.error
    for criterion, reason in text.reasons.items():
        if reason:
            yield f"{criterion}.reason", reason
    yield "item", text.item
    if text.system:
        yield "system", text.system
    if text.source:
        yield "source", text.source
    yield "output", text.output
    if text.references:
        yield "references", list(text.references)
    if text.generation is not None:
        yield "generation", text.generation
    for criterion, column in column_by_criterion.items():
        yield column, text.scores.get(criterion)


def rows_of_pairs(tool: str, pairs: Sequence[JudgedPair]) -> ResultFile:
    """Return one row per pair."""
    rows = []
    for pair in pairs:
        cells = {
            **pair.own_columns,
            "item": pair.item,
            "first": pair.first,
            "second": pair.second,
            PREFERENCE: pair.result,
        }
        rows.append(RawRow(pair.where, cells))
    return ResultFile(tool, rows, {PREFERENCE: "higher"}, are_pairs=True)
