"""Measure how often one of six equally good judges is called significantly worse than the one that looks best.

    python benchmarks/equal_judges.py [REPETITIONS]     # 1,000

Four systems answer the same items. Each judge sees what people see, with noise of its own: both correlate by .6. "95%"
are the intervals of any difference of two columns; "corrected" those of `judge validate` for judges, which hold together
for all 15 pairs. A verdict is false in every case, and should be given in at most 5% of repetitions.
"""

from __future__ import annotations

import sys
from math import comb

import numpy as np
from claims import APART, Random, quality, scores

from judge.stats.bootstrap import Bootstrap
from judge.stats.coefficients import Level, of_pair
from judge.stats.correlation import CorrelationWithRatings

JUDGES = 6
SIZES = (5, 10, 20, 50)
LEVELS: tuple[Level, ...] = ("within-items", "all-texts")


def best_beats_another(
    level: Level, scale: str, n: int, random: Random
) -> tuple[bool, bool] | None:
    """Return whether the judge that looks best beats another one: by 95% intervals, and by corrected ones.

    None without intervals.
    """
    seen = quality(APART, n, random)
    judges = [
        scores(scale, APART, n, random, 0.6 * seen + 0.8 * quality(APART, n, random)).T
        for _ in range(JUDGES)
    ]
    ratings = scores("ties", APART, n, random, seen).T
    against = CorrelationWithRatings(ratings, Bootstrap(1000))
    everything = np.ones((1, n))
    looks = [
        float(of_pair(each, ratings, level, "spearman")(everything)[0])
        for each in judges
    ]
    known = [place for place, value in enumerate(looks) if not np.isnan(value)]
    if len(known) < 2:
        return None
    best = max(known, key=lambda place: looks[place])
    beaten = [False, False]
    tested = False
    for side, n_intervals in enumerate((None, comb(len(known), 2))):
        for other in known:
            if other == best:
                continue
            e = against.difference(
                judges[best], judges[other], level, n_intervals=n_intervals
            )
            if e is not None and e.low is not None and e.high is not None:
                tested = True
                beaten[side] |= e.low > 0 or e.high < 0
    return (beaten[0], beaten[1]) if tested else None


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    heads = " | ".join(f"{n} items" for n in SIZES)
    print(f"| false verdicts, per cent of {repetitions:,}: 95%, corrected | {heads} |")
    print(f"|---|{'---:|' * len(SIZES)}")
    for level in LEVELS:
        for scale in ("skewed", "ties"):
            cells = []
            for n in SIZES:
                random = np.random.default_rng([n, len(level)])
                drawn = [
                    best_beats_another(level, scale, n, random)
                    for _ in range(repetitions)
                ]
                known = np.array([each for each in drawn if each is not None])
                cells.append(
                    " → ".join(f"{share:.1f}" for share in 100 * known.mean(axis=0))
                    if len(known)
                    else "–"
                )
            print(f"| {level}, {scale} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
