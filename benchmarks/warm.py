"""6,400 judgments of SummEval answered from the cache: judgments a second, and the time of the whole command."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from judge import samples
from judge.cache import DiskCache
from judge.criteria import load
from judge.ladder import Settings
from judge.providers.scripted import ScriptedProvider
from judge.retry import Retrier
from judge.runner import Judgment, Run

SHARED = Path(os.environ.get("JUDGE_SHARED", "../shared"))
CRITERIA = ("relevance", "coherence", "consistency", "fluency_5")
REPLY = {"4": 0.6, "5": 0.3, "3": 0.08, "2": 0.015, "1": 0.005}


def judged(folder: Path) -> tuple[float, int]:
    """Seconds of one pass over all rows (loading included) and how many requests it sent."""
    start = time.perf_counter()
    rows = samples.load(SHARED / "data/summeval.jsonl", mapping={"item": "doc_id", "output": "summary"})
    provider = ScriptedProvider(lambda _: REPLY, endpoint="benchmark")
    cache, made = DiskCache(folder), []
    criteria = [load(name) for name in CRITERIA]
    asked = [Judgment(sample, criterion) for sample in rows for criterion in criteria]
    run = Run(asked, provider, Settings(), cache=cache, retrier=Retrier(), emit=made.append)
    asyncio.run(run())
    cache.close()
    if len(made) != len(asked) or run.counts.failed:
        sys.exit(f"not all judged: {run.counts}")
    return time.perf_counter() - start, len(provider.seen)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cold, sent = judged(Path(folder) / "cache")
        warm = [judged(Path(folder) / "cache") for _ in range(5)]
        seconds = statistics.median(s for s, _ in warm)
        print(f"cold: {cold:.2f} s, {sent} requests; warm: {seconds:.2f} s, {max(n for _, n in warm)} requests")
        print(f"warm: {6400 / seconds:,.0f} judgments/s, {cold / seconds:.1f} times the cold run's rate")
        replies = Path(folder) / "replies.yaml"
        replies.write_text("- {when: [], reply: {4: 0.6, 5: 0.3, 3: 0.1}}\n", encoding="utf-8")
        command = [
            sys.executable,
            "-c",
            "from judge.cli import main; main()",
            "run",
            str(SHARED / "data/summeval.jsonl"),
        ]
        command += ["--map", "item=doc_id,output=summary", "--criteria", ",".join(CRITERIA), "--metrics", "none"]
        command += ["--model", f"scripted/{replies}", "--cache", f"{folder}/other", "--out", f"{folder}/out", "--quiet"]
        times = []
        for _ in range(4):
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times.append(time.perf_counter() - start)
        print(f"whole command with reports: cold {times[0]:.2f} s, warm {statistics.median(times[1:]):.2f} s")


if __name__ == "__main__":
    main()
