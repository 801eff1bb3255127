"""Token probabilities to a value: the vectors of the scoring rules, then what must hold for any probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judge.errors import ParseError
from judge.parse import find
from judge.records import ReplyKind, Scale, Token
from judge.weigh import Weighed, weigh

FIVE = Scale.integers(1, 5)
TEN = Scale.integers(1, 10)
SIGNED = Scale.integers(-2, 2)
HUNDRED = Scale.integers(0, 100, 10)
HALVES = Scale(("0", "0.5", "1"), (0.0, 0.5, 1.0))
VERDICT = Scale(("fail", "pass"), (0.0, 1.0))
CASED = Scale(("m", "M"), (1.0, 2.0))
WORDS = Scale(("good", "good enough", "very good"), (2.0, 1.0, 3.0))

Place = tuple[str, Mapping[str, float]]


def tokens(*places: Place | str) -> tuple[Token, ...]:
    """A reply: the emitted text and its place's probabilities; a text alone was certain."""
    pairs = [(place, {place: 1.0}) if isinstance(place, str) else place for place in places]
    return tuple(
        Token(text, math.log(top[text]), tuple((t, math.log(p)) for t, p in top.items())) for text, top in pairs
    )


def weighed(reply: tuple[Token, ...], scale: Scale, kind: ReplyKind = "score") -> Weighed:
    """As the runner does it: the score is found in the joined tokens, then weighed there."""
    found = find("".join(token.text for token in reply), kind, scale)
    return weigh(reply, found.start, found.label, scale)


VECTORS = [
    # reply tokens, scale, kind → value, mass
    ([("4", {"4": 0.6, "5": 0.3, "3": 0.1})], FIVE, "score", 4.2, 1.0),
    ([(" 4", {" 4": 0.5, "4": 0.2, "5": 0.3})], FIVE, "score", 4.3, 1.0),
    ([("４", {"４": 0.5, "4": 0.5})], FIVE, "score", 4.0, 1.0),
    ([("4", {"4": 0.4, "The": 0.3, "5": 0.2})], FIVE, "score", 4.33333333, 0.6),
    ([("3", {"3": 0.02, "I": 0.98})], FIVE, "score", 3.0, 0.02),
    (
        ["Has", " 4", " facts", ".", "\n", "Score", ":", " ", ("4", {"4": 0.7, "5": 0.3})],
        FIVE,
        "reason_then_score",
        4.3,
        1.0,
    ),
    ([("1", {"1": 0.4, "9": 0.3, "8": 0.3}), ("0", {"0": 0.9, "\n": 0.1})], TEN, "score", 8.74, 1.0),
    ([("8", {"8": 0.5, "9": 0.3, "1": 0.2})], TEN, "score", 8.375, 0.8),
    # The score's token carries more than the score.
    ([("4\n", {"4\n": 0.5, "5\n": 0.5}), "Clear."], FIVE, "score_then_reason", 4.5, 1.0),
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
    ([("1", {"1": 0.8, "2": 0.2}), ("0", {"0": 1.0}), ("0", {"0": 0.25, "\n": 0.75})], HUNDRED, "score", 30.0, 1.0),
    ([("100", {"100": 0.5, "90": 0.5})], HUNDRED, "score", 95.0, 1.0),
    ([("0", {"0": 0.8, "1": 0.2}), (".", {".": 0.75, "\n": 0.25}), "5"], HALVES, "score", 0.5, 1.0),
    ([("0", {"0": 0.5, "1": 0.5}), ".", ("0", {"0": 0.5, "5": 0.5})], HALVES, "score", 0.625, 1.0),
    ([("f", {"f": 0.4, "pass": 0.4, "p": 0.2}), ("ail", {"ail": 0.5, "oo": 0.5})], VERDICT, "score", 0.75, 0.8),
    ([("Pass", {"Pass": 0.3, " PASS": 0.2, "fail": 0.3, "passable": 0.2})], VERDICT, "score", 0.625, 0.8),
    ([("M", {"M": 0.75, "m": 0.25})], CASED, "score", 1.75, 1.0),
    ([("good", {"good": 0.8, "very": 0.2}), (" enough", {" enough": 0.5, ".": 0.5})], WORDS, "score", 1.8, 1.0),
]


@pytest.mark.parametrize(("reply", "scale", "kind", "value", "mass"), VECTORS)
def test_vectors(reply: list[Place | str], scale: Scale, kind: ReplyKind, value: float, mass: float) -> None:
    result = weighed(tokens(*reply), scale, kind)
    assert result.value == pytest.approx(value, abs=1e-7)
    assert result.mass == pytest.approx(mass)


