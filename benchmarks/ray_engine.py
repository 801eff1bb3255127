"""20,000 judgments at concurrency 256, a server that takes 100 ms: --engine ray against the local engine, wall and CPU.

Each side renders, keys, asks, parses, weighs and caches, in a fresh event loop with an empty cache. What Ray takes to
start is not in its wall: the same engine first makes one judgment of its own, which has it start the cluster and the
workers and let a request through each way; that is timed apart and printed, and so is shutting it all down again.

    ray_engine.py [WORKERS]    # default: as many as the engine chooses, on one machine one
"""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common import CRITERIA, judge_all, mock_server, summeval

from judge.cache import DiskCache
from judge.core.records import Criterion, Sample
from judge.criteria import load
from judge.execution import engines
from judge.execution.engines import EngineContext
from judge.execution.judgments import Judgment
from judge.execution.progress import JudgeProgress
from judge.providers.openai import OpenAIProvider
from judge.scoring.strategies import SamplingOptions

LATENCY, CONCURRENCY, OUTPUTS, ROUNDS = 0.1, 256, 5_000, 3
WORKERS = int(sys.argv[1]) if len(sys.argv) > 1 else None


@dataclass
class Took:
    """Seconds of one round: from the first judgment to the last, of this process's CPU in them, and around them."""

    wall: float
    cpu: float
    start: float
    stop: float


def outputs() -> list[Sample]:
    """SummEval's texts, told apart by a number at their end as often as they come."""
    rows = summeval()
    rows = list({(row.source, row.output): row for row in rows}.values())
    times = -(-OUTPUTS // len(rows))
    many = [
        replace(row, item=f"{row.item}-{n}", output=f"{row.output} ({n})")
        for n in range(times)
        for row in rows
    ]
    return many[:OUTPUTS]


async def judged(
    asked: Sequence[Judgment],
    provider: OpenAIProvider,
    engine: engines.Engine,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = DiskCache(Path(folder))
        await judge_all(
            asked,
            provider,
            cache,
            SamplingOptions(),
            concurrency=CONCURRENCY,
            engine=engine,
        )


async def measured(
    name: str, rows: Sequence[Sample], criteria: Sequence[Criterion], url: str
) -> Took:
    provider = OpenAIProvider("mock", base_url=url, connections=CONCURRENCY)
    engine = engines.create_engine(
        name, EngineContext(provider, None, JudgeProgress(), workers=WORKERS)
    )
    before = time.perf_counter()
    first = Judgment(replace(rows[0], output="A first text."), criteria[0])
    await judged([first], provider, engine)
    start, cpu = time.perf_counter(), time.process_time()
    await judged(
        [Judgment(row, criterion) for row in rows for criterion in criteria],
        provider,
        engine,
    )
    end = time.perf_counter()
    took = Took(end - start, time.process_time() - cpu, start - before, 0.0)
    await engine.aclose()
    took.stop = time.perf_counter() - end
    return took


def main() -> None:
    os.environ.pop("RAY_ADDRESS", None)
    with mock_server(LATENCY) as url:
        compare(url)


def compare(url: str) -> None:
    rows, criteria = outputs(), [load(name) for name in CRITERIA]
    number = len(rows) * len(criteria)
    pairs = []
    for _ in range(ROUNDS):
        local, ray = (
            asyncio.run(measured(name, rows, criteria, url))
            for name in ("local", "ray")
        )
        print(
            f"local {local.wall:.1f} s wall {local.cpu:.1f} s CPU | ray {ray.wall:.1f} s wall {ray.cpu:.1f} s CPU here "
            f"| ratio {ray.wall / local.wall:.2f} | ray's start {ray.start:.1f} s, end {ray.stop:.1f} s"
        )
        pairs.append((local, ray))
    print(
        f"judgments {number:,}, ideal {number / CONCURRENCY * LATENCY:.1f} s, load {os.getloadavg()[0]:.1f}"
    )
    print(
        f"peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    )
    print(
        f"ray's start-up {statistics.median(ray.start for _, ray in pairs):.1f} s, not in its wall"
    )
    print(
        f"ray's wall / local's: {statistics.median(ray.wall / local.wall for local, ray in pairs):.2f}"
    )


if __name__ == "__main__":
    main()
