"""Read a criterion's YAML header, its Jinja template and its layouts.

Layouts are looked for in the folder of the criterion's own file, in `prompts/<language>/` and in `prompts/en/`, and
nowhere else.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Self

from jinja2 import TemplateSyntaxError, meta, nodes, pass_context
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
from judge.core.records import ALIASES, Ask, ChecklistQuestion, Criterion, ReplyKind, Scale
from judge.criteria.checklist import read_questions, yes_no
from judge.criteria.sandbox import MOST_TEMPLATES, Sandbox
from judge.text import DEFAULT_LANGUAGE

MAX_LABELS, MAX_EXAMPLES = 1_000, 20
_LARGEST = 1_000_000_000
MAX_CHARACTERS, MAX_TEMPLATES = 100_000, 50
"""In all templates of a criterion, headers included."""
_HEADER = re.compile(r"\A---[ \t]*\n(?P<yaml>.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_RANGE = re.compile(r"([-+]?[0-9][0-9.]*)\s*[-–~]\s*([-+]?[0-9][0-9.]*)")
_WHOLE = re.compile(r"[-+]?[0-9]+(?:\.0+)?")
_SHOWN = 12
"""Labels of a scale that a message lists."""
_QUESTION = re.compile(
    r'\s*{% extends "layouts/(?:question|checklist)\.jinja" %}\n({% set shown_fields = \[(\("(\w+)", \3\), )*\] %}\n)?'
)
_SCALES = "[1, 5], {min: 0, max: 100, step: 10} or {labels: [fail, pass], values: [0, 1]}"


def template_body(text: str) -> str:
    """A template without its header, if it has one, every line where it was in the file."""
    match = _HEADER.match(text)
    return "\n" * match[0].count("\n") + text[match.end() :] if match else text


def front_matter(text: str) -> str:
    """A text's header from its first `---` up to the line that closes it; "" where there is none."""
    match = _HEADER.match(text)
    return text[: match.end("yaml")] if match else ""


def question_template(show: Sequence[str] | None = None, *, checklist: bool = False) -> str:
    """Return the template of a criterion that is a question alone, or a checklist, and shows these variables.

    None shows the source, if there is one.
    """
    fields = "".join(f'("{name}", {name}), ' for name in show or ())
    extends = f'{{% extends "layouts/{"checklist" if checklist else "question"}.jinja" %}}\n'
    return extends + ("" if show is None else f"{{% set shown_fields = [{fields}] %}}\n")


def is_question_template(body: str) -> bool:
    """Return whether `question_template` made a template without its header."""
    return _QUESTION.fullmatch(body) is not None


def read_scale(raw: Any) -> Scale:
    """Return the scale that a header says. Raises ValueError."""
    if isinstance(raw, Scale):
        return raw
    if isinstance(raw, list | tuple) and len(raw) == 2:
        return _number_scale(raw[0], raw[1], 1)
    if isinstance(raw, dict) and raw.keys() == {"labels", "values"}:
        labels, values = raw["labels"], raw["values"]
        if not isinstance(labels, list) or not all(type(label) in (str, int) for label in labels):
            raise ValueError(
                "labels is a list of words; put yes, no, on and off in quotes, YAML takes them for true and false"
            )
        if not isinstance(values, list) or not all(
            type(v) in (int, float) and abs(v) <= _LARGEST for v in values
        ):
            raise ValueError(f"values is a list of numbers up to {_LARGEST:,}, one for each label")
        if len(labels) != len(values):
            raise ValueError(
                f"{len(labels)} labels, but {len(values)} values; each label has one value"
            )
        texts = [str(label).strip() for label in labels]
        folded = [fold(text).casefold().strip() for text in texts]
        for position, text in enumerate(folded):
            if (first := folded.index(text)) < position:
                raise ValueError(
                    f"the labels {texts[first]!r} and {texts[position]!r} would be read as the same answer"
                )
        if len(texts) < 2 or len(set(values)) < 2:
            raise ValueError("a scale has at least two labels, and not all of one value")
        if len(texts) > MAX_LABELS or any(len(text.splitlines()) != 1 for text in folded):
            raise ValueError(f"a label is one line of text, and a scale has at most {MAX_LABELS:,}")
        return Scale(tuple(texts), tuple(float(value) for value in values))
    if isinstance(raw, dict) and {"min", "max"} <= raw.keys() <= {"min", "max", "step"}:
        return _number_scale(raw["min"], raw["max"], raw.get("step", 1))
    raise ValueError(f"{raw!r:.100} is not a scale; write {_SCALES}")


