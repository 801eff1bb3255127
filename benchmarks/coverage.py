"""How often the 95 % intervals hold the truth, and how often the test finds what is not there, by simulation.

Scores from 1 to 5 in three shapes. Of a difference: two systems on the same items, one a little better. Of ranks: five
systems on the same items, equal, close together (0.05 standard deviations from one to the next) or apart (0.2); of
each the share of intervals that hold the true place, then of columns in which all five do. Of correlations: a judge and
people on as many texts, Spearman's rho between what lies behind their scores about r. Of rankings two by two: win
rates and Bradley-Terry strengths of two and of five systems, from verdicts that are a label or a probability, in both
orders, by a judge that leans to what it is shown first.

    python benchmarks/coverage.py [REPETITIONS]     # 4,000
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import combinations
from statistics import NormalDist

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from scipy.optimize import minimize
from scipy.stats import spearmanr

from judge.core.records import Column, Estimate, Provenance, Sample, Score
from judge.stats.bootstrap import Bootstrap, item_means
from judge.stats.coefficients import of_pair
from judge.stats.paired_differences import mean_differences
from judge.stats.pairwise import rankings
from judge.stats.system_differences import compare
from judge.table import Table

SIZES = (20, 50, 200)
SHAPES = {
    "even": (0.1, 0.2, 0.4, 0.2, 0.1),
    "near the top": (0.02, 0.05, 0.1, 0.28, 0.55),
    "at both ends": (0.3, 0.15, 0.1, 0.15, 0.3),
}
SHIFT = 0.2
SYSTEMS = {"equal": (0.0,) * 5, "close": (0.2, 0.15, 0.1, 0.05, 0.0), "apart": (0.8, 0.6, 0.4, 0.2, 0.0)}
RANKED, RATED = (6, 10, 20, 100), (30, 100)
COMPARED = (5, 10, 20, 50)
CONTESTS = {
    "two, equal": (0.0, 0.0),
    "two, apart": (0.75, -0.75),
    "two, far apart": (1.5, -1.5),
    "five, equal": (0.0,) * 5,
    "five, apart": (0.75, 0.375, 0.0, -0.375, -0.75),
    "five, far apart": (1.5, 0.75, 0.0, -0.75, -1.5),
}
LEANING = 0.5  # to the first, in log-odds
GOES = (0.0, 0.5, 0.9)  # how far a judge goes with people
HALF = 0.5**0.5  # of an item's and of a text's own part in a score: together they vary by 1
MADE = Provenance("metric")
Values = np.ndarray


def cuts(shape: Sequence[float]) -> list[float]:
    """Where on a normal variable the next score begins."""
    return [NormalDist().inv_cdf(share) for share in np.cumsum(shape)[:-1].tolist()]


def scores(shape: Sequence[float], item: Values, shift: float, random: np.random.Generator) -> Values:
    hidden = HALF * (item + random.normal(size=item.shape)) + shift
    return 1.0 + np.searchsorted(cuts(shape), hidden.ravel()).reshape(item.shape)


def truth(shape: Sequence[float], shift: float) -> float:
    """The mean that these scores have."""
    return 1 + sum(1 - NormalDist(shift).cdf(cut) for cut in cuts(shape))


def held(found: Sequence[Estimate | None], value: float) -> float:
    """The share of intervals, in percent, that hold the value."""
    inside = [e is not None and e.low is not None and e.low - 1e-6 <= value <= e.high + 1e-6 for e in found]
    return 100 * float(np.mean(inside))


def table(values: Values) -> Table:
    """Each row as a system's scores."""
    samples = tuple(Sample(f"i{i}", f"s{s}", "") for s in range(len(values)) for i in range(values.shape[1]))
    rows = tuple(
        Score(one.item, one.system, "c", v, MADE) for one, v in zip(samples, values.ravel().tolist(), strict=True)
    )
    return Table(samples, (Column("c", "metric", "c"),), rows)


def of_differences(repetitions: int) -> None:
    print(f"{'':<14}{'items':>6}{'mean':>8}{'difference':>12}{'p < .05 without one':>21}")
    for name, shape in SHAPES.items():
        for n in SIZES:
            random = np.random.default_rng([n, len(name)])
            item = random.normal(size=(repetitions, n))
            one, other, equal = (scores(shape, item, shift, random) for shift in (SHIFT, 0.0, 0.0))
            mean = held(list(item_means(table(other)).values()), truth(shape, 0.0))
            apart = held(mean_differences(one - other), truth(shape, SHIFT) - truth(shape, 0.0))
            tests = mean_differences(equal - other)
            false = 100 * float(np.mean([e is not None and e.p is not None and e.p < 0.05 for e in tests]))
            print(f"{name:<14}{n:>6}{mean:>8.1f}{apart:>12.1f}{false:>21.1f}", flush=True)


def of_ranks(repetitions: int) -> None:
    print(f"\n{'five systems':<24}" + "".join(f"{f'n = {n}':>18}" for n in RANKED))
    for name, shape in SHAPES.items():
        for which, shifts in SYSTEMS.items():
            cells = []
            for n in RANKED:
                random = np.random.default_rng([n, len(name)])
                found = np.array([placed(shape, n, shifts, random) for _ in range(repetitions)])
                cells.append(f"{100 * found.mean():>12.1f}{100 * found.all(axis=1).mean():>6.1f}")
            print(f"{name + ', ' + which:<24}{''.join(cells)}", flush=True)


