"""Scripts, and words that need no dictionary."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal, NamedTuple

from judge.core.records import Sample

Language = Literal["en", "ja", "ko", "zh"]

HAN = "々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"
# \w lacks the marks that Arabic, Hebrew, Indic and Thai words are written with, which would cut them in pieces.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f"
    "\u0670\u0900-\u0963\u0971-\u0dff\u0e31-\u0e4e"
)

_IS_HAN, _IS_KANA, _IS_HANGUL = (re.compile(f"[{letters}]") for letters in (HAN, KANA, HANGUL))
_TOKEN = re.compile(f"[{HAN}{KANA}{HANGUL}]|(?:[^\\W{HAN}{KANA}{HANGUL}][{_MARKS}]*)+")
_OTHER_WORD = re.compile(f"(?:[^\\W\\d_{HAN}{KANA}{HANGUL}][{_MARKS}]*)+")

_LOOK_AT = 200_000  # characters in all, which settles any data set
_LOOK_AT_EACH = 2_000  # so that one long text does not speak for all
_KANA_SHARE = 0.1  # Japanese prose has about half; a の in a Chinese title has far less
_WORDS, _HAN_ALONE = 5, 20  # words, and characters of Han, below which a text does not tell its language


def language(texts: Iterable[str]) -> Language:
    """The language of most of the words, by script; `en` stands for Latin or any other script.

    Two characters of Han, kana or Hangul count as a word, so that a sentence full of Latin names keeps its language.
    Hangul is Korean; Han is Japanese where at least a tenth of the Han and kana is kana, else Chinese. Looks at
    the first 2,000 characters of each text, 200,000 in all. No letters at all: `en`.
    """
    seen, room = [], _LOOK_AT
    for text in texts:
        seen.append(text[: min(room, _LOOK_AT_EACH)])
        room -= len(seen[-1])
        if room <= 0:
            break
    return _of(_Letters.of("\n".join(seen)))


def language_of(samples: Iterable[Sample]) -> Language:
    """`language` of the samples' outputs and sources."""
    return language(text for sample in samples for text in (sample.output, sample.source or ""))


def certain_language(text: str) -> Language | None:
    """`language` of one text, None where it is too short to tell: names in Latin letters, a headline without kana.

    It takes five words, and 20 characters of Han for Chinese.
    """
    found = _Letters.of(text[:_LOOK_AT_EACH])
    spoken = _of(found)
    least = {"en": found.other >= _WORDS, "zh": found.han >= _HAN_ALONE}
    return spoken if least.get(spoken, found.han + found.kana + found.hangul >= 2 * _WORDS) else None


class _Letters(NamedTuple):
    """How many characters of each script a text has, and how many words in any other."""

    han: int
    kana: int
    hangul: int
    other: int

    @classmethod
    def of(cls, text: str) -> _Letters:
        other = len(_OTHER_WORD.findall(text))
        if text.isascii():
            return cls(0, 0, 0, other)
        han, kana, hangul = (len(one.findall(text)) for one in (_IS_HAN, _IS_KANA, _IS_HANGUL))
        return cls(han, kana, hangul, other)


def _of(found: _Letters) -> Language:
    han, kana, hangul, other = found
    if max(hangul, han + kana) < max(1, 2 * other):
        return "en"
    if hangul >= han + kana:
        return "ko"
    return "ja" if kana >= _KANA_SHARE * (han + kana) else "zh"


def is_cjk(text: str) -> bool:
    """Whether the English rules of ROUGE, which keep a-z and 0-9 only, would lose more than half of the letters.

    True for Chinese, Japanese and Korean, and as well for Cyrillic, Greek, Arabic and other scripts.
    """
    if text.isascii():
        return False
    letters = [letter for letter in text.lower() if letter.isalpha()]
    return 2 * sum(map(str.isascii, letters)) < len(letters)


def tokens(text: str) -> list[str]:
    """Lower-cased tokens for any script: every Han, kana or Hangul character alone, other words whole.

    Normalised by NFKC first. Punctuation, symbols and emoji are no tokens.
    """
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).lower())
