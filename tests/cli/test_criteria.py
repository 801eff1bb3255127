"""`judge criteria new`, and criteria as sentences. Oracle: the file, and the columns of the run."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge import criteria
from tests.factories import has_line

ROWS = [
    ("input", "actual_output", "expected_output"),
    ("Where is it?", "Read your mails.", "On Friday."),
]
RUN = ("--model", "scripted/replies.yaml", "--metrics", "none", "--no-cache", "--out", "r")


@pytest.fixture(autouse=True)
def files() -> None:
    with Path("data.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(ROWS)
    Path("replies.yaml").write_text("- reply: {2: 0.5, 4: 0.5}\n", encoding="utf-8")


def test_several_sentences_names_and_files_in_one_run(command: Callable[..., Any]) -> None:
    Path("kind.txt").write_text("Is it kind?", encoding="utf-8")
    polite = "relevance,polite: Is the reply polite, and respectful?,solved: Solved?"
    completed = command("run", "data.csv", "--criteria", polite, "--criteria", "kind.txt", *RUN)
    assert completed.code == 0
    table = completed.out.partition("items\n")[2].partition("overall 0–1")[0]
    names = ["overall", "relevance", "polite", "solved", "kind"]
    assert [line.split()[0] for line in table.splitlines()] == names
    note = "Columns read under another name: actual_output as output, expected_output as references, input as source"
    assert note in " ".join(completed.out.split())
    assert note not in " ".join(command("run", "data.csv", "--map", "input=input,actual_output=actual_output,"
        "expected_output=expected_output", "--criteria", "kind.txt", *RUN, "--overwrite").out.split())  # fmt: skip


@pytest.mark.parametrize(
    ("written", "facts"),
    [
        ("criteria: {name: kind, question: Q, scael: 3}", ("run.yaml:2: kind:", "'scael'", "did you mean")),
        ("metrics: none\ncriteria: [{question: Q}]", ("run.yaml:3: criteria: question:", "no name")),
        ("criteria: [{name: a, question: Q: R}]", ("run.yaml:2: not YAML", "':'", "quotes")),
        ("criteria: kind: Is it?", ("run.yaml:2: not YAML", "quotes")),
    ],
)  # fmt: skip
def test_a_bad_criterion_of_a_run_names_its_line(
    command: Callable[..., Any], written: str, facts: tuple[str, ...]
) -> None:
    Path("run.yaml").write_text(f"data: data.csv\n{written}\n", encoding="utf-8")
    completed = command("run", "run.yaml", *RUN)
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.startswith(f"judge: {facts[0]}")
    assert has_line(completed.err, *facts)


def test_a_new_criterion_is_a_file_to_edit(command: Callable[..., Any]) -> None:
    completed = command("criteria", "new", "polite", "--question", 'Is it "polite": or not?')
    assert (completed.code, completed.out.splitlines()[0]) == (0, "polite.yaml")
    assert criteria.load("polite.yaml").question == 'Is it "polite": or not?'
    assert "judge run DATA --criteria polite.yaml" in completed.out
    second_run = command("criteria", "new", "polite")
    assert second_run.code == 2
    assert has_line(second_run.err, "judge: polite.yaml", "already exists")
    refused = command("criteria", "new", "very polite")
    assert has_line(refused.err, "judge: 'very polite'", "cannot name a criterion")
    for empty in ("", ".yaml", ".yml"):
        assert command("criteria", "new", empty).code == 2
        assert not Path(".yaml").exists()
    assert command("criteria", "new", "kind.yaml").code == 0
    assert command("criteria", "render", "kind.yaml", "data.csv").err.startswith(
        "judge: kind.yaml:2: question: is empty"
    )


@pytest.mark.parametrize("listing", [("criteria", "list"), ("doctor", "metrics")])
def test_descriptions_are_folded_beside_their_names(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, listing: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = command(*listing).out.splitlines()
    # A setting is one word, which can be copied.
    descriptions = [line for line in lines if "--set" not in line]
    assert max(map(len, descriptions)) <= 60
    assert any(line.startswith(" " * 15) for line in descriptions)


def test_an_unknown_criterion_of_a_command_without_criteria_has_no_default(
    command: Callable[..., Any],
) -> None:
    completed = command("criteria", "show", "nosuch")
    assert completed.code == 2
    assert "'nosuch: QUESTION'" in completed.err
    assert "--criteria" not in completed.err
