"""Find in a text what a judge quotes, and positions of folded text in the original."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from judge.core.label_spellings import fold

QUOTE_LINE = re.compile(
    r"^[ \t>*_#•-]*+(?:quote|引用|인용|引文)[ \t*_]*+[:：][ \t*_]*+(?P<quote>[^\r\n]*+)",
    re.IGNORECASE | re.MULTILINE,
)
"""The line of a reply that quotes the sentence which decided the score."""
_MARKS_AROUND = " \t\r\n*_`\"'“”‘’„「」『』《》«»‹›"
# A character and the accents, jamo or voicing marks that may melt into it.
_CLUSTER = re.compile(r".[\u0300-\u036f\u1160-\u11ff\u3099\u309a\uff9e\uff9f]*+", re.DOTALL)
_fold_cluster = lru_cache(maxsize=4_096)(fold)
# What opens or closes a quotation. After a digit or letter, a straight mark only closes: it may be inches. Single marks
# and backticks are mostly apostrophes and code: around a score, the one that closes it is noticed.
_QUOTATION = re.compile(r'[0-9A-Za-z]?["“”„「」『』《》«»‹›〝〞〟]')
_CLOSED_BY = {
    '"': '"', "“": "”", "„": "“”", "「": "」", "『": "』", "《": "》", "«": "»", "»": "«",
    "‹": "›", "›": "‹", "〝": "〞〟",
}  # fmt: skip


def is_quoted(before: str, head: str) -> bool:
    """Return whether a quotation that begins in `before` is open at its end, or the last line of `head` is quoted."""
    closers: list[str] = []
    for mark in _QUOTATION.findall(fold(before)):
        if closers and mark[-1] in closers[-1]:
            closers.pop()
        elif mark[-1] in _CLOSED_BY and (mark == mark[-1] or mark[-1] != '"'):
            closers.append(_CLOSED_BY[mark[-1]])
    return bool(closers) or head.rpartition("\n")[2].lstrip().startswith(">")


def find_quote(quote: str | None, texts: Iterable[str]) -> str | None:
    """Return what a judge quotes as the first of the texts with it has it; None if none has it literally."""
    places = ((text, locate(quote, text)) for text in texts if quote)
    return next((text[slice(*place)] for text, place in places if place), None)


def locate(quote: str, text: str, *, ignore_case: bool = False) -> tuple[int, int] | None:
    """Return where a text has a quotation, None if it does not: compared by `fold`, white space as one space.

    Quotation marks around it need not be in the text. Takes time that is linear in both lengths.
    """
    spaced, places = _one_spaced(text, ignore_case)
    folded = fold(quote)
    for words in (folded.split(), folded.strip(_MARKS_AROUND).split()):
        wanted = _one_case(" ".join(words)) if ignore_case else " ".join(words)
        if wanted and (at := spaced.find(wanted)) >= 0:
            _, starts, ends = fold_with_positions(text, 0)
            return starts[places[at]], ends[places[at + len(wanted) - 1]]
    return None


@lru_cache(maxsize=4)
def _one_spaced(text: str, ignore_case: bool) -> tuple[str, Sequence[int]]:
    """Return a text as `locate` compares it, and the place of each of its characters in the folded text."""
    folded = fold_with_positions(text, 0)[0]
    places: list[int] = []
    for match in re.finditer(r"\S+", folded):
        places += [*([match.start() - 1] if places else []), *range(*match.span())]
    spaced = " ".join(folded.split())
    return _one_case(spaced) if ignore_case else spaced, places


def _one_case(text: str) -> str:
    """Return a text of the same length without upper case; a letter that would become several stays."""
    if len(lower := text.casefold()) == len(text):
        return lower
    return "".join(one if len(one := char.casefold()) == 1 else char for char in text)


@lru_cache(maxsize=4)
def fold_with_positions(text: str, base: int) -> tuple[str, Sequence[int], Sequence[int]]:
    """Fold a text and return, for each folded character, the start and end of its source in the original.

    Positions count from `base`. A character is folded together with its combining marks.
    """
    if fold(text) == text:
        return text, range(base, base + len(text)), range(base + 1, base + len(text) + 1)
    folded: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for cluster in _CLUSTER.findall(text):
        part = _fold_cluster(cluster)
        folded.append(part)
        starts += [base] * len(part)
        base += len(cluster)
        ends += [base] * len(part)
    return "".join(folded), starts, ends
