"""Whether the best system on people's scale is the truly best one more often than the best by the judge's raw mean.

    JUDGE_SHARED=../shared python benchmarks/calibrated_leader.py [SPLITS]     # 500

On SummEval: each split draws the articles that are rated. The truth is the mean of all ratings. It prints the share of
intervals that hold the truth, for means and differences, and how often each way names the truly best system.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean

import numpy as np
from ppi import CRITERIA, recorded

from judge.stats.calibration import Calibrated, calibrate
from judge.table import Table

SHARES = (0.1, 0.3, 0.5)


def splits(
    table: Table, share: float, repetitions: int
) -> Iterator[tuple[Calibrated, ...]]:
    """Yield the estimates of each split."""
    random = np.random.default_rng(0)
    n_rated = round(share * len(table.items))
    for _ in range(repetitions):
        rated_items = set(random.permutation(table.items)[:n_rated].tolist())
        samples = [
            sample if sample.item in rated_items else replace(sample, human={})
            for sample in table.samples
        ]
        yield calibrate(replace(table, samples=tuple(samples)))


def true_means(table: Table, criterion: str) -> dict[str, float]:
    """Return the mean rating of each system."""
    return {
        system: fmean(s.human[criterion] for s in table.samples if s.system == system)
        for system in table.systems
    }


def raw_means(table: Table, criterion: str) -> dict[str, float]:
    """Return the judge's mean of each system."""
    values = np.nanmean(table.matrix(criterion), axis=1)
    return dict(zip(table.systems, values.tolist(), strict=True))


def coverage(
    estimates: list[Calibrated], truth: dict[str, float]
) -> tuple[float, float]:
    """Return the percentages of the intervals of means and of differences that hold the truth."""
    means = []
    differences = []
    for calibrated in estimates:
        for mean in calibrated.means:
            low, high = mean.estimate.low, mean.estimate.high
            if low is not None and high is not None:
                means.append(low <= truth[mean.system] <= high)
        for difference in calibrated.differences:
            low, high = difference.estimate.low, difference.estimate.high
            true_difference = truth[difference.system] - truth[difference.other]
            if low is not None and high is not None:
                differences.append(low <= true_difference <= high)
    return 100 * fmean(means), 100 * fmean(differences)


def main() -> None:
    repetitions = int(sys.argv[1]) if sys.argv[1:] else 500
    table = recorded()
    print(
        f"{'':<30} means  differences   truly best is first: calibrated  raw  ({repetitions} splits)"
    )
    for share in SHARES:
        by_criterion: dict[str, list[Calibrated]] = {name: [] for name in CRITERIA}
        for estimates in splits(table, share, repetitions):
            for calibrated in estimates:
                by_criterion[calibrated.column].append(calibrated)
        for name, estimates in by_criterion.items():
            truth = true_means(table, name)
            best = max(truth, key=truth.__getitem__)
            raw = raw_means(table, name)
            raw_best = max(raw, key=raw.__getitem__)
            named = 100 * fmean(each.means[0].system == best for each in estimates)
            means, differences = coverage(estimates, truth)
            raw_named = 100 * (raw_best == best)
            label = f"{share:.0%} rated: {name}"
            print(
                f"{label:<30} {means:5.1f}  {differences:5.1f}   {named:5.1f}  {raw_named:5.1f}"
            )


if __name__ == "__main__":
    main()
