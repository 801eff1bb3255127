"""Records as rows of Parquet files. Oracle: what was written comes back, through pyarrow's own file."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from judge.core.stored_records import from_columns, json_cell, schema, to_row


@dataclass(frozen=True)
class Origin:
    """A record in a record."""

    tool: str
    version: int = 1


@dataclass(frozen=True)
class Reply:
    """A field of each kind."""

    text: str
    value: float
    origin: Origin
    seconds: float | None = None
    kind: Literal["short", "long"] | None = None
    tags: tuple[str, ...] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    parts: tuple[Origin, ...] = ()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
numbers = st.floats(allow_nan=False, allow_infinity=False)
origins = st.builds(Origin, texts, st.integers(0, 1_000))
replies = st.builds(
    Reply,
    text=texts,
    value=numbers,
    origin=origins,
    seconds=st.none() | numbers,
    kind=st.sampled_from([None, "short", "long"]),
    tags=st.lists(texts, max_size=2).map(tuple),
    shares=st.dictionaries(texts, numbers, max_size=2),
    parts=st.lists(origins, max_size=2).map(tuple),
)


def columns_of_file(records: list[Reply]) -> dict[str, list[Any]]:
    """The columns of a Parquet file of these records, as pyarrow reads them."""
    rows = [to_row(record, record.origin) for record in records]
    file = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema(Reply, Origin)), file)
    return parquet.read_table(file).to_pydict()


def read(columns: dict[str, list[Any]]) -> list[Reply]:
    return list(from_columns(Reply, columns, origin=from_columns(Origin, columns)))


@given(st.lists(replies, max_size=4))
def test_records_come_back_equal(records: list[Reply]) -> None:
    assert read(columns_of_file(records)) == records


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ({"a": np.array([1, 2])}, {"a": [1, 2]}),
        ({"a": np.float32(0.5)}, {"a": 0.5}),
        ({"a": date(2026, 1, 2)}, {"a": "2026-01-02"}),
        ({(1, 2): 3}, {"(1, 2)": 3}),
        ({np.int64(1): "x"}, {"1": "x"}),
        ({"a": [{date(2026, 1, 2): 3}]}, {"a": [{"2026-01-02": 3}]}),
    ],
)
def test_a_value_or_key_of_any_type_is_stored(value: Any, stored: Any) -> None:
    assert json.loads(json_cell(value)) == stored


def test_a_column_has_the_arrow_type_of_its_field() -> None:
    types = {each.name: str(each.type) for each in schema(Reply, Origin)}
    assert types == {
        "text": "string", "value": "double", "seconds": "double", "kind": "string", "tags": "list<item: string>",
        "shares": "string", "parts": "string", "tool": "string", "version": "int64",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("text", None), ("value", None), ("value", float("nan")), ("tags", None), ("tags", [None]), ("shares", None),
        ("shares", "[1]"), ("version", None),
    ],
)  # fmt: skip
def test_a_cell_that_no_run_writes_is_an_error(column: str, cell: Any) -> None:
    columns = columns_of_file([Reply("a", 1.0, Origin("t"))]) | {column: [cell]}
    with pytest.raises(ValueError, match=column if cell != "[1]" else "dict"):
        read(columns)


def test_a_column_that_an_older_file_lacks_has_the_default() -> None:
    columns = columns_of_file([Reply("a", 1.0, Origin("t", 2), seconds=3.0, tags=("x",))])
    for name in ("seconds", "tags", "version"):
        del columns[name]
    assert read(columns) == [Reply("a", 1.0, Origin("t"))]
    del columns["text"]
    with pytest.raises(KeyError, match="text"):
        read(columns)
