"""`--json`, alone and together with every `--format`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import has_line, write_jsonl

ROWS = [
    {"item": i, "system": s, "source": f"Source of {i}.", "output": f"{s} wrote this about {i}."}
    for i in ("a", "b", "c", "d", "e", "f", "g")
    for s in ("x", "y")
]
SCRIPTED = ("--model", "scripted/replies.yaml", "--criteria", "relevance", "--metrics", "none")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_jsonl("data.jsonl", ROWS)
    script = "- {when: x wrote this about a, reply: 4}\n- {when: x wrote, reply: {5: 0.8, 4: 0.2}}\n- {when: [], reply: 2}\n"
    Path("replies.yaml").write_text(script, "utf-8")
    Path("s.judge.yaml").write_text(
        "data: data.jsonl\nmodel: scripted/replies.yaml\ncases:\n  - {criterion: relevance, better: x, worse: y}\n",
        "utf-8",
    )
    return tmp_path


def test_every_command_with_format_has_json(parameters: dict[str, list[Any]]) -> None:
    for command, parts in parameters.items():
        names = [part.name for part in parts]
        assert ("json" in names) == ("format" in names), command
        if "format" in names:
            assert names.index("json") == names.index("format") + 1, command
    assert {command for command, parts in parameters.items() if any(part.name == "json" for part in parts)} == {
        "run", "rank", "plan", "report", "validate", "compare", "test",
        "doctor", "criteria diff", "criteria improve", "criteria list", "criteria show", "doctor metrics",
        "doctor cache stats",
    }  # fmt: skip


JUDGED = " ".join(("data.jsonl", *SCRIPTED))
COMMANDS = (
    f"run {JUDGED} --out again",
    "run data.jsonl --criteria none --metrics distinct --out scored",
    "rank data.jsonl --model scripted/replies.yaml --out ranked",
    f"plan {JUDGED}",
    "report run",
    "compare run run",
    "plan run --detect 0.1",
    "test s.judge.yaml",
    "validate data.jsonl --card --model scripted/replies.yaml --criteria relevance --probes injection",
    "report run --item a",
    "report run --worst 2",
    "criteria diff relevance fluency",
    "criteria list",
    "criteria show relevance",
    "doctor metrics",
    "doctor cache stats",
    "doctor",
)


def test_standard_output_has_only_json(folder: Path, command: Callable[..., Any]) -> None:
    assert command("run", "data.jsonl", *SCRIPTED, "--out", "run", "--quiet").code == 0
    for line in COMMANDS:
        words = line.split()
        completed = command(*words, "--json")
        assert completed.code in (0, 1), completed.err
        short = json.loads(completed.out)
        assert short
        if words[0] in ("report", "plan", "criteria"):
            assert json.loads(command(*words, "--json", "--format", "json").out) == short


def test_json_with_a_different_format_is_refused(folder: Path, command: Callable[..., Any]) -> None:
    for words in (("--json", "--format", "html"), ("--format", "html", "--json")):
        completed = command("run", "data.jsonl", *SCRIPTED, *words)
        assert (completed.code, completed.out) == (2, "")
        assert has_line(completed.err, "judge: --json", "--format json", "--format html")
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("criteria", "list"),
        ("doctor", "metrics"),
        ("doctor", "cache", "stats"),
        ("plan", "run"),
        ("doctor",),
    ],
)
def test_an_unknown_format_is_refused(command: Callable[..., Any], words: tuple[str, ...]) -> None:
    completed = command(*words, "--format", "xml")
    assert completed.code == 2
    assert "(known: console, " in completed.err


def test_json_of_list_commands(command: Callable[..., Any]) -> None:
    criteria = {
        (one["name"], one["compares"]): one
        for one in json.loads(command("criteria", "list", "--json").out)
    }
    assert criteria["relevance", 1]["scale"]["labels"] == ["1", "2", "3", "4", "5"]
    assert ("overall", 2) in criteria
    shown = json.loads(command("criteria", "show", "relevance", "--json").out)
    assert shown["template"] == Path(shown["file"]).read_text("utf-8")
    assert "output" in shown["needs"]
    metrics = {one["name"]: one for one in json.loads(command("doctor", "metrics", "--json").out)}
    assert metrics["rouge"]["options"]["stem"] is True
