"""`judge doctor` for users."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import has_line

PROGRAM = """
import socket, sys
def refuse(*_): sys.exit("a connection was opened")
socket.socket.connect = socket.socket.connect_ex = refuse
from judge.cli import main
main()
"""


@pytest.mark.slow
def test_opens_no_connection_without_a_model(tmp_path: Path) -> None:
    surroundings = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path),
        "OPENAI_API_KEY": "sk-very-secret-0123456789",
    }
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM, "doctor"],
        capture_output=True,
        text=True,
        env=surroundings,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    assert completed.stderr == ""
    assert "$OPENAI_API_KEY is set" in completed.stdout
    assert "very-secret" not in completed.stdout
    for part in ("this machine", "packages", "extras", "keys", "cache"):
        assert f"\n{part}\n" in f"\n{completed.stdout}"
    assert "\x1b" not in completed.stdout


def test_a_model_that_answers(
    chat_server: Any, make_completion: Callable[..., dict[str, Any]], command: Callable[..., Any]
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("3", top={"3": 0.75, "2": 0.25}))
    completed = command("doctor", "--model", "my-model", "--base-url", chat_server.url, "--json")
    assert completed.code == 0, completed.err
    assert has_line(completed.err, "3 small requests", "my-model", "16 tokens", "not cached")
    diagnosis = json.loads(completed.out)
    assert diagnosis["ok"] is True
    results = {
        finding["name"]: finding["text"]
        for finding in diagnosis["findings"]
        if finding["part"] == "my-model"
    }
    assert results["--weighting auto"].startswith("takes logprobs")
    assert results["draws"].startswith("1 in one request")


def test_a_model_that_does_not(command: Callable[..., Any]) -> None:
    completed = command("doctor", "--model", "my-model", "--base-url", "http://127.0.0.1:9/v1")
    assert completed.code == 2
    assert "✗ address" in completed.out
    assert "is it running?" in " ".join(completed.out.split())


def test_a_model_without_its_key(command: Callable[..., Any]) -> None:
    completed = command("doctor", "--model", "gpt-5.4-mini")
    assert completed.code == 2
    assert "$OPENAI_API_KEY is not set" in completed.out.partition("\ngpt-5.4-mini\n")[2]
    assert "small request" not in completed.err, "nothing is announced that is not sent"


def test_checks_all_models_if_one_is_unusable(command: Callable[..., Any]) -> None:
    Path("replies.yaml").write_text("- {reply: 3}\n", "utf-8")
    completed = command(
        "doctor", "--model", "scripted/replies.yaml", "--model", "nosuch/model", "--json"
    )
    assert completed.code == 2
    states = {
        finding["part"]: finding["state"] for finding in json.loads(completed.out)["findings"]
    }
    assert (states["scripted/replies.yaml"], states["nosuch/model"]) == ("ok", "error")


@pytest.mark.parametrize("timeout", ["0", "-1"])
def test_refuses_an_invalid_timeout(command: Callable[..., Any], timeout: str) -> None:
    assert command("doctor", "--timeout", timeout).code == 2
