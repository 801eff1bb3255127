"""Read a criterion's YAML header: its scale, its levels and its other keys."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import Annotated, Any, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from judge.core import yaml_lines
from judge.core.errors import CriterionError
from judge.core.invalid_values import first_invalid_value
from judge.core.label_spellings import fold, format_decimal, label_index
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import (
    ALIASES,
    MAX_LABELS,
    Ask,
    Better,
    ChecklistQuestion,
    Ignored,
    Judged,
    ReplyKind,
    Scale,
)
from judge.core.verdicts import is_pass_mark, verdict
from judge.criteria.checklist import read_questions, yes_no
from judge.text import DEFAULT_LANGUAGE

MAX_EXAMPLES = 20
N_PARAPHRASES = 3
LONGEST_PARAPHRASE = 2_000
"""In characters."""
_TEMPLATE_SYNTAX = ("{{", "{%", "{#", "}}", "%}", "#}")
# "{{ output }}", "{{source | trim}}"
_SHOWN_INPUT = re.compile(
    r"\{\{-?\s*(?:output|source|references?|messages|first|second)\b"
)
# Control characters but the line feed, and Unicode's line and paragraph separators.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_LARGEST_VALUE = 1_000_000_000
# A header between two lines "---" at the start of a text.
_HEADER = re.compile(r"\A---[ \t]*\n(?P<yaml>.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
# "1-3", "0.5 – 1", "-2 ~ 2"
_RANGE = re.compile(r"([-+]?[0-9][0-9.]*)\s*[-–~]\s*([-+]?[0-9][0-9.]*)")
# "3", "-2", "4.0"
_WHOLE_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.0+)?")
# Labels of a scale that a message lists.
_MOST_LISTED_LABELS = 12
_SCALES = (
    "[1, 5], {min: 0, max: 100, step: 10} or {labels: [fail, pass], values: [0, 1]}"
)


def template_body(text: str) -> str:
    """Return a template without its header. Every line keeps its number in the file."""
    match = _HEADER.match(text)
    if match is None:
        return text
    blank_lines = "\n" * match[0].count("\n")
    return blank_lines + text[match.end() :]


def front_matter(text: str) -> str:
    """Return a text's header, from its first `---` up to the line that closes it, else ""."""
    match = _HEADER.match(text)
    return text[: match.end("yaml")] if match else ""


def read_scale(raw: Any) -> Scale:
    """Return the scale in a header. Raises ValueError."""
    if isinstance(raw, Scale):
        return _checked_scale(raw)
    if isinstance(raw, list | tuple) and len(raw) == 2:
        return _number_scale(raw[0], raw[1], 1)
    if isinstance(raw, dict) and raw.keys() == {"labels", "values"}:
        return _label_scale(raw["labels"], raw["values"])
    if isinstance(raw, dict) and {"min", "max"} <= raw.keys() <= {"min", "max", "step"}:
        return _number_scale(raw["min"], raw["max"], raw.get("step", 1))
    labels = raw.get("labels") if isinstance(raw, dict) else None
    if isinstance(labels, list) and any(isinstance(label, bool) for label in labels):
        raise ValueError(
            "YAML reads yes and no without quotes as true and false; quote them, and give each "
            'label its value: {labels: ["no", "yes"], values: [0, 1]}'
        )
    raise ValueError(f"{raw!r:.100} is not a scale; write {_SCALES}")


def _checked_scale(scale: Scale) -> Scale:
    """Return a scale that a program made, if it could be in a header. Raises ValueError."""
    labels = list(scale.labels) if isinstance(scale.labels, tuple) else scale.labels
    values = list(scale.values) if isinstance(scale.values, tuple) else scale.values
    return replace(_label_scale(labels, values), halves=scale.halves)