def _number_scale(*ends_and_step: Any) -> Scale:
    if not all(
        type(n) in (int, float) and abs(n) <= _LARGEST and round(n, 3) == n for n in ends_and_step
    ):
        raise ValueError(
            f"a scale runs between numbers up to {_LARGEST:,} of at most 3 decimals; write {_SCALES}"
        )
    low, high, step = (Decimal(str(n)) for n in ends_and_step)
    if low >= high:
        raise ValueError(f"{low} is not below {high}; the lowest score comes first")
    if step <= 0 or (high - low) % step:
        raise ValueError(
            f"steps of {step} do not lead from {low} to {high}; a step divides {high - low}"
        )
    if (count := int((high - low) / step) + 1) > MAX_LABELS:
        raise ValueError(f"{count:,} labels are too many; at most {MAX_LABELS:,}")
    labels = [format_decimal(f"{low + n * step:f}") for n in range(count)]
    return Scale(tuple(labels), tuple(map(float, labels)))


def shown_fields(names: list[str]) -> list[str]:
    """Return the variables that hold these columns. Raises ValueError for what cannot be one, and for the output."""
    for name in names:
        if not name.isidentifier() or name.startswith("_"):
            word = re.sub(r"\W+", "_", name).strip("_") or "NAME"
            raise ValueError(
                f"{name!r} is not one word; give its column another name: {option('map', {word: name})}"
            )
        if ALIASES.get(name, name) == "output":
            raise ValueError(
                f"{name}: the text to judge is always shown; name what is shown beside it"
            )
    return [ALIASES.get(name, name) for name in names]


_SCHEMAS: dict[str, dict[str, Any]] = json.loads("""{
"scale": {"anyOf": [
  {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
  {"type": "object", "additionalProperties": false, "required": ["min", "max"],
   "properties": {"min": {"type": "number"}, "max": {"type": "number"}, "step": {"type": "number"}}},
  {"type": "object", "additionalProperties": false, "required": ["labels", "values"],
   "properties": {
    "labels": {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 2},
    "values": {"type": "array", "items": {"type": "number"}}}}]},
"levels": {"type": "object", "additionalProperties": {"type": "string"}},
"examples": {"anyOf": [
  {"type": "array", "items": {
    "type": "object", "additionalProperties": false, "required": ["score"],
    "properties": {
     "output": {"type": "string"}, "text": {"type": "string"}, "score": {"type": ["string", "number"]},
     "reason": {"type": "string"}, "source": {"type": "string"}}}, "maxItems": 20},
  {"type": "string"}]},
"questions": {"anyOf": [
  {"type": "string"},
  {"type": "array", "items": {"anyOf": [
    {"type": "string"},
    {"type": "object", "additionalProperties": false, "required": ["text"],
     "properties": {"text": {"type": "string"}, "weight": {"type": "number", "exclusiveMinimum": 0}}}]}}]}
}""")
"""The JSON schemas of the keys whose values have functions of their own."""


def _levels(raw: Any) -> dict[str, str]:
    """The descriptions of a header, by label or range of numbers."""
    if not isinstance(raw, Mapping):
        raise ValueError("not a mapping; write a line such as 1: Off topic. for each label")
    levels: dict[str, str] = {}
    for key, text in raw.items():
        if isinstance(key, bool):
            raise ValueError(
                "put yes, no, on and off in quotes, YAML takes them for true and false"
            )
        if not isinstance(text, str) or len(text.strip().splitlines()) != 1:
            raise ValueError(f"{key} has {text!r:.60}; describe it in one line of text, or omit it")
        if (label := fold(str(key)).strip()) in levels:
            raise ValueError(f"{key} is described twice")
        levels[label] = text.strip()
    return levels


def _questions(raw: Any) -> tuple[ChecklistQuestion, ...] | str:
    """The questions of a header, or the name of their column."""
    if isinstance(raw, str) and not raw.strip():
        raise ValueError("names no column")
    return raw.strip() if isinstance(raw, str) else read_questions(raw)


def _problem(key: str, problem: object) -> PydanticCustomError:
    """The error of a key that does not go with the others; without a key, that of the header."""
    return PydanticCustomError(_PROBLEM, "{problem}", {"key": key, "problem": str(problem)})


