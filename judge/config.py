"""YAML and command line → one frozen `Plan`. Errors name the file, the line and the key."""

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


def _variable(given: str) -> str:
    """The name of an environment variable: a key itself, which may have been meant, would be written into run.json."""
    if not re.fullmatch(r"[A-Za-z_]\w*", given):
        raise ValueError("names the environment variable that holds the key, such as OPENAI_API_KEY, and not the key")
    return given


Variable = Annotated[str, AfterValidator(_variable)]
Value = str | int | float | bool


class Judge(BaseModel):
    """One judge of a panel; an address or a key's variable of its own goes before the plan's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    base_url: str | None = None
    key_env: Variable | None = None


def _judges(given: Any) -> Any:
    """One name, one mapping, or a list of either."""
    listed = given if isinstance(given, list | tuple) else [given]
    return tuple({"name": one} if isinstance(one, str) else one for one in listed)


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
        """What to do where one request can cost more than all there is: `most`, which is rounded up to two digits."""
        step = 10.0 ** (math.floor(math.log10(most)) - 1)
        return f"raise {option('budget')} above {Budget(math.ceil(most / step) * step, self.unit)}"


def _columns(given: Any) -> Any:
    """A column's name, or those of several annotators."""
    names = given if isinstance(given, list | tuple) else [given]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError("write the name of a column")
    if len(set(names)) < len(names):
        raise ValueError("a column stands here twice")
    return given if isinstance(given, str) else tuple(names)


def _mapped(given: dict[str, str | tuple[str, ...]]) -> dict[str, str | tuple[str, ...]]:
    """Refuses several columns for what can have only one."""
    for field, columns in given.items():
        if not isinstance(columns, str) and not field.startswith("human."):
            raise ValueError(
                f"{field} is to be {' and '.join(columns)}: name one column; people's ratings alone (human.CRITERION) "
                "may have several, one for each annotator"
            )
    return given


def _either(given: Any) -> Any:
    """The values of which a column has to have one; a value alone is one."""
    values = tuple(given) if isinstance(given, list | tuple | set | frozenset) else (given,)
    if not values or not all(isinstance(one, str | int | float) for one in values):
        raise ValueError("write a value, such as lang: ja, or a list of values")
    return values


def _seconds(given: Any) -> Any:
    """A number, for which `1h` is none."""
    try:
        return None if given is None else float(given)
    except (TypeError, ValueError):
        raise ValueError("write a number of seconds, such as 3600") from None


def _cache(given: Any) -> Any:
    if isinstance(given, Path) and is_redis_url(str(given), bare=False):  # which has lost one of its slashes
        raise ValueError("an address is a text, not a Path")
    if isinstance(given, str | RedisUrl):
        return parse_cache_location(given)
    if given is None or given is False or isinstance(given, Path):
        return given
    raise ValueError("write a folder or an address such as redis://HOST:6379/0, or false for none")


_BUDGET = re.compile(r"(?:\$ ?(\d[\d,_]*(?:\.\d+)?)|(\d[\d,_]*(?:\.\d+)?) ?(usd|\$|[km]?tokens?))", re.I)
_TIMES = {"k": 1e3, "m": 1e6}


def _budget(given: Any) -> Any:
    """`5usd`, `$5`, `200000tokens`, `2mtokens`."""
    if given is None or isinstance(given, Budget):
        return given
    found = _BUDGET.fullmatch(str(given).strip())
    if not found:
        raise ValueError("write an amount with its unit, such as 5usd or 200000tokens")
    dollars, amount, unit = found.groups()
    number = float(re.sub("[,_]", "", dollars or amount))
    if number <= 0:
        raise ValueError("must be more than 0")
    if dollars or unit.lower() in ("usd", "$"):
        return Budget(number, "usd")
    return Budget(number * _TIMES.get(unit[0].lower(), 1), "tokens")


