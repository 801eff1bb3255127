"""The search for refusals ends soon on long replies of white space and repeated words."""

from __future__ import annotations

import pytest

from judge.scoring.prose.refusals import refuses

PIECES = [
    "\n",
    " \n",
    "\t ",
    "I cannot ",
    "無法",
    "この",
    "评价",
    "저는 ",
    "요약문을 ",
    "该摘要",
    "ich kann ",
]


# Without a limit, a reply of 400 line breaks took half a minute, and one of 20,000 would not end.
@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", PIECES)
def test_a_long_reply_of_one_repeated_piece_is_searched(piece: str) -> None:
    assert not refuses("It can't rate higher" + piece * 10_000)


@pytest.mark.parametrize("space", ["\n", "\n\n\n", " \n\t\n "])
def test_a_refusal_is_known_after_any_line_breaks(space: str) -> None:
    assert refuses(f"Score: 3{space}I cannot evaluate this.")
