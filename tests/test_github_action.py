"""The steps of .github/actions/judge: what they install, run, comment and keep."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
ACTION: dict[str, Any] = yaml.safe_load(
    (ROOT / ".github/actions/judge/action.yml").read_text("utf-8")
)
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "name" in step}
Step = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def step(tmp_path: Path) -> Step:
    """Return a function that runs a step in a repository with the example's suites; `pip` and `gh` are recorded."""
    shutil.copytree(ROOT / "examples/regression", tmp_path / "evals")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("pip", "gh"):
        (tools / name).write_text(
            f'#!/bin/sh\nprintf "%s\\n" "{name} $*" >> calls.txt\n', encoding="utf-8"
        )
        (tools / name).chmod(0o755)

    def run(name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        action_inputs = {
            key: str(each.get("default", "")) for key, each in ACTION["inputs"].items()
        } | inputs
        known = {"github.event.pull_request.number": "7"} | {
            f"inputs.{key}": value for key, value in action_inputs.items()
        }
        variables = {
            key: re.sub(r"\$\{\{ (.*?) \}\}", lambda match: known[match[1]], str(value))
            for key, value in STEPS[name].get("env", {}).items()
        }
        path = f"{tools}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        github = {
            "GITHUB_STEP_SUMMARY": "summary.md",
            "GITHUB_REPOSITORY": "me/repository",
            "PATH": path,
        }
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", STEPS[name]["run"]],
            cwd=tmp_path, env=os.environ | github | variables, capture_output=True, text=True,
        )  # fmt: skip

    return run


def calls(folder: Path) -> list[str]:
    return (folder / "calls.txt").read_text("utf-8").splitlines()


def test_the_version_is_the_newest_or_the_named_one(step: Step, tmp_path: Path) -> None:
    assert step("install").returncode == step("install", version="0.1.0").returncode == 0
    assert calls(tmp_path) == [
        "pip install --quiet textjudge",
        "pip install --quiet textjudge==0.1.0",
    ]


@pytest.mark.slow
def test_a_suite_that_passes_is_reported(step: Step, tmp_path: Path) -> None:
    done = step("test", suites="evals", arguments="--budget 1usd")
    assert done.returncode == 0, done.stderr
    report = (tmp_path / "judge-report/report.md").read_text("utf-8")
    assert report.startswith("## ✓")
    assert (tmp_path / "summary.md").read_text("utf-8") == report
    assert (tmp_path / "judge-report/judge.xml").exists()
    assert list((tmp_path / "judge-report/runs").glob("**/report.html"))


def test_a_suite_that_fails_fails_the_job_and_is_commented(step: Step, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "evals/hurts/grounded.jinja", tmp_path / "evals/grounded.jinja")
    assert step("test", suites="evals").returncode == 1
    assert (tmp_path / "summary.md").read_text("utf-8").startswith("## ✗")
    assert step("comment").returncode == 0
    (call,) = calls(tmp_path)
    assert call.startswith(
        "gh pr comment 7 --repo me/repository --edit-last --create-if-none --body-file"
    )
    assert STEPS["comment"]["if"].startswith("always()")
    assert STEPS["upload"]["if"] == "always()"


@pytest.mark.slow
def test_a_mistake_is_commented_too(step: Step, tmp_path: Path) -> None:
    assert step("test", suites="missing").returncode == 2
    assert step("comment").returncode == 0
    assert "missing" in (tmp_path / "judge-report/report.md").read_text("utf-8")
    assert len(calls(tmp_path)) == 1


def test_text_of_a_pull_request_is_never_part_of_a_command() -> None:
    assert not any("${{" in step["run"] for step in STEPS.values() if "run" in step)


def test_every_supported_python_is_tested_on_every_system() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text("utf-8"))
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "classifiers"
    ]
    assert matrix["python"] == re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
