"""Limits and prices that belong to one entry of `model`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError

ROWS = [{"item": str(i), "output": f"Text number {i}."} for i in range(6)]


def run(url: str, **entry: Any) -> judge.Result:
    options = {name: entry.pop(name) for name in ("budget", "retries") if name in entry}
    model = {"name": "house-model", "base_url": url, **entry}
    return judge.evaluate(
        ROWS, ["fluency_5"], model=model, metrics="none", cache=False, weighting="single", **options
    )


def test_a_price_makes_a_budget_in_dollars_possible(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("4"))
    with pytest.raises(ConfigError, match="price"):
        run(chat_server.url, budget="5usd")
    result = run(chat_server.url, budget="5usd", price={"input": 2.0, "output": 8.0})
    (used,) = result.info.judges.values()
    read, written = used.usage.prompt_tokens, used.usage.completion_tokens
    assert used.cost.usd == pytest.approx((2.0 * read + 8.0 * written) / 1e6)
    assert read > 0


def test_a_budget_at_a_given_price_stops_the_run(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("4"))
    with pytest.raises(judge.JudgeError, match="budget"):
        run(chat_server.url, budget="0.01usd", price={"input": 1000.0, "output": 1000.0})


@pytest.mark.parametrize(
    "price", [{"input": 1.0}, {"input": -1, "output": 2}, {"input": 1, "output": 2, "cached": 0}]
)
def test_refuses_an_invalid_price(price: Any) -> None:
    with pytest.raises(ConfigError, match="price"):
        run("http://127.0.0.1:9/v1", price=price)


def test_max_concurrency_of_an_entry_holds(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    lock = threading.Lock()
    running, most = 0, 0

    def answer(body: dict[str, Any]) -> Any:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return 200, {}, make_completion("4")

    chat_server.answer = answer
    assert len(run(chat_server.url, max_concurrency=1).table.scores) == len(ROWS)
    assert most == 1


def test_the_timeout_of_an_entry_holds(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    release = threading.Event()

    def answer(body: dict[str, Any]) -> Any:
        release.wait(20)
        return 200, {}, make_completion("4")

    chat_server.answer = answer
    try:
        with pytest.raises(judge.JudgeError, match=r"within 0\.2 s"):
            run(chat_server.url, timeout=0.2, retries=0)
    finally:
        release.set()
