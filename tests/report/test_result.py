from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge import __version__
from judge.core.errors import ConfigError, StorageError
from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.results.loading import load
from judge.results.result import Result
from judge.results.run_info import JudgeInfo, RunInfo
from judge.stats.bootstrap import item_means
from judge.table import Table

FILES = [
    "estimates.parquet",
    "report.html",
    "report.md",
    "run.json",
    "samples.parquet",
    "scores.parquet",
]


def test_a_saved_result_comes_back_equal(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "first")
    assert sorted(p.name for p in (tmp_path / "first").iterdir()) == FILES
    assert load(tmp_path / "first") == result
    assert load(str(tmp_path / "first")).report("markdown") == (
        tmp_path / "first" / "report.md"
    ).read_text("utf-8")


def test_run_json_is_strict_json_with_signatures(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path)
    run = json.loads((tmp_path / "run.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert run["info"] == result.info.to_json()
    assert [c["signature"] for c in run["columns"]] == [
        str(c.signature) for c in result.table.columns
    ]
    first = {
        "system": "lead",
        "column": "coherence",
        "name": "mean",
        "value": 3.2333,
        "low": 2.5,
        "high": 3.8,
        "n": 3,
    }
    assert first.items() <= run["estimates"][0].items()


def test_the_data_are_stored_before_the_reports(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Result, format: str = "console") -> str:
        raise ConfigError("no such format")

    monkeypatch.setattr(Result, "report", broken)
    with pytest.raises(ConfigError):
        result.save(tmp_path)
    assert load(tmp_path) == result


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"format": 3, "estimates": [{"system": "a", "column": "b"}], "info": {}}',
        '{"format": "2", "info": {}}',
        '{"format": true, "info": {}}',
        '{"format": null, "info": {}}',
        "[" * 100_000,
        '{"format": 3, "info": ' + '{"a": ' * 100_000,
        None,
    ],
)
def test_a_damaged_run_file_is_named(result: Result, tmp_path: Path, content: str | None) -> None:
    result.save(tmp_path)
    (tmp_path / "run.json").unlink() if content is None else (tmp_path / "run.json").write_text(
        content
    )
    with pytest.raises(StorageError, match=r"cannot read .*run\.json: .*run again"):
        load(tmp_path)


@pytest.mark.parametrize(
    "rows", [{}, 3, [3], [{}], [{"system": [], "column": "b"}], [{"system": "a"}]]
)
@pytest.mark.parametrize("key", ["estimates", "repeats"])
def test_damaged_estimates_are_named(result: Result, tmp_path: Path, key: str, rows: Any) -> None:
    result.save(tmp_path)
    run = json.loads((tmp_path / "run.json").read_text("utf-8"))
    (tmp_path / "run.json").write_text(json.dumps(run | {key: rows}), "utf-8")
    with pytest.raises(StorageError, match=rf"run\.json: {key}: .*list"):
        load(tmp_path)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "Infinity", "NaN"])
def test_a_number_that_no_run_writes_is_refused(
    result: Result, tmp_path: Path, number: str
) -> None:
    result.save(tmp_path)
    text = (tmp_path / "run.json").read_text("utf-8")
    written = f'"seconds": {result.info.seconds}'
    assert written in text
    (tmp_path / "run.json").write_text(text.replace(written, f'"seconds": {number}'), "utf-8")
    with pytest.raises(StorageError, match=r"which no run writes"):
        load(tmp_path)


@pytest.mark.parametrize("changed", [{"values": [[1.0]]}, {"n": [[1], [1]]}])
def test_matrices_that_are_not_square_are_refused(
    result: Result, tmp_path: Path, changed: dict[str, Any]
) -> None:
    result.save(tmp_path)
    run = json.loads((tmp_path / "run.json").read_text("utf-8"))
    cells = {key: [[None, None], [None, None]] for key in ("values", "low", "high")}
    square = {
        "names": ["a", "b"],
        "level": "all-texts",
        "coefficient": "spearman",
        **cells,
        "n": [[1, 1], [1, 1]],
    }
    (tmp_path / "run.json").write_text(json.dumps(run | {"matrices": [square]}), "utf-8")
    assert load(tmp_path).matrices
    (tmp_path / "run.json").write_text(
        json.dumps(run | {"matrices": [{**square, **changed}]}), "utf-8"
    )
    with pytest.raises(
        StorageError,
        match=r"run\.json: .*2 columns.*not square",
    ):
        load(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 99},
        {"later": []},
        {"estimates": [{"system": "a", "column": "b", "later": 1}]},
        {"comparisons": [{"column": "b", "differences": [], "ranks": [], "best": [], "later": 1}]},
        {"columns": [{"name": "b", "kind": "metric", "signature": "b", "labels": [], "later": 1}]},
    ],
)
def test_refuses_a_run_of_a_newer_version(
    result: Result, tmp_path: Path, changes: dict[str, Any]
) -> None:
    result.save(tmp_path)
    run = json.loads((tmp_path / "run.json").read_text("utf-8"))
    run["info"]["judge_version"] = "7.1"
    (tmp_path / "run.json").write_text(json.dumps(run | changes), "utf-8")
    message = rf"run\.json: .*newer judge.*7\.1.*{__version__}.*update judge"
    with pytest.raises(StorageError, match=message):
        load(tmp_path)


