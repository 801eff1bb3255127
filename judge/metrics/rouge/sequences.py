"""Represent texts for ROUGE, and compute their longest common subsequences (LCS).

Each distinct word is stemmed once and becomes one character, so a text is a string that can be
counted, sliced and compared in C. The LCS are the plain ones of Lin (2004) over sentences, and
weighted ones.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import compress
from operator import ge
from threading import Lock
from typing import NamedTuple

from judge import text
from judge.metrics.common import CannotScore
from judge.text import porter

SCRIPT = "rouge155"
"""The tokenizer of ROUGE-1.5.5: runs of A-Z, a-z and 0-9, in lower case. A hyphen and all else ends
a word.
"""
PLTRDY = "pltrdy"
"""The tokenizer of the package rouge: what stands between white space. Full stops end sentences and
are dropped.
"""

_WORD = re.compile("[A-Za-z0-9]+")
_SURROGATES = range(0xD800, 0xE000)
_CHARACTERS = 0x110000 - len(_SURROGATES)
_LONG_ENOUGH = 3  # longer words are stemmed, in rouge-score and in ROUGE-1.5.5
_MOST_WORDS = 200_000  # words of a vocabulary, then the next sample starts a new one: about 50 MB
_MOST_KEPT_TOKENS = 400_000  # tokens of cached texts and counts: about 100 MB


class Rules(NamedTuple):
    """How a text becomes words: `tokenizer` is a name of judge.text, SCRIPT or PLTRDY; `stopwords`
    are dropped before stemming.

    `exceptions` are (word, stem) pairs that precede the stemmer; the last one of a word counts.
    """

    tokenizer: str
    stem: bool
    stopwords: frozenset[str] = frozenset()
    exceptions: tuple[tuple[str, str], ...] = ()


class Text:
    """A text in the characters of one vocabulary: its sentences, the whole, and cached counts."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        self.lines = lines
        self.whole = "".join(lines)
        self._counts: dict[int, Counter[str]] = {}

    def __len__(self) -> int:
        return len(self.whole)

    @cached_property
    def ordered(self) -> str:
        """The words in the order of their characters.

        The longest common subsequence of two such texts has the words that both have in common.
        """
        return "".join(sorted(self.whole))

    def grams(self, n: int) -> Iterator[str]:
        """Return the sequences of n words, across sentences."""
        return map("".join, zip(*(self.whole[start:] for start in range(n)), strict=False))

    def counts(self, n: int) -> Counter[str]:
        """Return how often each of `grams` occurs."""
        if n not in self._counts:
            self._counts[n] = Counter(self.grams(n))
        return self._counts[n]

    @cached_property
    def places(self) -> Sequence[Mapping[str, int]]:
        """For each sentence the places of its words, as the bits of a number: the first word is the
        lowest.
        """
        if sum(len(line) * len(set(line)) for line in self.lines) > _MOST_BITS:
            raise too_long("an LCS of each two sentences")
        places: list[dict[str, int]] = []
        for line in self.lines:
            places.append(dict.fromkeys(line, 0))
            for place, word in enumerate(line):
                places[-1][word] |= 1 << place
        return places


