from __future__ import annotations

import errno
import io
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from judge import table as module
from judge.core.errors import StorageError
from judge.core.files import store
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.results.result import load
from judge.table import Journal, Table, delete_journal, read_journal, recover

WEIGHED = Provenance("logprobs", 0.75, {"3": 0.25, "4": 0.5}, 0.6365, "4", 3.1, 4.2, 2, 'because\n"so"', "4", "note")
METRIC = Provenance("metric")
COLUMNS = (
    Column("fluency", "criterion", "fluency@1", 1.0, 5.0, ("1", "2", "3", "4", "5")),
    Column("bleu", "metric", "b"),
)
SAMPLES = (
    Sample("i2", "b", "two b", "source 二", ("r1", "r2"), {"fluency": 4.5}, {"topic": "x", "n": 3}, "d.jsonl:1"),
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


def test_systems_and_items_keep_the_order_of_first_appearance() -> None:
    assert _table().systems == ("b", "a")
    assert _table().items == ("i2", "i1")


def test_rows_are_in_the_order_of_samples_then_columns_however_they_came() -> None:
    table = _table()
    turned = Table(SAMPLES, COLUMNS, table.scores[::-1], table.failures[::-1])
    assert turned == table
    places = [(row.item, row.system, row.column) for row in table.rows()]
    assert places == [(s.item, s.system, c.name) for s in SAMPLES for c in COLUMNS]


def test_matrix_is_systems_by_items_with_gaps_masked() -> None:
    expected = np.array([[4.0, math.nan], [3.6666666666666665, math.nan]])
    np.testing.assert_array_equal(_table().matrix("fluency"), expected)
    assert np.isnan(_table().matrix("unknown")).all()


def test_a_score_of_a_text_that_is_not_in_the_table_is_in_no_matrix() -> None:
    stray = Table(SAMPLES, COLUMNS, (Score("i9", "b", "bleu", 1.0, METRIC), Score("i1", "z", "bleu", 1.0, METRIC)))
    assert np.isnan(stray.matrix("bleu")).all()


def test_of_gives_one_columns_scores() -> None:
    assert [s.value for s in _table().column_scores("bleu")] == [0.0, 12.5]
    assert _table().column_scores("nothing") == ()


def test_the_long_frame_has_a_row_per_score_and_failure() -> None:
    frame = _table().to_frame()
    assert list(frame.columns) == [
        "item", "system", "column", "value", "rival", "stage", "error", "message", "raw", "method", "reading",
        "mass", "distribution", "entropy", "argmax", "low", "high", "n", "reason", "note", "quote", "answers",
    ]  # fmt: skip
    assert len(frame) == 6
    failed = frame[frame.error.notna()]
    assert failed.value.isna().all()
    assert list(failed.error) == ["DataError", "ParseError"]
    assert json.loads(frame[frame.method == "logprobs"].distribution.iloc[0]) == WEIGHED.distribution


def test_the_wide_frame_has_a_row_per_text_and_a_column_per_score() -> None:
    frame = _table().to_frame(wide=True)
    expected = pd.DataFrame(
        {
            "item": ["i2", "i2", "i1"],
            "system": ["b", "a", "b"],
            "fluency": [4.0, 3.6666666666666665, math.nan],
            "bleu": [0.0, math.nan, 12.5],
        }
    )
    pd.testing.assert_frame_equal(frame, expected)


def test_an_empty_table_has_frames_and_files(tmp_path: Path) -> None:
    empty = Table((), (), ())
    assert len(empty.to_frame()) == 0
    assert "value" in empty.to_frame().columns
    assert len(empty.to_frame(wide=True)) == 0
    empty.save(tmp_path)
    assert Table.load(tmp_path) == empty


def test_load_gives_back_what_was_saved(tmp_path: Path) -> None:
    _table().save(tmp_path / "runs" / "first")
    assert Table.load(tmp_path / "runs" / "first") == _table()
    assert sorted(p.name for p in (tmp_path / "runs" / "first").iterdir()) == ["samples.parquet", "scores.parquet"]


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
        texts, st.none() | st.booleans() | st.integers() | texts | st.lists(texts, max_size=2), max_size=2
    ),
    where=texts,
)


@given(st.lists(samples, max_size=4), st.lists(scores, max_size=4), st.lists(failures, max_size=3))
def test_any_table_comes_back_equal(tmp_path_factory, rows, found, failed) -> None:
    table = Table(tuple(rows), COLUMNS, tuple(found), tuple(failed))
    folder = tmp_path_factory.mktemp("run")
    table.save(folder)
    assert Table.load(folder) == table


