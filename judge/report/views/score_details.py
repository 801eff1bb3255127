"""What was found for one text in one column, as the page shows it: the value, how it was made, the judge's words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from judge.core.records import IDENTICAL, Failure, Provenance, Score
from judge.report.charts import geometry
from judge.report.format import count, number

_BRIEF = 24  # characters of a reply that is shown beside the others


@dataclass(frozen=True, slots=True)
class Replies:
    """The replies behind a value, equal ones together: text and how often, the commonest first."""

    texts: tuple[tuple[str, int], ...] = ()

    @property
    def brief(self) -> bool:
        """Whether all of them can stand in a line."""
        return all(len(text) <= _BRIEF and "\n" not in text for text, _ in self.texts) and len(self.texts) <= _BRIEF

    @property
    def total(self) -> int:
        return sum(n for _, n in self.texts)


@dataclass(frozen=True, slots=True)
class Finding:
    """A value, or the failure to get one (`value` is then empty); `abstained` where a metric declined to give one.

    `path` and `shares` are its distribution, drawn and in words; `facts` say how it was made.
    """

    value: str
    path: str
    shares: str
    facts: str
    reason: str
    replies: Replies
    failure: Failure | None
    abstained: bool = False


def finding(row: Score | Failure, labels: Sequence[str], places: int) -> Finding:
    """A row laid out, its value with that many decimals."""
    if isinstance(row, Failure):
        drawn = _drawn(row.raw)
        known = drawn and f"{len(drawn)} draw" in row.message  # else a reply that happens to be a list
        return Finding("", "", "", "", "", _replies(drawn if known else [row.raw]), row)
    p = row.provenance
    path, shares = geometry.spark(p.distribution, labels) if p.distribution else ("", "")
    drawn = _drawn(p.raw or "") if p.method == "samples" else []
    replies = _replies(drawn or [p.raw or ""])
    return Finding(number(row.value, places), path, shares, _how(p, places), p.reason or "", replies, None)


def _drawn(raw: str) -> list[str]:
    """The replies of which a score by samples keeps a JSON list; none where this is something else."""
    try:
        found = json.loads(raw) if raw.startswith("[") else []
    except ValueError:
        return []
    return found if all(isinstance(text, str) for text in found) else []


def _replies(texts: Sequence[str]) -> Replies:
    return Replies(tuple(Counter(text.strip() for text in texts if text.strip()).most_common()))


def _how(p: Provenance, places: int) -> str:
    """How a score was made, in a few words."""
    if p.method in ("panel", IDENTICAL):
        return p.note or p.method
    parts = [p.method]
    if p.method == "samples":
        asked = round(p.n / p.mass) if p.mass else p.n
        parts.append(f"{p.n:,} of {asked:,} draws" if asked != p.n else count(p.n, "draw"))
    elif p.mass is not None:
        parts.append(f"mass {p.mass:.2f}")
    ends = [number(end, places) for end in (p.low, p.high) if end is not None]
    if len(set(ends)) > 1:
        parts.append(f"bounds {'–'.join(ends)}")
    if p.entropy is not None:
        parts.append(f"entropy {p.entropy:.2f}")
    return ", ".join(parts) + (f"; {p.note}" if p.note else "")
