"""Cut a text around a theme, so that the theme and its context fit into a model's input."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from judge import text

Span = tuple[int, int]
"""The positions of the first character and after the last one."""
# "lorries", or 20 characters of a long run without white space, as in Chinese
_WORD = re.compile(r"\S{1,20}")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A passage split around the theme; all is in `before` if the text does not have the theme."""

    before: str
    marked: str
    after: str

    @property
    def context(self) -> str:
        """The whole part of the passage."""
        return self.before + self.marked + self.after


@dataclass(frozen=True, slots=True)
class _ThemedText:
    """A text with the span of a theme, which every excerpt of it contains."""

    whole: str
    theme: Span

    def excerpt(self, span: Span) -> Excerpt:
        """Return a part of the text, split around the theme."""
        start, stop = span
        theme_start, theme_end = self.theme
        before = self.whole[start:theme_start]
        after = self.whole[theme_end:stop]
        return Excerpt(before, self.whole[theme_start:theme_end], after)

    def extent(self, spans: Sequence[Span], first_index: int, last_index: int) -> Span:
        """Return the span from one of the spans to another, widened to the theme."""
        theme_start, theme_stop = self.theme
        start, _ = spans[first_index]
        _, stop = spans[last_index]
        return min(start, theme_start), max(stop, theme_stop)

    def spans_with_theme(self, spans: Sequence[Span]) -> tuple[int, int]:
        """Return the indices of the spans in which the theme begins and ends."""
        start, stop = self.theme
        first_index = _span_at(spans, start)
        last_index = _span_at(spans, max(start, stop - 1))
        return first_index, max(first_index, last_index)

    def grown(
        self, spans: Sequence[Span], fits: Callable[[Excerpt], bool]
    ) -> Excerpt | None:
        """Return the theme's spans, with as many neighbours on both sides as fit.

        They are added in turn after and before the theme, on each side until one does not fit. None
        if the theme's spans alone do not fit.
        """
        first_index, last_index = self.spans_with_theme(spans)
        largest = self.excerpt_between(spans, first_index, last_index)
        if not fits(largest):
            return None
        sides = ["after", "before"]
        while sides:
            side = sides.pop(0)
            wider_first = first_index
            wider_last = last_index
            if side == "before":
                wider_first -= 1
            else:
                wider_last += 1
            if wider_first < 0 or wider_last >= len(spans):
                continue
            wider = self.excerpt_between(spans, wider_first, wider_last)
            if fits(wider):
                largest = wider
                first_index = wider_first
                last_index = wider_last
                # A side whose next span does not fit is not tried again.
                sides.append(side)
        return largest

    def excerpt_between(
        self, spans: Sequence[Span], first_index: int, last_index: int
    ) -> Excerpt:
        """Return the part from one of the spans to another, split around the theme."""
        return self.excerpt(self.extent(spans, first_index, last_index))


def _span_at(spans: Sequence[Span], position: int) -> int:
    """Return the index of the first span that ends after a character, otherwise of the last one."""
    for index, (_, stop) in enumerate(spans):
        if position < stop:
            return index
    return len(spans) - 1


def _theme_span(whole: str, theme: str) -> Span:
    """Return the first span of the theme, preferably of whole words; else the end of the text."""
    pattern = re.escape(theme)
    # "ice" is searched as a word, then inside words ("police"), then in any case ("Ice").
    match = re.search(rf"(?<!\w){pattern}(?!\w)", whole)
    if match is None:
        match = re.search(pattern, whole)
    if match is None:
        match = re.search(pattern, whole, re.IGNORECASE)
    if theme and match:
        return match.span()
    return len(whole), len(whole)


def _sentence_spans(whole: str) -> list[Span]:
    """Return the spans of the sentences; a text without any is one."""
    spans: list[Span] = []
    start = 0
    for sentence in text.sentences(whole):
        start = whole.index(sentence, start)
        stop = start + len(sentence)
        spans.append((start, stop))
        start = stop
    return spans or [(0, len(whole))]


def excerpt(whole: str, theme: str, fits: Callable[[Excerpt], bool]) -> Excerpt | None:
    """Return the part of a text around a theme that fits, or None if the theme alone does not fit.

    It is the whole text if that fits, otherwise the theme's sentence and its neighbours that fit,
    otherwise a part of the sentence.
    """
    themed = _ThemedText(whole, _theme_span(whole, theme))
    everything = themed.excerpt((0, len(whole)))
    if fits(everything):
        return everything
    sentences = _sentence_spans(whole)
    whole_sentences = themed.grown(sentences, fits)
    if whole_sentences:
        return whole_sentences
    # Not even the sentence fits: grow from the theme word by word.
    first_index, last_index = themed.spans_with_theme(sentences)
    start, stop = themed.extent(sentences, first_index, last_index)
    words = [word.span() for word in _WORD.finditer(whole, start, stop)]
    part_of_sentence = themed.grown(words or [themed.theme], fits)
    if part_of_sentence:
        return part_of_sentence
    theme_alone = themed.excerpt(themed.theme)
    return theme_alone if fits(theme_alone) else None