@given(st.lists(scores | failures, max_size=6))
def test_any_row_comes_back_from_the_journal(tmp_path_factory, rows) -> None:
    folder = tmp_path_factory.mktemp("run")
    journal = Journal(folder)
    for row in rows:
        journal.add(row)
    journal.close()
    assert read_journal(folder).rows == rows


@given(st.lists(samples, max_size=4), st.lists(scores, max_size=4), st.lists(failures, max_size=3))
def test_few_cells_are_stored_as_pyarrow_stores_them(rows, found, failed) -> None:
    table = Table(tuple(rows), COLUMNS, tuple(found), tuple(failed))
    few = {name: parquet.read_table(io.BytesIO(content)) for name, content in table.files().items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judge.table._FEW_CELLS", -1)
        assert {name: parquet.read_table(io.BytesIO(content)) for name, content in table.files().items()} == few


def test_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    sample = Sample("i", "a\ud800", "o", None, ("r\udfff", "ok"), {}, {"k": "\ud801x"})
    Table((sample,), (), ()).save(tmp_path)
    (found,) = Table.load(tmp_path).samples
    assert (found.system, found.references, found.extra) == ("a\ufffd", ("r\ufffd", "ok"), {"k": "\ufffdx"})


def test_values_json_has_no_type_for_are_stored_as_text_or_number(tmp_path: Path) -> None:
    extra = {"day": pd.Timestamp("2027-01-05"), "n": np.int64(3), "x": np.float64(0.5), "p": Path("a")}
    Table((Sample("i", "s", "o", extra=extra),), (), ()).save(tmp_path)
    (found,) = Table.load(tmp_path).samples
    assert found.extra == {"day": "2027-01-05 00:00:00", "n": 3, "x": 0.5, "p": "a"}


def test_mappings_of_any_kind_are_stored(tmp_path: Path) -> None:
    from types import MappingProxyType

    inner = MappingProxyType({"a": 1})
    Table((Sample("i", "s", "o", extra=MappingProxyType({"m": inner})),), (), ()).save(tmp_path)
    assert Table.load(tmp_path).samples[0].extra == {"m": {"a": 1}}


# --- trouble with the disk


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot read .*nowhere.samples.parquet: No such file.*check the path"):
        Table.load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["samples.parquet", "scores.parquet"])
