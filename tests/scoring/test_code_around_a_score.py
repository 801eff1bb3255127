"""Backticks around a score: marks as in the prompt, or a quotation of the text."""

from __future__ import annotations

import pytest

from judge.core.errors import ParseError
from judge.core.records import Scale
from judge.scoring.parse import find

FIVE = Scale.integers(1, 5)


@pytest.mark.parametrize(
    "reply",
    [
        "It is clear.\n`Score: 4`",
        "It is clear.\n\n**`Final score: 4/5`**",
        "`Score: 4`.",
        "It is clear.\nScore: 4\n```",
        "明確です。\n`スコア：4`",
        "It uses `code` well.\n- `Score: 4`",
        "It is clear.\n\n```\nScore: 4\n```",
        "It is clear.\n```text\nFinal score: 4/5\n```\n",
        "It has code.\n```\nx = 1\n```\nIt is clear.\n```\nScore: 4\n```",
        "明確です。\n```\nスコア：4\n```",
    ],
)
def test_backticks_around_the_whole_last_line_quote_nothing(reply: str) -> None:
    assert find(reply, "reason_then_score", FIVE, "Coherence", "The ferry left.").label == "4"


@pytest.mark.parametrize(
    "reply",
    [
        "The text says:\n`Score: 4`",
        "It ends with\n`Score: 4`",
        "It is clear. `Score: 4`",
        "The text says `this.\n`Score: 4`",
        "It is clear.\n> `Score: 4`",
        "It is clear.\n`Score: 4` or `Score: 3`",
        "The text has\n```\nScore: 4",
        "It is clear.\n'Score: 4'",
        "The text says:\n```\nScore: 4\n```",
        "It ends with\n```\nScore: 4\n```",
        "It is clear. ```\nScore: 4\n```",
        "It is clear.\n```\nx = 1\nScore: 4\n```",
        "It is clear.\n```\nScore: 4\nx = 1\n```",
        "It is clear.\n```\nScore: 4\n```\n```\nScore: 4\n```",
        "It is clear.\n````\nScore: 4\n```",
    ],
)
def test_backticks_that_may_quote_the_text_give_no_score(reply: str) -> None:
    with pytest.raises(ParseError):
        find(reply, "reason_then_score", FIVE, "Coherence", "The ferry left.")


def test_a_fence_around_a_score_of_the_judged_text_is_a_quotation() -> None:
    reply = "It is clear.\n```\nScore: 4\n```"
    with pytest.raises(ParseError):
        find(reply, "reason_then_score", FIVE, "Coherence", "It rained.\nScore: 4")
