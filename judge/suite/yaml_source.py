"""A YAML file as it was written: its values, where each of them stands, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from reprlib import repr as short
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from judge.config import Plan
from judge.core import yaml_lines
from judge.core.errors import ConfigError
from judge.core.plugins import unknown
from judge.report.format import line as one_line
from judge.suite.schema import OPTIONS, Spec, keys_at, keys_with

_MOST, _CLIP = 20, 60  # mistakes that are told, and characters of what was found
_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_DECIMAL = re.compile(r"-?(0|[1-9]\d{0,999})")
_DATA = (".jsonl", ".csv", ".tsv", ".parquet")
M = TypeVar("M", bound=BaseModel)
Loc = tuple[int | str, ...]


def mistakes(path: Path, found: Collection[tuple[int, str]]) -> ConfigError:
    """An error with a line `FILE:LINE: message` for each mistake, from the top of the file down."""
    told = [f"{path}:{line}: {one_line(said)}" for line, said in sorted(dict.fromkeys(found))]
    more = [f"{path}: {len(told) - _MOST} more"] if len(told) > _MOST else []
    return ConfigError("\n".join([*told[:_MOST], *more]))


class Written:
    """A file with keys at its top. `values` is what YAML reads it as; `lines` are those of the keys.

    Raises ConfigError for what is no such file, and for keys that are no text or stand twice.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: list[tuple[int, str]] = []
        self._root, self.values = _read(path, self._found)
        self.settle()
        self.lines: Mapping[str, int] = {key: self.line(key) for key in self.values}

    def line(self, *loc: int | str) -> int:
        """The line where the key or value stands that `loc` leads to, or the deepest one on the way that there is."""
        node, found = self._root, self._root.start_mark.line
        for part in loc:
            if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
                node = node.value[part]
                found = node.start_mark.line
            elif isinstance(node, yaml.MappingNode):
                key, node = next(((k, v) for k, v in reversed(node.value) if k.value == part), (None, None))
                found = found if key is None else key.start_mark.line
        return int(found) + 1

    def complain(self, message: str, *loc: int | str) -> None:
        """Keep a mistake for `settle`."""
        self.complain_at(message, self.line(*loc))

    def complain_at(self, message: str, line: int) -> None:
        self._found.append((line, message))

    def settle(self) -> None:
        """Raises ConfigError where there were complaints."""
        if self._found:
            raise self.error()

    def error(self) -> ConfigError:
        """What there were complaints about."""
        return mistakes(self.path, self._found)

    def checked(self, model: type[M], values: Mapping[str, Any]) -> M | None:
        """The model of these values; None, and complaints, where they make none."""
        try:
            return model.model_validate(values)
        except ValidationError as error:
            found = error.errors(include_url=False)
            misspelt = {one["loc"][:-1] for one in found if one["type"] == "extra_forbidden"}
            for one in found:
                if one["type"] != "missing" or one["loc"][:-1] not in misspelt:
                    self.complain(_said(model, one), *one["loc"])
        return None


def _said(model: type[BaseModel], error: Any) -> str:
    """One of pydantic's complaints as a person would say it."""
    loc: Loc = error["loc"]
    names = [part for part in loc if isinstance(part, str)]
    key, kind = names[-1] if names else "", error["type"]
    if kind == "extra_forbidden" and (within := keys_with(model, loc[:-1], key)):
        return f"{key} belongs into {' or '.join(within)}: write {within[0]}: {{{key}: ...}}"
    if kind == "extra_forbidden":
        return unknown("key", key, keys_at(model, loc[:-1]))
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
    said = error["msg"].removeprefix("Value error, ")
    return f"{key}: {said[0].lower()}{said[1:]}, not {one_line(short(error['input']), _CLIP)}"


def nearby(path: Path) -> str:
    """The name beside it that looks like a path's."""
    names = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def unknown_key(key: str) -> str:
    """What to say of a key at the top that no suite has."""
    if key in Plan.model_fields:
        return f"{key} is for judge run and not for a suite; leave it out"
    return unknown("key", key, sorted({*OPTIONS, *Spec.model_fields}))


def _read(path: Path, found: list[tuple[int, str]]) -> tuple[Any, dict[str, Any]]:
    """The tree with anchors and merged keys in place, and what it says; what is wrong with keys is `found`."""
    if path.suffix in _DATA and path.is_file():
        raise ConfigError(f"{path}: this is data, and no suite; judge suite init {path} writes one from it")
    try:
        root = yaml_lines.tree(path.read_text(encoding="utf-8"))
        if isinstance(root, yaml.MappingNode):
            found += _keys(root)
        values = {} if found else yaml_lines.construct(root)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text") from error
    except yaml_lines.Malformed as error:
        raise ConfigError(f"{path}{f':{error.line}' if error.line else ''}: {one_line(str(error))}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path}:1: expected keys such as data: and cases:; judge suite init DATA writes a file")
    return root, values


def _keys(root: yaml.Node) -> list[tuple[int, str]]:
    """Keys that are no text or stand twice in one mapping (those that are merged in may), and numbers in disguise."""
    found: list[tuple[int, str]] = []
    seen, ahead = set(), [root]
    while ahead:
        node = ahead.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            found += _number(node)
            continue
        if isinstance(node, yaml.SequenceNode):
            ahead += node.value
            continue
        names: set[str] = set()
        for key, value in node.value:
            at = key.start_mark.line + 1
            if key.tag not in (_TEXT, _MERGE):
                found.append(
                    (at, f"the key {one_line(str(key.value), 40)}: YAML takes it for no text; put it in quotes")
                )
            elif key.tag == _TEXT and key.value in names:
                found.append((at, f"{key.value} stands here for the second time"))
            names.add(str(key.value))
            ahead.append(value)
    return found


def _number(node: yaml.ScalarNode) -> Iterator[tuple[int, str]]:
    """What is wrong with a number that is not what it reads: to YAML `010` is 8, and `12:30` is 750."""
    whole = node.tag == _NUMBERS[0] and not _DECIMAL.fullmatch(node.value)
    if whole or (node.tag == _NUMBERS[1] and set(node.value) & {":", "_"}):
        said = f"{one_line(node.value, 40)}: YAML takes it for another number than it reads; put it in quotes"
        yield node.start_mark.line + 1, said
