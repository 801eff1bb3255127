"""Measure by simulation how often the alternative annotator test lets a judge pass.

    python benchmarks/alt_test.py [REPETITIONS]     # 2,000

Three raters and a judge see the quality of a text with an error, part of which all texts of an item share. ε is what
the judge loses in truth (from 20,000 items), so that it should pass in at most 5% of repetitions. "paper" treats texts
as independent and uses Wilcoxon's test below 30 texts; "judge" is the product. "equal" is how often a judge passes that
is as good as a rater, for an ε of 0.2 and 0.1.
"""

from __future__ import annotations

import os
import sys

os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import numpy as np
from scipy.stats import false_discovery_control, ttest_1samp, wilcoxon

from judge.stats import alt_test as product

RATERS = ("a", "b", "c")
SIZES = ((10, 4), (20, 4), (50, 4), (20, 1), (30, 1), (50, 1), (100, 1))
SCENARIOS = {
    "1–5": ((-1.8, -0.9, 0.0, 0.9), 0.6, 1.12),
    "pass or fail, raters agree": ((-1.2,), 0.05, 1.39),
}
"""The cuts between the labels, and the errors of a rater and of the worse judge."""
SHARED = 0.7
"""Share of an error's variance that is the item's."""
Values = np.ndarray


def draw(
    random: np.random.Generator,
    items: int,
    texts: int,
    scenario: str,
    judge_error: float | None,
) -> Values:
    """Draw scores: three raters and a judge × items × texts. The judge is as good as a rater if it has no error."""
    cuts, error, _ = SCENARIOS[scenario]
    errors = np.array(
        [error] * len(RATERS) + [error if judge_error is None else judge_error]
    )[:, None, None]
    quality = (
        random.normal(size=(items, 1)) + random.normal(size=(items, texts))
    ) / 2**0.5
    size = (len(errors), items)
    noise = SHARED**0.5 * random.normal(size=(*size, 1)) + (
        1 - SHARED
    ) ** 0.5 * random.normal(size=(*size, texts))
    return np.searchsorted(cuts, quality + errors * noise).astype(float)


def passes(scores: Values, epsilon: float) -> bool:
    return bool(product.alt_test(scores[-1], scores[:-1], RATERS, epsilon).passed)


def passes_as_published(scores: Values, epsilon: float) -> bool:
    """Follow the authors' code (nitaytech/AltTest), which this is not copied from."""
    p = []
    for place in range(len(RATERS)):
        others = np.delete(scores[:-1], place, axis=0)
        judge, person = (
            np.sqrt(((side - others) ** 2).mean(axis=0)).round(9)
            for side in (scores[-1], scores[place])
        )
        lost = ((person <= judge).astype(float) - (judge <= person)).ravel()
        if len(lost) < product.MIN_TEXTS:
            p.append(wilcoxon(lost - epsilon, alternative="less").pvalue)
        else:
            p.append(
                ttest_1samp(lost, epsilon, alternative="less").pvalue
                if np.ptp(lost)
                else float(lost[0] > epsilon)
            )
    return (
        float((false_discovery_control(p, method="by") <= product.ALPHA).mean()) >= 0.5
    )


def main(repetitions: int) -> None:
    print("| | " + " | ".join(f"{items} × {texts}" for items, texts in SIZES) + " |")
    for scenario, (_, _, worse) in SCENARIOS.items():
        random = np.random.default_rng(0)
        truth = draw(random, 20_000, 4, scenario, worse)
        compared = product.alt_test(truth[-1], truth[:-1], RATERS)
        epsilon = float(np.mean([each.person - each.judge for each in compared.raters]))
        rows = {
            f"paper, loses {epsilon:.2f}": (passes_as_published, worse, epsilon),
            f"judge, loses {epsilon:.2f}": (passes, worse, epsilon),
            "judge, equal, ε 0.2": (passes, None, 0.2),
            "judge, equal, ε 0.1": (passes, None, 0.1),
        }
        for name, (test, error, limit) in rows.items():
            shares = [
                np.mean(
                    [
                        test(draw(random, *size, scenario, error), limit)
                        for _ in range(repetitions)
                    ]
                )
                for size in SIZES
            ]
            print(
                f"| {scenario}: {name} | "
                + " | ".join(f"{100 * share:.1f}" for share in shares)
                + " |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 2_000)
