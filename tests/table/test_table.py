from __future__ import annotations

import errno
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.errors import StorageError
from judge.core.files import store
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.results.loading import load
from judge.table import Table

WEIGHED = Provenance(
    "logprobs", 0.75, {"3": 0.25, "4": 0.5}, 0.6365, "4", 3.1, 4.2, 2, 'because\n"so"', "4", "note"
)
METRIC = Provenance("metric")
COLUMNS = (
    Column("fluency", "criterion", Signature("fluency@1"), 1.0, 5.0, ("1", "2", "3", "4", "5")),
    Column("bleu", "metric", Signature("b")),
)
SAMPLES = (
    Sample(
        "i2",
        "b",
        "two b",
        "source 二",
        ("r1", "r2"),
        {"fluency": 4.5},
        {"topic": "x", "n": 3},
        "d.jsonl:1",
    ),
    Sample("i2", "a", "two a"),
    Sample("i1", "b", "one b", "", ()),
)


def _table() -> Table:
    scores = (
        Score("i1", "b", "bleu", 12.5, METRIC),
        Score("i2", "a", "fluency", 3.6666666666666665, WEIGHED),
        Score("i2", "b", "bleu", 0.0, METRIC),
        Score("i2", "b", "fluency", 4.0, Provenance("single", raw="")),
    )
    failures = (
        Failure("i1", "b", "fluency", "parse", "ParseError", "no score", "sorry 残念"),
        Failure("i2", "a", "bleu", "metric", "DataError", "no reference"),
    )
    return Table(SAMPLES, COLUMNS, scores, failures)


def test_systems_and_items_are_in_the_order_of_first_appearance() -> None:
    assert _table().systems == ("b", "a")
    assert _table().items == ("i2", "i1")


def test_rows_are_sorted_by_sample_then_column() -> None:
    table = _table()
    reversed_table = Table(SAMPLES, COLUMNS, table.scores[::-1], table.failures[::-1])
    assert reversed_table == table
    keys = [(row.item, row.system, row.column) for row in table.rows()]
    assert keys == [(s.item, s.system, c.name) for s in SAMPLES for c in COLUMNS]


def test_the_matrix_has_nan_for_missing_scores() -> None:
    expected = np.array([[4.0, math.nan], [3.6666666666666665, math.nan]])
    np.testing.assert_array_equal(_table().matrix("fluency"), expected)
    assert np.isnan(_table().matrix("unknown")).all()


def test_a_score_of_an_unknown_text_is_not_in_the_matrix() -> None:
    stray = Table(
        SAMPLES,
        COLUMNS,
        (Score("i9", "b", "bleu", 1.0, METRIC), Score("i1", "z", "bleu", 1.0, METRIC)),
    )
    assert np.isnan(stray.matrix("bleu")).all()


def test_column_scores_returns_the_scores_of_one_column() -> None:
    assert [s.value for s in _table().column_scores("bleu")] == [0.0, 12.5]
    assert _table().column_scores("nothing") == ()


def test_the_long_frame_has_a_row_per_score_and_failure() -> None:
    frame = _table().to_frame()
    assert list(frame.columns) == [
        "item", "system", "column", "value", "opponent", "stage", "error", "message", "raw", "method", "reading",
        "mass", "distribution", "entropy", "argmax", "low", "high", "n", "reason", "note", "quote", "answers",
    ]  # fmt: skip
    assert len(frame) == 6
    failed = frame[frame.error.notna()]
    assert failed.value.isna().all()
    assert list(failed.error) == ["DataError", "ParseError"]
    assert (
        json.loads(frame[frame.method == "logprobs"].distribution.iloc[0]) == WEIGHED.distribution
    )


def test_a_table_shows_its_size_and_not_its_texts() -> None:
    assert repr(_table()) == "<Table: 3 texts, 2 columns, 4 scores, 2 failures>"