def _label_scale(labels: Any, values: Any) -> Scale:
    """Return the scale of these labels. Raises ValueError."""
    has_list = isinstance(labels, list)
    if not has_list or any(type(label) not in (str, int) for label in labels):
        raise ValueError(
            "labels is a list of words; put yes, no, on and off in quotes, "
            "because YAML reads them as true and false"
        )
    if len(labels) > MAX_LABELS:
        raise ValueError(f"{len(labels):,} labels are too many; at most {MAX_LABELS:,}")
    if not isinstance(values, list) or not all(map(_is_value, values)):
        raise ValueError(
            f"values is a list of numbers up to {_LARGEST_VALUE:,}, one for each label"
        )
    if len(labels) != len(values):
        raise ValueError(
            f"{len(labels)} labels, but {len(values)} values; each label has one value"
        )
    texts = tuple(str(label).strip() for label in labels)
    # A reply is compared with the labels in this form.
    folded = [fold(text).casefold().strip() for text in texts]
    for position, text in enumerate(folded):
        first_position = folded.index(text)
        if first_position < position:
            raise ValueError(
                f"the labels {texts[first_position]!r} and {texts[position]!r} would be read as "
                "the same answer"
            )
    if len(texts) < 2 or len(set(values)) < 2:
        raise ValueError(
            "a scale needs at least two labels, and at least two different values"
        )
    if any(len(text.splitlines()) != 1 for text in folded):
        raise ValueError("a label is one line of text")
    numbers = tuple(float(value) for value in values)
    return Scale(texts, numbers)


def _is_value(value: Any) -> bool:
    # bool is an int in Python, but YAML's `yes` is no value.
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and abs(value) <= _LARGEST_VALUE


def _number_scale(*ends_and_step: Any) -> Scale:
    """Return the scale from one number to another in steps. Raises ValueError."""
    for number in ends_and_step:
        if not _is_value(number) or round(number, 3) != number:
            raise ValueError(
                f"a scale runs between numbers up to {_LARGEST_VALUE:,} of at most 3 decimals; "
                f"write {_SCALES}"
            )
    # In decimals, because 0.1 * 3 is not 0.3 in binary.
    lowest, highest, step = (Decimal(str(number)) for number in ends_and_step)
    if lowest >= highest:
        raise ValueError(
            f"{lowest} is not below {highest}; the lowest score comes first"
        )
    if step <= 0 or (highest - lowest) % step:
        raise ValueError(
            f"steps of {step} from {lowest} do not reach {highest}; "
            f"choose a step that divides {highest - lowest}"
        )
    count = int((highest - lowest) / step) + 1
    if count > MAX_LABELS:
        raise ValueError(f"{count:,} labels are too many; at most {MAX_LABELS:,}")
    values = [lowest + index * step for index in range(count)]
    labels = [format_decimal(f"{value:f}") for value in values]
    return Scale(tuple(labels), tuple(map(float, labels)))


def shown_fields(column_names: list[str]) -> list[str]:
    """Return the variables of these columns.

    Raises ValueError for a name that no variable can have, and for the output.
    """
    variables = []
    for column_name in column_names:
        if not column_name.isidentifier() or column_name.startswith("_"):
            # `user's question` becomes `user_s_question`.
            word = re.sub(r"\W+", "_", column_name).strip("_") or "NAME"
            renaming = option("map", {word: column_name})
            raise ValueError(
                f"{column_name!r} is not one word; give its column another name: {renaming}"
            )
        variable = ALIASES.get(column_name, column_name)
        if variable == "output":
            raise ValueError(
                f"{column_name}: the text to judge is always shown; name only other columns"
            )
        variables.append(variable)
    return variables


# The JSON schemas of the keys whose values have functions of their own.
_SCHEMAS: dict[str, dict[str, Any]] = json.loads("""{
"scale": {"anyOf": [
  {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
  {"type": "object", "additionalProperties": false, "required": ["min", "max"],
   "properties": {
    "min": {"type": "number"}, "max": {"type": "number"}, "step": {"type": "number"}}},
  {"type": "object", "additionalProperties": false, "required": ["labels", "values"],
   "properties": {
    "labels": {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 2},
    "values": {"type": "array", "items": {"type": "number"}}}}]},
"levels": {"type": "object", "additionalProperties": {"type": "string"}},
"examples": {"anyOf": [
  {"type": "array", "items": {
    "type": "object", "additionalProperties": false, "required": ["score"],
    "properties": {
     "output": {"type": "string"}, "text": {"type": "string"},
     "score": {"type": ["string", "number"]},
     "reason": {"type": "string"}, "source": {"type": "string"}}}, "maxItems": 20},
  {"type": "string"}]},
"questions": {"anyOf": [
  {"type": "string"},
  {"type": "array", "items": {"anyOf": [
    {"type": "string"},
    {"type": "object", "additionalProperties": false, "required": ["text"],
     "properties": {
      "text": {"type": "string"}, "weight": {"type": "number", "exclusiveMinimum": 0}}}]}}]}
}""")


