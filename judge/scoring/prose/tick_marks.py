"""Blank a tick or cross that agrees with the score beside it: "4 ✅", "❌ No"."""

from __future__ import annotations

import re

from judge.core.label_spellings import LabelIndex

_MARK = re.compile("[✅✔✓❌✗✘]")
_CROSSES = "❌✗✘"
_WORD_BEFORE = re.compile(r"(\w+)[\s.!*_]*\Z")
_WORD_BEHIND = re.compile(r"[\s*_]*(\w+)")


def blank_tick_mark(text: str, spellings: LabelIndex) -> str:
    """Return a folded text of the same length without its tick or cross.

    A text with several of them stays, because they may stand for options. So does a tick beside
    "no", and a cross beside anything else.
    """
    marks = _MARK.findall(text)
    if len(marks) != 1:
        return text
    before, mark, behind = text.partition(marks[0])
    matches = (_WORD_BEFORE.search(before[-40:]), _WORD_BEHIND.match(behind))
    labels_beside = [spellings.label(match[1]) for match in matches if match]
    no = spellings.label("false")
    is_beside_no = no is not None and no in labels_beside
    is_cross = mark in _CROSSES
    if is_cross != is_beside_no:
        return text
    return f"{before} {behind}"
