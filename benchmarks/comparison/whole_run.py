"""judge's whole run against a bare loop of the SDK and against DeepEval, at 640 and 3,200 judgments, in turn.

    python benchmarks/comparison/whole_run.py [--environments FOLDER] [--rounds 3] [--sizes 640,3200]

Each is a process of its own, imports, statistics and files included, at concurrency 32 and a server that takes 200 ms.
DeepEval is measured in the first round only, as it takes minutes. Prints medians of seconds by the clock, of CPU and
of the most memory, and judge's part of each tool's, round by round: median and range.
"""

from __future__ import annotations

import argparse
import os
import statistics
from pathlib import Path

import cases
from running import BARE, DEEPEVAL, JUDGE, Command, Run, measured

PER_ITEM = len(cases.SYSTEMS) * len(cases.CRITERIA)


def compare(size: int, commands: list[Command], rounds: int) -> None:
    """Measure the commands on so many judgments, and print a row for each."""
    os.environ[cases.ITEMS_VARIABLE] = str(size // PER_ITEM)
    runs: dict[str, list[Run]] = {command.tool.name: [] for command in commands}
    for number in range(rounds):
        for command in commands:
            if number and command.tool is DEEPEVAL:
                continue
            run = measured(command)
            answered = sum(run.counts["answered"].values())
            if run.status or answered != size:
                raise SystemExit(
                    f"{command.tool.name}: exit {run.status}, {answered} replies\n{run.log}"
                )
            runs[command.tool.name].append(run)
    own = runs[JUDGE.name]
    for command in commands:
        others = runs[command.tool.name]
        wall = statistics.median(run.wall for run in others)
        cpu = statistics.median(run.cpu for run in others)
        memory = statistics.median(run.memory for run in others)
        cells = [f"{size:,}", f"{command.tool.name} {command.version()}", f"{wall:.1f}"]
        cells += [f"{cpu:.1f}", f"{memory:.0f}"]
        pairs = list(zip(own, others, strict=False))  # DeepEval has one run only
        cells += [ratio([mine.wall / run.wall for mine, run in pairs])]
        cells += [ratio([mine.cpu / run.cpu for mine, run in pairs])]
        print(f"| {' | '.join(cells)} |", flush=True)


def ratio(values: list[float]) -> str:
    """Return the median and the range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--environments", type=Path, help="folder that holds deepeval's"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--sizes", default="640,3200", help="judgments, each divisible by 16"
    )
    chosen = parser.parse_args()
    commands = [Command(JUDGE, None), Command(BARE, None)]
    deepeval = Command(DEEPEVAL, chosen.environments)
    if chosen.environments is not None and deepeval.version():
        commands.append(deepeval)
    else:
        print("deepeval: not installed, skipped (README.md says how to install it)")
    print(
        f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    print(
        "| judgments | tool | wall, s | CPU, s | memory, MB | judge's part of the wall time | judge's part of the CPU |"
    )
    print("|---|---|---|---|---|---|---|")
    for size in map(int, chosen.sizes.split(",")):
        compare(size, commands, chosen.rounds)
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
