"""Sentences of reports that count failed judgments, or speak of the texts without them."""

from __future__ import annotations

from typing import Any

import pytest

import judge
from judge.core.records import Request
from judge.results.failures import failures_as_worst
from tests.factories import has_line

ITEMS = range(16)


def _rows() -> list[dict[str, Any]]:
    return [
        {
            "item": f"i{item}",
            "system": system,
            "output": f"Text {item} of {system}.",
            "human": {"fluency": 1 + (item + len(system)) % 3},
        }
        for item in ITEMS
        for system in ("one", "three")
    ]


def _judge(name: str, fails: str) -> judge.ScriptedProvider:
    """Return a judge that fails on the texts with an even number of the system `fails`."""

    def reply(request: Request) -> str:
        prompt = str(request.messages[0]["content"])
        for item in ITEMS:
            if f"Text {item} of {fails}." in prompt and item % 2 == 0:
                return "I cannot say."
            if f"Text {item} of" in prompt:
                return str(1 + (item + len(fails)) % 3)
        return "2"

    return judge.ScriptedProvider(reply, model=name)


@pytest.fixture(scope="module")
def result() -> judge.Result:
    return judge.evaluate(
        _rows(),
        ["fluency"],
        model=_judge("small", "one"),
        metrics=[],
        weighting="single",
        cache=False,
    )


def test_a_difference_on_fewer_items_than_the_mean_is_said_to_be_on_the_shared_ones() -> None:
    rows = [
        {"item": f"i{item}", "system": system, "output": "x", "fluency": value}
        for item in ITEMS
        for system, value in (("one", 1 + item % 3), ("three", 1 + (item // 2) % 3))
        if system == "one" or item < 8
    ]
    report = judge.evaluate(
        rows, judge_columns=("fluency",), scale="1-3", metrics=[], cache=False
    ).report()
    text = " ".join(report.split())
    assert "one has the highest mean (1.94). On the 8 items that both have, it is 0.12" in text


def test_an_example_of_a_failure_shows_the_judges_words(result: judge.Result) -> None:
    report = " ".join(result.report("markdown").split())
    assert "reply: 'I cannot say.'" in report


def test_failures_are_counted_for_the_judge_that_failed_and_not_for_its_panel() -> None:
    panel = judge.evaluate(
        _rows(),
        ["fluency"],
        model=[_judge("small", "one"), _judge("large", "nobody")],
        metrics=[],
        weighting="single",
        cache=False,
    )
    report = judge.validate(panel, n_resamples=50).report("markdown")
    assert has_line(report, "8 of 32 judgments by small failed")
    assert "panel mean failed" not in report


def test_failed_judgments_that_count_as_the_worst_score_have_failed(result: judge.Result) -> None:
    with_worst = failures_as_worst(result)
    assert has_line(with_worst.report(), "24 judged", "8 failed")
    assert has_line(with_worst.report("markdown"), "32 texts", "8 failed")


@pytest.mark.parametrize("format", ["console", "markdown", "html"])
def test_failed_values_of_metrics_are_no_failed_judgments(format: str) -> None:
    rows = [
        {
            "item": str(item),
            "output": "A text.",
            "good": 3,
            "references": ["A text."] if item % 2 else [],
        }
        for item in range(8)
    ]
    result = judge.evaluate(rows, judge_columns="good", scale="1-5", metrics=["chrf"], cache=False)
    assert result.failed == 4
    report = result.report(format)
    assert "0 failed" in report
    assert "4 values of metrics failed" in report
