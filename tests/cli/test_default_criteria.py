"""Default criteria apply only to summaries; judge checks this before any request."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError
from tests.factories import has_line, write_jsonl

SUMMARIES = [
    {
        "item": item,
        "system": system,
        "source": f"The council met on Monday about the {item}, and voted to mend it in May.",
        "output": f"{system}: they mend the {item}.",
    }
    for item in ("bridge", "road", "school")
    for system in ("x", "y")
]
CHAT = [
    {**row, "source": "Where is my parcel?", "output": "Sorry, it comes soon."} for row in SUMMARIES
]
NO_SOURCE = [{name: cell for name, cell in row.items() if name != "source"} for row in CHAT]
SCRIPTED = ("--model", "scripted/replies.yaml")
COMMANDS = {
    "run": ("run", "data.jsonl", *SCRIPTED, "--out", "r"),
    "plan": ("plan", "data.jsonl", *SCRIPTED),
    "card": ("validate", "data.jsonl", "--card", *SCRIPTED, "--out", "r"),
    "init": ("init", "--suite", "data.jsonl", "--output", "r"),
}


def write(rows: list[dict[str, Any]]) -> None:
    write_jsonl("data.jsonl", rows)
    Path("replies.yaml").write_text("- reply: '2'\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "rows"), [*((name, CHAT) for name in COMMANDS), ("run", NO_SOURCE)]
)
def test_a_command_refuses_to_judge_other_texts_as_summaries(
    command: Callable[..., Any], rows: list[dict[str, Any]], name: str
) -> None:
    write(rows)
    completed = command(*COMMANDS[name])
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.startswith("judge: no criteria: ")
    assert has_line(completed.err, "  --criteria ")
    assert not Path("r").exists()


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.slow
def test_a_command_judges_summaries_by_default(command: Callable[..., Any], name: str) -> None:
    write(SUMMARIES)
    completed = command(*COMMANDS[name])
    # The scripted reply is no valid comparison, so a card fails in part.
    assert completed.code == int(name == "card"), completed.err


@pytest.mark.parametrize(
    "criteria", ["fluency", "helpful: Does the answer help?"], ids=["built in", "a question"]
)
def test_the_commands_in_the_message_work(command: Callable[..., Any], criteria: str) -> None:
    write(CHAT)
    completed = command("run", "data.jsonl", *SCRIPTED, "--criteria", criteria, "--out", "r")
    assert completed.code == 0, completed.err


def test_sends_no_request_without_criteria(chat_server: Any) -> None:
    options: dict[str, Any] = {"model": "m", "base_url": chat_server.url, "key_env": "NONE"}
    with pytest.raises(ConfigError, match=r"criteria=\['answers_request', 'complete'\]"):
        judge.evaluate(CHAT, **options)
    assert chat_server.bodies == []


def test_validate_judges_the_rated_criteria_for_any_texts(
    command: Callable[..., Any],
) -> None:
    write([{**row, "human": {"relevance": n % 5 + 1}} for n, row in enumerate(CHAT)])
    completed = command("validate", "data.jsonl", *SCRIPTED, "--out", "r", "--format", "json")
    assert completed.code == 0, completed.err
    assert json.loads(Path("r/run.json").read_text("utf-8"))["info"]["criteria"].keys() == {
        "relevance"
    }


def test_validate_judges_the_criteria_of_a_ratings_file(
    command: Callable[..., Any],
) -> None:
    write(CHAT)
    lines = [f"{row['item']},{row['system']},{n % 3 + 1}" for n, row in enumerate(CHAT)]
    Path("sheet.csv").write_text("\n".join(["item,system,fluency", *lines]), encoding="utf-8")
    completed = command("validate", "data.jsonl", *SCRIPTED, "--ratings", "sheet.csv", "--out", "r")
    assert completed.code == 0, completed.err
    assert json.loads(Path("r/run.json").read_text("utf-8"))["info"]["criteria"].keys() == {
        "fluency"
    }


def test_validate_names_the_criterion_that_people_rated_if_it_is_not_built_in(
    command: Callable[..., Any],
) -> None:
    write([{**row, "human": {"helpful": 3}} for row in CHAT])
    completed = command("validate", "data.jsonl", *SCRIPTED, "--out", "r")
    assert (completed.code, Path("r").exists()) == (2, False)
    assert '--criteria "helpful: QUESTION"' in completed.err


def test_systems_that_have_not_written_yet_have_no_default_criteria(
    command: Callable[..., Any],
) -> None:
    write([{"item": "a", "source": SUMMARIES[0]["source"]}])
    Path("short.jinja").write_text("Summarize: {{ source }}\n", encoding="utf-8")
    Path("run.yaml").write_text(
        "data: data.jsonl\nsystems: {s: {prompt: short.jinja, model: scripted/replies.yaml}}\n"
        "model: scripted/replies.yaml\n",
        encoding="utf-8",
    )
    for arguments in (("run", "run.yaml", "--out", "r"), ("plan", "run.yaml")):
        completed = command(*arguments)
        assert completed.code == 2
        assert has_line(completed.err, "outputs", "not written yet")
    assert not Path("r").exists()
    written = command("run", "run.yaml", "--generate-only", "--out", "outputs.jsonl")
    assert written.code == 0, written.err


def test_a_run_stores_its_default_criteria(command: Callable[..., Any]) -> None:
    write(SUMMARIES)
    command("run", "data.jsonl", *SCRIPTED, "--out", "r")
    info = json.loads(Path("r/run.json").read_text("utf-8"))["info"]
    assert info["config"]["criteria"] == ["relevance", "coherence", "consistency", "fluency"]
    assert [*info["criteria"]] == info["config"]["criteria"]


def test_none_beside_another_criterion_is_refused(command: Callable[..., Any]) -> None:
    write_jsonl("data.jsonl", [{"item": "1", "output": "It left."}])
    completed = command("run", "data.jsonl", "--criteria", "none", "--criteria", "relevance")
    assert completed.code == 2
    assert has_line(completed.err, "--criteria", "none stands for an empty list")
