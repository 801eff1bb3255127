"""`until_decided`: items are asked in random order until tests that are valid at any time decide every pair."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError
from judge.core.records import Request
from judge.providers.scripted import Reply
from judge.results.result import load

ITEMS = 60
FAR = {"good": (4, 5), "bad": (1, 2)}
NEAR = {"good": (3, 4), "same": (4, 3)}


def rows(grades: dict[str, tuple[int, ...]], items: int = ITEMS) -> list[dict[str, str]]:
    return [
        {
            "item": f"doc-{n}",
            "system": system,
            "source": f"Article {n}.",
            "output": f"{system} {n} earns {each[n % 2]}.",
        }
        for n in range(items)
        for system, each in grades.items()
    ]


def grade(request: Request) -> Reply:
    return re.findall(r"earns (\d)", request.messages[-1]["content"])[-1]


def prefer(request: Request) -> Reply:
    """The text that earns more, "A" or "B" in the order shown."""
    first, second = re.findall(r"earns (\d)", request.messages[-1]["content"])[-2:]
    return "A" if first > second else "B" if second > first else "C"


def evaluate(
    grades: dict[str, tuple[int, ...]] | None = None, *, data: Any = None, ranked: bool = False, **options: Any
) -> tuple[int, judge.Result]:
    """The number of requests, and the result."""
    provider = judge.ScriptedProvider(prefer if ranked else grade, endpoint="x")
    given = {"metrics": [], "cache": False, "weighting": "single", "until_decided": True, **options}
    function = judge.rank if ranked else judge.evaluate
    criteria = given.pop("criteria", None if ranked else ["relevance"])
    result = function(data or rows(grades or FAR), criteria, model=provider, **given)
    return len(provider.seen), result


def test_a_run_stops_when_its_systems_are_decided_and_holds_only_what_it_asked() -> None:
    requests, result = evaluate()
    asked = result.info["until_decided"]
    assert asked == {"asked": 10, "items": ITEMS, "undecided": 0, "comparisons": 1}
    assert requests == 20 == len(result.table.scores) == len(result.table.samples)
    assert not result.failures
    (difference,) = result.comparisons[0].differences
    assert difference.apart
    assert "confidence sequence" in difference.estimate.method
    assert any("Stopped after 10 of 60 items" in note for note in result.info["notes"])
    assert "sign-flip" not in result.report("markdown")


def test_equal_systems_use_all_items_and_are_not_decided() -> None:
    requests, result = evaluate(NEAR)
    assert requests == 2 * ITEMS
    assert result.info["until_decided"] == {"asked": ITEMS, "items": ITEMS, "undecided": 1, "comparisons": 1}
    assert not result.comparisons[0].differences[0].apart


def test_only_the_pairs_with_one_system_are_in_question() -> None:
    three = {"good": (4, 5), "same": (5, 4), "bad": (1, 2)}
    assert evaluate(three)[1].info["until_decided"]["undecided"] == 1
    info = evaluate(three, against="bad")[1].info["until_decided"]
    assert (info["undecided"], info["comparisons"]) == (0, 2)
    assert info["asked"] < ITEMS


def test_every_criterion_has_to_be_decided() -> None:
    provider = judge.ScriptedProvider(lambda r: "3" if "coheren" in str(r.messages).lower() else grade(r), endpoint="x")
    options: Any = {"metrics": [], "cache": False, "weighting": "single", "until_decided": True}
    result = judge.evaluate(rows(FAR), ["relevance", "coherence"], model=provider, **options)
    assert result.info["until_decided"] == {"asked": ITEMS, "items": ITEMS, "undecided": 1, "comparisons": 2}


@pytest.mark.parametrize("orders", [1, 2])
def test_comparisons_of_texts_stop_too_and_report_their_tests(orders: int) -> None:
    requests, result = evaluate(ranked=True, orders=orders)
    asked = result.info["until_decided"]["asked"]
    assert requests == asked * orders < ITEMS * orders
    (test,) = result.rankings[0].tests
    assert (test.system, test.other, test.apart, test.estimate.n) == ("good", "bad", True, asked)
    assert "good against bad" in result.report("markdown")
    assert result.rankings[0].standings[0].items == asked


def test_comparisons_with_one_system_mark_the_decided_ones() -> None:
    _, result = evaluate({"good": (4, 5), "bad": (1, 2), "base": (2, 3)}, ranked=True, against="base")
    ranking = result.rankings[0]
    assert {(test.system, test.other) for test in ranking.tests} == {("good", "base"), ("bad", "base")}
    assert {s.system: s.apart for s in ranking.standings if s.system != "base"} == {"good": 1, "bad": -1}


def test_generations_of_an_item_are_asked_together_and_count_once() -> None:
    data = [{**row, "generation": str(k), "output": f"{row['output']} {k}"} for row in rows(FAR) for k in range(3)]
    requests, result = evaluate(data=data)
    assert result.info["until_decided"]["asked"] == 10
    assert requests == 60
    assert result.comparisons[0].differences[0].estimate.n == 10


def test_the_seed_chooses_the_items_and_the_same_command_asks_nothing_again(tmp_path: Path) -> None:
    options: Any = {"cache": tmp_path / "cache", "out": tmp_path / "run", "force": True}
    first, result = evaluate(**options)
    again, same = evaluate(**options)
    assert (first, again) == (20, 0)
    assert same.table.samples == result.table.samples
    other = evaluate(seed=1)[1]
    assert set(other.table.items) != set(result.table.items)
    loaded = load(tmp_path / "run")
    assert loaded.comparisons == result.comparisons


def test_a_run_of_all_items_is_not_replaced_by_one_that_may_ask_fewer(tmp_path: Path) -> None:
    evaluate(until_decided=False, out=tmp_path)
    with pytest.raises(judge.JudgeError, match="all items, of which this run may ask fewer"):
        evaluate(out=tmp_path)
    evaluate(out=tmp_path, force=True)
    evaluate(until_decided=False, out=tmp_path)


def test_a_budget_ends_the_run_before_and_keeps_what_was_asked(tmp_path: Path) -> None:
    with pytest.raises(judge.JudgeError):
        evaluate(NEAR, out=tmp_path, budget="3000tokens", cache=tmp_path / "cache")
    result = load(tmp_path)
    assert result.info["status"] == "stopped"
    assert 0 < len(result.table.scores) < 2 * ITEMS
    assert len(result.table.items) < ITEMS


def test_metrics_are_of_the_texts_that_were_asked() -> None:
    data = [{**row, "reference": row["source"], "references": [row["source"]]} for row in rows(FAR)]
    _, result = evaluate(data=data, metrics=["rouge"])
    assert len(result.table.column_scores("rouge1")) == 20


def test_failed_judgments_decide_nothing() -> None:
    provider = judge.ScriptedProvider(
        lambda r: grade(r) if "good" in r.messages[-1]["content"] else "no idea", endpoint="x"
    )
    options: Any = {"metrics": [], "cache": False, "weighting": "single", "until_decided": True, "repair": "off"}
    result = judge.evaluate(rows(FAR, 30), ["relevance"], model=provider, **options)
    assert result.info["until_decided"] == {"asked": 30, "items": 30, "undecided": 1, "comparisons": 1}


@pytest.mark.parametrize(
    ("grades", "options", "message"),
    [
        ({"only": (1, 2)}, {}, "one system"),
        (FAR, {"criteria": [], "metrics": ["distinct"]}, "no judge"),
        ({f"s{n}": (1, 2) for n in range(31)}, {}, "against"),
    ],
)
def test_what_cannot_be_decided_is_refused(
    grades: dict[str, tuple[int, ...]], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=f"until_decided.*{message}"):
        evaluate(grades, **options)


def test_options_that_fix_what_is_asked_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    with pytest.raises(ConfigError, match=r"until_decided.*pairs"):
        evaluate(ranked=True, pairs=5)
    rated = [{**row, "human": {"relevance": 3}} for row in rows(FAR)]
    with pytest.raises(ConfigError, match=r"until_decided.*calibrate"):
        evaluate(data=rated, calibrate=True)
    with pytest.raises(ConfigError, match=r"until_decided.*engine"):
        judge.evaluate(rows(FAR), model="gpt-5.4-mini", engine="batch", until_decided=True, cache=tmp_path)


def test_a_plan_says_that_its_number_is_the_most() -> None:
    forecast = judge.plan(rows(FAR), ["relevance"], model="gpt-5.4-mini", until_decided=True, metrics=[])
    assert any("At most" in note for note in forecast.notes)
