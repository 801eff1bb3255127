"""`judge report RUN --item ID`, and QAGS in a run, by words alone and by a judge model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from judge.results.result import load

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
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    return command


MEASURED = ("run", "data.jsonl", "--criteria", "none", "--out", "r", "-q", "--metrics")


def test_a_run_shows_the_questions_of_one_item(judge: Callable[..., Any]) -> None:
    assert judge(*MEASURED, "qags,source_bleu", "--set", "qags.similarity=[f1, exact]").code == 0
    Path("data.jsonl").unlink()
    done = judge("report", "r", "--item", "two")
    assert (done.code, done.err) == (0, "")
    assert "The ferry left ____." in done.out
    assert "Norholm" not in done.out
    assert "unknown item 'three'" in judge("report", "r", "--item", "three").err
    assert "--system: is for --item ID" in judge("report", "r", "--system", "x").err


def test_one_system_of_an_item(judge: Callable[..., Any]) -> None:
    rows = [{**ROWS[0], "system": system} for system in "xyz"]
    Path("data.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert judge(*MEASURED, "qags").code == 0
    shown = judge("report", "r", "--item", "one", "--system", "y").out
    assert "\ny\n" in shown
    assert "\nx\n" not in shown
    assert "unknown system 'w'" in judge("report", "r", "--item", "one", "--system", "w").err


def test_japanese_questions_differ_in_80_columns(judge: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("MeCab")
    monkeypatch.setenv("COLUMNS", "80")
    text = "春の嵐が去った土曜の朝に北浜港の灯台のそばを出た船は、昼過ぎに南の島の入り江に着き、"
    text += "乗客は桟橋で市長の歓迎を受けた。"
    row = {"item": "i", "system": "x", "source": text, "output": text}
    Path("data.jsonl").write_text(json.dumps(row, ensure_ascii=False), encoding="utf-8")
    assert judge(*MEASURED, "qags").code == 0
    lines = judge("report", "r", "--item", "i").out.splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert "…" in "".join(lines)
    gaps = [line for line in lines if "____" in line]
    assert len(gaps) == len(set(gaps)) > 5


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
    args = [*MEASURED, "qags", "--set", "qags.backend=llm"]
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
    without = judge(*args)
    assert (without.code, "name one with --model NAME" in without.err) == (2, True), "nothing is asked"


def test_an_item_by_a_judge_model_in_a_language_with_a_limit(
    judge: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("Norholm"))
    asked = ["--set", "qags.backend=llm", "--model", "m", "--base-url", chat_server.url, "--limit", "1"]
    judge(*MEASURED, "qags", *asked, "--language", "ja", "--max-tokens", "700")
    first = chat_server.bodies[0]
    assert first["messages"][0]["content"].startswith("一つの文章を読んでください。")
    assert first["max_completion_tokens"] == 1024
    assert chat_server.bodies[-1]["max_completion_tokens"] == 700
    count = len(chat_server.bodies)
    judge(*MEASURED, "qags", *asked, "--language", "ja", "--set", "qags.language=ko")
    assert chat_server.bodies[count]["messages"][0]["content"].startswith("글 하나를 읽어 주십시오.")


def test_what_the_judge_refused_fails_the_output_and_is_shown(
    judge: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    no = {"error": {"message": "flagged", "type": "invalid_request_error", "param": None, "code": "content_filter"}}

    def reply(body: dict[str, Any]) -> Any:
        prompt = body["messages"][0]["content"]
        if "A question:" in prompt and "Monday" in prompt and "Skarvik" in prompt:
            return 400, {}, no
        return 200, {}, make_completion(answer(body))

    chat_server.answer = reply
    args = ["data.jsonl", "--set", "qags.backend=llm", "--model", "m", "--base-url", chat_server.url]
    done = judge("run", *args, "--criteria", "none", "--metrics", "qags", "--out", "r")
    assert done.code == 1
    result = load("r")
    (failed,) = result.failures
    assert (failed.item, failed.error) == ("two", "Refused")
    assert "1 measured, 1 failed" in done.out
    (output,) = json.loads(judge("report", "r", "--item", "two", "--json").out)["outputs"]
    (failure,) = output["failures"]
    assert "for 1 of 1 theme the judge gave no question or answer" in failure["message"]
    assert output["questions"][0]["similarity"].startswith("left out: Refused")
    shown = " ".join(judge("report", "r", "--item", "two").out.split())
    assert "failed" in shown
    assert "flagged" in shown


def test_a_recording_answers_in_the_model_s_place(
    judge: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion(answer(body)))
    args = ["data.jsonl", "--set", "qags.backend=llm"]
    run = ["--criteria", "none", "--metrics", "qags", "--model", "m", "--base-url", chat_server.url]
    assert judge("run", *args, *run, "--record", "calls.jsonl", "-q").code == 0
    asked = len(chat_server.bodies)
    done = judge("run", *args, *run[:4], "--replay", "calls.jsonl", "--no-cache", "--out", "replayed")
    assert (done.code, len(chat_server.bodies)) == (0, asked), done.err
    assert load("replayed").estimates["x", "qags_f1"].value == 1.0
