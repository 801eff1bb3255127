"""The texts of a case that does not pass: selection, content and order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from judge.results.result import Result
from judge.suite.case import Verdict
from judge.suite.evaluate import evaluate_case
from judge.suite.expectations import Expectation
from judge.suite.judged_texts import JudgedText
from tests.suite.conftest import ScoreMaker

ADAPTER: TypeAdapter[Any] = TypeAdapter(Expectation)


def shown(result: Result, *, earlier: Result | None = None, **keys: Any) -> tuple[JudgedText, ...]:
    return decided(result, earlier=earlier, **keys).texts


def decided(result: Result, *, earlier: Result | None = None, **keys: Any) -> Verdict:
    case = ADAPTER.validate_python({"name": "case", "criterion": "relevance", **keys})
    texts = [sample.key for sample in result.table.samples]
    ranked = result if result.table.has_pairs else None
    scored = None if ranked else result
    return evaluate_case(
        case.located("relevance", 1, {}), texts, scored, ranked=ranked, earlier=earlier
    )


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"expect": {"min": 5}}, ["a by x", "c by x", "b by x"]),
        ({"expect": {"max": 1}}, ["b by x", "c by x", "a by x"]),
        ({"expect": {"label": "3"}}, ["a by x", "b by x", "c by x"]),
        ({"expect": {"min": 1}}, []),
    ],
)
def test_the_texts_that_lack_most_come_first(
    make: ScoreMaker, keys: dict[str, Any], expected: list[str]
) -> None:
    scores = {"a": {"1": 20}, "b": {"5": 20}, "c": {"2": 10, "3": 10}}
    result = make.result(*(make.drawn(draws, item, "x") for item, draws in scores.items()))
    assert [text.name for text in shown(result, **keys)] == expected


def test_an_order_shows_both_texts_of_the_items_with_the_smallest_lead(make: ScoreMaker) -> None:
    leads = {"a": ("4", "2"), "b": ("2", "5"), "c": ("3", "3")}
    rows = [
        make.single(label, item, system)
        for item, labels in leads.items()
        for label, system in zip(labels, ("new", "old"), strict=True)
    ]
    texts = shown(make.result(*rows), better="new", worse="old")
    assert [(text.name, text.score) for text in texts] == [
        ("b by new", "2.00"),
        ("b by old", "5.00"),
        ("c by new", "3.00"),
        ("c by old", "3.00"),
    ]


def test_the_texts_that_are_not_shown_are_counted(make: ScoreMaker) -> None:
    result = make.result(*(make.drawn({"2": 20}, item, "x") for item in "abcdefg"))
    verdict = decided(result, expect={"min": 4})
    assert (len(verdict.texts), verdict.n_texts) == (4, 7)

    rows = [make.single("3", item, system) for item in "abcde" for system in ("new", "old")]
    verdict = decided(make.result(*rows), better="new", worse="old")
    assert (len(verdict.texts), verdict.n_texts) == (4, 10)


def test_a_text_has_its_score_its_reason_and_the_score_of_the_earlier_run(
    make: ScoreMaker,
) -> None:
    now = make.result(make.drawn({"2": 20}, "a", "x"))
    before = make.result(make.drawn({"4": 20}, "a", "x"))
    (text,) = shown(now, earlier=before, expect={"min": 4})
    assert text == JudgedText("a by x", "2.00", "x says", "It says so.", before="4.00")


def test_the_only_text_of_a_case_has_no_name(make: ScoreMaker) -> None:
    result = make.result(make.drawn({"2": 20}, "case", "text"))
    (text,) = shown(result, expect={"min": 4})
    assert text.name == ""


def test_a_text_has_the_request_that_it_answers(make: ScoreMaker) -> None:
    result = make.result(make.drawn({"2": 20}, "a", "x"))
    (sample,) = result.table.samples
    asking = replace(sample, extra={"question": "Where is it?"})
    asked = replace(result, table=replace(result.table, samples=(asking,)))
    (text,) = shown(asked, expect={"min": 4})
    assert text.request == "Where is it?"


def test_the_only_system_of_data_without_systems_is_not_named(make: ScoreMaker) -> None:
    (text,) = shown(make.result(make.drawn({"2": 20}, "a", "system")), expect={"min": 4})
    assert text.name == "a"
