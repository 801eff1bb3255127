"""How a criterion reacts to a change of the text: damage that it notices, attacks that work."""

from __future__ import annotations

from typing import Literal

from judge.commands.card.card import TESTABLE, SensitivityCell, is_majority
from judge.commands.card.effects import is_significant
from judge.core.records import Column, Estimate

_HALF = 0.5  # share of the texts from which a change counts as noticed
Reaction = Literal[
    "rewards", "misses", "barely notices", "is inconclusive on", "notices"
]


def towards_worse(cell: SensitivityCell, column: Column) -> bool | None:
    """Return whether a change is towards the worse end; None if it is not significant."""
    if cell.mean_change is None or not is_significant(cell.mean_change):
        return None
    falls = cell.mean_change.value < 0
    return falls != (column.better == "lower")


def moves_half(cell: SensitivityCell, *, opposite: bool = False) -> bool:
    """Return whether a change moves at least half of the scores in its direction.

    With `opposite`, in the opposite one. Those that move the other way are subtracted. The half is
    tested by the low end of the share's interval; the mean by its test, unless that has too few
    texts.
    """
    toward = cell.rate
    back = cell.opposite
    if opposite:
        toward = cell.opposite
        back = cell.rate
    if toward is None or toward.low is None:
        return False
    if toward.low - value_of(back) < _HALF:
        return False
    significant = cell.mean_change is not None and is_significant(cell.mean_change)
    return significant or is_majority(toward, cell.mean_change)


def reaction(cell: SensitivityCell, column: Column) -> Reaction:
    """Return how a criterion reacts to damage that it should notice."""
    worse = towards_worse(cell, column)
    if worse is False or (worse is None and moves_half(cell, opposite=True)):
        return "rewards"
    if moves_half(cell):
        return "notices"
    if cell.rate is not None:
        possible_share = cell.rate.high or 0.0
        # The share of few texts that moves back is too uncertain to be subtracted: one text of one.
        if cell.rate.n >= TESTABLE:
            possible_share -= value_of(cell.opposite)
        if possible_share >= _HALF:
            return "is inconclusive on"
    return "barely notices" if worse else "misses"


def succeeded(cell: SensitivityCell, column: Column) -> bool:
    """Return whether an attack improves the score, against its control and the unchanged text."""
    if cell.vs_original is not None:
        rises = cell.vs_original.value > 0
        is_better = rises != (column.better == "lower")
        if not is_better:
            return False
    worse = towards_worse(cell, column)
    return worse is False or (worse is None and moves_half(cell))


def value_of(share: Estimate | None) -> float:
    """Return the value of a share, 0 without one."""
    return share.value if share else 0.0
