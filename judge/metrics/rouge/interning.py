"""Texts as ROUGE compares them: each different word, stemmed once, is one character, and a text a string of these.

Strings of such characters can be counted, sliced and compared in C.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from operator import add
from threading import Lock
from typing import NamedTuple

from judge import text
from judge.metrics.common import Unscorable
from judge.text import porter

SCRIPT = "rouge155"
"""The tokenizer of ROUGE-1.5.5: runs of A-Z, a-z and 0-9, in lower case. A hyphen and all else ends a word."""

_WORD = re.compile("[A-Za-z0-9]+")
_LONG_ENOUGH = 3  # a word of more letters is stemmed, in rouge-score and in ROUGE-1.5.5
_MOST_WORDS = 200_000  # of a vocabulary, after which the next sample begins a fresh one: about 50 MB
_MOST_KEPT = 400_000  # tokens of references kept with their counts: about 100 MB
_LONG = 2_000  # words of a sentence, places of all of which are not worth their memory
_SURROGATES = range(0xD800, 0xE000)
_CHARACTERS = 0x110000 - len(_SURROGATES)


class Rules(NamedTuple):
    """How a text becomes words: `tokenizer` is a name of judge.text or SCRIPT, `stopwords` go before stemming.

    `exceptions` are (word, stem) pairs that go before the stemmer; of a word listed twice, the last counts.
    `running` texts are cut by `text.sentences`; of others each line is a sentence.
    """

    tokenizer: str
    stem: bool
    stopwords: frozenset[str] = frozenset()
    exceptions: tuple[tuple[str, str], ...] = ()
    running: bool = False


class Text:
    """A text in the characters of one vocabulary: its sentences, all of it, and what has been counted in it."""

    __slots__ = ("_counts", "_grams", "_ordered", "_places", "lines", "whole")

    def __init__(self, lines: tuple[str, ...]) -> None:
        self.lines = lines
        self.whole = "".join(lines)
        self._grams: dict[int, Sequence[str]] = {}
        self._counts: dict[int, Mapping[str, int]] = {}
        self._places: Sequence[Mapping[str, int] | None] | None = None
        self._ordered: str | None = None

    def __len__(self) -> int:
        return len(self.whole)

    @property
    def ordered(self) -> str:
        """The words in the order of their characters: two of these have as longest common subsequence what the
        texts have in common, each word as often as in the poorer of both.
        """
        if self._ordered is None:
            self._ordered = "".join(sorted(self.whole))
        return self._ordered

    def grams(self, n: int) -> Sequence[str]:
        """The sequences of n words, across sentences."""
        if n not in self._grams:
            whole = self.whole
            pieces = (whole[start : start + n] for start in range(len(whole) - n + 1))
            self._grams[n] = list(map(add, whole, whole[1:]) if n == 2 else pieces)
        return self._grams[n]

    def counts(self, n: int) -> Mapping[str, int]:
        """How often each of `grams` occurs."""
        if n not in self._counts:
            self._counts[n] = Counter(self.grams(n))
        return self._counts[n]

    def places(self) -> Sequence[Mapping[str, int] | None]:
        """For each sentence where its words stand, as the bits of a number: the first word is the lowest.

        None for a sentence so long that `places_of` should look for some words only.
        """
        if self._places is None:
            self._places = [_places(line) if len(line) <= _LONG else None for line in self.lines]
        return self._places


def _places(line: str) -> dict[str, int]:
    bits = powers(len(line))
    places = dict(zip(line, bits, strict=False))
    if len(places) < len(line):  # a word stands twice
        places = dict.fromkeys(places, 0)
        for word, bit in zip(line, bits, strict=False):
            places[word] |= bit
    return places


def places_of(wanted: Collection[str], line: str) -> dict[str, int]:
    """As `Text.places`, of these words."""
    import numpy as np

    words = np.frombuffer(line.encode("utf-32-le"), dtype="<u4")
    found = {word: np.packbits(words == ord(word), bitorder="little").tobytes() for word in wanted}
    return {word: int.from_bytes(bits, "little") for word, bits in found.items()}


def powers(count: int) -> Sequence[int]:
    """1, 2, 4 and so on, at least so many."""
    return _POWERS if count <= len(_POWERS) else [1 << place for place in range(count)]


_POWERS = tuple(1 << place for place in range(256))


class Vocabulary:
    """Words to characters by one set of rules, and the references read with them."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._words = _Words(rules)
        self._tokenize = script_words if rules.tokenizer == SCRIPT else text.words(rules.tokenizer)
        self._kept: dict[str, Text] = {}
        self._size = 0

    @property
    def full(self) -> bool:
        return len(self._words) > _MOST_WORDS

    def read(self, string: str) -> Text:
        """Raises Unscorable where there are more different words than characters."""
        lines = text.sentences(string) if self.rules.running else string.split("\n")
        tokenize, character = self._tokenize, self._words.__getitem__
        return Text(tuple([line for part in lines if (line := "".join(map(character, tokenize(part))))]))

    def reference(self, string: str) -> Text:
        """As `read`, but kept, because a reference returns with every system."""
        if (kept := self._kept.get(string)) is None:
            kept = self.read(string)
            self._size += len(kept) + 1
            if self._size > _MOST_KEPT:
                self._kept, self._size = {}, len(kept) + 1
            self._kept[string] = kept
        return kept


def vocabulary(rules: Rules) -> Vocabulary:
    """The vocabulary of these rules at present. Texts can be compared that the same one read."""
    shelf = _shelf(rules)
    if shelf[0].full:
        shelf[0] = Vocabulary(rules)
    return shelf[0]


@lru_cache(maxsize=8)
def _shelf(rules: Rules) -> list[Vocabulary]:
    return [Vocabulary(rules)]


def script_words(string: str) -> list[str]:
    """The tokens of ROUGE-1.5.5."""
    return " ".join(_WORD.findall(string)).lower().split()


class _Words(dict[str, str]):
    """Words to the characters of their stems, made up on demand; stopwords to nothing."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self._stopwords = rules.stopwords
        self._stem = _stemmer(rules)
        self._characters: dict[str, str] = {}
        self._lock = Lock()  # two threads must not give one character to two words

    def __missing__(self, word: str) -> str:
        with self._lock:
            stem = self._stem(word)
            if word in self._stopwords:
                character = ""
            elif not (character := self._characters.get(stem, "")):
                character = self._characters[stem] = _character(len(self._characters))
            self[word] = character
        return character


def _stemmer(rules: Rules) -> Callable[[str], str]:
    """Porter's stemmer for the rules that cut English; words of other rules stay whole."""
    if not rules.stem or rules.tokenizer not in {"en", SCRIPT}:
        return str
    porters = porter.stem155 if rules.tokenizer == SCRIPT else porter.stem
    exceptions = dict(rules.exceptions)

    def stem(word: str) -> str:
        return exceptions.get(word) or porters(word) if len(word) > _LONG_ENOUGH else word

    return stem


def _character(number: int) -> str:
    if number >= _CHARACTERS:
        raise Unscorable("TooManyWords", f"has more than {_CHARACTERS:,} different words: shorten the texts")
    return chr(number if number < _SURROGATES.start else number + len(_SURROGATES))
