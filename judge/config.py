"""`RunConfig`: the settings of a run, from YAML and options. Errors name the file, the line and the key."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from judge.core import yaml_lines
from judge.core.errors import ConfigError
from judge.core.messages import command, option
from judge.core.plugins import unknown_name_message
from judge.core.records import ReplyKind
from judge.core.redis_url import RedisUrl, is_redis_url, parse_cache_location

DEFAULT_CRITERIA = ("relevance", "coherence", "consistency", "fluency")
_SCRIPTED = "scripted/"
_PATHS = ("data", "out", "cache", "replay", "record")
_OPTION_PATHS = ("stopwords", "exceptions", "baseline", "model", "bertscore_model", "questions", "answers")


def _check_variable(name: str) -> str:
    """Refuse what cannot be a variable's name: it may be the key itself, which would then be written into run.json."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError("names the environment variable that holds the key, such as OPENAI_API_KEY, and not the key")
    return name


Variable = Annotated[str, AfterValidator(_check_variable)]
Value = str | int | float | bool


class Judge(BaseModel):
    """One judge of a panel; an address or a key's variable of its own goes before the plan's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    base_url: str | None = None
    key_env: Variable | None = None


def _as_judges(value: Any) -> Any:
    """Accept one name, one mapping, or a list of either."""
    listed = value if isinstance(value, list | tuple) else [value]
    return tuple({"name": judge} if isinstance(judge, str) else judge for judge in listed)


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a run may spend on new requests: US dollars (`usd`) or tokens read and written (`tokens`)."""

    amount: float
    unit: Literal["usd", "tokens"]

    def __str__(self) -> str:
        if self.unit == "tokens":
            return f"{self.amount:,.0f} tokens"
        cents = f"${self.amount:,.2f}"
        return cents if round(self.amount, 2) == self.amount else f"${self.amount:,.10f}".rstrip("0")

    def lacking(self, most: float) -> str:
        """Advise to raise the budget above `most`, the price of one request, rounded up to two digits."""
        step = 10.0 ** (math.floor(math.log10(most)) - 1)
        return f"raise {option('budget')} above {Budget(math.ceil(most / step) * step, self.unit)}"


def _columns(value: Any) -> Any:
    """Accept a column's name, or those of several annotators."""
    names = value if isinstance(value, list | tuple) else [value]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError("write the name of a column")
    if len(set(names)) < len(names):
        raise ValueError("a column stands here twice")
    return value if isinstance(value, str) else tuple(names)


def _check_mapping(mapping: dict[str, str | tuple[str, ...]]) -> dict[str, str | tuple[str, ...]]:
    """Refuse several columns for a field that can have only one."""
    for field, columns in mapping.items():
        if not isinstance(columns, str) and not field.startswith("human."):
            raise ValueError(
                f"{field} is to be {' and '.join(columns)}: name one column; people's ratings alone (human.CRITERION) "
                "may have several, one for each annotator"
            )
    return mapping


def _alternatives(value: Any) -> Any:
    """Accept one value, or a list of alternatives."""
    values = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
    if not values or not all(isinstance(alternative, str | int | float) for alternative in values):
        raise ValueError("write a value, such as lang: ja, or a list of values")
    return values


def _seconds(value: Any) -> Any:
    """Accept a number of seconds, with a better message than pydantic's for `1h`."""
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        raise ValueError("write a number of seconds, such as 3600") from None


def _cache(value: Any) -> Any:
    if isinstance(value, Path) and is_redis_url(str(value), bare=False):  # a Path drops one of its slashes
        raise ValueError("an address is a text, not a Path")
    if isinstance(value, str | RedisUrl):
        return parse_cache_location(value)
    if value is None or value is False or isinstance(value, Path):
        return value
    raise ValueError("write a folder or an address such as redis://HOST:6379/0, or false for none")


_BUDGET = re.compile(r"(?:\$ ?(\d[\d,_]*(?:\.\d+)?)|(\d[\d,_]*(?:\.\d+)?) ?(usd|\$|[km]?tokens?))", re.I)
_TIMES = {"k": 1e3, "m": 1e6}


