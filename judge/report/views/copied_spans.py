"""Where an output repeats its source: the longest runs of words that stand in both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from judge import text as texts
from judge.report.format import clean

_LEAST = 3  # words
_LEAST_CHARACTERS = 6  # where every character of Chinese, Japanese or Korean is a word
_MOST_PLACES = 50  # at which a run of three words is looked at
_BY_CHARACTER = ("char", "zh")

Run = tuple[int, int, int, int]
"""Start and length in the output, then in the source, in UTF-16 units of the texts as the page shows them."""


@dataclass(frozen=True, slots=True)
class Words:
    """A text's words, and where each starts and ends in it, in UTF-16 units."""

    words: tuple[str, ...]
    places: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, text: str, tokenizer: str) -> Words:
        """The words that can be found again in the text, which is first made as the page shows it."""
        shown = clean(text)
        found = list(_found(shown, texts.words(tokenizer)(shown)))
        if any(character > "\uffff" for character in shown):
            units = [0, *accumulate(1 + (character > "\uffff") for character in shown)]
            found = [(word, units[start], units[end]) for word, start, end in found]
        return cls(tuple(word for word, *_ in found), tuple((start, end) for _, start, end in found))

    def span(self, first: int, size: int) -> tuple[int, int]:
        """Start and length of so many words."""
        start = self.places[first][0]
        return start, self.places[first + size - 1][1] - start


class Source:
    """A source to which outputs are held; `others` are these outputs, as they have a say in the tokenizer."""

    def __init__(self, text: str, others: Sequence[str]) -> None:
        self._tokenizer = texts.tokenizer_for([text, *others])
        self._least = _LEAST_CHARACTERS if self._tokenizer in _BY_CHARACTER else _LEAST
        self._text = Words.of(text, self._tokenizer)
        self._starts = _starts(self._text.words)

    def runs(self, output: str) -> tuple[Run, ...]:
        """The output's runs of three words or more that the source has too (of six characters, without words).

        From left to right the longest that begins at this word, the first of equally long ones in the source, as in
        Grusky et al. 2018, figure 3.
        """
        mine, theirs = Words.of(output, self._tokenizer), self._text
        found, at = [], 0
        while at + _LEAST <= len(mine.words):
            where, size = self._longest(mine.words, at)
            if size >= self._least:
                found.append((*mine.span(at, size), *theirs.span(where, size)))
            at += size if size >= self._least else 1
        return tuple(found)

    def _longest(self, words: Sequence[str], at: int) -> tuple[int, int]:
        """Where in the source the longest run goes on as the words do from `at`, and its length."""
        theirs = self._text.words
        where, most = 0, 0
        for start in self._starts.get((words[at], words[at + 1], words[at + 2]), ())[:_MOST_PLACES]:
            size, room = _LEAST, min(len(words) - at, len(theirs) - start)
            while size < room and words[at + size] == theirs[start + size]:
                size += 1
            if size > most:
                where, most = start, size
        return where, most


def _starts(words: Sequence[str]) -> Mapping[tuple[str, str, str], Sequence[int]]:
    found = defaultdict(list)
    for place, three in enumerate(zip(words, words[1:], words[2:], strict=False)):
        found[three].append(place)
    return dict(found)


def _found(text: str, words: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Each word with its place, in order; those that the tokenizer has changed are left out."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(character.lower()[0] for character in text)
    at = 0
    for word in words:
        start = lowered.find(word, at)
        if start >= 0:
            at = start + len(word)
            yield word, start, at
