"""Texts longer than a model's window: read in overlapping windows, each token taken where it has most context."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens `start` to `stop` are read together; the vectors of tokens `first` to `last` are taken from there."""

    start: int
    stop: int
    first: int
    last: int


def windows(count: int, size: int) -> list[Window]:
    """Windows of `size` tokens over `count` tokens, overlapping by half; the last one ends with the text.

    Each token belongs to the window whose middle is nearest to it, of two equally near ones to the earlier.
    """
    if count <= size:
        return [Window(0, count, 0, count)]
    starts = [*range(0, count - size, max(size // 2, 1)), count - size]
    # The token at place t has its middle at t + 1/2, so of two windows the earlier one has the tokens below this mark.
    marks = [(a + b + size + 1) // 2 for a, b in pairwise(starts)]
    firsts, lasts = [0, *marks], [*marks, count]
    return [Window(at, at + size, first, last) for at, first, last in zip(starts, firsts, lasts, strict=True)]
