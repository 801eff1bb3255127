"""`--system-message` goes to the judge; `--system` selects a system, or explains the difference in its error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError
from judge.suite.load import load as load_suite
from tests.factories import has_line, write_jsonl

ROWS = [
    {"item": "a", "system": system, "source": "The tram runs again.", "output": f"{system} runs."}
    for system in ("x", "y")
]
SCRIPTED = ("--model", "scripted/replies.yaml", "--criteria", "fluency", "--metrics", "none")
SUITE = "data: data.jsonl\ncriteria: [coherence]\ncases: [{criterion: coherence, system: x, expect: {min: 1}}]\n"


@pytest.fixture(autouse=True)
def files(working_folder: None) -> None:
    write_jsonl("data.jsonl", ROWS)
    Path("replies.yaml").write_text("- reply: '2'\n", encoding="utf-8")
    Path("s.judge.yaml").write_text(SUITE, encoding="utf-8")


def commands_with(parameters: dict[str, list[Any]], option: str) -> set[str]:
    return {name for name, parts in parameters.items() if any(option in p.opts for p in parts)}


def test_a_system_message_and_a_system_have_two_names_in_every_command(
    parameters: dict[str, list[Any]],
) -> None:
    selecting = commands_with(parameters, "--system")
    sending = commands_with(parameters, "--system-message")
    assert selecting == {"report", "criteria render", "criteria diff"}
    assert {"run", "rank", "plan", "validate", "test", "doctor"} < sending
    for name in selecting:
        (help,) = (part.help for part in parameters[name] if "--system" in part.opts)
        assert "message" not in help


def test_a_command_that_sends_a_system_message_explains_both_meanings_of_system(
    command: Callable[..., Any], parameters: dict[str, list[Any]]
) -> None:
    names = commands_with(parameters, "--system-message") - commands_with(parameters, "--system")
    for name in names:
        for typed in (("--system", "Be kind."), ("--system=Be kind.",)):
            data = () if name == "doctor" else ("data.jsonl",)
            completed = command(*name.split(), *data, *typed)
            assert (completed.code, completed.out) == (2, ""), name
            for words in ("judge: --system: ", "--system-message TEXT", "--where system=NAME"):
                assert words in completed.err, name
            assert has_line(completed.err, "judge report RUN", "--system NAME"), name


def test_the_option_named_in_the_message_works(
    command: Callable[..., Any], chat_server: Any
) -> None:
    sent = ("--system-message", "Be kind.", "--where", "system=y", "--criteria", "coherence")
    judged_by = ("--model", "m", "--base-url", chat_server.url, "--metrics", "none", "--out", "r")
    completed = command("run", "data.jsonl", *sent, *judged_by, "--weighting", "single")
    assert completed.code == 0, completed.err
    (body,) = chat_server.bodies
    assert body["messages"][0] == {"role": "system", "content": "Be kind."}
    assert "y runs." in body["messages"][1]["content"]
    shown = command("report", "r", "--item", "a", "--system", "y")
    assert shown.code == 0, shown.err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("data: data.jsonl\nsystem: Be kind.\n", 2),
        ("data: data.jsonl\n\nmodel: {name: m, system: Be kind.}\n", 3),
        ("data: data.jsonl\nmodel:\n  - n\n  - {name: m, system: Be kind.}\n", 2),
        ("data: data.jsonl\nsystems: {a: {prompt: p.jinja, model: m, system: Be kind.}}\n", 2),
    ],
    ids=["run", "judge", "judge of a panel", "generated system"],
)
def test_the_old_key_in_a_file_is_refused_with_its_line(
    command: Callable[..., Any], text: str, line: int
) -> None:
    Path("run.yaml").write_text(text, encoding="utf-8")
    completed = command("run", "run.yaml")
    assert completed.code == 2
    assert f"run.yaml:{line}: " in completed.err
    assert "system_message: TEXT sends" in completed.err
    assert "--where system=NAME" in completed.err


@pytest.mark.parametrize(
    "key", ["system: Be kind.", "model: {name: m, system: Be kind.}"], ids=["suite", "judge"]
)
def test_the_old_key_of_a_suite_is_refused_and_a_case_keeps_its_system(
    command: Callable[..., Any], key: str
) -> None:
    Path("s.judge.yaml").write_text(f"{SUITE}{key}\n", encoding="utf-8")
    completed = command("test", "s.judge.yaml")
    assert completed.code == 2
    assert "s.judge.yaml:4: system: " in completed.err
    assert "system_message: TEXT sends" in completed.err
    assert has_line(completed.err, "In a case", "system: NAME")


def test_a_suite_takes_a_system_message(command: Callable[..., Any], chat_server: Any) -> None:
    model = f"{{name: m, base_url: {chat_server.url!r}, system_message: Be fair.}}"
    Path("s.judge.yaml").write_text(
        f"{SUITE}system_message: Be kind.\nmodel: {model}\nweighting: single\n", encoding="utf-8"
    )
    assert load_suite("s.judge.yaml").options["system_message"] == "Be kind."
    completed = command("test", "s.judge.yaml")
    assert completed.code == 0, completed.err
    assert {body["messages"][0]["content"] for body in chat_server.bodies} == {"Be fair."}


@pytest.mark.parametrize(
    "call",
    [
        lambda: judge.evaluate(ROWS, "fluency", model="m", system="Be kind."),  # type: ignore[call-arg]
        lambda: judge.rank(ROWS, model="m", system="Be kind."),  # type: ignore[call-arg]
        lambda: judge.plan(ROWS, "fluency", model="m", system="Be kind."),  # type: ignore[call-arg]
        lambda: judge.card(ROWS, "fluency", model="m", system="Be kind."),  # type: ignore[call-arg]
        lambda: judge.test("s.judge.yaml", model="m", system="Be kind."),  # type: ignore[call-arg]
        lambda: judge.evaluate(ROWS, "fluency", model={"name": "m", "system": "Be kind."}),
    ],
    ids=["evaluate", "rank", "plan", "card", "test", "a judge"],
)
def test_the_old_argument_explains_both_meanings(call: Callable[[], object]) -> None:
    with pytest.raises(ConfigError) as refused:
        call()
    for words in ("system: ", "system_message", "where={'system': 'NAME'}"):
        assert words in str(refused.value)


def test_a_suite_of_a_run_has_its_system_message(command: Callable[..., Any]) -> None:
    command("run", "data.jsonl", *SCRIPTED, "--system-message", "Be kind.", "--out", "r")
    created = command("init", "--suite", "r", "--output", "new.judge.yaml")
    assert created.code == 0, created.err
    assert "system_message: Be kind." in Path("new.judge.yaml").read_text("utf-8")
