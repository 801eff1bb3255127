"""Find the pieces of a tokenizer in the text that it split."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# Characters that a tokenizer drops between two pieces.
_MOST_SKIPPED = 20
# A character with the marks that NFKC composes with it: ｶﾞ, か with a combining mark, é as two
# characters.
_COMPOSED = re.compile(r"(?s:.)[\u0300-\u036f\u3099\u309a\uff9e\uff9f\u1160-\u11ff]*")


class _PlainText:
    """A text in the form of `_plain`, with the place in the text of each of its letters."""

    def __init__(self, text: str) -> None:
        letters: list[str] = []
        self._origins: list[tuple[int, int]] = []
        for match in _COMPOSED.finditer(text):
            for letter in _plain(match.group()):
                letters.append(letter)
                self._origins.append(match.span())
        self.letters = "".join(letters)
        self._length = len(text)

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Return where these letters begin and end in the text; an empty span if there are none."""
        if start < stop:
            first, _ = self._origins[start]
            _, last = self._origins[stop - 1]
            return first, last
        position = self._length
        if start < len(self._origins):
            position, _ = self._origins[start]
        return position, position


def piece_spans(
    text: str,
    pieces: Sequence[str],
    unknown: str | None,
) -> list[tuple[int, int]]:
    """Return where pieces of a text begin and end in it, in order.

    The span is empty if a piece does not occur there. Case, Unicode's form and white space may
    differ. Marks of pieces are dropped: `##` at the beginning, `▁` for a space. `unknown` stands
    for all text up to the next known piece.
    """
    plain_text = _PlainText(text)
    letters = plain_text.letters
    spans: list[tuple[int, int]] = []
    unknown_pieces: list[int] = []
    position = 0
    for number, piece in enumerate(pieces):
        spans.append(plain_text.span(position, position))
        if piece == unknown:
            unknown_pieces.append(number)
            continue
        # "##ing" continues a word in WordPiece; "##" alone is a piece of two signs.
        without_mark = piece
        if len(piece) > 2:
            without_mark = piece.removeprefix("##")
        plain_piece = _plain(without_mark)
        # After an unknown piece the next one may begin anywhere.
        search_end = len(letters)
        if not unknown_pieces:
            search_end = position + _MOST_SKIPPED + len(plain_piece)
        if not plain_piece:
            continue
        piece_start = letters.find(plain_piece, position, search_end)
        if piece_start < 0:
            continue
        for index in unknown_pieces:
            spans[index] = plain_text.span(position, piece_start)
        unknown_pieces = []
        position = piece_start + len(plain_piece)
        spans[-1] = plain_text.span(piece_start, position)
    for index in unknown_pieces:
        spans[index] = plain_text.span(position, len(letters))
    return spans


def _plain(text: str) -> str:
    """Return the letters of a text or piece in one form: NFKC, folded case, no white space."""
    folded = unicodedata.normalize("NFKC", text.replace("▁", " ")).casefold()
    return "".join(folded.split())
