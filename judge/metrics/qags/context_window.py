"""The part of a text around a theme that fits into a generator's input."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from judge import text

Span = tuple[int, int]
_WORD = 30  # no word is longer: further on there is no white space to be waited for


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A passage and where the theme is in it; where the theme is not in the text, `before` is the passage."""

    before: str
    marked: str
    after: str

    @property
    def context(self) -> str:
        return self.before + self.marked + self.after


def excerpt(whole: str, theme: str, fits: Callable[[Excerpt], bool]) -> Excerpt | None:
    """The text if it fits; else the theme's sentence and as many around it as fit; else a part of that sentence.

    None where not even the theme alone fits.
    """
    place = _place(whole, theme)

    def at(span: Span) -> Excerpt:
        return Excerpt(whole[span[0] : place[0]], whole[place[0] : place[1]], whole[place[1] : span[1]])

    def fitting(span: Span) -> bool:
        return fits(at(span))

    if fitting((0, len(whole))):
        return at((0, len(whole)))
    spans = _sentences(whole)
    first = _sentence_of(spans, place[0])
    last = max(first, _sentence_of(spans, max(place[0], place[1] - 1)))
    if fitting(_reach(spans, first, last, place)):
        return at(_widened(spans, first, last, place, fitting))
    narrow = _narrowed(whole, _reach(spans, first, last, place), place, fitting)
    return at(narrow) if narrow else None


def _place(whole: str, theme: str) -> Span:
    """Where the theme stands first, as words of their own if it does so anywhere; the text's end if nowhere."""
    found = (
        re.search(rf"(?<!\w){re.escape(theme)}(?!\w)", whole)
        or re.search(re.escape(theme), whole)
        or re.search(re.escape(theme), whole, re.IGNORECASE)
    )
    return found.span() if theme and found else (len(whole), len(whole))


def _sentences(whole: str) -> list[Span]:
    spans, start = [], 0
    for sentence in text.sentences(whole):
        start = whole.index(sentence, start)
        spans.append((start, start + len(sentence)))
        start += len(sentence)
    return spans or [(0, len(whole))]


def _sentence_of(spans: list[Span], place: int) -> int:
    return next((n for n, (_, stop) in enumerate(spans) if place < stop), len(spans) - 1)


def _reach(spans: list[Span], first: int, last: int, place: Span) -> Span:
    """From one sentence's start to another's end; the theme's place is always within."""
    return min(spans[first][0], place[0]), max(spans[last][1], place[1])


def _widened(spans: list[Span], first: int, last: int, place: Span, fitting: Callable[[Span], bool]) -> Span:
    """Neighbouring sentences added after and before in turn, each side until one does not fit."""
    sides = [1, -1]
    while sides:
        side = sides.pop(0)
        low, high = (first, last + 1) if side > 0 else (first - 1, last)
        if low >= 0 and high < len(spans) and fitting(_reach(spans, low, high, place)):
            first, last = low, high
            sides.append(side)
    return _reach(spans, first, last, place)


def _narrowed(whole: str, sentence: Span, place: Span, fitting: Callable[[Span], bool]) -> Span | None:
    """The most characters on both sides of the theme that fit, by halving; no word is cut in two."""

    def margin(size: int) -> Span:
        return max(sentence[0], place[0] - size), min(sentence[1], place[1] + size)

    if not fitting(place):
        return None
    low, high = 0, sentence[1] - sentence[0]
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fitting(margin(middle)) else (low, middle - 1)
    start, stop = margin(low)
    if start > sentence[0] and not whole[start - 1].isspace():
        cut = re.search(r"\s", whole[start : min(start + _WORD, place[0])])
        start += cut.end() if cut else 0
    if stop < sentence[1] and not whole[stop].isspace():
        cut = re.search(r"\s\S*\Z", whole[max(stop - _WORD, place[1]) : stop])
        stop -= len(cut.group()) if cut else 0
    return start, stop
