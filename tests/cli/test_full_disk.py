"""A full disk while a command writes a file: the old file stays, and no half of a new one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import StorageError
from judge.core.files import append_whole, write_whole
from tests.factories import has_line, write_jsonl

resource = pytest.importorskip("resource")

LONG = "A ferry left the harbour. " * 100


@contextmanager
def files_of_at_most(n_bytes: int) -> Iterator[None]:
    """Let the system refuse what a file would hold beyond this size, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        {"item": item, "system": system, "output": LONG, "references": [LONG]}
        for item in "123456"
        for system in "ab"
    ]
    return write_jsonl(tmp_path / "data.jsonl", rows)


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Path:
    judge.evaluate(data, criteria=[], metrics=["chrf"], out=tmp_path / "r")
    return Path("r")


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("r.md", ["--format", "markdown"]),
        ("r.tex", ["--format", "latex"]),
        ("r.html", ["--format", "html"]),
        ("r.csv", ["--format", "csv"]),
        ("r.json", ["--format", "json"]),
        ("chrf.svg", ["--figure", "chrf"]),
        ("t.json", ["--export", "otel=t.json"]),
    ],
)
def test_a_report_that_does_not_fit_leaves_the_old_file_or_none(
    run: Path, command: Callable[..., Any], path: str, options: list[str]
) -> None:
    arguments = ["report", run, *options]
    if "--export" not in options:
        arguments += ["--output", path]
    with files_of_at_most(100):
        completed = command(*arguments)
    assert completed.code == 2
    assert has_line(completed.err, path, "File too large")
    assert not Path(path).exists()
    assert not list(Path(path).parent.glob(".judge-*.new"))

    Path(path).write_text("old")
    with files_of_at_most(100):
        assert command(*arguments).code == 2
    assert Path(path).read_text() == "old"


def test_generated_texts_that_do_not_fit_leave_no_file(tmp_path: Path) -> None:
    from judge.core.records import Sample
    from judge.run.generate import Outputs

    outputs = Outputs((Sample("1", "a", LONG),))
    with files_of_at_most(100), pytest.raises(StorageError, match="cannot be written"):
        outputs.save(tmp_path / "out.jsonl")
    assert list(tmp_path.glob("out*")) == []


def test_an_addition_that_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("old\n")
    with files_of_at_most(100), pytest.raises(OSError, match="too large"):
        append_whole(summary, LONG.encode())
    assert summary.read_text() == "old\n"
    append_whole(summary, b"new\n")
    assert summary.read_text() == "old\nnew\n"


def test_a_written_file_keeps_its_permissions_and_its_link(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    report.write_text("old")
    report.chmod(0o664)
    link = tmp_path / "link.md"
    link.symlink_to(report)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert report.read_text() == "new"
    assert report.stat().st_mode & 0o777 == 0o664


def test_a_new_report_has_the_permissions_of_other_new_files(tmp_path: Path) -> None:
    plain = tmp_path / "plain.md"
    plain.write_text("")
    write_whole(tmp_path / "report.md", b"new")
    assert (tmp_path / "report.md").stat().st_mode == plain.stat().st_mode


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, b"report")
        assert os.read(reader, 100) == b"report"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
