"""Draws must not be selected by their label, and invalid probabilities are not used."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from judge.core.errors import ParseError
from judge.core.records import Choice, Criterion, Response, Scale, Token
from judge.criteria import load
from judge.scoring import strategies
from judge.scoring.strategies import SamplingOptions, UnusableReply
from tests.factories import draws_of, text_response

COHERENCE = load("coherence")


def token_reply(chosen: str, logprob: float, listed: dict[str, float]) -> Response:
    token = Token(chosen, logprob, tuple(listed.items()))
    return Response((Choice(chosen, "stop", (token,)),))


@pytest.mark.parametrize("listed", [{}, {"4": math.log(0.95)}])
def test_a_token_without_alternatives_is_not_a_distribution(listed: dict[str, float]) -> None:
    reply = token_reply("4", math.log(0.95), listed)
    with pytest.raises(UnusableReply, match="at most 1 probability") as caught:
        strategies.score_reply("logprobs", [reply], COHERENCE, SamplingOptions())
    assert caught.value.lasting


def test_a_certain_token_needs_no_alternatives() -> None:
    value, provenance = strategies.score_reply(
        "logprobs", [token_reply("4", 0.0, {"4": 0.0})], COHERENCE, SamplingOptions()
    )
    assert (value, provenance.method) == (4.0, "logprobs")


@pytest.mark.parametrize("filler", [0.0, math.log(0.5)])
def test_probabilities_that_add_up_to_more_than_1_fall_back(filler: float) -> None:
    reply = token_reply("4", filler, dict.fromkeys("12345", filler))
    with pytest.raises(UnusableReply, match="add up to"):
        strategies.score_reply("logprobs", [reply], COHERENCE, SamplingOptions())


def test_refused_logprobs_fall_back_to_draws() -> None:
    refused = replace(text_response("I would rather not say."), unmet=("logprobs",))
    with pytest.raises(UnusableReply) as caught:
        strategies.score_reply("logprobs", [refused], COHERENCE, SamplingOptions(), judged="")
    assert caught.value.lasting


@pytest.mark.parametrize("lost", ["5", "3"])
def test_draws_are_not_averaged_if_one_label_is_unreadable(
    monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """The replaced parser refuses one label if the judged text contains it."""
    read = strategies.read

    def refuse_label(
        choice: Choice, criterion: object, judged: str | None, *, strict: bool = False
    ) -> object:
        if judged == f"It has a {lost}." and choice.text == lost:
            raise ParseError("the judged text has it")
        return read(choice, criterion, judged)  # type: ignore[arg-type]

    monkeypatch.setattr(strategies, "read", refuse_label)
    draws = draws_of(*["3"] * 10, *["5"] * 10)
    with pytest.raises(ParseError, match="10 of 20 draws"):
        strategies.score_reply(
            "samples", draws, COHERENCE, SamplingOptions(), judged=f"It has a {lost}."
        )
    value, _ = strategies.score_reply(
        "samples", draws, COHERENCE, SamplingOptions(), judged="It has none."
    )
    assert value == 4.0


@pytest.mark.parametrize(
    ("yes", "no"),
    [("1", "0"), ("true", "false"), (" True", " False"), ("はい", "いいえ"), ("1", "no")],
)
def test_other_words_for_yes_and_no_have_their_probabilities(yes: str, no: str) -> None:
    answers = Scale(("no", "yes"), (0.0, 1.0))
    top = ((yes, math.log(0.6)), (no, math.log(0.4)))
    reply = Response((Choice(yes, "stop", (Token(yes, math.log(0.6), top),)),))
    value, provenance = strategies.score_reply(
        "logprobs", [reply], Criterion("c", "", answers), SamplingOptions(), judged="It rained."
    )
    assert (value, provenance.mass) == (pytest.approx(0.6), pytest.approx(1.0))
    assert (provenance.low, provenance.high) == (pytest.approx(0.6), pytest.approx(0.6))
