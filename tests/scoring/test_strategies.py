"""Strategies: the order in which they are tried, their requests, and the values of their replies."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from judge.core.errors import ConfigError, ParseError, Refused
from judge.core.records import Choice, Prompt, ReplyKind, Response, Scale, Token
from judge.criteria import load
from judge.scoring import strategies
from judge.scoring.strategies import SamplingOptions, UnusableReply
from tests.factories import draws_of, has_line

COHERENCE = load("coherence")
PROMPT = Prompt(
    "i", "s", "coherence", ({"role": "user", "content": "How coherent?"},), "The question"
)


def weighed(*positions: str | tuple[str, dict[str, float]]) -> Response:
    """Return a reply of these tokens with their alternatives. A text without probabilities has probability 1."""
    pairs = [(each, {each: 1.0}) if isinstance(each, str) else each for each in positions]
    tokens = [
        Token(text, math.log(top.get(text, 1e-9)), tuple((t, math.log(p)) for t, p in top.items()))
        for text, top in pairs
    ]
    return Response((Choice("".join(text for text, _ in pairs), "stop", tuple(tokens)),))


FIVE, TEN, SIGNED = Scale.integers(1, 5), Scale.integers(1, 10), Scale.integers(-3, 3)
HUNDRED, CORRECT = Scale.integers(0, 100, 10), Scale(("incorrect", "correct"), (0.0, 1.0))


def test_a_value_may_be_outside_its_bounds_by_less_than_a_table_prints() -> None:
    reply = weighed(("3", {"3": 0.9999, "-": 0.0001}))
    result, provenance = strategies.score_reply(
        "logprobs", [reply], replace(COHERENCE, scale=SIGNED), SamplingOptions()
    )
    assert result == 3.0
    assert (provenance.low, provenance.high) == pytest.approx((2.9994, 2.9996))


@pytest.mark.parametrize(
    ("reply", "scale", "message"),
    [
        ([("3", {"3": 0.02, "I": 0.98})], FIVE, r"only 0\.02 of the probability"),
        ([("0", {"0": 0.5, "-": 0.5})], SIGNED, r"-1\.50 and -0\.50, not exactly 0\.00"),
        (
            [("5", {"5": 0.6, "7": 0.4})],
            Scale.integers(0, 100),
            r"5\.80 and 34\.60, not exactly 5\.00",
        ),
    ],
)
def test_a_value_with_little_mass_or_outside_its_bounds_falls_back(
    reply: list[Any], scale: Scale, message: str
) -> None:
    criterion = replace(COHERENCE, scale=scale)
    with pytest.raises(UnusableReply, match=message) as untrusted:
        strategies.score_reply("logprobs", [weighed(*reply)], criterion, SamplingOptions())
    assert not untrusted.value.lasting


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("logprobs", "samples", "single")), ({"temperature": 0.0}, ("logprobs", "single")),
        ({"weighting": "logprobs"}, ("logprobs",)), ({"weighting": "samples"}, ("samples",)),
        ({"weighting": "samples", "temperature": 0.0}, ("samples",)), ({"weighting": "single"}, ("single",)),
    ],
)  # fmt: skip
def test_the_strategies_of_a_chat_endpoint(
    settings: dict[str, Any], expected: tuple[str, ...]
) -> None:
    assert strategies.strategies_for(SamplingOptions(**settings), decides=False) == expected


def test_a_decision_endpoint_has_one_strategy() -> None:
    assert strategies.strategies_for(SamplingOptions(), decides=True) == ("decisions",)
    assert strategies.strategies_for(SamplingOptions(weighting="decisions"), decides=True) == (
        "decisions",
    )


@pytest.mark.parametrize(
    ("settings", "decides", "message"),
    [
        ({"weighting": "decisions"}, False, "--model decisions/NAME"),
        ({"weighting": "samples"}, True, "weighting.*leave that out"),
    ],
)
def test_a_weighting_that_the_endpoint_does_not_support_is_an_error(
    settings: dict[str, Any], decides: bool, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        strategies.strategies_for(SamplingOptions(**settings), decides)


def test_the_requests_of_each_strategy() -> None:
    (logprobs,) = strategies.requests(PROMPT, COHERENCE, "logprobs", SamplingOptions())
    assert logprobs.params == {"temperature": 0.0, "max_tokens": 64, "top_logprobs": 20}
    (single,) = strategies.requests(PROMPT, COHERENCE, "single", SamplingOptions(max_tokens=7))
    assert single.params == {"temperature": 0.0, "max_tokens": 7}
    drawn = strategies.requests(PROMPT, COHERENCE, "samples", SamplingOptions(draws=3))
    assert [(r.draw, r.params) for r in drawn] == [
        (n, {"temperature": 1.0, "max_tokens": 64}) for n in range(3)
    ]
    assert len({r.key() for r in drawn}) == 3
    (warm, _) = strategies.requests(
        PROMPT, COHERENCE, "samples", SamplingOptions(draws=2, temperature=0.7)
    )
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
def test_a_decision_request_has_a_typed_question(
    scale: Scale, expected: tuple[str, list[str]]
) -> None:
    (request,) = strategies.requests(
        PROMPT, replace(COHERENCE, scale=scale), "decisions", SamplingOptions()
    )
    kind, labels = expected
    question = {"name": "coherence", "type": kind, "instructions": "The question", "labels": labels}
    assert (request.params, request.messages) == ({"questions": [question]}, PROMPT.messages)


def test_the_schema_of_structured_output_has_the_order_of_the_reply_kind() -> None:
    def schema(**changes: Any) -> dict[str, Any]:
        criterion = replace(COHERENCE, form="json", **changes)
        (request,) = strategies.requests(PROMPT, criterion, "single", SamplingOptions())
        response_schema: dict[str, Any] = request.params["response_format"]["json_schema"]["schema"]
        return response_schema

    reasoned = schema(reply="reason_then_score")
    assert list(reasoned["properties"]) == reasoned["required"] == ["reason", "score"]
    assert reasoned["properties"]["score"] == {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    for labels in (
        ("fail", "pass"),
        ("01", "02"),
    ):  # a label that only looks like a number is a word
        labelled = schema(scale=Scale(labels, (0.0, 1.0)), reply="score")
        assert labelled["properties"] == {"score": {"type": "string", "enum": list(labels)}}


def test_the_value_of_twenty_draws_by_hand() -> None:
    value, provenance = strategies.score_reply(
        "samples", draws_of(*["4"] * 13, *["5"] * 6, "n/a"), COHERENCE, SamplingOptions()
    )
    assert value == pytest.approx(4.3158, abs=5e-5)
    assert (provenance.method, provenance.n, provenance.argmax) == ("samples", 19, "4")
    assert provenance.mass == pytest.approx(0.95)
    assert provenance.distribution == {"4": pytest.approx(0.65), "5": pytest.approx(0.3)}
    assert has_line(provenance.note or "", "1 of 20 draws", "no score", "1, 2, 3, 4, 5")
    assert json.loads(provenance.raw or "") == ["4"] * 13 + ["5"] * 6 + ["n/a"]


def test_unanswered_draws_are_counted_separately() -> None:
    value, provenance = strategies.score_reply(
        "samples", [*draws_of("4", "2"), Refused("busy")], COHERENCE, SamplingOptions(), ["why"]
    )
    assert (value, provenance.n, provenance.mass) == (3.0, 2, 1.0)
    assert has_line(provenance.note or "", "why", "1 of 3 draws", "not answered")


def test_draws_without_a_score_fall_back() -> None:
    with pytest.raises(UnusableReply, match="none of 2 draws"):
        strategies.score_reply("samples", draws_of("n/a", "no"), COHERENCE, SamplingOptions())


def test_draws_that_were_all_refused_are_an_error() -> None:
    with pytest.raises(Refused, match="busy"):
        strategies.score_reply(
            "samples", [Refused("busy"), Refused("later")], COHERENCE, SamplingOptions()
        )


def test_a_reply_without_token_probabilities_falls_back_for_the_rest_of_the_run() -> None:
    with pytest.raises(UnusableReply, match="without token probabilities") as caught:
        strategies.score_reply("logprobs", draws_of("4"), COHERENCE, SamplingOptions())
    assert caught.value.lasting


def test_a_min_mass_of_0_accepts_a_small_probability() -> None:
    reply = weighed(("3", {"3": 0.02, "I": 0.98}))
    value, provenance = strategies.score_reply(
        "logprobs", [reply], COHERENCE, SamplingOptions(min_mass=0.0)
    )
    assert (value, provenance.mass) == (3.0, pytest.approx(0.02))


LIKELY = {"4": 0.35, "5": 0.25}


@pytest.mark.parametrize(
    ("reply", "kind", "value"),
    [
        ([("The", {"The": 0.4, **LIKELY}), " summary"], "score", 2.65 / 0.6),
        (["\n", ("I", {"I": 0.4, **LIKELY}), " cannot say.\nIt has 2."], "score_then_reason", 2.65 / 0.6),
        ([("7", {"7": 0.4, **LIKELY})], "score", 2.65 / 0.6),
        ([("4.5", {"4.5": 0.4, **LIKELY})], "score", 2.65 / 0.6),
        ([("**", {"**": 0.6, "3": 0.4}), ("Good", {"Good": 0.5, "4": 0.5}), "**"], "score", 2.4 / 0.7),
        (["Good.\nScore: ", ("7", {"7": 0.4, **LIKELY})], "reason_then_score", 2.65 / 0.6),
        (['{"score": ', ("7", {"7": 0.4, **LIKELY}), "}"], "score", 2.65 / 0.6),
        (['{"score": "', ("high", {"high": 0.4, **LIKELY}), '"}'], "score", 2.65 / 0.6),
    ],
)  # fmt: skip
def test_probabilities_of_labels_count_if_the_reply_is_not_a_label(
    reply: list[Any], kind: ReplyKind, value: float
) -> None:
    criterion = replace(COHERENCE, reply=kind)
    (choice,) = weighed(*reply).choices
    for text in (choice.text, choice.text.strip()):
        answers = [Response((replace(choice, text=text),))]
        result, provenance = strategies.score_reply(
            "logprobs", answers, criterion, SamplingOptions()
        )
        assert result == pytest.approx(value)
        assert (provenance.method, provenance.reason) == ("logprobs", None)
        assert "the reply has none" in (provenance.note or "")


def test_a_small_probability_of_labels_falls_back() -> None:
    reply = weighed(("I", {"I": 0.9, "4": 0.06, "5": 0.04}), " cannot say")
    with pytest.raises(UnusableReply, match=r"only 0\.1 of the probability"):
        strategies.score_reply("logprobs", [reply], COHERENCE, SamplingOptions())
    value, provenance = strategies.score_reply(
        "logprobs", [reply], COHERENCE, SamplingOptions(min_mass=0.0)
    )
    assert (value, provenance.mass) == (pytest.approx(4.4), pytest.approx(0.1))


@pytest.mark.parametrize(
    ("reply", "finish"),
    [
        ([("4", {"4": 0.6, "3": 0.4}), " of 5 names are wrong, so 2."], "stop"),
        ([("1", {"1": 0.3, "4": 0.7}), "5"], "stop"),
        ([("The", {"The": 0.4, **LIKELY}), " summary"], "length"),
        ([("The", {"The": 0.4, **LIKELY}), " summary"], "content_filter"),
    ],
)
def test_refuses_a_sentence_that_begins_with_a_number(reply: list[Any], finish: str) -> None:
    (choice,) = weighed(*reply).choices
    for min_mass in (0.0, 0.5):
        with pytest.raises(ParseError) as error:
            strategies.score_reply(
                "logprobs",
                [Response((replace(choice, finish_reason=finish),))],
                COHERENCE,
                SamplingOptions(min_mass=min_mass),
            )
        assert not isinstance(error.value, UnusableReply)


def test_refuses_a_reply_without_a_score_in_every_strategy() -> None:
    reply = weighed(("The", {"The": 0.9, "It": 0.1}), " summary")
    for strategy in ("logprobs", "single"):
        with pytest.raises(ParseError) as error:
            strategies.score_reply(strategy, [reply], COHERENCE, SamplingOptions())
        assert not isinstance(error.value, UnusableReply)
    with pytest.raises(ParseError, match="7 is off the scale"):
        strategies.score_reply("logprobs", [weighed("7")], COHERENCE, SamplingOptions())
    cut = Response((Choice("1", "length", (Token("1", 0.0, (("1", 0.0),)),)),))
    with pytest.raises(ParseError, match="cut off"):
        strategies.score_reply("logprobs", [cut], COHERENCE, SamplingOptions())
    with pytest.raises(ParseError, match="holds no reply"):
        strategies.score_reply("single", [Response(())], COHERENCE, SamplingOptions())


def test_probabilities_after_a_reason_have_a_note() -> None:
    reasoned = replace(COHERENCE, reply="reason_then_score")
    reply = weighed(
        "It", " has", " 4", " facts.", "\n", "Score", ":", " ", ("4", {"4": 0.7, "5": 0.3})
    )
    value, provenance = strategies.score_reply("logprobs", [reply], reasoned, SamplingOptions())
    assert (value, provenance.mass) == pytest.approx((4.3, 1.0))
    assert provenance.reason == "It has 4 facts."
    assert has_line(provenance.note or "", "one reason")


def test_probabilities_of_a_score_without_its_reason_have_no_note() -> None:
    reasoned = replace(COHERENCE, reply="reason_then_score")
    reply = weighed("Score", ":", " ", ("4", {"4": 0.7, "5": 0.3}))
    _, provenance = strategies.score_reply("logprobs", [reply], reasoned, SamplingOptions())
    assert (provenance.reason, provenance.note) == (None, None)


def test_draws_have_a_reason_of_the_most_frequent_label() -> None:
    reasoned = replace(COHERENCE, reply="score_then_reason")
    _, provenance = strategies.score_reply(
        "samples", draws_of("2\nToo short.", "4\nFine.", "4\nGood."), reasoned, SamplingOptions()
    )
    assert (provenance.argmax, provenance.reason) == ("4", "Fine.")


def test_a_decision_is_weighted_by_its_label_probabilities() -> None:
    shares = (("1", 0.1), ("2", 0.0), ("3", 0.2), ("4", 0.4), ("5", 0.3))
    value, provenance = strategies.score_reply(
        "decisions", [Response((Choice("4", shares=shares),))], COHERENCE, SamplingOptions()
    )
    assert value == pytest.approx(3.8)
    assert (provenance.method, provenance.argmax) == ("decisions", "4")
    with pytest.raises(ParseError, match="refused"):
        strategies.score_reply(
            "decisions", [Response((Choice("", "refusal"),))], COHERENCE, SamplingOptions()
        )
    little = (("1", 0.01), ("2", 0.0), ("3", 0.0), ("4", 0.02), ("5", 0.04))
    with pytest.raises(ParseError, match=r"only 0\.07 of the probability"):
        strategies.score_reply(
            "decisions", [Response((Choice("5", shares=little),))], COHERENCE, SamplingOptions()
        )


def test_tokens_that_contradict_the_reply_fall_back() -> None:
    (choice,) = weighed(("5", {"5": 0.9, "2": 0.05})).choices
    reply = Response((replace(choice, text="2"),))
    with pytest.raises(UnusableReply, match=r"tokens say 5, .*reply 2"):
        strategies.score_reply("logprobs", [reply], COHERENCE, SamplingOptions())
