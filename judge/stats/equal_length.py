"""Estimate win rates against one system at equal length.

They are what the judge would prefer if both texts were equally long. The model is a logistic
regression of the preferences, with a constant for each system and one coefficient of the tanh of
the length difference, in standard deviations. It is a simpler model than the length-controlled win
rate of AlpacaEval (Dubois et al. 2024), which also needs a difficulty of each instruction and runs
of the baseline in other lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from judge.core.records import Estimate
from judge.stats.bootstrap import CONFIDENCE, Floats, Ints, resample_weights

_RESAMPLES = 1_000
_MIN_ITEMS = 30  # with 10 or 20 items, percentile intervals cover only 85% in simulations
_STEPS = 100  # of Newton's method
_TOLERANCE = 1e-8  # of its last step, in log-odds
_LARGEST_STEP = 2.0  # in log-odds: without a limit, Newton's method may diverge


def win_rates(
    items: Sequence[Any],
    systems: Sequence[str],
    preferences: Sequence[float],
    longer: Sequence[float],
    seed: int = 0,
) -> dict[str, Estimate]:
    """Return each system's win rate (0–1) at equal length.

    It is estimated from the system's pairs with one opponent, which is the same for all systems.
    `longer` is by how much the system's text is longer than the other's, in any unit. The length
    coefficient is shared, because it describes the judge. Each system gets two halves of a tie, one
    with a far longer and one with a far shorter text, so that every estimate is finite. Intervals
    are percentiles over 1,000 resamples of the items, from 30 items on. If all differences are
    equal, there are no estimates.
    """
    if len(set(longer)) < 2:
        return {}
    names = list(dict.fromkeys(systems))
    item_names = list(dict.fromkeys(items))
    system_index = {name: index for index, name in enumerate(names)}
    item_index = {name: index for index, name in enumerate(item_names)}
    item = np.array([item_index[name] for name in items])

    # After the pairs come the two halves of a tie of each system: far longer, then far shorter.
    n_halves = 2 * len(names)
    half_ties = np.full(n_halves, 0.5)
    own_systems = [system_index[name] for name in systems]
    system = np.array([*own_systems, *range(len(names)), *range(len(names))])
    difference = np.array(longer, dtype=np.float64)
    length = np.tanh(difference / difference.std())
    x = np.concatenate([length, np.ones(len(names)), -np.ones(len(names))])
    y = np.concatenate([np.array(preferences, dtype=np.float64), half_ties])

    start = np.zeros(len(names) + 1)
    all_once = np.concatenate([np.ones(len(item)), half_ties])
    best = _fit(system, x, y, all_once, start)
    n_items = _items_of_systems(items, systems)
    ends = np.full((2, len(names)), np.nan)
    if max(n_items.values()) >= _MIN_ITEMS:
        drawn: list[Floats] = []
        for chunk in resample_weights(len(item_names), _RESAMPLES, seed):
            for item_weights in chunk:
                weights = np.concatenate([item_weights[item], half_ties])
                # From the best fit, few steps are left.
                drawn.append(_fit(system, x, y, weights, best)[1:])
        tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
        ends = np.quantile(drawn, tails, axis=0)
    rates = _probability(best[1:])
    rate_ends = _probability(ends)
    method = (
        f"logistic regression; 95% percentile interval, {_RESAMPLES} resamples of items, "
        f"seed {seed}"
    )
    estimates: dict[str, Estimate] = {}
    for index, name in enumerate(names):
        low: float | None = None
        high: float | None = None
        if n_items[name] >= _MIN_ITEMS:
            low, high = rate_ends[:, index].tolist()
        rate = float(rates[index])
        title = "win rate at equal length"
        estimates[name] = Estimate(title, rate, low, high, n_items[name], method)
    return estimates


def _items_of_systems(items: Sequence[Any], systems: Sequence[str]) -> dict[str, int]:
    """Return the number of different items of each system's pairs."""
    items_of_system: dict[str, set[Any]] = {}
    for item, system in zip(items, systems, strict=True):
        items_of_system.setdefault(system, set()).add(item)
    return {system: len(own_items) for system, own_items in items_of_system.items()}


def _probability(log_odds: Floats) -> Floats:
    probability: Floats = 1 / (1 + np.exp(-log_odds))
    return probability


def _fit(system: Ints, x: Floats, y: Floats, weights: Floats, start: Floats) -> Floats:
    """Return the most likely coefficient of x and constant of each system (Newton's method).

    The matrix of second derivatives has one row for x, and is diagonal for the systems. So its
    system of equations is solved for the coefficient of x first.
    """
    n_systems = len(start) - 1
    parameters = start.copy()
    for _ in range(_STEPS):
        p = _probability(parameters[1 + system] + parameters[0] * x)
        error = weights * (y - p)
        curvature = weights * p * (1 - p)
        gradient = np.bincount(system, error, n_systems)
        diagonal = np.bincount(system, curvature, n_systems)
        mixed = np.bincount(system, curvature * x, n_systems)
        slope_gradient = (error * x).sum() - (mixed * gradient / diagonal).sum()
        slope_curvature = (curvature * x * x).sum() - (mixed**2 / diagonal).sum()
        slope = slope_gradient / slope_curvature
        step = np.concatenate([[slope], (gradient - mixed * slope) / diagonal])
        parameters += np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        if np.abs(step).max() < _TOLERANCE:
            break
    return parameters
