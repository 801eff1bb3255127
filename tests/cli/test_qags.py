"""`judge report RUN --item ID`, and QAGS in a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from rich.cells import cell_len

from judge.results.loading import load
from tests.factories import has_line, write_jsonl

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
def judge(
    tmp_path: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """A function that runs the command in a folder with data.jsonl."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    write_jsonl(tmp_path / "data.jsonl", ROWS)
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump(REPLIES), encoding="utf-8")
    return command


REPLIES = [
    {"when": ["List what the text speaks of", place], "reply": place} for place in ("Norholm", "Skarvik")
] + [
    {"when": ["What did the ferry leave?", place], "reply": place} for place in ("Norholm", "Skarvik")
] + [{"reply": "What did the ferry leave?"}]  # fmt: skip
ASKED = ("--model", "scripted/replies.yaml")
MEASURED = ("run", "data.jsonl", "--criteria", "none", "--out", "r", "-q", "--metrics")


def test_a_run_shows_the_questions_of_one_item(judge: Callable[..., Any]) -> None:
    assert (
        judge(*MEASURED, "qags,source_bleu", "--set", "qags.similarity=[f1, exact]", *ASKED).code
        == 0
    )
    Path("data.jsonl").unlink()
    completed = judge("report", "r", "--item", "two")
    assert (completed.code, completed.err) == (0, "")
    assert "What did the ferry leave?" in completed.out
    assert "Norholm" not in completed.out
    assert "unknown item 'three'" in judge("report", "r", "--item", "three").err
    assert "--system: is for --item ID" in judge("report", "r", "--system", "x").err


def test_one_system_of_an_item(judge: Callable[..., Any]) -> None:
    rows = [{**ROWS[0], "system": system} for system in "xyz"]
    write_jsonl("data.jsonl", rows)
    assert judge(*MEASURED, "qags", *ASKED).code == 0
    shown = judge("report", "r", "--item", "one", "--system", "y").out
    assert "\ny\n" in shown
    assert "\nx\n" not in shown
    assert "unknown system 'w'" in judge("report", "r", "--item", "one", "--system", "w").err


def test_qags_without_judge_or_models_names_both(judge: Callable[..., Any]) -> None:
    completed = judge(*MEASURED, "qags")
    assert completed.code == 2
    assert "--model NAME" in completed.err
    assert "qags.backend=models" in completed.err


class Story(NamedTuple):
    """A source, an output and the judge's replies: themes with questions and the answers from both texts."""

    listing: str
    asking: str
    source: str
    output: str
    lines: dict[str, tuple[str, str, str]]
    f1: list[float]


STORIES = {
    "ja": Story(
        "挙げてください",
        "問いを一つ作って",
        "駅の北口に古い郵便局がある。その裏で小さい喫茶店を見つけた。",
        "古い郵便局の裏に喫茶店がある。店主は元教師だ。",
        {
            "郵便局": ("喫茶店は何の裏にありますか？", "古い郵便局", "郵便局"),
            "喫茶店": ("郵便局の裏には何がありますか？", "小さい喫茶店", "喫茶店"),
            "元教師": ("喫茶店の店主は以前何をしていましたか？", "回答不能", "元教師"),
        },
        [6 / 8, 6 / 9, 0],
    ),
    "ko": Story(
        "모두 적어 주십시오",
        "질문을 하나 만들어",
        "역 북쪽에 오래된 우체국이 있다. 그 뒤에서 작은 찻집을 발견했다.",
        "오래된 우체국 뒤에 찻집이 있다. 주인은 전직 교사다.",
        {
            "우체국": ("찻집은 무엇의 뒤에 있습니까?", "오래된 우체국", "우체국"),
            "찻집": ("우체국 뒤에는 무엇이 있습니까?", "작은 찻집", "찻집"),
            "전직 교사": ("찻집 주인은 예전에 무슨 일을 했습니까?", "답할 수 없음", "전직 교사"),
        },
        [6 / 9, 4 / 6, 0],
    ),
    "zh": Story(
        "请列出",
        "请写出一个问题",
        "车站北口有一家老邮局。在它后面发现了一家小茶馆。",
        "老邮局后面有茶馆。店主当过教师。",
        {
            "邮局": ("茶馆在什么后面？", "老邮局", "邮局"),
            "茶馆": ("邮局后面有什么？", "小茶馆", "茶馆"),
            "教师": ("茶馆的店主以前做什么工作？", "无法回答", "教师"),
        },
        [4 / 5, 4 / 5, 0],
    ),
}


