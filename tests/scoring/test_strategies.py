"""The ladder: which rungs there are, what each asks, and what its answers are worth."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from judge.core.errors import ConfigError, ParseError, Refused
from judge.core.records import Choice, Prompt, Response, Scale, Token
from judge.criteria import load
from judge.scoring import strategies
from judge.scoring.strategies import SamplingOptions, UnusableReply

COHERENCE = load("coherence")
PROMPT = Prompt("i", "s", "coherence", ({"role": "user", "content": "How coherent?"},), "The question")


def said(*texts: str) -> list[Response]:
    return [Response((Choice(text),)) for text in texts]


def weighed(text: str, **top: float) -> Response:
    import math

    listed = tuple((label.lstrip("_"), math.log(p)) for label, p in top.items())
    return Response((Choice(text, "stop", (Token(text, dict(listed).get(text, -20.0), listed),)),))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("logprobs", "samples", "single")), ({"temperature": 0.0}, ("logprobs", "single")),
        ({"weighting": "logprobs"}, ("logprobs",)), ({"weighting": "samples"}, ("samples",)),
        ({"weighting": "samples", "temperature": 0.0}, ("samples",)), ({"weighting": "single"}, ("single",)),
    ],
)  # fmt: skip
def test_the_rungs_of_a_chat_endpoint(settings: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert strategies.strategies_for(SamplingOptions(**settings), decides=False) == expected


def test_a_decision_endpoint_has_one_rung() -> None:
    assert strategies.strategies_for(SamplingOptions(), decides=True) == ("decisions",)
    assert strategies.strategies_for(SamplingOptions(weighting="decisions"), decides=True) == ("decisions",)


@pytest.mark.parametrize(
    ("settings", "decides", "message"),
    [
        ({"weighting": "decisions"}, False, "--model decisions/NAME"),
        ({"weighting": "samples"}, True, "weighting.*leave that out"),
    ],
)
def test_a_weighting_the_endpoint_does_not_have_is_refused(
    settings: dict[str, Any], decides: bool, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        strategies.strategies_for(SamplingOptions(**settings), decides)


def test_what_each_rung_asks() -> None:
    (logprobs,) = strategies.requests(PROMPT, COHERENCE, "logprobs", SamplingOptions())
    assert logprobs.params == {"temperature": 0.0, "max_tokens": 64, "top_logprobs": 20}
    (single,) = strategies.requests(PROMPT, COHERENCE, "single", SamplingOptions(max_tokens=7))
    assert single.params == {"temperature": 0.0, "max_tokens": 7}
    drawn = strategies.requests(PROMPT, COHERENCE, "samples", SamplingOptions(draws=3))
    assert [(r.draw, r.params) for r in drawn] == [(n, {"temperature": 1.0, "max_tokens": 64}) for n in range(3)]
    assert len({r.key() for r in drawn}) == 3
    (warm, _) = strategies.requests(PROMPT, COHERENCE, "samples", SamplingOptions(draws=2, temperature=0.7))
    assert warm.params["temperature"] == 0.7


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (Scale.integers(1, 3), ("score", ["1", "2", "3"])),
        (Scale(("pass", "fail"), (1.0, 0.0)), ("predicate", ["fail", "pass"])),
        (Scale(("A", "B", "C"), (1.0, 0.0, 0.5)), ("choice", ["A", "B", "C"])),
        (Scale.integers(0, 100, 10), ("choice", [str(n) for n in range(0, 101, 10)])),
    ],
)
def test_a_criterion_as_a_typed_question(scale: Scale, expected: tuple[str, list[str]]) -> None:
    (request,) = strategies.requests(PROMPT, replace(COHERENCE, scale=scale), "decisions", SamplingOptions())
    kind, labels = expected
    question = {"name": "coherence", "type": kind, "instructions": "The question", "labels": labels}
    assert (request.params, request.messages) == ({"questions": [question]}, PROMPT.messages)


def test_structured_output_is_asked_for_by_a_schema_in_the_order_of_the_kind() -> None:
    def schema(**changes: Any) -> dict[str, Any]:
        criterion = replace(COHERENCE, form="json", **changes)
        (request,) = strategies.requests(PROMPT, criterion, "single", SamplingOptions())
        asked: dict[str, Any] = request.params["response_format"]["json_schema"]["schema"]
        return asked

    reasoned = schema(reply="reason_then_score")
    assert list(reasoned["properties"]) == reasoned["required"] == ["reason", "score"]
    assert reasoned["properties"]["score"] == {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    for labels in (("fail", "pass"), ("01", "02")):  # what only looks like a number is a word
        labelled = schema(scale=Scale(labels, (0.0, 1.0)), reply="score")
        assert labelled["properties"] == {"score": {"type": "string", "enum": list(labels)}}


def test_twenty_draws_as_the_table_of_vectors_has_them() -> None:
    value, made = strategies.score_reply("samples", said(*["4"] * 13, *["5"] * 6, "n/a"), COHERENCE, SamplingOptions())
    assert value == pytest.approx(4.3158, abs=5e-5)
    assert (made.method, made.n, made.mass, made.argmax) == ("samples", 19, pytest.approx(0.95), "4")
    assert made.distribution == {"4": pytest.approx(0.65), "5": pytest.approx(0.3)}
    assert made.note
    assert made.note.startswith("1 of 20 draws had no score")
    assert json.loads(made.raw or "") == ["4"] * 13 + ["5"] * 6 + ["n/a"]


def test_draws_that_were_not_answered_are_counted_apart() -> None:
    value, made = strategies.score_reply(
        "samples", [*said("4", "2"), Refused("busy")], COHERENCE, SamplingOptions(), ["why"]
    )
    assert (value, made.n, made.mass) == (3.0, 2, 1.0)
    assert made.note == "why; 1 of 3 draws were not answered"


def test_no_draw_with_a_score_is_the_next_rungs_turn_and_no_answer_the_providers_error() -> None:
    with pytest.raises(UnusableReply, match="none of 2 draws has a score"):
        strategies.score_reply("samples", said("n/a", "no"), COHERENCE, SamplingOptions())
    with pytest.raises(Refused, match="busy"):
        strategies.score_reply("samples", [Refused("busy"), Refused("later")], COHERENCE, SamplingOptions())


def test_probabilities_that_are_missing_or_too_small_are_not_trusted() -> None:
    with pytest.raises(UnusableReply, match="without token probabilities") as lacking:
        strategies.score_reply("logprobs", said("4"), COHERENCE, SamplingOptions())
    assert lacking.value.lasting
    with pytest.raises(UnusableReply, match=r"only 0\.02 of the probability") as small:
        strategies.score_reply("logprobs", [weighed("3", _3=0.02, I=0.98)], COHERENCE, SamplingOptions())
    assert not small.value.lasting
    value, made = strategies.score_reply(
        "logprobs", [weighed("3", _3=0.02, I=0.98)], COHERENCE, SamplingOptions(min_mass=0.0)
    )
    assert (value, made.mass) == (3.0, pytest.approx(0.02))


def test_a_reply_that_is_no_score_is_no_score_on_any_rung() -> None:
    for rung in ("logprobs", "single"):
        with pytest.raises(ParseError) as error:
            strategies.score_reply(rung, [weighed("The", The=0.9, It=0.1)], COHERENCE, SamplingOptions())
        assert not isinstance(error.value, UnusableReply)
    cut = Response((Choice("1", "length", (Token("1", 0.0, (("1", 0.0),)),)),))
    with pytest.raises(ParseError, match="cut off"):
        strategies.score_reply("logprobs", [cut], COHERENCE, SamplingOptions())
    with pytest.raises(ParseError, match="holds no reply"):
        strategies.score_reply("single", [Response(())], COHERENCE, SamplingOptions())


def test_with_a_reason_first_the_provenance_says_what_the_probabilities_hang_on() -> None:
    reasoned = replace(COHERENCE, reply="reason_then_score")
    tokens = tuple(Token(t, -0.1, ((t, -0.1),)) for t in ("It has 2 breaks.", "\n", "Score", ":", " "))
    last = Token("4", -0.36, (("4", -0.3567), ("5", -1.204)))
    reply = Response((Choice("It has 2 breaks.\nScore: 4", "stop", (*tokens, last)),))
    value, made = strategies.score_reply("logprobs", [reply], reasoned, SamplingOptions())
    assert value == pytest.approx(4.3, abs=1e-3)
    assert made.reason == "It has 2 breaks."
    assert made.note == "probabilities given one reason that the judge wrote first"


def test_of_samples_the_reason_kept_is_one_of_the_likeliest_label() -> None:
    reasoned = replace(COHERENCE, reply="score_then_reason")
    _, made = strategies.score_reply(
        "samples", said("2\nToo short.", "4\nFine.", "4\nGood."), reasoned, SamplingOptions()
    )
    assert (made.argmax, made.reason) == ("4", "Fine.")


def test_a_decision_is_weighed_by_label() -> None:
    shares = (("1", 0.1), ("2", 0.0), ("3", 0.2), ("4", 0.4), ("5", 0.3))
    value, made = strategies.score_reply(
        "decisions", [Response((Choice("4", shares=shares),))], COHERENCE, SamplingOptions()
    )
    assert value == pytest.approx(3.8)
    assert (made.method, made.argmax) == ("decisions", "4")
    with pytest.raises(ParseError, match="refused"):
        strategies.score_reply("decisions", [Response((Choice("", "refusal"),))], COHERENCE, SamplingOptions())
    little = (("1", 0.01), ("2", 0.0), ("3", 0.0), ("4", 0.02), ("5", 0.04))
    with pytest.raises(ParseError, match=r"only 0\.07 of the probability"):
        strategies.score_reply("decisions", [Response((Choice("5", shares=little),))], COHERENCE, SamplingOptions())


def test_tokens_that_say_something_else_than_the_reply_are_not_trusted() -> None:
    reply = Response((Choice("2", "stop", (Token("5", -0.1, (("5", -0.1), ("2", -3.0))),)),))
    with pytest.raises(UnusableReply, match="the tokens say 5, the reply 2"):
        strategies.score_reply("logprobs", [reply], COHERENCE, SamplingOptions())
