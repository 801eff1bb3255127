"""Limits of a command: messages at the budget and the deadline, and a server that never answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import has_line, write_jsonl

ROWS = [{"item": f"i{n}", "output": f"Text number {n} is short."} for n in range(6)]


@pytest.fixture
def judge_them(
    command: Callable[..., Any], chat_server: Any, make_completion: Any, tmp_path: Path
) -> Callable[..., Any]:
    """A function that judges six texts with the chat server and these options."""
    chat_server.answer = lambda _: (200, {}, make_completion("3"))
    data = tmp_path / "data.jsonl"
    write_jsonl(data, ROWS)
    usual = ("--criteria", "fluency", "--metrics", "none", "--weighting", "single", "--model", "m")
    where = ("--base-url", chat_server.url, "--out", tmp_path / "out")

    def run(*options: object) -> Any:
        return command("run", data, *usual, *where, *options)

    return run


def test_a_budget_stops_a_command_and_explains_how_to_resume(
    judge_them: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    # The prompts have so many tokens that the template may have 1,000 of them.
    usage = {"prompt_tokens": 1_000, "completion_tokens": 1}
    chat_server.answer = lambda _: (200, {}, {**make_completion("3"), "usage": usage})
    completed = judge_them("--budget", "5500tokens")
    paid = len(chat_server.bodies)
    assert completed.code == 2
    assert 1 <= paid < 6
    assert has_line(completed.err, "judge: the budget of 5,500 tokens", f"{paid * 1001:,} tokens")
    assert has_line(completed.err, f"{paid} of 6 judgments", "kept in")
    assert has_line(completed.err, "to resume", "cache answers")
    assert has_line(completed.err, "--budget", f"should be enough for {6 - paid} judgments")
    assert judge_them("--budget", "2mtokens").code == 0
    assert len(chat_server.bodies) == 6


def test_a_dollar_budget_needs_a_known_price_before_any_request(
    judge_them: Callable[..., Any], chat_server: Any
) -> None:
    completed = judge_them("--budget", "5usd")
    assert completed.code == 2
    assert "--budget 2mtokens" in completed.err
    assert not chat_server.bodies


@pytest.mark.parametrize("options", [("--timeout", 0.1, "--retries", 1), ("--deadline", 0.5)])
def test_a_silent_server_does_not_hold_a_command(
    options: tuple[object, ...],
    judge_them: Callable[..., Any],
    chat_server: Any,
    make_completion: Any,
) -> None:
    over = threading.Event()

    def silent(_: Any) -> tuple[int, dict[str, str], Any]:
        over.wait(20.0)
        return 200, {}, make_completion()

    chat_server.answer = silent
    completed = judge_them(*options)
    over.set()
    assert completed.code == 2
    assert options[0] in completed.err


def test_budget_and_retries_are_in_the_record(
    judge_them: Callable[..., Any], chat_server: Any, make_completion: Any, tmp_path: Path
) -> None:
    def answer(_: Any) -> tuple[int, dict[str, str], Any]:
        return (500, {}, {}) if len(chat_server.bodies) == 2 else (200, {}, make_completion("3"))

    chat_server.answer = answer
    assert judge_them("--budget", "2mtokens").code == 0
    info = json.loads((tmp_path / "out" / "run.json").read_text())["info"]
    assert info["requests"]["retried"] == 1
    assert info["budget"] == {"amount": 2e6, "unit": "tokens", "spent": 606.0}
