"""judge.plan(card=True): what is said before a card is made is what the card then asks."""

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
    """Gives a high score; of two texts it takes the first."""
    asks_about_one_text = re.search(
        r"^<(output|text) [0-9a-f]+>$", prompt_of(request), re.MULTILINE
    )
    return {"4": 1.0} if asks_about_one_text else {"A": 1.0}


def prompt_of(request: Request) -> str:
    return str(request.messages[0]["content"])


class Asked(ScriptedProvider):
    """A judge that calls a model, as far as a report can see."""

    notice = ""

    def __init__(self) -> None:
        super().__init__(high, model="gpt-5.4-mini", endpoint=DEFAULT_URL)


def test_the_card_sends_as_many_requests_as_were_planned(tmp_path: Path) -> None:
    options = OPTIONS | {"cache": tmp_path / "cache"}
    forecast = judge.plan(ROWS, model=Asked(), card=True, **options)
    asked = Asked()
    card = judge.card(ROWS, model=asked, **options)
    assert forecast.requests == len(asked.seen) > 50
    (of_judge,) = forecast.to_dict()["judges"]
    assert [line["run"] for line in of_judge["lines"]] == list(card.info["runs"])
    assert of_judge["total"]["judgments"] == card.info["judgments"]
    assert of_judge["total"]["run"] == "all"

    again = judge.plan(ROWS, model=Asked(), card=True, **options)
    assert again.requests == 0
    assert again.price == 0


def test_items_and_probes_make_the_card_smaller() -> None:
    whole = judge.plan(ROWS, model=Asked(), card=True, **OPTIONS)
    one = judge.plan(ROWS, model=Asked(), card=True, items=1, **OPTIONS)
    without = judge.plan(ROWS, model=Asked(), card=True, probes=["sensitivity"], **OPTIONS)
    assert one.requests < whole.requests
    assert without.requests < whole.requests
    assert has_line(one.notes, "card takes 1 item", "items")
    assert whole.price is not None
    assert whole.seconds is not None


def test_it_names_what_the_card_cannot_show_and_what_is_asked_besides() -> None:
    options = OPTIONS | {"criteria": ["kind: Is the text kind?"], "probes": "bias"}
    notes = judge.plan(ROWS, model=Asked(), card=True, **options).notes
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
        judge.plan(ROWS, model=Asked(), **(OPTIONS | options))
    assert has_line(str(caught.value), *facts)


def test_the_card_of_a_finished_run_has_no_plan(tmp_path: Path) -> None:
    run = tmp_path / "run"
    judge.evaluate(ROWS, ["coherence"], model=Asked(), cache=False, weighting="single", out=run)
    with pytest.raises(ConfigError, match="finished run sends nothing"):
        judge.plan(run, card=True, model=Asked())
