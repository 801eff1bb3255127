"""CPU seconds and memory of the statistics between systems and columns, on one core with one BLAS thread.

python benchmarks/stats.py [ITEMS SYSTEMS COLUMNS]     # 1,600 16 12
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable

os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import numpy as np

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.bootstrap import item_means
from judge.stats.correlation_matrix import matrices
from judge.stats.derived_columns import overall
from judge.stats.system_differences import compare
from judge.table import Table

RESAMPLES = 10_000
MADE = Provenance("single")


def table(items: int, systems: int, columns: int, missing: float = 0.0) -> Table:
    """Scores from 1 to 5 by judges who agree on how hard an item is, a share of them missing."""
    random = np.random.default_rng(0)
    shape = columns, systems, items
    quality = (
        random.normal(size=(columns, 1, items))
        + np.linspace(0, 0.5, systems)[None, :, None]
    )
    values = np.clip(np.round(3 + quality + random.normal(size=shape)), 1, 5)
    kept = random.random(shape) >= missing
    labels = tuple("12345")
    named = tuple(
        Column(
            f"c{k}",
            "criterion",
            Signature(f"c{k}"),
            1.0,
            5.0,
            labels,
            criterion=f"c{k}",
        )
        for k in range(columns)
    )
    samples = tuple(
        Sample(f"i{i}", f"s{s}", "text") for i in range(items) for s in range(systems)
    )
    scores = tuple(
        Score(f"i{i}", f"s{s}", f"c{k}", float(values[k, s, i]), MADE)
        for i in range(items)
        for s in range(systems)
        for k in range(columns)
        if kept[k, s, i]
    )
    return Table(samples, named, scores)


def timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def weighed(data: Table) -> None:
    """The overall score with its means and its comparison, as a run makes them."""
    found = overall(data)
    if found is not None:
        item_means(found.table)
        compare(found.table, n_resamples=RESAMPLES)


def peak() -> float:
    """The most memory that this process had so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    items, systems, columns = map(int, sys.argv[1:4] or (1_600, 16, 12))
    print(f"{RESAMPLES:,} resamples")
    for missing in (0.0, 0.02):
        data = table(items, systems, columns, missing)
        alone = peak()
        steps = {
            "means": lambda data=data: item_means(data),
            "differences, tests, ranks": lambda data=data: compare(
                data, n_resamples=RESAMPLES
            ),
            "overall": lambda data=data: weighed(data),
            "correlations": lambda data=data: matrices(data),
        }
        seconds = {name: timed(work) for name, work in steps.items()}
        print(
            f"{items:,} items, {systems:,} systems, {columns} columns, {missing:.0%} missing"
        )
        for name, took in seconds.items():
            print(f"  {name:<26}{took:6.2f} s CPU")
        print(
            f"  {'all':<26}{sum(seconds.values()):6.2f} s CPU; at most {peak():.0f} MB, {alone:.0f} MB before"
        )


if __name__ == "__main__":
    main()
