"""Ranks of systems, from their means and from the significant differences between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from judge.stats.bootstrap import Floats
from judge.stats.paired_differences import PLACES

_TOLERANCE = 1e-12
"""Relative: closer means differ by rounding only."""


@dataclass(frozen=True, slots=True)
class Rank:
    """A system's rank by its mean, 1 the best; equal means share it.

    `low` to `high` is a 95% interval of the rank, simultaneous for all systems (Mogstad et al.
    2024, section 3): from 1 + the number of significantly better systems to the number of systems
    minus the significantly worse ones, on shared items: `rank` may be outside. With too few items
    it covers every rank; for more than 30 systems it uses only the tests against the first, and for
    a comparison against one system only those.
    """

    system: str
    rank: int
    low: int
    high: int

    @property
    def interval(self) -> str:
        """Return `1–3`, or nothing if the interval is one rank."""
        if self.low >= self.high:
            return ""
        return f"{self.low}–{self.high}"


def rank_by_means(
    systems: Sequence[str],
    means: Floats,
    decided: Sequence[tuple[str, str]],
) -> Iterator[Rank]:
    """Rank systems that are in the order of their means, best first.

    `decided` has the loser and the winner of each significant difference.
    """
    rounding = 10.0**-PLACES
    equals_previous = np.isclose(means[1:], means[:-1], rtol=_TOLERANCE, atol=rounding)
    # Equal means share the rank of the first of them.
    positions = np.arange(1, len(means) + 1)
    starts_rank = np.array([True, *~equals_previous])
    own_or_no_rank = np.where(starts_rank, positions, 0)
    ranks = np.maximum.accumulate(own_or_no_rank).tolist()
    number_better = Counter(loser for loser, _ in decided)
    number_worse = Counter(winner for _, winner in decided)
    for system, rank in zip(systems, ranks, strict=True):
        best_rank = 1 + number_better[system]
        worst_rank = len(ranks) - number_worse[system]
        yield Rank(system, rank, best_rank, worst_rank)


def shared_ranks(
    systems: Sequence[str], apart: Collection[frozenset[str]]
) -> dict[str, int]:
    """Return the rank of each system, by its name: systems that do not differ share one.

    The systems are in the order of their means, best first. `apart` has the pairs that differ
    significantly. A system shares the rank of the one before it if it differs from none that has
    this rank. The next rank is 1 + the number of all systems before it: 1, 1, 3.
    """
    ranks: dict[str, int] = {}
    sharing: list[str] = []
    for position, system in enumerate(systems, 1):
        if any(frozenset((system, sharer)) in apart for sharer in sharing):
            sharing = []
        sharing.append(system)
        ranks[system] = position - len(sharing) + 1
    return ranks


def leaders(
    names: Sequence[str],
    mostly_scored: Sequence[str],
    decided: Sequence[tuple[str, str]],
) -> tuple[str, ...]:
    """Return the first system that no other beats, and those that do not differ from it.

    The systems are in the order of their means; `mostly_scored` ones lead before the others.
    """
    beaten = {loser for loser, _ in decided}
    unbeaten = [system for system in (*mostly_scored, *names) if system not in beaten]
    leader = unbeaten[0] if unbeaten else names[0]
    losses = set(decided)
    others = [system for system in names if system != leader]
    not_behind = [system for system in others if (system, leader) not in losses]
    return leader, *not_behind