class Plan(BaseModel):
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
        AfterValidator(_mapped),
    ] = Field(default_factory=dict, alias="map")
    systems: tuple[str, ...] = ()
    where: dict[
        str, Annotated[tuple[Value, ...], BeforeValidator(_either, json_schema_input_type=Value | list[Value])]
    ] = Field(default_factory=dict)
    limit: int | None = Field(None, ge=1)
    criteria: tuple[str, ...] = DEFAULT_CRITERIA
    metrics: tuple[str, ...] | None = None
    set: dict[str, dict[str, Any]] = Field(default_factory=dict)
    workers: int = Field(1, ge=1)
    language: Literal["en", "ja", "ko", "zh"] | None = None
    model: Annotated[tuple[Judge, ...], BeforeValidator(_judges)] = ()
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


class RankPlan(Plan):
    """What `judge rank` adds: `orders` 2 shows each pair of texts both ways round, 1 only one way, drawn by `seed`.

    `pairs` is the most pairs of texts to compare, spread evenly over the pairs of systems; None means all of them.
    """

    criteria: tuple[str, ...] = ("overall",)
    metrics: tuple[str, ...] | None = ()
    orders: Literal[1, 2] = 2
    pairs: int | None = Field(None, ge=1)


def plan(file: str | Path | None = None, given: Mapping[str, Any] | None = None) -> Plan:
    """The plan of a YAML file (or none), overridden by what was given on the command line or as arguments.

    Paths in the file are relative to the file. Raises ConfigError.
    """
    return _made(Plan, file, given)


def rank_plan(file: str | Path | None = None, given: Mapping[str, Any] | None = None) -> RankPlan:
    """`plan` for a ranking."""
    return _made(RankPlan, file, given)


P = TypeVar("P", bound=Plan)


