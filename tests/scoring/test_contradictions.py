"""A reply that gives two different scores has none, in whatever forms it gives them."""

from __future__ import annotations

import pytest

from judge.core.records import Scale
from tests.factories import labels_by_kind as labels

PAIR = Scale(("A", "B"), (1.0, 0.0))


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
