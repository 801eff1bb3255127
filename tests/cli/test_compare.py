"""`judge compare` and --calibrate: output, files, exit codes and refused options."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import has_line, write_jsonl

ROWS = [
    {
        "item": f"i{n}",
        "system": system,
        "source": "The bridge is to be mended.",
        "output": f"{system} wrote text {n}.",
        **({"human": {"relevance": 2 + n % 3}} if n < 12 else {}),
    }
    for n in range(20)
    for system in "xy"
]
SCRIPTED = ("--criteria", "relevance", "--metrics", "none", "--quiet")


@pytest.fixture
def judge(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function that runs the command in a folder with two runs; x scores lower in b than in a."""
    monkeypatch.setenv("COLUMNS", "100")
    write_jsonl("data.jsonl", ROWS)
    for name, grade in (("a", 4), ("b", 3)):
        Path(f"{name}.yaml").write_text(
            f"- {{when: x wrote, reply: {grade}}}\n- {{when: [], reply: 2}}\n", "utf-8"
        )
        assert (
            command(
                "run", "data.jsonl", "--model", f"scripted/{name}.yaml", *SCRIPTED, "--out", name
            ).code
            == 0
        )
    return command


def test_two_runs_on_the_console(judge: Callable[..., Any]) -> None:
    completed = judge("compare", "a", "b")
    assert (completed.code, completed.err) == (0, "")
    assert "model of relevance: scripted/a.yaml → scripted/b.yaml" in completed.out
    assert has_line(completed.out.splitlines()[:1], "relevance fell by 1.00", "x", "p < 0.001")
    assert "a → b · 20 items" in completed.out
    assert "relevance fell by 0.50" in completed.out
    assert "3.00 \u22121.00*" in completed.out


def test_each_format_is_printed_or_written_to_its_file(judge: Callable[..., Any]) -> None:
    assert judge("compare", "a", "b", "--format", "markdown").out.startswith("## a → b\n")
    comparison = json.loads(judge("compare", "a", "b", "--format", "json").out)
    assert comparison["schema"] == "judge.compare/1"
    test_used = comparison["means"][1]["estimate"]["test"]
    assert has_line(test_used, "sign-flip permutation", "exact")
    assert judge("compare", "a", "b", "--format", "html").out == "b/compared.html\n"
    assert "<title>a → b</title>" in Path("b/compared.html").read_text(encoding="utf-8")
    assert judge("compare", "a", "b", "--output", "c.txt").out == "c.txt\n"
    assert Path("c.txt").read_text(encoding="utf-8").startswith("relevance fell")


REFUSED = {
    "a nowhere": "nowhere: not the folder of a run (no run.json); name a folder that judge run wrote",
    "data.jsonl b": "data.jsonl: not the folder of a run",
    "a b --format pdf": "unknown format 'pdf' (known: console, markdown, html, latex, csv, json)",
    "a b --output nowhere/c.txt": "--output nowhere/c.txt: No such file or directory",
}


def test_refuses_runs_that_cannot_be_compared(judge: Callable[..., Any]) -> None:
    for arguments, message in REFUSED.items():
        completed = judge("compare", *arguments.split())
        assert (completed.code, completed.out) == (2, "")
        assert completed.err.startswith(f"judge: {message}")


def test_calibrate_in_a_run_and_of_a_run(judge: Callable[..., Any]) -> None:
    arguments = (
        "--model",
        "scripted/a.yaml",
        "--criteria",
        "relevance",
        "--metrics",
        "none",
        "--calibrate",
    )
    completed = judge("run", "data.jsonl", *arguments, "--out", "c")
    assert completed.code == 0, completed.err
    assert len(json.loads(Path("c/run.json").read_text(encoding="utf-8"))["calibrated"]) == 1
    completed = judge("validate", "a", "--calibrate", "--format", "json")
    assert len(json.loads(completed.out)["calibrated"]) == 1
    assert not json.loads(judge("validate", "a", "--format", "json").out)["calibrated"]


def test_calibrate_without_ratings_costs_nothing(judge: Callable[..., Any]) -> None:
    rows = [{key: value for key, value in row.items() if key != "human"} for row in ROWS]
    write_jsonl("bare.jsonl", rows)
    completed = judge("run", "bare.jsonl", "--model", "scripted/a.yaml", *SCRIPTED, "--calibrate")
    assert (completed.code, completed.out) == (2, "")
    assert has_line(completed.err, "judge: --calibrate", "no text has a rating", "relevance")
