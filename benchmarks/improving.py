"""Measure `judge criteria improve`: how often it reports a gain that is none, and how often it finds one that is there.

    python benchmarks/improving.py              # choice and test alone, on drawn scores
    python benchmarks/improving.py --commands 100   # whole attempts, with a judge and a writer without sense

A third of the items (at least 10) chooses among the present wording and four revisions, the others test the choice
once. "Same items" shows what would happen if all items chose a wording and tested it, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import tempfile
from pathlib import Path

os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import numpy as np

from judge.commands.improve.command import plan_improvement, run_improvement
from judge.commands.improve.record import choose_wording, measure_gain
from judge.config import load_config
from judge.core.records import Request, Sample
from judge.core.signature import Signature
from judge.providers.scripted import ScriptedProvider
from judge.stats.coefficients import Level
from judge.stats.rated_columns import RatedColumn

REVISIONS, ATTEMPTS = 4, 400
Columns = list[RatedColumn]


def label(values: np.ndarray) -> np.ndarray:
    """Return whole scores from 1 to 5 of standard normal values."""
    return np.clip(np.round(3 + 1.2 * values), 1, 5)


def draw(
    draws: np.random.Generator, items: int, systems: int, gain: float | None
) -> tuple[list[Sample], Columns]:
    """Draw ratings, and the scores of a present wording and its revisions.

    Without a `gain`, all scores are random. With one, a text has a quality and a length; the present wording follows
    the quality with the weight .4 and otherwise the length, and one revision follows the quality more by `gain`.
    """
    size = items * systems
    quality, length = draws.standard_normal((2, size))
    people = label(0.8 * quality + 0.6 * draws.standard_normal(size))
    rows = [
        Sample(f"i{n // systems}", f"s{n % systems}", "", human={"x": float(x)})
        for n, x in enumerate(people)
    ]
    columns = []
    for number in range(1 + REVISIONS):
        weight = 0.0 if gain is None else 0.4 + gain * (number == 2)
        biased = 0.0 if gain is None else 0.6
        rest = np.sqrt(max(0.0, 1 - weight**2 - biased**2 * (1 - weight**2)))
        scores = label(
            weight * quality
            + biased * np.sqrt(1 - weight**2) * length
            + rest * draws.standard_normal(size)
        )
        values = {
            row.key: float(score) for row, score in zip(rows, scores, strict=True)
        }
        columns.append(RatedColumn("", Signature(), values, "x", None, frozenset()))
    return rows, columns


def gains(
    rows: list[Sample], tested: list[Sample], columns: Columns, level: Level, seed: int
) -> bool:
    """Return whether the wording that `rows` choose gains significantly on the `tested` texts."""
    best = choose_wording(rows, "x", columns, level).chosen
    gain = (
        measure_gain(tested, "x", (columns[0], columns[best]), level, seed)
        if best
        else None
    )
    return bool(
        gain and gain.is_significant and gain.difference and gain.difference.value > 0
    )


def drawn_scores() -> None:
    print(
        f"{ATTEMPTS:,} attempts each, {REVISIONS} revisions; share of attempts that report a gain\n"
    )
    print(f"{'items':>5} {'systems':>7} {'judge':>8} {'unseen':>7} {'same items':>10}")
    for systems in (1, 3):
        level: Level = "within-items" if systems > 1 else "all-texts"
        for gain in (None, 0.0, 0.3):
            for items in (20, 60, 120):
                draws = np.random.default_rng(
                    [systems, items, int(100 * (gain or 0)), gain is None]
                )
                found, same = 0, 0
                for seed in range(ATTEMPTS):
                    rows, columns = draw(draws, items, systems, gain)
                    training = max(10, items // 3) * systems
                    found += gains(
                        rows[:training], rows[training:], columns, level, seed
                    )
                    same += not gain and gains(rows, rows, columns, level, seed)
                name = "random" if gain is None else f"+{gain:.1f}"
                print(
                    f"{items:>5} {systems:>7} {name:>8} {found / ATTEMPTS:>7.1%} {same / ATTEMPTS:>10.1%}",
                    flush=True,
                )


def attempt(seed: int, folder: Path, items: int = 20, systems: int = 3) -> bool:
    """Return whether a whole attempt with a random judge reports a gain."""
    r = random.Random(seed)
    rows = [
        Sample(f"i{i}", f"s{s}", f"text {r.random()}", human={"good": float(rating)})
        for i in range(items)
        for s, rating in enumerate(r.sample(range(1, 6), systems))
    ]

    def judge(request: Request) -> int:
        return random.Random(f"{seed} {request.messages[-1]['content']}").randint(1, 5)

    def write(request: Request) -> str:
        (number,) = re.findall(
            r"This is revision (\d+) of", request.messages[-1]["content"]
        )
        return json.dumps(
            {
                "question": f"Is the text good in the {number}th sense?",
                "reason": "Another sense.",
            }
        )

    plan = plan_improvement(
        "good: Is the text good?", load_config(options={"cache": False, "seed": seed}), rows,
        providers=[ScriptedProvider(judge)], writer=ScriptedProvider(write), output=folder / f"{seed}.yaml",
    )  # fmt: skip
    return asyncio.run(run_improvement(plan)).improved


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--commands",
        type=int,
        default=0,
        metavar="N",
        help="whole attempts with a random judge",
    )
    number = parser.parse_args().commands
    if not number:
        drawn_scores()
        return
    with tempfile.TemporaryDirectory() as folder:
        found = sum(attempt(seed, Path(folder)) for seed in range(number))
    print(f"{found} of {number} attempts with a random judge report a gain")


if __name__ == "__main__":
    main()
