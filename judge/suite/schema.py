"""The keys of a suite's file, its JSON schema, and the YAML file with the line of every value.

`Spec` and the models below it are the keys, `schema` their JSON schema. `YamlSource` is one file: it collects mistakes
and reports them all with their lines.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from reprlib import repr as short
from typing import Annotated, Any, TypeVar, get_args

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    model_validator,
)

from judge.config import Budget, RunConfig
from judge.core import yaml_lines
from judge.core.errors import ConfigError
from judge.core.format import one_line as one_line
from judge.core.plugins import unknown_name_message
from judge.stats.correlation import Level
from judge.suite.records import Limits, Policy

OPTIONS: Mapping[str, str] = {
    "data": "The texts: a .jsonl, .json, .csv, .tsv or .parquet file, a folder or a pattern, from this file's folder.",
    "map": "The data's columns by our names, such as {item: doc_id, output: summary}.",
    "systems": "Of wide data: the columns that hold the systems' texts.",
    "where": "Only the rows whose columns have these values, such as {lang: ja}.",
    "limit": "Only so many texts of the data.",
    "language": "Language of the prompts (default: the texts').",
    "criteria": "Built-in names or .jinja files (default: those that the cases name).",
    "model": "The judge; several are a panel.",
    "base_url": "An OpenAI-compatible server, ending in /v1.",
    "key_env": "The variable with the key.",
    "weighting": "How scores are made.",
    "draws": "Replies drawn where a score is a mean of samples.",
    "min_mass": "The least probability on the scale to trust.",
    "reply": "What is asked for (default: the criterion's own).",
    "structured": "Ask for replies as JSON objects.",
    "merge_criteria": "Ask for all criteria of a text at once.",
    "temperature": "Sampling temperature (default: 0, for samples 1).",
    "max_tokens": "The longest reply.",
    "max_concurrency": "Most requests in flight.",
    "timeout": "The longest wait for a reply, in seconds.",
    "retries": "Tries after a failed one.",
    "rpm": "Most requests a minute.",
    "tpm": "Most tokens a minute.",
    "deadline": "The longest that the judging may take, in seconds.",
    "budget": "The most that may be spent, such as 5usd or 200000tokens.",
    "cache": "The folder of kept replies, or the address of a Redis that machines share; false for none.",
    "replay": "A recording that answers in the place of the model.",
    "seed": "Of all that is drawn.",
}
"""The keys of `config.RunConfig` that a suite may have, with what each is."""
_QUOTES = "YAML takes it for {}; put it in quotes"
_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%")


def _parse_name(value: Any) -> str:
    """A label, an item or another name; a whole number is one too, what YAML made of `no` or 1.0 is not."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return value
    if value is None or isinstance(value, str):
        raise ValueError("nothing stands here")
    if isinstance(value, list | dict):
        raise ValueError("write a name")
    raise ValueError(_QUOTES.format(_describe_scalar(value)))


def _describe_scalar(value: Any) -> str:
    """Describe what YAML made of a word without quotes."""
    return f"{str(value).lower()}, a truth value" if isinstance(value, bool) else f"a {type(value).__name__}"


