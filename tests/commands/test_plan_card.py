"""judge.plan(card=True): the estimate equals the requests of the card."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError
from judge.core.records import Request
from judge.providers.pricing import DEFAULT_URL
from judge.providers.scripted import Reply, ScriptedProvider
from tests.factories import has_line

PLACES = ("Alton", "Bray", "Cork")
ROWS = [
    {
        "item": place,
        "system": system,
        "source": f"A bridge at {place} was closed on Monday. {count} boats had struck its pillars.",
        "output": f"The bridge at {place} was closed. {count} boats struck it. {end}",
    }
    for count, place in enumerate(PLACES, start=2)
    for system, end in (("plain", "Nobody was hurt."), ("hopeful", "It may open on Friday."))
]
OPTIONS: dict[str, Any] = {"weighting": "single", "criteria": ["coherence"]}


def high(request: Request) -> Reply:
    """Give a high score. Of two texts, prefer the first."""
    asks_about_one_text = re.search(
        r"^<(output|text) [0-9a-f]+>$", prompt_text(request), re.MULTILINE
    )
    return {"4": 1.0} if asks_about_one_text else {"A": 1.0}


def prompt_text(request: Request) -> str:
    return str(request.messages[0]["content"])


class UnmarkedJudge(ScriptedProvider):
    """A judge that is not marked as scripted."""

    notice = ""

    def __init__(self) -> None:
        super().__init__(high, model="gpt-5.4-mini", endpoint=DEFAULT_URL)


def test_the_card_sends_as_many_requests_as_were_planned(tmp_path: Path) -> None:
    options = OPTIONS | {"cache": tmp_path / "cache"}
    forecast = judge.plan(ROWS, model=UnmarkedJudge(), card=True, **options)
    asked = UnmarkedJudge()
    card = judge.card(ROWS, model=asked, **options)
    assert forecast.requests == len(asked.seen) > 50
    (of_judge,) = forecast.to_dict()["judges"]
    assert [line["run"] for line in of_judge["lines"]] == list(card.info["runs"])
    assert of_judge["total"]["judgments"] == card.info["judgments"]
    assert of_judge["total"]["run"] == "all"

    second_run = judge.plan(ROWS, model=UnmarkedJudge(), card=True, **options)
    assert second_run.requests == 0
    assert second_run.price == 0


def test_items_and_probes_make_the_card_smaller() -> None:
    full_plan = judge.plan(ROWS, model=UnmarkedJudge(), card=True, **OPTIONS)
    one = judge.plan(ROWS, model=UnmarkedJudge(), card=True, items=1, **OPTIONS)
    without = judge.plan(ROWS, model=UnmarkedJudge(), card=True, probes=["sensitivity"], **OPTIONS)
    assert one.requests < full_plan.requests
    assert without.requests < full_plan.requests
    assert has_line(one.notes, "card takes 1 item", "items")
    assert full_plan.price is not None
    assert full_plan.seconds is not None


def test_the_plan_names_missing_lines_and_additional_requests() -> None:
    options = OPTIONS | {"criteria": ["kind: Is the text kind?"], "probes": "bias"}
    notes = judge.plan(ROWS, model=UnmarkedJudge(), card=True, **options).notes
    assert any(note.startswith("The card cannot show position: ") for note in notes)
    assert any(note.startswith("Not included: at most ") for note in notes)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"card": True, "rank": True}, ("rank=True:", "card=True")),
        ({"probes": "bias"}, ("probes:", "card=True")),
        ({"card": True, "metrics": "rouge"}, ("metrics:", "no such option")),
        ({"card": True, "items": 0}, ("items=0:", "whole number")),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], facts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        judge.plan(ROWS, model=UnmarkedJudge(), **(OPTIONS | options))
    assert has_line(str(caught.value), *facts)


def test_the_card_of_a_finished_run_has_no_plan(tmp_path: Path) -> None:
    run = tmp_path / "run"
    judge.evaluate(
        ROWS, ["coherence"], model=UnmarkedJudge(), cache=False, weighting="single", out=run
    )
    with pytest.raises(ConfigError, match="finished run sends nothing"):
        judge.plan(run, card=True, model=UnmarkedJudge())


def test_every_run_of_a_card_asks_the_judge_with_its_own_settings(
    chat_server: Any, tmp_path: Path
) -> None:
    own = {"name": "mine", "base_url": chat_server.url, "system_message": "You are strict."}
    judge.card(ROWS, model=[own], probes=["bias"], out=tmp_path / "card", **OPTIONS)
    first_messages = [body["messages"][0] for body in chat_server.bodies]
    assert {message["role"] for message in first_messages} == {"system"}
