"""Translate pass marks between two recorded judges, and compare the pass rates on held-back texts.

    python benchmarks/pass_marks.py

GPT-3.5 judged the same 1,043 summaries in two ways (`summeval_judged/*_rts.jsonl`, `*_mcq.jsonl`). A score is the mean
of its four criteria, in quarter points; those of one criterion are whole points.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from common import SHARED, read

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.pass_marks import translate_pass_marks
from judge.table import Table

MARKS = (3.0, 3.5, 4.0, 4.5)
N_CRITERIA = 4
Text = tuple[str, str]


def recorded(variant: str) -> tuple[dict[Text, float], dict[Text, float]]:
    """Return the mean score of each text that has all four, and its coherence."""
    scores: dict[Text, dict[str, float]] = defaultdict(dict)
    path = SHARED / "data" / "summeval_judged" / f"gpt-3.5-turbo-0301_{variant}.jsonl"
    for row in read(path):
        if row["scores"][0] in (1, 2, 3, 4, 5):
            item, system = row["item_id"].split("::")
            scores[item, system][row["criterion"]] = row["scores"][0]
    complete = {text: own for text, own in scores.items() if len(own) == N_CRITERIA}
    means = {text: float(np.mean([*own.values()])) for text, own in complete.items()}
    coherence = {text: own["coherence"] for text, own in complete.items()}
    return means, coherence


def table(scores: Mapping[Text, float], mark: float) -> Table:
    column = Column(
        "quality", "criterion", Signature("quality"), 1.0, 5.0, pass_at=mark
    )
    samples = tuple(Sample(item, system, "A text.") for item, system in scores)
    rows = tuple(
        Score(item, system, "quality", value, Provenance("single"))
        for (item, system), value in scores.items()
    )
    return Table(samples, (column,), rows)


def main() -> None:
    reasons, choices = recorded("rts"), recorded("mcq")
    print("| scores | mark | new mark | before | at the old mark | held back | kept |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for position, kind in enumerate(("quarter points", "whole points")):
        for name, old, new in (
            ("rts → mcq", reasons[position], choices[position]),
            ("mcq → rts", choices[position], reasons[position]),
        ):
            shared = [text for text in old if text in new]
            for mark in MARKS:
                tables = [
                    table({text: own[text] for text in shared}, mark)
                    for own in (old, new)
                ]
                for made in translate_pass_marks(*tables):
                    rates = " | ".join(
                        f"{rate:.1%}"
                        for rate in (made.before, made.after, made.held_back)
                    )
                    print(
                        f"| {kind}, {name} | {mark:g} | {made.translated:.3g} | {rates} "
                        f"| {made.keeps_rate} |"
                    )


main()
