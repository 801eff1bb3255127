"""Find in a text what a judge quotes, and positions of folded text in the original."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from judge.core.label_spellings import fold

QUOTE_LINE = re.compile(
    r"^[ \t>*_#•-]*+(?:quote|引用|인용|引文)[ \t*_]*+[:：][ \t*_]*+(?P<quote>[^\r\n]*+)", re.IGNORECASE | re.MULTILINE
)
"""The line of a reply that quotes the sentence which decided the score."""
_MARKS_AROUND = " \t\r\n*_`\"'“”‘’„「」『』《》«»‹›"
# A character and the accents, jamo or voicing marks that may melt into it.
_CLUSTER = re.compile(r".[\u0300-\u036f\u1160-\u11ff\u3099\u309a\uff9e\uff9f]*+", re.DOTALL)
_fold_cluster = lru_cache(maxsize=4_096)(fold)


def find_quote(quote: str | None, texts: Iterable[str]) -> str | None:
    """Return what a judge quotes as the first of the texts with it has it; None if none has it literally."""
    places = ((text, locate(quote, text)) for text in texts if quote)
    return next((text[slice(*place)] for text, place in places if place), None)


def locate(quote: str, text: str, flags: int = 0) -> tuple[int, int] | None:
    """Return where a text has a quotation, None if it does not: compared by `fold`, white space as one space.

    Quotation marks around it need not be in the text. `flags` are those of `re`.
    """
    folded, starts, ends = fold_with_positions(text, 0)
    for words in (fold(quote).split(), fold(quote).strip(_MARKS_AROUND).split()):
        if words and (match := re.search(r"\s+".join(map(re.escape, words)), folded, flags)):
            return starts[match.start()], ends[match.end() - 1]
    return None


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
