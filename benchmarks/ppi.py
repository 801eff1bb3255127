"""How often prediction-powered intervals hold the truth, and how much narrower they are than those of ratings alone.

    JUDGE_SHARED=../shared python benchmarks/ppi.py [REPETITIONS]     # 4,000

By simulation: 500 items, some of them rated from 1 to 5, and a judge that goes with people by r, on a scale of its own
and off by a constant; the mean of a system, and the difference of two on the same items. On SummEval: the recorded
scores of gpt-3.5-turbo-0301 for 12 systems' summaries of 100 articles, the ratings of 10 articles drawn at random, and
the mean of all ratings as the truth.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean, median

os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import numpy as np
from common import SHARED, read

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.calibration import calibrate
from judge.stats.powered_mean import Powered, powered
from judge.table import Table

ITEMS, RATED = 500, (10, 30, 100)
FOLLOWS = (0.0, 0.5, 0.9)
SHAPES = {"even": (-1.3, -0.5, 0.5, 1.3), "near the top": (-2.0, -1.5, -1.0, -0.1)}
"""Where on a normal variable the next rating begins."""
CRITERIA = ("coherence", "consistency", "fluency", "relevance")
Values = np.ndarray


def draw(
    shape: Sequence[float], follows: float, random: np.random.Generator, size: int
) -> tuple[Values, Values]:
    """Ratings and a judge's scores of two systems, systems × items; what makes an item hard is the same for both."""
    hidden = 0.5**0.5 * (random.normal(size=(1, size)) + random.normal(size=(2, size)))
    hidden[1] -= 0.3
    seen = follows * hidden + (1 - follows**2) ** 0.5 * random.normal(size=hidden.shape)
    return 1.0 + np.searchsorted(shape, hidden), np.round(50 + 20 * seen)


def simulated(
    shape: Sequence[float], follows: float, rated: int, repetitions: int
) -> list[tuple[Powered, float]]:
    """The mean of one system and the difference of two, again and again, each with its truth."""
    random = np.random.default_rng(0)
    truth = draw(shape, follows, random, 2_000_000)[0].mean(axis=1)
    found = []
    for _ in range(repetitions):
        ratings, scores = draw(shape, follows, random, ITEMS)
        for sides, value in (
            (("mean", ratings[0], scores[0]), truth[0]),
            (
                ("difference", ratings[0] - ratings[1], scores[0] - scores[1]),
                truth[0] - truth[1],
            ),
        ):
            name, people, judge = sides
            found.append(
                (
                    powered(people[:rated], judge[:rated], judge[rated:], name=name),
                    value,
                )
            )
    return found


def recorded() -> Table:
    """SummEval's summaries with the scores that were read from the recorded replies."""
    rows = {row["id"]: row for row in _rows("summeval.jsonl")}
    replies = _rows("summeval_judged/gpt-3.5-turbo-0301_rts.jsonl")
    samples = {
        name: Sample(
            rows[name]["doc_id"], rows[name]["system"], "", human=rows[name]["human"]
        )
        for name in dict.fromkeys(reply["item_id"] for reply in replies)
    }
    made = Provenance("single")
    scores = [
        Score(
            samples[one["item_id"]].item,
            samples[one["item_id"]].system,
            one["criterion"],
            one["mean_score"],
            made,
        )
        for one in replies
        if one["mean_score"] is not None
    ]
    columns = tuple(
        Column(name, "criterion", Signature(name), 1.0, 5.0, criterion=name)
        for name in CRITERIA
    )
    return Table(tuple(samples.values()), columns, tuple(scores))


def relabelled(
    table: Table, share: float, repetitions: int
) -> Iterator[tuple[str, Powered, float]]:
    """Every estimate that the ratings of some articles give, by criterion, with its truth: all the ratings' mean."""
    random = np.random.default_rng(0)
    truth = {
        (name, system): fmean(
            s.human[name] for s in table.samples if s.system == system
        )
        for name in CRITERIA
        for system in table.systems
    }
    for _ in range(repetitions):
        chosen = set(
            random.permutation(table.items)[: round(share * len(table.items))].tolist()
        )
        samples = [
            s if s.item in chosen else replace(s, human={}) for s in table.samples
        ]
        for one in calibrate(replace(table, samples=tuple(samples))):
            for found in one.means:
                yield one.column, found, truth[one.column, found.system]
            for found in one.differences:
                yield (
                    one.column,
                    found,
                    truth[one.column, found.system] - truth[one.column, found.other],
                )


def line(name: str, found: Sequence[tuple[Powered, float]]) -> str:
    """Coverage with the judge and without, the ratio of the widths, λ, and how many had no interval."""
    known = [
        (one, value)
        for one, value in found
        if one.estimate.low is not None and one.people.low is not None
    ]
    held = [
        100 * fmean(e.low <= value <= e.high for e, value in side)
        for side in (
            [(one.estimate, value) for one, value in known],
            [(one.people, value) for one, value in known],
        )
    ]
    width = median(
        (o.estimate.high - o.estimate.low) / (o.people.high - o.people.low)
        for o, _ in known
    )
    worth = median(one.effective_ratings or 0 for one, _ in known)
    share = fmean(one.weight for one, _ in known)
    lost = (
        f", {len(found) - len(known)} without an interval"
        if len(known) < len(found)
        else ""
    )
    return f"{name:<44} {held[0]:5.1f} {held[1]:5.1f}   {width:.2f}   {worth:5.0f}   {share:.2f}{lost}"


def main() -> None:
    repetitions = int(sys.argv[1]) if sys.argv[1:] else 4000
    print(f"{'':<44} held  alone  width  worth  lambda   ({repetitions:,} repetitions)")
    for name, shape in SHAPES.items():
        for follows in FOLLOWS:
            for rated in RATED:
                found = simulated(shape, follows, rated, repetitions)
                for what, part in (("mean", found[::2]), ("difference", found[1::2])):
                    print(
                        line(
                            f"{name}, r {follows:g}, {rated} of {ITEMS} rated: {what}",
                            part,
                        )
                    )
    if not (SHARED / "data" / "summeval_judged").exists():
        return
    table = recorded()
    for share in (0.1, 0.3):
        found = list(relabelled(table, share, max(1, repetitions // 20)))
        for name in CRITERIA:
            for what in ("mean", "difference"):
                part = [
                    (one, value)
                    for column, one, value in found
                    if column == name and bool(one.other) == (what != "mean")
                ]
                print(line(f"SummEval, {share:.0%} rated: {name}, {what}", part))


def _rows(name: str) -> list[dict]:
    return read(SHARED / "data" / name)


if __name__ == "__main__":
    main()