def _levels(raw: Any) -> dict[str, str]:
    """Return the descriptions in a header, by label or range of numbers."""
    if not isinstance(raw, Mapping):
        raise ValueError(
            "not a mapping; write a line such as 1: Off topic. for each label"
        )
    levels: dict[str, str] = {}
    for key, text in raw.items():
        if isinstance(key, bool):
            raise ValueError(
                "put yes, no, on and off in quotes, because YAML reads them as true and false"
            )
        if not isinstance(text, str) or len(text.strip().splitlines()) != 1:
            raise ValueError(
                f"{key} has {text!r:.60}; describe it in one line of text, or omit it"
            )
        label = fold(str(key)).strip()
        if label in levels:
            raise ValueError(f"{key} is described twice")
        levels[label] = text.strip()
    return levels


def _question(text: str) -> str:
    """Return a question. Raises ValueError for a template, which would be sent unrendered."""
    if _SHOWN_INPUT.search(text):
        raise ValueError(
            "only a template in a .jinja file can show a text; leave the {{ }} out, because the "
            "prompt shows the texts beside the question"
        )
    return text


def _questions(raw: Any) -> tuple[ChecklistQuestion, ...] | str:
    """Return the questions in a header, or the name of their column."""
    if not isinstance(raw, str):
        return read_questions(raw)
    column = raw.strip()
    if not column:
        raise ValueError("names no column")
    return column


def read_paraphrases(texts: list[str]) -> list[str]:
    """Return the other wordings of a question, without white space around them.

    Raises ValueError unless they are three different texts that can stand in a template.
    """
    wordings = [text.strip() for text in texts]
    if wordings and len(wordings) != N_PARAPHRASES:
        raise ValueError(
            f"write {N_PARAPHRASES} wordings of the question, not {len(wordings)}"
        )
    for number, wording in enumerate(wordings, 1):
        if not wording or len(wording) > LONGEST_PARAPHRASE:
            raise ValueError(
                f"wording {number} is empty, or has over {LONGEST_PARAPHRASE:,} characters"
            )
        has_syntax = any(sign in wording for sign in _TEMPLATE_SYNTAX)
        if has_syntax or _CONTROL.search(wording):
            raise ValueError(
                f"wording {number} has template syntax or control characters"
            )
        first_number = wordings.index(wording) + 1
        if first_number < number:
            raise ValueError(f"wordings {first_number} and {number} are the same")
    return wordings


# The type of the errors of keys that do not fit together.
_PROBLEM = "header"


def _problem(key: str, problem: object) -> PydanticCustomError:
    """Return the error of a key that does not fit the others; without a key, of the header."""
    context = {"key": key, "problem": str(problem)}
    return PydanticCustomError(_PROBLEM, "{problem}", context)


