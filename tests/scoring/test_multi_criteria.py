"""A reply to several questions is split into a reply for each."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.errors import ParseError
from judge.core.records import Choice, Criterion, Response, Scale, Token
from judge.scoring import expectation, parse, strategies
from judge.scoring.multi_criteria import split_reply
from judge.scoring.strategies import SamplingOptions

FIVE, ELEVEN = Scale.integers(1, 5), Scale.integers(0, 10)


def tokens(*texts: str, top: dict[str, dict[str, float]] | None = None) -> tuple[Token, ...]:
    listed = top or {}
    reply = []
    for text in texts:
        alternatives = listed.get(text, {text: 1.0})
        reply.append(Token(text, 0.0, tuple((t, math.log(p)) for t, p in alternatives.items())))
    return tuple(reply)


def read(choice: Choice, scale: Scale = FIVE) -> tuple[float, float | None]:
    value, provenance = strategies.score_reply(
        "logprobs", [Response((choice,))], Criterion("c", "", scale), SamplingOptions()
    )
    return value, provenance.mass


def test_each_value_is_weighted_by_the_tokens_of_its_answer() -> None:
    reply_tokens = tokens(
        '{"', "a", '":', " ", "4", ',"', "b", '":', " ", "2", "}", "",
        top={"4": {"4": 0.6, "5": 0.4}, "2": {"2": 0.5, "1": 0.5}},
    )  # fmt: skip
    a, b = split_reply(Choice('{"a": 4,"b": 2}', "stop", reply_tokens), ("a", "b"))
    assert (a.text, b.text) == ("4", "2")
    assert read(a)[0] == pytest.approx(4.4)
    assert read(b)[0] == pytest.approx(1.5)


VERDICT = Scale(("fail", "pass"), (0.0, 1.0))


@pytest.mark.parametrize(
    ("reply", "texts", "top", "scale", "value"),
    [
        (  # the next token decides between 1 and 10
            '{"a":1,"b":3}', ['{"a":', "1", ',"b":3}'],
            {"1": {"1": 0.9, "7": 0.1}, ',"b":3}': {',"b":3}': 0.25, "0": 0.75}}, ELEVEN,
            0.9 * (0.25 * 1 + 0.75 * 10) + 0.1 * 7,
        ),
        (  # a token with more than the value counts once
            '{"a":4,"b":2}', ['{"a', '":4,"', 'b":2}'], {'":4,"': {'":4,"': 0.5, '":3,"': 0.5}}, FIVE, 3.5,
        ),
        ('{"a": "pass"}', ['{"a":', ' "', "pass", '"', "}"], {"pass": {"pass": 0.8, "fail": 0.2}}, VERDICT, 0.8),
    ],
)  # fmt: skip
def test_a_value_is_weighted_by_token_probabilities(
    reply: str, texts: list[str], top: dict[str, dict[str, float]], scale: Scale, value: float
) -> None:
    (a,) = split_reply(Choice(reply, "stop", tokens(*texts, top=top)), ("a",))
    assert read(a, scale) == (pytest.approx(value), pytest.approx(1.0))


def test_white_space_and_empty_tokens_around_a_reply_are_ignored() -> None:
    """llama.cpp sends white space before the reply and an empty token at its end."""
    reply_tokens = tokens(" ", "\n", "{", '"a"', ":", " 4", "}", "")
    (a,) = split_reply(Choice('{"a": 4}', "stop", reply_tokens), ("a",))
    assert read(a)[0] == 4


def test_tokens_of_another_text_than_the_reply_are_not_used() -> None:
    (answer,) = split_reply(Choice('{"a": 4}', "stop", tokens("no", " object")), ("a",))
    assert (answer.text, answer.tokens) == ("4", ())
    with pytest.raises(strategies.UnusableReply):
        read(answer)


def test_answers_of_a_reply_without_tokens_have_no_tokens() -> None:
    (answer,) = split_reply(Choice('{"a": 4}'), ("a",))
    assert answer.tokens is None


@pytest.mark.parametrize(
    ("reply", "finish", "scores"),
    [
        ('{"a": 4, "b": 2}', "stop", [4.0, 2.0]), ('```json\n{"a": 4, "b": "2"}\n```', "stop", [4.0, 2.0]),
        ('<think>{"a": 1}</think>{"a": 4, "b": 2}', "stop", [4.0, 2.0]), ('{"a": 4}', "stop", [4.0, None]),
        ('{"a": 4, "b": 9}', "stop", [4.0, None]), ('{"a": 4, "b": null}', "stop", [4.0, None]),
        ('{"a": 4, "b": 2, "b": 3}', "stop", [4.0, None]), ('{"a": 4, "c": 2}', "stop", [4.0, None]),
        ("4", "stop", [None, None]), ("[4, 2]", "stop", [None, None]),
        ('{"a": 4, "b": 2} and so on', "stop", [None, None]), ("a: 4, b: 2", "stop", [None, None]),
        ("", "stop", [None, None]), ('{"a": 4, "b"', "length", [None, None]),
        ('{"a": 4, "b": 2}', "length", [None, None]), ("I cannot do that.", "refusal", [None, None]),
    ],
)  # fmt: skip
def test_an_unclear_answer_fails_only_its_question(
    reply: str, finish: str, scores: list[float | None]
) -> None:
    values: list[float | None] = []
    for choice in split_reply(Choice(reply, finish), ("a", "b")):
        try:
            values.append(FIVE.value(parse.read(choice, "score", FIVE).label))
        except ParseError:
            values.append(None)
    assert values == scores


@pytest.mark.parametrize(
    "reply",
    [
        'I cannot evaluate this. {"a": 4, "b": 2}',
        '{"a": 4, "b": 2, "note": "I cannot evaluate this"}',
        '{"a": 4, "b": 2, "note": "評価できません。"}',
    ],
)
def test_no_answer_counts_beside_a_refusal(reply: str) -> None:
    for choice in split_reply(Choice(reply), ("a", "b"), "It rained.", (FIVE, FIVE)):
        with pytest.raises(ParseError):
            parse.read(choice, "score", FIVE, judged="It rained.")


def test_a_refusal_in_one_answer_fails_only_its_question() -> None:
    reply = '{"a": 4, "b": {"score": 2, "reason": "I cannot evaluate this."}}'
    first, second = split_reply(Choice(reply), ("a", "b"), "It rained.", (FIVE, FIVE))
    assert parse.read(first, "score", FIVE, judged="It rained.").label == "4"
    with pytest.raises(ParseError):
        parse.read(second, "score", FIVE, judged="It rained.")


@given(st.text(max_size=80), st.sampled_from(["stop", "length"]))
def test_any_text_can_be_split(reply: str, finish: str) -> None:
    assert len(split_reply(Choice(reply, finish, tokens(*reply)), ("a", "b"))) == 2


@given(
    st.lists(st.sampled_from(FIVE.labels), min_size=2, max_size=2),
    st.sampled_from(["", " ", "\n  "]),
    st.data(),
)
def test_values_are_parsed_for_any_token_boundaries(
    labels: list[str], gap: str, data: st.DataObject
) -> None:
    reply = f'{{{gap}"a":{gap}{labels[0]},{gap}"b":{gap}{labels[1]}{gap}}}'
    cuts = sorted({0, len(reply), *data.draw(st.lists(st.integers(0, len(reply)), max_size=9))})
    reply_tokens = tuple(Token(reply[i:j], 0.0) for i, j in pairwise(cuts))
    for choice, label in zip(
        split_reply(Choice(reply, "stop", reply_tokens), ("a", "b")), labels, strict=True
    ):
        assert choice.text == label
        assert choice.tokens is not None
        whole = "".join(token.text for token in choice.tokens)
        parsed = parse.find(whole, "score", FIVE)
        assert (
            expectation.from_logprobs(choice.tokens, parsed.start, parsed.label, FIVE).argmax
            == label
        )


def answers(reply: str, finish_reason: str = "stop", *, judged: str | None = "Nine.") -> list[str]:
    """Return the label of each of three questions, "" for one without an answer."""
    names = ("facts.1", "facts.2", "facts.3")
    scale = Scale(("no", "yes"), (0.0, 1.0))
    labels = []
    for choice in split_reply(Choice(reply, finish_reason), names, judged, (scale,)):
        try:
            labels.append(parse.read(choice, "score", scale, "", judged).label)
        except ParseError:
            labels.append("")
    return labels


@pytest.mark.parametrize(
    "reply",
    [
        "1. yes\n2. no\n3. yes",
        "1) **Yes**\n2) **No**\n3) **Yes**",
        "**1.** Yes, the team is named.\n\n**2.** No - the date is missing.\n\n**3.** Yes.",
        "- facts.1: yes\n- facts.2: no\n- facts.3: yes",
        "<think>Hm.</think>\n1. はい\n2. いいえ\n3. はい",
    ],
)
def test_a_numbered_list_answers_the_questions_in_their_order(reply: str) -> None:
    assert answers(reply) == ["yes", "no", "yes"]


@pytest.mark.parametrize(
    "reply",
    [
        "1. yes\n2. no",
        "1. yes\n2. no\n3. yes\n4. no",
        "1. yes\n3. no\n2. yes",
        "1. yes\n2. yes\n2. no",
        "yes\nno\nyes",
        "Answers:\n1. yes\n2. no\n3. yes",
        "tone.1: yes\nfacts.2: no\nfacts.3: yes",
        "1.5 yes\n2. no\n3. yes",
        "1. yes\n2. no\n3. yes\nScore: 2",
    ],
)
def test_a_list_with_other_numbers_than_the_questions_answers_none(reply: str) -> None:
    assert answers(reply) == ["", "", ""]


def test_a_list_that_is_cut_or_read_strictly_answers_none() -> None:
    assert answers("1. yes\n2. no\n3. yes", "length") == ["", "", ""]
    assert answers("1. yes\n2. no\n3. yes", judged=None) == ["", "", ""]


def test_an_entry_of_a_list_may_lack_an_answer() -> None:
    assert answers("1. yes\n2. It depends.\n3. yes or no") == ["yes", "", ""]
