"""Seconds of a ranking: win rates and Bradley-Terry strengths, with their intervals."""

from __future__ import annotations

import random
import time
from itertools import permutations

from judge.core.records import Provenance, Score
from judge.stats.pairwise import rankings


def rows(systems: int, items: int) -> list[Score]:
    """Comparisons of every two systems in both orders, by a judge that sees their quality dimly."""
    chance = random.Random(0)
    return [
        Score(
            str(item),
            f"s{a}",
            "overall",
            min(max(0.5 + (b - a) / 40 + chance.gauss(0, 0.2), 0), 1),
            how,
            f"s{b}",
        )
        for how in (Provenance("single"),)
        for item in range(items)
        for a, b in permutations(range(systems), 2)
    ]


def main() -> None:
    for systems, items in ((16, 100), (16, 1000), (40, 100)):
        names = [f"s{place}" for place in range(systems)]
        made = rows(systems, items)
        start = time.perf_counter()
        (ranking,) = rankings(made, (), names, ["overall"])
        seconds = time.perf_counter() - start
        print(
            f"{systems} systems, {items:,} items, {ranking.pairs:,} pairs: {seconds:.1f} s"
        )


if __name__ == "__main__":
    main()
