"""Stored tables with columns of other types, or too large for memory, are errors that name file and column."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import judge
from judge.core.errors import DataError, JudgeError, StorageError
from judge.data import samples
from judge.results.loading import load

COLUMNS_BY_TYPE: dict[str, Callable[[int], Any]] = {
    "int": lambda n: pa.array(range(n), pa.int64()),
    "int8": lambda n: pa.array([1] * n, pa.int8()),
    "float": lambda n: pa.array([0.5] * n, pa.float64()),
    "nan": lambda n: pa.array([float("nan")] * n, pa.float64()),
    "bool": lambda n: pa.array([True] * n),
    "text": lambda n: pa.array(["x"] * n),
    "json number": lambda n: pa.array(["1"] * n),
    "json list": lambda n: pa.array(['[{"a": [null]}]'] * n),
    "json object": lambda n: pa.array(['{"a": {"b": 1}}'] * n),
    "deep json": lambda n: pa.array(["[" * 5_000] * n),
    "bytes": lambda n: pa.array([b"\xff"] * n),
    "date": lambda n: pa.array([date(2026, 1, 1)] * n),
    "time": lambda n: pa.array([datetime(2026, 1, 1)] * n),
    "decimal": lambda n: pa.array([1] * n).cast(pa.decimal128(20)),
    "null": lambda n: pa.nulls(n),
    "null texts": lambda n: pa.nulls(n, pa.string()),
    "null numbers": lambda n: pa.nulls(n, pa.float64()),
    "list": lambda n: pa.array([["x"]] * n),
    "list of null": lambda n: pa.array([[None]] * n, pa.list_(pa.string())),
    "list of numbers": lambda n: pa.array([[1]] * n),
    "object": lambda n: pa.array([{"a": 1}] * n),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run with scores, failures and ratings."""
    folder = tmp_path_factory.mktemp("run")
    rows = [
        {
            "item": str(n),
            "system": s,
            "source": "A long day.",
            "output": f"Day {n} {s}",
            "human": {"fluency": n % 3 + 1},
        }
        for n in range(3)
        for s in "ab"
    ]
    model = judge.ScriptedProvider(lambda r: "no idea" if "Day 2 b" in str(r.messages) else "2")
    judge.evaluate(
        rows, ["fluency"], model=model, metrics=["stats"], weighting="single", cache=False
    ).save(folder)
    return folder


def error_of(folder: Path) -> JudgeError | None:
    """Load a run, write its reports, and return the JudgeError, if there is one."""
    try:
        result = load(folder)
        for form in ("console", "json", "csv"):
            result.report(form)
    except JudgeError as error:
        return error
    return None


@pytest.mark.parametrize("name", ["scores.parquet", "samples.parquet"])
@pytest.mark.slow
def test_a_column_of_another_type_is_read_or_an_error_with_the_column(
    run: Path, tmp_path: Path, name: str
) -> None:
    """Each column has every fourth type, so that each type occurs in a fourth of the columns."""
    for path in run.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    table = pq.read_table(run / name)
    for index, field in enumerate(table.schema):
        for kind in list(COLUMNS_BY_TYPE)[index % 4 :: 4]:
            column = COLUMNS_BY_TYPE[kind](len(table))
            changed = table.set_column(index, field.name, column)
            pq.write_table(changed.replace_schema_metadata(table.schema.metadata), tmp_path / name)
            error = error_of(tmp_path)
            assert not isinstance(error, StorageError) or str(tmp_path) in str(error)
            assert "<class" not in str(error)
            if column.type != field.type:
                assert isinstance(error, StorageError)
                assert f"{name}: column '{field.name}' holds" in str(error)


def test_a_duplicate_column_is_an_error(run: Path, tmp_path: Path) -> None:
    for path in run.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    table = pq.read_table(run / "scores.parquet")
    twice = table.append_column("value", table["value"])
    pq.write_table(twice, tmp_path / "scores.parquet")
    with pytest.raises(StorageError, match="two columns have"):
        load(tmp_path)


def test_a_small_file_of_very_many_rows_is_an_error(run: Path, tmp_path: Path) -> None:
    for path in run.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    file = tmp_path / "samples.parquet"
    indices = pa.array(np.zeros(12_000_000, dtype=np.int8))
    texts = pa.DictionaryArray.from_arrays(indices, pa.array(["x"]))
    pq.write_table(pa.table({"output": texts}), file, row_group_size=len(texts), compression="zstd")
    assert file.stat().st_size < 1_000_000
    with pytest.raises(StorageError, match=r"samples\.parquet: it claims 12,000,000 rows"):
        load(tmp_path)
    with pytest.raises(DataError, match="it claims 12,000,000 rows"):
        samples.load(file)


def test_a_file_that_needs_too_much_memory_is_an_error(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(pq.ParquetFile, "read", full)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", full)
    with pytest.raises(StorageError, match=r"samples\.parquet"):
        load(run)
    with pytest.raises(DataError, match="more memory"):
        samples.load(run / "samples.parquet")


@pytest.mark.parametrize("key", ["data", "out", "record", "replay", "ratings"])
@pytest.mark.parametrize("value", [5, ["a"], {"a": 1}, 2.5])
def test_the_error_for_a_path_of_another_type_has_no_python_terms(key: str, value: Any) -> None:
    from judge.config import RunConfig

    with pytest.raises(JudgeError) as caught:
        RunConfig.load(options={key: value})
    assert "<class" not in str(caught.value)
    assert "pathlib" not in str(caught.value)
