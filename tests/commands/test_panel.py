"""Panels: every judge in columns of its own, their mean, and how far they agree."""

from __future__ import annotations

from typing import Any

import pytest

import judge
from judge.commands.preparation import prepare
from judge.config import load_config
from judge.core.errors import ConfigError, Refused
from judge.core.records import IDENTICAL, Column, Failure, Provenance, Score
from judge.providers.scripted import Reply, ScriptedProvider
from judge.stats import analyze

ROWS = [{"item": item, "system": s, "source": "The source.", "output": f"{s} {item}"} for item in "1234" for s in "xy"]


COLUMNS = [Column(f"c/{name}", "criterion", name, criterion="c", judge=name) for name in "ab"]


def scale(low: int) -> Any:
    """A judge that gives x more than y, from `low` up."""

    def script(request: Any) -> Reply:
        return {str(low + ("x " in request.messages[0]["content"])): 1.0}

    return script


def test_each_judge_has_columns_and_the_panel_has_the_mean() -> None:
    strict, kind = ScriptedProvider(scale(1), model="strict"), ScriptedProvider(scale(4), model="kind")
    result = judge.evaluate(ROWS, ["relevance", "coherence"], model=[strict, kind], metrics=[])
    names = [c.name for c in result.table.columns]
    assert names == [f"{c}{judge}" for c in ("relevance", "coherence") for judge in ("", "/strict", "/kind")]
    assert result.estimates["x", "relevance/strict"].value == 2.0
    assert result.estimates["x", "relevance"].value == 3.5
    assert {s.provenance.note for s in result.table.column_scores("coherence")} == {
        "strict: 2; kind: 5",
        "strict: 1; kind: 4",
    }
    assert result.info["signatures"]["relevance"].startswith("mean of 2 judges: relevance@")
    assert len(strict.seen) == len(kind.seen) == 16


def test_each_judges_requests_are_counted_apart() -> None:
    one, other = ScriptedProvider(scale(1), model="one"), ScriptedProvider(lambda _: Refused("no"), model="other")
    result = judge.evaluate(ROWS, ["relevance"], model=[one, other], metrics=[])
    judges = result.info["judges"]
    assert (judges["one"]["requests"]["failed"], judges["other"]["requests"]["failed"]) == (0, 8)
    assert result.info["requests"]["failed"] == 8
    assert result.info["model"] == "one, other"


def test_agreement_is_one_for_judges_that_agree_and_less_for_others() -> None:
    same = [ScriptedProvider(scale(2), model=name) for name in "ab"]
    assert judge.evaluate(ROWS, ["relevance"], model=same, metrics=[]).agreement["relevance"].value == 1.0
    apart = [ScriptedProvider(scale(2), model="a"), ScriptedProvider(scale(4), model="b")]
    assert judge.evaluate(ROWS, ["relevance"], model=apart, metrics=[]).agreement["relevance"].value < 0
    constant = [ScriptedProvider(lambda _: {"3": 1.0}, model=name) for name in "ab"]
    assert judge.evaluate(ROWS, ["relevance"], model=constant, metrics=[]).agreement == {}


def test_a_panel_has_no_value_where_one_of_its_judges_has_none() -> None:
    row = Score("1", "x", "c/a", 4.0, Provenance("single"))
    failed = Failure("1", "x", "c/b", "parse", "ParseError", "no score")
    (mean,) = analyze.panel_rows(COLUMNS, [row, failed])
    assert isinstance(mean, Failure)
    assert (mean.column, mean.stage, mean.message) == ("c", "panel", "no score by b")


def test_equal_texts_stay_equal_texts() -> None:
    rows = [Score("1", "x", f"c/{name}", 0.5, Provenance(IDENTICAL), "y") for name in "ab"]
    (mean,) = analyze.panel_rows(COLUMNS, rows)
    assert isinstance(mean, Score)
    assert (mean.column, mean.provenance.method, mean.rival) == ("c", IDENTICAL, "y")


def test_judges_may_have_addresses_of_their_own(chat_server: Any) -> None:
    given = {"model": ["m", {"name": "m", "base_url": chat_server.url}], "base_url": "http://127.0.0.1:9/v1"}
    prepared = prepare(load_config(given=given), ROWS)
    assert list(prepared.judges) == ["openai/m@127.0.0.1:9/v1", f"openai/m@{chat_server.url[7:]}"]
    both = load_config(given={"model": ["m", "decisions/m"], "base_url": chat_server.url})
    assert list(prepare(both, ROWS).judges) == ["openai/m", "decisions/m"]


def test_the_same_judge_twice_is_no_panel() -> None:
    with pytest.raises(ConfigError, match="a panel's judges differ"):
        judge.evaluate(ROWS, ["relevance"], model=[ScriptedProvider(scale(1)), ScriptedProvider(scale(2))], metrics=[])
