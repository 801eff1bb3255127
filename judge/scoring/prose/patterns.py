"""The patterns of a plain reply for one scale and criterion, and the scores that they find."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from judge.core.label_spellings import LabelIndex
from judge.scoring.prose import chinese, english, japanese, korean
from judge.scoring.prose.forms import Forms, forms
from judge.scoring.prose.language import Grammar, Reader, reader
from judge.scoring.prose.other_numbers import mentions_another

Evidence = Literal["named", "asserted", "opening", "alone", "mentioned"]
"""How a sentence gives its score.

Beside its name, in words that assert it, at the beginning of the reply, alone, or `mentioned`: in a
form that is followed by doubt, so that it gives no score but may contradict one.
"""
_LANGUAGES = (english, korean, japanese, chinese)
# One match is enough to try the grammar. English is also tried for a number alone: `4.`
_LETTERS = {
    english.__name__: re.compile("[A-Za-z]|[0-9] *[.!)]"),
    korean.__name__: re.compile("[가-힣]"),
    japanese.__name__: re.compile("[ぁ-んァ-ヶ一-龥]"),
    chinese.__name__: re.compile("[一-龥]"),
}
_reader = lru_cache(maxsize=16_384)(reader)  # compiling takes longer than reading
NO_WORDS = " \t\r\n*_.,;!()[]{}$。！"
"""Marks around a score that say nothing about it."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """The patterns of all that is looked for in a reply, for one scale and title."""

    forms: Forms
    value: re.Pattern[str]
    title: re.Pattern[str]
    spellings: LabelIndex
    score_pattern: str
    title_pattern: str
    is_pair: bool
    has_words: bool

    @property
    def is_yes_or_no(self) -> bool:
        """Whether "yes" and "no" are labels."""
        answers = (self.spellings.label("yes"), self.spellings.label("no"))
        return None not in answers

    def label_of(self, match: re.Match[str]) -> str | None:
        """Return the label in a match's group `value`, None if it is no label."""
        return self.spellings.label(match["value"])

    def is_label(self, written: str) -> bool:
        """Return whether a letter is a label and not an article: it is written as in the scale."""
        if len(written) > 1 or not written.isalpha():
            return True
        key = self.spellings.key(written)
        return self.spellings.labels.get(key, written) == written

    def mentions_another(self, sentence: str, match: re.Match[str]) -> bool:
        """Return whether a number beside a score in its sentence may be another score."""
        return mentions_another(sentence, match, self.spellings, self.title)

    def readers(self, text: str) -> Iterator[Reader]:
        """Yield the readers of the languages whose letters a sentence has."""
        grammars: list[Grammar] = []
        preferences: list[Grammar] = []
        for language in _LANGUAGES:
            if _LETTERS[language.__name__].search(text):
                grammars += language.GRAMMARS
                preferences += language.PREFERENCES
        if self.is_pair:
            grammars += preferences
        for grammar in grammars:
            yield _reader(grammar, self.score_pattern, self.title_pattern)

    def label_readers(self, text: str) -> Iterator[Reader]:
        """Yield the readers of labels that are words: "The text is irrelevant."."""
        if not self.has_words:
            return
        for language in (english, korean, japanese):
            if _LETTERS[language.__name__].search(text):
                yield _reader(language.IS_LABEL, self.score_pattern, self.title_pattern)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A score at `start` of folded text.

    `match` has it in the group `value`, with the ends of the scale beside it.
    """

    match: re.Match[str]
    start: int
    end: int
    evidence: Evidence

    @property
    def written(self) -> str:
        return self.match["value"]


def compile_patterns(
    score_pattern: str,
    mark_pattern: str,
    title_pattern: str,
    spellings: LabelIndex,
    *,
    is_pair: bool,
    has_words: bool,
) -> Patterns:
    """Return the patterns for one scale and title.

    They are made from the patterns of a score with its unit and scale, of the marks around it, and
    of the criterion's title. `is_pair`: the labels are two texts. `has_words`: the labels are
    words.
    """
    return Patterns(
        forms=forms(score_pattern, mark_pattern, title_pattern, has_words=has_words),
        value=re.compile(score_pattern, re.IGNORECASE),
        title=re.compile(title_pattern, re.IGNORECASE),
        spellings=spellings,
        score_pattern=score_pattern,
        title_pattern=title_pattern,
        is_pair=is_pair,
        has_words=has_words,
    )
