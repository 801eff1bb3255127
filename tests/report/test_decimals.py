"""The scores of a list have equally many decimals."""

from __future__ import annotations

import re
from itertools import product

import pytest

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.format import shortest_places
from judge.report.views.items import browser
from judge.results.result import Result, analyzed
from judge.results.run_info import JudgeInfo, RunInfo

ITEMS = ("a", "b", "c", "d")
JUDGES = {"wide": (1.0, 2.5, 4.0, 5.0), "narrow": (4.0, 5.0, 1.0, 2.0)}
RATINGS = ((4.0, 5.0), (4.0, 4.0), (2.0, 2.0), (1.0, 2.0))


def _column(name: str, judge: str = "") -> Column:
    signature = Signature("polite@1", judge or "panel", "judge 1")
    labels = ("1", "2", "3", "4", "5")
    return Column(
        name,
        "criterion",
        signature,
        1.0,
        5.0,
        labels,
        values=(1, 2, 3, 4, 5),
        judge=judge,
        criterion="polite",
    )


@pytest.fixture
def result() -> Result:
    """A panel of two judges with ratings of two people. Some of all values are whole numbers."""
    samples = []
    for item, ratings in zip(ITEMS, RATINGS, strict=True):
        human = {"polite": sum(ratings) / 2}
        samples.append(Sample(item, "s", "A text.", human=human, ratings={"polite": ratings}))
    judges = {judge: _column(f"polite/{judge}", judge) for judge in JUDGES}
    rows = []
    for judge, item in product(JUDGES, ITEMS):
        value = JUDGES[judge][ITEMS.index(item)]
        rows.append(Score(item, "s", f"polite/{judge}", value, Provenance("single")))
    for item, values in zip(ITEMS, zip(*JUDGES.values(), strict=True), strict=True):
        rows.append(Score(item, "s", "polite", sum(values) / 2, Provenance("panel")))
    columns = (_column("polite"), *judges.values())
    return analyzed(samples, columns, rows, RunInfo(judges={name: JudgeInfo() for name in JUDGES}))


def _decimals(texts: list[str]) -> set[int]:
    return {len(text.partition(".")[2]) for text in texts}


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], 0), ([1.0, 4.0], 0), ([1.5, 2.0], 1), ([2.0, 1 / 3], 2), ([0.9999], 0), ([-2.25], 2)],
)
def test_a_list_has_the_decimals_that_one_of_its_values_needs(
    values: list[float], expected: int
) -> None:
    assert shortest_places(values) == expected


@pytest.mark.parametrize("format", ["markdown", "console"])
def test_ratings_of_people_are_listed_with_equally_many_decimals(
    result: Result, format: str
) -> None:
    report = result.report(format, full=True) if format == "console" else result.report(format)
    number = r"(\d(?:\.\d+)?)"
    people = re.findall(f"judge {number}, people {number} · rater", report)
    assert len(people) > 2
    assert _decimals([rating for _, rating in people]) == {1}


def test_the_splits_of_a_panel_have_equally_many_decimals(result: Result) -> None:
    splits = result.report("markdown").partition("Widest splits")[2]
    scores = re.findall(r"(?:wide|narrow) (\d(?:\.\d+)?)", splits)
    assert len(scores) > 3
    assert _decimals(scores) == {1}


def test_the_lowest_scores_of_items_have_equally_many_decimals(result: Result) -> None:
    items = browser(result).content().items
    lowest = [item.lowest.text for item in items]
    assert sorted(lowest) == ["2.50", "2.50", "3.50", "3.75"]
