"""A cache that several use: two runs on one folder at once, and 6,400 judgments of SummEval answered from a Redis."""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from common import CRITERIA, JUDGE, SUMMEVAL, command, judged, mock_server

from judge.cache import open_cache
from judge.core.redis_url import RedisUrl

TIMES = 5
TEXTS, LATENCY = 200, 0.2


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


def passed(machine: Path, place: RedisUrl | Path) -> tuple[float, float, int]:
    """One pass over all rows on a machine: seconds by the clock and of this process, and the requests it sent."""
    os.environ["JUDGE_CACHE"] = str(machine)
    return judged(lambda: open_cache(place, must=True))


def show(name: str, passes: list[tuple[float, float, int]]) -> None:
    wall, spent = (6400 / statistics.median(one[side] for one in passes) for side in (0, 1))
    sent = max(one[2] for one in passes)
    print(f"{name:46} {wall:8,.0f} judgments/s, {spent:8,.0f} a second of our CPU, {sent:,} requests")


def whole(machine: Path, place: object, folder: Path) -> float:
    """Seconds of the whole command."""
    given = ["run", SUMMEVAL, "--map", "item=doc_id,output=summary", "--criteria", ",".join(CRITERIA)]
    given += ["--metrics", "none", "--quiet", "--model", f"scripted/{folder / 'replies.yaml'}", "--cache", place]
    return command(*given, "--out", folder / "out", JUDGE_CACHE=machine)


def at_once(folder: Path, runs: int, *, kill: bool = False) -> tuple[int, float]:
    """Requests of so many runs on one folder at once, and seconds; the first one may be killed half-way."""
    with mock_server(LATENCY) as url:
        start = time.perf_counter()
        given = ["run", SUMMEVAL, "--map", "item=doc_id,output=summary", "--criteria", ",".join(CRITERIA)]
        given += ["--limit", TEXTS, "--metrics", "none", "--quiet", "--model", "m", "--base-url", url]
        given += ["--cache", folder / "cache"]
        commands = [[*JUDGE, *map(str, [*given, "--out", folder / str(n)])] for n in range(runs)]
        started = [subprocess.Popen(arguments, stdout=subprocess.DEVNULL) for arguments in commands]

        def requests() -> int:
            with urlopen(f"{url}/stats") as reply:
                return int(json.load(reply)["requests"])

        if kill:
            while requests() < TEXTS * len(CRITERIA) / 2:
                time.sleep(0.02)
            started[0].kill()
        for run in started:
            run.wait()
        return requests(), time.perf_counter() - start


def compare_runs_at_once() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        distinct, alone = at_once(folder / "alone", 1)
        print(f"one run on a folder: {distinct:,} requests, {alone:.1f} s")
        for runs, kill in ((2, False), (2, True), (4, False)):
            sent, seconds = at_once(folder / f"{runs}{kill}", runs, kill=kill)
            what = f"{runs} runs at once" + ", one killed half-way" * kill
            print(f"{what}: {sent:,} requests, {sent / distinct:.3f} times, {seconds:.1f} s")


def main() -> None:
    compare_runs_at_once()
    with tempfile.TemporaryDirectory() as name, redis() as url:
        folder, address = Path(name), RedisUrl.read(url)
        show("cold: every reply asked for", [passed(folder / "first", address)])
        fresh, again, alone = [], [], []
        for _ in range(TIMES):
            fresh.append(passed(folder / "new", address))
            again.append(passed(folder / "new", address))
            alone.append(passed(folder / "first", folder / "first"))
            shutil.rmtree(folder / "new")
        show("warm, on a machine that has nothing yet", fresh)
        show("warm, on one that has all of it", again)
        show("warm, from the disk alone", alone)
        (folder / "replies.yaml").write_text("- {when: [], reply: {4: 0.6, 5: 0.3, 3: 0.1}}\n", encoding="utf-8")
        cold = whole(folder / "a", url, folder)
        new, warm = whole(folder / "b", url, folder), whole(folder / "b", url, folder)
        disk = whole(folder / "b", folder / "b", folder)
        print(f"whole command: cold {cold:.1f} s, new machine {new:.1f} s, again {warm:.1f} s, disk alone {disk:.1f} s")


if __name__ == "__main__":
    main()