class Vocabulary:
    """Words to characters by one set of rules, and the references read with them."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._words = _Words(rules)
        presets: dict[str, Callable[[str], list[str]]] = {
            SCRIPT: script_words,
            PLTRDY: lambda string: " ".join(string.split()).split(
                " "
            ),  # white space alone is one empty word
        }
        self._tokenize = presets.get(rules.tokenizer) or text.words(rules.tokenizer)
        self._kept: dict[str, Text] = {}
        self._size = 0

    @property
    def full(self) -> bool:
        return len(self._words) > _MOST_WORDS or self._size > _MOST_KEPT_TOKENS

    def read(self, string: str) -> Text:
        """Return a text, which is kept, because a reference returns with every system."""
        if string not in self._kept:
            name = self.rules.tokenizer
            if name == PLTRDY:
                lines = [part for part in string.split(".") if part]
            else:  # sentences end by the normal form; words are normalised by the tokenizer
                lines = text.sentences(string if name == SCRIPT else text.normal(string))
            tokenize, character = self._tokenize, self._words.__getitem__
            words = ("".join(map(character, tokenize(line))) for line in lines)
            self._kept[string] = Text(tuple(filter(None, words)))
            self._size += len(self._kept[string]) + 1
        return self._kept[string]


def vocabulary(rules: Rules) -> Vocabulary:
    """Return the current vocabulary of these rules. Only texts of the same vocabulary can be
    compared.
    """
    shelf = _current_vocabulary(rules)
    if shelf[0].full:
        shelf[0] = Vocabulary(rules)
    return shelf[0]


@lru_cache(maxsize=8)
def _current_vocabulary(rules: Rules) -> list[Vocabulary]:
    return [Vocabulary(rules)]


def script_words(string: str) -> list[str]:
    """Return the tokens of ROUGE-1.5.5."""
    return " ".join(_WORD.findall(string)).lower().split()


class _Words(dict[str, str]):
    """Maps words to the characters of their stems, assigned on demand, and stopwords to the empty
    string.
    """

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self._stopwords = rules.stopwords
        stemmers = dict.fromkeys(text.ENGLISH, porter.stem) | {SCRIPT: porter.stem155}
        self._porter = stemmers.get(rules.tokenizer) if rules.stem else None
        self._exceptions = dict(rules.exceptions)
        self._characters: dict[str, str] = {}
        self._lock = Lock()  # two threads must not give one character to two words

    def __missing__(self, word: str) -> str:
        with self._lock:
            stem = word
            if self._porter and len(word) > _LONG_ENOUGH:
                stem = self._exceptions.get(word) or self._porter(word)
            if word in self._stopwords:
                character = ""
            elif not (character := self._characters.get(stem, "")):
                number = len(self._characters)
                if number >= _CHARACTERS:
                    raise CannotScore(
                        "TooManyWords",
                        f"has more than {_CHARACTERS:,} different words: shorten the texts",
                    )
                character = chr(number if number < _SURROGATES.start else number + len(_SURROGATES))
                self._characters[stem] = character
            self[word] = character
        return character


_MOST_CELLS = 20_000_000  # of a table in Python: ten seconds
_MOST_BITS = 2_000_000_000  # of the rows that one pair of sentences needs: 250 MB
_MAX_SENTENCE_WORDS = 20_000  # of a sentence of the reference
_MOST_STEPS = 20_000_000  # of a word or sentence past a sentence: ten seconds


def length(first: str, second: str) -> int:
    """Return the length of the longest common subsequence."""
    from rapidfuzz.distance import LCSseq

    return LCSseq.similarity(first, second)


def too_long(computation: str) -> CannotScore:
    return CannotScore(
        "TextTooLong", f"has texts too long for {computation}: shorten them or leave this type out"
    )


def union_lcs(reference: Text, candidate: Text) -> int:
    """Return the words of the reference in the union LCS of its sentences, none more often than the
    candidate has it.

    Lin 2004, section 3.2, clipped as in ROUGE-1.5.5 and rouge-score. Raise CannotScore.
    """
    if reference.lines == candidate.lines:
        return len(reference)
    return length("".join(sorted(union_words(reference, candidate))), candidate.ordered)


def union_words(reference: Text, candidate: Text) -> list[str]:
    """Return the words in the union LCS of each sentence of the reference: of one LCS with each of
    the candidate's.

    Of several longest ones, take the path through the table of lengths from its end: along a match,
    else up in the reference unless only going left keeps the length. Raise CannotScore.
    """
    if (
        len(reference) * len(candidate.lines) > _MOST_STEPS
        or max(map(len, reference.lines), default=0) > _MAX_SENTENCE_WORDS
    ):
        raise too_long("an LCS of each two sentences")
    hits: list[str] = []
    for line in reference.lines:
        union = (
            0  # as bits, the words of the sentence on its LCS with any sentence of the candidate
        )
        for candidate_line, places in zip(candidate.lines, candidate.places, strict=True):
            rows = [(places[word], 1 << place) for place, word in enumerate(line) if word in places]
            if sum(bit for _, bit in rows) & ~union:
                union |= _lcs_places(rows, len(candidate_line))
        hits += compress(line, map("1".__eq__, reversed(bin(union))))
    return hits


def _lcs_places(rows: Sequence[tuple[int, int]], size: int) -> int:
    """Return the words on the LCS: of each word its places among the other sentence's `size` words,
    and its own bit.

    The table of LCS lengths is kept row by row in the bits of a number, one of which is 0 where the
    length grows by one (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"). Rows without
    a match equal the one before.
    """
    if len(rows) * size > _MOST_BITS:
        raise too_long("an LCS of each two sentences")
    table = [row := (1 << size) - 1]
    whole = row
    for places, _ in rows:
        both = row & places
        row = (row + both | row - both) & whole
        table.append(row)
    # Back through the table, row by row; `upto` masks the columns still to visit.
    path, upto = 0, table[0]
    for number in range(len(rows) - 1, -1, -1):
        places, bit = rows[number][0] & upto, rows[number][1]
        if places and (
            places > upto >> 1
            or (table[number] & upto).bit_count() > (table[number + 1] & upto).bit_count()
        ):
            path |= bit
            upto = (1 << places.bit_length() - 1) - 1
    return path


def best_lengths(lines: Sequence[str], candidate_lines: Sequence[str]) -> int:
    """Return Σ over `lines` of the LCS length with the other text's line that shares most. Raise
    CannotScore.
    """
    if len(lines) * len(candidate_lines) > _MOST_STEPS:
        raise too_long("an LCS of each two sentences")
    return sum(
        max((length(line, candidate_line) for candidate_line in candidate_lines), default=0)
        for line in lines
    )


def weighted(reference: str, candidate: str, weight: float) -> float:
    """Return WLCS (Lin 2004, section 4): the weight of a common subsequence; a run of k words
    counts k^weight.

    In the paper's dynamic programme a match always continues the diagonal. Raise CannotScore.
    """
    last = deque(_weighted_rows(reference, candidate, weight), maxlen=1)
    return last[0][0][-1] if last else 0.0


def weighted_path(reference: str, candidate: str, weight: float) -> int:
    """Return the reference's words (positions as bits) on a heaviest common subsequence; ties as in
    `union_lcs`.
    """
    up = [ups for _, ups in _weighted_rows(reference, candidate, weight)]
    path, i, j = 0, len(reference) - 1, len(candidate) - 1
    while i >= 0 and j >= 0:
        if reference[i] == candidate[j]:
            path |= 1 << i
            i, j = i - 1, j - 1
        elif up[i][j]:
            i -= 1
        else:
            j -= 1
    return path


def _weighted_rows(
    reference: str, candidate: str, weight: float
) -> Iterator[tuple[list[float], bytes]]:
    """Yield, for each word of the reference, its row of weights and where the row above is no
    smaller.
    """
    if len(reference) * len(candidate) > _MOST_CELLS:
        raise too_long("a weighted LCS")
    power = [float(k) ** weight for k in range(min(len(reference), len(candidate)) + 1)]
    above, runs_above = [0.0] * (len(candidate) + 1), [0] * (len(candidate) + 1)
    for word in reference:
        row, runs, best = [0.0], [0] * len(above), 0.0
        for j, candidate_word in enumerate(candidate, 1):
            if word == candidate_word:
                run = runs_above[j - 1]
                best = above[j - 1] + power[run + 1] - power[run]
                runs[j] = run + 1
            elif above[j] > best:
                best = above[j]
            row.append(best)
        yield row, bytes(map(ge, above[1:], row))
        above, runs_above = row, runs
