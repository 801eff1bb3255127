"""`judge report` into other formats."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge

ROWS = [{"item": "1", "system": s, "output": f"{s} text", "references": ["a text"]} for s in ("=one", "two")]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    judge.evaluate(ROWS, criteria=[], metrics=["chrf", "ter"], out=tmp_path / "r")
    return Path("r")


def test_charts_go_into_the_runs_folder(run: Path, command: Callable[..., Any]) -> None:
    done = command("report", run, "--format", "svg")
    assert done.code == 0
    assert {"r/charts/chrf.svg", "r/charts/ter.svg"} <= {*done.out.split()}
    assert all(Path(name).read_text("utf-8").startswith("<svg ") for name in done.out.split())


def test_or_where_they_are_wanted(run: Path, command: Callable[..., Any]) -> None:
    assert "here/chrf.svg" in command("report", run, "--format", "svg", "--output", "here").out.split()
    assert command("report", run, "--format", "svg", "--output", "all.svg").out.split() == ["all.svg"]
    assert Path("all.svg").read_text("utf-8").count("<desc>") == 1


def test_png_without_its_package_names_the_extra(
    run: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    done = command("report", run, "--format", "png")
    assert (done.code, done.out) == (2, "")
    assert done.err == "judge: PNG needs the package resvg-py: pip install 'textjudge[png]'; SVG needs nothing\n"


def test_latex_csv_and_json(run: Path, command: Callable[..., Any]) -> None:
    assert "\\begin{tabular}{lrrr}\n" in command("report", run, "--format", "latex").out
    assert "\n'=one,chrf," in command("report", run, "--format", "csv").out
    assert json.loads(command("report", run, "--format", "json").out)["schema"] == "judge.report/1"


@pytest.mark.parametrize("format", ["console", "svg"])
def test_a_mistyped_folder_is_said_to_hold_no_run(run: Path, command: Callable[..., Any], format: str) -> None:
    done = command("report", "rr", "--format", format)
    assert (done.code, done.out) == (2, "")
    assert done.err == "judge: rr: no run is there (no run.json); name a folder that judge run has written\n"
    assert not Path("rr").exists()
