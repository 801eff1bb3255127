"""examples/regression: a change that helps passes, one that hurts is caught, also by the steps of its CI file."""

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

import judge

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "regression"
SUITE = EXAMPLE / "grounded.judge.yaml"


def _unmet(**options: Any) -> dict[str, str]:
    (outcome,) = judge.test(SUITE, **options)
    return {verdict.name: verdict.status for verdict in outcome.verdicts if not verdict.met}


def test_the_suite_passes_as_it_stands_and_after_the_change_that_helps(tmp_path: Path) -> None:
    assert _unmet(baseline=tmp_path, update_baseline=True) == {}
    assert _unmet(baseline=tmp_path, criteria=str(EXAMPLE / "helps" / "grounded.jinja")) == {}
    (outcome,) = judge.test(SUITE, baseline=tmp_path, criteria=str(EXAMPLE / "helps" / "grounded.jinja"))
    assert outcome.verdicts[-1].said.startswith("agrees better with people")


def test_the_change_that_hurts_is_caught(tmp_path: Path) -> None:
    judge.test(SUITE, baseline=tmp_path, update_baseline=True)
    assert _unmet(baseline=tmp_path, criteria=str(EXAMPLE / "hurts" / "grounded.jinja")) == {
        "careful answers beat hasty ones": "undecided",
        "two numbers that changed places are not": "failed",
        "an invented reason to hope is not grounded": "failed",
        "goes with people's ratings": "undecided",
        "grounded against the baseline": "failed",
    }


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """What a pull request's own steps do in a repository whose main has the example, and whose branch changes it."""
    work = tmp_path / "work"
    work.mkdir()

    def git(*command: object) -> None:
        author = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *author, *map(str, command)], cwd=work, check=True, capture_output=True)

    def pull(change: str) -> subprocess.CompletedProcess[str]:
        git("init")
        shutil.copytree(EXAMPLE, work / "evals")
        git("add", ".")
        git("commit", "-m", "main")
        git("update-ref", "refs/remotes/origin/main", "HEAD")
        shutil.copy(EXAMPLE / change / "grounded.jinja", work / "evals")
        job = yaml.safe_load((EXAMPLE / "github-actions.yml").read_text("utf-8"))["jobs"]["judge"]
        script = "\n".join(step["run"] for step in job["steps"] if "judge test" in step.get("run", ""))
        surroundings = os.environ | {
            "GITHUB_BASE_REF": "main",
            "GITHUB_STEP_SUMMARY": "summary.md",
            "JUDGE_CACHE": job["env"]["JUDGE_CACHE"],
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        return subprocess.run(["bash", "-e", "-c", script], cwd=work, env=surroundings, capture_output=True, text=True)

    return pull


@pytest.mark.parametrize(("change", "code", "first"), [("helps", 0, "✓"), ("hurts", 1, "✗")])
def test_a_pull_request_that_hurts_is_stopped(
    repository: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, change: str, code: int, first: str
) -> None:
    done = repository(change)
    assert done.returncode == code, done.stderr
    assert (tmp_path / "work" / "summary.md").read_text("utf-8").startswith(f"## {first}")
    assert (tmp_path / "work" / "judge.xml").read_text("utf-8").startswith("<?xml")
