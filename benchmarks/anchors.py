"""Measure how often replacing the judge looks like a change of the systems, on recorded judges and identical texts.

    JUDGE_SHARED=../shared python benchmarks/anchors.py [DRAWS]     # 1,000

Two recorded judges (one model, two prompts) scored the same summaries of 100 articles by 12 systems. Texts of one
system are treated as changed, others as anchors: the system's own about other articles, or other systems' about the
same articles. Three more judges replace GPT-4 on 20 texts, which count as one system's. As no text did change, every
significant change of the system is false. Per draw, systems and articles are random. A cell has the percentage of
draws in which the whole change is significant, and in which what is left without the judge's shift is.
"""

from __future__ import annotations

import sys

import numpy as np
from common import SHARED, read

from judge.stats.paired_differences import mean_differences
from judge.stats.run_differences import split_change

CRITERIA = ("coherence", "consistency", "fluency", "relevance")
SIZES = (10, 25, 50)
"""Articles with a changed text, and with anchors."""
ANCHORS = {"own": 0, "3 other systems": 3, "11 other systems": 11}


SMALL = ("gpt-3.5-turbo-0301", "llama-2-70b-chat-hf", "llama-2-7b-chat-hf")
"""Judges that replace GPT-4 on 20 texts."""


def scores(
    file: str, criterion: str, judge: str = "gpt-3.5-turbo-0301", variant: str = "rts"
) -> dict[str, float]:
    return {
        row["item_id"]: row["mean_score"]
        for row in read(SHARED / "data" / file)
        if (row["criterion"], row["judge"], row["variant"])
        == (criterion, judge, variant)
    }


def differences(criterion: str) -> np.ndarray:
    """Return the second judge's score minus the first one's, systems × articles."""
    first, second = (
        scores(
            f"summeval_judged/gpt-3.5-turbo-0301_{variant}.jsonl",
            criterion,
            variant=variant,
        )
        for variant in ("mcq", "rts")
    )
    articles, systems = (
        sorted({text.split("::")[place] for text in first}) for place in (0, 1)
    )
    return np.array(
        [[second[f"{a}::{s}"] - first[f"{a}::{s}"] for a in articles] for s in systems]
    )


def small_differences(criterion: str, judge: str) -> np.ndarray:
    """Return the judge's score minus GPT-4's: one system × 20 texts."""
    file = "summeval_judged_smoke.jsonl"
    first, second = (
        scores(file, criterion, "gpt-4-0314"),
        scores(file, criterion, judge),
    )
    return np.array([[second[text] - first[text] for text in first]])


def draw(
    random: np.random.Generator, shifts: np.ndarray, n_others: int, size: int
) -> tuple[bool, bool]:
    """Return whether the whole change is significant, and whether that without the judge's shift is."""
    system, *others = random.permutation(len(shifts))[: n_others + 1]
    articles = random.permutation(shifts.shape[1])[: size if n_others else 2 * size]
    values = shifts[np.ix_([system, *others], articles)]
    changed = np.zeros(values.shape, dtype=bool)
    changed[0, :size] = True
    whole, split = (
        mean_differences(values[:1], n_resamples=2_000)[0],
        split_change(values, changed, slice(0, 1)),
    )
    assert whole is not None
    assert split is not None
    return tuple(each.p is not None and each.p < 0.05 for each in (whole, split.system))


def report(
    name: str, draws: int, shifts: dict[str, np.ndarray], n_others: int, size: int
) -> None:
    cells = []
    for each in shifts.values():
        random = np.random.default_rng(0)
        false = 100 * np.mean(
            [draw(random, each, n_others, size) for _ in range(draws)], axis=0
        )
        cells.append(f"{false[0]:.0f} → {false[1]:.1f}")
    print(f"| {name}, {size} | " + " | ".join(cells) + " |", flush=True)


def main(draws: int) -> None:
    print("| anchors, articles | " + " | ".join(CRITERIA) + " |")
    shifts = {criterion: differences(criterion) for criterion in CRITERIA}
    for anchors, n_others in ANCHORS.items():
        for size in SIZES:
            report(anchors, draws, shifts, n_others, size)
    for judge in SMALL:
        small = {
            criterion: small_differences(criterion, judge) for criterion in CRITERIA
        }
        report(f"GPT-4 to {judge}: own", draws, small, 0, 10)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1_000)
