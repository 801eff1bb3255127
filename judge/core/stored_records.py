"""Records as rows of Parquet files.

A field is a column, whose Arrow type follows from the field's type. Text is stored as UTF-8, so a
lone surrogate becomes U+FFFD. Values without a type below are stored as JSON, in which dates become
text and tuples lists. Everything else is read back equal.
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

from judge.core.format import to_json
from judge.core.normalization import whole

R = TypeVar("R")

_TEXTS = pa.list_(pa.string())
_ARROW_TYPES: dict[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    tuple[str, ...]: _TEXTS,
}
# Mappings that older files lack. Their default is a factory, which `Field.default` does not show.
_ADDED_LATER = ("raters",)


@dataclass(frozen=True, slots=True)
class StoredField:
    """A field of a record as a column.

    - `type`: the column's Arrow type.
    - `is_optional`: whether the value may be None.
    - `default`: the value if an older file lacks the column; MISSING if that is an error.
    - `adapter`: parses the JSON of a field that is stored as JSON, and is None for all others.
    """

    name: str
    type: pa.DataType
    is_optional: bool
    default: Any
    adapter: TypeAdapter[Any] | None

    def to_cell(self, value: Any) -> Any:
        """Return the value in its stored form."""
        if value is None:
            return None
        if self.adapter is not None:
            if value == ():
                return None
            return json_cell(value)
        if isinstance(value, str):
            return whole(value)
        if isinstance(value, tuple):
            return [whole(text) for text in value]
        return value

    def to_values(self, cells: Sequence[Any]) -> Sequence[Any]:
        """Return the values of stored cells.

        Raises ValueError if one is missing, or if no run writes such a value.
        """
        if self.adapter is not None:
            parse = self.adapter.validate_json
            values = []
            for cell in cells:
                value = self._of_empty_cell() if cell is None else parse(cell)
                values.append(value)
            return values
        if self.type == _TEXTS:
            if any(cell is None or None in cell for cell in cells):
                raise self._bad_value()
            return [tuple(cell) for cell in cells]
        if self.is_optional:
            return cells
        if None in cells:
            raise self._bad_value()
        if self.type == pa.float64() and not all(map(isfinite, cells)):
            raise self._bad_value()
        return cells

    def _of_empty_cell(self) -> Any:
        """Return the value that is stored as an empty cell. Raises ValueError if there is none."""
        if self.is_optional:
            return None
        if self.default == ():
            return ()
        raise self._bad_value()

    def _bad_value(self) -> ValueError:
        return ValueError(f"{self.name} lacks a value, or has one that no run writes")


def _stored_fields(record: type) -> dict[str, StoredField]:
    """Return the fields of a dataclass by name.

    Fields that are records are left out, because their own fields are columns.
    """
    types = get_type_hints(record)
    stored = {}
    for field in fields(record):
        field_type = _without_none(types[field.name])
        if not is_dataclass(field_type):
            stored[field.name] = _stored_field(field, types[field.name])
    return stored


stored_fields: Callable[[type], dict[str, StoredField]] = cache(_stored_fields)


def _stored_field(field: Field[Any], annotation: Any) -> StoredField:
    """Describe a field with this annotation, such as `float | None`."""
    value_type = _without_none(annotation)
    if get_origin(value_type) is Literal:
        # A literal is stored as its text: `Literal["output", "conversation"]`.
        value_type = str
    adapter = None
    arrow_type = _ARROW_TYPES.get(value_type)
    if arrow_type is None:
        # A value without an Arrow type is stored as JSON.
        arrow_type = pa.string()
        adapter = TypeAdapter(annotation)
    default = {} if field.name in _ADDED_LATER else field.default
    return StoredField(
        name=field.name,
        type=arrow_type,
        is_optional=type(None) in get_args(annotation),
        default=default,
        adapter=adapter,
    )


def _without_none(type_: Any) -> Any:
    """Return a field's type without None: `float` for `float | None`."""
    if get_origin(type_) not in (Union, UnionType):
        return type_
    members = [member for member in get_args(type_) if member is not type(None)]
    if len(members) == 1:
        return members[0]
    return type_


def schema(*records: type) -> pa.Schema:
    """Return the Arrow schema of a file of records. A column of several records occurs once."""
    columns = {}
    for record in records:
        for field_name, field in stored_fields(record).items():
            columns[field_name] = field.type
    return pa.schema(list(columns.items()))


def to_row(*records: object) -> dict[str, Any]:
    """Return the cells of one row by column, which has the fields of these records."""
    row = {}
    for record in records:
        for field_name, field in stored_fields(type(record)).items():
            row[field_name] = field.to_cell(getattr(record, field_name))
    return row


def from_columns(
    record: type[R],
    columns: Mapping[str, Sequence[Any]],
    **parts: Iterable[Any],
) -> Iterator[R]:
    """Yield the records of a file's columns; `parts` are the values of fields that are records.

    A column that an older file lacks has its field's default. Raises ValueError for a cell that no
    run writes, and KeyError if a column is missing.
    """
    arguments: list[Iterable[Any]] = []
    stored = stored_fields(record)
    first_column = next(iter(columns.values()), ())
    n_rows = len(first_column)
    for field in fields(record):  # type: ignore[arg-type]
        if field.name in parts:
            arguments.append(parts[field.name])
            continue
        stored_field = stored[field.name]
        if field.name not in columns and stored_field.default is not MISSING:
            arguments.append([stored_field.default] * n_rows)
        else:
            cells = columns[field.name]
            arguments.append(stored_field.to_values(cells))
    # Column by column, and then one call for each row: a table may have millions of them.
    return map(record, *arguments)


def _plain(value: Any) -> Any:
    """Return a value of one of JSON's types.

    NumPy's numbers and arrays become Python's, records become mappings, and everything else text.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def json_cell(value: Any) -> str:
    """Return a value as JSON."""
    try:
        cell = json.dumps(value, ensure_ascii=False, default=_plain)
    except TypeError:
        # A key that JSON does not allow, such as a tuple or a date. As text, it costs no paid run.
        cell = json.dumps(to_json(value), ensure_ascii=False)
    return whole(cell)
