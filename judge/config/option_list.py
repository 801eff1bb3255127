"""The options of a command and the JSON schemas, made from the fields of `RunConfig`."""

from __future__ import annotations

from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from judge.config.run_config import Command, Group, RankConfig, RunConfig


@dataclass(frozen=True, slots=True)
class Option:
    """A field of `RunConfig`, as the interfaces show it."""

    name: str
    description: str
    group: str
    metavar: str
    default: Any
    annotation: Any

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types that a value may have, without None."""
        member_types: tuple[Any, ...] = (self.annotation,)
        if get_origin(self.annotation) in (Union, UnionType):
            member_types = get_args(self.annotation)
        return tuple(
            member_type for member_type in member_types if member_type is not type(None)
        )

    @property
    def choices(self) -> tuple[Any, ...]:
        """The only values that there are; () for an option of any other value."""
        values: list[Any] = []
        for value_type in self.kinds:
            if get_origin(value_type) is Literal:
                values += get_args(value_type)
        return tuple(filter(None, values))


def run_options(
    command: Command, config: type[RunConfig] | None = None
) -> dict[str, Option]:
    """Return the options that a command takes by name, in the order of their groups."""
    groups = get_args(Group)
    options: list[Option] = []
    for option_name, field in (config or RunConfig).model_fields.items():
        extra: Any = field.json_schema_extra
        if command in extra["lacking"]:
            continue
        option = Option(
            option_name,
            description=field.description or "",
            group=extra["group"],
            metavar=extra["metavar"],
            default=field.default,
            annotation=field.annotation,
        )
        options.append(option)
    options.sort(key=lambda option: groups.index(option.group))
    return {option.name: option for option in options}


def json_schema(model: type[BaseModel], title: str, description: str) -> dict[str, Any]:
    """Return the JSON schema (2020-12) of a file: as people write it, without nulls."""
    definition = _terse(model.model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **definition,
        "description": description,
    }


def run_schema(config: type[RunConfig] | None = None) -> dict[str, Any]:
    """Return the JSON schema of run.yaml, which also has the options of a ranking."""
    title = "judge.run/1"
    description = "Configuration of judge run and judge rank."
    schema = json_schema(config or RunConfig, title, description)
    ranking_schema = json_schema(RankConfig, title, description)
    properties = ranking_schema["properties"] | schema["properties"]
    return schema | {"properties": properties}


_OWN_KEYS = ("title", "group", "metavar", "lacking")
"""Keys of a field that only judge reads."""


def _terse(node: Any) -> Any:
    """Drop titles, nulls and our own keys, and write `anyOf` of plain types as one list."""
    if isinstance(node, list):
        return [_terse(entry) for entry in node if entry != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    fields: dict[str, Any] = {}
    for key_name, value in node.items():
        if _is_shown(key_name, value):
            fields[key_name] = _terse(value)
    alternatives = fields.get("anyOf", [])
    if len(alternatives) == 1 and "required" not in alternatives[0]:
        del fields["anyOf"]
        return alternatives[0] | fields
    if alternatives and all(entry.keys() == {"type"} for entry in alternatives):
        del fields["anyOf"]
        fields["type"] = [entry["type"] for entry in alternatives]
    return fields


def _is_shown(key_name: str, value: Any) -> bool:
    """Return whether a key of a schema says something; a property may have the name of a key."""
    if key_name in _OWN_KEYS and not isinstance(value, dict):
        return False
    return not (key_name == "default" and value in (None, "", [], {}))