class Header(BaseModel):
    """What a header may say."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)

    name: str = Field("", description="The file's own name, if it is written here too.")
    title: str = Field("", description="Name in reports (default: the file's).")
    description: str = Field("", description="What the criterion judges, in a sentence.")
    scale: Annotated[Scale, PlainValidator(read_scale), WithJsonSchema(_SCHEMAS["scale"])] = Field(
        Scale.integers(1, 5), description=f"Scores that a reply may have: {_SCALES}."
    )
    allow_half: bool = Field(
        False, description="Whether a reply may be 4.5 on a scale of whole numbers."
    )
    reply: ReplyKind = Field("score", description="Content of a reply, and its order.")
    weight: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="Weight in the overall score."
    )
    version: int = Field(1, ge=1, description="Raise it when scores are no longer comparable.")
    steps: list[str] = Field(
        [], description="Evaluation steps for the judge; judge criteria steps drafts them."
    )
    question: str = Field("", description="The criterion in a sentence, or a few.")
    show: Annotated[list[str], AfterValidator(shown_fields)] = Field(
        [],
        description="Columns shown beside the text, such as [references], or [] (default: source, if there is one).",
    )
    levels: Annotated[
        dict[str, str], PlainValidator(_levels), WithJsonSchema(_SCHEMAS["levels"])
    ] = Field({}, description="What a label of the scale means, by label or range of numbers.")
    pass_at: float | str | None = Field(
        None, description="Least value that passes, or a label of a scale of words."
    )
    threshold: float | None = Field(
        None, description="Instead of pass_at: a share of the scale, from 0 to 1."
    )
    examples: Annotated[list[Any] | str, WithJsonSchema(_SCHEMAS["examples"])] = Field(
        [], description="Texts with output, score, reason and source, or a file with them."
    )
    questions: Annotated[
        tuple[ChecklistQuestion, ...] | str,
        PlainValidator(_questions),
        WithJsonSchema(_SCHEMAS["questions"]),
    ] = Field(
        (),
        description="Questions of a checklist, each text with an optional weight, or the column that has them.",
    )
    ask: Ask = Field(
        "together",
        description="Whether the questions are sent in one request or in a request each.",
    )
    cite: bool = Field(
        False, description="Whether the judge quotes the sentence that decided the score."
    )
    seen: list[Annotated[str, Field(pattern="^[0-9a-f]{16}$")]] = Field(
        [], description="Digests of texts whose ratings were used; no estimate uses them."
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        """Check the keys that depend on each other, and derive the scale, the levels' labels and the pass value."""
        given = {*self.model_fields_set}
        if not given & {"scale", "question", "questions", "levels", "examples"}:
            raise _problem("", f"the header has no scale; write scale: followed by {_SCALES}")
        self._check_checklist(given)
        key = "levels"
        try:
            if self.levels and "scale" not in given:
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

    def _check_checklist(self, given: Collection[str]) -> None:
        """Raise an error about a key that does not go with questions, or needs them."""
        if not self.questions:
            if "ask" in given:
                raise _problem("ask", "is for a checklist; write its questions:")
            return
        if "scale" in given and self.scale.question != "predicate":
            hint = "{labels: [yes, no], values: [1, 0]}, in words of your own"
            raise _problem("scale", f"the answers of a checklist are {hint}")
        if self.reply != "score":
            raise _problem("reply", "the answers of a checklist are yes or no alone")
        if other := next(
            (key for key in ("levels", "allow_half", "examples", "cite") if getattr(self, key)), ""
        ):
            raise _problem(other, "does not go with questions:")

    def _pass_value(self) -> float | None:
        """Return the least value that passes. Raises ValueError if it is not on the scale.

        For a label of a scale of words it is the middle between the label and the next lower one, so that a text passes
        if this label, or a better one, is the nearest to its value. Means over probabilities rarely reach the label
        itself.
        """
        given, share = self.pass_at, self.threshold
        scale = (
            yes_no(DEFAULT_LANGUAGE) if self.questions else self.scale
        )  # the shares of a checklist are 0 to 1
        if share is not None:
            if given is not None:
                raise ValueError("pass_at and threshold say the same; write one of them")
            if not 0 <= share <= 1:
                raise ValueError(
                    f"{share:g} is not a share of the scale; pass_at: takes a value of the scale"
                )
            return round(scale.low + share * (scale.high - scale.low), 9)
        if given is None:
            return None
        try:
            value = float(given)
        except ValueError:
            if given not in scale.labels:
                raise ValueError(
                    unknown_name_message("label", str(given), list(scale.labels))
                ) from None
            value = scale.value(str(given))
            return (
                value + max((lower for lower in scale.values if lower < value), default=value)
            ) / 2
        if not scale.low <= value <= scale.high:
            hint = f"; threshold: {value:g} is a share of it" if 0 <= value <= 1 else ""
            raise ValueError(
                f"{value:g} is not on the scale from {scale.low:g} to {scale.high:g}{hint}"
            )
        return value


