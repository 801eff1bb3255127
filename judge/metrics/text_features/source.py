"""A text cut into sentences of words, and a source prepared for many outputs to be compared with."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from judge import text
from judge.metrics.text_features.surface import Known


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


FUNCTION_WORDS = _set(
    "a an the this that these those some any no each every both all such and or but nor so if than as because while "
    "although though unless until of to in on at by for with from into onto about over under after before between "
    "through during against without within up down out off i me my mine myself you your yours he him his himself she "
    "her hers herself it its itself we us our ours they them their theirs who whom whose which what when where why how "
    "there here then also just not is am are was were be been being do does did have has had will would shall should "
    "can could may might must s t n d m ll re ve"
)
"""English words that every text is full of; the letters are what a tokenizer leaves of contractions."""


def content(words: Iterable[str]) -> Counter[str]:
    """The words counted, without English function words."""
    return Counter(word for word in words if word not in FUNCTION_WORDS)


def ngrams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """All occurrences of n-grams, in order."""
    return list(zip(*(words[start:] for start in range(n)), strict=False))


@dataclass(frozen=True, slots=True)
class Sentences:
    """A text's sentences that hold words, as they are written (`raw`) and as words (`each`)."""

    raw: tuple[str, ...]
    each: tuple[list[str], ...]
    words: list[str]

    @classmethod
    def of(cls, given: str, tokenizer: str) -> Sentences:
        """The text cut line by line, and each line by its stops."""
        cut = text.words(tokenizer)
        found = [(raw, cut(raw)) for line in given.split("\n") for raw in text.sentences(line)]
        found = [(raw, words) for raw, words in found if words]
        each = tuple(words for _, words in found)
        return cls(tuple(raw for raw, _ in found), each, list(chain.from_iterable(each)))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A source's words, counted and indexed."""

    words: list[str]
    counts: Counter[str]
    content: Counter[str]
    pairs: Mapping[tuple[str, ...], Sequence[int]]
    triples: frozenset[tuple[str, ...]]
    first: Mapping[str, int]
    sentences: tuple[frozenset[str], ...]
    copies: frozenset[frozenset[str]]
    holding: Mapping[str, Sequence[int]]
    surface: Known

    @classmethod
    def of(cls, source: str, tokenizer: str) -> Prepared:
        """The source, cut by that tokenizer."""
        cut = Sentences.of(source, tokenizer)
        words = cut.words
        pairs: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for place, pair in enumerate(ngrams(words, 2)):
            pairs[pair].append(place)
        first = {word: place for place, word in zip(range(len(words) - 1, -1, -1), reversed(words), strict=True)}
        sentences = tuple(dict.fromkeys(map(frozenset, cut.each)))
        holding: defaultdict[str, list[int]] = defaultdict(list)
        for number, sentence in enumerate(sentences):
            for word in sentence:
                holding[word].append(number)
        return cls(
            words=words,
            counts=Counter(words),
            content=content(words),
            pairs=dict(pairs),  # plain: looking for a missing key must not make it
            triples=frozenset(ngrams(words, 3)),
            first=first,
            sentences=sentences,
            copies=frozenset(sentences),
            holding=dict(holding),
            surface=Known.of(source),
        )

    def fragments(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """The fragments F(A, S) of Grusky et al. 2018, figure 3: where each starts in the source, and its words.

        From left to right the longest run of the source that goes on at this word, the first of equally long ones.
        As in the figure, a run within another one that was looked at for the same word is passed over.
        """
        found = []
        at, end = 0, len(words)
        while at < end:
            best, where = 0, 0
            if starts := self.pairs.get((words[at], words[at + 1])) if at + 1 < end else None:
                best, where = self._longest(words, at, starts)
            elif (place := self.first.get(words[at])) is not None:
                best, where = 1, place
            if best:
                found.append((where, best))
            at += best or 1
        return found

    def _longest(self, words: Sequence[str], at: int, starts: Sequence[int]) -> tuple[int, int]:
        mine, own, most = self.words, len(self.words), len(words) - at
        best, where, seen = 0, 0, 0
        for start in starts:
            if start < seen:
                continue
            room, size = min(most, own - start), 2
            while size < room and words[at + size] == mine[start + size]:
                size += 1
            seen = start + size
            if size > best:
                best, where = size, start
        return best, where

    def nearest(self, sentence: Sequence[str]) -> float:
        """The best F1 (0–1) of the sentence's different words with those of a sentence here: 2·shared / both."""
        mine = frozenset(sentence)
        if mine in self.copies:
            return 1.0
        shared = Counter(chain.from_iterable(self.holding.get(word, ()) for word in mine))
        sizes, size = self.sentences, len(mine)
        return max((2 * both / (size + len(sizes[number])) for number, both in shared.items()), default=0.0)
