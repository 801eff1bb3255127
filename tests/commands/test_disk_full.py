"""A full disk while judge writes results: messages are true and paid replies are not lost."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.cache import disk
from judge.commands.cache import import_replies
from judge.core.errors import StorageError
from judge.core.files import locked
from judge.providers.recording import RecordingFile
from judge.results.loading import load
from tests.factories import has_line

ROWS = [
    {"item": str(n), "system": s, "output": f"Ferry {n} of {s}."} for n in range(3) for s in "ab"
]
Fill = Callable[[Callable[[Path], bool]], None]


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Fill:
    """Make the disk full for the paths that a function chooses."""

    def fill(chooses: Callable[[Path], bool]) -> None:
        write = Path.write_bytes

        def refuse(path: Path, data: bytes) -> int:
            if chooses(path):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(path, data)

        monkeypatch.setattr(Path, "write_bytes", refuse)

    return fill


def run_messages(out: Path, cache: Path | bool) -> str:
    model = judge.ScriptedProvider(lambda _: "2")
    with pytest.raises(StorageError) as caught:
        judge.evaluate(
            ROWS,
            ["fluency"],
            model=model,
            metrics=[],
            weighting="single",
            out=out,
            cache=cache,  # type: ignore[arg-type]
        )
    return " ".join([str(caught.value), *caught.value.__notes__])


def test_a_full_output_folder_is_not_reported_as_saved(tmp_path: Path, full: Fill) -> None:
    out = tmp_path / "out"
    full(lambda path: out in path.parents)
    output = run_messages(out, tmp_path / "cache")
    assert has_line(output, "6 of 6 judgments", f"{out} does not hold")
    assert has_line(output, "cache answers", "already paid")
    assert list(out.iterdir()) == []


def test_results_without_a_cache_are_rescued_next_to_a_full_folder(
    tmp_path: Path, full: Fill
) -> None:
    out = tmp_path / "out"
    full(lambda path: out in path.parents)
    output = run_messages(out, False)
    beside = tmp_path / "out.rescued"
    assert has_line(output, "6 of 6 judgments", f"kept in {beside}.")
    assert [score.value for score in load(beside).table.scores] == [2.0] * 6


def test_an_earlier_rescue_is_not_overwritten(tmp_path: Path, full: Fill) -> None:
    out = tmp_path / "out"
    (tmp_path / "out.rescued").mkdir()
    full(lambda path: out in path.parents)
    assert f"kept in {tmp_path / 'out.rescued.2'}." in run_messages(out, False)


def test_results_without_a_cache_are_rescued_to_the_temporary_folder(
    tmp_path: Path, full: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    full(lambda path: elsewhere not in path.parents)
    output = run_messages(tmp_path / "disk" / "out", False)
    assert f"kept in {elsewhere / 'out.rescued'}." in output
    assert len(load(elsewhere / "out.rescued").table.scores) == 6
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["out"]


@pytest.mark.parametrize("cached", [True, False])
def test_results_are_saved_without_pages_if_the_pages_do_not_fit(
    tmp_path: Path, full: Fill, cached: bool
) -> None:
    out = tmp_path / "out"
    full(lambda path: path.suffix == ".html")
    output = run_messages(out, tmp_path / "cache" if cached else False)
    assert has_line(output, "6 of 6 judgments", f"kept in {out}.")
    assert len(load(out).table.scores) == 6
    assert not (out / "report.html").exists()


def test_a_full_disk_is_not_reported_as_saved(tmp_path: Path, full: Fill) -> None:
    full(lambda _: True)
    output = run_messages(tmp_path / "out", False)
    assert has_line(output, "6 of 6 judgments", f"{tmp_path / 'out'} does not hold")
    assert "kept in" not in output


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def judge_at_a_server(**options: Any) -> list[str]:
    """Judge all rows; return the keys of the requests that the server got."""
    model = server()
    judge_rows(model, **options)
    return keys_of(model)


def server() -> judge.ScriptedProvider:
    return judge.ScriptedProvider(lambda _: "2", endpoint="https://judge.invalid/v1")


def judge_rows(model: judge.ScriptedProvider, **options: Any) -> None:
    judge.evaluate(ROWS, ["fluency"], model=model, metrics=[], weighting="single", **options)


def keys_of(model: judge.ScriptedProvider) -> list[str]:
    return [request.key() for request in model.seen]


def fill_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the cache store the first reply only."""
    write = disk._write
    transactions: list[Any] = []

    def refuse(store: Any, rows: Any) -> None:
        if transactions:
            raise sqlite3.OperationalError("database or disk is full")
        transactions.append(store)
        write(store, rows)

    monkeypatch.setattr(disk, "_write", refuse)


