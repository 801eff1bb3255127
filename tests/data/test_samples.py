"""Reading samples. Oracles: rows by hand, the same rows written by csv, pandas and pyarrow, and hashlib."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.errors import DataError
from judge.core.records import Sample
from judge.data import samples
from tests.factories import has_line

ROWS: list[dict[str, Any]] = [
    {
        "item": "1",
        "system": "a",
        "output": "The ferry was late.",
        "source": "A ferry, due at nine,\ncame at noon.",
        "references": ["The ferry came late.", "Ferry three hours late"],
        "human": {"coherence": 4.5, "fluency": 3.0},
        "topic": "travel",
    },
    {
        "item": "1",
        "system": "b",
        "output": "",
        "source": "A ferry, due at nine,\ncame at noon.",
        "references": ["The ferry came late.", "Ferry three hours late"],
        "human": {"coherence": 1.0, "fluency": 2.0},
        "topic": "travel",
    },
    {
        "item": "2",
        "system": "a",
        "output": '배가 "늦었다"',
        "source": "船",
        "references": ["배가 늦게 왔다"],
        "human": {"coherence": 5.0},
        "topic": "여행",
    },
]
ANY = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)


def as_jsonl(path: Path) -> None:
    path.write_text(
        "\n\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS), encoding="utf-8"
    )


def as_json(path: Path) -> None:
    path.write_text(json.dumps(ROWS, indent=1), encoding="utf-8")


def as_table(path: Path) -> None:
    flat = [
        row | {"references": json.dumps(row["references"]), "human": json.dumps(row["human"])}
        for row in ROWS
    ]
    pd.DataFrame(flat).to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=False)


def as_table_of_ratings(path: Path) -> None:
    """Write a table with rating columns, empty cells for missing ratings, and the index column of pandas."""
    flat = pd.json_normalize([row | {"references": json.dumps(row["references"])} for row in ROWS])
    flat.to_csv(path)


def as_parquet(path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), path)


def as_parquet_with_maps(path: Path) -> None:
    kinds = {"references": pa.list_(pa.string()), "human": pa.map_(pa.string(), pa.float64())}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in ROWS[0]])
    pq.write_table(pa.Table.from_pylist(ROWS, schema=schema), path)


def with_byte_order_mark(write: Callable[[Path], None]) -> Callable[[Path], None]:
    def write_with_mark(path: Path) -> None:
        write(path)
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    return write_with_mark


def without_location(loaded: list[Sample]) -> list[tuple[Any, ...]]:
    return [(s.item, s.system, s.output, s.source, s.references, s.human, s.extra) for s in loaded]


EXPECTED = [
    (
        row["item"],
        row["system"],
        row["output"],
        row["source"],
        tuple(row["references"]),
        row["human"],
        {"topic": row["topic"]},
    )
    for row in ROWS
]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("d.jsonl", as_jsonl),
        ("d.JSONL", as_jsonl),
        ("d.ndjson", with_byte_order_mark(as_jsonl)),
        ("d.json", as_json),
        ("d.json", with_byte_order_mark(as_json)),
        ("d.csv", as_table),
        ("d.csv", with_byte_order_mark(as_table)),
        ("d.tsv", as_table),
        ("d.csv", as_table_of_ratings),
        ("d.parquet", as_parquet),
        ("d.parquet", as_parquet_with_maps),
    ],
)
def test_every_format_gives_the_same_samples(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    path = tmp_path / name
    write(path)
    assert without_location(samples.load(path)) == EXPECTED
    assert without_location(samples.load(str(path))) == EXPECTED


@pytest.mark.parametrize(
    "data",
    [ROWS, pd.DataFrame(ROWS), (row for row in [*ROWS])],
    ids=["dicts", "frame", "generator"],
)
def test_rows_in_memory_give_the_same_samples(data: Any) -> None:
    loaded = samples.load(data)
    assert without_location(loaded) == EXPECTED
    assert [s.where for s in loaded] == ["row 1", "row 2", "row 3"]


def test_a_frame_with_arrays_gives_the_same_samples(tmp_path: Path) -> None:
    """pandas reads lists as numpy arrays."""
    as_parquet(tmp_path / "d.parquet")
    assert without_location(samples.load(pd.read_parquet(tmp_path / "d.parquet"))) == EXPECTED


@given(st.lists(st.tuples(ANY, ANY.filter(str.strip)), min_size=1, max_size=5))
def test_any_csv_file_of_the_csv_module_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "d.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([("output", "topic"), *rows])
    assert [(s.output, s.extra["topic"]) for s in samples.load(path)] == rows


def test_the_location_names_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    as_jsonl(Path("d.jsonl"))
    as_json(Path("d.json"))
    as_table(Path("d.csv"))
    as_parquet(Path("d.parquet"))
    assert [s.where for s in samples.load("d.jsonl")] == ["d.jsonl:1", "d.jsonl:3", "d.jsonl:5"]
    assert [s.where for s in samples.load("d.json")] == [
        "d.json row 1",
        "d.json row 2",
        "d.json row 3",
    ]
    # The source's line break makes each of the first two rows two lines long.
    assert [s.where for s in samples.load("d.csv")] == ["d.csv:2", "d.csv:4", "d.csv:6"]
    assert [s.where for s in samples.load("d.parquet")] == [
        "d.parquet row 1",
        "d.parquet row 2",
        "d.parquet row 3",
    ]


# Mapping and wide form


def test_a_mapped_column_does_not_keep_its_old_name() -> None:
    row = {
        "doc_id": 7,
        "model": "x",
        "summary": "s",
        "article": "t",
        "gold": "r",
        "score": 3,
        "kind": "news",
    }
    mapping = {
        "item": "doc_id",
        "system": "model",
        "output": "summary",
        "source": "article",
        "references": "gold",
        "rating": "score",
        "topic": "kind",
    }
    loaded = samples.load([row], mapping=mapping)
    assert loaded == [
        Sample("7", "x", "s", "t", ("r",), {"overall": 3.0}, {"topic": "news"}, where="row 1")
    ]


def test_a_mapping_may_swap_share_and_replace_columns() -> None:
    row = {"id": "k", "source": "answer", "output": "question", "old": "o"}
    mapping = {"output": "source", "source": "output", "item": "id", "key": "id"}
    (sample,) = samples.load([row], mapping=mapping)
    assert (sample.output, sample.source, sample.item) == ("answer", "question", "k")
    assert sample.extra == {"key": "k", "old": "o"}
    (sample,) = samples.load([row], mapping={"output": "old"})
    assert (sample.output, sample.extra) == ("o", {"id": "k"})


def test_wide_form_gives_one_sample_per_system() -> None:
    rows = [
        {"article": "t1", "a": "x1", "b": "", "system": "ignored", "topic": "u"},
        {"article": "t2", "a": "x2", "b": "y2", "system": "ignored", "topic": "v"},
    ]
    loaded = samples.load(rows, mapping={"source": "article"}, systems=["a", "b"])
    assert [(s.item, s.system, s.output, s.source, s.extra) for s in loaded] == [
        ("1", "a", "x1", "t1", {"topic": "u"}),
        ("1", "b", "", "t1", {"topic": "u"}),
        ("2", "a", "x2", "t2", {"topic": "v"}),
        ("2", "b", "y2", "t2", {"topic": "v"}),
    ]


def test_wide_form_maps_columns_of_each_system() -> None:
    row = {
        "a": "x",
        "b": "y",
        "by": "z",
        "a_anna": 5,
        "b_anna": 1,
        "a_ben": 3,
        "b_ben": None,
        "a_ref": "r",
        "b_ref": "s",
    }
    mapping = {"rating.relevance": ["{system}_anna", "{system}_ben"], "references": "{system}_ref"}
    a, b = samples.load([row], mapping=mapping, systems=["a", "b"])
    assert (a.human, a.ratings) == ({"relevance": 4.0}, {"relevance": (5.0, 3.0)})
    assert (b.human, b.ratings) == ({"relevance": 1.0}, {"relevance": (1.0, None)})
    assert (a.references, b.references) == (("r",), ("s",))
    assert a.extra == b.extra == {"by": "z"}


def test_the_only_system_of_wide_form_has_the_ratings_of_the_row() -> None:
    (sample,) = samples.load([{"a": "x", "human": 4}], systems=["a"])
    assert sample.human == {"overall": 4.0}


def test_a_system_of_wide_form_may_be_named_human() -> None:
    assert samples.load([{"human": "1", "b": "2"}], systems=["human", "b"])[0].system == "human"


def test_wide_form_may_have_a_column_of_items() -> None:
    loaded = samples.load([{"item": "x", "a": "1", "b": "2"}], systems=["a", "b"])
    assert [(s.item, s.system) for s in loaded] == [("x", "a"), ("x", "b")]


def test_rows_without_item_and_system_are_separate_items() -> None:
    loaded = samples.load([{"output": "x"}, {"output": "y"}])
    assert [(s.item, s.system) for s in loaded] == [("1", "system"), ("2", "system")]


def test_samples_are_accepted_and_not_copied() -> None:
    sample = Sample("1", "a", "x", where="here")
    loaded = samples.load([sample, {"item": "1", "system": "b", "output": "y"}])
    assert loaded[0] is sample
    assert loaded[1].system == "b"


# Cells


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"references": "one"}, ("one",)),
        ({"references": ["one", None, ""]}, ("one", "")),
        ({"references": ("one",)}, ("one",)),
        ({"references": np.array(["one", "two"], dtype=object)}, ("one", "two")),
        ({"references": None, "reference": "one"}, ("one",)),
        ({"reference": ["one", "two"]}, ("one", "two")),
        ({"references": ["one"], "reference": "two"}, ("one",)),
        ({"references": '["one"]'}, ('["one"]',)),  # only a text table has lists in cells
        ({"references": [], "reference": None}, ()),
        ({}, ()),
    ],
)
def test_references_are_a_text_or_a_list(cells: dict[str, Any], expected: tuple[str, ...]) -> None:
    (sample,) = samples.load([{"output": "x", **cells}])
    assert sample.references == expected


def test_a_single_reference_is_also_a_column_for_templates() -> None:
    (sample,) = samples.load([{"output": "x", "reference": "one"}])
    assert sample.extra == {"reference": "one"}


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('["one", "two"]', ("one", "two")),
        ("[sic] one", ("[sic] one",)),
        ("[1]", ("[1]",)),
        ("[" * 10_000, ("[" * 10_000,)),
        ("", ()),
    ],
)
def test_a_cell_of_a_text_table_may_be_a_list_of_references(
    tmp_path: Path, cell: str, expected: tuple[str, ...]
) -> None:
    pd.DataFrame([{"output": "[1]", "references": cell}]).to_csv(tmp_path / "d.csv", index=False)
    (sample,) = samples.load(tmp_path / "d.csv")
    assert (sample.output, sample.references) == ("[1]", expected)


TEXTS = st.lists(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=12), min_size=2, max_size=4
)


@given(texts=TEXTS, kind=st.sampled_from(["list", "tuple", "array", "JSON"]), again=st.booleans())
def test_a_list_of_texts_written_by_pandas_is_read_unchanged(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], kind: str, again: bool
) -> None:
    cell_by_kind: dict[str, Any] = {
        "list": texts,
        "tuple": tuple(texts),
        "array": np.array(texts, dtype=object),
        "JSON": json.dumps(texts),
    }
    path = tmp_path_factory.mktemp("lists") / "d.csv"
    frame = pd.DataFrame({"output": ["x"], "references": [None]})
    frame.at[0, "references"] = cell_by_kind[kind]
    frame.to_csv(path, index=False)
    data = pd.read_csv(path, keep_default_na=False) if again else path
    (sample,) = samples.load(data)
    assert list(sample.references) == texts


@pytest.mark.parametrize(
    ("cell", "votes"),
    [
        ("[4, 5]", (4.0, 5.0)),
        ("[4.0, nan]", (4.0, None)),
        ("[4, None]", (4.0, None)),
        ("(4, 5)", (4.0, 5.0)),
        ("[4. 5.]", (4.0, 5.0)),
        ("[ 4. nan -1.]", (4.0, None, -1.0)),
        ("[np.float64(4.5), np.int64(5)]", (4.5, 5.0)),
        ("[np.float16(4.5), np.uint8(5), np.int8(-1)]", (4.5, 5.0, -1.0)),
        ("[np.longdouble('4.5'), Decimal('5')]", (4.5, 5.0)),
        ("[np.True_, np.False_]", (1.0, 0.0)),
        ("array([4, 5])", None),
    ],
)
def test_a_list_of_ratings_written_by_pandas_is_read(
    cell: str, votes: tuple[float | None, ...] | None
) -> None:
    rows = pd.DataFrame([{"output": "x", "human.a": cell}])
    if votes is None:
        with pytest.raises(DataError, match="not a number"):
            samples.load(rows)
    else:
        (sample,) = samples.load(rows)
        assert sample.ratings == {"a": votes}


@pytest.mark.parametrize(
    "text",
    [
        "['quoted' text]", "[it's late]", "('one')", "('a' + 'b', 'c')", "[x for x in y]", "['a', 3]", "[print('a')]",
        "['a'].pop()", "{'a': 'b'}", "[sic] 'a', 'b'",
    ],
)  # fmt: skip
def test_a_text_in_brackets_is_not_a_list(text: str) -> None:
    (sample,) = samples.load(pd.DataFrame([{"output": "x", "references": text}]))
    assert sample.references == (text,)


def test_a_list_in_the_column_reference_is_a_list_for_templates() -> None:
    (sample,) = samples.load(pd.DataFrame([{"output": "x", "reference": "['a', 'b']"}]))
    assert (sample.references, sample.extra) == (("a", "b"), {"reference": ["a", "b"]})


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"human": {"a": 1, "b": 2.5, "c": None, "d": math.nan}}, {"a": 1.0, "b": 2.5}),
        ({"human": 4}, {"overall": 4.0}),
        ({"human": "4"}, {"overall": 4.0}),
        ({"human": True}, {"overall": 1.0}),
        ({"human": np.float32(0.5)}, {"overall": 0.5}),
        ({"human": math.nan}, {}),
        ({"human": None}, {}),
        ({"human": '{"a": 1}'}, {"a": 1.0}),
        ({"human": {"a": 1}, "human.b": "2", "human.c": ""}, {"a": 1.0, "b": 2.0}),
        ({}, {}),
    ],
)
def test_ratings_are_a_number_or_a_mapping(
    cells: dict[str, Any], expected: dict[str, float]
) -> None:
    (sample,) = samples.load([{"output": "x", **cells}])
    assert (sample.human, sample.extra) == (expected, {})


@pytest.mark.parametrize(
    ("cells", "human", "ratings"),
    [
        ({"human": {"a": [4, 5, 3], "b": 2}}, {"a": 4.0, "b": 2.0}, {"a": (4.0, 5.0, 3.0)}),
        ({"human": {"a": [4, None, math.nan, 1]}}, {"a": 2.5}, {"a": (4.0, None, None, 1.0)}),
        ({"human": {"a": [None, None], "b": []}}, {}, {}),
        ({"human": [1, 2]}, {"overall": 1.5}, {"overall": (1.0, 2.0)}),
        ({"human": np.array([1, 2])}, {"overall": 1.5}, {"overall": (1.0, 2.0)}),
        ({"human": {"a": np.array([1.0, math.nan])}}, {"a": 1.0}, {"a": (1.0, None)}),
        (
            {"human.a": "[3, null]", "human.b": " [4]"},
            {"a": 3.0, "b": 4.0},
            {"a": (3.0, None), "b": (4.0,)},
        ),
        ({"human": '{"a": [3, 4]}'}, {"a": 3.5}, {"a": (3.0, 4.0)}),
        ({"human": 3}, {"overall": 3.0}, {}),
    ],
)
def test_ratings_of_several_raters_are_a_list_with_a_mean(
    cells: dict[str, Any], human: dict[str, float], ratings: dict[str, Any]
) -> None:
    (sample,) = samples.load([{"output": "x", **cells}])
    assert (sample.human, sample.ratings, sample.extra) == (human, ratings, {})


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_ratings_of_several_raters_are_read_from_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"d.{suffix}"
    votes = [4, None, 3]
    if suffix == "jsonl":
        path.write_text(json.dumps({"output": "x", "human": {"a": votes}}), encoding="utf-8")
    elif suffix == "csv":
        pd.DataFrame([{"output": "x", "human.a": json.dumps(votes)}]).to_csv(path, index=False)
    else:
        pq.write_table(pa.Table.from_pylist([{"output": "x", "human": {"a": votes}}]), path)
    (sample,) = samples.load(path)
    assert (sample.human, sample.ratings) == ({"a": 3.5}, {"a": (4.0, None, 3.0)})


@pytest.mark.parametrize("column", ["rating.coherence", "human.coherence"])
def test_a_column_of_ratings_needs_no_mapping(column: str) -> None:
    (sample,) = samples.load([{"output": "x", column: 3, "rating": "five stars"}])
    assert (sample.human, sample.extra) == ({"coherence": 3.0}, {"rating": "five stars"})


def test_flat_ratings_can_be_mapped() -> None:
    (sample,) = samples.load([{"output": "x", "coh": 3}], mapping={"rating.coherence": "coh"})
    assert (sample.human, sample.extra) == ({"coherence": 3.0}, {})


def test_the_named_levels_of_an_index_are_columns() -> None:
    frame = pd.DataFrame({"item": ["a", "b"], "topic": ["x", "y"], "output": ["one", "two"]})
    by_item = samples.load(frame.set_index("item"))
    assert [sample.item for sample in by_item] == ["a", "b"]
    by_both = samples.load(frame.set_index(["topic", "item"]))
    assert [(sample.item, sample.extra) for sample in by_both] == [
        ("a", {"topic": "x"}),
        ("b", {"topic": "y"}),
    ]
    unnamed = frame.set_index(pd.Index(["r", "s"]))
    assert samples.load(unnamed) == samples.load(frame)


def test_two_levels_of_an_index_with_one_name_are_refused() -> None:
    index = pd.MultiIndex.from_tuples([("a", "b")], names=["item", "item"])
    assert "two columns are called 'item'" in error_message(pd.DataFrame({"output": ["x"]}, index))


def test_missing_cells_are_absent() -> None:
    frame = pd.DataFrame(
        {
            "output": ["x", ""],
            "source": ["t", None],
            "n": [1.0, math.nan],
            "day": [pd.NaT, date(2024, 5, 1)],
        }
    )
    first, second = samples.load(frame)
    assert (first.source, first.extra) == ("t", {"n": 1.0})
    assert (second.output, second.source, second.extra) == ("", None, {"day": date(2024, 5, 1)})
    frame = pd.DataFrame({"output": ["x"], "n": pd.array([pd.NA], dtype="Int64")})
    (sample,) = samples.load(frame)
    assert sample.extra == {}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (7, "7"),
        (7.0, "7"),
        ("007", "007"),
        (np.int64(7), "7"),
        (" a", "a"),
        (Decimal("7.00"), "7"),
        (date(2024, 5, 1), "2024-05-01"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    ],
)
def test_names_of_items_are_texts(item: Any, expected: str) -> None:
    assert samples.load([{"item": item, "output": "x"}])[0].item == expected


def test_long_cells_and_columns_without_a_name_are_read(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    long = "word " * 60_000
    (tmp_path / "d.csv").write_text(f"output, topic ,,\n{long},t,,\n", encoding="utf-8")
    (sample,) = samples.load(tmp_path / "d.csv")
    assert (sample.output, sample.extra) == (long, {"topic": "t"})
    assert csv.field_size_limit() == limit


# Errors


def error_message(data: Any, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        samples.load(data, **options)
    return str(caught.value)


GOOD = '{"output": "x"}\n'


@pytest.mark.parametrize(
    ("name", "content", "facts"),
    [
        (
            "d.jsonl",
            GOOD * 16 + '{"output": x}\n',
            ("d.jsonl:17: not JSON", "column 12"),
        ),
        (
            "d.jsonl",
            GOOD + '{"output": "x',
            ("d.jsonl:2: not JSON", "column 12"),
        ),
        ("d.json", '[{"output": "x', ("d.json:1: not JSON",)),
        (
            "d.jsonl",
            GOOD + "[1]\n",
            ("d.jsonl:2:", "one whole object"),
        ),
        (
            "d.jsonl",
            GOOD + '{"output": "\xff"}',
            ("d.jsonl:2: not UTF-8", "byte 13", "save"),
        ),
        ("d.jsonl", GOOD + "[" * 100_000, ("d.jsonl:2: not JSON",)),
        ("d.jsonl", "", ("d.jsonl: no rows",)),
        ("d.jsonl", "\n \n", ("d.jsonl: no rows",)),
        ("d.json", "", ("d.json: no rows",)),
        ("d.json", "[]", ("d.json: no rows",)),
        ("d.json", '[\n{"output": "x"},\n{]', ("d.json:3: not JSON",)),
        (
            "d.json",
            GOOD * 2,
            ("d.json:2: not JSON", ".jsonl"),
        ),
        (
            "d.json",
            GOOD,
            ("d.json: is one object", "output"),
        ),
        ("d.json", "[" * 100_000, ("d.json: not JSON",)),
        (
            "d.jsonl",
            GOOD + '{"output": "x", "lang": "en", "output": "y"}\n',
            ("d.jsonl:2:", "'output' occurs twice"),
        ),
        (
            "d.jsonl",
            GOOD + '{"output": "x", "about": {"lang": "en", "lang": "ja"}}\n',
            ("d.jsonl:2:", "'lang' occurs twice"),
        ),
        ("d.json", '[{"output": "x", "output": "x"}]', ("d.json:", "'output' occurs twice")),
        ("d.json", '[{"output": "x"}, "y"]', ("d.json row 2:", "'y'")),
        ("d.jsonl", '[{"output": "x"}]\n', ("d.jsonl:1:", "one whole object", "as .json")),
        ("d.jsonl", '{\n"output": "x"\n}\n', ("d.jsonl:1:", "one whole object")),
        ("d.csv", "output,rating.a\nx,N/A\n", ("d.csv:2:", "'N/A'", "leave it empty")),
        (
            "d.csv",
            "item,output,rating.a\n1,x,4\n1,x,5\n",
            ("d.csv:3: item '1' is already at d.csv:2", "several ratings", "--ratings FILE"),
        ),
        ("d.json", '{"output": ["x"], "source": []}', ("d.json: is one object", "output, source")),
        ("d.csv", "", ("d.csv: no rows",)),
        ("d.csv", "item,output\n", ("d.csv: no rows",)),
        ("d.csv", "item,output\n1,x\n\n2,y,z\n", ("d.csv:4: 3 cells", "2 columns")),
        ("d.csv", "All texts of May\n1,x\n", ("d.csv:2: 2 cells", "1 column;")),
        (
            "d.csv",
            "item,output\n1,x\n2,\xe9\n",
            ("d.csv:3: not UTF-8", "byte 3", "save"),
        ),
        (
            "d.csv",
            'item,output\n1,x\n2,"y\n3,z\n',
            ("d.csv:3:", "end of data", "quotes"),
        ),
        ("d.tsv", 'item\toutput\n1\t"No" he said\n', ("d.tsv:2:",)),
        ("d.csv", "item,output\r1,x\r2,y\r", ("d.csv:1:", "(CR) alone", "of Unix or Windows")),
        ("d.csv", "item,item,output\n1,1,x\n", ("d.csv:1: two columns", "'item'")),
        (
            "d.csv",
            "item,output\n1,x\n,y\n",
            ("d.csv:3: item", "empty", "name or a number"),
        ),
        (
            "d.csv",
            "output,human\nx,good\n",
            ("d.csv:2:", "'overall'", "'good'"),
        ),
        (
            "d.csv",
            'output,human\nx,"{""a"": }"\n',
            ("d.csv:2: human: not JSON", "column 7"),
        ),
        ("d.parquet", "PAR1 and no more", ("not a readable Parquet",)),
        ("d.xls", "x", ("'.xls'", "'.xlsx'")),
        ("d.jsonn", "x", ("'.jsonn'", "'.json'")),
    ],
)
def test_bad_files_are_errors_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, facts: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content.encode("latin-1"))
    message = error_message(name)
    assert has_line(message, *facts)
    assert message.startswith(name)


def test_a_missing_or_unreadable_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    as_jsonl(Path("data.jsonl"))
    assert has_line(error_message("dta.jsonl"), "dta.jsonl: no such file", "'data.jsonl'")
    assert error_message("nowhere/data.jsonl") == "nowhere/data.jsonl: no such file"
    Path("link.jsonl").symlink_to("gone.jsonl")
    assert has_line(error_message("link.jsonl"), "no such file", "a link to gone.jsonl")
    Path("folder.jsonl").mkdir()
    assert has_line(error_message(Path("folder.jsonl")), "folder.jsonl: no data", "known: .jsonl")
    assert has_line(error_message("x" * 5_000 + ".jsonl"), "cannot be read", "too long")


def test_duplicate_columns_and_keys_of_a_parquet_file_are_an_error(tmp_path: Path) -> None:
    columns = [pa.array(["x"]), pa.array(["y"])]
    pq.write_table(pa.table(columns, names=["output", "output"]), tmp_path / "d.parquet")
    assert has_line(error_message(tmp_path / "d.parquet"), "d.parquet: two columns", "'output'")
    twice = pa.array([[("a", 1.0), ("a", 2.0)]], type=pa.map_(pa.string(), pa.float64()))
    pq.write_table(
        pa.table([pa.array(["x"]), twice], names=["output", "human"]), tmp_path / "m.parquet"
    )
    assert has_line(error_message(tmp_path / "m.parquet"), "m.parquet", "not a readable Parquet")


@pytest.mark.parametrize(
    ("row", "options", "facts"),
    [
        (
            {"summary": "x", "answer": "y", "n": 1},
            {},
            (
                "row 1: no column output",
                "--map output=summary",
                "--systems A,B",
                "columns: summary, answer, n",
            ),
        ),
        (
            {"n": 1},
            {},
            ("row 1: no column output", "--map output=COLUMN", "--systems A,B", "columns: n"),
        ),
        (
            {"system": "a", "output": "x", "doc_id": 1},
            {},
            ("row 1: no column item", "--map item=doc_id"),
        ),
        (
            {"system": "a", "text": "x"},
            {},
            ("no column item", "--map item=COLUMN,output=text"),
        ),
        (
            {"summary": "x"},
            {"mapping": {"output": "sumary"}},
            ("row 1: no column 'sumary'", "'summary'"),
        ),
        (
            {"output": "x"},
            {"mapping": {"source": "article"}},
            ("unknown column 'article'", "known: output"),
        ),
        ({"a": "x"}, {"systems": ["a", "b"]}, ("row 1: no column 'b'", "columns: a")),
        (
            {"a": "x"},
            {"systems": ["a"], "mapping": {"output": "a"}},
            ("'output' cannot be mapped",),
        ),
        (
            {"a": "x", "b": "y", "a_anna": 4, "b_anna": 2},
            {"systems": ["a", "b"], "mapping": {"rating.relevance": ["a_anna", "b_anna"]}},
            (
                "row 1:",
                "--systems a,b",
                "'a_anna'",
                "rating.relevance",
                "--map rating.relevance={system}_relevance",
            ),
        ),
        (
            {"a": "x", "b": "y", "human": 4},
            {"systems": ["a", "b"]},
            ("--map rating.overall={system}_overall",),
        ),
        (
            {"output": None},
            {},
            ("row 1: output is null", "empty string"),
        ),
        ({"a": math.nan}, {"systems": ["a"]}, ("row 1: a is null", "empty string")),
        ({"output": 3}, {}, ("row 1: output", "int (3)")),
        ({"output": "x", "source": ["t"]}, {}, ("row 1: source", "list (['t'])")),
        (
            {"output": "x", "references": 3},
            {},
            ("row 1: references", "int (3)"),
        ),
        (
            {"output": "x", "reference": [3]},
            {},
            ("row 1: one of reference", "int (3)"),
        ),
        (
            {"output": "x", "item": None},
            {},
            ("row 1: item is null", "name or a number"),
        ),
        ({"output": "x", "item": True}, {}, ("row 1: item", "bool (True)")),
        ({"output": "x", "item": "1", "system": " "}, {}, ("row 1: system", "empty")),
        (
            {"output": "x", "human": {"a": [1, "b"]}},
            {},
            ("row 1:", "'a' by rater 2", "'b'"),
        ),
        (
            {"output": "x", "human": {"a": [[1]]}},
            {},
            ("row 1:", "'a' by rater 1", "[1]"),
        ),
        (
            {"output": "x", "human": {"a": {"b": 1}}},
            {},
            ("{'b': 1}", "give a list"),
        ),
        (
            {"output": "x", "human": {"a": "Fail"}},
            {},
            ("'Fail'", "1 for pass and 0 for fail"),
        ),
        ({"output": "x", "human": "[1, 2"}, {}, ("row 1: human: not JSON",)),
        (
            {"output": "x", "human": math.inf},
            {},
            ("row 1:", "'overall'", "inf"),
        ),
    ],
)
def test_bad_rows_are_errors_with_row_and_column(
    row: dict[str, Any], options: dict[str, Any], facts: tuple[str, ...]
) -> None:
    assert has_line(error_message([row], **options), *facts)


def test_a_second_row_of_an_item_and_system_names_both_lines(tmp_path: Path) -> None:
    row = {"item": 1, "system": "a", "output": "x"}
    (tmp_path / "d.jsonl").write_text(
        "\n".join(json.dumps(r) for r in (row, row | {"item": 2}, row)), encoding="utf-8"
    )
    message = error_message(tmp_path / "d.jsonl")
    assert re.search(r"d\.jsonl:3: item '1' of system 'a' .*d\.jsonl:1;", message)
    sample = Sample("1", "a", "x")
    assert has_line(error_message([sample, row]), "row 2: item '1' of system 'a'", "row 1")
    twice = [{"item": 1, "output": "x"}] * 2
    assert has_line(error_message(twice), "row 2: item '1'", "row 1")
    message = error_message([{"a": "x"}], systems=["a", "a"])
    assert has_line(message, "row 1: item '1' of system 'a'", "row 1")


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        ([], ("the data: no rows",)),
        ([3], ("row 1", "int (3)")),
        (3, ("data is", "int (3)", "path, a DataFrame")),
        ({"output": "x"}, ("data is of type dict", "[data]", "pandas.DataFrame(data)")),
        (["a reply"], ("row 1", "'a reply'", '{"output": TEXT}')),
        (pd.Series(["a reply"]), ("row 1", '{"output": TEXT}')),
        (
            pd.DataFrame([["x", "y"]], columns=["output", "output"]),
            ("two columns", "'output'"),
        ),
    ],
    ids=str,
)
def test_unusable_data_are_an_error(data: Any, facts: tuple[str, ...]) -> None:
    assert has_line(error_message(data), *facts)


# Digest, imports, and real files


@given(st.binary(max_size=1000))
def test_the_digest_is_sha256(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("digest") / "d"
    path.write_bytes(content)
    assert samples.content_hash(path) == hashlib.sha256(content).hexdigest()


def test_the_digest_of_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        samples.content_hash(tmp_path / "d")
    with pytest.raises(DataError, match="cannot be read"):
        samples.content_hash("x" * 5_000)


def test_importing_loads_no_heavy_package() -> None:
    code = (
        "import sys, judge.data.samples, judge.text;"
        "print([m for m in ('numpy', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout == "[]\n"


def test_summeval_has_its_documented_numbers_of_texts(shared_data) -> None:
    """By its documentation, the data have 1,600 rows: 100 documents, 16 systems, and 11 references each."""
    loaded = samples.load(
        shared_data("summeval.jsonl"), mapping={"item": "doc_id", "output": "summary"}
    )
    assert len(loaded) == 1600
    assert (len({s.item for s in loaded}), len({s.system for s in loaded})) == (100, 16)
    assert {len(s.references) for s in loaded} == {11}
    assert all(1 <= rating <= 5 for s in loaded for rating in s.human.values())
    assert {"coherence", "consistency", "fluency", "relevance"} <= loaded[0].human.keys()
    assert set(loaded[0].extra) == {"id", "reference"}
    assert loaded[16].where.endswith("summeval.jsonl:17")


def test_a_column_human_may_be_a_number(shared_data) -> None:
    loaded = samples.load(
        shared_data("geval_korean.jsonl"), mapping={"item": "item_id", "output": "summary"}
    )
    assert len(loaded) == 20
    assert loaded[0].human == {"overall": pytest.approx(8 / 3)}


# Selection of rows, and columns of several raters


LANGS = [
    {"item": n, "system": "a", "output": "x", "lang": lang, "year": year}
    for n, (lang, year) in enumerate([("en", 2020), ("ja", 2020), ("ja", 2021.0), ("ko", None)])
]


@pytest.mark.parametrize(
    ("where", "items"),
    [
        ({}, "0123"),
        ({"lang": "ja"}, "12"),
        ({"lang": ["en", "ko"]}, "03"),
        ({"lang": "ja", "year": "2021"}, "2"),
        ({"year": 2020}, "01"),
        ({"item": "3"}, "3"),
    ],
)
def test_where_selects_rows(where: dict[str, Any], items: str) -> None:
    assert [sample.item for sample in samples.load(LANGS, where=where)] == list(items)


@pytest.mark.parametrize(
    ("cell", "condition"),
    [
        (Decimal("2.00"), "2"),
        (Decimal("2.50"), "2.50"),
        (date(2024, 5, 1), "2024-05-01"),
        (timedelta(seconds=90), "0:01:30"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    ],
)
@pytest.mark.parametrize("as_file", [True, False])
def test_where_selects_rows_by_values_of_databases(
    tmp_path: Path, cell: Any, condition: str, as_file: bool
) -> None:
    data: Any = [{"item": "1", "output": "x", "own": cell}, {"item": "2", "output": "x"}]
    if as_file and not isinstance(cell, UUID):
        data = tmp_path / "d.parquet"
        pq.write_table(pa.table({"item": ["1"], "output": ["x"], "own": [cell]}), data)
    (sample,) = samples.load(data, where={"own": condition})
    assert sample.item == "1"


def test_where_names_a_column_that_has_no_single_values() -> None:
    data = [{"output": "x", "tags": ["a", "b"]}]
    message = error_message(data, where={"tags": "a"})
    assert has_line(message, "--where tags=a: no row has", "in tags")
    assert "unknown" not in message


def test_where_accepts_the_old_and_the_new_name_of_a_column() -> None:
    data = [{"model": name, "doc": "1", "text": "x"} for name in ("a", "b")]
    mapping = {"system": "model", "item": "doc", "output": "text"}
    for name in ("model", "system"):
        assert [s.system for s in samples.load(data, mapping=mapping, where={name: "b"})] == ["b"]


def test_an_item_may_occur_once_per_language() -> None:
    twice = [{"item": "1", "system": "a", "output": "x", "lang": lang} for lang in ("en", "ja")]
    assert len(samples.load(twice, where={"lang": "ja"})) == 1
    assert "is already at" in error_message(twice)


@pytest.mark.parametrize(
    ("where", "facts"),
    [
        ({"lang": "jp"}, ("--where lang=jp: no row", "'ja' (2), 'en' (1), 'ko' (1)")),
        ({"lang": ["ja", "jp"]}, ("--where lang=jp: no row",)),
        ({"lang": "ja,ko"}, ("--where lang=ja,ko: no row", "--where lang=ja,lang=ko")),
        ({"lnag": "ja"}, ("'lnag'", "'lang'")),
        (
            {"lang": "ko", "year": "2020"},
            ("--where lang=ko, year=2020:", "no row meets all"),
        ),
    ],
)
def test_where_without_a_match_lists_values_or_the_nearest_column(
    where: dict[str, Any], facts: tuple[str, ...]
) -> None:
    assert has_line(error_message(LANGS, where=where), *facts)


def test_a_missing_value_with_a_comma_is_not_read_as_a_list() -> None:
    assert "any of these values" not in error_message(LANGS, where={"lang": "ja,jp"})


def test_several_columns_of_ratings_are_mapped_to_a_list(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("output,anna,ben\nx,4,5\ny,3,\nz,,\n", encoding="utf-8")
    loaded = samples.load(path, mapping={"rating.relevance": ["anna", "ben"]})
    assert [dict(s.ratings) for s in loaded] == [
        {"relevance": (4.0, 5.0)},
        {"relevance": (3.0, None)},
        {},
    ]
    assert [dict(s.human) for s in loaded] == [{"relevance": 4.5}, {"relevance": 3.0}, {}]
    assert not any(s.extra for s in loaded)


def test_a_part_of_an_object_cannot_be_mapped_and_the_error_says_so() -> None:
    data = [{"id": "1", "fields": {"response": "x"}, "responses": []}]
    message = error_message(data, mapping={"output": "fields.response"})
    assert has_line(message, "'fields.response'", "fields is an object")
    assert "did you mean" not in message


@pytest.mark.parametrize("column", ["decoded", "completion", "mt"])
def test_the_column_of_outputs_is_suggested_before_a_column_of_texts(column: str) -> None:
    message = error_message([{"text": "A source.", column: "x"}])
    assert has_line(message, f"add --map output={column}")


def test_one_error_lists_all_missing_columns(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("doc_id,model,summary\n1,a,x\n", encoding="utf-8")
    mapping = {"item": "docid", "ouput": "summary", "system": "modle", "rating.relevance": ["anna"]}
    message = error_message(path, mapping=mapping)
    assert "no column 'docid', did you mean 'doc_id'?" in message
    assert "no column 'modle', did you mean 'model'?" in message
    assert "no column 'anna'" in message
    assert "'ouput' in the mapping: did you mean 'output'?" in message
    assert "(columns: doc_id, model, summary)" in message


@pytest.mark.parametrize(
    "key", ["sorce", "refrences", "ratting.relevance", "human.relevance", "itm"]
)
def test_a_misspelt_field_is_an_error(key: str) -> None:
    message = error_message([{"output": "x", "c": "1"}], mapping={key: "c"})
    assert has_line(message, f"{key!r}", "did you mean")


@pytest.mark.parametrize("key", ["sources", "reference", "customer", "outputs", "channel.name"])
def test_a_mapping_may_have_any_other_name(key: str) -> None:
    assert samples.load([{"output": "x", "c": "1"}], mapping={key: "c"})


@pytest.mark.parametrize(
    ("row", "mapping", "fields"),
    [
        ({"input": "q", "actual_output": "a", "expected_output": "r"}, {}, ("q", "a", ("r",))),
        ({"input": "q", "source": "s", "output": "o", "actual_output": "a", "reference": "r2", "expected_output": "r"},
         {}, ("s", "o", ("r2",))),
        ({"question": "q", "answer": "a", "good": "r", "source": "s", "output": "o"},
         {"input": "question", "actual_output": "answer", "expected_output": "good"}, ("q", "a", ("r",))),
        ({"question": "q", "text": "t", "output": "o"}, {"input": "question", "source": "text"}, ("t", "o", ())),
    ],
)  # fmt: skip
def test_column_names_of_other_tools_are_known(
    row: dict[str, str], mapping: dict[str, str], fields: tuple[object, ...]
) -> None:
    (sample,) = samples.load([row], mapping=mapping)
    assert (sample.source, sample.output, sample.references) == fields
    # Templates may read `input`.
    assert sample.extra.get("input") == row.get("input", row.get("question"))
    guessed = {"input": "source", "actual_output": "output", "expected_output": "references"}
    expected = {} if mapping or "source" in row else guessed
    assert samples.guessed_columns(sample, mapping) == expected


@pytest.mark.parametrize(
    "url", ["s3://bucket/data.csv", "https://anna:hush@example.org/data.csv?signature=hush"]
)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_url_as_data_is_an_error_with_advice(url: str, kind: type) -> None:
    """A Path has only one slash. The message must not repeat the password."""
    with pytest.raises(
        DataError, match=r"^\w+://…: .*local files.* pandas\.read_parquet\(url\)"
    ) as raised:
        samples.load(kind(url))
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    "path", ["data.jsonl", "C:/data.jsonl", "folder/a:b.jsonl", "/abs/data.jsonl"]
)
def test_a_local_path_is_not_a_url(path: str) -> None:
    with pytest.raises(DataError, match="no such file"):
        samples.load(path)


@pytest.mark.parametrize(
    ("columns", "field", "value"),
    [
        ({"reply": "Hi."}, "output", "Hi."),
        ({"summary": "Hi."}, "output", "Hi."),
        ({"回答": "はい。"}, "output", "はい。"),
        ({"output": "Hi.", "article": "Long."}, "source", "Long."),
        ({"output": "Hi.", "target": "Ho."}, "references", ("Ho.",)),
        ({"output": "Hi.", "answer": "Gold."}, "output", "Hi."),
        ({"output": "Hi.", "article": "Long.", "source": "S."}, "source", "S."),
        ({"output": "Hi.", "article": "Long.", "document": "D."}, "source", None),
        ({"output": "Hi.", "article": 5}, "source", None),
    ],
)
def test_a_single_column_with_a_usual_name_fills_a_field(
    columns: dict[str, Any], field: str, value: object
) -> None:
    (sample,) = samples.load([columns])
    assert getattr(sample, field) == value


def test_a_mapping_overrides_a_usual_name() -> None:
    (sample,) = samples.load([{"reply": "Hi.", "mine": "Ho."}], mapping={"output": "mine"})
    assert sample.output == "Ho."


def test_two_columns_with_usual_names_of_an_output_are_an_error() -> None:
    with pytest.raises(DataError, match=r"no column output: .*--map output=response"):
        samples.load([{"answer": "Gold.", "response": "Hi."}])


@pytest.mark.parametrize("gap", [pd.NA, pd.NaT])
def test_a_missing_value_of_pandas_in_a_row_is_an_empty_cell(gap: Any) -> None:
    (sample,) = samples.load([{"output": "x", "source": gap, "n": gap, "list": [gap, 1]}])
    assert (sample.source, sample.extra) == (None, {"list": [None, 1]})


def test_a_column_that_a_table_lacks_is_no_fault_of_its_first_row(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("item,text\n1,x\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"^{re.escape(str(path))}: no column output"):
        samples.load(path)
