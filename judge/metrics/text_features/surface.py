"""What the surface of a text shows: its numbers and names, and where it is not well formed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judge import text
from judge.core.records import fold
from judge.text.script import HAN, HANGUL, KANA

if TYPE_CHECKING:
    from judge.metrics.text_features.source import Sentences

_DIGITS = re.compile(r"\d+").findall  # a run each: tokenized texts have `1 , 250` and `3 . 5`
_WORD = re.compile(r"[^\W\d_]+").findall
_FOREIGN = re.compile("[\u30a1-\u30fa\u30fc]{2,}|[A-Za-z\u00c0-\u024f]{2,}").findall
_CLOSERS = " \t\r\n\"'`”’»›)]}）］｝〉》〕】"
_ENDS = frozenset(".!?…。！？｡．؟۔।॥።」』")
_TWICE = re.compile(r"\b([^\W\d_]+)\s+(?=\1\b)", re.IGNORECASE).findall
_RUN_TWICE = re.compile(rf"([{HAN}{KANA}{HANGUL}]{{3,20}})(?=\1)").findall
_MAY_DOUBLE = frozenset(("had", "that"))
_NEVER_LAST = frozenset(
    ("a", "an", "the", "and", "or", "but", "nor", "than", "because", "while", "if", "whose", "every")
)
_FEWEST_WORDS, _FEWEST_LETTERS = 3, 4


@dataclass(frozen=True, slots=True)
class Known:
    """The numbers and words of a source, by which an output's are looked up."""

    numbers: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, source: str) -> Known:
        folded = fold(source)
        words = _FOREIGN(folded) if _is_cjk(source) else []
        return cls(frozenset(_DIGITS(folded)), frozenset(map(str.casefold, [*_WORD(folded), *words])))


@dataclass(frozen=True, slots=True)
class Look:
    """An output's numbers and names (each occurrence, names casefolded), and its defects."""

    numbers: Sequence[str]
    names: Sequence[str]
    no_end: int
    fragments: int
    doubled_words: int

    @classmethod
    def of(cls, output: str, cut: Sentences) -> Look:
        folded, cjk = fold(output), _is_cjk(output)
        names = _FOREIGN(folded) if cjk else [name for raw in cut.raw for name in _capitals(fold(raw))]
        short = sum(is_fragment(raw, words, cjk) for raw, words in zip(cut.raw, cut.each, strict=True))
        ended = output.rstrip(_CLOSERS)[-1:] in _ENDS
        return cls(
            _DIGITS(folded), [*map(str.casefold, names)], int(bool(cut.words) and not ended), short, _doubled(output)
        )

    def support(self, known: Known) -> tuple[float | None, float | None]:
        """The share of the numbers and of the names that are known; None of none."""
        return _share(self.numbers, known.numbers), _share(self.names, known.names)


def is_fragment(raw: str, words: Sequence[str], cjk: bool) -> bool:
    """Whether a sentence is none: too short, or cut off.

    Fewer than three words, or a last one that ends no sentence ("the", "and", "because"); in Japanese, Korean and
    Chinese fewer than four letters or digits.
    """
    if cjk:
        return sum(map(str.isalnum, raw)) < _FEWEST_LETTERS
    return len(words) < _FEWEST_WORDS or words[-1] in _NEVER_LAST


def _is_cjk(given: str) -> bool:
    return not given.isascii() and text.language([given]) != "en"


def _capitals(sentence: str) -> list[str]:
    return [word for word in _WORD(sentence)[1:] if word[0].isupper() and len(word) > 1]


def _doubled(output: str) -> int:
    """Words written twice with white space between them, and where there is none, runs of three letters and more."""
    twice = sum(word.lower() not in _MAY_DOUBLE for word in _TWICE(output))
    return twice if output.isascii() else twice + len(_RUN_TWICE(output))


def _share(found: Sequence[str], known: frozenset[str]) -> float | None:
    return sum(one in known for one in found) / len(found) if found else None
