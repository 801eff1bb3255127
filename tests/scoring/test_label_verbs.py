"""Labels that are verbs or become one: "적합합니다.", "失敗しました。", "It passes."."""

from __future__ import annotations

from itertools import product

import pytest

from judge.core.errors import ParseError
from judge.core.records import ReplyKind, Scale
from judge.scoring.parse import find

KINDS: tuple[ReplyKind, ...] = ("score", "score_then_reason", "reason_then_score")
FIT_KO = Scale(("부적합", "적합"), (0.0, 1.0))
PASS_KO = Scale(("실패", "통과"), (0.0, 1.0))
GRADES_KO = Scale(("미흡", "보통", "우수"), (1.0, 2.0, 3.0))
FIT_JA = Scale(("不適合", "適合"), (0.0, 1.0))
SUCCESS_JA = Scale(("失敗", "成功"), (0.0, 1.0))
PASS_ZH = Scale(("不合格", "合格"), (0.0, 1.0))
PASS = Scale(("fail", "pass"), (0.0, 1.0))
ACCEPT = Scale(("reject", "accept"), (0.0, 1.0))


def label(text: str, kind: ReplyKind, scale: Scale) -> str | None:
    """Return the label of a reply, or None if it is refused."""
    try:
        return find(text, kind, scale, "", "The ferry left at nine.").label
    except ParseError:
        return None


@pytest.mark.parametrize(
    ("text", "scale", "expected"),
    [
        ("적합합니다.", FIT_KO, "적합"),
        ("부적합합니다.", FIT_KO, "부적합"),
        ("부적합함", FIT_KO, "부적합"),
        ("적합하다", FIT_KO, "적합"),
        ("적합해요. 주제를 다룹니다.", FIT_KO, "적합"),
        ("이 글은 부적합합니다.", FIT_KO, "부적합"),
        ("주제를 다룹니다. 따라서 적합하다고 판단합니다.", FIT_KO, "적합"),
        ("판정: 적합합니다.", FIT_KO, "적합"),
        ("적합한 것으로 판단됩니다.", FIT_KO, "적합"),
        ("통과했습니다.", PASS_KO, "통과"),
        ("통과되었습니다.", PASS_KO, "통과"),
        ("실패했습니다.", PASS_KO, "실패"),
        ("이 요약은 실패했다.", PASS_KO, "실패"),
        ("우수합니다.", GRADES_KO, "우수"),
        ("미흡하다고 봅니다.", GRADES_KO, "미흡"),
        ("適合します。", FIT_JA, "適合"),
        ("この文章は適合しています。", FIT_JA, "適合"),
        ("失敗しました。", SUCCESS_JA, "失敗"),
        ("成功と言えます。", SUCCESS_JA, "成功"),
        ("不合格的。", PASS_ZH, "不合格"),
        ("该摘要是合格的。", PASS_ZH, "合格"),
        ("It passes.", PASS, "pass"),
        ("The summary fails because a name is wrong.", PASS, "fail"),
        ("Passed.", PASS, "pass"),
        ("Result: failed", PASS, "fail"),
        ("It is a fail.", PASS, "fail"),
        ("Rejected. A name is wrong.", ACCEPT, "reject"),
        ("The text is accepted.", ACCEPT, "accept"),
    ],
)
def test_a_label_is_read_as_a_verb(text: str, scale: Scale, expected: str) -> None:
    assert label(text, "score", scale) == expected
    assert label(text, "score_then_reason", scale) == expected


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ("적합하지 않습니다.", FIT_KO),
        ("적합하다고 보기 어렵습니다.", FIT_KO),
        ("적합합니까?", FIT_KO),
        ("적합해야 합니다.", FIT_KO),
        ("적합할 것입니다.", FIT_KO),
        ("적합합니다만 부족합니다.", FIT_KO),
        ("적합해 보입니다.", FIT_KO),
        ("안 적합합니다.", FIT_KO),
        ("제목이 있으면 적합합니다.", FIT_KO),
        ("원문은 적합합니다.", FIT_KO),
        ("예를 들어 적합합니다.", FIT_KO),
        ("이 글은 적합합니다. 최종: 부적합합니다.", FIT_KO),
        ("통과. 이 글은 실패했습니다.", PASS_KO),
        ("글에 “적합합니다”라고 적혀 있습니다.", FIT_KO),
        ("통과하지 못했습니다.", PASS_KO),
        ("통과시켜 주세요.", PASS_KO),
        ("등반대는 도전했으나 실패했습니다.", PASS_KO),
        ("시험을 통과했습니다.", PASS_KO),
        ("글이 깁니다.\n실패했습니다.", PASS_KO),
        ("우수하지만 짧습니다.", GRADES_KO),
        ("適合しない。", FIT_JA),
        ("適合していません。", FIT_JA),
        ("適合するべきです。", FIT_JA),
        ("適合しているとは言えない。", FIT_JA),
        ("原文は適合しています。", FIT_JA),
        ("おそらく適合します。", FIT_JA),
        ("探検隊は失敗しました。", SUCCESS_JA),
        ("不是合格的。", PASS_ZH),
        ("如果修改，就是合格的。", PASS_ZH),
        ("It passes if edited.", PASS),
        ("It might pass.", PASS),
        ("It passes?", PASS),
        ("It fails to name the team.", PASS),
        ("The team fails.", PASS),
        ("The team rowed on. It failed.", PASS),
        ("It is not a pass.", PASS),
        ("Failed to load the text.", PASS),
        ("Not accepted.", ACCEPT),
        ("It should be rejected.", ACCEPT),
    ],
)
def test_a_verb_that_denies_or_tells_of_something_else_is_no_score(text: str, scale: Scale) -> None:
    for remark, kind in product(("", "\nIt is short."), KINDS):
        assert label(text + remark, kind, scale) is None