@pytest.mark.parametrize(
    ("reply", "scale", "ambiguous", "low", "high"),
    [
        # All of it seen and clear: the value itself (4.2).
        ([("4", {"4": 0.6, "5": 0.3, "3": 0.1})], FIVE, 0.0, 4.2, 4.2),
        # A tenth unseen (4.3333 · .6 of .7): between 1 and 5. The listed "The" can be no label.
        ([("4", {"4": 0.4, "The": 0.3, "5": 0.2})], FIVE, 0.0, (2.6 + 0.1) / 0.7, (2.6 + 0.5) / 0.7),
        # The alternative 1 is a 1 or a 10: (6.7 + .2 · 1) and (6.7 + .2 · 10).
        ([("8", {"8": 0.5, "9": 0.3, "1": 0.2})], TEN, 0.2, 6.9, 8.7),
        # The reply ends after its 1, so that is a 1.
        ([("1", {"1": 0.5, "9": 0.5})], TEN, 0.0, 5.0, 5.0),
        # What follows the 1 is listed for .8 only: 8.5 from the 10 and the 9, and .5 · .2 is a 1 or a 10.
        ([("1", {"1": 0.5, "9": 0.5}), ("0", {"0": 0.8})], TEN, 0.1, 8.5 + 0.1, 8.5 + 1.0),
        # An alternative minus is -1 or -2.
        ([("0", {"0": 0.5, "-": 0.5})], SIGNED, 0.5, -1.0, 0.0),
        # 10 or 100, where the value is 5: the bounds are never narrower than the value.
        ([("0", {"0": 0.4, "1": 0.2, "10\n": 0.4})], HUNDRED, 0.2, 5.0, 24.0),
    ],
)
def test_bounds_hold_what_is_not_known(
    reply: list[Place | str], scale: Scale, ambiguous: float, low: float, high: float
) -> None:
    result = weighed(tokens(*reply), scale)
    assert result.ambiguous == pytest.approx(ambiguous)
    assert (result.low, result.high) == (pytest.approx(low), pytest.approx(high))


def test_the_distribution_is_described() -> None:
    result = weighed(tokens(("4", {"5": 0.4, "4": 0.1, "The": 0.5})), FIVE)
    assert list(result.distribution) == ["4", "5"]
    assert result.distribution == pytest.approx({"4": 0.1, "5": 0.4})
    assert result.argmax == "5"
    assert result.entropy == pytest.approx(-0.2 * math.log(0.2) - 0.8 * math.log(0.8))


def test_the_emitted_token_counts_where_its_list_lacks_it() -> None:
    result = weigh((Token("4", math.log(0.5), (("5", math.log(0.25)),)),), 0, "4", FIVE)
    assert result.distribution == pytest.approx({"4": 0.5, "5": 0.25})


def test_a_token_without_alternatives_still_has_its_own_probability() -> None:
    result = weigh((Token("4", math.log(0.8)),), 0, "4", FIVE)
    assert (result.value, result.mass) == (4.0, pytest.approx(0.8))
    assert (result.low, result.high) == (pytest.approx(0.8 * 4 + 0.2), pytest.approx(0.8 * 4 + 1.0))


def test_an_entry_that_the_server_repeats_counts_once() -> None:
    half = math.log(0.5)
    for repeated in (half, half - 0.01, -9999.0):
        for order in [(half, repeated), (repeated, half)]:
            listed = (("4", order[0]), ("5", half), ("4", order[1]))
            result = weigh((Token("4", half, listed),), 0, "4", FIVE)
            assert result.distribution == pytest.approx({"4": 0.5, "5": 0.5})


def test_probabilities_that_sum_to_more_than_one_keep_their_proportions() -> None:
    result = weigh((Token("4", math.log(0.9), (("4", math.log(0.9)), ("5", math.log(0.3)))),), 0, "4", FIVE)
    assert result.distribution == pytest.approx({"4": 0.75, "5": 0.25})
    assert (result.mass, result.low, result.high) == pytest.approx((1.0, 4.25, 4.25))


@pytest.mark.parametrize("logprob", [-9999.0, -math.inf, math.nan, math.inf, 0.5, 9999.0])
def test_sentinels_are_no_probabilities(logprob: float) -> None:
    listed = (("4", math.log(0.5)), ("5", logprob))
    assert weigh((Token("4", math.log(0.5), listed),), 0, "4", FIVE).distribution == pytest.approx({"4": 0.5})
    unlisted = (Token("4", logprob, (("5", math.log(0.5)),)),)
    assert weigh(unlisted, 0, "4", FIVE).distribution == pytest.approx({"5": 0.5})


def test_a_certain_token_may_be_certain_by_a_rounding_error_more() -> None:
    result = weigh((Token("4", 1e-7, (("4", 1e-7), ("5", -20.0))),), 0, "4", FIVE)
    assert (result.argmax, result.mass) == ("4", pytest.approx(1.0))
    assert result.mass <= 1


