"""YAML and command line → one frozen `Plan`. Errors name the file, the line and the key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge.errors import ConfigError
from judge.registry import unknown

DEFAULT_CRITERIA = ("relevance", "coherence", "consistency", "fluency")
_PATHS = ("data", "out", "cache")


class Plan(BaseModel):
    """All that describes a run; the keys of run.yaml and the long options of `judge run` are these names.

    `mapping` (written `map`) names the data's columns, `systems` the columns of wide data. `metrics` None
    means rouge, bleu and chrf where the data has references. `language` None means the data's own. `cache`
    None is the default folder and False none at all. `retries` are the tries after a failed first one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    data: Path | None = None
    mapping: dict[str, str] = Field(default_factory=dict, alias="map")
    systems: tuple[str, ...] = ()
    limit: int | None = Field(None, ge=1)
    criteria: tuple[str, ...] = DEFAULT_CRITERIA
    metrics: tuple[str, ...] | None = None
    language: Literal["en", "ja", "ko", "zh"] | None = None
    model: str | None = None
    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    weighting: Literal["auto", "logprobs", "single"] = "auto"
    min_mass: float = Field(0.5, ge=0, le=1)
    temperature: float = Field(0.0, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1)
    max_concurrency: int = Field(64, ge=1)
    timeout: float = Field(120.0, gt=0)
    retries: int = Field(5, ge=0)
    cache: Path | Literal[False] | None = None
    out: Path | None = None
    seed: int = 0


def plan(file: str | Path | None = None, given: Mapping[str, Any] | None = None) -> Plan:
    """The plan of a YAML file (or none), overridden by what was given on the command line or as arguments.

    Paths in the file are relative to the file. Raises ConfigError.
    """
    values, lines = _read(Path(file)) if file is not None else ({}, {})
    values |= {key: _listed(key, value) for key, value in (given or {}).items() if value is not None}
    try:
        return Plan.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        from_file = key in lines and key not in (given or {})
        where = f"{file}:{lines[key]}: {key}" if from_file else f"--{key.replace('_', '-')}"
        raise ConfigError(f"{where}: {_reason(first, key)}") from error


def _reason(first: Any, key: str) -> str:
    if first["type"] == "extra_forbidden":
        return unknown("key", key, sorted(_keys()))
    got = "" if isinstance(first["input"], dict) else f", not {first['input']!r}"
    return f"{first['msg'][0].lower()}{first['msg'][1:]}{got}"


def _keys() -> list[str]:
    return [field.alias or name for name, field in Plan.model_fields.items()]


def _read(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The file's values by key, and the line each key stands on."""
    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text") from error
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:  # PyYAML lets bad dates and tags through
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: not YAML: {getattr(error, 'problem', None) or error}") from error
    if not isinstance(node, yaml.MappingNode) or not isinstance(values, dict):
        raise ConfigError(f"{path}: expected lines of the form key: value, such as data: summaries.jsonl")
    lines: dict[str, int] = {}
    for key, _ in node.value:
        if str(key.value) in lines:
            raise ConfigError(f"{path}:{key.start_mark.line + 1}: {key.value} stands here for the second time")
        lines[str(key.value)] = key.start_mark.line + 1
    return {str(k): _from_file(str(k), v, path.parent) for k, v in values.items()}, lines


def _from_file(key: str, value: Any, folder: Path) -> Any:
    """A value as the plan wants it: paths start from the file's folder."""
    value = _listed(key, value)
    if key in _PATHS and isinstance(value, str):
        return folder / value
    if key == "criteria" and isinstance(value, list):
        return [str(folder / name) if str(name).endswith(".jinja") else name for name in value]
    if key == "model" and isinstance(value, str) and value.startswith("scripted/"):
        return f"scripted/{folder / value.removeprefix('scripted/')}"
    return value


def _listed(key: str, value: Any) -> Any:
    """Lists may be written as one text with commas."""
    return split(value) if key in ("criteria", "metrics", "systems") and isinstance(value, str) else value


def split(text: str) -> list[str]:
    """The parts of a comma-separated list; `none` is the empty list."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [] if parts == ["none"] else parts


def pairs(text: str) -> dict[str, str]:
    """`item=doc_id,output=summary` as a dict. Raises ConfigError."""
    found: dict[str, str] = {}
    for part in split(text):
        name, equals, column = part.partition("=")
        if not (equals and name.strip() and column.strip()):
            raise ConfigError(f"--map {part!r}: write FIELD=COLUMN, for example output=summary")
        found[name.strip()] = column.strip()
    return found
