"""Answers from data to report: proposed criteria, refused columns, prompts and reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import has_line, write_jsonl

ROWS = [
    {
        "item": item,
        "system": system,
        "question": f"When does the {item} open?",
        "contexts": [f"The {item} is closed on Monday.", f"The {item} opens at nine."],
        "references": "At nine.",
        "output": output,
    }
    for item in ("museum", "library")
    for system, output in (("short", "At nine."), ("wrong", "It never opens."))
]
SCRIPTED = ("--model", "scripted/replies.yaml", "--weighting", "single")


@pytest.fixture(autouse=True)
def data() -> None:
    """Answers, and a judge that prefers answers with the hour."""
    write_jsonl("answers.jsonl", ROWS)
    rules = '- {when: "At nine.\\n</output", reply: "5"}\n- reply: "1"\n'
    Path("replies.yaml").write_text(rules, encoding="utf-8")


def write_without(column: str) -> None:
    """Write the answers without a column."""
    rows = [{name: cell for name, cell in row.items() if name != column} for row in ROWS]
    write_jsonl("answers.jsonl", rows)


def test_the_proposed_criteria_of_answers_can_be_run(command: Callable[..., Any]) -> None:
    proposed = "answers_request,complete,correct,grounded"
    refused = command("run", "answers.jsonl", *SCRIPTED, "--out", "r")
    assert f"--criteria {proposed} (" in refused.err
    completed = command("run", "answers.jsonl", *SCRIPTED, "--criteria", proposed, "--out", "r")
    assert completed.code == 0, completed.err


@pytest.mark.parametrize(
    ("criterion", "column", "advice"),
    [
        ("answers_request", "question", "--map request=COLUMN"),
        ("correct", "references", "--map references=COLUMN"),
        ("grounded", "contexts", "--map contexts=COLUMN"),
    ],
)
def test_a_criterion_without_its_column_is_refused_with_the_option_that_names_it(
    command: Callable[..., Any], criterion: str, column: str, advice: str
) -> None:
    write_without(column)
    completed = command("run", "answers.jsonl", *SCRIPTED, "--criteria", criterion, "--out", "r")
    assert (completed.code, Path("r").exists()) == (2, False)
    assert advice in completed.err


def test_contexts_that_are_empty_in_all_texts_are_named(command: Callable[..., Any]) -> None:
    write_jsonl("answers.jsonl", [{**row, "contexts": "[]"} for row in ROWS])
    refused = command("run", "answers.jsonl", *SCRIPTED, "--criteria", "grounded", "--out", "r")
    assert refused.code == 2
    assert has_line(refused.err, "column contexts", "empty")


def test_an_answer_without_a_passage_is_a_failure_with_its_reason(
    command: Callable[..., Any],
) -> None:
    write_jsonl("answers.jsonl", [*ROWS[:3], {**ROWS[3], "contexts": "[]"}])
    completed = command("run", "answers.jsonl", *SCRIPTED, "--criteria", "grounded", "--out", "r")
    assert completed.code == 1
    assert "1 × missing input (grounded)" in completed.out


@pytest.mark.parametrize("criterion", ["polite", "safe", "grounded"])
def test_some_criteria_need_no_request(command: Callable[..., Any], criterion: str) -> None:
    write_without("question")
    completed = command("run", "answers.jsonl", *SCRIPTED, "--criteria", criterion, "--out", "r")
    assert completed.code == 0, completed.err


def test_passages_are_numbered_in_the_prompt(command: Callable[..., Any]) -> None:
    prompt = command("criteria", "render", "grounded", "answers.jsonl").out
    first, second = prompt.index("Passage 1:"), prompt.index("Passage 2:")
    assert first < prompt.index("closed on Monday") < second < prompt.index("opens at nine")


def test_a_conversation_is_shown_as_the_request(command: Callable[..., Any]) -> None:
    messages = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "How can I help?"},
        {"role": "user", "content": "When does the museum open?"},
        {"role": "assistant", "content": "At nine."},
    ]
    write_jsonl("chat.jsonl", [{"messages": messages}])
    prompt = command("criteria", "render", "complete", "chat.jsonl").out
    request, answer = prompt.index("The request:"), prompt.index("The answer to judge:")
    assert request < prompt.index("How can I help?") < prompt.index("museum") < answer


def test_the_page_shows_the_request_and_the_numbered_passages(command: Callable[..., Any]) -> None:
    command("run", "answers.jsonl", *SCRIPTED, "--criteria", "complete,grounded", "--out", "r")
    page = Path("r/report.html").read_text("utf-8")
    assert "When does the museum open?" in page
    assert "[2] The museum opens at nine." in page


def test_an_item_of_the_report_begins_with_its_request(command: Callable[..., Any]) -> None:
    command("run", "answers.jsonl", *SCRIPTED, "--criteria", "complete", "--out", "r")
    lines = command("report", "r", "--item", "museum").out.splitlines()
    start = lines.index("Source")
    facts = [line.split()[0] for line in lines[start + 2 : start + 6]]
    assert facts == ["question", "contexts", "contexts", "reference"]


def test_a_first_suite_of_answers_passes_offline(command: Callable[..., Any]) -> None:
    written = command("init", "--suite", "answers.jsonl", "--output", "a.judge.yaml")
    assert written.code == 0, written.err
    text = Path("a.judge.yaml").read_text("utf-8")
    assert "criteria: [answers_request, complete, correct, grounded]" in text
    assert "Unused columns" not in text
    completed = command("test", "a.judge.yaml", *SCRIPTED)
    assert completed.code == 0, completed.out + completed.err


def test_the_list_in_json_has_the_task_of_each_criterion(command: Callable[..., Any]) -> None:
    records = json.loads(command("criteria", "list", "--format", "json").out)
    tasks = {(record["name"], record["compares"]): record["task"] for record in records}
    assert tasks["grounded", 1] == tasks["overall", 2] == "answers"
    assert tasks["relevance", 1] == tasks["relevance", 2] == "summaries"
