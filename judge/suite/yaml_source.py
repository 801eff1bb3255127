"""A suite's YAML file with the line of every value.

`YamlSource` collects the mistakes in a file and reports them all with their lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from judge.config import RunConfig
from judge.core import yaml_lines
from judge.core.errors import ConfigError
from judge.core.format import one_line
from judge.core.invalid_values import InvalidValue, invalid_values
from judge.core.messages import FORMER_SYSTEM, two_meanings_of_system
from judge.suite.case import MISTAKE, Case, required_keys
from judge.suite.expectations import EXPECTATIONS, matching_classes
from judge.suite.schema import schema

Location = tuple[int | str, ...]
"""The keys and indices that lead to a value: `("cases", 2, "expect", "min")`."""
_MAX_MISTAKES = 20
"""Mistakes in one error."""
_LONGEST_VALUE = 60
"""Characters of a value in a message."""
_LONGEST_KEY = 40
"""Characters of a key or number in a message."""
_TEXT_TAG = "tag:yaml.org,2002:str"
# The key `<<` takes over the keys of another mapping: `<<: *defaults`.
_MERGE_TAG = "tag:yaml.org,2002:merge"
_INTEGER_TAG = "tag:yaml.org,2002:int"
_FLOAT_TAG = "tag:yaml.org,2002:float"
# "750", "-3", but not "010" or "12:30"
_DECIMAL = re.compile(r"-?(0|[1-9]\d{0,999})")
_DATA_SUFFIXES = (".jsonl", ".csv", ".tsv", ".parquet")
Model = TypeVar("Model", bound=BaseModel)


class Mistakes:
    """Collect the mistakes in a file, to report them together."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at_lines: dict[tuple[int, str], None] = {}

    def add(self, message: str, line: int) -> None:
        """Add a mistake; the same one counts once."""
        self._at_lines[line, one_line(message)] = None

    def raise_if_any(self) -> None:
        """Raise ConfigError with a line `FILE:LINE: message` for each mistake, in order."""
        mistakes = sorted(self._at_lines)
        if not mistakes:
            return
        lines = [
            f"{self.path}:{line}: {message}"
            for line, message in mistakes[:_MAX_MISTAKES]
        ]
        n_hidden = len(mistakes) - len(lines)
        if n_hidden:
            lines.append(f"{self.path}: {n_hidden} more")
        raise ConfigError("\n".join(lines))