def _made(kind: type[P], file: str | Path | None, given: Mapping[str, Any] | None) -> P:
    values, lines = _read(Path(file)) if file is not None else ({}, {})
    given = {key: _listed(key, value) for key, value in (given or {}).items() if value is not None}
    if isinstance(given.get("set"), Mapping) and isinstance(values.get("set"), Mapping):
        given["set"] = _over(values["set"], given["set"])
    values |= given
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key, *inner = map(str, first["loc"] or ("",))
        from_file = key in lines and key not in given
        where = f"{file}:{lines[key]}: {key}" if from_file else option(key)
        within = [part for part in inner if not part.isdigit()]
        keys = list(Judge.model_fields) if within else _keys(kind)
        inside = "".join(f" {part}:" for part in within)
        raise ConfigError(f"{where}:{inside} {_reason(first, within[-1] if within else key, keys)}") from error


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Options by metric, those of `above` in the place of those below."""
    both = below.keys() & above.keys()
    merged = {n: {**below[n], **above[n]} for n in both if isinstance(below[n], dict) and isinstance(above[n], dict)}
    return {**below, **above, **merged}


def _reason(first: Any, key: str, keys: list[str]) -> str:
    if first["type"] == "extra_forbidden":
        if key in RankPlan.model_fields:
            return f"it is for {command('rank')}; to {command('plan')}, add {option('rank', True)}"
        return unknown_name_message("key", key, sorted(keys))
    secret = key == "key_env" or (key == "cache" and isinstance(first["input"], str | Path))
    got = "" if secret or isinstance(first["input"], dict) else f", not {first['input']!r}"
    said = first["msg"].removeprefix("Value error, ")
    return f"{said[0].lower()}{said[1:]}{got}"


def _keys(kind: type[Plan]) -> list[str]:
    return [field.alias or name for name, field in kind.model_fields.items()]


def _read(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The file's values by key, and the line each key stands on."""
    try:
        found = yaml_lines.keys(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text") from error
    except yaml_lines.Malformed as error:
        raise ConfigError(f"{path}{f':{error.line}' if error.line else ''}: {error}") from error
    if found is None:
        raise ConfigError(f"{path}: expected lines of the form key: value, such as data: summaries.jsonl")
    return {str(k): _from_file(str(k), v, path.parent) for k, v in found.values.items()}, found.lines


def _from_file(key: str, value: Any, folder: Path) -> Any:
    """A value as the plan wants it: paths start from the file's folder."""
    value = _listed(key, value)
    if key in _PATHS and isinstance(value, str) and not is_redis_url(value):
        return folder / value
    if key == "criteria" and isinstance(value, list):
        return [str(folder / name) if str(name).endswith(".jinja") else name for name in value]
    if key == "set" and isinstance(value, dict):
        return {name: _options_beside(options, folder) for name, options in value.items()}
    if key == "model":
        return [_judge_beside(one, folder) for one in (value if isinstance(value, list) else [value])]
    return value


def _options_beside(options: Any, folder: Path) -> Any:
    """A metric's options as the file names them; those that are paths start from the file's folder."""
    if not isinstance(options, dict):
        return options

    def beside(value: Any) -> Any:  # what is not there may be a model's name
        if isinstance(value, list):
            return [beside(one) for one in value]
        return str(folder / value) if isinstance(value, str) and value.strip() and (folder / value).exists() else value

    return {name: beside(value) if name in _OPTION_PATHS else value for name, value in options.items()}


def _judge_beside(model: Any, folder: Path) -> Any:
    """A judge as the file names it; the path of a script, or of a model's folder, starts from the file's folder."""
    if isinstance(model, dict) and isinstance(model.get("name"), str):
        return {**model, "name": _judge_beside(model["name"], folder)}
    if isinstance(model, str) and script_of(model) is not None:
        return script_beside(model, folder)
    own = folder / model.removeprefix("local/") if isinstance(model, str) and model.startswith("local/") else None
    if own is not None and own.is_dir():  # else a name on the hub
        return f"local/{own}"
    return model


def script_of(model: str) -> Path | None:
    """The file of replies that a judge's name says, None of any other judge."""
    return Path(model.removeprefix(_SCRIPTED)) if model.startswith(_SCRIPTED) else None


def script_beside(model: str, folder: Path) -> str:
    """A judge's name with the path of its script from this folder on; any other name as it is."""
    script = script_of(model)
    return model if script is None else f"{_SCRIPTED}{folder / script}"


def _listed(key: str, value: Any) -> Any:
    """Lists may be written as one text with commas."""
    return split(value) if key in ("criteria", "metrics", "systems") and isinstance(value, str) else value


def split(text: str) -> list[str]:
    """The parts of a comma-separated list; `none` is the empty list."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [] if parts == ["none"] else parts


def settings(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`["rouge.stem=false", ...]` as options by metric, values read as YAML. Raises ConfigError."""
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        metric, dot, option = name.strip().partition(".")
        if not (equals and dot and metric and option):
            raise ConfigError(f"--set {text!r}: write METRIC.OPTION=VALUE, for example rouge.stem=false")
        try:
            found.setdefault(metric, {})[option] = yaml_lines.values(value)
        except yaml_lines.Malformed as error:
            raise ConfigError(f"--set {text!r}: the value is not YAML; put quotes around a text") from error
    return found


def pairs(text: str) -> dict[str, str | list[str]]:
    """`item=doc_id,output=summary` as a dict; what stands there several times has a list. Raises ConfigError."""
    found: dict[str, str | list[str]] = {}
    for part in split(text):
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not (equals and name and column):
            raise ConfigError(f"--map {part!r}: write FIELD=COLUMN, for example output=summary")
        before = found.get(name, [])
        found[name] = [*([before] if isinstance(before, str) else before), column] if name in found else column
    return found


_NEXT = re.compile(r",(?=[^,=]+=)")


def wanted(text: str) -> dict[str, list[str]]:
    """`lang=ja,channel=email` as the values by column; a column that stands there twice has either. Raises ConfigError.

    A comma belongs to the value where no COLUMN= follows it.
    """
    found: dict[str, list[str]] = {}
    for part in _NEXT.split(text):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (equals and name and value):
            raise ConfigError(f"--where {part!r}: write COLUMN=VALUE, for example lang=ja")
        found.setdefault(name, []).append(value)
    return found