def _budget(value: Any) -> Any:
    """Parse `5usd`, `$5`, `200000tokens` or `2mtokens`."""
    if value is None or isinstance(value, Budget):
        return value
    match = _BUDGET.fullmatch(str(value).strip())
    if not match:
        raise ValueError("write an amount with its unit, such as 5usd or 200000tokens")
    dollars, amount, unit = match.groups()
    number = float(re.sub("[,_]", "", dollars or amount))
    if number <= 0:
        raise ValueError("must be more than 0")
    if dollars or unit.lower() in ("usd", "$"):
        return Budget(number, "usd")
    return Budget(number * _TIMES.get(unit[0].lower(), 1), "tokens")


class RunConfig(BaseModel):
    """All that describes a run; the keys of run.yaml and the long options of `judge run` are these names.

    `mapping` (written `map`) names the data's columns, `systems` the columns of wide data; `where` has the values that
    a row's columns must have (`{lang: ja}`). `metrics` None means rouge, bleu and chrf where the data has references;
    `set` are options by metric (`{rouge: {stem: false}}`) and `workers` the processes that measure. `language` None
    means the data's own. Several judges (`model`) are a panel. `draws` are the replies drawn where a score is a mean of
    samples; `temperature` None is 1 for those and else 0. `reply` None is each criterion's own kind; `structured` asks
    for it as a JSON object, `merge_criteria` for all criteria of a text in one reply. `cache` is a folder or the
    address of one that machines share, None the default and False none at all.
    `retries` are the tries after a failed first one. `rpm` and `tpm` are the most requests and tokens a minute,
    `deadline` the longest the judging may take, in seconds, and `budget` the most that may be spent on new requests;
    where one of the two is reached, the run stops and can be gone on with. `engine` is where requests run and
    `ray_workers` the processes that send them there, None one for each machine or GPU.
    `retry_failed` asks again for what failed in the run in `out`, and for nothing else of it. `replay` is a recording
    that answers in the place of the judges, `record` where to write one. `calibrate` brings the means to people's scale
    by the ratings that some of the texts have.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, hide_input_in_errors=True)

    data: Path | None = None
    mapping: Annotated[
        dict[str, Annotated[str | tuple[str, ...], BeforeValidator(_columns, json_schema_input_type=str | list[str])]],
        AfterValidator(_check_mapping),
    ] = Field(default_factory=dict, alias="map")
    systems: tuple[str, ...] = ()
    where: dict[
        str, Annotated[tuple[Value, ...], BeforeValidator(_alternatives, json_schema_input_type=Value | list[Value])]
    ] = Field(default_factory=dict)
    limit: int | None = Field(None, ge=1)
    criteria: tuple[str, ...] = DEFAULT_CRITERIA
    metrics: tuple[str, ...] | None = None
    set: dict[str, dict[str, Any]] = Field(default_factory=dict)
    workers: int = Field(1, ge=1)
    language: Literal["en", "ja", "ko", "zh"] | None = None
    model: Annotated[tuple[Judge, ...], BeforeValidator(_as_judges)] = ()
    base_url: str | None = None
    key_env: Variable = "OPENAI_API_KEY"
    weighting: Literal["auto", "logprobs", "decisions", "samples", "single"] = "auto"
    draws: int = Field(20, ge=1, le=1000)
    min_mass: float = Field(0.5, ge=0, le=1)
    reply: ReplyKind | None = None
    structured: bool = False
    merge_criteria: bool = False
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1)
    max_concurrency: int = Field(64, ge=1)
    timeout: float = Field(120.0, gt=0)
    retries: int = Field(5, ge=0)
    rpm: int | None = Field(None, ge=1)
    tpm: int | None = Field(None, ge=1)
    deadline: Annotated[float | None, BeforeValidator(_seconds)] = Field(None, gt=0)
    budget: Annotated[Budget | None, BeforeValidator(_budget)] = None
    engine: str = "local"
    ray_workers: int | None = Field(None, ge=1)
    retry_failed: bool = False
    cache: Annotated[RedisUrl | Path | Literal[False] | None, BeforeValidator(_cache)] = None
    replay: Path | None = None
    record: Path | None = None
    calibrate: bool = False
    out: Path | None = None
    seed: int = Field(0, ge=0)


class RankConfig(RunConfig):
    """What `judge rank` adds: `orders` 2 shows each pair of texts both ways round, 1 only one way, drawn by `seed`.

    `pairs` is the most pairs of texts to compare, spread evenly over the pairs of systems; None means all of them.
    """

    criteria: tuple[str, ...] = ("overall",)
    metrics: tuple[str, ...] | None = ()
    orders: Literal[1, 2] = 2
    pairs: int | None = Field(None, ge=1)


def load_config(file: str | Path | None = None, given: Mapping[str, Any] | None = None) -> RunConfig:
    """Return the plan of a YAML file, if any, overridden by the options of `given`.

    Paths in the file are relative to the file. Raises ConfigError.
    """
    return _build(RunConfig, file, given)


def load_rank_config(file: str | Path | None = None, given: Mapping[str, Any] | None = None) -> RankConfig:
    """`plan` for a ranking."""
    return _build(RankConfig, file, given)


P = TypeVar("P", bound=RunConfig)


def _build(kind: type[P], file: str | Path | None, overrides: Mapping[str, Any] | None) -> P:
    values, lines = _read_yaml(Path(file)) if file is not None else ({}, {})
    overrides = {key: _split_list(key, value) for key, value in (overrides or {}).items() if value is not None}
    if isinstance(overrides.get("set"), Mapping) and isinstance(values.get("set"), Mapping):
        # Override single options of a metric, not all of its options.
        in_file, on_command_line = values["set"], overrides["set"]
        merged = {
            metric: {**in_file[metric], **on_command_line[metric]}
            for metric in in_file.keys() & on_command_line.keys()
            if isinstance(in_file[metric], dict) and isinstance(on_command_line[metric], dict)
        }
        overrides["set"] = {**in_file, **on_command_line, **merged}
    values |= overrides
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key, *inner = map(str, first["loc"] or ("",))
        from_file = key in lines and key not in overrides
        where = f"{file}:{lines[key]}: {key}" if from_file else option(key)
        within = [part for part in inner if not part.isdigit()]
        keys = [field.alias or name for name, field in (Judge if within else kind).model_fields.items()]
        inside = "".join(f" {part}:" for part in within)
        innermost = within[-1] if within else key
        if first["type"] != "extra_forbidden":
            # A message must not repeat a key, or the password in a Redis address.
            secret = innermost == "key_env" or (innermost == "cache" and isinstance(first["input"], str | Path))
            got = "" if secret or isinstance(first["input"], dict) else f", not {first['input']!r}"
            message = first["msg"].removeprefix("Value error, ")
            message = f"{message[0].lower()}{message[1:]}{got}"
        elif innermost in RankConfig.model_fields:
            message = f"it is for {command('rank')}; to {command('plan')}, add {option('rank', True)}"
        else:
            message = unknown_name_message("key", innermost, sorted(keys))
        raise ConfigError(f"{where}:{inside} {message}") from error


def _read_yaml(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the file's values and lines by key."""
    try:
        document = yaml_lines.keys(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text") from error
    except yaml_lines.Malformed as error:
        raise ConfigError(f"{path}{f':{error.line}' if error.line else ''}: {error}") from error
    if document is None:
        raise ConfigError(f"{path}: expected lines of the form key: value, such as data: summaries.jsonl")
    return {str(k): resolve_value(str(k), v, path.parent) for k, v in document.values.items()}, document.lines


def resolve_value(key: str, value: Any, folder: Path) -> Any:
    """Make the paths in a value relative to the file's folder, and split lists."""
    value = _split_list(key, value)
    if key in _PATHS and isinstance(value, str | Path) and not is_redis_url(value):
        return folder / value
    if key == "criteria" and isinstance(value, list):
        return [str(folder / name) if str(name).endswith(".jinja") else name for name in value]
    if key == "set" and isinstance(value, dict):
        return {name: _resolve_option_paths(options, folder) for name, options in value.items()}
    if key == "model":
        return [_resolve_judge_path(judge, folder) for judge in (value if isinstance(value, list) else [value])]
    return value


def _resolve_option_paths(options: Any, folder: Path) -> Any:
    """Make the paths in a metric's options relative to the file's folder."""
    if not isinstance(options, dict):
        return options

    def beside(value: Any) -> Any:  # if no such file exists, it may be a model's name
        if isinstance(value, list):
            return [beside(path) for path in value]
        return str(folder / value) if isinstance(value, str) and value.strip() and (folder / value).exists() else value

    return {name: beside(value) if name in _OPTION_PATHS else value for name, value in options.items()}


def _resolve_judge_path(model: Any, folder: Path) -> Any:
    """Make the path of a judge's script or model folder relative to the file's folder."""
    if isinstance(model, dict) and isinstance(model.get("name"), str):
        return {**model, "name": _resolve_judge_path(model["name"], folder)}
    if isinstance(model, str) and script_of(model) is not None:
        return script_beside(model, folder)
    model_folder = (
        folder / model.removeprefix("local/") if isinstance(model, str) and model.startswith("local/") else None
    )
    if model_folder is not None and model_folder.is_dir():  # else a name on the hub
        return f"local/{model_folder}"
    return model


def script_of(model: str) -> Path | None:
    """Return the path of a scripted judge's replies, None for any other judge."""
    return Path(model.removeprefix(_SCRIPTED)) if model.startswith(_SCRIPTED) else None


def script_beside(model: str, folder: Path) -> str:
    """Make the path in the name of a scripted judge relative to a folder; return any other name unchanged."""
    script = script_of(model)
    return model if script is None else f"{_SCRIPTED}{folder / script}"


def _split_list(key: str, value: Any) -> Any:
    """Split a list that is written as one text with commas."""
    return split(value) if key in ("criteria", "metrics", "systems") and isinstance(value, str) else value


def split(text: str) -> list[str]:
    """Split a comma-separated list; `none` is the empty list."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [] if parts == ["none"] else parts


def settings(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parse `["rouge.stem=false", ...]` to options by metric; values are YAML. Raises ConfigError."""
    options_by_metric: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        metric, dot, option = name.strip().partition(".")
        if not (equals and dot and metric and option):
            raise ConfigError(f"--set {text!r}: write METRIC.OPTION=VALUE, for example rouge.stem=false")
        try:
            options_by_metric.setdefault(metric, {})[option] = yaml_lines.values(value)
        except yaml_lines.Malformed as error:
            raise ConfigError(f"--set {text!r}: the value is not YAML; put quotes around a text") from error
    return options_by_metric


def pairs(text: str) -> dict[str, str | list[str]]:
    """Parse `item=doc_id,output=summary` to a dict; a repeated field has a list. Raises ConfigError."""
    mapping: dict[str, str | list[str]] = {}
    for part in split(text):
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not (equals and name and column):
            raise ConfigError(f"--map {part!r}: write FIELD=COLUMN, for example output=summary")
        before = mapping.get(name, [])
        mapping[name] = [*([before] if isinstance(before, str) else before), column] if name in mapping else column
    return mapping


_NEXT = re.compile(r",(?=[^,=]+=)")


def where_values(text: str) -> dict[str, list[str]]:
    """Parse `lang=ja,channel=email` to values by column; the values of a repeated column are alternatives.

    A comma belongs to the value unless COLUMN= follows it. Raises ConfigError.
    """
    values_by_column: dict[str, list[str]] = {}
    for part in _NEXT.split(text):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (equals and name and value):
            raise ConfigError(f"--where {part!r}: write COLUMN=VALUE, for example lang=ja")
        values_by_column.setdefault(name, []).append(value)
    return values_by_column
