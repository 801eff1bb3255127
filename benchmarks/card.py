"""A judge card of 100 items of SummEval offline, part by part.

    JUDGE_SHARED=../shared python benchmarks/card.py

The judge is a script, of which only the asking differs from a real one's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from common import COLUMNS, SUMMEVAL

from judge.commands.card.card_plan import MAIN, plan_card
from judge.commands.card.command import run_card
from judge.config import load_config
from judge.core.records import Request
from judge.providers.scripted import Reply, ScriptedProvider

ITEMS = 100
T = TypeVar("T")


def timed(what: str, work: Callable[[], T]) -> T:
    """What the work gives; its seconds on the clock and of this process are printed."""
    clock, spent = time.perf_counter(), time.process_time()
    found = work()
    print(
        f"{what:<58} {time.perf_counter() - clock:6.2f} s, {time.process_time() - spent:6.2f} s of CPU"
    )
    return found


def parts() -> None:
    """What takes how long, by a judge that answers at once."""

    def answer(request: Request) -> Reply:
        compared = "You will compare two texts" in request.messages[0]["content"]
        return {"A": 0.6, "B": 0.4} if compared else {"3": 0.6, "2": 0.4}

    scripted = ScriptedProvider(answer)
    given = load_config(
        options={
            "data": SUMMEVAL,
            "map": COLUMNS,
            "cache": False,
            "weighting": "logprobs",
        }
    )
    found = timed(
        "texts made, prompts checked",
        lambda: plan_card(given, items=ITEMS, providers=[scripted]),
    )
    card = timed(
        f"{found.judgments:,} judgments in {len(found.runs)} runs, card",
        lambda: asyncio.run(run_card(found)),
    )
    if card.failures:
        raise SystemExit(f"failures: {dict(card.failures)}")
    for format in ("console", "markdown", "html", "json"):
        timed(f"card as {format}", lambda format=format: card.report(format))  # type: ignore[misc]
    sizes = {name: len(one.samples) for name, one in found.runs.items()}
    print(f"texts by run: {sizes}; of {MAIN}: {len(found.texts.originals)} as they are")


if __name__ == "__main__":
    parts()
