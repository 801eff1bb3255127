"""`judge plan`: prints what a run would ask, and asks nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    rows = [{"item": i, "system": s, "source": f"Text {i}.", "output": f"{s} {i}"} for i in "123" for s in "ab"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_it_shows_requests_tokens_price_and_time_without_a_key(command: Callable[..., Any], data: Path) -> None:
    done = command("plan", data, "--model", "gpt-5.4-mini", "--criteria", "relevance,fluency", "--budget", "0.001usd")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].split() == ["gpt-5.4-mini", "https://api.openai.com/v1"]
    assert next(line for line in lines if line.startswith("all ")).split()[:5] == ["all", "12", "0", "0", "12"]
    said = " ".join(done.out.split())
    assert "price $0.0" in said
    assert "genai-prices 0." in said
    assert "time about 2 s (64 at once" in said
    assert "of 12 requests fit" in said


def test_it_sends_nothing_and_writes_nothing(
    command: Callable[..., Any], data: Path, chat_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    done = command("plan", data, "--model", "mine", "--base-url", chat_server.url, "--criteria", "relevance")
    assert done.code == 0
    assert "price unknown (a server of your own: no known price)" in " ".join(done.out.split())
    assert chat_server.bodies == []
    assert [path.name for path in data.parent.iterdir()] == [data.name]


def test_after_a_run_nothing_is_left_to_ask(command: Callable[..., Any], data: Path, chat_server: Any) -> None:
    given = [data, "--model", "mine", "--base-url", chat_server.url, "--criteria", "relevance", "--weighting", "single"]
    done = command("run", *given, "--out", data.parent / "run")
    assert done.code == 0
    assert "6 judgments to make: about 6 requests, " in done.err
    sent = len(chat_server.bodies)
    done = command("plan", *given)
    assert "nothing: no request is sent" in done.out
    assert len(chat_server.bodies) == sent


def test_as_json_and_for_a_ranking(command: Callable[..., Any], data: Path) -> None:
    done = command("plan", data, "--model", "gpt-5.4-mini", "--rank", "--pairs", "2", "--format", "json")
    found = json.loads(done.out)
    assert found["judges"][0]["total"]["judgments"] == 4


def test_a_panel_is_shown_judge_by_judge(command: Callable[..., Any], data: Path) -> None:
    done = command("plan", data, "--model", "gpt-5.4-mini", "--model", "gpt-6-luna", "--criteria", "relevance")
    assert "all judges 12 requests, $0.0" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("given", "words"), [(["--format", "html"], "console or as json"), (["--budget", "0"], "amount with its unit")]
)
def test_what_it_cannot_do_is_said(command: Callable[..., Any], data: Path, given: list[str], words: str) -> None:
    done = command("plan", data, "--model", "gpt-5.4-mini", *given)
    assert done.code == 2
    assert words in done.err
