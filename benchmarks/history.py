"""Measure how often `judge.history` marks changes, on resampled recorded replies.

    JUDGE_SHARED=../shared python benchmarks/history.py [HISTORIES]     # 200

Nothing changes: each run draws one of a judge's 20 recorded replies per text (GPT-4, relevance, 20 texts), or one of
two (GPT-3.5 with two prompts, four criteria, 4 of SummEval's 12 systems). Every mark is false, and a cell has the
percentage of histories with any. A change of known size: from the fourth of six runs on, a system has the texts of
another one, in a history of one series or of four systems and four criteria. The size is the difference of their means
over all 100 articles.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from common import SHARED, read

import judge
from judge.core.records import Column, Provenance, Sample, Score
from judge.results.history import History
from judge.results.result import Result
from judge.stats.bootstrap import mean_estimate
from judge.table import Table

CRITERIA = ("coherence", "consistency", "fluency", "relevance")
BINS = (0.25, 0.5, 1.0, 2.0)
"""Sizes of a change, in points of five."""
RUNS, CHANGED = 6, 3
Values = np.ndarray


def gpt4() -> Values:
    """Return 20 recorded scores per text: criteria × systems × texts × replies; NaN for a reply without a score."""
    scores = np.array([row["scores"] for row in read(SHARED / "data" / "geval_english.jsonl")])
    return np.where(scores > 0, scores, np.nan)[None, None]


def summeval() -> Values:
    """Return two recorded scores per text: criteria × systems × articles × prompts."""
    prompts = []
    for prompt in ("mcq", "rts"):
        rows = read(SHARED / "data" / "summeval_judged" / f"gpt-3.5-turbo-0301_{prompt}.jsonl")
        prompts.append({(row["criterion"], *row["item_id"].split("::")): row["mean_score"] for row in rows})
    articles, systems = (sorted({key[place] for key in prompts[0]}) for place in (1, 2))
    return np.array(
        [[[[each[c, a, s] for each in prompts] for a in articles] for s in systems] for c in CRITERIA], dtype=float
    )


def table(scores: Values, extra: Sequence[Mapping[str, str]] = ()) -> Table:
    """Return criteria × systems × items as a table; `extra` has the other columns of each item."""
    columns = tuple(Column(name, "criterion", name, 1.0, 5.0) for name in CRITERIA[: len(scores)])
    _, n_systems, n_items = scores.shape
    texts = [(f"i{i}", f"s{s}", extra[i] if extra else {}) for s in range(n_systems) for i in range(n_items)]
    rows = [
        Score(f"i{i}", f"s{s}", columns[c].name, float(value), Provenance("single"))
        for (c, s, i), value in np.ndenumerate(scores)
        if not np.isnan(value)
    ]
    return Table(tuple(Sample(item, name, "", extra=more) for item, name, more in texts), columns, tuple(rows))


def run(values: Values, number: int, random: np.random.Generator) -> Result:
    """Draw one reply per text, and return the run."""
    drawn = np.take_along_axis(values, random.integers(values.shape[-1], size=(*values.shape[:-1], 1)), -1)[..., 0]
    estimates = {
        (f"s{s}", CRITERIA[c]): mean_estimate(drawn[c, s][~np.isnan(drawn[c, s])], 1.0, 5.0)
        for c, s in np.ndindex(*drawn.shape[:2])
    }
    return Result(table(drawn), estimates, {"started": f"2026-01-{number + 1:02d}"})


def history(runs: list[Values], random: np.random.Generator) -> History:
    seed = int(random.integers(2**31))
    made = [run(values, number, random) for number, values in enumerate(runs)]
    return judge.history(made, columns=CRITERIA[: len(runs[0])], seed=seed)


def some(values: Values, n_items: int, random: np.random.Generator) -> tuple[Values, Values]:
    """Draw systems and items; return their places."""
    n_systems = min(4, values.shape[1])
    return random.permutation(values.shape[1])[:n_systems], random.permutation(values.shape[2])[:n_items]


def false_marks(values: Values, n_runs: int, n_items: int, histories: int) -> float:
    random = np.random.default_rng(0)
    marked = 0
    for _ in range(histories):
        systems, items = some(values, n_items, random)
        marked += bool(history([values[:, systems][:, :, items]] * n_runs, random).changes)
    return 100 * marked / histories


def power(values: Values, n_systems: int, n_items: int, histories: int) -> str:
    """Return how often a change is marked, in per cent by its size, and how often another mark is made.

    A history of one system has one criterion.
    """
    random = np.random.default_rng(0)
    means = values.mean(axis=(2, 3))
    sizes, marked, elsewhere = [], [], []
    for _ in range(histories):
        systems, items = some(values, n_items, random)
        other = random.choice(np.setdiff1d(np.arange(values.shape[1]), systems))
        criteria = np.arange(len(CRITERIA)) if n_systems > 1 else random.integers(len(CRITERIA), size=1)
        kept = values[criteria][:, :, items]
        before, after = (kept[:, places] for places in (systems[:n_systems], [other, *systems[1:n_systems]]))
        made = history([before] * CHANGED + [after] * (RUNS - CHANGED), random)
        marks = [(each.column.name, each.system, step.run) for each, step in made.changes]
        real = {column for column, system, at in marks if system == "s0" and at >= CHANGED}
        elsewhere.append(len(marks) > len(real))
        for c, criterion in enumerate(criteria):
            sizes.append(abs(means[criterion, other] - means[criterion, systems[0]]))
            marked.append(CRITERIA[c] in real)
    bins = np.digitize(sizes, BINS)
    shares = [
        f"{100 * np.mean(np.array(marked)[bins == at]):.0f} (n = {(bins == at).sum()})" for at in range(1, len(BINS))
    ]
    return ", ".join(shares) + f"; other marks {100 * np.mean(elsewhere):.1f}"


def main(histories: int) -> None:
    print(f"A change of {BINS} from the fourth of six runs on, % marked:")
    for n_systems in (1, 4):
        for n_items in (20, 50):
            print(
                f"{n_systems} systems, {n_items} texts: {power(summeval(), n_systems, n_items, histories)}", flush=True
            )
    print("Nothing changed, % of histories with a mark:")
    for name, values, sizes in (("GPT-4", gpt4(), (20,)), ("SummEval", summeval(), (20, 50))):
        for n_items in sizes:
            shares = [f"{n} runs {false_marks(values, n, n_items, histories):.1f}" for n in (6, 12)]
            print(f"{name}, {n_items} texts: " + ", ".join(shares), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 200)
