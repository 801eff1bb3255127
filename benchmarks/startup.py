"""What a user waits for before and after the requests: starting, and runs whose replies are all in the cache.

    python benchmarks/startup.py

Ratios are of CPU time, which other work on the machine disturbs least. The runs of 800 and 3,200 judgments are
SummEval's 16 systems on 50 items, by one and four criteria, with the usual metrics.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import CRITERIA, JUDGE, ROOT, read

ROUNDS = 7
ITEMS = 50


def measure(*command: str, rounds: int = ROUNDS) -> tuple[float, float]:
    """Median seconds by the clock, and median CPU seconds, of a command as a process of its own."""
    wall, spent = [], []
    for _ in range(rounds):
        before, start = (
            resource.getrusage(resource.RUSAGE_CHILDREN),
            time.perf_counter(),
        )
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        wall.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        )
    return statistics.median(wall), statistics.median(spent)


def report(
    name: str,
    command: tuple[str, ...],
    unit: str,
    unit_cpu: float,
    rounds: int = ROUNDS,
) -> None:
    wall, spent = measure(*command, rounds=rounds)
    print(
        f"{name}: {wall:.3f} s, {spent:.3f} s of CPU; {spent / unit_cpu:.1f} times {unit}'s {unit_cpu:.3f} s of CPU"
    )


def main() -> None:
    _, empty = measure(sys.executable, "-c", "pass")
    report(
        "import judge",
        (sys.executable, "-c", "import judge"),
        "an empty interpreter",
        empty,
    )
    report("judge --help", (*JUDGE, "--help"), "an empty interpreter", empty)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        replies, data = Path(folder, "replies.yaml"), Path(folder, "summeval.jsonl")
        replies.write_text(
            "- {when: [], reply: {4: 0.6, 5: 0.3, 3: 0.1}}\n", encoding="utf-8"
        )
        rows = read()
        items = list(dict.fromkeys(row["doc_id"] for row in rows))[:ITEMS]
        data.write_text(
            "".join(json.dumps(row) + "\n" for row in rows if row["doc_id"] in items),
            encoding="utf-8",
        )
        _, imports = measure(sys.executable, "-c", "import openai, pandas")
        unit = "importing openai and pandas"
        for criteria in (CRITERIA[:1], CRITERIA):
            command = (
                *JUDGE, "run", str(data), "--map", "item=doc_id,output=summary", "--criteria", ",".join(criteria),
                "--model", f"scripted/{replies}", "--out", f"{folder}/{len(criteria)}", "--quiet",
            )  # fmt: skip
            measure(*command, rounds=1)
            name = f"{16 * ITEMS * len(criteria):,} cached judgments over 16 systems"
            report(name, command, unit, imports, rounds=3)


if __name__ == "__main__":
    main()
