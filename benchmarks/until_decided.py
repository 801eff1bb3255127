"""Measure what `--until-decided` decides wrongly, what it saves, and what that costs in power.

    JUDGE_SHARED=../shared python benchmarks/until_decided.py [RUNS]     # 1,000

Checks come after 10, 15, 20, … items, as in a run. First, runs of equal systems, in which every decision is false.
Second, one pair of systems with a true difference, against the paired t test of all items. Third, a replay of recorded
judges: all pairs of 12 systems on 100 articles and four criteria, in random orders.
"""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np
from anchors import CRITERIA, scores

from judge.stats.anytime import p_values
from judge.stats.paired_differences import holm, sign_flip

WIDTH = 4.0  # of a scale from 1 to 5
ORDERS = 20


def checks(n: int) -> list[int]:
    """Return the numbers of items after which a run of `n` items checks."""
    sizes = [10]
    while sizes[-1] < n:
        sizes.append(min(n, sizes[-1] + max(5, sizes[-1] // 10)))
    return sizes


def stops(families: np.ndarray, width: float = WIDTH) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of items asked in each family of tests (families × tests × items), and p of every test then."""
    n_families, n_tests, n = families.shape
    asked, p = np.full(n_families, n), np.ones((n_families, n_tests))
    running = np.arange(n_families)
    for size in checks(n):
        here = p_values(families[running, :, :size].reshape(-1, size), -width, width, 0.0).reshape(-1, n_tests)
        p[running] = [holm(row) for row in here.tolist()]
        asked[running] = size
        running = running[(p[running] >= 0.05).any(axis=1)]
        if not len(running):
            break
    return asked, p


def draw(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "ties":
        return np.where(random.random(shape) < 0.7, 5.0, random.integers(1, 6, shape))
    if kind == "skewed":
        return np.round(2 * (5 - 4 * random.beta(1, 3, shape))) / 2
    return np.clip(random.normal(3, 0.4, shape), 1, 5)


def false_decisions(runs: int) -> None:
    print("| equal systems × criteria | skewed | ties | probabilities | votes |\n|---|---:|---:|---:|---:|")
    for systems, criteria in ((2, 1), (4, 1), (4, 4)):
        cells = []
        for kind in ("skewed", "ties", "probabilities", "votes"):
            random = np.random.default_rng(0)
            values = draw(random, kind, (runs, criteria, systems, 200))
            pairs = list(combinations(range(systems), 2))
            rows = np.concatenate([values[:, :, a] - values[:, :, b] for a, b in pairs], axis=1)
            if kind == "votes":
                rows = random.choice([-WIDTH, 0.0, WIDTH], size=rows.shape, p=[0.4, 0.2, 0.4])
            p = p_values(rows.reshape(-1, rows.shape[2]), -WIDTH, WIDTH, 0.0).reshape(runs, -1)
            cells.append(f"{100 * np.mean(p.min(axis=1) * rows.shape[1] < 0.05):.1f}")
        print(f"| {systems} × {criteria} | " + " | ".join(cells) + " |", flush=True)


def power(runs: int) -> None:
    print("\n| difference / sd, items | fixed | anytime | asked |\n|---|---:|---:|---:|")
    for sd in (1.2, 0.5):
        for effect, n in ((0.5, 100), (0.3, 200), (0.2, 500)):
            random = np.random.default_rng(0)
            rows = np.clip(np.round(20 * random.normal(effect * sd, sd, (runs, n))) / 20, -WIDTH, WIDTH)
            asked, p = stops(rows[:, None])
            t = rows.mean(axis=1) / rows.std(axis=1, ddof=1) * np.sqrt(n)
            cells = 100 * np.mean(np.abs(t) > 1.97), 100 * np.mean(p < 0.05), 100 * asked.mean() / n
            print(f"| {effect}, {n}; sd {sd} | " + " | ".join(f"{cell:.0f}" for cell in cells) + " |", flush=True)


def matrix(criterion: str, variant: str) -> np.ndarray:
    """Return a recorded judge's scores, systems × articles."""
    each = scores(f"summeval_judged/gpt-3.5-turbo-0301_{variant}.jsonl", criterion, variant=variant)
    articles, systems = (sorted({text.split("::")[place] for text in each}) for place in (0, 1))
    return np.array([[each[f"{a}::{s}"] for a in articles] for s in systems])


def replay() -> None:
    print(
        "\n| in question | not significant on all | opposite | asked | asked if significant | decided of significant |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    values = {(v, c): matrix(c, v) for v in ("mcq", "rts") for c in CRITERIA}
    for name in ("one pair, one criterion", "one pair, four criteria", "three systems against one"):
        families = []
        for variant in ("mcq", "rts"):
            of_judge = [values[variant, c] for c in CRITERIA]
            pairs = list(combinations(range(12), 2))
            if name == "one pair, one criterion":
                families += [[m[a] - m[b]] for m in of_judge for a, b in pairs]
            elif name == "one pair, four criteria":
                families += [[m[a] - m[b] for m in of_judge] for a, b in pairs]
            else:
                trios = [((k + 1) % 12, (k + 5) % 12, (k + 8) % 12) for k in range(12)]
                families += [[m[a] - m[k] for a in trios[k]] for m in of_judge for k in range(12)]
        whole = np.array(families)
        flat = whole.reshape(-1, whole.shape[2])
        significant = (sign_flip(flat, n_flips=10_000).p < 0.05).reshape(whole.shape[:2])
        random, results = np.random.default_rng(0), []
        for _ in range(ORDERS):
            order = random.permutation(whole.shape[2])
            asked, p = stops(whole[:, :, order])
            decided = p < 0.05
            early = np.array([row[:, order[:n]].mean(axis=1) for row, n in zip(whole, asked, strict=True)])
            wrong = decided & significant & (np.sign(early) != np.sign(whole.mean(axis=2)))
            all_significant = significant.all(axis=1)
            results.append((
                (decided & ~significant).sum() / max(1, decided.sum()), wrong.sum() / max(1, decided.sum()),
                asked.mean() / whole.shape[2], asked[all_significant].mean() / whole.shape[2],
                decided[significant].mean(),
            ))  # fmt: skip
        print(f"| {name} | " + " | ".join(f"{100 * cell:.1f}" for cell in np.mean(results, axis=0)) + " |", flush=True)


def main(runs: int) -> None:
    false_decisions(runs)
    power(runs)
    replay()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1_000)
