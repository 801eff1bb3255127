"""Data in several files. Oracles: the same rows in one file, and hashlib."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.errors import DataError
from judge.data import samples
from tests.factories import has_line, write_jsonl

ROWS: list[dict[str, Any]] = [
    {
        "item": str(n),
        "system": system,
        "output": f"{system} on {n}\nin two lines",
        "references": [f"All of {n}."],
    }
    for n in range(6)
    for system in ("a", "b")
]


def write_json(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps(rows), encoding="utf-8")


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    flat = [row | {"references": json.dumps(row["references"])} for row in rows]
    pd.DataFrame(flat).to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=False)


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


WRITERS: dict[str, Callable[[Path, list[dict[str, Any]]], object]] = {
    ".jsonl": write_jsonl,
    ".ndjson": write_jsonl,
    ".json": write_json,
    ".csv": write_table,
    ".tsv": write_table,
    ".parquet": write_parquet,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder `shards` with two rows in a file of each format, and files that are not shards."""
    monkeypatch.chdir(tmp_path)
    root = Path("shards")
    (root / "inside").mkdir(parents=True)
    for n, (suffix, write) in enumerate(WRITERS.items()):
        write(root / f"part-{n}{suffix.upper() if n == 1 else suffix}", ROWS[2 * n : 2 * n + 2])
    for name in (
        ".part-0.jsonl",
        ".part-9.jsonl.gz",
        "_SUCCESS",
        "README.md",
        "part-0.jsonl.crc",
        "inside/more.jsonl",
    ):
        (root / name).write_text("no data", encoding="utf-8")
    return root


def loaded_texts(data: Any) -> list[tuple[Any, ...]]:
    return [(s.item, s.system, s.output, s.references) for s in samples.load(data)]


def error_message(data: Any) -> str:
    with pytest.raises(DataError) as caught:
        samples.load(data)
    return str(caught.value)


@pytest.mark.parametrize(
    "data",
    ["shards", "shards/", "./shards", Path("shards"), "shards/part-?.*[!c]", "s*/p*-[0-5].*"],
)
def test_shards_are_read_as_one_file_with_all_rows(folder: Path, data: Any) -> None:
    (folder / "part-0.jsonl.crc").unlink()
    write_jsonl(Path("all.jsonl"), ROWS)
    assert loaded_texts(data) == loaded_texts("all.jsonl")


def test_the_location_names_shard_and_line(folder: Path) -> None:
    assert [sample.where for sample in samples.load("shards")] == [
        "shards/part-0.jsonl:1",
        "shards/part-0.jsonl:2",
        "shards/part-1.NDJSON:1",
        "shards/part-1.NDJSON:2",
        "shards/part-2.json row 1",
        "shards/part-2.json row 2",
        "shards/part-3.csv:2",
        "shards/part-3.csv:4",
        "shards/part-4.tsv:2",
        "shards/part-4.tsv:4",
        "shards/part-5.parquet row 1",
        "shards/part-5.parquet row 2",
    ]


