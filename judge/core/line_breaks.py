"""Where a line may end: after a space, hyphen, underscore, slash, bar or dot; never in a word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import pairwise

_BREAK = re.compile(
    r"(?<=\s)(?=\S)"  # after the space of `large model`
    r"|(?<=[_/|])(?=[^\s_/|])"  # in `org/llama_3` twice, in the signature `bleu|tok=13a` once
    r"|(?<=[^\W_]-)(?=[^\W_])"  # in `gpt-5`, but not after the sign of `-1`
    r"|(?<=[^\W\d_]\.)(?=[^\W_])"  # in `llama.v3`
    r"|(?<=\d\.)(?=[^\W\d_])"  # in `8.gguf`, but not in `5.4`
)
# Between "one " and "two".
_SPACE = re.compile(r"(?<=\s)(?=\S)")


def pieces(text: str) -> Iterator[str]:
    """Yield the parts of a line that must not be broken; joined they are the text.

    Japanese and Chinese have no spaces: a line may end after each of their letters. Korean has.
    """
    for piece in _BREAK.split(text):
        yield from _letters_apart(piece)


def _letters_apart(piece: str) -> Iterator[str]:
    """Yield a piece whole, or split after each wide letter."""
    piece_start = 0
    for piece_end, character in enumerate(piece, 1):
        is_wide = unicodedata.east_asian_width(character) in ("W", "F")
        is_korean = "\uac00" <= character <= "\ud7a3"
        # Punctuation and spaces stay with the letter before them.
        is_followed = piece_end < len(piece) and piece[piece_end].isalnum()
        if is_wide and not is_korean and is_followed:
            yield piece[piece_start:piece_end]
            piece_start = piece_end
    if piece_start < len(piece):
        yield piece[piece_start:]


def longest_piece(text: str, measure: Callable[[str], int] = len) -> int:
    """Return the width of the longest part that must not be broken, without a space at its end."""
    widths = [measure(piece.rstrip()) for piece in pieces(text)]
    return max(widths, default=0)


def break_offsets(
    text: str, width: int, measure: Callable[[str], int] = len
) -> list[int]:
    """Return where the second and later lines begin if none is wider than `width` (at least 1).

    Lines end at spaces. Only a name that is wider than a line is broken between its pieces, and
    only a piece that is wider than a line inside. Spaces at the end of a line do not count.
    """

    def is_too_wide(line: str) -> bool:
        return measure(line.rstrip()) > width

    offsets: list[int] = []
    line_start = 0
    line_end = 0
    for piece in _fitting_pieces(text, width, measure):
        extended_line = text[line_start:line_end] + piece
        if line_end > line_start and is_too_wide(extended_line):
            line_start = line_end
            offsets.append(line_start)
        line_end += len(piece)
        if not is_too_wide(text[line_start:line_end]):
            continue
        # A single piece that is wider than a line.
        for position in range(line_start + 1, line_end):
            if is_too_wide(text[line_start : position + 1]):
                line_start = position
                offsets.append(line_start)
    return offsets


def _fitting_pieces(
    text: str, width: int, measure: Callable[[str], int]
) -> Iterator[str]:
    """Yield what stands between spaces, or its pieces if it is wider than a line."""
    for between_spaces in _SPACE.split(text):
        if measure(between_spaces.rstrip()) <= width:
            yield between_spaces
        else:
            yield from pieces(between_spaces)


def wrapped(text: str, width: int, measure: Callable[[str], int] = len) -> list[str]:
    """Return the text in the lines of `break_offsets`, without spaces at their ends."""
    offsets = [0, *break_offsets(text, width, measure), len(text)]
    return [
        text[line_start:line_end].rstrip() for line_start, line_end in pairwise(offsets)
    ]
