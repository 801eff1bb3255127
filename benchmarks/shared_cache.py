"""6,400 judgments of SummEval answered from a Redis that machines share, beside the cache of this machine alone."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from judge import samples
from judge.address import Address
from judge.cache import opened
from judge.criteria import load
from judge.ladder import Settings
from judge.providers.scripted import ScriptedProvider
from judge.retry import Retrier
from judge.runner import Judgment, Run

SHARED = Path(os.environ.get("JUDGE_SHARED", "../shared"))
CRITERIA = ("relevance", "coherence", "consistency", "fluency_5")
REPLY = {"4": 0.6, "5": 0.3, "3": 0.08, "2": 0.015, "1": 0.005}
TIMES = 5


@contextmanager
def redis() -> Iterator[str]:
    """The address of a Redis of our own, which keeps nothing on disk."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.kill()
        server.wait()


def judged(machine: Path, place: Address | Path) -> tuple[float, float, int]:
    """One pass over all rows, loading included: seconds by the clock and of this process, and the requests it sent."""
    os.environ["JUDGE_CACHE"] = str(machine)
    start, spent = time.perf_counter(), time.process_time()
    rows = samples.load(SHARED / "data/summeval.jsonl", mapping={"item": "doc_id", "output": "summary"})
    provider = ScriptedProvider(lambda _: REPLY, endpoint="benchmark")
    cache, made = opened(place, must=True), []
    criteria = [load(name) for name in CRITERIA]
    asked = [Judgment(sample, criterion) for sample in rows for criterion in criteria]
    run = Run(asked, provider, Settings(), cache=cache, retrier=Retrier(), emit=made.append)
    asyncio.run(run())
    cache.close()
    if len(made) != len(asked) or run.counts.failed:
        sys.exit(f"not all judged: {run.counts}")
    return time.perf_counter() - start, time.process_time() - spent, len(provider.seen)


def show(name: str, passes: list[tuple[float, float, int]]) -> None:
    wall, spent = (6400 / statistics.median(one[side] for one in passes) for side in (0, 1))
    sent = max(one[2] for one in passes)
    print(f"{name:46} {wall:8,.0f} judgments/s, {spent:8,.0f} a second of our CPU, {sent:,} requests")


def command(machine: Path, place: str, folder: Path) -> float:
    """Seconds of the whole command."""
    args = [sys.executable, "-c", "from judge.cli import main; main()", "run", str(SHARED / "data/summeval.jsonl")]
    args += ["--map", "item=doc_id,output=summary", "--criteria", ",".join(CRITERIA), "--metrics", "none", "--quiet"]
    args += ["--model", f"scripted/{folder / 'replies.yaml'}", "--cache", place, "--out", str(folder / "out")]
    start = time.perf_counter()
    subprocess.run(args, check=True, capture_output=True, env={**os.environ, "JUDGE_CACHE": str(machine)})
    return time.perf_counter() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as name, redis() as url:
        folder, address = Path(name), Address.read(url)
        show("cold: every reply asked for", [judged(folder / "first", address)])
        fresh, again, alone = [], [], []
        for _ in range(TIMES):
            fresh.append(judged(folder / "new", address))
            again.append(judged(folder / "new", address))
            alone.append(judged(folder / "first", folder / "first"))
            shutil.rmtree(folder / "new")
        show("warm, on a machine that has nothing yet", fresh)
        show("warm, on one that has all of it", again)
        show("warm, from the disk alone", alone)
        (folder / "replies.yaml").write_text("- {when: [], reply: {4: 0.6, 5: 0.3, 3: 0.1}}\n", encoding="utf-8")
        cold = command(folder / "a", url, folder)
        new, warm = command(folder / "b", url, folder), command(folder / "b", url, folder)
        disk = command(folder / "b", str(folder / "b"), folder)
        print(f"whole command: cold {cold:.1f} s, new machine {new:.1f} s, again {warm:.1f} s, disk alone {disk:.1f} s")


if __name__ == "__main__":
    main()
