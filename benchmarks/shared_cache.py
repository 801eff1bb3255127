"""A cache that several use: runs on one folder at once."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from common import CRITERIA, JUDGE, SUMMEVAL, mock_server

TEXTS, LATENCY = 200, 0.2


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


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        distinct, alone = at_once(folder / "alone", 1)
        print(f"one run on a folder: {distinct:,} requests, {alone:.1f} s")
        for runs, kill in ((2, False), (2, True), (4, False)):
            sent, seconds = at_once(folder / f"{runs}{kill}", runs, kill=kill)
            what = f"{runs} runs at once" + ", one killed half-way" * kill
            print(f"{what}: {sent:,} requests, {sent / distinct:.3f} times, {seconds:.1f} s")


if __name__ == "__main__":
    main()
