"""A suite of 200 cases with their texts in it, on replay: all of judge test beside judge run on the same texts."""

from __future__ import annotations

import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASES, ROUNDS = 200, 5
WORDS = [
    "the",
    "a",
    "of",
    "river",
    "bridge",
    "council",
    "mended",
    "road",
    "market",
    "in",
    "on",
    "after",
    "before",
    "minister",
    "said",
    "that",
    "people",
    "town",
    "water",
    "house",
    "light",
    "and",
    "with",
    "new",
    "old",
    "plan",
    "for",
    "by",
]
JUDGE = "from judge.cli import main; main()"


def write(folder: Path) -> None:
    """The suite, the same texts as data, and replies to record."""
    draw = random.Random(0)

    def text(words: int) -> str:
        return " ".join(draw.choice(WORDS) for _ in range(words)) + "."

    rows = [
        {"item": f"case {n}", "system": "text", "source": text(400), "output": text(60)}
        for n in range(CASES)
    ]
    (folder / "data.jsonl").write_text(
        "\n".join(map(json.dumps, rows)), encoding="utf-8"
    )
    (folder / "replies.yaml").write_text(
        "- {when: [], reply: {4: 0.6, 5: 0.3, 3: 0.1}}\n", encoding="utf-8"
    )
    cases = [
        json.dumps(
            {
                "name": row["item"],
                "text": {k: row[k] for k in ("source", "output")},
                "expect": {"min": 3},
            }
        )
        for row in rows
    ]
    lines = [
        "criteria: [relevance]",
        "replay: calls.jsonl",
        "cases:",
        *(f"  - {case}" for case in cases),
    ]
    (folder / "suite.judge.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def took(folder: Path, *arguments: str) -> tuple[float, float]:
    """Seconds by the clock and of the processor for one command, the median of several."""
    found = []
    for _ in range(ROUNDS):
        before, start = (
            resource.getrusage(resource.RUSAGE_CHILDREN),
            time.perf_counter(),
        )
        subprocess.run(
            [sys.executable, "-c", JUDGE, *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        seconds, after = (
            time.perf_counter() - start,
            resource.getrusage(resource.RUSAGE_CHILDREN),
        )
        found.append(
            (
                seconds,
                after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            )
        )
    wall, processor = (statistics.median(times) for times in zip(*found, strict=True))
    return wall, processor


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder)
        run = (
            "run",
            "data.jsonl",
            "--criteria",
            "relevance",
            "--metrics",
            "none",
            "--no-cache",
            "--out",
            "out",
        )
        first = [
            sys.executable,
            "-c",
            JUDGE,
            *run,
            "--model",
            "scripted/replies.yaml",
            "--record",
            "calls.jsonl",
        ]
        subprocess.run(first, cwd=folder, check=True, capture_output=True)
        times = {
            "judge test": took(folder, "test", "suite.judge.yaml", "--no-cache"),
            "judge run": took(folder, *run, "--replay", "calls.jsonl", "--quiet"),
        }
        for name, (wall, processor) in times.items():
            print(f"{name}: {wall:.2f} s, of the processor {processor:.2f} s")
        ratio = times["judge test"][1] / times["judge run"][1]
        print(
            f"{CASES} cases on replay: {ratio:.2f} times the processor's time of judge run on the same texts"
        )


if __name__ == "__main__":
    main()
