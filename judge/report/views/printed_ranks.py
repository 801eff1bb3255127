"""The ranks that a report prints beside the systems, and the order of its rows."""

from __future__ import annotations

from judge.stats.calibration import Calibrated
from judge.stats.ranks import Rank, shared_ranks
from judge.stats.system_differences import Comparison


def in_printed_order(comparison: Comparison | Calibrated) -> list[Rank]:
    """Return the ranks in the order of the means, but the system that leads comes first.

    The leader has not always the best mean: see `Comparison.best`. If all systems are compared with
    one, none leads, and those with few scores come last.
    """

    def order(rank: Rank) -> tuple[bool, int]:
        if comparison.against:
            return rank.system in comparison.partly_scored, rank.rank
        return rank.system not in comparison.best[:1], rank.rank

    return sorted(comparison.ranks, key=order)


def printed_ranks(comparison: Comparison | Calibrated) -> dict[str, int]:
    """Return the printed rank of each system, in the order of the rows.

    Systems share a rank if none of them differs significantly from another one.
    """
    systems = [rank.system for rank in in_printed_order(comparison)]
    apart: set[frozenset[str]] = set()
    for difference in comparison.differences:
        if difference.apart:
            pair = frozenset((difference.system, difference.other))
            apart.add(pair)
    return shared_ranks(systems, apart)
