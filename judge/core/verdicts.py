"""Verdicts in words, such as `pass` and `fail`."""

from __future__ import annotations

from typing import Any

_PASSED = "pass passed true yes 合格 はい 합격 통과 예 네 通过 通過 是"
_FAILED = "fail failed false no 不合格 いいえ 불합격 탈락 아니요 아니오 不通过 不通過 否"
_VALUES = dict.fromkeys(_PASSED.split(), 1.0) | dict.fromkeys(_FAILED.split(), 0.0)


_MARKS = ("pass", "passed", "合格", "합격", "통과", "通过", "通過")
_FAIL_MARKS = ("fail", "failed", "不合格", "불합격", "탈락", "不通过", "不通過")


def is_pass_mark(word: str) -> bool:
    """Return whether a word says that something passes, and not only yes or true."""
    return word.strip().lower() in _MARKS


def says_whether_it_passes(word: str) -> bool:
    """Return whether a word says pass or fail, and not only yes or no, true or false."""
    return word.strip().lower() in (*_MARKS, *_FAIL_MARKS)


def verdict(cell: Any) -> float | None:
    """Return 1 for a word or a bool that says pass, 0 for fail, None for anything else."""
    if isinstance(cell, bool):
        return float(cell)
    if isinstance(cell, str):
        return _VALUES.get(cell.strip().lower())
    return None
