"""Texts with a disagreement of judge and people: golden files, order, links, panels and hostile texts."""

from __future__ import annotations

import json
from typing import Any

import pytest

import judge
from judge.core import plugins
from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report import document as blocks
from judge.report.document import Document, Section
from judge.report.renderers import console, markdown
from judge.report.views import disagreements, items
from judge.report.views.human_agreement import people_blocks
from judge.report.views.item_measures import gap_name
from judge.results.result import Result, analyzed
from judge.results.run_info import JudgeInfo, RunInfo
from tests.factories import has_line

HOSTILE = "<img src=x onerror=alert(1)> | `a` \x1b[31m"
SCALE = Column(
    "polite",
    "criterion",
    Signature("polite@1", "small", "judge 1"),
    1.0,
    5.0,
    ("1", "2", "3", "4", "5"),
    values=(1, 2, 3, 4, 5),
)
FLAG = Column(
    "safe",
    "criterion",
    Signature("safe@1", "small", "judge 1"),
    0.0,
    1.0,
    ("fail", "pass"),
    values=(0, 1),
)
VOTES = {"new": (1, 2, 2, 4, 5, 3), "old": (5, 4, 3, 3, 1, 2)}
SCORES = {"new": (4, 2.4, 2, 4, 3, 3), "old": (4, 4, 3, 1, 3, 2)}


def rated_result(*columns: Column) -> Result:
    """Two systems on six items, rated by anna and ben."""
    samples, rows = [], []
    for system, votes in VOTES.items():
        for n, vote in enumerate(votes):
            ratings = {"polite": (vote, min(5, vote + n % 2)), "safe": (float(vote > 3), None)}
            human = {"polite": sum(ratings["polite"]) / 2, "safe": ratings["safe"][0]}
            output = HOSTILE if (system, n) == ("new", 0) else f"The reply {n} of {system}."
            raters = {name: ("anna", HOSTILE) for name in human}
            samples.append(
                Sample(f"t{n}", system, output, human=human, ratings=ratings, raters=raters)
            )
            for column in columns:
                score = SCORES[system][n]
                value = score if column.high == 5 else (score - 1) / 4
                why = Provenance(
                    "single",
                    reason=f"Reason {n}.{HOSTILE if n == 0 else ''}",
                    quote="The reply" if n else None,
                )
                rows.append(Score(f"t{n}", system, column.name, value, why))
    return analyzed(samples, columns, rows, RunInfo(judges={"small": JudgeInfo()}))


def report(result: Result, best: str, *, linked: bool = False) -> Document:
    content = tuple(
        disagreements.blocks(disagreements.of_result(result), best, "within-items", linked=linked)
    )
    return Document("Gaps", sections=(Section("people", "Against people", lambda: content),))


def titles(content: Any) -> list[str]:
    return [
        b.text if isinstance(b, blocks.Heading) else b.title
        for b in content
        if isinstance(b, blocks.Heading | blocks.Details)
    ]


def excerpts(content: Any) -> list[Any]:
    return [
        one for block in content if isinstance(block, blocks.Excerpts) for one in block.excerpts
    ]


def test_golden(golden: Any) -> None:
    result = rated_result(SCALE, FLAG)
    golden("disagreements.txt", console.render(report(result, "small"), full=True, width=80))
    golden("disagreements.md", markdown.render(report(result, "small")))


def test_the_section_begins_with_the_finding_and_the_disagreements() -> None:
    content = people_blocks(rated_result(SCALE))
    assert isinstance(content[0], blocks.Paragraph)
    assert titles(content)[:3] == [
        "Judge higher than people",
        "Judge lower than people",
        "polite: 12 rated texts",
    ]


def test_a_text_links_to_the_items_in_the_order_of_the_gaps() -> None:
    first, *_, last = excerpts(report(rated_result(SCALE), "small", linked=True).sections[0].blocks)
    gap = gap_name("polite")
    assert first.link == items.link(item="t0", system="new", column=gap, order="high")
    assert (last.score, last.link) == (
        "−0.5",
        items.link(item=last.item, system=last.system, column=gap),
    )
    assert not any(
        one.link for one in excerpts(report(rated_result(SCALE), "small").sections[0].blocks)
    )


def test_each_criterion_has_its_share_of_the_texts() -> None:
    both = excerpts(report(rated_result(SCALE, FLAG), "small").sections[0].blocks)
    assert {one.column for one in both} == {"polite", "safe"}
    (alone,) = {
        one.column for one in excerpts(report(rated_result(FLAG), "small").sections[0].blocks)
    }
    assert alone == "safe"


def test_the_page_escapes_texts_and_names() -> None:
    page = rated_result(SCALE).report("html")
    assert "<img" not in page
    assert "\x1b" not in page
    assert page.count("&lt;img src=x") > 3


@pytest.fixture
def two() -> list[Result]:
    """Runs of two judges on the same texts."""
    rows = [
        {
            "item": f"t{n}",
            "system": system,
            "output": f"Reply {n} of {system}.",
            "human": {"polite": [vote, vote]},
        }
        for system, votes in VOTES.items()
        for n, vote in enumerate(votes)
    ]
    options: dict[str, Any] = {"metrics": [], "cache": False, "weighting": "single"}
    models = [
        judge.ScriptedProvider(lambda request, n=n: str(n), model=f"always {n}") for n in (1, 4)
    ]
    return [
        judge.evaluate(rows, "polite: Is it polite?", model=model, **options) for model in models
    ]


def test_validate_names_the_largest_disagreement_and_folds_other_judges(two: list[Result]) -> None:
    validation = judge.validate(*two)
    assert has_line(validation.report(), "t4", "new", "polite", "judge 1", "people 5")
    assert titles(people(validation))[:2] == [
        "Judge lower than people of always 1",
        "Disagreements of always 4",
    ]
    entries = json.loads(validation.report("json"))["criteria"][0]["disagreements"]
    assert [entry["judge"] for entry in entries] == ["always 1", "always 4"]
    assert [gap["item"] for gap in entries[0]["lower"]] == ["t4", "t0", "t3", "t1", "t5"]
    assert entries[1]["confusion"]["exact"] == pytest.approx(2 / 12)
    assert entries[1]["raters"][0]["difference"]["value"] == pytest.approx(4 - 35 / 12)


def people(validation: Any) -> Any:
    return plugins.document(validation).sections[0].blocks
