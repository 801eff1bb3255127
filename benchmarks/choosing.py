"""How good is the judge that few rated items choose, and is its estimate honest?

    JUDGE_SHARED=../shared python benchmarks/choosing.py [REPETITIONS] [PART]    # 400; document, item, system, summeval

By simulation: 2 to 10 judges of 16, 8 or 4 systems, scores 1–5, equal or not. `far`: one is much better. The truth is
a judge's Spearman on 8,000 items. Levels `item` and `system` have a quarter of the repetitions. On SummEval: the
recorded gpt-3.5-turbo-0301 that scores by multiple choice (mcq) and after a reason (rts), their mean, and the baselines
of `judge validate`, for 12 systems' summaries of 100 documents. 20 documents choose; agreement is that on the other 80.
Bias and coverage are those of 20 documents drawn with replacement, whose truth is the Spearman on all 100.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from common import SHARED, SUMMEVAL, read

from judge.core.records import Column, Provenance, Sample, Score
from judge.stats.bootstrap import Bootstrap
from judge.stats.coefficients import LEVELS, Level, coefficients
from judge.stats.correlation import matrix
from judge.stats.human_agreement import baselines_without_judge
from judge.stats.selection import Selection, select
from judge.table import Table

ITEMS, SIZES = 8_000, (10, 20, 50, 100)
SKILLS = {
    "equal": lambda k: [0.6] * k,
    "unequal": lambda k: np.linspace(0.65, 0.45, k).tolist(),
    "far": lambda k: [0.65] + [0.45] * (k - 1),
}
"""How each of k judges correlates with what makes a text good."""
CRITERIA = ("coherence", "consistency", "fluency", "relevance")
RATED = 20
Values = np.ndarray


class Chosen(NamedTuple):
    """A choice, and the truth about each candidate."""

    selection: Selection
    truths: Values

    @property
    def naive(self) -> float:
        return self.selection.naive - self.truths[self.selection.chosen]

    @property
    def honest(self) -> float:
        return self.selection.honest.value - self.truths[self.selection.chosen]

    @property
    def covered(self) -> bool:
        e = self.selection.honest
        return e.low is not None and e.high is not None and e.low <= self.truths[self.selection.chosen] <= e.high

    @property
    def best_is_worse(self) -> bool:
        """Whether the truly best candidate is called significantly worse."""
        return int(self.truths.argmax()) not in self.selection.not_worse


def judged(skills: Sequence[float], systems: int, random: np.random.Generator) -> tuple[Values, Values]:
    """Scores (judges × items × systems) and ratings; the judges share half of their errors. The systems differ."""
    quality = (random.normal(size=(ITEMS, systems)) + np.linspace(-0.5, 0.5, systems)) / 1.05
    ratings = np.round(3 * (quality + random.normal(size=quality.shape) / 2)) / 3
    shared, skill = random.normal(size=quality.shape), np.array(skills)[:, None, None]
    own = random.normal(size=(len(skills), *quality.shape))
    scores = skill * quality + np.sqrt((1 - skill**2) / 2) * (shared + own)
    return np.clip(np.round(3 + 1.2 * scores), 1, 5), ratings


def spearman(values: Values, ratings: Values, level: Level) -> Values:
    """Each candidate's Spearman, where equal values of an item's texts count as none."""
    pairs = [(place, len(values)) for place in range(len(values))]
    varied = ratings.max(axis=1) > ratings.min(axis=1)
    columns = np.concatenate([values, ratings[None]])[:, varied]
    if level != "document":
        return coefficients(columns, pairs, level, "spearman")(np.ones((1, columns.shape[1])))[0]
    one = np.eye(columns.shape[1])
    return np.nan_to_num(coefficients(columns, pairs, level, "spearman")(one)).mean(axis=0)


def simulated(skills: Sequence[float], systems: int, items: int, level: Level, repetitions: int) -> list[Chosen]:
    random = np.random.default_rng(items)
    values, ratings = judged(skills, systems, random)
    truths = spearman(values, ratings, level)
    found = []
    for seed in range(repetitions):
        drawn = random.choice(ITEMS, items, replace=False)
        found.append(Chosen(_selected(values, ratings, drawn, level, seed), truths))
    return found


def _selected(values: Values, ratings: Values, drawn: Values, level: Level, seed: int) -> Selection:
    return select(values[:, drawn], ratings[drawn], level, bootstrap=Bootstrap(500, seed))


def told(found: Sequence[Chosen]) -> str:
    """Bias of the naive and the honest value, coverage, and how often the best is called worse."""
    naive, honest = (np.mean([getattr(each, name) for each in found]) for name in ("naive", "honest"))
    covered, worse = (np.mean([getattr(each, name) for each in found]) for name in ("covered", "best_is_worse"))
    return f"{naive:+.3f} {honest:+.3f} {100 * covered:5.1f}% {100 * worse:4.1f}%"


def recorded(criterion: str) -> tuple[dict[str, Values], Values]:
    """The candidates' values on SummEval (items × systems) by name, and people's ratings."""
    by_text = {(row["doc_id"], row["system"]): row for row in read(SUMMEVAL)}
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for variant in ("mcq", "rts"):
        rows = read(SHARED / "data" / "summeval_judged" / f"gpt-3.5-turbo-0301_{variant}.jsonl")
        scores[variant] = {
            tuple(row["item_id"].split("::")): row["mean_score"] for row in rows if row["criterion"] == criterion
        }
    samples = [
        Sample(
            *key,
            by_text[key]["summary"],
            by_text[key]["source"],
            references=tuple(by_text[key]["references"]),
            human={criterion: by_text[key]["human"][criterion]},
        )
        for key in scores["mcq"]
    ]
    scores["mcq + rts"] = {key: (value + scores["rts"][key]) / 2 for key, value in scores["mcq"].items()}
    rows = tuple(Score(*key, criterion, value, Provenance("single")) for key, value in scores["mcq"].items())
    table = Table(tuple(samples), (Column(criterion, "criterion", "mcq", 1.0, 5.0, criterion=criterion),), rows)
    baselines = baselines_without_judge(table, samples, measure=True)
    named: dict[str, Mapping[Any, float]] = {**scores, **{column.name: column.values for column in baselines}}
    values = {name: matrix(samples, by_key) for name, by_key in named.items()}
    for cells in values.values():
        cells[np.isnan(cells)] = np.nanmean(cells)
    return values, matrix(samples, {sample.key: sample.human[criterion] for sample in samples})


def on_summeval(repetitions: int) -> None:
    print(f"\nSummEval, {RATED} of 100 documents choose, level document; agreement on the other 80:")
    for judges_only in (True, False):
        print("\nmcq, rts and their mean" if judges_only else "\nthe same and the baselines")
        print("criterion    chosen oracle   naive honest cover worse  how often chosen")
        for criterion in CRITERIA:
            by_name, ratings = recorded(criterion)
            by_name = dict(list(by_name.items())[: 3 if judges_only else None])
            names, values = list(by_name), np.stack(list(by_name.values()))
            truths, random = spearman(values, ratings, "document"), np.random.default_rng(0)
            chosen, rest, found = [], [], []
            for seed in range(repetitions):
                order = random.permutation(len(ratings))
                chosen.append(_selected(values, ratings, order[:RATED], "document", seed).chosen)
                rest.append(spearman(values[:, order[RATED:]], ratings[order[RATED:]], "document"))
                drawn = random.integers(len(ratings), size=RATED)
                found.append(Chosen(_selected(values, ratings, drawn, "document", seed), truths))
            always = np.mean(rest, axis=0)
            took = np.mean([agreement[place] for agreement, place in zip(rest, chosen, strict=True)])
            counts = np.bincount(chosen, minlength=len(names))
            often = ", ".join(f"{names[k]} {100 * counts[k] / repetitions:.0f}%" for k in np.argsort(-counts)[:3])
            fixed = ", ".join(f"{name} {value:.3f}" for name, value in zip(names, always, strict=True))
            print(f"{criterion:12}  {took:.3f}  {always.max():.3f}  {told(found)}  {often}\n{'':13}always: {fixed}")


def on_simulated(level: Level, repetitions: int) -> None:
    by_size: dict[int, list[list[Chosen]]] = {}
    for systems in (16, 4) if level == "document" else (8,):
        for kind, skills in SKILLS.items():
            for judges in (2, 5, 10):
                for items in SIZES if level != "system" else SIZES[2:]:
                    found = simulated(skills(judges), systems, items, level, repetitions)
                    by_size.setdefault(items, []).append(found)
                    setting = f"{level:8} {systems:2} systems  {judges:2} {kind:7} {items:3} items"
                    print(f"{setting}  {told(found)}", flush=True)
    for items, here in by_size.items():
        naive, honest = ([np.mean([getattr(c, name) for c in found]) for found in here] for name in ("naive", "honest"))
        cover = [100 * np.mean([c.covered for c in found]) for found in here]
        worse = [100 * np.mean([c.best_is_worse for c in found]) for found in here]
        print(
            f"{level:8} {items:3} items: naive {np.mean(naive):+.3f} (max {max(naive):+.3f}), honest "
            f"{np.mean(honest):+.3f} ({min(honest):+.3f} to {max(honest):+.3f}), coverage {np.mean(cover):.1f}% "
            f"({min(cover):.1f} to {max(cover):.1f}), worse {np.mean(worse):.1f}% (max {max(worse):.1f})"
        )


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    parts = sys.argv[2:] or [*LEVELS, "summeval"]
    print("Bias naive, honest; coverage of 95% intervals; the best candidate is called worse")
    for level in LEVELS:
        if level in parts:
            on_simulated(level, repetitions if level == "document" else repetitions // 4)
    if "summeval" in parts:
        on_summeval(repetitions)


if __name__ == "__main__":
    main()
