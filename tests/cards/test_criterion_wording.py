"""Alternative wordings of a criterion's question: their writer, their requests, and a card without them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge import criteria
from judge.commands.card.card import JudgeCard
from judge.commands.card.card_plan import QUESTIONS, card_estimate, plan_card
from judge.commands.card.command import card as make_card
from judge.commands.card.paraphrases import read_reply
from judge.commands.card.probes import QUESTION_WORDING
from judge.config import load_config
from judge.core.errors import ParseError
from judge.core.records import Request
from judge.providers.scripted import ScriptedProvider
from tests.factories import has_line

ROWS = [
    {"item": f"i{n}", "system": "s", "output": f"Dear guest {n}, we are sorry. Please call us."}
    for n in range(3)
]
POLITE = {"name": "polite_mail", "question": "Is the mail polite?", "scale": [1, 5]}
WORDINGS = ["Is the mail courteous?", "Does the mail show respect?", "Is the tone of it kind?"]
GOOD = json.dumps({"wordings": WORDINGS})


def content(request: Request) -> str:
    return str(request.messages[0]["content"])


def is_writing(request: Request) -> bool:
    return '"wordings"' in content(request)


def carded(
    write: Callable[[Request], str], **options: Any
) -> tuple[JudgeCard, list[Request], list[Request]]:
    """Return a card of three texts, the requests for wordings, and the judgments with these wordings.

    With the second wording, the judge gives one point less.
    """

    def reply(request: Request) -> str:
        if is_writing(request):
            return write(request)
        return "3" if "Does the mail show respect?" in content(request) else "4"

    provider = ScriptedProvider(reply, endpoint="scripted:test")
    arguments: dict[str, Any] = {
        "criteria": [POLITE],
        "model": provider,
        "cache": False,
        "weighting": "single",
        "probes": "bias",
    } | options
    card = make_card(ROWS, **arguments)
    asked = [one for one in provider.seen if any(text in content(one) for text in WORDINGS)]
    asked = [one for one in asked if not is_writing(one)]
    return card, [one for one in provider.seen if is_writing(one)], asked


def found(card: JudgeCard) -> dict[str, float]:
    return {
        finding.measure: finding.estimate.value
        for finding in card.findings
        if finding.probe == QUESTION_WORDING
    }


def test_the_judge_writes_the_wordings_that_the_header_lacks() -> None:
    card, writing, asked = carded(lambda request: f"Here they are: {GOOD}")
    assert len(writing) == 1
    assert "Is the mail polite?" in content(writing[0])
    assert len(asked) == len(ROWS) * len(WORDINGS)
    assert found(card) == {
        "question 1": 0,
        "question 2": -1,
        "question 3": 0,
        "spread between questions": pytest.approx(0.5),
        "label changes with the question": 1,
    }


def test_wordings_of_the_header_are_asked_without_writing() -> None:
    card, writing, asked = carded(
        lambda request: pytest.fail("nothing is to be written"),
        criteria=[{**POLITE, "paraphrases": WORDINGS}],
    )
    assert writing == []
    assert len(asked) == len(ROWS) * len(WORDINGS)
    assert found(card)["question 2"] == -1
    assert card.info["runs"].keys() >= {QUESTIONS}


def test_an_unusable_reply_is_requested_once_more_with_the_reason() -> None:
    def write(request: Request) -> str:
        return GOOD if "cannot be used" in content(request) else "Certainly!"

    card, writing, _ = carded(write)
    assert len(writing) == 2
    assert "no JSON object with wordings" in content(writing[1])
    assert "Certainly!" in content(writing[1])
    assert found(card)["question 2"] == -1


def test_without_wordings_the_card_has_the_reason_and_all_other_parts() -> None:
    card, writing, asked = carded(lambda request: "I will not.")
    assert (len(writing), asked, found(card)) == (2, [], {})
    assert "no JSON object with wordings" in card.skipped[f"{QUESTION_WORDING} by polite_mail"]
    assert any(finding.probe == "scale use" for finding in card.findings)


def test_a_second_card_takes_the_wordings_from_the_cache(tmp_path: Path) -> None:
    first, writing, _ = carded(lambda request: GOOD, cache=tmp_path / "cache")
    second, second_run, asked = carded(lambda request: "nothing", cache=tmp_path / "cache")
    assert (len(writing), second_run, asked) == (1, [], [])
    assert found(second) == found(first)


def test_the_estimate_counts_judgments_and_requests_for_wordings() -> None:
    def planned(**keys: Any) -> Any:
        criterion = {**POLITE, **keys}
        config = load_config(options={"cache": False, "criteria": [criterion]})
        provider = ScriptedProvider(lambda request: "4")
        return plan_card(config, ROWS, probes="bias", providers=[provider])

    written, unwritten = planned(paraphrases=WORDINGS), planned()
    assert written.judgments == unwritten.judgments
    assert "other wordings of the criteria" not in card_estimate(written)
    assert has_line(card_estimate(unwritten), "at most 2 requests", "wordings")


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("3", "no JSON object"),
        (GOOD + GOOD, "no JSON object"),
        ('{"wordings": "Is it?"}', "not a list of texts"),
        ('{"wordings": ["a", "b"]}', "write 3 wordings"),
        ('{"wordings": ["a", "b", "b"]}', "wordings 2 and 3"),
        ('{"wordings": ["a", "b", "Is the mail  polite?"]}', "repeats the question"),
        ('{"wordings": ["a", "b", "{{ output }}"]}', "template syntax"),
        ('{"wordings": []}', "no wording"),
    ],
)
def test_a_reply_that_holds_no_three_new_wordings_is_refused(reply: str, says: str) -> None:
    with pytest.raises(ParseError, match=says):
        read_reply(reply, criteria.load(POLITE))


def test_a_line_break_inside_a_wording_is_preserved() -> None:
    reply = '{"wordings": ["Is it\ncourteous?", "b", "c"]}'
    assert read_reply(reply, criteria.load(POLITE)) == ["Is it\ncourteous?", "b", "c"]