def read_header(label: str, text: str) -> Header:
    """The header of a criterion's text. Raises CriterionError with `label:line` for whatever is wrong in it."""
    match = _HEADER.match(text)
    if match is None and text.startswith("---"):
        raise CriterionError(
            f"{label}:1: the header that starts here is not closed; end it with a line ---"
        )
    if match is None:
        raise CriterionError(
            f"{label}:1: no header; start the file with the lines ---, scale: [1, 5] and ---"
        )
    # With its first line, which YAML knows as the start of a document, lines count as in the file.
    try:
        parsed = yaml_lines.keys(text[: match.end("yaml")])
    except yaml_lines.Twice as error:
        raise CriterionError(f"{label}:{error.line}: {error}") from error
    except yaml_lines.Malformed as error:
        raise CriterionError(f"{label}:{error.line or 1}: the header is {error}") from error
    if parsed is None:
        raise CriterionError(
            f"{label}:1: the header is not made of lines `key: value`; write at least scale: [1, 5]"
        )
    return make_header(
        label, {str(key): value for key, value in parsed.values.items()}, parsed.lines
    )


def make_header(
    label: str, keys: Mapping[str, Any], lines: Mapping[str, int] | None = None
) -> Header:
    """The header with these keys. Raises CriterionError, with the key's line if there are `lines`."""
    try:
        return Header.model_validate(keys)
    except ValidationError as error:
        key, problem = first_problem(error, Header)
        at = label if lines is None else f"{label}:{lines.get(key, 1)}"
        raise CriterionError(f"{at}: {problem}") from error


def first_problem(error: ValidationError, model: type[BaseModel]) -> tuple[str, str]:
    """Return the key of the first complaint, and the complaint as a person would say it."""
    first = first_invalid_value(error)
    key = str(first.path[0]) if first.path else ""
    problem = first.problem
    if first.is_unknown_key and key in _OTHER_FILES:
        return key, f"{key} is no key of a criterion's file, but of {_OTHER_FILES[key]}"
    if first.is_unknown_key:
        return key, unknown_name_message("key", key, list(model.model_fields))
    if first.kind == _PROBLEM:
        key = first.context["key"]
        problem = first.context["problem"]
    elif first.kind not in ("value_error", "missing"):  # ours name the value that they refuse
        problem = _with_value(problem, first.value)
    return key, f"{key}: {problem}" if key else problem


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
    low, high = round(scale.low), round(scale.high)
    if high - low > MAX_LABELS / 2 - 1 or scale != Scale.integers(low, high):
        raise ValueError(f"takes up to {MAX_LABELS // 2} whole numbers, such as scale: [1, 5]")
    return replace(_number_scale(low, high, 0.5), halves=True)


def _ends(key: str) -> tuple[str, str]:
    """The first and the last label of a key of `levels`, which may be a range of numbers."""
    ends = _RANGE.fullmatch(key)
    return (ends[1], ends[2]) if ends else (key, key)


def _scale_of_levels(levels: Iterable[str]) -> Scale:
    """Return the whole numbers from the lowest to the highest that is described. Raises ValueError."""
    ends = [end for key in levels for end in _ends(key)]
    for end in ends:
        if not _WHOLE.fullmatch(end):
            raise ValueError(f"{end} is not a whole number, so the header needs a scale: {_SCALES}")
    numbers = [int(float(end)) for end in ends]
    return _number_scale(min(numbers), max(numbers), 1)


def levels_of_scale(levels: Mapping[str, str], scale: Scale) -> dict[str, str]:
    """Return the descriptions by label, or range of labels, in the order of the scale. Raises ValueError."""
    index = label_index(scale)
    seen: set[int] = set()
    texts: dict[int, tuple[str, str]] = {}
    for key, text in levels.items():
        found = [index.label(end) for end in ((key, key) if index.label(key) else _ends(key))]
        first, last = (scale.labels.index(label) if label else -1 for label in found)
        if min(first, last) < 0:
            among = (
                ", ".join(scale.labels)
                if len(scale.labels) <= _SHOWN
                else f"{scale.low:g} to {scale.high:g}"
            )
            raise ValueError(f"{key} is not on the scale ({among})")
        if first > last:
            raise ValueError(f"{key} ends before it starts; write the lower number first")
        if seen & {*range(first, last + 1)}:
            raise ValueError(f"{key} is described twice")
        seen.update(range(first, last + 1))
        low, high = scale.labels[first], scale.labels[last]
        dash = " - " if "-" in low + high else "-"
        texts[first] = (low if first == last else f"{low}{dash}{high}", text)
    return dict(texts[first] for first in sorted(texts))