class Header(BaseModel):
    """The keys of a criterion's header."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)

    name: str = Field("", description="The file's own name, if it is written here too.")
    title: str = Field("", description="Name in reports (default: the file's).")
    description: str = Field(
        "", description="What the criterion judges, in a sentence."
    )
    scale: Annotated[
        Scale, PlainValidator(read_scale), WithJsonSchema(_SCHEMAS["scale"])
    ] = Field(
        Scale.integers(1, 5), description=f"Scores that a reply may have: {_SCALES}."
    )
    allow_half: bool = Field(
        False, description="Whether a reply may be 4.5 on a scale of whole numbers."
    )
    reply: ReplyKind = Field("score", description="Content of a reply, and its order.")
    weight: float = Field(
        1.0,
        gt=0,
        allow_inf_nan=False,
        description="Weight in the overall score.",
    )
    version: int = Field(
        1, ge=1, description="Raise it when scores are no longer comparable."
    )
    steps: list[str] = Field(
        [],
        description="Evaluation steps for the judge; judge criteria steps drafts them.",
    )
    question: Annotated[str, AfterValidator(_question)] = Field(
        "", description="The criterion in a sentence, or a few."
    )
    show: Annotated[list[str], AfterValidator(shown_fields)] = Field(
        [],
        description=(
            "Columns shown beside the text, such as [references], or [] (default: source, else "
            "request)."
        ),
    )
    levels: Annotated[
        dict[str, str], PlainValidator(_levels), WithJsonSchema(_SCHEMAS["levels"])
    ] = Field(
        {}, description="What a label of the scale means, by label or range of numbers."
    )
    better: Better = Field("higher", description="Better end of the scale.")
    pass_at: float | str | None = Field(
        None,
        description="Worst value that passes, or a label of a scale of words. A scale of fail "
        "and pass has pass.",
    )
    threshold: float | None = Field(
        None,
        description="Instead of pass_at: a share of the scale; 0 is its worse end, 1 its better.",
    )
    examples: Annotated[list[Any] | str, WithJsonSchema(_SCHEMAS["examples"])] = Field(
        [],
        description="Texts with output, score, reason and source, or a file with them.",
    )
    questions: Annotated[
        tuple[ChecklistQuestion, ...] | str,
        PlainValidator(_questions),
        WithJsonSchema(_SCHEMAS["questions"]),
    ] = Field(
        (),
        description=(
            "Questions of a checklist, each text with an optional weight, or the column that has "
            "them."
        ),
    )
    ask: Ask = Field(
        "together",
        description="Whether the questions are sent in one request or in a request each.",
    )
    judged: Judged = Field(
        "output",
        description="Whether the output is judged, or the conversation that it ends.",
    )
    cite: bool = Field(
        False,
        description="Whether the judge quotes the sentence that decided the score.",
    )
    paraphrases: Annotated[list[str], AfterValidator(read_paraphrases)] = Field(
        [], description="Three other wordings of the question, to test the judge with."
    )
    ignores: list[Ignored] = Field(
        [],
        description="What the score must not depend on, to test the judge: [sentence order].",
    )
    seen: list[Annotated[str, Field(pattern="^[0-9a-f]{16}$")]] = Field(
        [],
        description="Digests of texts whose ratings were used; no estimate uses them.",
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        """Check the keys that depend on each other.

        Derives the scale, the labels of the levels, and the pass value.
        """
        keys = {*self.model_fields_set}
        if not keys & {"scale", "question", "questions", "levels", "examples"}:
            raise _problem(
                "", f"the header has no scale; write scale: followed by {_SCALES}"
            )
        self._check_checklist(keys)
        # The key that an error below is about.
        key = "levels"
        try:
            if self.levels and "scale" not in keys:
                self.scale = _scale_of_levels(self.levels)
            key = "allow_half"
            if self.allow_half:
                self.scale = with_halves(self.scale)
            key = "threshold" if self.pass_at is None else "pass_at"
            self.pass_at = self._pass_value()
            key = "levels"
            self.levels = levels_of_scale(self.levels, self.scale.asked)
        except ValueError as error:
            raise _problem(key, error) from error
        return self

    def _check_checklist(self, keys: Collection[str]) -> None:
        """Raise an error for a key that cannot be combined with questions, or that needs them."""
        if not self.questions:
            if "ask" in keys:
                raise _problem("ask", "is for a checklist; write its questions:")
            return
        if "scale" in keys and self.scale.question != "predicate":
            hint = "{labels: [yes, no], values: [1, 0]}, in words of your own"
            raise _problem("scale", f"the answers of a checklist are {hint}")
        if self.reply != "score":
            raise _problem(
                "reply", "the answers of a checklist are yes or no, without a reason"
            )
        for key in ("levels", "allow_half", "examples", "cite", "paraphrases"):
            if getattr(self, key):
                raise _problem(key, "cannot be combined with questions:")
        if self.better == "lower":
            raise _problem(
                "better",
                "a checklist counts yes: write questions whose better answer is yes",
            )

    def _pass_value(self) -> float | None:
        """Return the worst value that passes, None if the header has none.

        Raises ValueError if it is not on the scale.
        """
        # The value of a checklist is a share of its questions, from 0 to 1.
        scale = yes_no(DEFAULT_LANGUAGE) if self.questions else self.scale
        if self.threshold is not None:
            if self.pass_at is not None:
                raise ValueError(
                    "pass_at and threshold both set the pass mark; write one of them"
                )
            return _value_of_share(self.threshold, scale, self.better)
        if self.pass_at is None:
            return _pass_value_of_words(scale, self.better)
        return pass_value(self.pass_at, scale, self.better)


def _pass_value_of_words(scale: Scale, better: Better) -> float | None:
    """Return the worst value that passes on a scale from fail to pass; None for other scales.

    A sentence that ends with `(pass/fail)` has this pass mark, too.
    """
    if len(scale.labels) != 2:
        return None
    labels = sorted(scale.labels, key=scale.value, reverse=better == "lower")
    worse_label, better_label = labels
    if verdict(worse_label) != 0 or not is_pass_mark(better_label):
        return None
    return pass_value(better_label, scale, better)


def pass_value(mark: float | str, scale: Scale, better: Better) -> float:
    """Return the worst value that passes, given as a value or a label of the scale.

    Raises ValueError if it is not on the scale.
    """
    try:
        value = float(mark)
    except ValueError:
        return _pass_value_of_label(str(mark), scale, better)
    if not scale.low <= value <= scale.high:
        hint = f"; threshold: {value:g} is a share of it" if 0 <= value <= 1 else ""
        raise ValueError(
            f"{value:g} is not on the scale from {scale.low:g} to {scale.high:g}{hint}"
        )
    return value


def _value_of_share(share: float, scale: Scale, better: Better) -> float:
    """Return the value at a share of the way from the worse to the better end of the scale."""
    if not 0 <= share <= 1:
        raise ValueError(
            f"{share:g} is not a share of the scale; pass_at: takes a value of the scale"
        )
    share_from_low = 1 - share if better == "lower" else share
    width = scale.high - scale.low
    return round(scale.low + share_from_low * width, 9)


def _pass_value_of_label(label: str, scale: Scale, better: Better) -> float:
    """Return the middle between a label and the next worse one.

    So a text passes if this label, or a better one, is the nearest to its value. Means over
    probabilities rarely reach the label itself
    (docs/decisions/0071-a-label-passes-from-halfway.md).
    """
    if label not in scale.labels:
        message = unknown_name_message("label", label, list(scale.labels))
        raise ValueError(message) from None
    value = scale.value(label)
    if better == "lower":
        worse = [other_value for other_value in scale.values if other_value > value]
        next_worse = min(worse, default=value)
    else:
        worse = [other_value for other_value in scale.values if other_value < value]
        next_worse = max(worse, default=value)
    return (value + next_worse) / 2


def read_header(label: str, text: str) -> Header:
    """Return the header of a criterion's text. Raises CriterionError with `label:line`."""
    match = _HEADER.match(text)
    if match is None and text.startswith("---"):
        raise CriterionError(
            f"{label}:1: the header that starts here is not closed; end it with a line ---"
        )
    if match is None:
        raise CriterionError(
            f"{label}:1: no header; start the file with the lines ---, scale: [1, 5] and ---"
        )
    try:
        # With its first line, which is YAML's start of a document, lines count as in the file.
        parsed = yaml_lines.keys(text[: match.end("yaml")])
    except yaml_lines.Twice as error:
        raise CriterionError(f"{label}:{error.line}: {error}") from error
    except yaml_lines.Malformed as error:
        raise CriterionError(
            f"{label}:{error.line or 1}: the header is {error}"
        ) from error
    if parsed is None:
        # A template has its question below the header.
        least = "scale: [1, 5]"
        if not label.endswith(".jinja"):
            least = "question: and the question to the judge about a text"
        raise CriterionError(
            f"{label}:1: the header is not made of lines `key: value`; write at least {least}"
        )
    keys = {str(key): value for key, value in parsed.values.items()}
    return make_header(label, keys, parsed.lines)