def test_an_empty_table_has_frames_and_files(tmp_path: Path) -> None:
    empty = Table((), (), ())
    assert len(empty.to_frame()) == 0
    assert "value" in empty.to_frame().columns
    empty.save(tmp_path)
    assert Table.load(tmp_path) == empty


def test_a_saved_table_is_loaded_unchanged(tmp_path: Path) -> None:
    _table().save(tmp_path / "runs" / "first")
    assert Table.load(tmp_path / "runs" / "first") == _table()
    assert sorted(p.name for p in (tmp_path / "runs" / "first").iterdir()) == [
        "samples.parquet",
        "scores.parquet",
    ]


def test_a_large_table_is_written_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.table._ROW_GROUP", 2)
    _table().save(tmp_path)
    assert pq.ParquetFile(tmp_path / "samples.parquet").num_row_groups > 1
    assert Table.load(tmp_path) == _table()


def test_pandas_reads_the_same_long_table(tmp_path: Path) -> None:
    _table().save(tmp_path)
    stored = pd.read_parquet(tmp_path / "scores.parquet")
    frame = _table().to_frame()
    assert list(stored.columns) == list(frame.columns)
    assert stored.value.equals(frame.value)
    assert list(stored["item"]) == list(frame["item"])


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
provenances = st.builds(
    Provenance,
    method=texts,
    mass=st.none() | numbers,
    distribution=st.none() | st.dictionaries(texts, numbers, max_size=3),
    low=st.none() | numbers,
    n=st.integers(0, 1000),
    reason=st.none() | texts,
    raw=st.none() | texts,
)
scores = st.builds(Score, texts, texts, texts, numbers, provenances)
failures = st.builds(Failure, texts, texts, texts, texts, texts, texts, texts)
samples = st.builds(
    Sample,
    item=texts,
    system=texts,
    output=texts,
    source=st.none() | texts,
    references=st.lists(texts, max_size=2).map(tuple),
    human=st.dictionaries(texts, numbers, max_size=2),
    extra=st.dictionaries(
        texts,
        st.none() | st.booleans() | st.integers() | texts | st.lists(texts, max_size=2),
        max_size=2,
    ),
    where=texts,
)


@given(st.lists(samples, max_size=4), st.lists(scores, max_size=4), st.lists(failures, max_size=3))
def test_any_saved_table_is_loaded_unchanged(tmp_path_factory, rows, scores, failed) -> None:
    table = Table(tuple(rows), COLUMNS, tuple(scores), tuple(failed))
    folder = tmp_path_factory.mktemp("run")
    table.save(folder)
    assert Table.load(folder) == table


def test_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    sample = Sample("i", "a\ud800", "o", None, ("r\udfff", "ok"), {}, {"k": "\ud801x"})
    Table((sample,), (), ()).save(tmp_path)
    (stored,) = Table.load(tmp_path).samples
    assert (stored.system, stored.references, stored.extra) == (
        "a\ufffd",
        ("r\ufffd", "ok"),
        {"k": "\ufffdx"},
    )


def test_values_without_a_json_type_are_stored_as_text_or_number(tmp_path: Path) -> None:
    extra = {
        "day": pd.Timestamp("2027-01-05"),
        "n": np.int64(3),
        "x": np.float64(0.5),
        "p": Path("a"),
    }
    Table((Sample("i", "s", "o", extra=extra),), (), ()).save(tmp_path)
    (sample,) = Table.load(tmp_path).samples
    assert sample.extra == {"day": "2027-01-05 00:00:00", "n": 3, "x": 0.5, "p": "a"}


def test_mappings_of_any_kind_are_stored(tmp_path: Path) -> None:
    from types import MappingProxyType

    inner = MappingProxyType({"a": 1})
    Table((Sample("i", "s", "o", extra=MappingProxyType({"m": inner})),), (), ()).save(tmp_path)
    assert Table.load(tmp_path).samples[0].extra == {"m": {"a": 1}}


# Errors of files


def test_a_missing_folder_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nowhere.samples\.parquet: No such file"):
        Table.load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["samples.parquet", "scores.parquet"])
