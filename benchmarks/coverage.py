"""How often the 95 % intervals hold the truth, and how often the test finds what is not there, by simulation.

Scores from 1 to 5 in three shapes; of a difference, two systems on the same items, one a little better.

    python benchmarks/coverage.py [REPETITIONS]     # 4,000
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from statistics import NormalDist

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np

from judge.records import Column, Estimate, Provenance, Sample, Score
from judge.stats.differences import mean_differences
from judge.stats.resample import means
from judge.table import Table

SIZES = (20, 50, 200)
SHAPES = {
    "even": (0.1, 0.2, 0.4, 0.2, 0.1),
    "near the top": (0.02, 0.05, 0.1, 0.28, 0.55),
    "at both ends": (0.3, 0.15, 0.1, 0.15, 0.3),
}
SHIFT = 0.2
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


def of_means(values: Values) -> list[Estimate]:
    """Each row as a system's scores."""
    samples = tuple(Sample(f"i{i}", f"s{s}", "") for s in range(len(values)) for i in range(values.shape[1]))
    rows = tuple(
        Score(one.item, one.system, "c", v, MADE) for one, v in zip(samples, values.ravel().tolist(), strict=True)
    )
    return list(means(Table(samples, (Column("c", "metric", "c"),), rows)).values())


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    print(f"{repetitions:,} repetitions; percent")
    print(f"{'':<14}{'items':>6}{'mean':>8}{'difference':>12}{'p < .05 without one':>21}")
    for name, shape in SHAPES.items():
        for n in SIZES:
            random = np.random.default_rng([n, len(name)])
            item = random.normal(size=(repetitions, n))
            one, other, equal = (scores(shape, item, shift, random) for shift in (SHIFT, 0.0, 0.0))
            mean = held(of_means(other), truth(shape, 0.0))
            apart = held(mean_differences(one - other, n_resamples=2_000), truth(shape, SHIFT) - truth(shape, 0.0))
            tests = mean_differences(equal - other, n_resamples=100)
            false = 100 * float(np.mean([e is not None and e.p is not None and e.p < 0.05 for e in tests]))
            print(f"{name:<14}{n:>6}{mean:>8.1f}{apart:>12.1f}{false:>21.1f}", flush=True)


if __name__ == "__main__":
    main()
