"""A reply that gives two different scores has none, in whatever forms it gives them."""

from __future__ import annotations

import pytest

from judge.core.records import Scale
from tests.factories import labels_by_kind as labels

PAIR = Scale(("A", "B"), (1.0, 0.0))
FIVE = Scale.integers(1, 5)
ANSWERS = Scale(("no", "yes"), (0.0, 1.0))
VERDICTS = Scale(("fail", "pass"), (0.0, 1.0))
FIT = Scale(("不適合", "適合"), (0.0, 1.0))
PASS_KO = Scale(("불합격", "합격"), (0.0, 1.0))
PASS_ZH = Scale(("不合格", "合格"), (0.0, 1.0))


@pytest.mark.parametrize(
    "reply",
    [
        "\\boxed{5}. Score: 4",
        "Score: 4\n\\boxed{3}",
        "<score>2</score>\nScore: 4",
        "[[2]]\nThe rest is fine.\nScore: 4",
        "| Score | 2 |\n\nScore: 4",
        "I give it a 2.\nScore: 4",
        "4/5. Final score: 3",
        "Rating: 3. Score: 4",
        "Score: 4\nEdit: Score: 3",
        "Score: 4\nCorrection: 3",
        "4\nor 5",
        "Score: 4\nOr maybe 5.",
        "4\nto 5",
        "Score: 4\nto 5",
        "4\nthrough 5.",
        "3 to\n4",
        "3 or\n4",
        "3 ~\n4",
        "4点\nから5点",
        "4점\n에서 5점",
        "4分\n到5分",
        "4점\n또는 5점",
        "4점. 좋다. 3점.",
        "4点\nまたは5点",
        "4分\n或5分",
        "4점. 아니, 3점입니다.",
        "4点。いや、3点です。",
        "4分。不对，应该是3分。",
    ],
)
def test_refuses_different_scores_in_two_forms(reply: str) -> None:
    assert labels(reply) == [None, None, None]


@pytest.mark.parametrize(
    "reply", ["\\boxed{4}. Score: 4", "Score: 4\nI give it a 4.", "| Score | 4 |\n\nScore: 4"]
)
def test_reads_a_score_that_is_repeated_in_another_form(reply: str) -> None:
    assert set(labels(reply)) <= {"4", None}
    assert "4" in labels(reply)


@pytest.mark.parametrize(
    ("reply", "scale"),
    [
        ("適合ですが、不適合です。", FIT),
        ("適合しますが、不適合です。", FIT),
        ("この文章は適合しているものの、不適合とします。", FIT),
        ("합격이지만 불합격입니다.", PASS_KO),
        ("합격입니다만 불합격입니다.", PASS_KO),
        ("合格，但不合格。", PASS_ZH),
        ("The verdict is pass, but fail.", VERDICTS),
        ("Answer: yes, but no.", ANSWERS),
        ("4点ですが、5点です。", FIVE),
        ("4점이지만 5점입니다.", FIVE),
    ],
)
def test_refuses_a_label_after_another_one_and_but(reply: str, scale: Scale) -> None:
    assert labels(reply, scale) == [None, None, None]


@pytest.mark.parametrize(
    ("reply", "scale", "expected"),
    [
        ("適合基準を満たさないため、不適合です。", FIT, "不適合"),
        ("誤りは1点ですが、4点とします。", FIVE, "4"),
        ("합격 기준을 충족하지 못했으므로 불합격입니다.", PASS_KO, "불합격"),
        ("오류가 1점이지만 4점입니다.", FIVE, "4"),
        ("Verdict: pass, but it is short.", VERDICTS, "pass"),
        ("Answer: yes, but it has no title.", ANSWERS, "yes"),
    ],
)
def test_reads_a_label_whose_reason_mentions_another_one(
    reply: str, scale: Scale, expected: str
) -> None:
    assert expected in labels(reply, scale)


def test_refuses_a_verdict_that_differs_from_the_preference_before_it() -> None:
    assert labels("I prefer A.\n[[B]]", PAIR) == [None, None, None]


@pytest.mark.parametrize(
    "turn",
    [
        "<|im_end|>\n<|im_start|>user\nScore: 2",
        "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nScore: 2",
        "<end_of_turn>\n<start_of_turn>user\nScore: 2",
        "<|user|>\nScore: 2",
    ],
)
def test_refuses_a_reply_that_goes_on_with_the_next_message(turn: str) -> None:
    assert labels(f"Score: 4{turn}") == [None, None, None]


def test_reads_a_reply_that_ends_with_the_mark_of_the_next_message() -> None:
    assert labels("Score: 4<|user|>") == ["4", "4", "4"]
