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
    "reply",
    [
        "要点を押さえているので、4点とします。",
        "とても読みやすいので、4点です。",
        "簡潔で、同時に正確なので、4点です。",
        "おもしろい文章なので、4点です。",
        "例えば日付が誤っているため、4点とします。",
        "読み手に誤解をもたらすため、4点です。",
        "誤りは見当たらないので、4点を付けます。",
        "信頼できる内容なので、4点とします。",
        "正確と言えるため、4点とします。",
        "처음부터 끝까지 일관되므로 4점을 부여합니다.",
        "오류가 거의 없으므로 4점을 부여합니다.",
        "물 흐르듯 자연스러우므로 4점입니다.",
        "内容符合要求，因此给4分。",
        "语言简约，因此给4分。",
        "几乎没有错误，因此给4分。",
        "尽可能保留了细节，因此给4分。",
    ],
)
def test_reads_a_reason_whose_words_only_look_like_a_condition(reply: str, kind: ReplyKind) -> None:
    assert find(reply, kind, FIVE, "", JUDGED).label == "4"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "reply",
    [
        "誤りがあったら、4点です。",
        "誤りさえなければ、4点です。",
        "短くても、4点です。",
        "もし正しければ、4点です。",
        "正しいなら、4点です。",
        "要求に従って、4点を付けます。",
        "例えば、4点です。",
        "맞다면 4점을 부여합니다.",
        "거의 4점입니다.",
        "처음에는 4점입니다.",
        "맞는 듯하여 4점입니다.",
        "按照要求，给4分。",
        "可能是4分。",
        "几乎是4分。",
        "约4分。",
    ],
)
def test_refuses_a_score_in_a_sentence_with_a_condition(reply: str, kind: ReplyKind) -> None:
    with pytest.raises(ParseError):
        find(reply, kind, FIVE, "", JUDGED)


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
