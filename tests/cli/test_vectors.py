"""`judge vectors`: the vectors as lines, and a scorer's answers compared with them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture
def vectors(command: Command) -> list[dict[str, Any]]:
    return [json.loads(line) for line in command("vectors").out.splitlines()]


def answers(vectors: list[dict[str, Any]], **changed: dict[str, Any]) -> str:
    """Return the expected answers, the last first, with changes by id."""
    rows = [{"id": v["id"], **changed.get(v["id"], v["expected"])} for v in reversed(vectors)]
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_the_vectors_are_the_packages_file_and_out_writes_them(command: Command, vectors: list[dict[str, Any]]) -> None:
    assert len(vectors) > 200
    assert command("vectors", "--output", "v.jsonl").out == ""
    assert Path("v.jsonl").read_text("utf-8") == command("vectors").out
    chosen = command("vectors", "--kind", "draws,pair", "--language", "ko").out.splitlines()
    assert {(v["kind"], v["language"]) for v in map(json.loads, chosen)} == {("draws", "ko"), ("pair", "ko")}
    assert command("vectors", "--kind", "drawn").err.startswith("judge: --kind: unknown kind 'drawn'; did you mean")


def test_answers_that_agree_are_one_line(
    command: Command, vectors: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = io.TextIOWrapper(io.BytesIO(f"\n{answers(vectors)}".encode()))
    monkeypatch.setattr(sys, "stdin", piped)
    done = command("vectors", "--check", "-")
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)
    assert done.out.startswith(f"{len(vectors)} of {len(vectors)} vectors agree (logprobs ")
    values = [{"id": v["id"], "value": v["expected"]["value"] + 9e-5} for v in vectors if "value" in v["expected"]]
    errors = [{"id": v["id"], "error": "?", "value": None} for v in vectors if "error" in v["expected"]]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\r\n" for row in values + errors))
    assert command("vectors", "--check", "a.jsonl").code == 0


def test_wrong_answers_are_listed_with_what_is_expected(command: Command, vectors: list[dict[str, Any]]) -> None:
    changed = {
        "logprobs-en-weigh-1": {"value": 4.2002, "mass": 1, "argmax": "5", "low": 4.2},
        "reply-en-quote-1": {"value": 5},
        "draws-en-count-1": {"error": "no\x1b[1m score"},
        "pair-en-orders-2": {"value": 0.65, "flipped": False},
    }
    Path("a.jsonl").write_text(answers(vectors, **changed))
    done = command("vectors", "--check", "a.jsonl")
    assert (done.code, done.err) == (1, "")
    *listed, summary = done.out.splitlines()
    assert listed == [
        "logprobs-en-weigh-1: value 4.2002, expected 4.2; argmax 5, expected 4",
        "draws-en-count-1: error (no\\x1b[1m score), expected 4.31579",
        "reply-en-quote-1: 5, expected an error (in quotation marks)",
        "pair-en-orders-2: flipped False, expected True",
    ]
    kinds = [[v["kind"] for v in vectors].count(kind) for kind in ("logprobs", "draws", "reply", "pair")]
    assert f"{len(vectors) - 4} of {len(vectors)} vectors agree (logprobs {kinds[0] - 1}/{kinds[0]}, " in summary
    assert f"ja {(ja := [v['language'] for v in vectors].count('ja'))}/{ja}, " in summary
    done = command("vectors", "--check", "a.jsonl", "--kind", "reply", "--language", "ja,ko")
    assert (done.code, done.out.count("\n")) == (0, 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "reply-xx-1", "value": 4}', "a:1: no vector has the id 'reply-xx-1'"),
        ('{"id": "reply-en-fold-1", "value": 4}\n{"id": "reply-en-fold-1", "value": 4}', "a:2: a second answer to"),
        ('{"id": "reply-en-fold-1", "value": NaN}', "a:1: value is NaN, not a finite number"),
        ('{"id": "reply-en-fold-1", "value": -Infinity}', "a:1: value is -Infinity, not a finite number"),
        ('{"id": "reply-en-fold-1", "value": 1' + "0" * 400 + "}", "a:1: value is 1000"),
        ('{"id": "reply-en-fold-1", "value": "4"}', 'a:1: value is "4", not a finite number'),
        ('{"id": "reply-en-fold-1", "value": true}', "a:1: value is true, not a finite number"),
        ('{"id": "reply-en-fold-1", "value": 4, "mass": []}', "a:1: mass is [], not a finite number"),
        ('{"id": "reply-en-fold-1", "value": null}', "a:1: reply-en-fold-1 needs either a value or an error"),
        ('{"id": "reply-en-fold-1", "value": 4, "error": "x"}', "a:1: reply-en-fold-1 needs either a value or an"),
        ('\n{"value": 4}', "a:2: not an answer; write"),
        ("[4]", "a:1: not an answer; write"),
        ("Loading model", "a:1: not JSON"),
        ("\udcff", "a:1: not JSON"),
        ('{"id": "reply-en-fold-1", "value": 4}', "a: no answer to "),
        ("", "a: no answer to "),
    ],
)
def test_what_is_no_answer_is_an_error_with_its_line(command: Command, line: str, message: str) -> None:
    Path("a").write_bytes(line.encode("utf-8", "surrogateescape"))
    done = command("vectors", "--check", "a")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"judge: {message}")


def test_a_file_that_is_missing_and_options_that_contradict(command: Command) -> None:
    assert command("vectors", "--check", "gone").err == "judge: --check gone: No such file or directory\n"
    assert "leave it out with --check" in command("vectors", "--check", "-", "--output", "v").err
