"""Represent texts for ROUGE, and compute their longest common subsequences (LCS).

Each distinct word is stemmed once and becomes one character, so a text is a string that can be
counted, sliced and compared in C. The LCS are the plain ones of Lin (2004) over sentences, and
weighted ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import compress
from operator import ge
from threading import Lock
from typing import NamedTuple

from judge import text
from judge.metrics.common import CannotScore
from judge.text import porter

SCRIPT = "rouge155"
"""The tokenizer of ROUGE-1.5.5: runs of A-Z, a-z and 0-9, in lower case. All else ends a word."""
PLTRDY = "pltrdy"
"""The tokenizer of the package rouge: runs without white space. A full stop ends a sentence."""

# "well-known" is two words, "Séoul" is "S" and "oul"
_WORD = re.compile("[A-Za-z0-9]+")
_SURROGATES = range(0xD800, 0xE000)
_CHARACTERS = 0x110000 - len(_SURROGATES)
# In characters. Longer words are stemmed, as in rouge-score and ROUGE-1.5.5.
_LONGEST_UNSTEMMED = 3
# Words of a vocabulary, about 50 MB. The next sample starts a new one then.
_MOST_WORDS = 200_000
_MOST_KEPT_TOKENS = 400_000  # tokens of cached texts and counts: about 100 MB


class Rules(NamedTuple):
    """How a text becomes words.

    `tokenizer` is a name of judge.text, SCRIPT or PLTRDY; `stopwords` are dropped before stemming.
    `exceptions` are (word, stem) pairs that precede the stemmer; the last pair of a word counts.
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
        shifted = [self.whole[start:] for start in range(n)]
        # The copies get shorter, and the shortest one has the last sequence.
        return map("".join, zip(*shifted, strict=False))

    def counts(self, n: int) -> Counter[str]:
        """Return how often each of `grams` occurs."""
        if n not in self._counts:
            self._counts[n] = Counter(self.grams(n))
        return self._counts[n]

    @cached_property
    def positions(self) -> Sequence[Mapping[str, int]]:
        """The positions of each word in each sentence, as the bits of a number.

        The first word is the lowest bit.
        """
        bit_count = sum(len(line) * len(set(line)) for line in self.lines)
        if bit_count > _MOST_BITS:
            raise too_long("an LCS of each two sentences")
        positions_by_line: list[dict[str, int]] = []
        for line in self.lines:
            positions = dict.fromkeys(line, 0)
            for index, word in enumerate(line):
                positions[word] |= 1 << index
            positions_by_line.append(positions)
        return positions_by_line


