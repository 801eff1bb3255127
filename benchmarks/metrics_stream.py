"""The memory of `judge run --criteria none` on streamed texts: 100,000 of them against ten times as many."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SIZES = (100_000, 1_000_000)
WORDS, LENGTH, KEPT = 20_000, 25, 0.6


def write(path: Path, texts: int) -> None:
    """Two systems' outputs of 25 words, of which three in five are the reference's."""
    draw = random.Random(1)
    words = [f"word{number}" for number in range(WORDS)]
    with path.open("w", encoding="utf-8") as file:
        for number in range(texts):
            output = [draw.choice(words) for _ in range(LENGTH)]
            reference = [word if draw.random() < KEPT else draw.choice(words) for word in output]
            row = {"item": str(number // 2), "system": "ab"[number % 2], "output": " ".join(output)}
            file.write(json.dumps({**row, "references": [" ".join(reference)]}) + "\n")


def peak(data: Path, out: Path) -> tuple[float, float]:
    """Peak memory (MB) and CPU seconds of one whole command."""
    command = [
        sys.executable,
        "-c",
        "from judge.cli import main; main()",
        "run",
        str(data),
        "--criteria",
        "none",
        "--metrics",
        "rouge",
        "--out",
        str(out),
        "--quiet",
    ]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {status}")
    return used.ru_maxrss / 1024, used.ru_utime + used.ru_stime


def rows() -> Iterator[tuple[str, str, str, str]]:
    """What, the large run, the small run, and how many times as much memory the large one took."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for texts in SIZES:
            data = Path(folder) / f"{texts}.jsonl"
            write(data, texts)
            found.append(peak(data, Path(folder) / str(texts)))
    (small, small_cpu), (large, large_cpu) = found
    what = f"ROUGE of {SIZES[1]:,} texts, streamed, and of {SIZES[0]:,}"
    yield what, f"{large:.0f} MB {large_cpu:.0f} s", f"{small:.0f} MB {small_cpu:.0f} s", f"{large / small:.1f} x"


if __name__ == "__main__":
    for row in rows():
        print(*row, sep="\t")
