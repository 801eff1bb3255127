"""Links and folders of other users are refused, and only the owner may read files with texts."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from judge import criteria
from judge.cache.disk import DiskCache
from judge.core import files
from judge.core.errors import CriterionError, StorageError
from judge.core.files import locked, replacing
from judge.providers.recording import Recorder
from judge.table import store

TEMPLATE = """---
title: Peek
scale: [1, 5]
---
{{% extends "layouts/pointwise.jinja" %}}
{{% block criterion %}}{{% include "{name}" %}}{{% endblock %}}
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def open_umask() -> Any:
    previous = os.umask(0o022)
    yield
    os.umask(previous)


@pytest.mark.parametrize(
    ("link", "target", "name"),
    [("link.jinja", "part.jinja", "link.jinja"), ("parts", "", "parts/part.jinja")],
)
def test_a_link_out_of_the_criterions_folder_is_refused(
    tmp_path: Path, link: str, target: str, name: str
) -> None:
    criterion_folder = tmp_path / "criterion"
    criterion_folder.mkdir()
    secret_folder = tmp_path / "secret"
    secret_folder.mkdir()
    (secret_folder / "part.jinja").write_text("the secret")
    (criterion_folder / link).symlink_to(secret_folder / target)
    (criterion_folder / "peek.jinja").write_text(TEMPLATE.format(name=name))
    with pytest.raises(CriterionError, match="criterion's folder"):
        criteria.load(str(criterion_folder / "peek.jinja"))


def test_links_within_and_to_the_criterions_folder_are_followed(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "part.jinja").write_text("Look closely.")
    (real / "same.jinja").symlink_to("part.jinja")
    (real / "peek.jinja").write_text(TEMPLATE.format(name="same.jinja"))
    (tmp_path / "linked").symlink_to(real)
    for folder in (real, tmp_path / "linked"):
        assert "same.jinja" in criteria.load(str(folder / "peek.jinja")).layouts


def test_a_file_is_not_written_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(files, "token_hex", lambda _n_bytes: "guessed")
    (tmp_path / ".judge-guessed.new").symlink_to(victim)
    with pytest.raises(FileExistsError), replacing(tmp_path / "rec.jsonl") as file:
        file.write(b"{}\n")
    assert victim.read_text() == "mine"
    assert not (tmp_path / "rec.jsonl").exists()


def test_two_writers_of_one_file_do_not_mix_their_contents(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with replacing(path) as slow:
        slow.write(b"the slow ")
        with replacing(path) as fast:
            fast.write(b"the fast report")
        slow.write(b"report")
    assert path.read_text() == "the slow report"
    assert [*tmp_path.iterdir()] == [path]


def test_a_cache_folder_that_is_a_link_is_refused_without_changing_its_target(
    tmp_path: Path,
) -> None:
    (tmp_path / "target").mkdir(mode=0o755)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "responses").symlink_to(tmp_path / "target")
    with pytest.raises(StorageError, match="it is a link"):
        DiskCache(tmp_path / "cache")
    assert mode(tmp_path / "target") == 0o755
    assert not [*(tmp_path / "target").iterdir()]


def test_a_cache_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DiskCache(tmp_path).close()
    owner = (tmp_path / "responses").stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 4242)
    if owner == 0:  # folders of root are accepted, and the tests may run as root
        os.chown(tmp_path / "responses", 4343, -1)
    with pytest.raises(StorageError, match="belongs to another user"):
        DiskCache(tmp_path)


def test_only_the_owner_may_read_files_with_texts(tmp_path: Path) -> None:
    DiskCache(tmp_path / "cache").close()
    assert mode(tmp_path / "cache" / "responses") == 0o700
    assert {mode(path) for path in (tmp_path / "cache" / "responses").iterdir()} == {0o600}
    store(tmp_path / "runs" / "one", {"run.json": b"{}"})
    assert (mode(tmp_path / "runs"), mode(tmp_path / "runs" / "one")) == (0o755, 0o700)
    Recorder(tmp_path / "rec.jsonl").close()
    assert mode(tmp_path / "rec.jsonl") == 0o600
    with locked(tmp_path / "lock"):
        assert mode(tmp_path / "lock") == 0o600


def test_a_run_folder_that_the_owner_opened_to_others_stays_open(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o755)
    store(tmp_path / "run", {"run.json": b"{}"})
    assert mode(tmp_path / "run") == 0o755


def test_a_recording_that_the_owner_opened_to_others_stays_open(tmp_path: Path) -> None:
    recording = tmp_path / "rec.jsonl"
    recording.write_bytes(b"")
    recording.chmod(0o644)
    with replacing(recording) as file:
        file.write(b"{}\n")
    assert mode(recording) == 0o644
