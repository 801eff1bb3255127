"""Measure how often `judge.slices` marks a slice, on recorded scores.

    JUDGE_SHARED=../shared python benchmarks/slices.py [DRAWS]     # 400

GPT-3.5's recorded scores of SummEval (four criteria, 12 systems, 100 articles). Each draw has four systems and random
articles. If slices are random, every mark is false, and a cell has the percentage of draws with any. Unequal spread:
the scores of all slices but the last are moved halfway to the mean of their system over the 100 articles. A slice of
known size: in one slice, a system has the texts of a fifth one, or two systems have each other's. The size is the
difference of the two systems' means over the 100 articles.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import numpy as np
from common import SHARED, read

import judge
from judge.commands.slices.record import Slices
from judge.commands.slices.statistics import slice_means
from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.results.result import Result
from judge.stats.system_differences import compare
from judge.table import Table

CRITERIA = ("coherence", "consistency", "fluency", "relevance")
SYSTEMS = ("s0", "s1", "s2", "s3")
BINS = (0.25, 0.5, 1.0, 2.0)
"""Sizes, in points of five."""
SHARES = {
    "two equal": (50, 50),
    "five equal": (20,) * 5,
    "60, 20, 10, 10%": (60, 20, 10, 10),
    "90, 10%": (90, 10),
}
"""Sizes of the slices, in per cent of the articles."""
Random = np.random.Generator
Values = np.ndarray


def summeval() -> Values:
    """Return two recorded scores per text: criteria × systems × articles × prompts."""
    prompts = []
    for prompt in ("mcq", "rts"):
        rows = read(
            SHARED / "data" / "summeval_judged" / f"gpt-3.5-turbo-0301_{prompt}.jsonl"
        )
        prompts.append(
            {
                (row["criterion"], *row["item_id"].split("::")): row["mean_score"]
                for row in rows
            }
        )
    articles, systems = (sorted({key[place] for key in prompts[0]}) for place in (1, 2))
    return np.array(
        [
            [[[each[c, a, s] for each in prompts] for a in articles] for s in systems]
            for c in CRITERIA
        ],
        dtype=float,
    )


def table(scores: Values, extra: Sequence[Mapping[str, str]] = ()) -> Table:
    """Return criteria × systems × items as a table; `extra` has the other columns of each item."""
    columns = tuple(
        Column(name, "criterion", Signature(name), 1.0, 5.0)
        for name in CRITERIA[: len(scores)]
    )
    _, n_systems, n_items = scores.shape
    texts = [
        (f"i{i}", f"s{s}", extra[i] if extra else {})
        for s in range(n_systems)
        for i in range(n_items)
    ]
    rows = [
        Score(f"i{i}", f"s{s}", columns[c].name, float(value), Provenance("single"))
        for (c, s, i), value in np.ndenumerate(scores)
        if not np.isnan(value)
    ]
    return Table(
        tuple(Sample(item, name, "", extra=more) for item, name, more in texts),
        columns,
        tuple(rows),
    )


def sliced(values: Values, inside: Values, random: Random) -> Slices:
    """Return the slices of criteria × systems × articles; `inside` has the number of each article's slice."""
    scores = table(values, [{"slice": f"slice {n}"} for n in inside])
    result = Result(scores, comparisons=compare(scores, n_resamples=2_000))
    return judge.slices(
        result,
        "slice",
        columns=CRITERIA,
        seed=int(random.integers(2**31)),
        n_resamples=500,
    )


def false_marks(
    values: Values, percent: tuple[int, ...], n_items: int, spread: float, draws: int
) -> float:
    """Return the percentage of draws in which any slice is marked."""
    random, marked = np.random.default_rng(0), 0
    inside = np.repeat(np.arange(len(percent)), np.array(percent) * n_items // 100)
    slices = {f"slice {n}": inside == n for n in range(len(percent))}
    means = values.mean(axis=2, keepdims=True)
    values = np.stack([means + (values - means) * spread, values])
    for _ in range(draws):
        systems, items = (
            random.permutation(values.shape[2])[:4],
            random.permutation(values.shape[3])[:n_items],
        )
        drawn = values[:, :, systems][..., items]
        drawn = np.where(inside == len(percent) - 1, drawn[1], drawn[0])
        columns = {
            name: (Column(name, "criterion", Signature(name), 1.0, 5.0), drawn[c])
            for c, name in enumerate(CRITERIA)
        }
        found = slice_means(
            columns, SYSTEMS, slices, seed=int(random.integers(2**31)), n_resamples=99
        )
        marked += any(mean.significant for mean in found)
    return 100 * marked / draws


def power(values: Values, n_inside: int, n_items: int, draws: int) -> None:
    """Print how often a slice is named in which one system has another's texts, or two have each other's."""
    random, means = np.random.default_rng(0), values.mean(axis=2)
    inside = (np.arange(n_items) < n_inside).astype(int)
    sizes: tuple[list[float], list[float]] = [], []
    named: tuple[list[bool], list[bool]] = [], []
    for _ in range(draws):
        systems, items = (
            random.permutation(values.shape[1])[:5],
            random.permutation(values.shape[2])[:n_items],
        )
        drawn = values[:, systems][:, :, items]
        for kind, other in enumerate((4, 1)):
            made = drawn.copy()
            made[:, [0, other], :n_inside] = drawn[:, [other, 0], :n_inside]
            slices = sliced(made[:, :4], inside, random)
            marked = {
                (each.column, each.system)
                for each in slices.means
                if each.slice == "slice 1" and each.significant
            }
            against = {
                each.column
                for each in slices.contradictions
                if {each.better, each.worse} == {"s0", "s1"}
            }
            for c, name in enumerate(CRITERIA):
                sizes[kind].append(abs(means[c, systems[other]] - means[c, systems[0]]))
                named[kind].append(
                    (name, "s0") in marked if kind == 0 else name in against
                )
    for kind, title in enumerate(("another's texts", "each other's texts")):
        bins = np.digitize(sizes[kind], BINS)
        shares = [
            f"{100 * np.mean(np.array(named[kind])[bins == at]):.0f}"
            for at in range(1, len(BINS))
        ]
        print(f"{n_inside} of {n_items}, {title}: {', '.join(shares)}", flush=True)


def main(draws: int) -> None:
    values = summeval()[..., 1]
    print("False marks, % of draws:")
    for spread, n_items in ((1.0, 100), (0.5, 100), (1.0, 50)):
        for name, percent in SHARES.items():
            false = false_marks(values, percent, n_items, spread, draws)
            print(
                f"{name} of {n_items}, others' spread × {spread}: {false:.1f}",
                flush=True,
            )
    print(f"Slices of known size, % named, by size {BINS}:")
    for n_inside, n_items in ((10, 50), (10, 100), (25, 100)):
        power(values, n_inside, n_items, draws // 3)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 400)
