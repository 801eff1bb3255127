"""A reply that refuses to evaluate gives no score, and a reason may be about what cannot be done."""

from __future__ import annotations

import json

import pytest

from judge.core.errors import ParseError
from judge.core.records import ReplyKind, Scale
from judge.scoring.parse import find

FIVE = Scale.integers(1, 5)
ANSWERS = Scale(("no", "yes"), (0.0, 1.0))
KINDS: tuple[ReplyKind, ...] = ("score", "score_then_reason", "reason_then_score")
JUDGED = "The ferry left at nine."

REFUSALS = [
    "I cannot evaluate this.",
    "I can't rate this text, because it is empty.",
    "I'm unable to judge the response.",
    "I am not able to give a score.",
    "I do not have enough information to assess this.",
    "It is not possible to score this.",
    "This text cannot be evaluated.",
    "Unable to evaluate.",
    "As an AI, I can't judge poems.",
    "It's impossible to rate this response.",
    "There is not enough information to assess the text.",
    "I cannot complete this evaluation.",
    "I can't fulfill your request.",
    "Evaluation is not possible.",
    "Cannot be scored.",
    "I must decline to rate it.",
    "評価できません。",
    "申し訳ありませんが、この文章は採点できません。",
    "情報が足りないため判断できません。",
    "ただし採点は不可能です。",
    "お答えできません。",
    "スコアを付けることはできません。",
    "평가할 수 없습니다.",
    "죄송하지만 이 글은 평가할 수 없습니다.",
    "평가가 불가능합니다.",
    "평가를 진행할 수 없습니다.",
    "글이 비어 있어 평가할 수 없습니다.",
    "정보가 부족하여 판단하기 어렵습니다.",
    "我无法评价这篇文章。",
    "抱歉，我不能评分。",
    "由于信息不足，无法判断。",
    "此文本难以评估。",
    "Ich kann diesen Text nicht bewerten.",
    "Je ne peux pas évaluer ce texte.",
    "No puedo evaluar este texto.",
]
REASONS = [
    "I cannot find the date in the source.",
    "I can't rate it higher, because one name is wrong.",
    "I cannot give it a higher score.",
    "I cannot judge whether the price is right, but the rest is.",
    "Readers cannot tell which ferry is meant.",
    "The claim cannot be checked.",
    "The response says that it cannot evaluate films.",
    'It ends with "I cannot evaluate this."',
    "The bot answers: I can't help with that.",
    "The bot replied that it cannot be rated.",
    "There is not enough information to say when it left.",
    "Its rating is not possible to explain.",
    "It cannot be scored higher, since one name is wrong.",
    "具体性は評価できません。",
    "質問に回答できていない。",
    "読者が判断できない。",
    "사실인지 판단하기 어렵다.",
    "질문에 답변할 수 없다고 말한다.",
    "无法判断日期是否正确。",
    "该答案不能回答问题。",
]


def replies(words: str) -> list[tuple[ReplyKind, str]]:
    """Return a reply of each kind, and an object, that has the score 3 beside these words."""
    return [
        ("score", f"Score: 3. {words}"),
        ("score_then_reason", f"Score: 3\n{words}"),
        ("reason_then_score", f"{words}\nScore: 3"),
        ("reason_then_score", json.dumps({"reason": words, "score": 3}, ensure_ascii=False)),
    ]


@pytest.mark.parametrize("words", REFUSALS)
def test_a_score_beside_a_refusal_does_not_count(words: str) -> None:
    for kind, reply in replies(words):
        with pytest.raises(ParseError):
            find(reply, kind, FIVE, "Coherence", JUDGED)


@pytest.mark.parametrize("words", REFUSALS)
def test_a_refusal_alone_is_no_score(words: str) -> None:
    for kind in KINDS:
        for scale in (FIVE, ANSWERS):
            with pytest.raises(ParseError):
                find(words, kind, scale, "Coherence", JUDGED)


@pytest.mark.parametrize("words", REASONS)
def test_a_reason_about_what_cannot_be_done_is_no_refusal(words: str) -> None:
    for kind, reply in replies(words):
        assert find(reply, kind, FIVE, "Coherence", JUDGED).label == "3"


def test_a_refusal_in_the_cited_sentence_is_no_refusal() -> None:
    reply = "Quote: I cannot evaluate this.\nIt refuses.\nScore: 3"
    assert find(reply, "reason_then_score", FIVE, "Coherence", JUDGED, cite=True).label == "3"