def test_calls_no_run_of_the_same_version_newer(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path)
    run = json.loads((tmp_path / "run.json").read_text("utf-8"))
    run["info"]["judge_version"] = __version__
    (tmp_path / "run.json").write_text(json.dumps(run | {"later": []}), "utf-8")
    with pytest.raises(StorageError, match="edited") as refused:
        load(tmp_path)
    assert "newer" not in str(refused.value)


def test_refuses_a_run_of_an_older_version_with_advice(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path)
    run = json.loads((tmp_path / "run.json").read_text("utf-8"))
    run["info"]["judge_version"] = "0.1.0"
    run["format"] = 1
    (tmp_path / "run.json").write_text(json.dumps(run), "utf-8")
    message = rf"older judge.*0\.1\.0 in format 1.*{__version__} with format \d\)"
    with pytest.raises(StorageError, match=message):
        load(tmp_path)


def _other(result: Result, **fields: Any) -> Result:
    """Return a run with different texts, or with other fields of its table."""
    table = result.table
    renamed = {
        "samples": tuple(replace(s, item=f"other {s.item}") for s in table.samples),
        "scores": tuple(replace(s, item=f"other {s.item}") for s in table.scores),
        "failures": (),
    }
    return replace(result, table=replace(table, **(fields or renamed)))


@pytest.mark.parametrize("file", ["scores.parquet", "samples.parquet"])
def test_tables_of_other_texts_are_refused(result: Result, tmp_path: Path, file: str) -> None:
    other = _other(result)
    scores = tuple(replace(s, value=s.value + 1) for s in other.table.scores)
    for name, one in (
        ("a", result),
        ("b", replace(other, table=replace(other.table, scores=scores))),
    ):
        one.save(tmp_path / name)
    shutil.copy(tmp_path / "b" / file, tmp_path / "a" / file)
    with pytest.raises(StorageError, match="different runs"):
        load(tmp_path / "a")


def test_texts_of_a_different_run_are_refused(result: Result, tmp_path: Path) -> None:
    signed = tuple(
        replace(column, signature=Signature("another")) for column in result.table.columns
    )
    fewer = tuple(s for s in result.table.samples if s.system != "lead")
    scores = tuple(s for s in result.table.scores if s.system != "lead")
    others: tuple[dict[str, Any], ...] = (
        {"columns": signed},
        {"samples": fewer, "scores": scores, "failures": ()},
        {"columns": result.table.columns[:1], "scores": ()},
    )
    for fields in others:
        result.save(tmp_path / "a", overwrite=True)
        _other(result, **fields).save(tmp_path / "b", overwrite=True)
        shutil.copy(tmp_path / "b" / "samples.parquet", tmp_path / "a" / "samples.parquet")
        with pytest.raises(StorageError, match=r"are of different runs"):
            load(tmp_path / "a")


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot read .*nowhere"):
        load(tmp_path / "nowhere")


def test_an_unknown_format_names_the_nearest(result: Result) -> None:
    with pytest.raises(ConfigError, match="did you mean 'markdown'"):
        result.report("markdwon")


def test_the_long_frame_and_the_failures_are_the_tables(result: Result) -> None:
    assert len(result.to_frame()) == 36
    assert result.failures == result.table.failures


def test_an_empty_result_has_every_report() -> None:
    empty = Result(Table((), (), ()))
    for format in ("console", "markdown", "html", "json", "svg"):
        assert empty.report(format)
    assert empty.report("csv").startswith("system,column,")


def test_a_number_json_cannot_hold_is_null_in_run_json(tmp_path: Path) -> None:
    table = Table(
        (Sample("i", "s", "o"),),
        (Column("m", "metric", Signature("m")),),
        (Score("i", "s", "m", 1.0, Provenance("metric")),),
    )
    learned = {"m": JudgeInfo(learned={"other": float("nan")})}
    Result(table, item_means(table), RunInfo(judges=learned)).save(tmp_path)
    assert load(tmp_path).info.judges["m"].learned == {"other": None}
