"""How many tokens a text has, without any model's vocabulary."""

from __future__ import annotations

import math
import re

from judge.text.script import HAN, HANGUL, KANA

_DENSE = re.compile(f"[{HAN}{KANA}{HANGUL}]")
_CHARACTERS_PER_TOKEN = 4


def estimate(text: str) -> int:
    """About the tokens of a text: one for a character of Chinese, Japanese or Korean, else one for four characters."""
    dense = 0 if text.isascii() else len(_DENSE.findall(text))
    return math.ceil(dense + (len(text) - dense) / _CHARACTERS_PER_TOKEN)


def most(text: str) -> int:
    """The most tokens that a text can have: a token of a byte-level BPE stands for one byte of UTF-8 or more."""
    return len(text.encode("utf-8", "surrogatepass"))
