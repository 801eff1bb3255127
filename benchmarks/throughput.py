"""3,200 judgments at concurrency 256, a server that takes 200 ms: wall against the ideal, CPU against a bare loop.

The bare loop is the official SDK on aiohttp calling `chat.completions.create` with the same prompts, already
rendered, and throwing the replies away. Ours renders, keys, asks, parses, weighs and caches.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from common import CRITERIA, ask_bare, judge_all, mock_server, summeval

from judge.cache import DiskCache
from judge.criteria import load, template_bodies
from judge.criteria.render import Renderer
from judge.execution.judgments import Judgment
from judge.providers.openai import OpenAIProvider
from judge.scoring.strategies import SamplingOptions

LATENCY, CONCURRENCY, OUTPUTS, ROUNDS = 0.2, 256, 800, 5


def measured(work: Callable[[], Coroutine[Any, Any, None]]) -> tuple[float, float]:
    """Wall and CPU seconds of one run in a fresh event loop."""
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(work())
    return time.perf_counter() - wall, time.process_time() - cpu


async def ours(rows: list[Any], criteria: list[Any], url: str) -> None:
    provider = OpenAIProvider("mock", base_url=url, connections=CONCURRENCY)
    asked = [Judgment(sample, criterion) for sample in rows for criterion in criteria]
    with tempfile.TemporaryDirectory() as folder:
        cache = DiskCache(Path(folder))
        await judge_all(
            asked, provider, cache, SamplingOptions(), concurrency=CONCURRENCY
        )


def main() -> None:
    with mock_server(LATENCY) as url:
        compare(url)


def compare(url: str) -> None:
    rows = summeval()
    rows = list({(s.source, s.output): s for s in rows}.values())[:OUTPUTS]
    criteria = [load(name) for name in CRITERIA]
    renderers = [Renderer(c, template_bodies(c)) for c in criteria]
    prompts = [r.render(s).messages[0]["content"] for s in rows for r in renderers]
    ideal = len(prompts) / CONCURRENCY * LATENCY + LATENCY
    pairs = []
    for i in range(ROUNDS + 1):
        a, b = (
            measured(lambda: ours(rows, criteria, url)),
            measured(lambda: ask_bare(prompts, url, CONCURRENCY)),
        )
        print(
            f"ours {a[0]:.2f} s wall {a[1]:.2f} s CPU | bare {b[0]:.2f} s wall {b[1]:.2f} s CPU"
            + " (warm-up)" * (not i)
        )
        pairs += [(a, b)] * bool(i)
    wall = statistics.median(a[0] for a, _ in pairs)
    print(f"judgments {len(prompts)}, ideal {ideal:.2f} s")
    print(
        f"wall / ideal: {wall / ideal:.2f} (bare loop {statistics.median(b[0] for _, b in pairs) / ideal:.2f})"
    )
    print(
        f"client CPU / bare loop's: {statistics.median(a[1] / b[1] for a, b in pairs):.2f}"
    )


if __name__ == "__main__":
    main()
