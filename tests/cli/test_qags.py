"""`judge qags`: one item's questions and answers, and QAGS in a run, by words alone and by a judge model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.report import load

ROWS = [
    {
        "item": item,
        "system": "x",
        "source": f"The ferry Alba left {place} on Monday.",
        "output": f"The ferry left {place}.",
    }
    for item, place in (("one", "Norholm"), ("two", "Skarvik"))
]


@pytest.fixture
def judge(tmp_path: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The command, in a folder with data.jsonl."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    return command


def test_an_item_is_shown_and_nothing_written(judge: Callable[..., Any]) -> None:
    done = judge("qags", "data.jsonl", "--item", "two", "--similarity", "f1,exact")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("two, x: qags_f1 0.833, qags_exact 0.500\n")
    assert "The ferry left ____." in done.out
    assert "Norholm" not in done.out
    assert not Path("runs").exists()


def test_mistakes_are_said(judge: Callable[..., Any]) -> None:
    for args, said in (
        (["--item", "three"], "unknown item 'three'"),
        (["--similarity", "bleu"], "bleu"),
        (["--backend", "llm"], "name one with --model"),
        (["--backend", "models"], "qags.questions=GENERATOR"),
    ):
        done = judge("qags", "data.jsonl", *args)
        assert (done.code, said in done.err, len(done.err.splitlines())) == (2, True, 1)


def answer(body: dict[str, Any]) -> str:
    """A judge that finds one theme in a text, asks for it, and finds it again."""
    prompt = body["messages"][-1]["content"]
    return "Which place did the ferry leave?" if "Write one question" in prompt else _place(prompt)


def _place(prompt: str) -> str:
    return "Norholm" if "Norholm" in prompt else "Skarvik"


def test_a_judge_model_is_asked_once_and_paid_once(
    judge: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion(answer(body)))
    args = ["score", "data.jsonl", "--metrics", "qags", "--set", "qags.backend=llm", "--out", "r"]
    model = Path("run.yaml")
    model.write_text(
        f"data: data.jsonl\ncriteria: none\nmetrics: [qags]\nset: {{qags: {{backend: llm}}}}\n"
        f"model: m\nbase_url: {chat_server.url}\nout: r\n",
        encoding="utf-8",
    )
    first = judge("run", "run.yaml", "-q")
    info = json.loads(Path("r/run.json").read_text(encoding="utf-8"))["info"]
    assert first.code == 0, first.err
    assert info["requests"]["sent"] == len(chat_server.bodies) == 8, "2 × themes, a question, two answers"
    assert load("r").estimates["x", "qags_f1"].value == 1.0
    asked = len(chat_server.bodies)
    judge("run", "run.yaml", "-q")
    assert len(chat_server.bodies) == asked
    assert "openai/m@127.0.0.1" in info["signatures"]["qags_f1"]
    assert judge(*args).code == 2, "without a model nothing is asked"