@pytest.mark.parametrize("content", [b"", b"PAR1 not really", None])
def test_a_damaged_file_is_an_error_with_its_name(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    _table().save(tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(StorageError, match=rf"cannot read .*{name}: .*run again"):
        Table.load(tmp_path)


def test_a_parquet_file_of_another_program_is_an_error_with_its_name(tmp_path: Path) -> None:
    pd.DataFrame({"item": ["a"]}).to_parquet(tmp_path / "samples.parquet")
    with pytest.raises(StorageError, match=r"samples\.parquet: .*damaged"):
        Table.load(tmp_path)


def test_a_file_instead_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("in the way")
    with pytest.raises(StorageError, match=r"cannot write .*needs a folder"):
        _table().save(tmp_path / "runs" / "first")
    with pytest.raises(StorageError, match="needs a folder"):
        _table().save(tmp_path / "runs")


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EACCES, "permissions"),
        (errno.EIO, "check the disk"),
    ],
)
def test_a_failed_write_does_not_change_the_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    _table().save(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    write = Path.write_bytes

    def fail_on_samples(self: Path, data: bytes) -> int:
        if "samples" in self.name:
            write(self, data[:10])
            raise OSError(number, "the disk says no")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", fail_on_samples)
    with pytest.raises(StorageError, match=f"the disk says no.*{advice}"):
        Table(SAMPLES, COLUMNS, ()).save(tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_store_replaces_files_and_creates_folders(tmp_path: Path) -> None:
    store(tmp_path / "a" / "b", {"x": b"1", "y": b"2"})
    store(tmp_path / "a" / "b", {"x": b"3"})
    assert {p.name: p.read_bytes() for p in (tmp_path / "a" / "b").iterdir()} == {
        "x": b"3",
        "y": b"2",
    }


RUNS = Path(__file__).parents[1] / "golden" / "run"
"""Runs of judge 0.1.0, from before tables had the fields of the records. Keys of `rated` were renamed since."""


@pytest.mark.parametrize("name", ["means", "rank"])
def test_a_run_of_an_earlier_version_is_loaded_and_saved_unchanged(
    name: str, tmp_path: Path
) -> None:
    result = load(RUNS / name)
    result.save(tmp_path, pages=False)
    reloaded = load(tmp_path)
    for name_of_part in ("estimates", "comparisons", "rankings", "rated", "drivers", "info"):
        assert getattr(reloaded, name_of_part) == getattr(result, name_of_part)
    for file in ("scores.parquet", "samples.parquet"):
        before, after = pq.read_table(RUNS / name / file), pq.read_table(tmp_path / file)
        new = {"reading", "quote", "answers", "withheld", "raters", "cluster"}
        assert {*before.column_names} == {*after.column_names} - new
        assert all(before[column].equals(after[column]) for column in before.column_names)


def test_records_include_every_field_of_the_earlier_files() -> None:
    result = load(RUNS / "means")
    stored = json.loads((RUNS / "means" / "run.json").read_bytes())
    scores = pq.read_table(RUNS / "means" / "scores.parquet").to_pylist()
    failed = [row for row in scores if row["error"] is not None]
    weighed = next(row for row in scores if row["distribution"] is not None)
    assert len(result.table.scores) == len(scores) - len(failed)
    assert len(result.failures) == len(failed)
    assert failed[0]["message"] == result.failures[0].message
    score = next(s for s in result.table.scores if s.provenance.distribution is not None)
    assert (score.item, score.value) == (weighed["item"], weighed["value"])
    assert score.provenance.mass == weighed["mass"]
    assert score.provenance.distribution == json.loads(weighed["distribution"])
    first = stored["estimates"][0]
    assert result.estimates[first["system"], first["column"]].value == first["value"]
    assert [row.name for row in result.rated[0].rows] == [
        row["name"] for row in stored["rated"][0]["rows"]
    ]
    assert result.table.samples[0].ratings == {"coherence": (1.0, 1.0)}
