"""An audit of 100 items of SummEval offline: the whole command, beside `judge run` on the same texts, and its parts.

    JUDGE_SHARED=../shared python benchmarks/audit.py

The judge of the command is the heuristic, as no model is there; the parts are also measured with a scripted judge, of
which only the asking differs from a real one's. The card of the heuristic on these texts is printed, too: docs/audit.md
quotes it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from common import COLUMNS, JUDGE, SUMMEVAL

from judge.commands.audit import MAIN, plan_audit, run_audit
from judge.config import load_config
from judge.core.records import Request
from judge.providers.scripted import Reply, ScriptedProvider

ITEMS = 100
T = TypeVar("T")


def timed(what: str, work: Callable[[], T]) -> T:
    """What the work gives; its seconds on the clock and of this process are printed."""
    clock, spent = time.perf_counter(), time.process_time()
    found = work()
    print(f"{what:<58} {time.perf_counter() - clock:6.2f} s, {time.process_time() - spent:6.2f} s of CPU")
    return found


def command(*arguments: object) -> tuple[float, float]:
    """Seconds on the clock and of CPU that a command takes, the start of Python included."""
    clock, before = time.perf_counter(), os.times()
    done = subprocess.run(
        [*JUDGE, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - clock, spent


def whole(folder: Path) -> None:
    """The command, and a run of the heuristic on the same texts."""
    by_column = ",".join(f"{field}={column}" for field, column in COLUMNS.items())
    given = ("--model", "heuristic", "--no-cache", "--quiet")
    took = min(command("audit", SUMMEVAL, "--map", by_column, *given, "--out", folder / "audit") for _ in range(3))
    found = plan_audit(
        load_config(given={"data": SUMMEVAL, "map": COLUMNS, "model": "heuristic", "cache": False}), items=ITEMS
    )
    rows = [{"item": s.item, "system": s.system, "output": s.output, "source": s.source} for s in found.texts.changed]
    texts = folder / "texts.jsonl"
    texts.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    plain = min(command("run", texts, *given, "--metrics", "none", "--out", folder / f"run-{n}") for n in range(3))
    print(f"judge audit, {ITEMS} items, heuristic: {took[0]:.2f} s, {took[1]:.2f} s of CPU")
    print(f"judge run on its {len(rows):,} texts: {plain[0]:.2f} s, {plain[1]:.2f} s of CPU")
    print(f"ratio (CPU): {took[1] / plain[1]:.2f}")


def parts() -> None:
    """What takes how long, by a judge that answers at once."""

    def answer(request: Request) -> Reply:
        compared = "You will compare two texts" in request.messages[0]["content"]
        return {"A": 0.6, "B": 0.4} if compared else {"3": 0.6, "2": 0.4}

    scripted = ScriptedProvider(answer)
    given = load_config(given={"data": SUMMEVAL, "map": COLUMNS, "cache": False, "weighting": "logprobs"})
    found = timed("texts made, prompts checked", lambda: plan_audit(given, items=ITEMS, providers=[scripted]))
    card = timed(
        f"{found.judgments:,} judgments in {len(found.runs)} runs, card", lambda: asyncio.run(run_audit(found))
    )
    if card.failures:
        raise SystemExit(f"failures: {dict(card.failures)}")
    for format in ("console", "markdown", "html", "json"):
        timed(f"card as {format}", lambda format=format: card.report(format))  # type: ignore[misc]
    sizes = {name: len(one.samples) for name, one in found.runs.items()}
    print(f"texts by run: {sizes}; of {MAIN}: {len(found.texts.originals)} as they are")


def card() -> None:
    """The card that docs/audit.md quotes."""
    given = load_config(given={"data": SUMMEVAL, "map": COLUMNS, "model": "heuristic", "cache": False})
    print(asyncio.run(run_audit(plan_audit(given, items=ITEMS))).report("markdown"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        whole(Path(place))
    parts()
    card()
