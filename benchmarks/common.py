"""What the benchmarks share: where their data is, a server that answers, and what is measured."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from judge.cache import Cache
from judge.criteria import load
from judge.execution.engines import Engine
from judge.execution.judging import Judging
from judge.execution.judgments import Judgment, Row
from judge.execution.layers import Layer
from judge.execution.layers.cached import ReplyStore
from judge.execution.layers.retried import Policy
from judge.execution.layers.sending import Complete
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter
from judge.execution.reply_client import ReplyClient, SendingOptions, sending_layers
from judge.providers import Provider
from judge.providers.scripted import ScriptedProvider
from judge.scoring.strategies import SamplingOptions

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("JUDGE_SHARED", ROOT.parent / "shared"))
SUMMEVAL = SHARED / "data" / "summeval.jsonl"
COLUMNS = {"item": "doc_id", "output": "summary"}
"""Those of `SUMMEVAL` by our names."""
CRITERIA = ("relevance", "coherence", "consistency", "fluency_5")
REPLY = {"4": 0.6, "5": 0.3, "3": 0.08, "2": 0.015, "1": 0.005}
JUDGE = (sys.executable, "-c", "from judge.cli import main; main()")
"""What starts the command `judge`."""


def read(path: Path = SUMMEVAL) -> list[dict[str, Any]]:
    """The rows of a file as they are."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def summeval() -> list[Any]:
    """SummEval's texts as samples."""
    from judge.data import samples

    return samples.load(SUMMEVAL, mapping=COLUMNS)


def cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of one call, those of its threads too."""
    start = time.process_time()
    work()
    return time.process_time() - start


@contextmanager
def server(tool: str, *options: object) -> Iterator[str]:
    """What a server of the shared tools says first, while it runs."""
    command = [
        sys.executable,
        str(SHARED / "tools" / tool),
        "--port",
        "0",
        *map(str, options),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        try:
            yield started.stdout.readline().strip() if started.stdout else ""
        finally:
            started.terminate()


@contextmanager
def mock_server(latency: float = 0.0) -> Iterator[str]:
    """The base URL of a server that answers each request after so many seconds."""
    with server("mock_server.py", "--latency-ms", latency * 1000) as port:
        yield f"http://127.0.0.1:{port}/v1"


async def ask_bare(prompts: Sequence[str], url: str, concurrency: int) -> None:
    """Send the prompts with the official SDK on aiohttp, and throw the replies away."""
    import openai

    client = openai.AsyncOpenAI(
        base_url=url,
        api_key="x",
        http_client=openai.DefaultAioHttpClient(),
        max_retries=0,
    )
    slots = asyncio.Semaphore(concurrency)

    async def ask(prompt: str) -> None:
        async with slots:
            await client.chat.completions.create(
                model="mock",
                messages=[{"role": "user", "content": prompt}],
                temperature=0,
                max_completion_tokens=64,
                logprobs=True,
                top_logprobs=20,
            )

    await asyncio.gather(*map(ask, prompts))
    await client.close()


async def judge_all(
    asked: Sequence[Judgment],
    provider: Provider,
    cache: Cache,
    settings: SamplingOptions,
    *,
    concurrency: int = 64,
    engine: Engine | None = None,
) -> JudgeProgress:
    """Judge everything, with an engine or from this process; end the benchmark if a judgment fails."""
    made: list[Row] = []
    counts, store = JudgeProgress(), ReplyStore(cache)
    options = SendingOptions(RateLimiter(concurrency), Policy())

    def sending(complete: Complete) -> Layer:
        return sending_layers(complete, options, store, counts)

    layer = engine.layer(sending) if engine is not None else sending(provider.complete)
    criteria = {judgment.criterion.name: judgment.criterion for judgment in asked}
    judging = Judging(
        ReplyClient(layer, store, counts),
        provider,
        settings,
        criteria.values(),
        emit=made.append,
        counts=counts,
    )
    try:
        await judging.judge_all(asked)
    finally:
        await provider.aclose()
        cache.close()
    if len(made) != len(asked) or counts.failed:
        sys.exit(f"not all judged: {counts}")
    return counts


def judged(opened: Callable[[], Any]) -> tuple[float, float, int]:
    """SummEval judged through the cache that is opened, loading included.

    Seconds by the clock and of this process, and the requests sent.
    """
    start, spent = time.perf_counter(), time.process_time()
    rows = summeval()
    provider = ScriptedProvider(lambda _: REPLY, endpoint="benchmark")
    criteria = [load(name) for name in CRITERIA]
    asked = [Judgment(sample, criterion) for sample in rows for criterion in criteria]
    asyncio.run(judge_all(asked, provider, opened(), SamplingOptions()))
    return time.perf_counter() - start, time.process_time() - spent, len(provider.seen)


def command(*arguments: object, **environment: object) -> float:
    """Seconds by the clock that the whole command takes, the start of Python included."""
    start = time.perf_counter()
    env = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    done = subprocess.run(
        [*JUDGE, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )
    if done.returncode not in (0, 1):
        sys.exit(done.stdout + done.stderr)
    return time.perf_counter() - start
