"""The peak memory of `judge run --metrics rouge` on 200,000 news-like texts: 20,000 items of ten systems each."""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from common import JUDGE

ITEMS, SYSTEMS = 20_000, 10
VOCABULARY, SOURCE, REFERENCE, KEPT = 20_000, 400, 60, 0.6


def write(path: Path, items: int, systems: int) -> None:
    """Sources of 400 words, references of 60, and outputs that keep three in five words of the reference."""
    draw = random.Random(1)
    words = [f"word{number}" for number in range(VOCABULARY)]
    with path.open("w", encoding="utf-8") as file:
        for item in range(items):
            reference = draw.choices(words, k=REFERENCE)
            texts = {
                "source": " ".join(draw.choices(words, k=SOURCE)),
                "references": [" ".join(reference)],
            }
            for system in range(systems):
                output = " ".join(
                    word if draw.random() < KEPT else draw.choice(words)
                    for word in reference
                )
                row = {
                    "item": str(item),
                    "system": f"system {system}",
                    "output": output,
                }
                file.write(json.dumps({**row, **texts}) + "\n")


def peak(data: Path, out: Path) -> tuple[float, float]:
    """Peak memory (MB) and CPU seconds of one whole command with its reports."""
    command = [
        *JUDGE,
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
    """What, the large run, one of a tenth of its items, and how many times as much memory the large one took."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for items in (ITEMS // 10, ITEMS):
            data = Path(folder) / f"{items}.jsonl"
            write(data, items, SYSTEMS)
            found.append(peak(data, Path(folder) / str(items)))
    (small, small_cpu), (large, large_cpu) = found
    what = f"ROUGE of {ITEMS * SYSTEMS:,} texts, and of a tenth"
    yield (
        what,
        f"{large:.0f} MB {large_cpu:.0f} s",
        f"{small:.0f} MB {small_cpu:.0f} s",
        f"{large / small:.1f} x",
    )


if __name__ == "__main__":
    for row in rows():
        print(*row, sep="\t")