@pytest.mark.parametrize("reply", [[("4", {"4": 1.0})], ["So", " be", " it", ": ", "4"]])
def test_no_mass_on_the_scale_is_an_error_and_not_zero(reply: list[Place | str]) -> None:
    certain = tokens(*reply)
    blind = (*certain[:-1], Token("4", -9999.0, (("The", -0.1), ("It", -3.0), ("7", -4.0))))
    with pytest.raises(ParseError, match="no probability on any label") as caught:
        weigh(blind, len("".join(t.text for t in certain)) - 1, "4", FIVE)
    assert caught.value.raw == "".join(t.text for t in certain)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (tokens(("The", {"The": 0.9, "It": 0.1}), " summary"), "not a score"),
        (tokens(("7", {"7": 1.0})), "7 is off the scale"),
    ],
)
def test_a_reply_without_a_score_is_not_weighed(reply: tuple[Token, ...], message: str) -> None:
    with pytest.raises(ParseError, match=message):
        weighed(reply, FIVE)


@pytest.mark.parametrize("start", [-1, 1, 7])
def test_a_place_outside_of_the_tokens_is_an_error(start: int) -> None:
    with pytest.raises(ParseError, match="outside"):
        weigh(tokens("4"), start, "4", FIVE)


def test_a_written_label_that_no_token_shows_keeps_its_own_probability() -> None:
    result = weigh(tokens(("4x", {"4x": 0.5, "5": 0.5})), 0, "4", FIVE)
    assert result.distribution == pytest.approx({"4": 0.5, "5": 0.5})


# Any probabilities: a reply "1" or "4" among spellings of labels, beginnings of labels and other words.
SPELLINGS = ["1", " 1", "１", "2", " 2\n", "4", "**4", "5.", "9", "10", " 10", "The", "", "-", "7점", "45", "1.5"]


@st.composite
def places(draw: st.DrawFn, *own: str) -> dict[str, float]:
    """A place's probabilities, in any order, summing to at most 1; those of `own` among them."""
    texts = draw(st.permutations([*own, *draw(st.sets(st.sampled_from(SPELLINGS).filter(lambda t: t not in own)))]))
    weights = draw(st.lists(st.floats(1e-9, 1), min_size=len(texts), max_size=len(texts)))
    share = draw(st.floats(0.01, 1)) / sum(weights)
    return {text: weight * share for text, weight in zip(texts, weights, strict=True)}


@st.composite
def replies(draw: st.DrawFn) -> tuple[Place, ...]:
    first = draw(st.sampled_from(["1", "4"]))
    following = [("0", draw(places("0", "\n")))] if first == "1" and draw(st.booleans()) else []
    return ((first, draw(places(first))), *following)


@given(replies())
def test_the_value_lies_within_its_bounds_on_the_scale(reply: tuple[Place, ...]) -> None:
    result = weighed(tokens(*reply), TEN)
    assert 1 <= result.low <= result.value <= result.high <= 10
    assert 0 < result.mass <= 1
    assert result.mass == pytest.approx(sum(result.distribution.values()))
    assert result.mass + result.ambiguous <= 1 + 1e-9
    assert 0 <= result.entropy <= math.log(10) + 1e-9
    assert result.value == pytest.approx(TEN.expected(result.distribution))


@given(replies(), st.randoms(use_true_random=False))
def test_the_order_of_the_alternatives_does_not_matter(reply: tuple[Place, ...], random: Random) -> None:
    shuffled = []
    for text, top in reply:
        items = list(top.items())
        random.shuffle(items)
        shuffled.append((text, dict(items)))
    one, other = weighed(tokens(*reply), TEN), weighed(tokens(*shuffled), TEN)
    assert one.distribution == pytest.approx(other.distribution)
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


@given(places("4"), st.floats(0.01, 0.99))
def test_spellings_of_one_label_add_up(top: dict[str, float], share: float) -> None:
    assume(" 4" not in top)
    split = top | {"4": top["4"] * share, " 4": top["4"] * (1 - share)}
    one, other = weighed(tokens(("4", top)), FIVE), weighed(tokens(("4", split)), FIVE)
    assert (one.value, one.mass, one.low) == pytest.approx((other.value, other.mass, other.low))


@given(st.dictionaries(st.text(max_size=4), st.floats(-50, 0), max_size=8), st.sampled_from([FIVE, SIGNED, HALVES]))
def test_any_alternatives_can_be_weighed(top: dict[str, float], scale: Scale) -> None:
    result = weigh((Token("1", -1.0, tuple(top.items())),), 0, "1", scale)
    assert scale.low <= result.low <= result.value <= result.high <= scale.high
    assert set(result.distribution) <= set(scale.labels)
