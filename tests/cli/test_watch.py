"""Progress of a run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import time
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from judge.commands import progress_display
from judge.config import load_config
from judge.core.records import Usage
from judge.execution.progress import JudgeProgress, Progress
from judge.providers.scripted import ScriptedProvider
from judge.run.preparation import PreparedRun, prepare
from tests.factories import has_line

ROWS = [{"item": "a", "output": "x"}]


@pytest.fixture
def prepared() -> PreparedRun:
    plan = load_config(options={"criteria": ["fluency"], "metrics": []})
    return prepare(plan, ROWS, providers=[ScriptedProvider(lambda _: "3")])


def shown(
    prepared: PreparedRun, counts: Progress, monkeypatch: pytest.MonkeyPatch, **console: Any
) -> str:
    text = io.StringIO()
    lines = console.pop("lines", 0)
    of = console.pop(
        "of", JudgeProgress(total=10, done=4, failed=1, cached=2, usage=Usage(1234, 5))
    )
    terminal = Console(file=text, width=120, **console)
    monkeypatch.setattr("rich.console.Console", lambda **_: terminal)
    with progress_display.show(counts, prepared.judges):
        counts.judges = {"script": of} if prepared.judges else {}
        end = time.monotonic() + 60
        while text.getvalue().count("\n") < lines and time.monotonic() < end:
            time.sleep(0.01)
    return text.getvalue()


def test_progress_without_a_terminal_is_plain_lines(
    prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_display, "_PLAIN_SECONDS", 0.01)
    text = shown(prepared, Progress(), monkeypatch, lines=2)
    assert "judging: 4/10 judgments" in text
    assert has_line(text, "2 from cache", "1,234 + 5 tokens", "price unknown", "1 failed")
    assert len(text.splitlines()) > 2, "the last word comes when the run is over"
    assert "\x1b" not in text


def test_a_bar_on_a_terminal(prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(prepared, Progress(), monkeypatch, force_terminal=True)
    assert "4/10" in text
    assert "1 failed" in text


def test_a_known_price_is_shown(prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared.judges["script"].model = "gpt-5.4-mini"
    prepared.judges["script"].endpoint = "https://api.openai.com/v1"
    assert "$0.0009" in shown(
        prepared, Progress(), monkeypatch
    )  # 1,234 × $0.75 and 5 × $4.50 per million


def test_free_requests_show_no_price(
    prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared.judges["script"].model = "gpt-5.4-mini"
    prepared.judges["script"].endpoint = "https://api.openai.com/v1"
    progress = Progress()
    progress.judges = {"script": JudgeProgress(total=10, done=4)}
    monkeypatch.setattr(Progress, "usage", Usage(12, 3))
    state = progress_display._state(progress, prepared.judges, 0.0)
    assert "12 + 3 tokens" in state
    assert "$" not in state


@pytest.fixture
def measuring(prepared: PreparedRun) -> tuple[PreparedRun, Progress]:
    """Return the progress of a run without a judge, during a metric."""
    prepared = replace(prepared, opened={})
    progress = Progress(stage="rouge")
    progress.measured(300, 1200)
    return prepared, progress


def test_a_metric_under_way(
    measuring: tuple[PreparedRun, Progress], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_display, "_PLAIN_SECONDS", 0.01)
    monkeypatch.setattr(progress_display, "_QUICK", 0.0)
    assert shown(*measuring, monkeypatch, lines=1).startswith("rouge: 300/1,200 texts\n")
    assert "300/1200" in shown(*measuring, monkeypatch, force_terminal=True)
    measuring[1].measured(500, 0)
    assert shown(*measuring, monkeypatch, lines=1).startswith("rouge: 500 texts\n")


def test_measuring_that_is_soon_done_shows_no_bar(
    measuring: tuple[PreparedRun, Progress], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "1200" not in shown(*measuring, monkeypatch, force_terminal=True)


def test_tokens_and_retries_are_shown(
    prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_display, "_PLAIN_SECONDS", 0.01)
    of = JudgeProgress(
        total=10, done=1, retried=7, usage=Usage(1234, 5, cached_tokens=1024, cache_write_tokens=64)
    )
    text = shown(prepared, Progress(), monkeypatch, lines=1, of=of)
    assert has_line(text, "1,234 + 5 tokens", "1,024 cached", "64 written", "7 retried")


def test_shows_requests_that_wait_for_a_limit(
    prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = JudgeProgress(total=10, done=4)
    of.blocked = 3
    text = shown(prepared, Progress(), monkeypatch, of=of)
    assert has_line(text, "held back", "rate limit")
    of.in_flight = 1
    assert "held back" not in shown(prepared, Progress(), monkeypatch, of=of)
