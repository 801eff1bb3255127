"""The replies that a judge gave for a value or a failure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from judge.core.records import Failure, Provenance
from judge.scoring.parse import split_replies

_BRIEF = 24  # characters of a reply that fits beside others


@dataclass(frozen=True, slots=True)
class Replies:
    """The replies behind a value with their counts, the most common first."""

    texts: tuple[tuple[str, int], ...] = ()

    @property
    def brief(self) -> bool:
        """Whether all of them fit on a line."""
        if len(self.texts) > _BRIEF:
            return False
        return all(len(text) <= _BRIEF and "\n" not in text for text, _ in self.texts)

    @property
    def total(self) -> int:
        return sum(count for _, count in self.texts)


def stored_replies(source: Provenance | Failure) -> Replies:
    """Return the stored replies with their counts.

    A score by samples has its draws, a repaired one the reply and that to the repair question.
    """
    raw = source.raw or ""
    texts = [raw]
    if raw and (source.method == "samples" or source.reading == "repaired"):
        texts = [choice.text for choice in split_replies(raw)]
    stripped = [text.strip() for text in texts]
    counts = Counter(filter(None, stripped))
    return Replies(tuple(counts.most_common()))