def fill_recording(monkeypatch: pytest.MonkeyPatch, path: Path, room: int) -> None:
    """Let the recording take this number of replies."""

    @contextmanager
    def refuse(written: Path) -> Iterator[FileIO]:
        if written == path and path.exists() and path.read_bytes().count(b"\n") == room:
            raise FULL
        with locked(written) as file:
            yield file

    monkeypatch.setattr("judge.providers.recording.locked", refuse)


def stopped_run(**options: Any) -> tuple[list[str], str]:
    """Return the keys of the requests of a run that a full disk ends, and its notes."""
    model = server()
    with pytest.raises(StorageError) as caught:
        judge_rows(model, **options)
    return keys_of(model), " ".join(caught.value.__notes__)


def test_replies_that_a_full_cache_cannot_store_are_rescued(tmp_path: Path) -> None:
    options = {"out": tmp_path / "out", "cache": tmp_path / "cache"}
    with pytest.MonkeyPatch.context() as monkeypatch:
        fill_cache(monkeypatch)
        paid, notes = stopped_run(**options)
    rescued = tmp_path / "out.rescued.jsonl"
    assert f"except {len(paid) - 1} of the replies. These are in {rescued}" in notes
    assert f"judge doctor cache import {rescued} --cache {tmp_path / 'cache'}" in notes
    import_replies(tmp_path / "cache", rescued, base_url=None)
    second_run = judge_at_a_server(**options)
    assert len(paid) + len(second_run) == len({*paid, *second_run}) == len(ROWS)


def test_replies_that_a_full_recording_cannot_take_are_rescued(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    options = {"out": tmp_path / "out", "cache": False, "record": calls}
    with pytest.MonkeyPatch.context() as monkeypatch:
        fill_recording(monkeypatch, calls, room=2)
        paid, notes = stopped_run(**options)
    rescued = tmp_path / "out.rescued.jsonl"
    assert f"These are in {rescued}: first append this file to {calls}." in notes
    with calls.open("ab") as file:
        file.write(rescued.read_bytes())
    second_run = judge_at_a_server(**options)
    assert len(paid) + len(second_run) == len({*paid, *second_run}) == len(ROWS)


def test_replies_are_cached_if_only_the_recording_is_full(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    with pytest.MonkeyPatch.context() as monkeypatch:
        fill_recording(monkeypatch, calls, room=2)
        paid, notes = stopped_run(cache=tmp_path / "cache", record=calls)
    assert notes.endswith("The cache answers what is already paid for.")
    second_run = judge_at_a_server(cache=tmp_path / "cache")
    assert len(paid) + len(second_run) == len({*paid, *second_run}) == len(ROWS)


def test_a_folder_that_cannot_take_all_rescued_replies_keeps_none(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    beside = tmp_path / "out.rescued.jsonl"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        fill_cache(monkeypatch)
        fill_recording(monkeypatch, beside, room=1)
        paid, notes = stopped_run(out=tmp_path / "out", cache=tmp_path / "cache")
    rescued = temporary / beside.name
    assert f"These are in {rescued}" in notes
    assert rescued.read_bytes().count(b"\n") == len(paid) - 1 > 1
    assert not beside.exists()


def test_lost_replies_are_counted_if_no_folder_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_cache(monkeypatch)

    def refuse(_: Path) -> None:
        raise FULL

    monkeypatch.setattr("judge.providers.recording.locked", refuse)
    paid, notes = stopped_run(cache=tmp_path / "cache")
    assert f"except {len(paid) - 1} of the replies, which no folder could take." in notes


def test_a_message_explains_that_the_recording_is_unsorted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise FULL

    monkeypatch.setattr(RecordingFile, "write", refuse)
    options = {"out": tmp_path / "out", "cache": False, "record": tmp_path / "calls.jsonl"}
    paid, notes = stopped_run(**options)
    assert len(paid) == len(ROWS)
    assert f"6 of 6 judgments are done and kept in {tmp_path / 'out'}." in notes
    assert notes.endswith("The recording answers what is already paid for.")
