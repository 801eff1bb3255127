"""A disk that fills up when results are written: what is said of them is true, and what was paid for is kept."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import judge
from judge.core.errors import StorageError
from judge.results.result import load
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


def said_by_run(out: Path, cache: Path | bool) -> str:
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
    output = said_by_run(out, tmp_path / "cache")
    assert has_line(output, "6 of 6 judgments", f"{out} does not hold")
    assert has_line(output, "cache answers", "already paid")
    assert list(out.iterdir()) == []


def test_results_without_a_cache_are_rescued_next_to_a_full_folder(
    tmp_path: Path, full: Fill
) -> None:
    out = tmp_path / "out"
    full(lambda path: out in path.parents)
    output = said_by_run(out, False)
    beside = tmp_path / "out.rescued"
    assert has_line(output, "6 of 6 judgments", f"kept in {beside}.")
    assert [score.value for score in load(beside).table.scores] == [2.0] * 6


def test_an_earlier_rescue_is_not_overwritten(tmp_path: Path, full: Fill) -> None:
    out = tmp_path / "out"
    (tmp_path / "out.rescued").mkdir()
    full(lambda path: out in path.parents)
    assert f"kept in {tmp_path / 'out.rescued.2'}." in said_by_run(out, False)


def test_results_without_a_cache_are_rescued_to_the_temporary_folder(
    tmp_path: Path, full: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    full(lambda path: elsewhere not in path.parents)
    output = said_by_run(tmp_path / "disk" / "out", False)
    assert f"kept in {elsewhere / 'out.rescued'}." in output
    assert len(load(elsewhere / "out.rescued").table.scores) == 6
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["out"]


@pytest.mark.parametrize("cached", [True, False])
def test_results_are_kept_without_their_pages_if_only_the_pages_do_not_fit(
    tmp_path: Path, full: Fill, cached: bool
) -> None:
    out = tmp_path / "out"
    full(lambda path: path.suffix == ".html")
    output = said_by_run(out, tmp_path / "cache" if cached else False)
    assert has_line(output, "6 of 6 judgments", f"kept in {out}.")
    assert len(load(out).table.scores) == 6
    assert not (out / "report.html").exists()


def test_a_full_disk_is_not_reported_as_saved(tmp_path: Path, full: Fill) -> None:
    full(lambda _: True)
    output = said_by_run(tmp_path / "out", False)
    assert has_line(output, "6 of 6 judgments", f"{tmp_path / 'out'} does not hold")
    assert "kept in" not in output
