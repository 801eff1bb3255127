"""A value is computed from token probabilities. Oracles: values by hand, and properties for any probabilities."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import pairwise, product
from random import Random
from statistics import fmean

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judge.core.errors import ParseError
from judge.core.label_spellings import label_index
from judge.core.records import ReplyKind, Scale, Token
from judge.scoring.expectation import (
    ScoreDistribution,
    from_logprobs,
    from_probabilities,
    from_samples,
)
from judge.scoring.parse import find

FIVE = Scale.integers(1, 5)
TEN = Scale.integers(1, 10)
SIGNED = Scale.integers(-2, 2)
HUNDRED = Scale.integers(0, 100, 10)
HALVES = Scale(("0", "0.5", "1"), (0.0, 0.5, 1.0))
VERDICT = Scale(("fail", "pass"), (0.0, 1.0))
CASED = Scale(("m", "M"), (1.0, 2.0))
WORDS = Scale(("good", "good enough", "very good"), (2.0, 1.0, 3.0))
REMARKS = Scale(("fail", "pass", "pass with remarks"), (0.0, 1.0, 0.5))
PASSED = Scale(("불합격", "합격"), (0.0, 1.0))
ALLOWED = Scale(("可", "不可"), (1.0, 0.0))
ENDS = Scale(("-1", "1"), (-1.0, 1.0))
CORRECT = Scale(("incorrect", "correct"), (0.0, 1.0))
POWERS = Scale(("1", "10", "100"), (1.0, 10.0, 100.0))
SCALES = [
    FIVE,
    TEN,
    SIGNED,
    HUNDRED,
    HALVES,
    VERDICT,
    CASED,
    WORDS,
    REMARKS,
    PASSED,
    ALLOWED,
    ENDS,
    POWERS,
]

Position = tuple[str, Mapping[str, float]]
"""The emitted text at a position of a reply, and the probabilities of all texts there."""


def tokens(*positions: Position | str) -> tuple[Token, ...]:
    """Return the tokens of a reply. A text without probabilities has probability 1."""
    pairs = [(each, {each: 1.0}) if isinstance(each, str) else each for each in positions]
    return tuple(
        Token(text, math.log(top[text]), tuple((t, math.log(p)) for t, p in top.items()))
        for text, top in pairs
    )


def weighed(reply: tuple[Token, ...], scale: Scale, kind: ReplyKind = "score") -> ScoreDistribution:
    """Parse the score in the joined tokens, then weight it by the tokens there, as a run does."""
    parsed = find("".join(token.text for token in reply), kind, scale)
    return from_logprobs(reply, parsed.start, parsed.label, scale)


VECTORS = [
    # reply tokens, scale, kind → value, mass
    # The score's token carries more than the score.
    ([("4\n", {"4\n": 0.5, "5\n": 0.5}), "Clear."], FIVE, "score_then_reason", 4.5, 1.0),
    ([("4", {"4": 0.5, "5": 0.5}), ("\n", {"\n": 0.5, "0": 0.25, "/": 0.25})], FIVE, "score", 4.5, 1.0),
    ([("**4", {"**4": 0.5, "**5": 0.25, "3": 0.25}), "**"], FIVE, "score", 4.0, 1.0),
    ([("4.", {"4.": 0.5, "4": 0.25, "2.": 0.25})], FIVE, "score", 3.5, 1.0),
    ([("4점", {"4점": 0.5, "5점": 0.25, "3点": 0.25})], FIVE, "score", 4.0, 1.0),
    (['{"', "score", '"', (":4", {":4": 0.5, ":5": 0.5}), "}"], FIVE, "score", 4.5, 1.0),
    (['{"score":', (' "4', {' "4': 0.5, ' "2': 0.5}), '"}'], FIVE, "score", 3.0, 1.0),
    ([("Score: 4", {"Score: 4": 0.5, "Score: 5": 0.25, "3": 0.15, "Score:": 0.1})], FIVE, "score", 3.7 / 0.9, 0.9),
    ([("4/5", {"4/5": 0.5, "5/5": 0.5})], FIVE, "score", 4.5, 1.0),
    (["\ufeff", " ", ("4", {"4": 0.5, "5": 0.5}), "", "</s>"], FIVE, "score", 4.5, 1.0),
    (["```json\n", '{"score": ', ("4", {"4": 0.5, "5": 0.5}), "}\n```"], FIVE, "score", 4.5, 1.0),
    ([("4", {"4": 0.5, "5": 0.5}), ".", "0"], FIVE, "score", 4.5, 1.0),
    ([("4.0", {"4.0": 0.5, "4.5": 0.3, "45": 0.1, "4th": 0.1})], FIVE, "score", 4.0, 0.5),
    # A label over several tokens.
    ([("1", {"1": 0.5, "10": 0.5}), ("", {"": 1.0})], TEN, "score", 5.5, 1.0),
    ([("1", {"1": 0.5, "9": 0.5}), ("0", {"0": 0.5, "5": 0.3, ".": 0.1, "</s>": 0.1})], TEN, "score", 7.1 / 0.85, 0.85),
    ([("1", {"1": 0.5, "9": 0.5}), ("0", {"0": 0.5, "": 0.5})], TEN, "score", 7.25, 1.0),
    ([("1", {"1": 0.5, "9": 0.5}), ("", {"": 0.6, "0": 0.4}), ("0", {"0": 1.0})], TEN, "score", 9.5, 1.0),
    ([("1", {"1": 0.6, "10": 0.4}), ("점", {"점": 0.5, "0": 0.5})], TEN, "score", 7.3, 1.0),
    ([("-", {"-": 0.5, "1": 0.5}), ("2", {"2": 0.8, "1": 0.2})], SIGNED, "score", -0.4, 1.0),
    ([("−2", {"−2": 0.5, "-2": 0.25, "2": 0.25})], SIGNED, "score", -1.0, 1.0),
    ([("1", {"1": 0.8, "2": 0.2}), ("0", {"0": 1.0}), ("0", {"0": 0.25, "\n": 0.75})], HUNDRED, "score", 32.5, 0.8),
    ([("100", {"100": 0.5, "90": 0.5})], HUNDRED, "score", 95.0, 1.0),
    ([("0", {"0": 0.8, "1": 0.2}), (".", {".": 0.75, "\n": 0.25}), "5"], HALVES, "score", 0.5, 1.0),
    ([("0", {"0": 0.5, "1": 0.5}), ".", ("0", {"0": 0.5, "5": 0.5})], HALVES, "score", 0.625, 1.0),
    ([("f", {"f": 0.4, "pass": 0.4, "p": 0.2}), ("ail", {"ail": 0.5, "oo": 0.5})], VERDICT, "score", 2 / 3, 0.6),
    ([("Pass", {"Pass": 0.3, " PASS": 0.2, "fail": 0.3, "passable": 0.2})], VERDICT, "score", 0.625, 0.8),
    ([("M", {"M": 0.75, "m": 0.25})], CASED, "score", 1.75, 1.0),
    (
        ["```json\n", '{"reason": "Has 4', ' facts.", ', '"score": ', ("4", {"4": 0.7, "5": 0.3}), "}\n", "```", ""],
        FIVE, "reason_then_score", 4.3, 1.0,
    ),
    (["```", "\n", ("4", {"4": 0.5, "5": 0.5}), "\n", "```", ""], FIVE, "score", 4.5, 1.0),
    (
        [('{"score":', {'{"score":': 1.0}), ' "', ("pass", {"pass": 0.75, "fail": 0.25}), '"}', ""], VERDICT, "score",
        0.75, 1.0,
    ),
    # Thinking is not part of the reply.
    (["<think>", "4", " or 5?", "</think>", "\n", ("4", {"4": 0.7, "5": 0.3})], FIVE, "score", 4.3, 1.0),
    (["So", " 2", ".", "</think>", ("\n\n4", {"\n\n4": 0.7, "\n\n5": 0.3}), "\n"], FIVE, "score_then_reason", 4.3, 1.0),
    # Digits of any script, signs and words of the same label.
    ([("4", {"4": 0.2, "٤": 0.1, "④": 0.1, "४": 0.1, "5": 0.5})], FIVE, "score", 4.5, 1.0),
    ([("4", {"4": 0.2, "four": 0.1, "Four": 0.1, "四": 0.05, " FOUR.": 0.05, "five": 0.5})], FIVE, "score", 4.5, 1.0),
    (
        [("4", {"4": 0.5, "fourteen": 0.1, "fourth": 0.1, "四十": 0.1, "一致": 0.1, "4,5": 0.05, "4-5": 0.05})], FIVE,
        "score", 4.0, 0.5,
    ),
    ([("4", {"4": 0.5, "4%": 0.1, "4+": 0.1, "4点5": 0.1, "4:5": 0.1, "٤٫٥": 0.1})], FIVE, "score", 4.0, 0.5),
    ([("4", {"4": 0.5, "on": 0.1, "On": 0.1, "fo": 0.1, "사": 0.1, "네": 0.1})], FIVE, "score", 4.0, 0.5),
    ([("Four", {"Four": 0.5, "4": 0.25, "Two": 0.25})], FIVE, "score", 3.5, 1.0),
    ([("4", {"4": 0.5, "네 점": 0.2, "사점": 0.1, "넷": 0.1, "이": 0.1})], FIVE, "score", 4.0, 0.8),
    ([("四", {"四": 0.5, "五": 0.25, "四分": 0.25}), "分"], FIVE, "score", 4.25, 1.0),
    ([("fo", {"fo": 0.5, "4": 0.25, "five": 0.25}), ("ur", {"ur": 0.8, "ols": 0.2})], FIVE, "score", 3.85 / 0.9, 0.9),
    ([("네", {"네": 0.6, "4": 0.2, "삼": 0.2}), (" 점", {" 점": 0.5, ",": 0.5})], FIVE, "score", 4.0, 0.5),
    ([("일", {"일": 0.8, "9": 0.2}), ("곱", {"곱": 0.75, "점": 0.25}), "점"], TEN, "score", 6.2, 1.0),
    ([("80", {"80": 0.5, "90%": 0.25, "90": 0.25}), "%"], HUNDRED, "score", 85.0, 1.0),
    ([("ten", {"ten": 0.5, "0": 0.25, "zero": 0.25})], HUNDRED, "score", 5.0, 1.0),
    ([("+1", {"+1": 0.5, "1": 0.25, "–1": 0.25})], SIGNED, "score", 0.5, 1.0),
    ([("+", {"+": 0.5, "0": 0.5}), ("2", {"2": 0.5, "1": 0.5})], SIGNED, "score", 0.75, 1.0),
    ([("–", {"–": 0.5, "0": 0.5}), ("2", {"2": 0.5, "1": 0.5})], SIGNED, "score", -0.75, 1.0),
    # Labels that begin others, and labels in other scripts.
    ([("1", {"1": 0.5, "-": 0.25, "-1": 0.25})], ENDS, "score", 1 / 3, 0.75),
    (
        [("1", {"1": 1.0}), ("0", {"0": 0.5, "\n": 0.5}), ("0", {"0": 0.5, "\n": 0.5})], POWERS, "score",
        0.5 * 1 + 0.25 * 10 + 0.25 * 100, 1.0,
    ),
    (
        [("pass", {"pass": 0.8, "fail": 0.2}), (" with", {" with": 0.5, ".": 0.5}), " remarks"], REMARKS, "score",
        0.4 * 1 + 0.4 * 0.5, 1.0,
    ),
    ([("합격", {"합격": 0.75, "불": 0.25})], PASSED, "score", 1.0, 0.75),
    ([("불", {"불": 0.5, "합격": 0.5}), "합격"], PASSED, "score", 0.5, 1.0),
    ([("不", {"不": 0.5, "可": 0.25, "可能": 0.25}), ("可", {"可": 1.0})], ALLOWED, "score", 1 / 3, 0.75),
    ([("good", {"good": 0.8, "very": 0.2}), (" enough", {" enough": 0.5, ".": 0.5})], WORDS, "score", 1.5, 0.8),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "scale", "kind", "value", "mass"), VECTORS)
def test_values_and_masses_by_hand(
    reply: list[Position | str], scale: Scale, kind: ReplyKind, value: float, mass: float
) -> None:
    result = weighed(tokens(*reply), scale, kind)
    assert result.value == pytest.approx(value, abs=1e-7)
    assert result.mass == pytest.approx(mass)


@pytest.mark.parametrize(
    ("reply", "scale", "ambiguous", "low", "high"),
    [
        # The reply ends after 1, so it is 1 and not 10.
        ([("1", {"1": 0.5, "9": 0.5})], TEN, 0.0, 5.0, 5.0),
        # An alternative minus is -1 or -2, so the value, 0, is outside.
        ([("0", {"0": 0.5, "-": 0.5})], SIGNED, 0.5, -1.0, -0.5),
        # 1, 10 or 100: the alternative could be any of them.
        ([("100", {"100": 0.5, "1": 0.5})], POWERS, 0.5, 50.5, 100.0),
        # The beginning of one label, or of number words, is that label or none.
        ([("incorrect", {"incorrect": 0.6, "C": 0.4})], CORRECT, 0.4, 0.0, 0.4),
        ([("네", {"네": 0.6, "삼": 0.4}), " 점"], FIVE, 0.4, 3.6, 4.0),
        ([("4", {"4": 0.6, "삼": 0.2, "f": 0.2})], FIVE, 0.4, 3.75, 4.25),
        # The end of the reply is no label.
        ([("4", {"4": 0.5, "": 0.5})], FIVE, 0.0, 4.0, 4.0),
        ([("fo", {"fo": 1.0}), ("ur", {"ur": 0.7, "u": 0.1})], FIVE, 0.3, 4.0, 4.0),
        # 10 or 100: the value, 5, is outside.
        ([("0", {"0": 0.4, "1": 0.2, "10\n": 0.4})], HUNDRED, 0.2, 6.0, 24.0),
    ],
)
def test_bounds_include_ambiguous_and_unlisted_tokens(
    reply: list[Position | str], scale: Scale, ambiguous: float, low: float, high: float
) -> None:
    result = weighed(tokens(*reply), scale)
    assert result.ambiguous == pytest.approx(ambiguous)
    assert (result.low, result.high) == (pytest.approx(low), pytest.approx(high))


# The labels that a first token of a reply may begin. None is no label.
POSSIBLE_LABELS = {
    "0": ["0"], "80": ["80"], "9": ["90", None], "3": ["30", None], "1": ["10", "100"], "10": ["10", "100"],
    "te": ["10", None], " **": [*HUNDRED.labels, None], "The": [None], "4": ["40", None],
}  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from(sorted(POSSIBLE_LABELS)), st.floats(0.001, 1), min_size=1, max_size=6
    ),
    st.booleans(),
)
def test_the_bounds_are_the_lowest_and_highest_value_of_all_cases(
    weights: dict[str, float], unlisted: bool
) -> None:
    top = {
        text: weight / sum(weights.values()) / (1 + unlisted) for text, weight in weights.items()
    }
    assume(top.keys() & {"0", "80"})
    emitted = max(top.keys() & {"0", "80"})
    result = from_logprobs(tokens((emitted, top)), 0, emitted, HUNDRED)
    shares = [*top.values(), 0.5 * unlisted]
    possible_labels = [*(POSSIBLE_LABELS[text] for text in top), list(HUNDRED.labels)]
    values = []
    for labels in product(*possible_labels):
        weighted = [
            (share, HUNDRED.value(label))
            for share, label in zip(shares, labels, strict=True)
            if label
        ]
        mass = sum(share for share, _ in weighted)
        values.append(sum(share * value for share, value in weighted) / mass)
    assert (result.low, result.high) == pytest.approx((min(values), max(values)), abs=1e-6)
    assert result.ambiguous == pytest.approx(
        sum(p for text, p in top.items() if len(POSSIBLE_LABELS[text]) > 1)
    )
    assert result.mass == pytest.approx(sum(p for text, p in top.items() if text in ("0", "80")))


def test_the_result_has_distribution_argmax_and_entropy() -> None:
    result = weighed(tokens(("4", {"5": 0.4, "4": 0.1, "The": 0.5})), FIVE)
    assert list(result.distribution) == ["4", "5"]
    assert result.distribution == pytest.approx({"4": 0.1, "5": 0.4})
    assert result.argmax == "5"
    assert result.entropy == pytest.approx(-0.2 * math.log(0.2) - 0.8 * math.log(0.8))


def test_the_emitted_token_counts_if_it_is_not_listed() -> None:
    result = from_logprobs((Token("4", math.log(0.5), (("5", math.log(0.25)),)),), 0, "4", FIVE)
    assert result.distribution == pytest.approx({"4": 0.5, "5": 0.25})


def test_the_emitted_token_counts_without_alternatives() -> None:
    result = from_logprobs((Token("4", math.log(0.8)),), 0, "4", FIVE)
    assert (result.value, result.mass) == (4.0, pytest.approx(0.8))
    assert (result.low, result.high) == (pytest.approx(0.8 * 4 + 0.2), pytest.approx(0.8 * 4 + 1.0))


def test_a_repeated_alternative_counts_once() -> None:
    half = math.log(0.5)
    for repeated in (half, half - 0.01, -9999.0):
        for order in [(half, repeated), (repeated, half)]:
            listed = (("4", order[0]), ("5", half), ("4", order[1]))
            result = from_logprobs((Token("4", half, listed),), 0, "4", FIVE)
            assert result.distribution == pytest.approx({"4": 0.5, "5": 0.5})


def test_probabilities_that_add_up_to_just_above_1_are_scaled() -> None:
    listed = (("4", math.log(0.75)), ("5", math.log(0.255)))
    result = from_logprobs((Token("4", math.log(0.75), listed),), 0, "4", FIVE)
    assert result.distribution == pytest.approx({"4": 0.75 / 1.005, "5": 0.255 / 1.005})
    assert result.mass == pytest.approx(1.0)


@pytest.mark.parametrize("logprob", [0.0, -0.3, -1.0])
def test_probabilities_that_add_up_to_far_more_than_1_are_an_error(logprob: float) -> None:
    listed = tuple((label, logprob) for label in "12345")
    with pytest.raises(ParseError, match="add up to"):
        from_logprobs((Token("4", logprob, listed),), 0, "4", FIVE)


@pytest.mark.parametrize("logprob", [-9999.0, -math.inf, math.nan, math.inf, 0.5, 9999.0])
def test_sentinel_logprobs_are_ignored(logprob: float) -> None:
    listed = (("4", math.log(0.5)), ("5", logprob))
    assert from_logprobs(
        (Token("4", math.log(0.5), listed),), 0, "4", FIVE
    ).distribution == pytest.approx({"4": 0.5})
    unlisted = (Token("4", logprob, (("5", math.log(0.5)),)),)
    assert from_logprobs(unlisted, 0, "4", FIVE).distribution == pytest.approx({"5": 0.5})


def test_a_probability_just_above_1_by_rounding_is_1() -> None:
    result = from_logprobs((Token("4", 1e-7, (("4", 1e-7), ("5", -20.0))),), 0, "4", FIVE)
    assert (result.argmax, result.mass) == ("4", pytest.approx(1.0))
    assert result.mass <= 1


@pytest.mark.parametrize("reply", [[("4", {"4": 1.0})], ["So", " be", " it", ": ", "4"]])
def test_zero_mass_on_the_scale_is_an_error_and_not_a_score(reply: list[Position | str]) -> None:
    with_score = tokens(*reply)
    text = "".join(token.text for token in with_score)
    without_label = Token("4", -9999.0, (("The", -0.1), ("It", -3.0), ("7", -4.0)))
    with pytest.raises(ParseError, match="no probability on any label") as caught:
        from_logprobs((*with_score[:-1], without_label), len(text) - 1, "4", FIVE)
    assert caught.value.raw == text


@pytest.mark.parametrize("start", [-1, 1, 7])
def test_a_position_outside_the_tokens_is_an_error(start: int) -> None:
    with pytest.raises(ParseError, match="starts at character"):
        from_logprobs(tokens("4"), start, "4", FIVE)


def test_a_label_inside_a_longer_token_has_the_tokens_probability() -> None:
    result = from_logprobs(tokens(("4x", {"4x": 0.5, "5": 0.5})), 0, "4", FIVE)
    assert result.distribution == pytest.approx({"4": 0.5, "5": 0.5})


# Draws and decisions.


def test_the_first_of_equally_frequent_labels_is_the_most_probable() -> None:
    assert from_samples(["5", "3", "3", "5", "1"], FIVE).argmax == "3"
    assert from_samples(["b", "a"], Scale(("b", "a"), (1.0, 0.0))).argmax == "b"


def test_equal_draws_have_an_entropy_of_0() -> None:
    result = from_samples(["4"] * 20, FIVE)
    assert result == ScoreDistribution(4.0, 1.0, {"4": 1.0}, 0.0, "4", 4.0, 4.0, 0.0)


@pytest.mark.parametrize("labels", [[], [None], [None] * 20])
def test_unparsed_draws_are_an_error_and_not_a_score(labels: list[None]) -> None:
    with pytest.raises(ParseError, match="no probability"):
        from_samples(labels, FIVE)


@given(st.sampled_from(SCALES), st.data())
def test_the_value_of_draws_is_their_mean(scale: Scale, data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.sampled_from([None, *scale.labels]), min_size=1).filter(any))
    result = from_samples(labels, scale)
    parsed = [scale.value(label) for label in labels if label is not None]
    unparsed = len(labels) - len(parsed)
    assert result.value == pytest.approx(fmean(parsed), abs=1e-12)
    assert result.mass == pytest.approx(len(parsed) / len(labels))
    assert result.low == pytest.approx(fmean([*parsed, *[scale.low] * unparsed]), abs=1e-12)
    assert result.high == pytest.approx(fmean([*parsed, *[scale.high] * unparsed]), abs=1e-12)
    check_is_consistent(result, scale)


def test_missing_mass_of_a_decision_widens_its_bounds() -> None:
    result = from_probabilities({"4": 0.5, "5": 0.25}, FIVE)
    assert (result.value, result.mass) == (pytest.approx(3.25 / 0.75), 0.75)
    assert (result.low, result.high) == pytest.approx((3.25 + 0.25 * 1, 3.25 + 0.25 * 5))


def test_probabilities_of_a_decision_that_add_up_to_just_above_1_are_scaled() -> None:
    result = from_probabilities({"4": 0.51, "5": 0.51}, FIVE)
    assert (result.value, result.mass) == (pytest.approx(4.5), 1.0)
    assert (result.low, result.high) == (4.5, 4.5)
    assert result.distribution == pytest.approx({"4": 0.5, "5": 0.5})


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({}, "no probability"), ({"4": 0.0}, "no probability"), ({"4": 0.5, "6": 0.5}, "not on the scale: 6"),
        ({"٤": 1.0}, "not on the scale"), ({"4": 60.0, "5": 40.0}, "not probabilities"),
        ({"4": 0.6, "5": 0.46}, "not probabilities"),
        ({"4": 1.1, "5": -0.1}, "not probabilities"), ({"4": math.nan}, "not probabilities"),
        ({"4": math.inf}, "not probabilities"),
    ],
)  # fmt: skip
def test_an_invalid_distribution_is_an_error(shares: dict[str, float], message: str) -> None:
    with pytest.raises(ParseError, match=message):
        from_probabilities(shares, FIVE)


def test_a_drawn_label_that_is_not_on_the_scale_is_an_error() -> None:
    with pytest.raises(ParseError, match="not on the scale: 6"):
        from_samples(["4", "6"], FIVE)


@given(st.sampled_from(SCALES), st.data())
def test_a_decision_scores_like_tokens_with_equal_probabilities(
    scale: Scale, data: st.DataObject
) -> None:
    weights = data.draw(
        st.lists(st.floats(0, 1), min_size=len(scale.labels), max_size=len(scale.labels)).filter(
            any
        )
    )
    share = data.draw(st.floats(0.01, 1)) / max(sum(weights), 1e-9)
    shares = {label: weight * share for label, weight in zip(scale.labels, weights, strict=True)}
    assume(sum(shares.values()) > 0)
    result = from_probabilities(shares, scale)
    assert result.value == pytest.approx(scale.expected(shares))
    assert result.mass == pytest.approx(math.fsum(shares.values()))
    check_is_consistent(result, scale)
    if scale is FIVE:
        label = result.argmax
        listed = tuple((text, math.log(p)) for text, p in shares.items() if p)
        by_tokens = from_logprobs((Token(label, math.log(shares[label]), listed),), 0, label, scale)
        assert (by_tokens.value, by_tokens.mass) == pytest.approx((result.value, result.mass))
        assert (by_tokens.low, by_tokens.high) == pytest.approx((result.low, result.high))


def check_is_consistent(result: ScoreDistribution, scale: Scale) -> None:
    assert scale.low <= result.low <= result.high <= scale.high
    assert scale.low <= result.value <= scale.high
    assert result.ambiguous or result.low <= result.value <= result.high
    assert 0 < result.mass <= 1
    assert result.ambiguous >= 0
    assert set(result.distribution) <= set(scale.labels)
    assert all(0 < p <= 1 for p in result.distribution.values())
    assert result.mass == pytest.approx(math.fsum(result.distribution.values()))
    assert 0 <= result.entropy <= math.log(len(scale.labels)) + 1e-9
    assert result.distribution[result.argmax] == max(result.distribution.values())


# Any probabilities: a reply "1" or "4" among spellings of labels, beginnings of labels and other words.
SPELLINGS = [
    "1",
    " 1",
    "１",
    "2",
    " 2\n",
    "4",
    "**4",
    "5.",
    "9",
    "10",
    " 10",
    "The",
    "",
    "-",
    "7점",
    "45",
    "1.5",
]


@st.composite
def alternatives(draw: st.DrawFn, *outputs: str) -> dict[str, float]:
    """Draw probabilities that add up to at most 1, for `outputs` and other texts, in any order."""
    others = draw(st.sets(st.sampled_from(SPELLINGS).filter(lambda t: t not in outputs)))
    texts = draw(st.permutations([*outputs, *others]))
    weights = draw(st.lists(st.floats(1e-9, 1), min_size=len(texts), max_size=len(texts)))
    share = draw(st.floats(0.01, 1)) / sum(weights)
    return {text: weight * share for text, weight in zip(texts, weights, strict=True)}


@st.composite
def replies(draw: st.DrawFn) -> tuple[Position, ...]:
    first = draw(st.sampled_from(["1", "4"]))
    following = []
    if first == "1" and draw(st.booleans()):
        following = [("0", draw(alternatives("0", "\n")))]
    return ((first, draw(alternatives(first))), *following)


@given(replies(), st.randoms(use_true_random=False))
def test_the_order_of_alternatives_does_not_matter(
    reply: tuple[Position, ...], random: Random
) -> None:
    shuffled_reply = [
        (text, dict(random.sample(list(top.items()), len(top)))) for text, top in reply
    ]
    result, shuffled = weighed(tokens(*reply), TEN), weighed(tokens(*shuffled_reply), TEN)
    check_is_consistent(result, TEN)
    assert result.mass + result.ambiguous <= 1 + 1e-9
    assert result.value == pytest.approx(TEN.expected(result.distribution))
    assert shuffled.distribution == pytest.approx(result.distribution)
    assert shuffled.value == pytest.approx(result.value)
    assert (shuffled.low, shuffled.high) == pytest.approx((result.low, result.high))


@given(alternatives("4"), st.floats(0.01, 0.99))
def test_probabilities_of_spellings_of_one_label_are_added(
    top: dict[str, float], share: float
) -> None:
    assume(" 4" not in top)
    split = top | {"4": top["4"] * share, " 4": top["4"] * (1 - share)}
    expected, result = weighed(tokens(("4", top)), FIVE), weighed(tokens(("4", split)), FIVE)
    assert (result.value, result.mass) == pytest.approx((expected.value, expected.mass))
    assert result.low == pytest.approx(expected.low)


# Any tokens, any position in them, and any scale.
TEXTS = st.text(max_size=4) | st.sampled_from(
    [
        *SPELLINGS, *(label for scale in SCALES for label in scale.labels), "four", "One", "四", "네", " 점", "+", "–",
        "٤", "p",
    ]
)  # fmt: skip
LOGPROBS = st.floats(-50, 0) | st.sampled_from(
    [0.0, -9999.0, -math.inf, math.nan, math.inf, 1e-7, 0.5]
)
TOKENS = st.builds(
    Token, TEXTS, LOGPROBS, st.lists(st.tuples(TEXTS, LOGPROBS), max_size=20).map(tuple)
)
FINITE = st.floats(-1e6, 1e6)
ANY_SCALE = st.sampled_from(SCALES) | st.dictionaries(TEXTS, FINITE, min_size=1, max_size=6).map(
    lambda values: Scale(tuple(values), tuple(values.values()))
)


@given(st.lists(TOKENS, min_size=1, max_size=4), ANY_SCALE, st.data())
def test_any_tokens_give_a_value_on_the_scale_or_a_parse_error(
    reply: list[Token], scale: Scale, data: st.DataObject
) -> None:
    start = data.draw(st.integers(-1, sum(len(token.text) for token in reply)))
    label = data.draw(st.sampled_from(scale.labels))
    shuffled = [Token(t.text, t.logprob, tuple(data.draw(st.permutations(t.top)))) for t in reply]
    try:
        result = from_logprobs(reply, start, label, scale)
    except ParseError as error:
        with pytest.raises(ParseError, match=re.escape(str(error))):
            from_logprobs(shuffled, start, label, scale)
        return
    check_is_consistent(result, scale)
    of_shuffled = from_logprobs(shuffled, start, label, scale)
    width = max(1.0, scale.high - scale.low)
    assert dict(of_shuffled.distribution) == pytest.approx(
        dict(result.distribution), rel=1e-12, abs=1e-15
    )
    for name in ("value", "low", "high"):
        expected = getattr(result, name)
        assert getattr(of_shuffled, name) == pytest.approx(expected, abs=1e-12 * width)


@given(st.sampled_from(SCALES), st.data())
def test_a_parsed_label_has_a_probability_for_any_token_boundaries(
    scale: Scale, data: st.DataObject
) -> None:
    label = data.draw(st.sampled_from(scale.labels))
    index = label_index(scale)
    words = [word for word, named in index.words.items() if named == label]
    counted = [f"{word} 점" for word, named in index.counted.items() if named == label]
    upper = label.upper() if index.loose else label
    written = data.draw(st.sampled_from([label, upper, *words, *counted]))
    form = data.draw(
        st.sampled_from(
            [
                "{}",
                " **{}**\n",
                "Score: {}.",
                '{{"score": "{}"}}',
                "<think>1</think>{}",
                "```\n{}\n```",
            ]
        )
    )
    text = form.format(written)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1)))) if len(text) > 1 else []
    pieces = [text[i:j] for i, j in pairwise([0, *cuts, len(text)])]
    tops = st.lists(st.tuples(TEXTS, st.floats(-50, -1)), max_size=5).map(tuple)
    shares = [data.draw(tops) for _ in pieces]
    # all below 0.05
    listed = [tuple((text, logprob - 3) for text, logprob in share) for share in shares]
    reply = [Token(piece, -0.3, share) for piece, share in zip(pieces, listed, strict=True)]
    parsed = find(text, "score", scale)
    assert parsed.label == label
    result = from_logprobs(reply, parsed.start, parsed.label, scale)
    check_is_consistent(result, scale)
    assert result.distribution[label] > 0
