"""What the perturbations of all languages share: the places of sentences, and edits at places of a text."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import ClassVar, NamedTuple

from judge import text
from judge.core.records import Sample
from judge.metrics.qags import english_noun_phrases

Span = tuple[int, int]


class Edit(NamedTuple):
    """A possible edit: `text[start:end]` may be replaced by any one of `options`."""

    start: int
    end: int
    options: tuple[str, ...]


class Name(NamedTuple):
    """A name in a text. Names of one kind can replace one another grammatically."""

    text: str
    kind: str


class LanguageRules(ABC):
    """How texts of one language are changed.

    `joint` separates sentences. `misspelled` and `droppable` return the places in a text for a typo and for a missing
    function word (they do not overlap; `dropped` matches the words); `negated` those in a sentence that turn the
    statement into its opposite. A text gets one typo per `typo_every` characters. `number_words` returns the places of
    numbers in words: group 1 of `counted`, which becomes another one of `digits`. `names` finds names, `listed_names`
    those that are in a list, by kind; `peers` lists names by kind, for texts without another name of the kind. `fits`
    says if a name or number can replace another there. `trailing` matches the end of a text that cannot end a sentence.
    `empty` are sentences without content. A sentence of `shortest_cut` characters or more can be cut off visibly.
    """

    joint = ""
    typo_every: int
    dropped: re.Pattern[str]
    counted: re.Pattern[str]
    digits: Sequence[str]
    listed_names: re.Pattern[str]
    peers: ClassVar[Mapping[str, tuple[str, ...]]]
    trailing: re.Pattern[str]
    empty: tuple[str, ...]
    shortest_cut: int

    @abstractmethod
    def misspelled(self, whole: str, chance: Random) -> list[Edit]: ...

    def droppable(self, whole: str) -> list[Edit]:
        return [deletion(match) for match in self.dropped.finditer(whole)]

    @abstractmethod
    def negated(self, sentence: str) -> list[Edit]: ...

    def number_words(self, whole: str) -> list[Edit]:
        new = [digit for digit in self.digits if digit not in whole] or self.digits[0]
        return [
            Edit(*match.span(1), tuple(digit for digit in new if digit != match[1]))
            for match in self.counted.finditer(whole)
        ]

    def names(self, whole: str) -> list[Name]:
        return [Name(match.group(), str(match.lastgroup)) for match in self.listed_names.finditer(whole)]

    def fits(self, before: str, old: str, new: str, after: str) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Draft:
    """A text to change: `whole` is the output of the sample, `others` are samples of other items."""

    sample: Sample
    others: Sequence[Sample]
    chance: Random
    rules: LanguageRules

    @property
    def whole(self) -> str:
        return self.sample.output

    @property
    def source(self) -> str:
        """The source, or the output itself if there is none."""
        return self.sample.source or self.sample.output

    @property
    def places(self) -> list[Span]:
        """The places of the sentences."""
        return text.sentence_spans(self.whole)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One way to change a text. `criterion` is the quality it damages; empty for a neutral change.

    `make` returns the changed output, None if the change does not apply. `languages` are codes, empty for all.
    """

    name: str
    criterion: str
    make: Callable[[Draft], str | None]
    languages: tuple[str, ...] = ()


def listed(words: str, separator: str | None = None) -> tuple[str, ...]:
    """Split a text at the separator, by default at white space."""
    return tuple(words.split(separator))


def sentences(whole: str) -> list[str]:
    """Return the sentences of each line, none of them empty."""
    return [whole[start:end] for start, end in text.sentence_spans(whole)]


is_finished = re.compile(r"[.!?…。！？｡．][\"'”’」』）)\]\s]*\Z").search
"""Match if a sentence ends with a stop."""


def append_text(whole: str, added: Iterable[str], usual: str) -> str:
    """Add sentences at the end of a text, with its own separator; on a new line if it has no final stop."""
    places = text.sentence_spans(whole)
    mark = whole[places[0][1] : places[1][0]] if len(places) > 1 else usual
    if not places or not is_finished(whole) or "\n" in whole[places[0][0] : places[-1][1]]:
        mark = "\n"
    return whole.rstrip() + "".join(mark + sentence for sentence in added)


def apply_edits(whole: str, places: Iterable[Edit], chance: Random) -> str:
    """Edit a text at each of the places, which do not overlap, with a random option."""
    parts, at = [], 0
    for start, end, options in sorted(places):
        parts += [whole[at:start], chance.choice(options)]
        at = end
    return "".join([*parts, whole[at:]])


def non_overlapping(places: Iterable[Edit]) -> list[Edit]:
    """Sort the places and drop those that overlap an earlier one or have no options."""
    chosen: list[Edit] = []
    for place in sorted(places):
        if place.options and (not chosen or place.start >= chosen[-1].end):
            chosen.append(place)
    return chosen


def deletion(match: re.Match[str]) -> Edit:
    """Return the edit that removes a match."""
    return Edit(*match.span(), ("",))


@lru_cache(maxsize=512)
def content(whole: str) -> Mapping[str, int]:
    """Count the content words of a text; in texts that are not English, pairs of tokens count as words."""
    counts: dict[str, int] = {}
    tokens = text.tokens(whole)
    if text.detect_language([whole]) != "en":
        tokens = [a + b for a, b in pairwise(tokens)]
    for token in tokens:
        if not english_noun_phrases.is_function(token):
            counts[token] = counts.get(token, 0) + 1
    return counts


def coverage(sentence: str, known: Mapping[str, int]) -> float:
    """Return the share (0–1) of the distinct content words that are in `known`; 0 if there are none."""
    words = content(sentence)
    return sum(word in known for word in words) / max(1, len(words))