class YamlSource(Mistakes):
    """A YAML file with keys at its top: its `values`, and the `lines` of the keys.

    Raises ConfigError for any other file, and for keys that are not text or occur twice.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if path.suffix in _DATA_SUFFIXES and path.is_file():
            raise ConfigError(
                f"{path}: this is data, not a suite; judge init --suite {path} writes one from it"
            )
        try:
            root = yaml_lines.tree(path.read_text(encoding="utf-8"))
            if isinstance(root, yaml.MappingNode):
                self._check_keys(root)
            values = {} if self._at_lines else yaml_lines.construct(root)
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: not UTF-8 text") from error
        except yaml_lines.Malformed as error:
            line = f":{error.line}" if error.line else ""
            raise ConfigError(f"{path}{line}: {one_line(str(error))}") from error
        if not isinstance(values, dict):
            raise ConfigError(
                f"{path}:1: expected keys such as data: and cases:; judge init --suite DATA "
                "writes one"
            )
        self._root: Any = root
        self.values = values
        self.raise_if_any()
        self.lines: Mapping[str, int] = {key: self.line(key) for key in self.values}

    def line(self, *location: int | str) -> int:
        """Return the line of the key or value at `location`, or of the deepest one on the way."""
        node = self._root
        line = node.start_mark.line
        for key_or_index in location:
            if isinstance(node, yaml.SequenceNode) and isinstance(key_or_index, int):
                node = node.value[key_or_index]
                line = node.start_mark.line
            elif isinstance(node, yaml.MappingNode):
                entry = _entry(node, key_or_index)
                if entry is None:
                    break
                key, node = entry
                line = key.start_mark.line
        return int(line) + 1

    def report(self, message: str, *location: int | str) -> None:
        """Add a mistake with the line of a key or value, for `raise_if_any`."""
        self.add(message, self.line(*location))

    def _check_keys(self, root: yaml.Node) -> None:
        """Report keys that are not text, and ambiguous numbers."""
        # An alias (*name) refers to a node that was seen already, perhaps even to its own parent.
        seen: set[int] = set()
        # Each node with whether it is part of a criterion.
        nodes = [(root, False)]
        while nodes:
            node, in_criterion = nodes.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, yaml.ScalarNode):
                self._check_number(node)
            elif isinstance(node, yaml.SequenceNode):
                nodes += [(entry, in_criterion) for entry in node.value]
            else:
                for key, value in node.value:
                    self._check_key(key, in_criterion=in_criterion)
                    is_criteria = node is root and key.value == "criteria"
                    nodes.append((value, in_criterion or is_criteria))

    def _check_number(self, node: yaml.ScalarNode) -> None:
        """Report a number that YAML reads as another one: `010` is 8, and `12:30` is 750."""
        is_unusual = node.tag == _INTEGER_TAG and not _DECIMAL.fullmatch(node.value)
        has_separators = node.tag == _FLOAT_TAG and set(node.value) & {":", "_"}
        if is_unusual or has_separators:
            written = one_line(node.value, _LONGEST_KEY)
            message = f"{written}: YAML reads it as another number; put it in quotes"
            self.add(message, node.start_mark.line + 1)

    def _check_key(self, key: yaml.Node, *, in_criterion: bool) -> None:
        """Report a key that is not text."""
        # A criterion describes its levels as in a file of its own: `levels: {1: It is rude.}`.
        is_level = (
            in_criterion and key.tag == _INTEGER_TAG and _DECIMAL.fullmatch(key.value)
        )
        if key.tag not in (_TEXT_TAG, _MERGE_TAG) and not is_level:
            key_name = one_line(str(key.value), _LONGEST_KEY)
            message = (
                f"the key {key_name}: YAML does not read it as text; put it in quotes"
            )
            self.add(message, key.start_mark.line + 1)

    def checked(self, model: type[Model], values: Mapping[str, Any]) -> Model:
        """Return the model of these values, or report invalid ones and return an empty model."""
        try:
            return model.model_validate(values)
        except ValidationError as error:
            refused = invalid_values(error)
        misspelt = {invalid.path[:-1] for invalid in refused if invalid.is_unknown_key}
        for invalid in refused:
            # A key that is missing beside an unknown one was probably misspelt.
            if invalid.kind == "missing" and invalid.path[:-1] in misspelt:
                continue
            for message, location in self._describe(invalid):
                self.report(message, *location)
        return model.model_construct()

    def _describe(self, refused: InvalidValue) -> Iterator[tuple[str, Location]]:
        """Yield what is wrong with a value, with its location in the file."""
        location = refused.path
        if location[:1] == ("cases",):
            # Pydantic's third part names the expectation and is no key of the file.
            location = (*location[:2], *location[3:])
        key_names = [
            key_or_index for key_or_index in location if isinstance(key_or_index, str)
        ]
        key = key_names[-1] if key_names else ""
        if refused.kind == MISTAKE:
            yield refused.context["message"], (*location, *refused.context["keys"])
        elif refused.kind == "union_tag_not_found" and isinstance(refused.value, dict):
            yield from self._describe_unclear_case(refused.value, location)
        elif refused.is_unknown_key:
            if key == FORMER_SYSTEM and location[0] == "model":
                yield _former_system(), location
            else:
                yield unknown_key(key, inside=len(location) > 1), location
        elif refused.kind == "missing":
            yield f"{key} is missing", location
        elif refused.says_all:
            yield f"{key}: {refused.problem}", location
        else:
            value = one_line(short_repr(refused.value), _LONGEST_VALUE)
            yield f"{key}: {refused.problem}, not {value}", location

    def _describe_unclear_case(
        self,
        keys: Mapping[str, Any],
        location: Location,
    ) -> Iterator[tuple[str, Location]]:
        """Describe a case without an expectation, or with several."""
        unknown = [key for key in keys if key not in _known_keys(inside=True)]
        matching = matching_classes(keys)
        if unknown:
            for key in unknown:
                yield unknown_key(key, inside=True), (*location, key)
        elif matching:
            expectations = self._describe_expectations(matching, keys, location)
            yield (
                f"a case has one expectation, and this one has {expectations}; write "
                f"{len(matching)} cases",
                location,
            )
        else:
            required = [
                " and ".join(required_keys(expectation)) for expectation in EXPECTATIONS
            ]
            *others, last = dict.fromkeys(required)
            yield f"no expectation: write {', '.join(others)}, or {last}", location

    def _describe_expectations(
        self,
        matching: Sequence[type[Case]],
        keys: Mapping[str, Any],
        location: Location,
    ) -> str:
        """Name the keys that select these expectations, with their lines."""
        selecting_keys: dict[str, None] = {}
        for expectation in matching:
            for required_key in required_keys(expectation):
                if keys.get(required_key) is not None:
                    selecting_keys[required_key] = None
        located = [
            f"{key} (line {self.line(*location, key)})" for key in selecting_keys
        ]
        return " and ".join(located)


def _entry(
    node: yaml.MappingNode, key_name: int | str
) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the last key of this name and its value."""
    for key, value in reversed(node.value):
        if key.value == key_name:
            return key, value
    return None


@cache
def _known_keys(*, inside: bool) -> frozenset[str]:
    """Return every key at the top of a suite, or of the models inside it."""
    document = schema()
    # The schema has them all: the keys of the options, of the cases and of the models in them.
    models = document["$defs"].values() if inside else [document]
    known_keys: set[str] = set()
    for model in models:
        known_keys.update(model.get("properties", ()))
    return frozenset(known_keys)


def _former_system() -> str:
    """Return the message about the former name of the system message."""
    meanings = two_meanings_of_system("system_message: TEXT", "In a case, system: NAME")
    return f"{FORMER_SYSTEM}: {meanings}"


def unknown_key(key: str, *, inside: bool = False) -> str:
    """Return the message about a key that is not allowed at the top, or `inside` another key."""
    if key == FORMER_SYSTEM and not inside:
        return _former_system()
    # A known key at the wrong level is indented too far, or not far enough.
    if key in _known_keys(inside=True) | _known_keys(inside=False):
        return f"{key} does not belong here"
    if key in RunConfig.model_fields:
        return f"{key} is for judge run and not for a suite; leave it out"
    nearest = get_close_matches(key, _known_keys(inside=inside), n=1)
    suggestion = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return f"unknown key {key!r}{suggestion}"
