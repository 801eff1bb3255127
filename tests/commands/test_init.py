"""The starter project: what is written, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from judge.cli.setup import create_project

from judge import criteria
from judge.core.errors import ConfigError, StorageError

FILES = {
    "README.md", "data.jsonl", "politeness.jinja", "politeness.judge.yaml", "replies.yaml", "run.yaml", ".gitignore",
    ".github/workflows/judge.yml",
}  # fmt: skip


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_every_file_is_written_as_the_package_has_it(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "project"
    wrote = create_project(folder)
    assert names(folder) == {str(path.relative_to(folder)) for path in wrote} == FILES
    source = Path(criteria.__file__).parents[1] / "cli" / "starter"
    assert all(path.read_bytes() == (source / path.relative_to(folder)).read_bytes() for path in wrote)


def test_nothing_is_written_where_a_file_is_there(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("mine", "utf-8")
    (tmp_path / "data.jsonl").symlink_to("nowhere")
    with pytest.raises(ConfigError) as refused:
        create_project(tmp_path)
    assert str(tmp_path / "run.yaml") in str(refused.value)
    assert str(tmp_path / "data.jsonl") in str(refused.value)
    assert "README" not in str(refused.value)
    assert {path.name for path in tmp_path.iterdir()} == {"run.yaml", "data.jsonl"}
    assert (tmp_path / "run.yaml").read_text("utf-8") == "mine"


def test_other_files_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    create_project(tmp_path)
    assert names(tmp_path) == FILES | {"notes.txt"}


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", "utf-8")
    with pytest.raises(StorageError, match="file"):
        create_project(tmp_path / "file")
