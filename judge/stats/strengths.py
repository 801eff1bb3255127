"""Bradley-Terry strengths of systems, with standard errors over items."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import NamedTuple

import numpy as np

from judge.stats.bootstrap import (
    CONFIDENCE,
    MIN_INTERVAL_ITEMS,
    Bools,
    Floats,
    t_quantile,
)
from judge.stats.compared_pairs import Sides

_TOLERANCE = 1e-9  # evalica's, of its scores
_LIMIT = 20_000  # iterations
# Tolerance of the likelihood equations, per comparison. If strengths differ a lot, evalica's own
# tolerance is below the rounding of its scores, and it iterates to the limit without gain.
_RESIDUAL = 1e-8


class Strength(NamedTuple):
    """A system's strength and both ends of its interval, None if unknown."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Strengths:
    """Bradley-Terry log-odds by system, mean zero, and their variances; empty if `note` says why.

    `over_items` is the variance over items, `by_model` that of the model for independent pairs.
    `pull` is how far the added ties move a strength (towards 0).
    """

    note: str = ""
    values: Floats | None = None
    over_items: Floats = field(default_factory=lambda: np.empty(0))
    by_model: Floats = field(default_factory=lambda: np.empty(0))
    pull: Floats = field(default_factory=lambda: np.empty(0))

    def with_interval(self, index: int, items: int, n_agreeing: int | None) -> Strength:
        """Return a strength with its interval by Student's t; the ends are None below five items.

        `n_agreeing` is the number of pairs if all items agree. Then the scores do not vary over
        items, and the model's variance takes the place of the sandwich's.
        """
        if self.values is None:
            return Strength(None, None, None)
        strength = float(self.values[index])
        if items < MIN_INTERVAL_ITEMS:
            return Strength(strength, None, None)
        if n_agreeing:  # each item counts as one win or loss
            variance = float(self.by_model[index]) * n_agreeing / items
        else:
            variance = float(self.over_items[index]) * items / (items - 1)
        quantile = t_quantile((1 - CONFIDENCE) / 2, items - 1)
        half = quantile * sqrt(variance)
        pull = float(self.pull[index])
        # The added ties pull strengths towards 0, so the end away from 0 is further out.
        lower_bound = strength - half - max(0.0, pull)
        upper_bound = strength + half - min(0.0, pull)
        return Strength(strength, lower_bound, upper_bound)


def fit_strengths(
    sides: Sides, number: Floats, preferred: Floats, *, groups: int
) -> Strengths:
    """Fit strengths and White's sandwich (1982).

    The sandwich adds up the scores of an item's pairs (Liang and Zeger 1986). `number` of pairs and
    sum of preferences are systems × opponents; `groups` counts those that never met.
    """
    if not sides.systems:
        return Strengths("No pair was compared.")
    if groups > 1:
        return Strengths(
            f"The systems fall into {groups} groups that never met: no strengths."
        )

    # Add one tie to every pair of systems that met: without it, an undefeated system has an
    # infinite strength.
    met = number > 0
    with_tie = number + met
    wins = preferred + met / 2
    odds = _bradley_terry(wins, met)
    with np.errstate(all="ignore"):
        sums_of_odds = odds[:, None] + odds
        expected = odds[:, None] / sums_of_odds
        strengths = np.log(odds)
    # evalica raises no error for a fit that did not converge.
    is_finite = bool(np.isfinite(strengths).all())
    if not is_finite or not _solves(expected, wins, with_tie):
        return Strengths("The Bradley-Terry fit did not converge: no strengths.")

    variance = expected * (1 - expected)
    inverse = _inverse_information(with_tie * variance)
    inverse_without_ties = _inverse_information(number * variance)
    influences = _scores_by_item(sides, expected) @ inverse
    over_items = (influences**2).sum(axis=0)
    surprise_of_ties = met * (0.5 - expected)
    scores_of_ties = surprise_of_ties.sum(axis=1)
    pull = inverse_without_ties @ scores_of_ties
    return Strengths(
        "",
        strengths - strengths.mean(),
        over_items=over_items,
        by_model=np.diag(inverse).copy(),
        pull=pull,
    )


def _bradley_terry(wins: Floats, met: Bools) -> Floats:
    """Return the systems' odds from their wins over each other (systems × opponents)."""
    import evalica

    systems, opponents = np.nonzero(met)
    winners = [evalica.Winner.X] * len(systems)
    weights = wins[met].tolist()
    result = evalica.bradley_terry(
        systems.tolist(),
        opponents.tolist(),
        winners,
        weights=weights,
        tolerance=_TOLERANCE,
        limit=_LIMIT,
    )
    return np.asarray(result.scores.sort_index(), dtype=np.float64)


def _solves(expected: Floats, wins: Floats, number: Floats) -> bool:
    """Return whether strengths solve the likelihood equations: each system wins as expected.

    `expected` are the systems' win rates over each other by their strengths, `wins` and `number`
    their wins and comparisons.
    """
    with np.errstate(all="ignore"):
        surplus_wins = wins - number * expected
        residuals = np.abs(surplus_wins.sum(axis=1))
        n_comparisons = number.sum(axis=1)
        solved = residuals <= _RESIDUAL * n_comparisons
    return bool(solved.all())


def _scores_by_item(sides: Sides, expected: Floats) -> Floats:
    """Return the scores of the likelihood (items × systems).

    A score is how much more than expected a system was preferred in an item's pairs.
    """
    n_items = int(sides.item.max()) + 1
    scores = np.zeros((n_items, len(sides.systems)))
    surprise = sides.p - expected[sides.system, sides.opponent]
    # A system has several pairs in an item: `scores[…] += …` would add only one of them.
    np.add.at(scores, (sides.item, sides.system), surprise)
    return scores


def _inverse_information(weights: Floats) -> Floats:
    """Return the inverse of the Fisher information, a Laplacian: its rows sum to 0."""
    information = np.diag(weights.sum(axis=1)) - weights
    # Only differences of strengths are identified, so the matrix is singular: a pseudo-inverse.
    return np.asarray(np.linalg.pinv(information), dtype=np.float64)