@given(st.lists(st.text("ab1", min_size=1, max_size=3), min_size=1, max_size=6, unique=True))
def test_shards_are_read_in_the_order_of_their_names(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("named")
    for name in names:
        write_jsonl(folder / f"{name}.jsonl", [{"output": name}])
    expected = sorted(f"{name}.jsonl" for name in names)
    for data in (folder, folder / "*.jsonl"):
        loaded = samples.load(data)
        assert [f"{sample.output}.jsonl" for sample in loaded] == expected
        # Items are numbered over all shards.
        assert [sample.item for sample in loaded] == [str(n + 1) for n in range(len(names))]


def test_a_pattern_includes_subfolders_but_no_hidden_files(tmp_path: Path) -> None:
    for name in ("b/x/1.jsonl", "a/2.jsonl", "3.jsonl", ".hidden/4.jsonl", "a/.5.jsonl", "a/6.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write_jsonl(tmp_path / name, [{"output": name}])
    assert [s.output for s in samples.load(tmp_path / "**" / "*.jsonl")] == [
        "3.jsonl",
        "a/2.jsonl",
        "b/x/1.jsonl",
    ]
    assert [s.output for s in samples.load(tmp_path / "?" / "*.jsonl")] == ["a/2.jsonl"]


def test_brackets_in_existing_names_are_not_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "[v1]").mkdir()
    for name in ("[v1]/d[1].jsonl", "[v1]/d1.jsonl", "[v1]/d2.jsonl"):
        write_jsonl(tmp_path / name, [{"output": name}])
    assert [s.output for s in samples.load(tmp_path / "[v1]" / "d[1].jsonl")] == ["[v1]/d[1].jsonl"]
    assert [s.output for s in samples.load(tmp_path / "[v1]" / "d[12].jsonl")] == [
        "[v1]/d1.jsonl",
        "[v1]/d2.jsonl",
    ]
    assert len(samples.load(tmp_path / "[v1]")) == 3


def test_a_shard_is_opened_after_the_previous_shard_was_read(folder: Path) -> None:
    """The error of a broken shard is raised only when it is reached, so no shard is opened early."""
    (folder / "part-1.NDJSON").write_text("{output", encoding="utf-8")
    reader = samples.stream("shards")
    assert [next(reader).item, next(reader).item] == ["0", "0"]
    with pytest.raises(DataError, match=r"^shards/part-1\.NDJSON:1: not JSON"):
        next(reader)


def test_empty_shards_are_skipped(folder: Path) -> None:
    (folder / "part-00.jsonl").touch()
    assert len(loaded_texts("shards")) == len(ROWS)
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    (folder / "part-00.jsonl").touch()
    assert error_message("shards") == "shards: no rows"


def test_a_second_row_of_an_item_and_system_names_both_shards(folder: Path) -> None:
    write_jsonl(folder / "part-6.jsonl", ROWS[:1])
    message = error_message("shards")
    assert has_line(
        message, "shards/part-6.jsonl:1: item '0' of system 'a'", "shards/part-0.jsonl:1"
    )


# Invalid data


def test_a_folder_or_pattern_without_data_is_an_error(folder: Path) -> None:
    known = "(known: .jsonl, .ndjson, .json, .csv, .tsv, .xlsx, .parquet)"
    Path("empty/.git").mkdir(parents=True)
    Path("empty/notes.txt").touch()
    assert has_line(error_message("empty"), "empty: no data", known, "'empty/**/*.csv'")
    assert has_line(error_message("shards/*.arrow"), "shards/*.arrow: no file", "in shards")
    assert has_line(error_message("shrads/*.csv"), "shrads/*.csv: no file", f"{Path.cwd()}")
    assert error_message("shards/*") == "shards/README.md: unknown suffix '.md' " + known
    assert error_message("shards/a**.csv").startswith("shards/a**.csv: ")
    write_jsonl(folder / "part-8.jsonl", [])
    (folder / "part-8.jsonl").rename(folder / "part-8.jsonl.gz")
    assert has_line(error_message("shards"), "shards: part-8.jsonl.gz", "unpack", "pattern")


@pytest.mark.parametrize("mark", ["run.json", "scores.parquet"])
def test_a_run_folder_as_data_is_an_error(folder: Path, mark: str) -> None:
    assert samples.is_data(folder)
    (folder / mark).touch()
    assert not samples.is_data(folder)
    assert has_line(error_message("shards"), "shards: this is the folder of a run", "name the data")


def test_data_files_and_folders_are_recognised(folder: Path) -> None:
    Path("empty").mkdir()
    assert not samples.is_data(Path("empty"))
    assert all(
        map(samples.is_data, (Path("shards/part-3.csv"), Path("nowhere"), Path("shards/*.csv")))
    )


# Digest and title


def test_the_digest_covers_every_shard(folder: Path) -> None:
    digests = [
        hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob("part-?.*[!c]"))
    ]
    assert len(digests) == len(WRITERS)
    first = samples.content_hash("shards")
    assert first == digest_of_lines(digests)
    (folder / "part-1.NDJSON").write_text(
        (folder / "part-1.NDJSON").read_text("utf-8") + "\n", encoding="utf-8"
    )
    assert samples.content_hash("shards") != first
    assert samples.content_hash("shards/*.tsv") == digests[4]
    folder.rename("moved")
    Path("moved/part-1.NDJSON").unlink()
    assert samples.content_hash("moved/") == digest_of_lines([digests[0], *digests[2:]])
    with pytest.raises(DataError, match="no such file"):
        samples.content_hash("shards")


def digest_of_lines(lines: list[str]) -> str:
    text = "".join(f"{line}\n" for line in lines)
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("shards", "shards"),
        ("shards/", "shards"),
        ("shards/part-*.csv", "shards"),
        ("shards/part-3.csv", "part-3"),
        ("shards/*/x.csv", "shards"),
        ("shards/inside/..", "shards"),
        ("nowhere/d.v1.csv", "d.v1"),
        ("/", "data"),
    ],
)
def test_a_run_folder_has_the_name_of_the_data(folder: Path, data: str, expected: str) -> None:
    assert samples.dataset_name(data) == expected


def test_a_run_folder_has_the_name_of_the_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert [samples.dataset_name(data) for data in (".", "*.csv", "part-*")] == ["shards"] * 3