class Vocabulary:
    """Maps words to characters by one set of rules, and keeps the texts that it has read."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._words = _Words(rules)
        presets: dict[str, Callable[[str], list[str]]] = {
            SCRIPT: script_words,
            PLTRDY: pltrdy_words,
        }
        own_tokenizer = presets.get(rules.tokenizer)
        self._tokenize = own_tokenizer or text.words(rules.tokenizer)
        self._texts: dict[str, Text] = {}
        self._size = 0

    @property
    def full(self) -> bool:
        has_many_words = len(self._words) > _MOST_WORDS
        return has_many_words or self._size > _MOST_KEPT_TOKENS

    def read(self, string: str) -> Text:
        """Return a text in the vocabulary's characters.

        It is kept, because every system is compared with the same references.
        """
        if string not in self._texts:
            character_of = self._words.__getitem__
            lines: list[str] = []
            for sentence in self._sentences(string):
                words = self._tokenize(sentence)
                line = "".join(map(character_of, words))
                if line:
                    lines.append(line)
            self._texts[string] = Text(tuple(lines))
            self._size += len(self._texts[string]) + 1
        return self._texts[string]

    def _sentences(self, string: str) -> list[str]:
        tokenizer = self.rules.tokenizer
        if tokenizer == PLTRDY:
            return [part for part in string.split(".") if part]
        if tokenizer == SCRIPT:
            return text.sentences(string)
        # Sentences end by the normal form; the tokenizer normalises the words itself.
        return text.sentences(text.normal(string))


def vocabulary(rules: Rules) -> Vocabulary:
    """Return the current vocabulary of these rules.

    Only texts of the same vocabulary can be compared.
    """
    current = _current_vocabulary(rules)
    if current.vocabulary.full:
        current.vocabulary = Vocabulary(rules)
    return current.vocabulary


@dataclass(slots=True)
class _CurrentVocabulary:
    """Holds the vocabulary of some rules, so that a new one can replace a full one in the cache."""

    vocabulary: Vocabulary


@lru_cache(maxsize=8)
def _current_vocabulary(rules: Rules) -> _CurrentVocabulary:
    return _CurrentVocabulary(Vocabulary(rules))


def script_words(string: str) -> list[str]:
    """Return the tokens of ROUGE-1.5.5."""
    return [word.lower() for word in _WORD.findall(string)]


def pltrdy_words(string: str) -> list[str]:
    """Return the tokens of the package rouge; white space alone is one empty word."""
    return " ".join(string.split()).split(" ")


class _Words(dict[str, str]):
    """Maps words to the characters of their stems, and stopwords to the empty string.

    Characters are assigned on demand.
    """

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self._stopwords = rules.stopwords
        stemmers = dict.fromkeys(text.ENGLISH, porter.stem)
        stemmers[SCRIPT] = porter.stem155
        self._porter = stemmers.get(rules.tokenizer) if rules.stem else None
        self._exceptions = dict(rules.exceptions)
        self._characters: dict[str, str] = {}
        self._lock = Lock()  # two threads must not give one character to two words

    def __missing__(self, word: str) -> str:
        with self._lock:
            character = ""
            if word not in self._stopwords:
                character = self._character(self._stem(word))
            self[word] = character
        return character

    def _stem(self, word: str) -> str:
        if self._porter and len(word) > _LONGEST_UNSTEMMED:
            return self._exceptions.get(word) or self._porter(word)
        return word

    def _character(self, stem: str) -> str:
        """Return the character of a stem, the next free one if it is new. Raise CannotScore."""
        if stem not in self._characters:
            number = len(self._characters)
            if number >= _CHARACTERS:
                raise CannotScore(
                    "TooManyWords",
                    f"has more than {_CHARACTERS:,} different words: shorten the texts",
                )
            # Surrogates are no characters of their own.
            if number >= _SURROGATES.start:
                number += len(_SURROGATES)
            self._characters[stem] = chr(number)
        return self._characters[stem]


# Limits, so that no text takes long or needs much memory
_MOST_CELLS = 20_000_000  # Python needs ten seconds for a table of this many cells
_MOST_BITS = 2_000_000_000  # the rows of a pair of sentences need 250 MB
_MAX_SENTENCE_WORDS = 20_000  # words in a sentence of the reference
_MOST_STEPS = 20_000_000  # this many comparisons of words or sentences take ten seconds


def length(first: str, second: str) -> int:
    """Return the length of the longest common subsequence."""
    from rapidfuzz.distance import LCSseq

    return LCSseq.similarity(first, second)


def too_long(computation: str) -> CannotScore:
    """Return the error of texts for which a computation would take too long."""
    advice = "shorten them or leave this type out"
    return CannotScore("TextTooLong", f"has texts too long for {computation}: {advice}")


def union_lcs(reference: Text, candidate: Text) -> int:
    """Return the number of words of the reference in the union LCS of its sentences.

    No word counts more often than the candidate has it. Lin 2004, section 3.2, clipped as in
    ROUGE-1.5.5 and rouge-score. Raise CannotScore.
    """
    if reference.lines == candidate.lines:
        return len(reference)
    in_union = sorted(union_words(reference, candidate))
    return length("".join(in_union), candidate.ordered)


def union_words(reference: Text, candidate: Text) -> list[str]:
    """Return the words in the union LCS of each sentence of the reference.

    It is the union of one LCS with each sentence of the candidate. Of several longest ones, take
    the path through the table of lengths from its end: along a match, else up in the reference
    unless only going left keeps the length. Raise CannotScore.
    """
    steps = len(reference) * len(candidate.lines)
    longest = max(map(len, reference.lines), default=0)
    if steps > _MOST_STEPS or longest > _MAX_SENTENCE_WORDS:
        raise too_long("an LCS of each two sentences")
    in_union: list[str] = []
    for line in reference.lines:
        union = 0  # words of the sentence on its LCS with any sentence of the candidate, as bits
        candidate_lines = zip(candidate.lines, candidate.positions, strict=True)
        for candidate_line, positions in candidate_lines:
            rows: list[tuple[int, int]] = []
            for index, word in enumerate(line):
                if word in positions:
                    rows.append((positions[word], 1 << index))
            # Words that are in the union already cannot add to it.
            new_words = sum(bit for _, bit in rows) & ~union
            if new_words:
                union |= _lcs_words(rows, len(candidate_line))
        # "0b101" reversed begins with the bit of the first word.
        bits = reversed(bin(union))
        in_union += compress(line, map("1".__eq__, bits))
    return in_union


def _lcs_words(rows: Sequence[tuple[int, int]], size: int) -> int:
    """Return the words on the LCS, as bits.

    Each row is a word of the sentence: its positions among the other sentence's `size` words, and
    its own bit. The table of LCS lengths is kept row by row in the bits of a number; a bit is 0
    where the length grows by one (Hyyrö 2004, "Bit-parallel LCS-length computation revisited").
    Rows without a match equal the one before.
    """
    if len(rows) * size > _MOST_BITS:
        raise too_long("an LCS of each two sentences")
    whole = (1 << size) - 1
    row = whole
    table = [row]
    for positions, _ in rows:
        matches = row & positions
        row = (row + matches | row - matches) & whole
        table.append(row)
    # Back through the table, row by row; `upto` masks the columns still to visit.
    path = 0
    upto = whole
    for index in range(len(rows) - 1, -1, -1):
        positions, bit = rows[index]
        positions &= upto
        if not positions:
            continue
        in_last_column = positions > upto >> 1
        # The table holds 0 bits where the length grows: fewer bits are a greater length.
        if in_last_column or _ones(table[index], upto) > _ones(table[index + 1], upto):
            path |= bit
            upto = (1 << positions.bit_length() - 1) - 1
    return path


def _ones(row: int, mask: int) -> int:
    return (row & mask).bit_count()


def best_lengths(lines: Sequence[str], candidate_lines: Sequence[str]) -> int:
    """Return the sum over `lines` of the LCS length with the other text's line that shares most.

    Raise CannotScore.
    """
    if len(lines) * len(candidate_lines) > _MOST_STEPS:
        raise too_long("an LCS of each two sentences")
    total = 0
    for line in lines:
        lengths = (length(line, candidate_line) for candidate_line in candidate_lines)
        total += max(lengths, default=0)
    return total


def weighted(reference: str, candidate: str, weight: float) -> float:
    """Return WLCS (Lin 2004, section 4): the weight of a common subsequence.

    A run of k words counts k^weight. As in the paper's dynamic programme, a match always extends
    the run before it. Raise CannotScore.
    """
    score = 0.0
    # The last cell of the last row has the weight of the whole texts.
    for weights, _ in _weighted_rows(reference, candidate, weight):
        score = weights[-1]
    return score


def weighted_path(reference: str, candidate: str, weight: float) -> int:
    """Return the reference's words on a heaviest common subsequence, as bits.

    Ties are broken as in `union_lcs`.
    """
    goes_up = [ups for _, ups in _weighted_rows(reference, candidate, weight)]
    path = 0
    i = len(reference) - 1
    j = len(candidate) - 1
    while i >= 0 and j >= 0:
        if reference[i] == candidate[j]:
            path |= 1 << i
            i -= 1
            j -= 1
        elif goes_up[i][j]:
            i -= 1
        else:
            j -= 1
    return path


def _weighted_rows(
    reference: str,
    candidate: str,
    weight: float,
) -> Iterator[tuple[list[float], bytes]]:
    """Yield each row of the table of weights, and where the row above is no smaller.

    There is a row for each word of the reference.
    """
    if len(reference) * len(candidate) > _MOST_CELLS:
        raise too_long("a weighted LCS")
    longest_run = min(len(reference), len(candidate))
    power = [float(run) ** weight for run in range(longest_run + 1)]
    above = [0.0] * (len(candidate) + 1)
    runs_above = [0] * (len(candidate) + 1)
    for word in reference:
        row = [0.0]
        runs = [0] * len(above)
        best = 0.0
        for j, candidate_word in enumerate(candidate, 1):
            if word == candidate_word:
                run = runs_above[j - 1]
                best = above[j - 1] + power[run + 1] - power[run]
                runs[j] = run + 1
            elif above[j] > best:
                best = above[j]
            row.append(best)
        came_from_above = map(ge, above[1:], row)
        yield row, bytes(came_from_above)
        above = row
        runs_above = runs
