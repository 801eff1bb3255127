"""Compare the stated risk of a gate with how often recorded reruns change its verdicts.

    python benchmarks/gate_risk.py [REPLAYS]     # 1,000

Same texts: GPT-4's 20 recorded draws for 20 summaries in English and 20 in Korean (`geval_*.jsonl`). A replay draws a
run of 5 (10) replies a text and a rerun of 5 (10) others. Other items: GPT-3.5's recorded replies about 100 documents
(`summeval_judged/*_rts.jsonl`): a run and a rerun on 20 documents each. In a replay, the run states how often a
rerun would differ, and the rerun shows whether it does.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from common import SHARED, read
from pydantic import TypeAdapter

from judge.core.records import Column, Provenance, Sample, Scale, Score
from judge.core.signature import Signature
from judge.results.result import Result
from judge.results.run_info import RunInfo
from judge.scoring.expectation import from_samples
from judge.suite.case import Case
from judge.suite.evaluate import evaluate_case
from judge.suite.expectations import Expectation
from judge.suite.gate_risk import GateRisk, JudgedCase
from judge.table import Table

RERUNS = 10
"""Simulated reruns of each replay: the mean of many replays needs few."""
N_TEXTS = 3
"""Cases about one text in each suite."""
N_DOCUMENTS = 20
N_CHOSEN = 12
"""Documents of a case about several."""
N_ITEMS = 20
SCALE = Scale.integers(1, 5)
COLUMN = Column(
    "relevance",
    "criterion",
    Signature("relevance@1"),
    1.0,
    5.0,
    SCALE.labels,
    criterion="relevance",
    values=SCALE.values,
)
CASES: TypeAdapter[Case] = TypeAdapter(Expectation)
Text = tuple[str, str]
Random = np.random.Generator


@dataclass
class Tally:
    """Stated risks and observed changes, by kind of case."""

    stated: dict[str, list[float]]
    changed: dict[str, list[bool]]

    def add(self, kind: str, stated: float | None, *, changed: bool) -> None:
        if stated is not None:
            self.stated[kind].append(stated)
            self.changed[kind].append(changed)


def recorded_draws() -> dict[Text, list[str | None]]:
    """Return the draws of each text, None for a reply without a score; the language is the system."""
    draws: dict[Text, list[str | None]] = {}
    for language in ("english", "korean"):
        for number, row in enumerate(read(SHARED / "data" / f"geval_{language}.jsonl")):
            draws[f"doc-{number}", language] = [
                f"{score:g}" if score in SCALE.values else None
                for score in row["scores"]
            ]
    return draws


def recorded_scores() -> dict[Text, str]:
    """Return the one score of each text that GPT-3.5 judged for relevance."""
    scores: dict[Text, str] = {}
    path = SHARED / "data" / "summeval_judged" / "gpt-3.5-turbo-0301_rts.jsonl"
    for row in read(path):
        if row["criterion"] == "relevance" and row["scores"][0] in (1, 2, 3, 4, 5):
            item, system = row["item_id"].split("::")
            scores[item, system] = f"{row['scores'][0]:g}"
    return scores


def result_of(labels_by_text: Mapping[Text, Sequence[str | None]]) -> Result:
    scores = []
    for (item, system), labels in labels_by_text.items():
        judged = from_samples(labels, SCALE)
        method = "samples" if len(labels) > 1 else "single"
        provenance = Provenance(
            method,
            judged.mass,
            judged.distribution,
            judged.entropy,
            judged.argmax,
            judged.low,
            judged.high,
            sum(label is not None for label in labels),
        )
        scores.append(Score(item, system, COLUMN.name, judged.value, provenance))
    samples = tuple(Sample(item, system, "A text.") for item, system in labels_by_text)
    return Result(Table(samples, (COLUMN,), tuple(scores)), RunInfo())


def case(name: str, **keys: object) -> Case:
    made = CASES.validate_python({"name": name, "criterion": "relevance", **keys})
    return made.located("relevance", 1, {})


def replay(
    cases: Sequence[tuple[Case, Callable[[Result], list[Text]]]],
    runs: tuple[Result, Result],
    tally: Tally,
    label: str,
    *,
    seed: int,
    of_items: bool,
) -> None:
    """Add the stated risks of the first run, and the verdicts that the second one changes."""
    first, second = runs
    judged = []
    met_again = []
    for each, texts_of in cases:
        texts = texts_of(first)
        judged.append(JudgedCase(each, texts, evaluate_case(each, texts, first)))
        met_again.append(evaluate_case(each, texts_of(second), second).met)
    risk = GateRisk(judged, {"texts": first}, seed=seed, n_reruns=RERUNS).estimate(
        mends=False
    )
    for each, stated, met in zip(judged, risk.cases, met_again, strict=True):
        share = stated.other_items if of_items else stated.same_texts
        kind = f"{label}, {each.case.name.split(' ')[0]}"
        tally.add(kind, share, changed=met != each.verdict.met)
    passed = all(each.verdict.met for each in judged)
    suite_share = risk.other_items if of_items else risk.same_texts
    tally.add(f"{label}, suite", suite_share, changed=all(met_again) != passed)


def same_texts(n_draws: int, replays: int, tally: Tally) -> None:
    draws = recorded_draws()
    texts = list(draws)
    means = {text: from_samples(labels, SCALE).value for text, labels in draws.items()}
    for number in range(replays):
        random = np.random.default_rng(number)
        first: dict[Text, list[str | None]] = {}
        second: dict[Text, list[str | None]] = {}
        for text, labels in draws.items():
            first[text] = _drawn(labels, n_draws, random)
            second[text] = _drawn(labels, n_draws, random)
        cases: list[tuple[Case, Callable[[Result], list[Text]]]] = []
        for position in random.choice(len(texts), N_TEXTS, replace=False):
            text = texts[position]
            limit = min(5.0, max(1.1, round(means[text] - random.uniform(0, 1.5), 1)))
            single = case(
                f"text {position}", item=text[0], system=text[1], expect={"min": limit}
            )
            cases.append((single, lambda _, text=text: [text]))
        chosen = [
            f"doc-{k}" for k in random.choice(N_DOCUMENTS, N_CHOSEN, replace=False)
        ]
        some = [text for text in texts if text[0] in chosen]
        overall = float(np.mean([means[text] for text in some]))
        limit = round(overall - random.uniform(0, 1.5), 2)
        cases.append(
            (
                case("mean", item=chosen, expect={"min": limit}),
                lambda _, some=some: some,
            )
        )
        margin = round(random.uniform(-1.5, 0.2), 2)
        order = case(
            "order", item=chosen, better="english", worse="korean", margin=margin
        )
        cases.append((order, lambda _, some=some: some))
        label = f"same texts, {n_draws} draws"
        runs = (result_of(first), result_of(second))
        replay(cases, runs, tally, label, seed=number, of_items=False)


def _drawn(labels: Sequence[str | None], n: int, random: Random) -> list[str | None]:
    return [labels[position] for position in random.integers(len(labels), size=n)]


def other_items(replays: int, tally: Tally) -> None:
    scores = recorded_scores()
    systems_by_item: dict[str, list[str]] = defaultdict(list)
    for item, system in scores:
        systems_by_item[item].append(system)
    systems = sorted({system for _, system in scores})
    for number in range(replays):
        random = np.random.default_rng(number)
        better, worse = random.choice(systems, 2, replace=False)
        both = [
            item for item, own in systems_by_item.items() if {better, worse} <= {*own}
        ]
        runs = []
        for _ in range(2):
            labels: dict[Text, list[str | None]] = {}
            # An item may be drawn several times, and is then several items.
            for position, item in enumerate(random.choice(both, N_ITEMS)):
                for system in (str(better), str(worse)):
                    labels[f"{item} {position}", system] = [scores[item, system]]
            runs.append(result_of(labels))
        overall = float(np.mean([float(scores[item, better]) for item in both]))
        limit = min(5.0, max(1.1, round(overall - random.uniform(0, 0.8), 1)))

        def of_better(result: Result, better: str = str(better)) -> list[Text]:
            return [s.key for s in result.table.samples if s.system == better]

        def of_both(result: Result) -> list[Text]:
            return [s.key for s in result.table.samples]

        cases = [
            (case("mean", system=str(better), expect={"min": limit}), of_better),
            (case("order", better=str(better), worse=str(worse)), of_both),
        ]
        replay(
            cases, (runs[0], runs[1]), tally, "other items", seed=number, of_items=True
        )


def main() -> None:
    replays = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    tally = Tally(defaultdict(list), defaultdict(list))
    for n_draws in (5, 10):
        same_texts(n_draws, replays, tally)
    other_items(replays, tally)
    print("| reruns | stated | observed | verdicts |\n|---|---:|---:|---:|")
    for kind, stated in tally.stated.items():
        rates = f"{np.mean(stated):.1%} | {np.mean(tally.changed[kind]):.1%}"
        print(f"| {kind} | {rates} | {len(stated):,} |")


main()
