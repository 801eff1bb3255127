"""The comparisons of one item as the page shows them: pairs of texts, the verdict in each order, flips marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.core.records import IDENTICAL, Failure, Score
from judge.report.format import number
from judge.report.views.score_details import Finding, finding
from judge.stats.pairwise import TIE, verdict


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer in one order: the system preferred ("" for a tie), how strongly (0–1), and how it was found."""

    first: str
    preferred: str
    strength: str
    found: Finding


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems' texts on one item. `verdicts` are those with `one` and with `other` shown first.

    `value` is the mean preference for `one` (0–1), "–" where an order lacks its answer.
    """

    one: str
    other: str
    verdicts: tuple[Verdict | None, Verdict | None]
    value: str
    flipped: bool
    identical: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """The pairs of one item on one criterion."""

    label: str
    pairs: tuple[Pair, ...]

    @property
    def flips(self) -> int:
        return sum(pair.flipped for pair in self.pairs)


def compared(
    rows: Sequence[Score | Failure], labels: Mapping[str, str], systems: Sequence[str], orders: int
) -> tuple[Compared, ...]:
    """One item's rows by column (those of `labels`, in their order), two orders put together."""
    place = {system: at for at, system in enumerate(systems)}
    found: dict[str, dict[tuple[str, str], list[Score | Failure | None]]] = {column: {} for column in labels}
    for row in rows:
        if row.column in found and {row.system, row.rival} <= place.keys():
            swapped = place[row.system] > place[row.rival]
            key = (row.rival, row.system) if swapped else (row.system, row.rival)
            found[row.column].setdefault(key, [None, None])[swapped] = row
    return tuple(
        Compared(
            labels[column],
            tuple(
                _pair(*names, pairs[names], orders)
                for names in sorted(pairs, key=lambda names: (place[names[0]], place[names[1]]))
            ),
        )
        for column, pairs in found.items()
    )


def _pair(one: str, other: str, answers: Sequence[Score | Failure | None], orders: int) -> Pair:
    scores = [row if isinstance(row, Score) else None for row in answers]
    asked = [score for score in scores if score is not None]
    found = verdict(*scores) if asked else None
    return Pair(
        one,
        other,
        (_verdict(one, other, answers[0]), _verdict(other, one, answers[1])),
        number(found.preference, 2) if found and len(asked) >= orders else "–",
        bool(found and found.flipped),
        any(score.provenance.method == IDENTICAL for score in asked),
    )


def _verdict(first: str, second: str, row: Score | Failure | None) -> Verdict | None:
    if row is None:
        return None
    found = finding(row, (), 2)
    if isinstance(row, Failure):
        return Verdict(first, "", "", found)
    preferred = "" if row.value == TIE else first if row.value > TIE else second
    return Verdict(first, preferred, number(max(row.value, 1 - row.value), 2), found)