@pytest.mark.parametrize("content", [b"", b"PAR1 not really", None])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    _table().save(tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(StorageError, match=rf"cannot read .*{name}: .*run again"):
        Table.load(tmp_path)


def test_a_parquet_file_of_someone_else_is_named(tmp_path: Path) -> None:
    pd.DataFrame({"item": ["a"]}).to_parquet(tmp_path / "samples.parquet")
    with pytest.raises(StorageError, match=r"samples\.parquet: .*damaged or not from judge"):
        Table.load(tmp_path)


def test_a_file_in_the_folders_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("in the way")
    with pytest.raises(StorageError, match=r"cannot write .*a file stands where a folder is needed"):
        _table().save(tmp_path / "runs" / "first")
    with pytest.raises(StorageError, match="a file stands where a folder is needed"):
        _table().save(tmp_path / "runs")


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "free some space"), (errno.EACCES, "permissions"), (errno.EIO, "check the disk")],
)
def test_a_failed_write_leaves_the_old_files_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    _table().save(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    write = Path.write_bytes

    def fails_on_the_second(self: Path, data: bytes) -> int:
        if "samples" in self.name:
            write(self, data[:10])
            raise OSError(number, "the disk says no")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", fails_on_the_second)
    with pytest.raises(StorageError, match=f"cannot write .*the disk says no.*{advice}"):
        Table(SAMPLES, COLUMNS, ()).save(tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_store_replaces_files_and_makes_folders(tmp_path: Path) -> None:
    store(tmp_path / "a" / "b", {"x": b"1", "y": b"2"})
    store(tmp_path / "a" / "b", {"x": b"3"})
    assert {p.name: p.read_bytes() for p in (tmp_path / "a" / "b").iterdir()} == {"x": b"3", "y": b"2"}


# --- the journal


def _journal(folder: Path) -> Path:
    return folder / "scores.partial.jsonl"


def test_the_journal_writes_every_200_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "monotonic", lambda: 0.0)
    journal = Journal(tmp_path)
    row = _table().scores[0]
    for _ in range(199):
        journal.add(row)
    assert _journal(tmp_path).read_text() == ""
    journal.add(row)
    assert len(read_journal(tmp_path).rows) == 200
    journal.close()
    journal.close()
    assert len(read_journal(tmp_path).rows) == 200


def test_the_journal_writes_after_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.5, 1.25, 1.25, 1.3, 9.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    journal = Journal(tmp_path)
    row = _table().scores[0]
    journal.add(row)
    assert read_journal(tmp_path).rows == []
    journal.add(row)
    assert read_journal(tmp_path).rows == [row, row]
    journal.add(row)
    assert read_journal(tmp_path).rows == [row, row]
    journal.close()
    assert read_journal(tmp_path).rows == [row, row, row]


def test_a_last_line_cut_short_is_left_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for row in _table().rows():
        journal.add(row)
    journal.close()
    whole = _journal(tmp_path).read_bytes()
    _journal(tmp_path).write_bytes(whole[:-7])
    assert read_journal(tmp_path).rows == list(_table().rows())[:-1]


def _damages() -> dict[str, Callable[[bytes], bytes]]:
    """Ways to damage the second line of a journal of six."""

    def second(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        return lambda whole: b"\n".join(
            change(line) if place == 1 else line for place, line in enumerate(whole.split(b"\n"))
        )

    return {
        "half a line": second(lambda line: line[: len(line) // 2]),
        "zeros": second(lambda line: bytes(len(line))),
        "not ASCII": second(lambda line: b"\xff\xfe" + line),
        "a flipped bit": second(lambda line: line.replace(b'"i', b'"h', 1)),
        "another number": second(lambda line: line.replace(b'"value":0.0', b'"value":9.0')),
        "a list": second(lambda _: b"[1, 2]"),
        "a number": second(lambda _: b"7"),
        "no fields": second(lambda _: b"{}"),
        "deep": second(lambda _: b"[" * 100_000),
        "an empty line": second(lambda _: b""),
        "another checksum": second(lambda line: line[:-1] + b"z"),
    }


@pytest.mark.parametrize("kind", _damages())
def test_of_a_damaged_journal_all_other_lines_are_shown_and_the_loss_is_counted(tmp_path: Path, kind: str) -> None:
    journal = Journal(tmp_path, Table(SAMPLES, COLUMNS, ()), {"notes": ["a note"]})
    rows = list(_table().rows())
    for row in [*rows, rows[-1]]:  # twice counts once
        journal.add(row)
    journal.close()
    _journal(tmp_path).write_bytes(_damages()[kind](_journal(tmp_path).read_bytes()))
    table, info = recover(tmp_path)
    assert list(table.rows()) == [rows[0], *rows[2:]]
    assert info["notes"][0] == "a note"
    assert info["notes"][1] == "The journal is damaged: 6 results can be read, 1 line cannot."
    assert load(tmp_path).info["notes"] == info["notes"]


def test_a_run_whose_texts_are_damaged_shows_its_scores(tmp_path: Path) -> None:
    journal = Journal(tmp_path, Table(SAMPLES, COLUMNS, ()))
    for row in _table().rows():
        journal.add(row)
    journal.close()
    (tmp_path / "samples.partial.parquet").write_bytes(b"PAR1 and no more")
    table, info = recover(tmp_path)
    assert len(list(table.rows())) == 6
    assert "texts of this run cannot be read" in info["notes"][0]


def test_a_journal_without_any_readable_line_is_an_error(tmp_path: Path) -> None:
    _journal(tmp_path).write_text('{"item": "i", broken\n{"item": "j"}\n')
    with pytest.raises(StorageError, match=r"scores\.partial\.jsonl: none of its 2 lines can be read"):
        recover(tmp_path)
    with pytest.raises(StorageError, match="No such file"):
        read_journal(tmp_path / "nowhere")


def test_a_journal_of_an_earlier_version_has_no_checksums_and_is_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for row in _table().rows():
        journal.add(row)
    journal.close()
    lines = _journal(tmp_path).read_text().splitlines()
    _journal(tmp_path).write_text("".join(line.partition("\t")[0] + "\n" for line in lines))
    assert read_journal(tmp_path) == (list(_table().rows()), 0)


def test_recover_gives_the_rows_with_their_texts(tmp_path: Path) -> None:
    table = _table()
    journal = Journal(tmp_path, Table(SAMPLES, COLUMNS, ()), {"model": "small"})
    for row in [*table.failures, *table.scores]:
        journal.add(row)
    journal.close()
    assert recover(tmp_path) == (table, {"model": "small"})


def test_recover_without_a_start_names_what_the_rows_name(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for row in _table().rows():
        journal.add(row)
    journal.close()
    table, info = recover(tmp_path)
    assert info == {"notes": []}
    assert {(s.item, s.system) for s in table.samples} == {(s.item, s.system) for s in SAMPLES}
    assert {(c.name, c.kind) for c in table.columns} == {("fluency", "criterion"), ("bleu", "metric")}
    assert (set(map(str, table.scores)), len(table.failures)) == (set(map(str, _table().scores)), 2)


def test_a_new_journal_replaces_an_old_one(tmp_path: Path) -> None:
    old = Journal(tmp_path, _table())
    old.add(_table().scores[0])
    old.close()
    Journal(tmp_path).close()
    assert read_journal(tmp_path).rows == []
    assert [p.name for p in tmp_path.iterdir()] == ["scores.partial.jsonl"]
    delete_journal(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_cannot_be_opened_or_removed_says_so(tmp_path: Path) -> None:
    _journal(tmp_path).mkdir()
    with pytest.raises(StorageError, match=r"cannot remove .*scores\.partial\.jsonl"):
        Journal(tmp_path)
    with pytest.raises(StorageError, match=r"cannot remove .*scores\.partial\.jsonl"):
        delete_journal(tmp_path)


def test_a_journal_that_cannot_be_created_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*args: object, **kwargs: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(StorageError, match=r"cannot write .*scores\.partial\.jsonl: Permission denied"):
        Journal(tmp_path)


def test_a_full_disk_stops_the_journal_with_its_path() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    journal = Journal.__new__(Journal)
    journal._path, journal._rows, journal._written = full, [*_table().rows()], 0.0
    journal._encode = json.dumps
    journal._file = full.open("w", encoding="ascii")
    with pytest.raises(StorageError, match="cannot write /dev/full: No space left on device; free some space"):
        journal.close()
    assert journal._file.closed


RUNS = Path(__file__).parents[1] / "golden" / "run"
"""Written by judge 0.1.0 before its tables were read by the fields of the records."""


@pytest.mark.parametrize("name", ["means", "rank"])
def test_a_run_of_an_earlier_tree_comes_back_equal(name: str, tmp_path: Path) -> None:
    result = load(RUNS / name)
    result.save(tmp_path, pages=False)
    again = load(tmp_path)
    assert (again.estimates, again.comparisons, again.rankings) == (
        result.estimates, result.comparisons, result.rankings,
    )  # fmt: skip
    assert (again.rated, again.drivers, again.info) == (result.rated, result.drivers, result.info)
    for file in ("scores.parquet", "samples.parquet"):
        before, after = pq.read_table(RUNS / name / file), pq.read_table(tmp_path / file)
        new = {"reading", "quote", "answers", "withheld", "raters", "cluster"}  # since then
        assert {*before.column_names} == {*after.column_names} - new
        assert all(before[column].equals(after[column]) for column in before.column_names)


def test_what_the_earlier_files_hold_is_in_the_records() -> None:
    result = load(RUNS / "means")
    stored = json.loads((RUNS / "means" / "run.json").read_bytes())
    scores = pq.read_table(RUNS / "means" / "scores.parquet").to_pylist()
    failed = [row for row in scores if row["error"] is not None]
    weighed = next(row for row in scores if row["distribution"] is not None)
    assert (len(result.table.scores), len(result.failures)) == (len(scores) - len(failed), len(failed))
    assert failed[0]["message"] == result.failures[0].message
    score = next(s for s in result.table.scores if s.provenance.distribution is not None)
    assert (score.item, score.value, score.provenance.mass) == (weighed["item"], weighed["value"], weighed["mass"])
    assert score.provenance.distribution == json.loads(weighed["distribution"])
    first = stored["estimates"][0]
    assert result.estimates[first["system"], first["column"]].value == first["value"]
    assert [row.name for row in result.rated[0].rows] == [row["name"] for row in stored["rated"][0]["rows"]]
    assert result.table.samples[0].ratings == {"coherence": (1.0, 1.0)}
