"""Find what a judge quotes in a text, and map positions of folded text to the original."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from judge.core.label_spellings import fold

# "Quote: The team won.", "> **引用**：…", "- 인용: …"
QUOTE_LINE = re.compile(
    r"^[ \t>*_#•-]*+(?:quote|引用|인용|引文)[ \t*_]*+[:：][ \t*_]*+(?P<quote>[^\r\n]*+)",
    re.IGNORECASE | re.MULTILINE,
)
"""The line of a reply that quotes the sentence which decided the score."""
_MARKS_AROUND = " \t\r\n*_`\"'“”‘’„「」『』《》«»‹›"
# A character and the accents, jamo or voicing marks that folding may combine with it: "e" and
# U+0301, "ｶ" and "ﾞ".
_CLUSTER = re.compile(
    r".[\u0300-\u036f\u1160-\u11ff\u3099\u309a\uff9e\uff9f]*+", re.DOTALL
)
# Texts repeat their characters.
_fold_cluster = lru_cache(maxsize=4_096)(fold)
# A mark that opens or closes a quotation. After a digit or letter, a straight mark only closes: it
# may be inches (`27"`). Single marks and backticks are mostly apostrophes and code, so they are not
# here; the grammar of a score notices the one that closes around it.
_QUOTATION = re.compile(r'[0-9A-Za-z]?["“”„「」『』《》«»‹›〝〞〟]')
_CLOSED_BY = {
    '"': '"', "“": "”", "„": "“”", "「": "」", "『": "』", "《": "》", "«": "»", "»": "«",
    "‹": "›", "›": "‹", "〝": "〞〟",
}  # fmt: skip


def is_quoted(before: str, head: str) -> bool:
    """Return whether what follows is quoted.

    That is the case if a quotation that begins in `before` is still open at its end, or if the last
    line of `head` is a line of a Markdown quotation ("> …").
    """
    # The marks that close each open quotation, the innermost last.
    closers: list[str] = []
    for match in _QUOTATION.findall(fold(before)):
        mark = match[-1]
        follows_word = len(match) > 1
        if closers and mark in closers[-1]:
            closers.pop()
        elif mark in _CLOSED_BY and not (follows_word and mark == '"'):
            closers.append(_CLOSED_BY[mark])
    last_line = head.rpartition("\n")[2]
    return bool(closers) or last_line.lstrip().startswith(">")


def find_quote(quote: str | None, texts: Iterable[str]) -> str | None:
    """Return a judge's quotation as it is written in the first of the texts that contains it.

    Return None if no text contains it literally, by the rules of `locate`.
    """
    if not quote:
        return None
    for text in texts:
        span = locate(quote, text)
        if span is not None:
            start, end = span
            return text[start:end]
    return None


def locate(
    quote: str, text: str, *, ignore_case: bool = False
) -> tuple[int, int] | None:
    """Return the start and end of a quotation in a text, None if the text does not contain it.

    Both are compared by `fold`, with any white space as one space. Quotation marks around the
    quotation need not be in the text. Takes time that is linear in both lengths.
    """
    spaced = _one_spaced(text, ignore_case)
    folded_quote = fold(quote)
    for candidate in (folded_quote, folded_quote.strip(_MARKS_AROUND)):
        spaced_quote = " ".join(candidate.split())
        if ignore_case:
            spaced_quote = _one_case(spaced_quote)
        if not spaced_quote:
            continue
        position = spaced.text.find(spaced_quote)
        if position >= 0:
            # From the spaced text to the folded one, and from there to the original.
            folded = fold_with_positions(text, 0)
            first = spaced.positions[position]
            last = spaced.positions[position + len(spaced_quote) - 1]
            return folded.starts[first], folded.ends[last]
    return None


@dataclass(frozen=True, slots=True)
class _SpacedText:
    """A text as `locate` compares it, with the index of each character in the folded text."""

    text: str
    positions: Sequence[int]


# A reply has several quotations of the same few texts.
@lru_cache(maxsize=4)
def _one_spaced(text: str, ignore_case: bool) -> _SpacedText:
    """Return the folded text with any white space as one space, and in one case if asked."""
    folded = fold_with_positions(text, 0).text
    positions: list[int] = []
    for word in re.finditer(r"\S+", folded):
        if positions:
            # The single space before this word is the last character of the white space there.
            positions.append(word.start() - 1)
        positions += range(*word.span())
    spaced = " ".join(folded.split())
    if ignore_case:
        spaced = _one_case(spaced)
    return _SpacedText(spaced, positions)


def _one_case(text: str) -> str:
    """Return a text of the same length without upper case.

    A letter that would become several, such as "ß", stays, because positions must not shift.
    """
    lower = text.casefold()
    if len(lower) == len(text):
        return lower
    characters: list[str] = []
    for character in text:
        folded = character.casefold()
        if len(folded) > 1:
            folded = character
        characters.append(folded)
    return "".join(characters)


@dataclass(frozen=True, slots=True)
class FoldedText:
    """A folded text; character `i` comes from `original[starts[i]:ends[i]]`."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


@lru_cache(maxsize=4)
def fold_with_positions(text: str, base: int) -> FoldedText:
    """Fold a text and keep the position of each character's source, counted from `base`.

    A character is folded together with its combining marks.
    """
    # Most texts are folded already.
    if fold(text) == text:
        end = base + len(text)
        return FoldedText(text, range(base, end), range(base + 1, end + 1))
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    position = base
    for cluster in _CLUSTER.findall(text):
        part = _fold_cluster(cluster)
        parts.append(part)
        # Folding may make several characters of one ("½") or none (a zero-width space).
        starts += [position] * len(part)
        position += len(cluster)
        ends += [position] * len(part)
    return FoldedText("".join(parts), starts, ends)