def make_header(
    label: str,
    keys: Mapping[str, Any],
    lines: Mapping[str, int] | None = None,
) -> Header:
    """Return the header with these keys.

    Raises CriterionError, with the key's line if there are `lines`.
    """
    try:
        return Header.model_validate(keys)
    except ValidationError as error:
        problem = first_problem(error, Header)
        location = label
        if lines is not None:
            location = f"{label}:{lines.get(problem.key, 1)}"
        raise CriterionError(f"{location}: {problem.text}") from error


class KeyProblem(NamedTuple):
    """What is wrong with a key, in a text that names the key."""

    key: str
    text: str


# Keys that people write into the wrong file.
_OTHER_FILES = {
    "cases": "a suite (judge test FILE)",
    "criteria": "a run (judge run FILE)",
    "data": "a run (judge run FILE)",
    "model": "a run (judge run FILE)",
}


def first_problem(error: ValidationError, model: type[BaseModel]) -> KeyProblem:
    """Return the first problem of a validation, in words for the user."""
    invalid_value = first_invalid_value(error)
    key = str(invalid_value.path[0]) if invalid_value.path else ""
    problem = invalid_value.problem
    if invalid_value.is_unknown_key and key in _OTHER_FILES:
        text = f"{key} is a key of {_OTHER_FILES[key]}, not of a criterion's file"
        return KeyProblem(key, text)
    if invalid_value.is_unknown_key:
        message = unknown_name_message("key", key, list(model.model_fields))
        return KeyProblem(key, message)
    if invalid_value.kind == _PROBLEM:
        key = invalid_value.context["key"]
        problem = invalid_value.context["problem"]
    elif invalid_value.kind not in ("value_error", "missing"):
        # The errors of our own functions name the refused value already.
        problem = _with_value(problem, invalid_value.value)
    if key:
        problem = f"{key}: {problem}"
    return KeyProblem(key, problem)


