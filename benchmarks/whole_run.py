"""The command `judge run` on 3,200 judgments, with imports, statistics and page, against a bare loop of the SDK.

Both are fresh processes that read the same data, at concurrency 100 and a server that takes 200 ms. The bare loop
renders the same prompts and throws the replies away.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from common import COLUMNS, CRITERIA, JUDGE, ask_bare, mock_server, read

from judge.criteria import load, template_bodies
from judge.criteria.render import Renderer
from judge.data import samples

LATENCY, CONCURRENCY, SYSTEMS, ROUNDS = 0.2, 100, 8, 3


def measured(command: Sequence[str]) -> tuple[float, float]:
    """Return the wall and CPU seconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, check=True, env={**os.environ, "OPENAI_API_KEY": "x"})
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def bare(data: str, url: str) -> None:
    """Render the prompts that `judge run` would send for the data, and send them."""
    rows = samples.load(data, mapping=COLUMNS)
    criteria = [load(name) for name in CRITERIA]
    renderers = [Renderer(each, template_bodies(each)) for each in criteria]
    prompts = [
        renderer.render(row).messages[0]["content"] for row in rows for renderer in renderers
    ]
    asyncio.run(ask_bare(prompts, url, CONCURRENCY))


def main() -> None:
    rows = read()
    systems = sorted({row["system"] for row in rows})[:SYSTEMS]
    chosen = [row for row in rows if row["system"] in systems]
    walls, cpus = [], []
    with tempfile.TemporaryDirectory() as name, mock_server(LATENCY) as url:
        folder = Path(name)
        data = folder / "data.jsonl"
        data.write_text("".join(f"{json.dumps(row)}\n" for row in chosen), encoding="utf-8")
        for number in range(ROUNDS):
            words = ["run", str(data), "--map", "item=doc_id,output=summary", "--metrics", "none"]
            words += ["--criteria", ",".join(CRITERIA), "--model", "mock", "--base-url", url]
            words += ["--max-concurrency", str(CONCURRENCY), "--quiet"]
            words += ["--out", str(folder / f"out{number}"), "--cache", str(folder / f"c{number}")]
            wall, cpu = measured([*JUDGE, *words])
            bare_wall, bare_cpu = measured([sys.executable, __file__, str(data), url])
            print(
                f"judge run {wall:.1f} s, {cpu:.1f} s of CPU; bare {bare_wall:.1f}, {bare_cpu:.1f}"
            )
            walls.append(wall / bare_wall)
            cpus.append(cpu / bare_cpu)
    print(f"{len(chosen) * len(CRITERIA):,} judgments: wall {statistics.median(walls):.2f} and CPU")
    print(f"{statistics.median(cpus):.2f} of the bare loop's")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        bare(*sys.argv[1:])
    else:
        main()
