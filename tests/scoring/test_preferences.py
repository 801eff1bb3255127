"""Plain comparisons of the two texts of a pair, in four languages."""

from __future__ import annotations

import pytest

from judge.core.errors import ParseError
from judge.core.records import ReplyKind, Scale
from judge.scoring.parse import find

TIES = Scale(("A", "B", "tie"), (1.0, 0.0, 0.5))
LETTERED_TIES = Scale(("A", "B", "C"), (1.0, 0.0, 0.5))
PAIR = Scale(("A", "B"), (1.0, 0.0))
KINDS: tuple[ReplyKind, ...] = ("score", "score_then_reason", "reason_then_score")
JUDGED = "The ferry left at nine."

A_IS_BETTER = [
    "B is not as good as A.",
    "Text B isn't quite as good as text A.",
    "B is inferior to A.",
    "A is clearly superior to B.",
    "B loses to A.",
    "B is long, but A is better because it names the date.",
    "A比B好。",
    "回答A比回答B好得多。",
    "因此B不如A。",
    "B没有A那么好。",
    "B比A差。",
    "A较好。",
    "A胜。",
    "BよりAの方がいい。",
    "よって、BはAより劣ります。",
    "文章BはAほど良くありません。",
    "Aの勝ちです。",
    "B가 A보다 못합니다.",
    "B는 A만큼 좋지 않다.",
    "따라서 B보다 A가 더 낫다고 생각합니다.",
    "더 좋은 글은 A입니다.",
    "A가 더 나은 답변입니다.",
    "A 쪽이 B보다 낫습니다.",
    "A 쪽이 더 좋습니다.",
    "Aの方がBより優れています。",
    "Aのほうが、Bよりも良いです。",
    "Although B is longer, A is better.",
    "While B is good, A is better because it names the date.",
    "Despite its length, A is better.",
]
TIED = [
    "A and B are tied.",
    "Overall, both texts are equally good.",
    "The two summaries are on par.",
    "Neither is better.",
    "Neither text is better than the other.",
    "A is as good as B.",
    "Overall, summary B is just as good as summary A.",
    "A和B一样。",
    "两个回答质量相当。",
    "A和B一样好。",
    "所以两者不相上下。",
    "AとBは同等です。",
    "総合的に見て、AとBは互角です。",
    "A와 B는 비슷합니다.",
    "두 응답은 똑같이 좋습니다.",
]
NEITHER = [
    "A is not better than B.",
    "B isn't worse than A.",
    "A and B are not tied.",
    "They are equal in length.",
    "A is not as good as it seems.",
    "A is as good as A.",
    "A is as good as B in style.",
    "A is as long as B.",
    "If it were shorter, A would be as good as B.",
    "A和B一样长。",
    "A和B不一样。",
    "If B were shorter, A and B would be equal.",
    "The user says that B loses to A.",
    "A and B are equally good, but B is shorter.",
    "A is better in style, and B is better.",
    "A不比B好。",
    "A比B长。",
    "A比B好吗？",
    "用户说A比B好。",
    "A和B不一样好。",
    "AはBに劣りません。",
    "AはBより長い。",
    "AとBは同等ではありません。",
    "A가 B보다 못하지 않다.",
    "A가 B보다 길다.",
    "A와 B는 비슷하지 않습니다.",
    "A 쪽이 더 깁니다.",
    "A 쪽이 A보다 낫습니다.",
    "독자는 A 쪽이 더 좋습니다.",
    "Aの方がBより優れていません。",
    "Aの方がBより優れているとは言えない。",
    "流暢さはAの方がBより優れています。",
    "Although A is better, B is longer.",
    "Although A is better in style, B is better.",
    "Although B is longer, A would be better with links.",
    "Though the text says that B is short, A is better.",
    "When B is short, A is better.",
    "While B wins, A is better.",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reply", A_IS_BETTER)
def test_reads_a_comparison_that_one_text_wins(reply: str, kind: ReplyKind) -> None:
    assert find(reply, kind, TIES, "Coherence", JUDGED).label == "A"


@pytest.mark.parametrize("scale", [TIES, LETTERED_TIES])
@pytest.mark.parametrize("reply", TIED)
def test_reads_a_sentence_that_both_texts_are_equal_as_a_tie(reply: str, scale: Scale) -> None:
    for kind in KINDS:
        label = find(reply, kind, scale, "Coherence", JUDGED).label
        assert scale.value(label) == 0.5


@pytest.mark.parametrize("reply", [*TIED, *NEITHER])
def test_refuses_a_sentence_that_prefers_no_text(reply: str) -> None:
    scale = PAIR if reply in TIED else TIES
    for kind in KINDS:
        with pytest.raises(ParseError):
            find(reply, kind, scale, "Coherence", JUDGED)
