"""examples/regression: the steps of its CI files pass a change that helps and stop one that hurts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from judge.cli import app
from tests.factories import has_line

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "regression"


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs the CI steps of a pull request in a repository whose main has the example."""
    work = tmp_path / "work"
    work.mkdir()

    def git(*command: object) -> None:
        author = (
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.com",
            "-c",
            "init.defaultBranch=main",
        )
        subprocess.run(
            ["git", *author, *map(str, command)], cwd=work, check=True, capture_output=True
        )

    def pull(main: str, branch: str, broken: str = "") -> subprocess.CompletedProcess[str]:
        """`main` and `branch` are changes of the prompt, "." for none; an empty `main` has no suites yet."""
        git("init")
        (work / "evals").mkdir()
        (work / "evals" / "README.md").write_text("Suites are to come.", encoding="utf-8")
        if main:
            shutil.copytree(EXAMPLE, work / "evals", dirs_exist_ok=True)
            shutil.copy(EXAMPLE / main / "grounded.jinja", work / "evals")
        if broken:
            (work / "evals" / "broken.judge.yaml").write_text(broken, encoding="utf-8")
        git("add", ".")
        git("commit", "-m", "main")
        git("update-ref", "refs/remotes/origin/main", "HEAD")
        shutil.copytree(EXAMPLE, work / "evals", dirs_exist_ok=True)
        shutil.copy(EXAMPLE / branch / "grounded.jinja", work / "evals")
        job = yaml.safe_load((EXAMPLE / "github-actions.yml").read_text("utf-8"))["jobs"]["judge"]
        script = "\n".join(
            step["run"] for step in job["steps"] if "judge test" in step.get("run", "")
        )
        surroundings = os.environ | {
            "GITHUB_BASE_REF": "main",
            "GITHUB_STEP_SUMMARY": "summary.md",
            "JUDGE_CACHE": job["env"]["JUDGE_CACHE"],
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        return subprocess.run(
            ["bash", "-e", "-c", script], cwd=work, env=surroundings, capture_output=True, text=True
        )

    return pull


@pytest.mark.parametrize(
    ("main", "branch", "code", "first", "message"),
    [
        (".", "hurts", 1, "✗", "agrees worse with people"),
        (
            "hurts",
            ".",
            0,
            "✓",
            "agrees better with people",
        ),  # main is red, and the branch repairs it
        pytest.param("", ".", 0, "✓", "All 5 cases pass", marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_a_pull_request_that_hurts_is_stopped(
    repository: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
    main: str,
    branch: str,
    code: int,
    first: str,
    message: str,
) -> None:
    done = repository(main, branch)
    assert done.returncode == code, done.stderr
    summary = (tmp_path / "work" / "summary.md").read_text("utf-8")
    assert summary.startswith(f"## {first}")
    assert message in summary.replace("\\", "")
    assert (tmp_path / "work" / "judge.xml").read_text("utf-8").startswith("<?xml")


@pytest.mark.slow
def test_a_failing_run_of_main_fails_the_workflow(
    repository: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = repository(".", ".", broken="cases: []")
    assert done.returncode != 0
    assert has_line(done.stderr, "before/evals/broken.judge.yaml:1: cases", "at least one")


def test_offline_the_recording_is_committed_with_the_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(*args: str) -> Any:
        return CliRunner().invoke(app, args)

    shutil.copytree(EXAMPLE, tmp_path / "evals")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    jobs = yaml.safe_load((EXAMPLE / "github-actions-offline.yml").read_text("utf-8"))["jobs"]
    (script,) = (
        step["run"] for step in jobs["judge"]["steps"] if "judge test" in step.get("run", "")
    )
    words = script.replace('"$GITHUB_STEP_SUMMARY"', "summary.md").split()[1:]
    model = ("--model", "scripted/evals/replies.yaml")
    assert (
        command("test", "evals/grounded.judge.yaml", *model, "--record", "calls.jsonl").exit_code
        == 0
    )
    assert command(*words).exit_code == 0
    shutil.copy(EXAMPLE / "helps" / "grounded.jinja", "evals/grounded.jinja")
    stale = command(*words)
    assert stale.exit_code == 2
    output = " ".join(stale.output.split())
    assert has_line(output, "run this again", "--model and --record calls.jsonl", "--replay")
    assert (
        command("test", "evals/grounded.judge.yaml", *model, "--record", "calls.jsonl").exit_code
        == 0
    )
    assert command(*words).exit_code == 0
