"""What comparisons come to: one pair's verdict, a system's standing, a ranking."""

from __future__ import annotations

from dataclasses import dataclass

from judge.core.records import IDENTICAL, Score

TIE = 0.5
_NEAR = 1e-9
"""How far from a tie a value may be by rounding alone."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the answers about one pair of texts come to.

    `preference` (0–1) is for the one of the pair that comes first. `tied`: every answer was a tie. `flipped`: the
    answer changed with the order; None where the judge was not asked in both, or not at all.
    """

    preference: float
    tied: bool
    flipped: bool | None


def verdict(one: Score | None, other: Score | None) -> Verdict:
    """The verdict on a pair of which `one` has the first text shown first and `other` the second: one may be missing.

    The preference is the mean of `one`'s value and 1 − `other`'s.
    """
    answers = [row for row in (one, other) if row is not None]
    for_first, for_second = (None if row is None else _snapped(row.value) for row in (one, other))
    tied = all(_snapped(row.value) == TIE for row in answers)
    if for_first is None or for_second is None:
        return Verdict(for_first if for_first is not None else 1 - (for_second or 0.0), tied, None)
    preference = _snapped(TIE + (for_first - for_second) / 2)
    if any(row.provenance.method == IDENTICAL for row in answers):
        return Verdict(preference, tied, None)
    sides = {(for_first > TIE) - (for_first < TIE), (for_second < TIE) - (for_second > TIE)}
    return Verdict(preference, tied, len(sides) > 1)


def _snapped(value: float) -> float:
    """The value; a tie that rounding has moved is a tie."""
    return TIE if abs(value - TIE) < _NEAR else value


@dataclass(frozen=True, slots=True)
class Standing:
    """How one system did against the others in one column.

    `win_rate` (0–1) is the mean preference over its pairs, in which every pair of texts weighs the same: systems that
    met different rivals are not alike in it, `strength` takes the rivals into account. `low`/`high` are None where its
    pairs come from one item. `strength` is in log-odds, mean zero over the systems: that of `a` less that of `b` is the
    log-odds of `a` being preferred. It is None where `Ranking.note` says why.

    `n` pairs are `wins` + `losses` + `ties` + `undecided`: a tie is a pair of which every order said 0.5, undecided one
    whose two orders cancel out. `flip_rate` is the share of its pairs whose verdict changed with the order, None where
    none was asked in both.
    """

    system: str
    column: str
    win_rate: float
    low: float | None
    high: float | None
    strength: float | None
    strength_low: float | None
    strength_high: float | None
    n: int
    wins: int
    losses: int
    ties: int
    undecided: int
    flip_rate: float | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The systems in one column, `standings` by win rate, best first; a system never compared has none.

    `win_rate[a][b]` is the mean preference for `systems[a]` over `systems[b]` in `n[a][b]` pairs of texts, None where
    there are none. `pairs` were compared; `incomplete` were asked, but lack the answer to an order; `failed` counts the
    judgments that failed. `position_bias` is the mean value of the text shown first less 0.5, over pairs asked in both
    orders, so that the texts' quality cancels out: 0.5 where the first always wins. It and `flip_rate` leave out
    identical texts, about which no judge was asked. `method` says how the intervals were made.
    """

    column: str
    systems: tuple[str, ...]
    standings: tuple[Standing, ...]
    win_rate: tuple[tuple[float | None, ...], ...]
    n: tuple[tuple[int, ...], ...]
    pairs: int
    incomplete: int
    failed: int
    flip_rate: float | None
    position_bias: float | None
    method: str
    note: str = ""
