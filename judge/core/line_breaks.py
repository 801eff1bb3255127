"""Where a line may end: after a space, hyphen, underscore, slash or dot, never inside a word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

_BREAK = re.compile(
    r"(?<=\s)(?=\S)"  # `large |model`
    r"|(?<=[_/])(?=[^\s_/])"  # `org/|llama_|3`
    r"|(?<=[^\W_]-)(?=[^\W_])"  # `gpt-|5`, but not the sign of `-1`
    r"|(?<=[^\W\d_]\.)(?=[^\W_])"  # `www.|example`
    r"|(?<=\d\.)(?=[^\W\d_])"  # `8.|gguf`, but not `5.4`
)


def pieces(text: str) -> Iterator[str]:
    """Yield the parts of a line that must not be broken; joined they are the text.

    Japanese and Chinese have no spaces: a line may end after each of their letters.
    """
    for piece in _BREAK.split(text):
        yield from _letters_apart(piece)


def _letters_apart(piece: str) -> Iterator[str]:
    """Yield a piece whole, or split after each wide letter."""
    start = 0
    for end, character in enumerate(piece, 1):
        is_wide = unicodedata.east_asian_width(character) in ("W", "F")
        # Punctuation and spaces stay with the letter before them.
        is_followed = end < len(piece) and piece[end].isalnum()
        if is_wide and is_followed:
            yield piece[start:end]
            start = end
    if start < len(piece):
        yield piece[start:]


def longest_piece(text: str, measure: Callable[[str], int] = len) -> int:
    """Return the width of the longest part that must not be broken, without a space at its end."""
    return max((measure(piece.rstrip()) for piece in pieces(text)), default=0)


def wrapped(text: str, width: int, measure: Callable[[str], int] = len) -> list[str]:
    """Return the text in lines of at most `width` (at least 1), broken only between pieces.

    Only a piece that is wider than a line is broken inside. Spaces at the end of a line are left
    out.
    """
    lines = [""]
    for piece in pieces(text):
        if measure((lines[-1] + piece).rstrip()) <= width:
            lines[-1] += piece
            continue
        if lines[-1]:
            lines.append("")
        for character in piece:
            if lines[-1] and measure((lines[-1] + character).rstrip()) > width:
                lines.append("")
            lines[-1] += character
    return [line.rstrip() for line in lines]