def check_keys(criterion: Criterion) -> None:
    """Raise CriterionError for header keys about one text in a comparison, and for those that no template shows."""
    keys = (
        {"levels", "pass_at", "examples", "questions", "questions_column", "cite"}
        if criterion.pairwise
        else set()
    )
    texts = "".join(template_texts(criterion).values())
    unseen = {key for key in ("levels", "examples", "cite") if f"this.{key}" not in texts} - keys
    if key := next((key for key in sorted(keys | unseen) if getattr(criterion, key)), ""):
        name, header = (
            key.removesuffix("_column"),
            yaml_lines.keys(front_matter(criterion.template)),
        )
        problem = "a criterion that compares two texts has none"
        if key in unseen:
            problem = f"no template shows it; extend layouts/pointwise.jinja, or use this.{key}"
        line = header.lines.get(name, 1) if header else 1
        raise CriterionError(f"{criterion.path}:{line}: {name}: {problem}")


_PROBLEM = "header"
_OTHER_FILES = {"cases": "a suite (judge test FILE)"}
_OTHER_FILES |= dict.fromkeys(("criteria", "data", "model"), "a run (judge run FILE)")
_REFERENCES = (nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)


def builtin_prompts() -> Path:
    """The folder of the built-in criteria: inside the package (installed), else beside it (a checkout)."""
    package = Path(__file__).parent.parent
    inside = package / "prompts"
    return inside if inside.is_dir() else package.parent / "prompts"


@lru_cache(maxsize=MOST_TEMPLATES)
def is_packaged(label: str, body: str) -> bool:
    """Return whether a template, by its path or name, is the package's own, unchanged."""
    if is_question_template(body):
        return True
    root = builtin_prompts()
    files = (Path(os.path.normpath(folder / label)) for folder in root.iterdir())
    return any(
        f.is_relative_to(root) and f.is_file() and template_body(read_text(f)) == body
        for f in files
    )


def template_texts(criterion: Criterion) -> dict[str, str]:
    """Every text that shapes the prompt, by template name: the criterion's file first, then its layouts."""
    return {own_name(criterion): criterion.template, **criterion.layouts}


def read_layouts(criterion: Criterion) -> dict[str, str]:
    """The texts of the templates that a criterion's file extends or includes, by name: its own, or read from the disk.

    Raises CriterionError for a template that cannot be found, lies outside the folders, or does not parse.
    """
    root = builtin_prompts()
    folders = [
        Path(criterion.path).parent,
        *dict.fromkeys((root / criterion.language, root / "en")),
    ]
    texts = {own_name(criterion): criterion.template}
    queue = [own_name(criterion)]
    for name in queue:
        if sum(map(len, texts.values())) > MAX_CHARACTERS or len(texts) > MAX_TEMPLATES:
            raise CriterionError(
                f"{criterion.path}: its templates have more than {MAX_CHARACTERS:,} characters, or are more than "
                f"{MAX_TEMPLATES}"
            )
        label = display_name(criterion, name)
        for node in parse_cached(label, texts[name]).find_all(_REFERENCES):
            target = reference(label, node)
            if target in texts:
                continue
            if target in criterion.layouts:
                texts[target] = criterion.layouts[target]
            elif file := _find_layout(f"{label}:{node.lineno}", node, target, folders):
                texts[target] = read_text(file)
            else:
                continue
            queue.append(target)
    del texts[own_name(criterion)]
    return texts


def template_bodies(criterion: Criterion) -> dict[str, str]:
    """`template_texts` without their headers, each line where it was: what `render.Renderer` takes."""
    return {name: template_body(text) for name, text in template_texts(criterion).items()}


def shared_layout(criterion: Criterion, name: str) -> str:
    """Return `layouts/NAME.jinja`, the criterion's own or that of its language. Raises CriterionError.

    `repair` asks for the score alone after a reply without one.
    """
    file = f"layouts/{name}.jinja"
    return template_body(
        read_layouts(replace(criterion, template=f'{{% extends "{file}" %}}'))[file]
    )


