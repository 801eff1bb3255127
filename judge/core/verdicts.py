"""Verdicts in words, such as `pass` and `fail`."""

from __future__ import annotations

import re
from typing import Any

from judge.core import normalization

# Each row has the words of a pair, first those for 1, then those for 0; "_" is a space. A word
# without its opposite would be the only one of a column that is read. Good and bad are not here:
# judges also use them as points of a longer scale.
_PASS_AND_FAIL = (
    ("pass passed passes p", "fail failed fails failure f not_passed not_pass"),
    ("success successful succeeded", "failure unsuccessful"),
    ("correct right", "incorrect wrong not_correct"),
    ("accept accepted acceptable", "reject rejected unacceptable not_accepted"),
    ("ok okay", "not_ok not_okay ng"),
    ("valid", "invalid not_valid"),
    ("met", "unmet not_met"),
    # Japanese
    ("合格 合", "不合格 否"),
    ("正解 正答 正しい 正", "不正解 誤答 誤り 間違い 誤"),
    ("成功 達成", "失敗 未達成"),
    ("適合 適切 適 可", "不適合 不適切 不適 不可"),
    # Korean
    ("합격 통과 패스", "불합격 탈락 실패 미통과 불통과 낙제"),
    ("정답 맞음 옳음", "오답 틀림 그름"),
    ("성공 달성", "실패 미달성"),
    ("적합 적절 적격", "부적합 부적절 부적격"),
    ("충족 만족", "미충족 불충족 불만족"),
    # Chinese, simplified and traditional
    (
        "通过 通過 已通过 已通過",
        "未通过 未通過 不通过 不通過 没通过 沒通過 没有通过 沒有通過",
    ),
    ("合格 及格 达标 達標", "不合格 不及格 未达标 未達標 不达标 不達標"),
    ("正确 正確 答对 答對", "错误 錯誤 不正确 不正確 答错 答錯"),
    ("成功", "失败 失敗 未成功"),
    ("符合 满足 滿足", "不符合 不满足 不滿足"),
)
_YES_AND_NO = (
    ("yes y true t", "no n false f not_true untrue"),
    ("はい ええ 真", "いいえ いえ 偽"),
    ("예 네 참 그렇다", "아니요 아니오 아뇨 거짓 아니다"),
    ("是 对 對 真", "否 不是 错 錯 不对 不對 假"),
    # A circle and a cross are right and wrong in Korea and Japan; NFKC makes Ｏ of the wide letter.
    ("o ○ 〇 ◯ ⭕ 오", "x × ✕ ✖ ✗ ✘ ❌ 엑스"),
    ("✓ ✔ ☑ ✅", "✗ ✘ ❌ ☒"),
)
_SPACES = re.compile(r"[\s_-]+")


def _values(*tables: tuple[tuple[str, str], ...]) -> dict[str, float]:
    values: dict[str, float] = {}
    for table in tables:
        for good_words, bad_words in table:
            values |= dict.fromkeys(good_words.split(), 1.0)
            values |= dict.fromkeys(bad_words.split(), 0.0)
    return values


_PASS_VALUES = _values(_PASS_AND_FAIL)
_VALUES = _values(_PASS_AND_FAIL, _YES_AND_NO)


def _key(word: str) -> str:
    return _SPACES.sub("_", normalization.fold(word).strip().casefold())


def is_pass_mark(word: str) -> bool:
    """Return whether a word says that something passes, and not only yes or true."""
    return _PASS_VALUES.get(_key(word)) == 1


def says_whether_it_passes(word: str) -> bool:
    """Return whether a word says pass or fail, and not only yes or no, true or false."""
    return _key(word) in _PASS_VALUES


def verdict(cell: Any) -> float | None:
    """Return 1 for a word or a bool that says pass, 0 for fail, None for anything else."""
    if isinstance(cell, bool):
        return float(cell)
    if isinstance(cell, str):
        return _VALUES.get(_key(cell))
    return None
