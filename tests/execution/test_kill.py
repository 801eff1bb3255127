"""A run that is killed and restarted repeats only the requests that were in flight and gives the same result."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.cache import DiskCache

PLACES, TEXTS, KILLS = 4, 40, 4
PROGRAM = """
import asyncio, json, os, sys
from pathlib import Path
from judge.cache import DiskCache
from judge.criteria import load
from judge.scoring.strategies import SamplingOptions
from judge.providers.openai import OpenAIProvider
from judge.providers.sdk import sdk
from judge.core.records import Sample, Score
from judge.execution.judgments import Judgment
from judge.execution.rate_limit import RateLimiter
from tests.senders import Judged, Sender

criteria = [load("coherence"), load("relevance")]
sdk()

def work(url, folder, places, texts):
    cache, rows = DiskCache(Path(folder)), []
    asked = [
        Judgment(Sample(str(n), "s", f"text {n}", "the source"), criterion)
        for n in range(int(texts)) for criterion in criteria
    ]
    run = Judged(
        asked, OpenAIProvider("m", base_url=url, connections=int(places)), SamplingOptions(draws=2, repair=True),
        cache=cache, sender=Sender(rate_limiter=RateLimiter(int(places))), emit=rows.append,
    )
    asyncio.run(run())
    cache.close()
    plain_rows = sorted(
        (r.item, r.column, *((str(r.value), r.provenance.method) if isinstance(r, Score) else (r.error, r.raw)))
        for r in rows
    )
    (Path(folder) / "rows.json").write_text(json.dumps(plain_rows))

for line in sys.stdin:
    if not (pid := os.fork()):
        work(*line.split())
        os._exit(0)
    print(pid, flush=True)
    print(os.waitpid(pid, 0)[1], flush=True)
"""


class Starter:
    """Start runs as separate processes, forked from one that has already imported judge."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, folder: Path) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{self._url} {folder} {PLACES} {TEXTS}\n")
        self._process.stdin.flush()
        return self._number()

    def status(self) -> int:
        """Wait until the last run has ended and return its exit status."""
        return self._number()

    def _number(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture
def starter(chat_server: Any) -> Iterator[Starter]:
    chat_server._http.handle_error = lambda *_: None  # a killed process drops its connections
    one = Starter(chat_server.url)
    yield one
    one.close()


def finished(starter: Starter, folder: Path) -> Any:
    starter.start(folder)
    assert starter.status() == 0
    return json.loads((folder / "rows.json").read_text())


def text(messages: Iterable[Any]) -> str:
    return "\n".join(message["content"] for message in messages)


def stored(folder: Path) -> set[str]:
    """Return the prompts that have a reply on disk."""
    cache = DiskCache(folder)
    try:
        return {text(request.messages) for _, request in cache.iter_all() if request is not None}
    finally:
        cache.close()


def received_prompts(server: Any) -> Counter[str]:
    return Counter(json.dumps(body, sort_keys=True) for body in list(server.bodies))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("probabilities", "unreadable"),
    [(True, 0), (True, 3), (False, 0)],
    ids=["probabilities", "a third without a score", "drawn one by one"],
)
def test_a_run_that_is_killed_again_and_again(
    chat_server: Any,
    make_completion: Callable[..., Any],
    wait_until: Callable[..., None],
    tmp_path: Path,
    starter: Starter,
    probabilities: bool,
    unreadable: int,
) -> None:
    chance = random.Random(7)

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        number = sum(map(ord, body["messages"][0]["content"]))
        label = str(1 + number % 5)
        time.sleep(chance.uniform(0.0, 0.01))
        if unreadable and number % unreadable == 0 and (len(body["messages"]) == 1 or number % 2):
            tokens = {"no idea": 1.0} if probabilities and body.get("logprobs") else None
            return 200, {}, make_completion("no idea", top=tokens)
        top = {label: 0.75, "3" if label != "3" else "2": 0.25}
        return (
            200,
            {},
            make_completion(label, top=top if probabilities and body.get("logprobs") else None),
        )

    chat_server.answer = answer
    expected, once = finished(starter, tmp_path / "calm"), received_prompts(chat_server)
    assert len(expected) == 2 * TEXTS
    assert bool(unreadable) == any(
        row[2:] == ["ParseError", '["no idea", "no idea"]'] for row in expected
    )
    assert bool(unreadable) == any('"assistant"' in body for body in once)
    chat_server.bodies.clear()
    paid = list[tuple[set[str], int]]()
    for _ in range(KILLS):
        child = starter.start(tmp_path / "torn")
        stop = len(chat_server.bodies) + chance.randint(1, once.total() // KILLS - PLACES)
        wait_until(lambda stop=stop: len(chat_server.bodies) >= stop)
        time.sleep(chance.uniform(0.0, 0.01))
        os.kill(child, signal.SIGKILL)
        assert starter.status() == signal.SIGKILL
        paid.append((stored(tmp_path / "torn"), len(chat_server.bodies)))
    assert finished(starter, tmp_path / "torn") == expected
    repeated = (received_prompts(chat_server) - once).total()
    if probabilities:
        for prompts, answered in paid:
            assert not prompts & {text(body["messages"]) for body in chat_server.bodies[answered:]}
        assert received_prompts(chat_server).keys() == once.keys()
        assert repeated <= KILLS * PLACES
    else:  # Draws of a prompt are equal requests. Each start sends one more request to learn that it needs draws.
        assert len(chat_server.bodies) - once.total() <= KILLS * (PLACES + 1)
    assert repeated < once.total() / 2