def placed(shape: Sequence[float], n: int, shifts: Sequence[float], random: np.random.Generator) -> list[bool]:
    """Of each system whether its rank's interval holds its place; equal systems share the better one."""
    item = random.normal(size=n)
    values = np.array([scores(shape, item, shift, random) for shift in shifts])
    (found,) = compare(table(values))
    places = {f"s{k}": 1 + sum(other > shift for other in shifts) for k, shift in enumerate(shifts)}
    return [one.low <= places[one.system] <= one.high for one in found.ranks]


def of_correlations(repetitions: int) -> None:
    print(f"\n{'Spearman, texts':<24}" + "".join(f"{f'r = {r}, n = {n}':>18}" for r in GOES for n in RATED))
    for name, shape in SHAPES.items():
        cells = []
        for r in GOES:
            true = float(spearmanr(*judged(shape, r, (1_000_000,), np.random.default_rng(0))).statistic)
            for n in RATED:
                pairs = zip(*judged(shape, r, (repetitions, n), np.random.default_rng([n, len(name)])), strict=True)
                cells.append(held([correlation(*pair) for pair in pairs], true))
        print(f"{name:<24}{''.join(f'{cell:>18.1f}' for cell in cells)}", flush=True)


def correlation(one: Values, other: Values) -> Estimate | None:
    """Over all texts, each of its own item, as `judge.stats.correlation` has it."""
    bootstrap, n = Bootstrap(), len(one)
    drawn = bootstrap.resampled(of_pair(one[:, None], other[:, None], "item", "spearman"), n, n)
    return bootstrap.estimate("spearman", drawn, n, "")


def judged(shape: Sequence[float], r: float, size: tuple[int, ...], random: np.random.Generator) -> list[Values]:
    """Scores by a judge and by people, whose hidden variables correlate by r."""
    people = random.normal(size=size)
    hidden = r * people + (1 - r**2) ** 0.5 * random.normal(size=size)
    return [1.0 + np.searchsorted(cuts(shape), each.ravel()).reshape(size) for each in (hidden, people)]


def of_rankings(repetitions: int) -> None:
    print(f"\n{'win rate, strength':<24}" + "".join(f"{f'n = {n}':>18}" for n in COMPARED))
    for kind in ("labels", "probabilities"):
        for which, quality in CONTESTS.items():
            true, cells = wins(quality, kind), []
            for n in COMPARED:
                random = np.random.default_rng([n, len(quality)])
                found = np.array([inside(quality, kind, n, true, random) for _ in range(repetitions)])
                cells.append("".join(f"{100 * share:>9.1f}" for share in found.mean(axis=(0, 1))))
            print(f"{which + ', ' + kind:<24}{''.join(cells)}", flush=True)


Answers = dict[tuple[int, int], tuple[Values, Values]]
"""Of two systems, by item, what each order's answer counts for the first of them."""


def answers(quality: Sequence[float], kind: str, n: int, random: np.random.Generator) -> Answers:
    hidden = np.array(quality) + random.normal(size=(n, len(quality)))
    found = {}
    for a, b in combinations(range(len(quality)), 2):
        gap = hidden[:, a] - hidden[:, b]
        if kind == "labels":
            both = [(gap + 0.5 * random.logistic(size=n) + lean > 0) * 1.0 for lean in (LEANING, -LEANING)]
        else:
            both = [1 / (1 + np.exp(-gap - lean)) for lean in (LEANING, -LEANING)]
        found[a, b] = both[0], both[1]
    return found


def wins(quality: Sequence[float], kind: str) -> Values:
    """The true win rates and strengths, 2 × systems."""
    large = answers(quality, kind, 400_000, np.random.default_rng(0))
    met = list(large)
    share = np.array([float(sum(both).mean()) / 2 for both in large.values()])
    ends = np.array([[float(s == a) - float(s == b) for s in range(len(quality))] for a, b in met])

    def loss(strengths: Values) -> float:
        gap = ends @ strengths
        return float((np.logaddexp(0, gap) - share * gap).sum())

    strengths = minimize(loss, np.zeros(len(quality)), options={"gtol": 1e-7}).x
    by_pair = list(zip(met, share, strict=True))
    rates = [np.mean([p if a == s else 1 - p for (a, b), p in by_pair if s in (a, b)]) for s in range(len(quality))]
    return np.array([rates, strengths - strengths.mean()])


def inside(quality: Sequence[float], kind: str, n: int, true: Values, random: np.random.Generator) -> list[list[bool]]:
    """Of each system whether the intervals of its win rate and of its strength hold the truth."""
    names = [f"s{k}" for k in range(len(quality))]
    rows = [
        Score(f"i{item}", names[first], "c", value, Provenance("single"), names[second])
        for (a, b), (one, other) in answers(quality, kind, n, random).items()
        for first, second, values in ((a, b, one), (b, a, 1 - other))
        for item, value in enumerate(values.tolist())
    ]
    (found,) = rankings(rows, (), names, ["c"])
    standings = sorted(found.standings, key=lambda standing: standing.system)
    ends = [((s.low, s.high), (s.strength_low, s.strength_high)) for s in standings]
    return [
        [low - 1e-9 <= value <= high + 1e-9 for (low, high), value in zip(both, values, strict=True)]
        for both, values in zip(ends, true.T.tolist(), strict=True)
    ]


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    print(f"{repetitions:,} repetitions; percent")
    of_differences(repetitions)
    of_ranks(max(1, repetitions // 4))
    of_correlations(repetitions)
    of_rankings(max(1, repetitions // 2))


if __name__ == "__main__":
    main()
