"""Outputs and the prompts of metrics go through the run's engine; an interrupted run pays for nothing twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge import evaluate
from judge.core.errors import BudgetReached
from judge.providers.pricing import TokenPrices
from tests.factories import has_line, write_jsonl

ITEMS = [{"item": f"i{n}", "source": f"The ferry left port {n}."} for n in range(5)]


@pytest.fixture
def systems(tmp_path: Path) -> dict[str, Any]:
    """Two prompts for the model `writer`."""
    for name in ("long", "short"):
        (tmp_path / f"{name}.jinja").write_text(
            f"Write a {name} summary: {{{{ source }}}}", encoding="utf-8"
        )
    return {
        name: {"prompt": str(tmp_path / f"{name}.jinja"), "model": "writer"}
        for name in ("long", "short")
    }


def written(body: dict[str, Any]) -> bool:
    return body["messages"][0]["content"].startswith("Write a")


def run(server: Any, systems: dict[str, Any], **options: Any) -> Any:
    settings = {"criteria": ["relevance"], "metrics": [], "model": "reader", "base_url": server.url}
    return evaluate(ITEMS, **{**settings, "systems": systems, **options})


# Batches.


def test_outputs_are_written_in_batches(
    batch_server: Any, systems: dict[str, Any], tmp_path: Path
) -> None:
    result = run(batch_server, systems, engine="batch", cache=tmp_path / "c")
    assert sum(map(written, batch_server.online)) == 2  # each system's first
    assert sum(map(written, batch_server.bodies.values())) == 8
    assert set(batch_server.asked.values()) == {1}
    assert len(result.table.scores) == 10
    sent = len(batch_server.calls)
    second_result = run(batch_server, systems, engine="batch", cache=tmp_path / "c")
    assert [(s.key, s.output) for s in second_result.table.samples] == [
        (s.key, s.output) for s in result.table.samples
    ]
    assert not {"POST /v1/files", "POST /v1/chat/completions"} & {*batch_server.calls[sent:]}


def test_a_batch_is_half_the_price_of_generation(
    batch_server: Any, systems: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "judge.providers.pricing.per_token", lambda *_, **__: TokenPrices(1.0, 1.0, 1.0, 1.0)
    )
    for engine, price in (("local", 5 * 101), ("batch", 101 + 4 * 101 / 2)):
        result = run(batch_server, systems, engine=engine, cache=tmp_path / engine)
        system_costs = [system.cost.usd for system in result.info.systems.values()]
        assert system_costs == [price, price]
        judge_costs = [judge.cost.usd for judge in result.info.judges.values()]
        assert result.info.cost.usd == sum(system_costs) + sum(judge_costs)
        assert result.info.requests.answered == 10 + 5  # equal outputs are judged once
        shown = " ".join(result.report(full=True).split())
        assert f"of which generation: ${2 * price:,.4f}" in shown
        assert f"(generation ${2 * price:,.2f})" in result.report()


def judge(server: Any, folder: Path, systems: dict[str, Any], *words: str) -> subprocess.Popen[str]:
    write_jsonl(folder / "data.jsonl", ITEMS)
    (folder / "run.yaml").write_text(
        json.dumps({"data": "data.jsonl", "systems": systems}), encoding="utf-8"
    )
    shown = [
        "--criteria",
        "relevance",
        "--metrics",
        "none",
        "--model",
        "reader",
        "--base-url",
        server.url,
    ]
    storage_options = ["--cache", str(folder / "cache"), "--out", str(folder / "out")]
    return subprocess.Popen(
        [sys.executable, "-c", "from judge.cli import main; main()", "run", "run.yaml", *shown, *storage_options, *words],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_a_metric_asks_in_batches(
    batch_server: Any, tmp_path: Path, make_completion: Callable[..., Any]
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        asks = "Write one question" in body["messages"][-1]["content"]
        return 200, make_completion("Where did it leave?" if asks else "port")

    batch_server.answer = answer
    rows = [{**row, "system": "s", "output": row["source"]} for row in ITEMS]
    options: dict[str, Any] = {
        "criteria": [], "model": "reader", "base_url": batch_server.url, "metrics": ["qags"], "language": "en",
        "set": ["qags.backend=llm"],
    }  # fmt: skip
    result = evaluate(rows, engine="batch", cache=tmp_path / "a", **options)
    batched = len(batch_server.asked)
    assert batched > len(batch_server.online)
    assert set(batch_server.asked.values()) == {1}
    online = evaluate(rows, cache=tmp_path / "b", **options)
    assert [(s.key, s.column, s.value) for s in result.table.scores] == [
        (s.key, s.column, s.value) for s in online.table.scores
    ]


# Killed, or out of budget.


@pytest.mark.slow
def test_a_killed_generation_writes_only_missing_outputs(
    chat_server: Any, systems: dict[str, Any], make_completion: Callable[..., Any], tmp_path: Path,
    wait_until: Callable[..., None],
) -> None:  # fmt: skip
    chat_server._http.handle_error = lambda *_: None  # a killed process drops its connections
    answered, waiting, may_go_on = list[str](), list[str](), threading.Event()

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        prompt = body["messages"][0]["content"]
        if len(answered) >= 7 and not may_go_on.is_set():
            waiting.append(prompt)
            may_go_on.wait(60)
            return 500, {}, None
        answered.append(prompt)
        return 200, {}, make_completion("A text." if written(body) else "4")

    chat_server.answer = answer
    process = judge(chat_server, tmp_path, systems, "--max-concurrency", "2")
    wait_until(lambda: len(waiting) == 2, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    may_go_on.set()
    process = judge(chat_server, tmp_path, systems, "--max-concurrency", "2")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out, err)
    counted = Counter(prompt for prompt in answered if prompt.startswith("Write a"))
    assert (len(counted), set(counted.values())) == (10, {1})
    info = json.loads((tmp_path / "out/run.json").read_text("utf-8"))["info"]
    assert info["systems"]["long"]["requests"]["cached"] == 5
    assert (
        info["systems"]["short"]["requests"] | {"sent": 3, "cached": 2}
        == info["systems"]["short"]["requests"]
    )


@pytest.mark.slow
def test_a_budget_stops_generation_and_nothing_is_written_twice(
    chat_server: Any, systems: dict[str, Any], make_completion: Callable[..., Any], tmp_path: Path
) -> None:
    # The prompts have so many tokens that the template may have 1,000 of them.
    usage = {"prompt_tokens": 1_000, "completion_tokens": 1}
    chat_server.answer = lambda body: (
        200,
        {},
        make_completion("A text." if written(body) else "4", usage=usage),
    )
    for system in systems.values():
        system["max_tokens"] = 100
    with pytest.raises(BudgetReached, match="budget of 5,500 tokens") as stopped:
        run(chat_server, systems, cache=tmp_path / "c", budget="5500tokens", max_concurrency=1)
    note, enough = stopped.value.__notes__
    first = len(chat_server.bodies)
    assert has_line(enough, "budget=", f"should be enough for {10 - first} outputs")
    assert 0 < first < 10
    assert has_line(note, f"{first} of 10 outputs")
    assert has_line(note, "cache answers")
    result = run(chat_server, systems, cache=tmp_path / "c")
    assert len(result.table.scores) == 10
    prompts = Counter(
        body["messages"][0]["content"] for body in chat_server.bodies if written(body)
    )
    assert set(prompts.values()) == {1}
    assert result.info.requests.cached == first