def _parse_names(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _parse_columns(columns: Any) -> dict[str, Any]:
    """The columns of a text that stands in the case."""
    if not isinstance(columns, dict):
        raise ValueError("write the columns of a text, such as {source: ..., output: ...}")
    for name, value in columns.items():
        if name in ("item", "system", "human"):
            raise ValueError(f"{name} is a column of the data; here stands what the criterion's template reads")
        if not isinstance(value, str | int | float | list | dict | None):
            raise ValueError(f"{name}: {_QUOTES.format(_describe_scalar(value))}")
    return columns


def _parse_side(value: Any) -> str | dict[str, Any]:
    """A system of the data, or the columns of a text."""
    return _parse_columns(value) if isinstance(value, dict) else _parse_name(value)


def _parse_share(value: Any) -> tuple[float, bool]:
    """A number of judgments, or a share (0–1) of them; and which of the two."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return min(value, sys.maxsize), False
    match = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match or float(match[1]) > 100:
        raise ValueError("write a number of judgments, such as 0, or a share of them, such as 2%")
    return float(match[1]) / 100, True


def _check_failures(value: Any) -> Any:
    _parse_share(value)
    return value


def _parse_dollars(value: Any) -> Budget:
    try:
        budget = RunConfig.model_validate({"budget": value}).budget
    except ValidationError:
        budget = None
    if budget is None or budget.unit != "usd":
        raise ValueError("write dollars, such as 0.50usd; tokens: is the limit of tokens")
    return budget


Name = Annotated[str, BeforeValidator(_parse_name, json_schema_input_type=str | int)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_parse_names, json_schema_input_type=str | int | list[str | int])]
Columns = Annotated[dict[str, Any], PlainValidator(_parse_columns, json_schema_input_type=dict[str, Any])]
Side = Annotated[str | dict[str, Any], PlainValidator(_parse_side, json_schema_input_type=str | int | dict[str, Any])]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Points = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
Dollars = Annotated[Budget, PlainValidator(_parse_dollars, json_schema_input_type=str)]


class _Keys(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _one_of(*names: str) -> ConfigDict:
    """For the schema: one of these keys has to be there."""
    return ConfigDict(json_schema_extra={"anyOf": [{"required": [name]} for name in names]})


class Expect(_Keys):
    """Where the score lies, or which label the text gets."""

    model_config = _one_of("min", "max", "label")

    min: Number | None = Field(None, description="The score, or the mean over the texts, is at least this.")
    max: Number | None = Field(None, description="The score, or the mean over the texts, is at most this.")
    label: Name | None = Field(None, description="The likeliest label.")
    share: Annotated[Share, Field(gt=0)] | None = Field(
        None, description="Of several texts, the share that has the label (default: 1)."
    )

    @model_validator(mode="after")
    def _one_thing(self) -> Expect:
        band = [name for name, end in (("min", self.min), ("max", self.max)) if end is not None]
        if self.label is not None and band:
            raise ValueError(f"{band[0]} and label are two expectations; make two cases of them")
        if self.label is None and not band:
            raise ValueError("write min, max or both; or label")
        if self.share is not None and self.label is None:
            raise ValueError("share goes with label; min and max are for the mean over the texts")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min:g} is above max {self.max:g}")
        return self


class Least(_Keys):
    """The least that a coefficient has to be."""

    min: Annotated[Number, Field(ge=-1, le=1)]


class Human(_Keys):
    """How far the scores go with people's ratings of that name."""

    model_config = _one_of("spearman", "kendall", "pearson")

    spearman: Least | None = None
    kendall: Least | None = None
    pearson: Least | None = None
    level: Level | None = Field(
        None,
        description="document: within items, between the texts of each (default where most items have three rated "
        "texts or more); item: over all texts (default else); system: between the systems' means.",
    )

    @model_validator(mode="after")
    def _one_coefficient(self) -> Human:
        if not (self.spearman or self.kendall or self.pearson):
            raise ValueError("write spearman, kendall or pearson, such as {spearman: {min: 0.4}}")
        return self


class Moved(_Keys):
    """How far the scores may have moved from the baseline's."""

    model_config = _one_of("max_shift", "max_drop", "max_flips")

    max_shift: Points | None = Field(None, description="Of the mean, either way, in points of the scale.")
    max_drop: Points | None = Field(None, description="Of the mean, to the worse, in points of the scale.")
    max_flips: Share | None = Field(None, description="Share of the texts whose likeliest label is another one.")

    @model_validator(mode="after")
    def _one_limit(self) -> Moved:
        if self.max_shift is None and self.max_drop is None and self.max_flips is None:
            raise ValueError("write max_shift, max_drop or max_flips")
        return self


_EXPECTED: Any = [{"required": each} for each in (["expect"], ["better", "worse"], ["human"], ["drift"])]


class CaseKeys(_Keys):
    """One expectation. Its texts are those of the data that item and system choose, or stand in the case."""

    model_config = ConfigDict(json_schema_extra={"oneOf": _EXPECTED})

    name: Name | None = Field(None, description="What reports call it (default: what it says).")
    criterion: Name | None = Field(None, description="A built-in name or a .jinja file (default: the only one).")
    item: Names | None = Field(None, description="Of the data only these items.")
    system: Names | None = Field(None, description="Of the data only these systems' texts.")
    text: Columns | None = Field(None, description="A text of its own: output, and what the criterion reads.")
    expect: Expect | None = None
    better: Side | None = Field(None, description="A system of the data, or the columns of a text.")
    worse: Side | None = Field(None, description="What better has to be better than.")
    margin: Points | None = Field(
        None, description="By more than this: points of the scale, or share of the comparisons above one half."
    )
    human: Human | None = None
    drift: Moved | None = None
    undecided: Policy | None = Field(None, description="What it counts as where the numbers show neither.")


class LimitKeys(_Keys):
    """What the whole suite may not exceed."""

    failures: Annotated[int | str, BeforeValidator(_check_failures)] = Field(
        0, description="Failed judgments: a number, or a share of them such as 2% (default: 0)."
    )
    tokens: Annotated[int, Field(strict=True, ge=1)] | None = Field(None, description="Input tokens of one judgment.")
    cost: Dollars | None = Field(None, description="Of all judgments with nothing cached, such as 0.50usd.")

    def limits(self) -> Limits:
        most, share = _parse_share(self.failures)
        return Limits(most, share, self.tokens, self.cost)


def _check_not_empty(cases: tuple[CaseKeys, ...]) -> tuple[CaseKeys, ...]:
    if not cases:
        raise ValueError("write at least one, such as - {criterion: relevance, expect: {min: 3}}")
    return cases


class Spec(_Keys):
    """The keys of a suite that are its own; the others are those of a run (`OPTIONS`)."""

    baseline: Name | None = Field(None, description="The folder of a run that changes are measured from.")
    undecided: Policy | None = Field(None, description="For all cases (default: fail; for drift: pass).")
    limits: LimitKeys = Field(default_factory=lambda: LimitKeys.model_validate({}))
    cases: Annotated[tuple[CaseKeys, ...], AfterValidator(_check_not_empty)] = Field(json_schema_extra={"minItems": 1})


def keys_at(root: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The keys that may stand where a ValidationError's `loc` leads, sorted; none where it leads to no model."""
    model = _model_at(root, loc)
    return [] if model is None else sorted(model.model_fields)


def keys_with(root: type[BaseModel], loc: tuple[int | str, ...], key: str) -> list[str]:
    """The keys where `loc` leads in which this one may stand: `human` for `level`."""
    model = _model_at(root, loc)
    fields = {} if model is None else model.model_fields
    return [name for name in fields if key in keys_at(root, (*loc, name))]


def _model_at(root: type[BaseModel], loc: tuple[int | str, ...]) -> type[BaseModel] | None:
    model: type[BaseModel] | None = root
    for part in (part for part in loc if isinstance(part, str)):
        field = None if model is None else model.model_fields.get(part)
        model = None if field is None else next(_models(field.annotation), None)
    return model


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


_TEXTS = {"type": ["string", "array"], "items": {"type": "string"}}
_JUDGE = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Judge"}]}
_WRITTEN: Mapping[str, Any] = {
    "systems": _TEXTS,
    "criteria": _TEXTS,
    "model": {"anyOf": [*_JUDGE["anyOf"], {"type": "array", "items": _JUDGE}]},
    "deadline": {"type": ["number", "string"]},
    "budget": {"type": "string"},
}
"""How a file writes what a plan holds in another form."""


def schema() -> dict[str, Any]:
    """The JSON schema (2020-12) of a suite's file; docs/suite.schema.json is its text."""
    suite_schema, config = Spec.model_json_schema(), RunConfig.model_json_schema()
    options = {
        name: {"description": description, **_WRITTEN.get(name, config["properties"][name])}
        for name, description in OPTIONS.items()
    }
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "judge.suite/1",
        "description": "Cases that a judge's scores have to meet.",
        **{name: suite_schema[name] for name in ("type", "additionalProperties", "required")},
        "properties": options | suite_schema["properties"],
        "$defs": {"Judge": config["$defs"]["Judge"], **suite_schema["$defs"]},
    }
    terse: dict[str, Any] = _terse(document)
    return terse | {"title": document["title"]}


def schema_text() -> str:
    return json.dumps(schema(), ensure_ascii=False, indent=1) + "\n"


def _terse(node: Any) -> Any:
    """Without titles and nulls, and `anyOf` of plain types as one list."""
    if isinstance(node, list):
        return [_terse(entry) for entry in node if entry != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    fields = {
        name: _terse(value)
        for name, value in node.items()
        if not (name == "title" and isinstance(value, str)) and not (name == "default" and value is None)
    }
    either = fields.get("anyOf", [])
    if len(either) == 1 and "required" not in either[0]:
        return fields.pop("anyOf")[0] | fields
    if either and all(entry.keys() == {"type"} for entry in either):
        fields["type"] = [entry["type"] for entry in fields.pop("anyOf")]
    return fields


_MAX_MISTAKES, _CLIP = 20, 60  # mistakes in one error, and characters of a quoted value
_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_DECIMAL = re.compile(r"-?(0|[1-9]\d{0,999})")
_DATA = (".jsonl", ".csv", ".tsv", ".parquet")
M = TypeVar("M", bound=BaseModel)
Loc = tuple[int | str, ...]


def mistakes(path: Path, complaints: Collection[tuple[int, str]]) -> ConfigError:
    """An error with a line `FILE:LINE: message` for each mistake, from the top of the file down."""
    lines = [f"{path}:{line}: {one_line(message)}" for line, message in sorted(dict.fromkeys(complaints))]
    more = [f"{path}: {len(lines) - _MAX_MISTAKES} more"] if len(lines) > _MAX_MISTAKES else []
    return ConfigError("\n".join([*lines[:_MAX_MISTAKES], *more]))


class YamlSource:
    """A file with keys at its top. `values` is what YAML reads it as; `lines` are those of the keys.

    Raises ConfigError for what is no such file, and for keys that are no text or stand twice.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: list[tuple[int, str]] = []
        self._root, self.values = _read_yaml(path, self._found)
        self.raise_if_any()
        self.lines: Mapping[str, int] = {key: self.line(key) for key in self.values}

    def line(self, *loc: int | str) -> int:
        """The line where the key or value stands that `loc` leads to, or the deepest one on the way that there is."""
        node, line = self._root, self._root.start_mark.line
        for part in loc:
            if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
                node = node.value[part]
                line = node.start_mark.line
            elif isinstance(node, yaml.MappingNode):
                key, node = next(((k, v) for k, v in reversed(node.value) if k.value == part), (None, None))
                line = line if key is None else key.start_mark.line
        return int(line) + 1

    def report(self, message: str, *loc: int | str) -> None:
        """Keep a mistake for `raise_if_any`."""
        self.complain_at(message, self.line(*loc))

    def complain_at(self, message: str, line: int) -> None:
        self._found.append((line, message))

    def raise_if_any(self) -> None:
        """Raise ConfigError if there are mistakes."""
        if self._found:
            raise self.error()

    def error(self) -> ConfigError:
        """An error with all reported mistakes."""
        return mistakes(self.path, self._found)

    def checked(self, model: type[M], values: Mapping[str, Any]) -> M | None:
        """The model of these values; None, and complaints, where they make none."""
        try:
            return model.model_validate(values)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            misspelt = {
                error_details["loc"][:-1] for error_details in errors if error_details["type"] == "extra_forbidden"
            }
            for error_details in errors:
                if error_details["type"] != "missing" or error_details["loc"][:-1] not in misspelt:
                    self.report(_describe_error(model, error_details), *error_details["loc"])
        return None


def _describe_error(model: type[BaseModel], error: Any) -> str:
    """One of pydantic's complaints as a person would say it."""
    loc: Loc = error["loc"]
    names = [part for part in loc if isinstance(part, str)]
    key, kind = names[-1] if names else "", error["type"]
    if kind == "extra_forbidden" and (within := keys_with(model, loc[:-1], key)):
        return f"{key} belongs into {' or '.join(within)}: write {within[0]}: {{{key}: ...}}"
    if kind == "extra_forbidden":
        return unknown_name_message("key", key, keys_at(model, loc[:-1]))
    if kind == "missing":
        return f"{key} is missing"
    if kind == "tuple_type":
        return f"{key}: write a list"
    if kind in ("model_type", "dict_type"):
        return f"{key}: write keys and values" + (f" ({', '.join(keys)})" if (keys := keys_at(model, loc)) else "")
    if kind == "value_error":
        return f"{key}: {error['ctx']['error']}"
    if key == "limit" and isinstance(error["input"], dict):
        return "limit: it is a number of texts; did you mean 'limits'?"
    message = error["msg"].removeprefix("Value error, ")
    return f"{key}: {message[0].lower()}{message[1:]}, not {one_line(short(error['input']), _CLIP)}"


def nearby(path: Path) -> str:
    """The name beside it that looks like a path's."""
    names = [neighbour.name for neighbour in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def unknown_key(key: str) -> str:
    """The message about an unknown key at the top of the file."""
    if key in RunConfig.model_fields:
        return f"{key} is for judge run and not for a suite; leave it out"
    return unknown_name_message("key", key, sorted({*OPTIONS, *Spec.model_fields}))


def _read_yaml(path: Path, complaints: list[tuple[int, str]]) -> tuple[Any, dict[str, Any]]:
    """The tree with anchors and merged keys in place, and what it says; what is wrong with keys is `found`."""
    if path.suffix in _DATA and path.is_file():
        raise ConfigError(f"{path}: this is data, and no suite; judge suite init {path} writes one from it")
    try:
        root = yaml_lines.tree(path.read_text(encoding="utf-8"))
        if isinstance(root, yaml.MappingNode):
            complaints += _check_keys(root)
        values = {} if complaints else yaml_lines.construct(root)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text") from error
    except yaml_lines.Malformed as error:
        raise ConfigError(f"{path}{f':{error.line}' if error.line else ''}: {one_line(str(error))}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path}:1: expected keys such as data: and cases:; judge suite init DATA writes a file")
    return root, values


def _check_keys(root: yaml.Node) -> list[tuple[int, str]]:
    """Keys that are no text or stand twice in one mapping (those that are merged in may), and numbers in disguise."""
    complaints: list[tuple[int, str]] = []
    seen, ahead = set(), [root]
    while ahead:
        node = ahead.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            # To YAML `010` is 8, and `12:30` is 750.
            whole = node.tag == _NUMBERS[0] and not _DECIMAL.fullmatch(node.value)
            if whole or (node.tag == _NUMBERS[1] and set(node.value) & {":", "_"}):
                message = (
                    f"{one_line(node.value, 40)}: YAML takes it for another number than it reads; put it in quotes"
                )
                complaints.append((node.start_mark.line + 1, message))
            continue
        if isinstance(node, yaml.SequenceNode):
            ahead += node.value
            continue
        names: set[str] = set()
        for key, value in node.value:
            at = key.start_mark.line + 1
            if key.tag not in (_TEXT, _MERGE):
                complaints.append(
                    (at, f"the key {one_line(str(key.value), 40)}: YAML takes it for no text; put it in quotes")
                )
            elif key.tag == _TEXT and key.value in names:
                complaints.append((at, f"{key.value} stands here for the second time"))
            names.add(str(key.value))
            ahead.append(value)
    return complaints