@pytest.mark.parametrize("language", STORIES)
def test_a_scripted_judge_in_japanese_korean_and_chinese(
    language: str, judge: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listing, asking, source, output, lines, f1 = STORIES[language]
    rules: list[dict[str, Any]] = [{"when": [listing, output], "reply": "\n".join(lines)}]
    for theme, (question, from_source, from_output) in lines.items():
        rules.append({"when": [asking, f"\n{theme}\n</answer"], "reply": question})
        rules.append({"when": [question, source], "reply": from_source})
        rules.append({"when": [question, output], "reply": f"{from_output}。"})
    Path("script.yaml").write_text(yaml.safe_dump(rules, allow_unicode=True), "utf-8")
    row = {"item": "cafe", "system": "x", "source": source, "output": output}
    Path("data.jsonl").write_text(json.dumps(row, ensure_ascii=False), "utf-8")
    completed = judge(
        *MEASURED, "qags", "--set", "qags.backend=llm", "--model", "scripted/script.yaml"
    )
    assert completed.code == 0, completed.err
    assert load("r").estimates["x", "qags_f1"].value == pytest.approx(sum(f1) / 3)
    shown = judge("report", "r", "--item", "cafe").out.splitlines()
    head = next(n for n, line in enumerate(shown) if line.startswith("theme"))
    starts = [cell_len(shown[head].partition(name)[0]) for name in ("question", "from source")]
    for (theme, (question, from_source, _)), value in zip(lines.items(), f1, strict=True):
        (line,) = (
            line for line in shown[head + 1 :] if line.startswith(f"{theme} ")
        )  # a long question continues on the next line
        cells = question[:5], f"  {from_source if value else '–'}"
        assert [cell_len(line.partition(cell)[0]) for cell in cells] == [starts[0], starts[1] - 2]
        assert f"  {value:.2f}" in line


def answer(body: dict[str, Any]) -> str:
    """Answer like a judge that extracts one theme, asks about it and finds it in the text."""
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
    assert info["requests"]["sent"] == len(chat_server.bodies) == 8, (
        "2 × themes, a question, two answers"
    )
    assert load("r").estimates["x", "qags_f1"].value == 1.0
    n_requests = len(chat_server.bodies)
    judge("run", "run.yaml", "-q")
    assert len(chat_server.bodies) == n_requests
    assert "openai/m@127.0.0.1" in load("r").table.signatures["qags_f1"]
    without = judge(*args)
    assert without.code == 2  # before any request
    assert has_line(without.err, "judge", "--model NAME")


def test_an_item_by_a_judge_model_in_a_language_with_a_limit(
    judge: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("Norholm"))
    options = [
        "--set",
        "qags.backend=llm",
        "--model",
        "m",
        "--base-url",
        chat_server.url,
        "--limit",
        "1",
    ]
    judge(*MEASURED, "qags", *options, "--language", "ja", "--max-tokens", "700")
    first = chat_server.bodies[0]
    assert first["messages"][0]["content"].startswith("一つの文章を読んでください。")
    assert first["max_completion_tokens"] == 1024
    assert chat_server.bodies[-1]["max_completion_tokens"] == 700
    count = len(chat_server.bodies)
    judge(*MEASURED, "qags", *options, "--language", "ja", "--set", "qags.language=ko")
    assert chat_server.bodies[count]["messages"][0]["content"].startswith(
        "글 하나를 읽어 주십시오."
    )


def test_a_refusal_of_the_judge_fails_the_output(
    judge: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    no = {
        "error": {
            "message": "flagged",
            "type": "invalid_request_error",
            "param": None,
            "code": "content_filter",
        }
    }

    def reply(body: dict[str, Any]) -> Any:
        prompt = body["messages"][0]["content"]
        if "A question:" in prompt and "Monday" in prompt and "Skarvik" in prompt:
            return 400, {}, no
        return 200, {}, make_completion(answer(body))

    chat_server.answer = reply
    args = [
        "data.jsonl",
        "--set",
        "qags.backend=llm",
        "--model",
        "m",
        "--base-url",
        chat_server.url,
    ]
    completed = judge("run", *args, "--criteria", "none", "--metrics", "qags", "--out", "r")
    assert completed.code == 1
    result = load("r")
    (failed,) = result.failures
    assert (failed.item, failed.error) == ("two", "Refused")
    assert "1 measured, 1 failed" in completed.out
    (output,) = json.loads(judge("report", "r", "--item", "two", "--json").out)["outputs"]
    (failure,) = output["failures"]
    assert has_line(failure["message"], "1 of 1 theme", "no question or answer")
    assert output["questions"][0]["left_out"].startswith("refused")
    shown = " ".join(judge("report", "r", "--item", "two").out.split())
    assert "failed" in shown
    assert "flagged" in shown


def test_a_recording_replaces_the_model(
    judge: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion(answer(body)))
    args = ["data.jsonl", "--set", "qags.backend=llm"]
    run = ["--criteria", "none", "--metrics", "qags", "--model", "m", "--base-url", chat_server.url]
    assert judge("run", *args, *run, "--record", "calls.jsonl", "-q").code == 0
    n_requests = len(chat_server.bodies)
    completed = judge(
        "run", *args, *run[:4], "--replay", "calls.jsonl", "--no-cache", "--out", "replayed"
    )
    assert (completed.code, len(chat_server.bodies)) == (0, n_requests), completed.err
    assert load("replayed").estimates["x", "qags_f1"].value == 1.0
