"""Records as rows of Parquet files: a field is a column, whose Arrow type follows from the field's type.

Text is stored as UTF-8, so a lone surrogate becomes U+FFFD. What has no type below is stored as JSON, in which what JSON
has no type for (dates, tuples) becomes text or a list. All else comes back equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, fields, is_dataclass
from functools import cache
from math import isfinite
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import pyarrow as pa
from pydantic import TypeAdapter

from judge.core.records import whole

R = TypeVar("R")

_TEXTS = pa.list_(pa.string())
_ARROW_TYPES: dict[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    tuple[str, ...]: _TEXTS,
}
_ADDED_LATER = ("raters",)
"""Fields that are empty if an older file lacks their column, as are all that have a default value."""


@dataclass(frozen=True, slots=True)
class StoredField:
    """A field of a record as a column: its Arrow type and, if it is stored as JSON, what reads that."""

    name: str
    type: pa.DataType
    is_optional: bool
    default: Any
    adapter: TypeAdapter[Any] | None

    def to_cell(self, value: Any) -> Any:
        """Return the value as it is stored."""
        if value is None:
            return None
        if self.adapter is not None:
            return None if value == () else json_cell(value)
        if isinstance(value, str):
            return whole(value)
        return [whole(text) for text in value] if isinstance(value, tuple) else value

    def to_values(self, cells: Sequence[Any]) -> Sequence[Any]:
        """Return the values of stored cells. Raises ValueError if one is missing, or not what a run writes."""
        if self.adapter is not None:
            return [self._parse(cell) for cell in cells]
        if self.type == _TEXTS:
            if any(cell is None or None in cell for cell in cells):
                raise self._bad_value()
            return [tuple(cell) for cell in cells]
        if self.is_optional:
            return cells
        if None in cells or (self.type == pa.float64() and not all(map(isfinite, cells))):
            raise self._bad_value()
        return cells

    def _parse(self, cell: str | None) -> Any:
        if cell is not None and self.adapter is not None:
            return self.adapter.validate_json(cell)
        if self.is_optional:
            return None
        if self.default == ():
            return ()
        raise self._bad_value()

    def _bad_value(self) -> ValueError:
        return ValueError(f"{self.name} lacks a value, or has one that no run writes")


def _stored_fields(record: type) -> dict[str, StoredField]:
    """Return the fields of a dataclass by name, but those that hold records, whose fields are columns themselves."""
    types = get_type_hints(record)
    kinds = {field.name: _without_none(types[field.name]) for field in fields(record)}
    return {
        field.name: _stored_field(field, types[field.name], kinds[field.name])
        for field in fields(record)
        if not is_dataclass(kinds[field.name])
    }


stored_fields: Callable[[type], dict[str, StoredField]] = cache(_stored_fields)


def _stored_field(field: Field[Any], type_: Any, kind: Any) -> StoredField:
    plain = str if get_origin(kind) is Literal else kind
    is_plain = plain in _ARROW_TYPES
    return StoredField(
        name=field.name,
        type=_ARROW_TYPES[plain] if is_plain else pa.string(),
        is_optional=type(None) in get_args(type_),
        default={} if field.name in _ADDED_LATER else field.default,
        adapter=None if is_plain else TypeAdapter(type_),
    )


def _without_none(type_: Any) -> Any:
    """Return what a field's type is besides None."""
    if get_origin(type_) not in (Union, UnionType):
        return type_
    kinds = [kind for kind in get_args(type_) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 else type_


def schema(*records: type) -> pa.Schema:
    """Return the Arrow schema of a file of records. A column that several of them have is there once."""
    columns = {
        name: each.type for record in records for name, each in stored_fields(record).items()
    }
    return pa.schema(list(columns.items()))


def to_row(*records: object) -> dict[str, Any]:
    """Return the cells of one row by column, which has the fields of these records."""
    return {
        name: each.to_cell(getattr(record, name))
        for record in records
        for name, each in stored_fields(type(record)).items()
    }


def from_columns(
    record: type[R], columns: Mapping[str, Sequence[Any]], **parts: Iterable[Any]
) -> Iterator[R]:
    """Yield the records of a file's columns; `parts` are the values of fields that hold records.

    A column that an older file lacks has its field's default. Raises ValueError for a cell that no run writes, and
    KeyError if a column is missing.
    """
    arguments: list[Iterable[Any]] = []
    stored = stored_fields(record)
    length = len(next(iter(columns.values()), ()))
    for field in fields(record):  # type: ignore[arg-type]
        if field.name in parts:
            arguments.append(parts[field.name])
            continue
        each = stored[field.name]
        if field.name not in columns and each.default is not MISSING:
            arguments.append([each.default] * length)
        else:
            arguments.append(each.to_values(columns[field.name]))
    return map(record, *arguments)


def _plain(value: Any) -> Any:
    """Return what JSON has a type for: numpy's numbers as Python's, records as mappings, all else as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    return value.item() if hasattr(value, "item") else str(value)


def json_cell(value: Any) -> str:
    """Return a value as JSON."""
    return whole(json.dumps(value, ensure_ascii=False, default=_plain))
