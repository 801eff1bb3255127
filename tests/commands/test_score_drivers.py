"""Score drivers: the features behind each driver, and the runs that have drivers."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from pathlib import Path

import pytest

import judge
from judge.core.records import Column, Sample
from judge.core.signature import Signature
from judge.data import samples
from judge.providers.scripted import ScriptedProvider
from judge.stats.analyze import analyze
from judge.stats.score_drivers import TextFeatures, looks

SOURCE = "the old mill burned down on friday night"
ROWS = [
    {
        "item": item, "system": f"s{size}", "source": f"{SOURCE} in {item}",
        "output": " ".join(SOURCE.split()[start : start + size]), "human": {"relevance": float(size)},
    }
    for start, item in enumerate("abc")
    for size in (2, 3, 4, 5)
]  # fmt: skip


def test_looks_are_length_copying_and_position() -> None:
    texts = {
        "start": Sample("1", "start", "The old mill.", SOURCE), "own": Sample("1", "own", "A fire on friday", SOURCE),
        "new": Sample("1", "new", "Nothing else", SOURCE), "word": Sample("1", "word", "mill", SOURCE),
        "none": Sample("1", "none", "", SOURCE), "alone": Sample("2", "alone", "The old mill."),
    }  # fmt: skip
    features = {system: look for (_, system), look in looks(list(texts.values())).items()}
    assert features["start"] == TextFeatures(log(3), 1.0, pytest.approx(1 / 7))
    assert features["own"] == TextFeatures(log(4), pytest.approx(1 / 3), pytest.approx(5.5 / 7))
    assert features["new"] == TextFeatures(log(2), 0.0, None)
    assert features["word"] == TextFeatures(0.0, None, pytest.approx(2 / 7))
    assert features["none"] == TextFeatures(None, None, None)
    assert features["alone"] == TextFeatures(log(3), None, None)


def test_a_judge_that_counts_words_is_moved_by_length() -> None:
    def longer(request: object) -> dict[str, float]:
        text = request.messages[0]["content"]  # type: ignore[attr-defined]
        size = max(
            size
            for size in (2, 3, 4, 5)
            if any(r["output"] in text for r in ROWS if r["system"] == f"s{size}")
        )
        return {str(size): 1.0}

    outputs = [{**row, "source": "Something else altogether."} for row in ROWS]
    result = judge.evaluate(outputs, ["relevance"], model=ScriptedProvider(longer), metrics=[])
    by_judge, by_people = result.drivers
    (length,) = (driver for driver in by_judge.each if driver.name == "length")
    assert (by_judge.within, by_judge.texts, by_judge.items) == (True, 12, 3)
    assert length.correlation.value == pytest.approx(0.99, abs=0.01)
    assert by_people.together == by_judge.together


def test_metrics_alone_and_comparisons_have_no_drivers() -> None:
    assert judge.evaluate(ROWS, [], metrics=["distinct"]).drivers == ()
    same = ScriptedProvider(lambda _: {"A": 1.0})
    assert judge.rank(ROWS, ["relevance"], model=same).drivers == ()


def test_people_rate_consistency_by_copying_on_summeval(shared_data: Callable[[str], Path]) -> None:
    """Length plays no role. Rewritten passages contained most of the systems' errors."""
    rows = samples.load(
        shared_data("summeval.jsonl"), mapping={"item": "doc_id", "output": "summary"}
    )
    results = analyze(
        rows, [Column("consistency", "criterion", Signature())], [], looks=looks(rows)
    ).drivers
    by_judge, by_people = results
    assert by_judge.note == "fewer than 10 texts"
    assert (by_people.within, by_people.texts, by_people.items) == (True, 1600, 100)
    r = {driver.name: driver.correlation.value for driver in by_people.each}
    assert r["copying"] > 0.3
    assert abs(r["length"]) < 0.15
