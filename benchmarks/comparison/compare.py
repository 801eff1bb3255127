"""Compare judge with other tools on the same 640 judgments, on a server with known probabilities.

    python benchmarks/comparison/compare.py --environments FOLDER [--tools deepeval,opik] [--rounds 3]

FOLDER/NAME is the environment of a tool (README.md); a tool without one is skipped. Prints one table.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import cases
from running import JUDGE, TOOLS, Command, Run, measured, scratch, serving

HEADER = (
    "tool",
    "error of the score: mean, largest",
    "requests with logprobs",
    "rubbish once",
    "rubbish always",
    "asked again after rubbish",
    "answered before the kill, asked again",
    "CPU",
    "wall",
)


def exactness(run: Run) -> tuple[str, str]:
    """Return how far the scores are from the means over the server's probabilities, and the requests for them."""
    asked = f"{run.counts['with_logprobs']}"
    errors = [
        abs(each.score - cases.expectation(*pair))
        for pair, each in run.judged.items()
        if each.score is not None
    ]
    if not errors:
        return f"no scores (exit {run.status})", asked
    return (
        f"{statistics.mean(errors):.4f}, {max(errors):.4f} ({len(errors)} scores)",
        asked,
    )


def outcome(run: Run, number: int, criterion: str) -> str:
    """Return what became of a judgment whose first reply was rubbish."""
    judged = run.judged.get((number, criterion))
    if judged is None:
        return "missing"
    if judged.score is None:
        return "reported as failed" if judged.error else "without a score or a reason"
    right = (cases.expectation(number, criterion), cases.label(number, criterion))
    if min(abs(judged.score - value) for value in right) < 0.05:
        return "scored"
    return f"score {judged.score:g}"


def rubbish(run: Run) -> tuple[str, str, str]:
    """Return what became of rubbish that comes once, of rubbish that comes always, and the requests for them."""
    if not run.judged:
        last = (run.log.strip().splitlines() or [""])[-1]
        return f"run ended (exit {run.status}): {last[:80]}", "", ""
    once: Counter[str] = Counter()
    always: Counter[str] = Counter()
    for number in range(cases.ITEMS * len(cases.SYSTEMS)):
        for criterion in cases.CRITERIA:
            wrong = cases.rubbish(number, criterion)
            if wrong is not None:
                counter = always if wrong[1] else once
                counter[outcome(run, number, criterion)] += 1
    again = sum(count - 1 for count in run.counts["asked"].values())
    return listed(once), listed(always), f"{again}"


def listed(counter: Counter[str]) -> str:
    return "; ".join(f"{count} {name}" for name, count in counter.most_common())


def repeated(before: dict[str, Any], run: Run) -> str:
    """Return how many requests that had been answered before a kill were sent again."""
    asked = run.counts["asked"]
    answered = before["answered"]
    again = sum(asked[pair] > before["asked"][pair] for pair in answered)
    return f"{again} of {len(answered)} ({len(run.judged)} results)"


def row(command: Command, rounds: int, *, logs: bool) -> list[str]:
    """Measure one tool, in turn with judge."""
    tool = command.tool
    judge = Command(JUDGE, None)
    cpu, wall = [], []
    for _ in range(rounds):
        own = measured(judge)
        clean = measured(command)
        cpu.append(clean.cpu / own.cpu)
        wall.append(clean.wall / own.wall)
        print(
            f"# {tool.name}: {clean.wall:.1f} s, {clean.cpu:.1f} s of CPU, {clean.memory:.0f} MB;"
            f" judge {own.wall:.1f} s, {own.cpu:.1f} s, {own.memory:.0f} MB",
            flush=True,
        )
    with scratch() as folder, serving(tool, "--rubbish") as server:
        wrong = command.finish(server, folder)
    with scratch() as folder, serving(tool) as server:
        before = command.kill_halfway(server, folder)
        second = command.finish(server, folder)
    if logs:
        for run in (clean, wrong, second):
            print("#", "\n# ".join(run.log.strip().splitlines()[-15:]))
    cells = [f"{tool.name} {command.version()}", *exactness(clean), *rubbish(wrong)]
    cells += [repeated(before, second), ratios(cpu), ratios(wall)]
    return cells


def ratios(values: list[float]) -> str:
    """Return the median, and the range if there are several."""
    middle = f"{statistics.median(values):.1f}"
    return (
        middle
        if len(values) == 1
        else f"{middle} ({min(values):.1f}-{max(values):.1f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--environments", type=Path, help="folder of the tools' environments"
    )
    parser.add_argument("--tools", help="names with commas (default: all)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="runs for CPU and wall time"
    )
    parser.add_argument("--logs", action="store_true", help="print the end of each log")
    chosen = parser.parse_args()
    names = chosen.tools.split(",") if chosen.tools else [tool.name for tool in TOOLS]
    rows = []
    for tool in TOOLS:
        if tool.name not in names:
            continue
        command = Command(tool, chosen.environments)
        if not command.version():
            print(f"# {tool.name}: not installed, skipped")
            continue
        rows.append(row(command, chosen.rounds, logs=chosen.logs))
        print("#", " | ".join(rows[-1]), flush=True)
    for cells in (HEADER, ["---"] * len(HEADER), *rows):
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
