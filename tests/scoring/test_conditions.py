"""A condition in a reason refuses a score only if the score depends on it."""

from __future__ import annotations

import pytest

from judge.core.errors import ParseError
from judge.core.records import ReplyKind, Scale
from judge.scoring.parse import find

FIVE = Scale.integers(1, 5)
ANSWERS = Scale(("no", "yes"), (0.0, 1.0))
KINDS: tuple[ReplyKind, ...] = ("score", "score_then_reason", "reason_then_score")
JUDGED = "The ferry left at nine."


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("reply", "scale", "label"),
    [
        ("4 - it would be better if dates were given", FIVE, "4"),
        ("4: does not say if the price includes a car.", FIVE, "4"),
        ("4 - even if it is short, it is clear.", FIVE, "4"),
        ("4 - reads as if it were copied.", FIVE, "4"),
        ("4 - if it named the winner, it would be complete.", FIVE, "4"),
        ("Score: 4 - could be improved if the source were named.", FIVE, "4"),
        ("I give it a 4 because it would be clearer if the date were given.", FIVE, "4"),
        ("4点：日付があれば、さらに良い。", FIVE, "4"),
        ("4점: 늦으면 어떻게 하는지 설명합니다.", FIVE, "4"),
        ("4점 - 날짜가 있었다면 더 좋았을 것입니다.", FIVE, "4"),
        ("4分：如果有日期会更好。", FIVE, "4"),
        ("No, it does not say if the ferry sails.", ANSWERS, "no"),
        ("Yes, it tells readers what happens if a ferry is late.", ANSWERS, "yes"),
        ("はい、遅れた場合の連絡先もあります。", ANSWERS, "yes"),
    ],
)
def test_reads_a_score_whose_reason_has_a_condition(
    reply: str, scale: Scale, label: str, kind: ReplyKind
) -> None:
    assert find(reply, kind, scale, "Coherence", JUDGED).label == label


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("reply", "scale"),
    [
        ("4 - if the date is right", FIVE),
        ("4 - only if the date is right", FIVE),
        ("4, assuming the links work", FIVE),
        ("4, unless the date is wrong.", FIVE),
        ("4 - this score holds if the date is right", FIVE),
        ("Score: 4 (if the date is right)", FIVE),
        ("I give it a 4 if it is right.", FIVE),
        ("4点、間違いがなければ。", FIVE),
        ("4点、正しいなら", FIVE),
        ("4점 (날짜가 맞다면)", FIVE),
        ("4점, 오류가 없으면", FIVE),
        ("4分（如果日期正确）", FIVE),
        ("4分，除非日期有误", FIVE),
        ("Yes, only if the date is right.", ANSWERS),
        ("はい、日付が正しければ。", ANSWERS),
        ("네, 날짜가 맞다면.", ANSWERS),
        ("是，如果日期正确。", ANSWERS),
    ],
)
def test_refuses_a_score_that_depends_on_a_condition(
    reply: str, scale: Scale, kind: ReplyKind
) -> None:
    with pytest.raises(ParseError):
        find(reply, kind, scale, "Coherence", JUDGED)
