"""The YAML header of a criterion's file."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from judge.core import yaml_lines
from judge.core.errors import CriterionError
from judge.core.label_spellings import fold
from judge.core.plugins import unknown
from judge.core.records import ReplyKind, Scale

MAX_LABELS = 1_000
_HEADER = re.compile(r"\A---[ \t]*\n(?P<yaml>.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_SCALES = "[1, 5], {min: 0, max: 100, step: 10} or {labels: [fail, pass], values: [0, 1]}"


def body(text: str) -> str:
    """A template without its header, if it has one, every line where it was in the file."""
    found = _HEADER.match(text)
    return "\n" * found[0].count("\n") + text[found.end() :] if found else text


def head(text: str) -> str:
    """A text's header from its first `---` up to the line that closes it; "" where there is none."""
    found = _HEADER.match(text)
    return text[: found.end("yaml")] if found else ""


def _scale(raw: Any) -> Scale:
    if isinstance(raw, list) and len(raw) == 2:
        return _number_scale(raw[0], raw[1], 1)
    if isinstance(raw, dict) and raw.keys() == {"labels", "values"}:
        return _label_scale(raw["labels"], raw["values"])
    if isinstance(raw, dict) and {"min", "max"} <= raw.keys() <= {"min", "max", "step"}:
        return _number_scale(raw["min"], raw["max"], raw.get("step", 1))
    raise ValueError(f"{raw!r} is not a scale; write {_SCALES}")


def _number_scale(low: Any, high: Any, step: Any) -> Scale:
    if not all(type(n) is int for n in (low, high, step)):
        raise ValueError(f"a scale runs between whole numbers; write {_SCALES}")
    if low >= high:
        raise ValueError(f"{low} is not below {high}; the lowest score comes first")
    if step < 1 or (high - low) % step:
        raise ValueError(f"steps of {step} do not lead from {low} to {high}; a step divides {high - low}")
    if (count := (high - low) // step + 1) > MAX_LABELS:
        raise ValueError(f"{count:,} labels are too many; at most {MAX_LABELS:,}")
    return Scale.integers(low, high, step)


def _label_scale(labels: Any, values: Any) -> Scale:
    if not isinstance(labels, list) or not all(type(label) in (str, int) for label in labels):
        raise ValueError(
            "labels is a list of words; put yes, no, on and off in quotes, YAML takes them for true and false"
        )
    if not isinstance(values, list) or not all(type(v) in (int, float) and math.isfinite(v) for v in values):
        raise ValueError("values is a list of numbers, one for each label")
    if len(labels) != len(values):
        raise ValueError(f"{len(labels)} labels, but {len(values)} values; each label has one value")
    texts = [str(label).strip() for label in labels]
    folded = [fold(text).casefold().strip() for text in texts]
    for position, text in enumerate(folded):
        if (first := folded.index(text)) < position:
            raise ValueError(f"the labels {texts[first]!r} and {texts[position]!r} would be read as the same answer")
    if len(texts) < 2 or len(set(values)) < 2:
        raise ValueError("a scale has at least two labels, and not all of one value")
    if len(texts) > MAX_LABELS or any(len(text.splitlines()) != 1 for text in folded):
        raise ValueError(f"a label is one line of text, and a scale has at most {MAX_LABELS:,}")
    return Scale(tuple(texts), tuple(float(value) for value in values))


class Header(BaseModel):
    """What a header may say."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)

    title: str = ""
    description: str = ""
    scale: Annotated[Scale, PlainValidator(_scale)]
    reply: ReplyKind = "score"
    weight: float = Field(1.0, gt=0, allow_inf_nan=False)
    version: int = Field(1, ge=1)
    steps: list[str] = []


def read_header(label: str, text: str) -> Header:
    """The header of a criterion's text. Raises CriterionError with `label:line` for whatever is wrong in it."""
    found = _HEADER.match(text)
    if found is None and text.startswith("---"):
        raise CriterionError(f"{label}:1: the header that starts here is not closed; end it with a line ---")
    if found is None:
        raise CriterionError(f"{label}:1: no header; start the file with the lines ---, scale: [1, 5] and ---")
    # With its first line, which YAML knows as the start of a document, lines count as in the file.
    lines, data = _yaml(label, text[: found.end("yaml")])
    try:
        return Header.model_validate(data)
    except ValidationError as error:
        raise _bad_key(label, lines, error) from error


def _yaml(label: str, head: str) -> tuple[dict[str, int], dict[str, Any]]:
    """The lines of the keys, and their values."""
    try:
        found = yaml_lines.keys(head)
    except yaml_lines.Twice as error:
        raise CriterionError(f"{label}:{error.line}: {error}") from error
    except yaml_lines.Malformed as error:
        raise CriterionError(f"{label}:{error.line or 1}: the header is {error}") from error
    if found is None:
        raise CriterionError(f"{label}:1: the header is not made of lines `key: value`; write at least scale: [1, 5]")
    return found.lines, {str(key): value for key, value in found.values.items()}


def _bad_key(label: str, lines: dict[str, int], error: ValidationError) -> CriterionError:
    """The first complaint about a header, as a person would say it."""
    first = error.errors()[0]
    key = str(first["loc"][0])
    at = f"{label}:{lines.get(key, 1)}"
    if first["type"] == "extra_forbidden":
        return CriterionError(f"{at}: {unknown('key', key, list(Header.model_fields))}")
    if first["type"] == "missing":
        return CriterionError(f"{at}: the header has no {key}; write {key}: followed by {_SCALES}")
    if first["type"] == "value_error":
        return CriterionError(f"{at}: {key}: {first['ctx']['error']}")
    hint = "; put text that holds a colon in quotes" if isinstance(first["input"], dict) else ""
    return CriterionError(f"{at}: {key}: {first['msg']}, not {first['input']!r}{hint}")
