"""`judge init`: the new project passes, and fails after a bad change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from judge.commands import init
from tests.factories import has_line


@pytest.fixture
def project(tmp_path: Path, command: Callable[..., Any]) -> Path:
    """The starter project in the working folder."""
    completed = command("init")
    assert completed.code == 0, completed.err
    return tmp_path


def test_init_names_the_written_files_and_the_next_command(command: Callable[..., Any]) -> None:
    completed = command("init", "a project")
    assert {str(Path("a project") / name) for name in ("run.yaml", ".gitignore")} <= set(
        completed.out.splitlines()
    )
    next_steps = completed.out.partition("Next:\n")[2].splitlines()
    assert [line.split("  #")[0].strip() for line in next_steps] == [
        "cd 'a project'", "judge run run.yaml", "judge test .", "judge doctor",
    ]  # fmt: skip


def test_its_run_shows_a_difference_between_the_prompts(
    project: Path, command: Callable[..., Any]
) -> None:
    completed = command("run", "run.yaml", "--json")
    assert completed.code == 0, completed.err
    assert json.loads(completed.out)["finding"][0] == "new_prompt beats old_prompt"
    assert (project / "runs" / "first" / "report.html").exists()


def test_its_suite_passes_until_the_readmes_one_word_is_changed(
    project: Path, command: Callable[..., Any]
) -> None:
    assert command("test", ".").code == 0
    readme = (project / "README.md").read_text("utf-8")
    before, after = re.search(r"replace `(\w+)` by `(\w+)`", readme).groups()  # type: ignore[union-attr]
    file = project / "politeness.yaml"
    text = file.read_text("utf-8")
    assert text.count(before) == 1
    file.write_text(text.replace(before, after), "utf-8")
    completed = command("test", ".")
    assert completed.code == 1
    assert "2 cases: 2 failed" in completed.out


def test_init_workflow_runs_the_suite_and_writes_ci_reports(
    project: Path, command: Callable[..., Any]
) -> None:
    flow = yaml.safe_load((project / ".github" / "workflows" / "judge.yml").read_text("utf-8"))
    (line,) = [
        step["run"]
        for step in flow["jobs"]["judge"]["steps"]
        if "judge test" in step.get("run", "")
    ]
    words = line.replace('"$GITHUB_STEP_SUMMARY"', "summary.md").split()
    assert command(*words[1:]).code == 0
    assert "politeness" in (project / "summary.md").read_text("utf-8")
    assert "<testsuite" in (project / "judge.xml").read_text("utf-8")


def test_a_real_model_takes_one_line(project: Path, command: Callable[..., Any]) -> None:
    text = (project / "run.yaml").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("model:")]
    file = project / "real.yaml"
    file.write_text("\n".join(lines).replace("# model:", "model:"), "utf-8")
    completed = command("plan", "real.yaml")
    assert completed.code == 0, completed.err
    assert "gpt-5.4-mini" in completed.out


def test_nothing_is_overwritten(tmp_path: Path, command: Callable[..., Any]) -> None:
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    (tmp_path / "run.yaml").write_text("mine", "utf-8")
    (tmp_path / "data.jsonl").symlink_to("nowhere")
    completed = command("init")
    assert completed.code == 2
    assert all(part in completed.err for part in ("run.yaml", "data.jsonl", "nothing was written"))
    assert "README" not in completed.err
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", "run.yaml", "data.jsonl"}
    assert (tmp_path / "run.yaml").read_text("utf-8") == "mine"
    assert command("init", "notes.txt").code == 2


def test_every_file_is_the_packages_beside_other_files(
    tmp_path: Path, command: Callable[..., Any]
) -> None:
    folder = tmp_path / "new" / "project"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine", "utf-8")
    assert command("init", folder).code == 0
    source = Path(init.__file__).parent / "starter"
    packaged = {
        path.relative_to(source): path.read_bytes() for path in source.rglob("*") if path.is_file()
    }
    written = {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    assert len(packaged) == 8
    assert written == packaged | {Path("notes.txt"): b"mine"}


def test_a_file_instead_of_the_folder_is_an_error(command: Callable[..., Any]) -> None:
    Path("replies.csv").write_text("item\n", encoding="utf-8")
    completed = command("init", "replies.csv")
    assert completed.code == 2
    assert has_line(completed.err, "judge: replies.csv", "is a file", "name a folder")


def test_the_skill_is_written_into_a_folder_of_its_name(
    tmp_path: Path, command: Callable[..., Any]
) -> None:
    completed = command("init", "--skill", ".claude/skills")
    assert completed.code == 0, completed.err
    folder = tmp_path / ".claude" / "skills"
    text = (folder / "judge" / "SKILL.md").read_text("utf-8")
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["name"] == "judge"
    assert (folder / "judge" / "references" / "options.md").is_file()
    assert command("init", "--skill", "-").out == text


def test_an_existing_skill_is_not_overwritten(tmp_path: Path, command: Callable[..., Any]) -> None:
    (tmp_path / "judge").mkdir()
    (tmp_path / "judge" / "SKILL.md").write_text("mine", "utf-8")
    completed = command("init", "--skill", ".")
    assert completed.code == 2
    assert "judge/SKILL.md is already there" in completed.err
    assert (tmp_path / "judge" / "SKILL.md").read_text("utf-8") == "mine"
    assert not (tmp_path / "judge" / "references").exists()


@pytest.mark.parametrize("more", [["project"], ["--suite", "data.csv"], ["--model", "m"]])
def test_the_skill_is_written_alone(more: list[str], command: Callable[..., Any]) -> None:
    completed = command("init", "--skill", "skills", *more)
    assert completed.code == 2
    assert has_line(completed.err, "--skill skills", "alone")