def own_name(criterion: Criterion) -> str:
    """The name of a criterion's own file among its templates."""
    return Path(criterion.path).name


def display_name(criterion: Criterion, name: str) -> str:
    """What a message calls a template: the criterion's own file by its path, a layout by its name."""
    return criterion.path if name == own_name(criterion) else name


def read_text(path: Path) -> str:
    """A file's text. Raises CriterionError where it is missing or not UTF-8."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            return file.read(MAX_CHARACTERS + 1)  # `read_layouts` refuses a text of that length
    except FileNotFoundError as error:
        raise CriterionError(f"{path}: no such file") from error
    except OSError as error:
        raise CriterionError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CriterionError(f"{path}: not a text file in UTF-8") from error


def reference(label: str, node: nodes.Node) -> str:
    """The name of the template that a node extends, includes or imports. Raises CriterionError if it leads outside."""
    at = f"{label}:{node.lineno}"
    template = getattr(node, "template", None)
    if not (isinstance(template, nodes.Const) and isinstance(template.value, str)):
        raise CriterionError(f"{at}: the name of another template must be written out, in quotes")
    name = template.value
    check_inside(at, name, " and the built-in prompts")
    if not name.endswith(".jinja"):
        raise CriterionError(f"{at}: {name!r} is not a template: its name does not end in .jinja")
    return name


def check_inside(at: str, name: str, more: str = "") -> None:
    """Raise CriterionError if a file's name leads out of the criterion's folder. Links are for `check_link`."""
    if (
        "\\" in name
        or ":" in name
        or PurePosixPath(name).is_absolute()
        or ".." in PurePosixPath(name).parts
    ):
        raise CriterionError(
            f"{at}: {name!r} lies outside the criterion's folder{more}; copy it there"
        )


def check_link(at: str, file: Path, folder: Path) -> None:
    """Raise CriterionError if a file is a link that leads out of its folder.

    The built-in files may be: some installers link them from a store.
    """
    if not folder.is_relative_to(builtin_prompts()) and not file.resolve().is_relative_to(
        folder.resolve()
    ):
        name = str(file.relative_to(folder))
        raise CriterionError(
            f"{at}: {name!r} is a link that leads out of the criterion's folder; copy it"
        )


def _find_layout(at: str, node: nodes.Node, name: str, folders: list[Path]) -> Path | None:
    for folder in folders:
        if (file := folder / name).is_file():
            check_link(at, file, folder)
            return file
    if isinstance(node, nodes.Include) and node.ignore_missing:
        return None
    raise CriterionError(
        f"{at}: no template {name!r}; looked in {', '.join(str(folder) for folder in folders)}"
    )


@lru_cache(maxsize=1)
def template_parser() -> Sandbox:
    """What templates are read with; never used to render. Knows the filters and globals that `render` has."""
    parser = Sandbox()
    # Jinja computes what is constant while it reads, but neither operations nor filters that take the context.
    parser.intercepted_binops = frozenset(parser.default_binop_table)
    parser.filters = dict.fromkeys(parser.filters, pass_context(lambda *_: None))
    return parser


def parse_template(text: str) -> nodes.Template:
    """A new syntax tree of a template whose text has passed `parse_cached`."""
    return template_parser().parse(template_body(text))


@lru_cache(maxsize=MOST_TEMPLATES)
def parse_cached(label: str, text: str) -> nodes.Template:
    """The syntax tree, only to be read: the next caller gets the same.

    Raises CriterionError for bad syntax, unknown filters, and names that start with `_`.
    """
    try:
        tree = parse_template(text)
        for node in tree.find_all(nodes.Getattr):  # the sandbox refuses those that are computed
            if node.attr.startswith("_"):
                raise CriterionError(
                    f"{label}:{node.lineno}: {node.attr} is out of bounds: it starts with _"
                )
        meta.find_undeclared_variables(tree)
    except TemplateSyntaxError as error:
        raise CriterionError(f"{label}:{error.lineno}: {error.message}") from error
    except (RecursionError, MemoryError) as error:
        raise CriterionError(f"{label}: nested too deeply to be read") from error
    except ValueError as error:  # of Python, which reads no longer ones
        raise CriterionError(f"{label}: holds a number of more than 4,300 digits") from error
    extends = list(tree.find_all(nodes.Extends))
    if len(extends) > 1 or any(node not in tree.body for node in extends):
        raise CriterionError(
            f"{label}:{extends[-1].lineno}: a template extends one other, and not inside if or for"
        )
    return tree