def _with_value(problem: str, value: Any) -> str:
    """Add the value that YAML read, and how to quote it if YAML read text as something else."""
    if value is None:
        return "is empty; write a value"
    problem = f"{problem}, not {value!r:.100}"
    if isinstance(value, dict):
        return f"{problem}; put text that holds a colon in quotes"
    if isinstance(value, bool):
        return f"{problem}; put yes, no, on and off in quotes"
    return problem


def with_halves(scale: Scale) -> Scale:
    """Return a scale of whole numbers with its half points. Raises ValueError for any other."""
    lowest = round(scale.low)
    highest = round(scale.high)
    # With its half points, a scale has almost twice as many labels.
    is_too_long = highest - lowest > MAX_LABELS / 2 - 1
    if is_too_long or scale != Scale.integers(lowest, highest):
        raise ValueError(
            f"takes up to {MAX_LABELS // 2} whole numbers, such as scale: [1, 5]"
        )
    return replace(_number_scale(lowest, highest, 0.5), halves=True)


def _ends(key: str) -> tuple[str, str]:
    """Return the first and the last label of a key of `levels`, which may be a range of numbers."""
    match = _RANGE.fullmatch(key)
    return (match[1], match[2]) if match else (key, key)


def _scale_of_levels(levels: Iterable[str]) -> Scale:
    """Return the whole numbers from the lowest to the highest described one. Raises ValueError."""
    numbers: list[int] = []
    for key in levels:
        for end in _ends(key):
            if not _WHOLE_NUMBER.fullmatch(end):
                raise ValueError(
                    f"{end} is not a whole number, so the header needs a scale: {_SCALES}"
                )
            numbers.append(int(float(end)))
    return _number_scale(min(numbers), max(numbers), 1)


def levels_of_scale(levels: Mapping[str, str], scale: Scale) -> dict[str, str]:
    """Return the descriptions by label, or range of labels, in the order of the scale.

    Raises ValueError.
    """
    described: set[int] = set()
    level_by_start: dict[int, tuple[str, str]] = {}
    for key, text in levels.items():
        first_position, last_position = _positions(key, scale)
        if first_position > last_position:
            raise ValueError(
                f"{key} ends before it starts; write the lower number first"
            )
        positions = set(range(first_position, last_position + 1))
        if described & positions:
            raise ValueError(f"{key} is described twice")
        described |= positions
        first_label = scale.labels[first_position]
        last_label = scale.labels[last_position]
        range_name = _range_name(first_label, last_label)
        level_by_start[first_position] = (range_name, text)
    return dict(level_by_start[start] for start in sorted(level_by_start))


def _positions(key: str, scale: Scale) -> tuple[int, int]:
    """Return the positions of a key's first and last label on the scale. Raises ValueError."""
    index = label_index(scale)
    # A label such as "1-2" is no range.
    ends = (key, key) if index.label(key) else _ends(key)
    positions = []
    for end in ends:
        label = index.label(end)
        if not label:
            labels = f"{scale.low:g} to {scale.high:g}"
            if len(scale.labels) <= _MOST_LISTED_LABELS:
                labels = ", ".join(scale.labels)
            raise ValueError(f"{key} is not on the scale ({labels})")
        positions.append(scale.labels.index(label))
    first_position, last_position = positions
    return first_position, last_position


def _range_name(lowest: str, highest: str) -> str:
    if lowest == highest:
        return lowest
    # "-2 - -1" is easier to read than "-2--1".
    dash = " - " if "-" in lowest + highest else "-"
    return f"{lowest}{dash}{highest}"
