"""Replies that were cut at the token limit: what comes before a cut counts only if it is whole."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from judge.core.errors import ParseError
from judge.core.records import Choice, ReplyKind, Response, Scale, Token
from judge.criteria import load
from judge.scoring import strategies
from judge.scoring.parse import read
from judge.scoring.strategies import SamplingOptions, Strategy

FIVE = Scale.integers(1, 5)
TEN = Scale.integers(1, 10)
HALVES = Scale(("1", "1.5", "2"), (1.0, 1.5, 2.0))
PAIR = Scale(("A", "B"), (1.0, 0.0))
ANSWERS = Scale(("no", "yes"), (0.0, 1.0))
JUDGED = "The ferry left at nine."
SCORE_FIRST: tuple[ReplyKind, ...] = ("score", "score_then_reason")
COHERENCE = load("coherence")


def label(text: str, kind: ReplyKind, scale: Scale = FIVE) -> str | None:
    """Return the label of a reply that was cut at the token limit, or None if it is refused."""
    try:
        return read(Choice(text, "length"), kind, scale, "Coherence", JUDGED).label
    except ParseError:
        return None


def value(strategy: Strategy, text: str, scale: Scale, top: dict[str, float]) -> float:
    """Return the value of a reply that is one token, with its alternatives, and was cut behind it."""
    listed = tuple((word, math.log(share)) for word, share in top.items())
    token = Token(text, math.log(top[text]), listed)
    response = Response((Choice(text, "length", (token,)),))
    criterion = replace(COHERENCE, scale=scale)
    result, _ = strategies.score_reply(
        strategy, [response], criterion, SamplingOptions(), judged=JUDGED
    )
    return result


@pytest.mark.parametrize(
    ("text", "scale", "expected"),
    [
        ("4\n\nThe text is clear, because", FIVE, "4"),
        ("**4**\n\nThe te", FIVE, "4"),
        ("Score: 4/5\nIt names 2 of 3 teams and", FIVE, "4"),
        ("4\n- it is short\n- it", FIVE, "4"),
        ("4\n\n“Nine” is right, and", FIVE, "4"),
        ("4점\n\n글이 명확하고", FIVE, "4"),
        ("4点\n\n明確で、", FIVE, "4"),
        ("4分\n\n内容完整，", FIVE, "4"),
        ("<think>Fine.</think>\n4\n\nThe text", FIVE, "4"),
        ("1\n\nNo fact is", TEN, "1"),
        ("No.\nOne name is wr", ANSWERS, "no"),
        ("A\n\nText A is better because it", PAIR, "A"),
    ],
)
def test_a_score_in_the_first_line_counts_if_the_text_behind_it_is_cut(
    text: str, scale: Scale, expected: str
) -> None:
    assert [label(text, kind, scale) for kind in SCORE_FIRST] == [expected, expected]
    assert label(text, "reason_then_score", scale) is None


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ("4", FIVE),
        ("4\n\n", FIVE),
        ("4.", FIVE),
        ("4 The text is", FIVE),
        ("4, because the", FIVE),
        ("4\n.5, because", FIVE),
        ("4\n/10 as the", FIVE),
        ("4\nout of 10", FIVE),
        ("4\nor 5", FIVE),
        ("4\n\nor maybe 5", FIVE),
        ("4\npoints are made by", FIVE),
        ("4\n(5 if the date", FIVE),
        ("4\n5\n3", FIVE),
        ("1.\nIt is clear and", FIVE),
        ("4\n\nScore: 3", FIVE),
        ("4\n\nMy rating: 3 out of", FIVE),
        ("4\n\nWait, that is", FIVE),
        ("4\nI cannot evaluate this text.", FIVE),
        ("5\n\nI take off one point for", FIVE),
        ("7\n\nThe text is", FIVE),
        ("3-4\n\nThe text is", FIVE),
        ('"4"\nis what the text says', FIVE),
        ("Fluency: 4\nThe text", FIVE),
        ('{"score": 4,\n"reason": "The', FIVE),
        ("<think>It is\n4\nThe text", FIVE),
        ("Yes\nand no, because", ANSWERS),
        ("yes\n\nno", ANSWERS),
        ("A\nIt is clear and", PAIR),
        ("A\n\nB is better because", PAIR),
    ],
)
def test_a_cut_reply_without_a_whole_score_in_its_first_line_is_refused(
    text: str, scale: Scale
) -> None:
    for kind in SCORE_FIRST:
        assert label(text, kind, scale) is None


def test_a_filtered_reply_has_no_score_wherever_it_stands() -> None:
    with pytest.raises(ParseError, match="content filter"):
        read(Choice("4\n\nThe text is", "content_filter"), "score", FIVE, "", JUDGED)


def test_a_limit_of_one_token_leaves_the_token_probabilities() -> None:
    assert value("logprobs", "4", FIVE, {"4": 0.75, "5": 0.25}) == pytest.approx(4.25)
    assert value("logprobs", "No", ANSWERS, {"No": 0.75, "Yes": 0.25}) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("strategy", "text", "scale"),
    [
        ("single", "4", FIVE),
        ("samples", "4", FIVE),
        ("logprobs", "1", TEN),
        ("logprobs", "1", HALVES),
        ("logprobs", "4 or", FIVE),
        ("logprobs", "The", FIVE),
    ],
)
def test_a_label_that_may_go_on_is_no_score(strategy: Strategy, text: str, scale: Scale) -> None:
    with pytest.raises(ParseError, match="cut off"):
        value(strategy, text, scale, {text: 1.0})
