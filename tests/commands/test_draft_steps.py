"""Draft evaluation steps: judge asks a model once and writes the steps into the file for review."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.commands.loaders import draft_steps
from judge.config import load_config
from judge.core.errors import ConfigError, CriterionError, ParseError
from judge.criteria import load

FILE = """---
# why this criterion exists
title: Politeness
description: How politely the text answers.
scale: [1, 5]
---
{% extends "layouts/pointwise.jinja" %}
{% block criterion %}
Is it polite?
{% endblock %}
"""
STEPS = "1. Read the text.\n2. Look for rude words.\n3. Choose the score."


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "polite.jinja"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_the_steps_are_written_into_the_file(
    file: Path, chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion(STEPS))
    steps = draft_steps(file, load_config(options={"model": "m", "base_url": chat_server.url}))
    assert (
        steps
        == ("Read the text.", "Look for rude words.", "Choose the score.")
        == load(str(file)).steps
    )
    text = file.read_text(encoding="utf-8")
    assert "# why this criterion exists" in text
    assert text.endswith(FILE[FILE.index("{% extends") :])
    (body,) = chat_server.bodies
    assert "Is it polite?" in body["messages"][0]["content"]
    assert "How politely the text answers." in body["messages"][0]["content"]


def test_steps_that_are_there_are_replaced_only_on_demand(
    file: Path, chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion(STEPS))
    drafting_plan = load_config(options={"model": "m", "base_url": chat_server.url})
    draft_steps(file, drafting_plan)
    with pytest.raises(CriterionError, match="--overwrite"):
        draft_steps(file, drafting_plan)
    assert len(chat_server.bodies) == 1
    chat_server.answer = lambda body: (200, {}, make_completion("1. Read.\n2. Judge."))
    assert draft_steps(file, drafting_plan, overwrite=True) == ("Read.", "Judge.")


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ("I would rather not.", {}),
        (STEPS, {"finish_reason": "length"}),
        ("1. {{ output }}\n2. x", {}),
    ],
)
def test_a_reply_without_steps_leaves_the_file_unchanged(
    file: Path,
    chat_server: Any,
    make_completion: Callable[..., Any],
    reply: str,
    choice: dict[str, Any],
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion(reply, choice=choice))
    with pytest.raises(ParseError, match="the reply was:\n"):
        draft_steps(file, load_config(options={"model": "m", "base_url": chat_server.url}))
    assert file.read_text(encoding="utf-8") == FILE


def test_refuses_a_draft_before_any_request(file: Path, chat_server: Any) -> None:
    there = {"base_url": chat_server.url}
    with pytest.raises(CriterionError, match="criteria show relevance"):
        draft_steps("relevance", load_config(options={"model": "m", **there}))
    with pytest.raises(ConfigError, match="--model"):
        draft_steps(file, load_config(options=there))
    with pytest.raises(ConfigError, match="writes no text"):
        draft_steps(file, load_config(options={"model": "decisions/m", **there}))
    flow = file.with_name("flow.jinja")
    flow.write_text(
        FILE.replace("scale: [1, 5]", "...").replace("# why", "{scale: [1, 5]} # why"),
        encoding="utf-8",
    )
    with pytest.raises(CriterionError):
        draft_steps(flow, load_config(options={"model": "m", **there}))
    assert chat_server.bodies == []
