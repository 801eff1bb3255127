"""What changes of all languages share: sentences in their places, and edits at places of a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import NamedTuple

from judge import text
from judge.core.records import Sample
from judge.metrics.qags import english_noun_phrases
from judge.text import Language

LANGUAGES: tuple[Language, ...] = ("en", "ja", "ko", "zh")
Make = Callable[[Sample, Sequence[Sample], Random], str | None]
"""(sample, samples of other items, chance) to the changed output; None where the change does not apply."""
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One way of changing a text. `criterion` is what it damages, empty where it is neutral."""

    name: str
    criterion: str
    languages: tuple[Language, ...]
    make: Make


class Edit(NamedTuple):
    """Where a text may be edited: `text[start:end]` may become any one of `options`."""

    start: int
    end: int
    options: tuple[str, ...]


class Name(NamedTuple):
    """A name in a text. Names of one kind may stand for one another without harm to the grammar."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class LanguageRules:
    """What a language is changed by.

    `joint` stands between sentences. `misspelled`, `droppable` and `negated` give the places of a text or (`negated`) a
    sentence where there may be a typo, a function word may be missing, or the statement turns into its opposite; places
    of the first two do not overlap. There is a typo for each `typo_every` characters. `number_words` are places of
    numbers in words. `names` finds names, `peers` has names by kind for where a text has no other of the kind, and
    `fits(before, old, new, after)` tells whether a
    name or number may take another's place there. `trailing` matches at the end
    of what can end no sentence. `empty` are sentences that say nothing.
    """

    joint: str
    typo_every: int
    misspelled: Callable[[str, Random], list[Edit]]
    droppable: Callable[[str], list[Edit]]
    negated: Callable[[str], list[Edit]]
    number_words: Callable[[str], list[Edit]]
    names: Callable[[str], list[Name]]
    peers: Mapping[str, tuple[str, ...]]
    fits: Callable[[str, str, str, str], bool]
    trailing: Callable[[str], object]
    empty: tuple[str, ...]


def listed(words: str) -> tuple[str, ...]:
    """The words of a text, parted by white space."""
    return tuple(words.split())


def spans(whole: str) -> list[Span]:
    """Where the sentences of each line are, in order, without the white space around them."""
    places, end = [], 0
    for line in whole.split("\n"):
        for sentence in text.sentences(line):
            start = whole.index(sentence, end)
            end = start + len(sentence)
            places.append((start, end))
    return places


def sentences(whole: str) -> list[str]:
    """The sentences of each line, none of them empty."""
    return [whole[start:end] for start, end in spans(whole)]


is_finished = re.compile(r"[.!?…。！？｡．][\"'”’」』）)\]\s]*\Z").search
"""Whether a sentence ends with a stop."""


def joint(whole: str, usual: str) -> str:
    """What a sentence added at the end is parted by: the text's own way, a new line after a text without a stop."""
    places = spans(whole)
    if not places or not is_finished(whole) or "\n" in whole[places[0][0] : places[-1][1]]:
        return "\n"
    return whole[places[0][1] : places[1][0]] if len(places) > 1 else usual


def append_text(whole: str, added: Iterable[str], usual: str) -> str:
    """The text with sentences after its own."""
    mark = joint(whole, usual)
    return whole.rstrip() + "".join(mark + sentence for sentence in added)


def apply_edits(whole: str, places: Iterable[Edit], chance: Random) -> str:
    """The text after an edit at each of the places, which do not overlap."""
    parts, at = [], 0
    for start, end, options in sorted(places):
        parts += [whole[at:start], chance.choice(options)]
        at = end
    return "".join([*parts, whole[at:]])


def non_overlapping(places: Iterable[Edit]) -> list[Edit]:
    """The places in order, those left out that overlap one before them or offer nothing new."""
    chosen: list[Edit] = []
    for place in sorted(places):
        if place.options and (not chosen or place.start >= chosen[-1].end):
            chosen.append(place)
    return chosen


def deletion(match: re.Match[str]) -> Edit:
    """The place of a match that may be left out."""
    return Edit(match.start(), match.end(), ("",))


@lru_cache(maxsize=512)
def content(whole: str) -> Mapping[str, int]:
    """How often each word of content stands in a text; of Chinese and Japanese pairs of characters stand for words."""
    counts: dict[str, int] = {}
    tokens = text.tokens(whole)
    if text.detect_language([whole]) != "en":
        tokens = [a + b for a, b in pairwise(tokens)]
    for token in tokens:
        if not english_noun_phrases.is_function(token):
            counts[token] = counts.get(token, 0) + 1
    return counts


def coverage(sentence: str, known: Mapping[str, int]) -> float:
    """The share of a text's words of content that are among those known, 0 of a text without any."""
    words = content(sentence)
    return sum(word in known for word in words) / max(1, len(words))
