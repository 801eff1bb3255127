"""Estimate win rates against one system at equal length.

They are what the judge would prefer if both texts were equally long. The model is a logistic
regression of the preferences, with a constant for each system and one coefficient of the tanh of
the length difference, in standard deviations. It is a simpler model than the length-controlled win
rate of AlpacaEval (Dubois et al. 2024), which also needs a difficulty of each instruction and runs
of the baseline in other lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from judge.core.records import Estimate
from judge.stats.bootstrap import CONFIDENCE, Floats, Ints, resample_weights

_RESAMPLES = 1_000
# With 10 or 20 items, percentile intervals cover only 85% in simulations.
_MIN_ITEMS = 30
_MAX_STEPS = 100  # of Newton's method
_TOLERANCE = 1e-8  # in log-odds: Newton's method ends with a smaller step
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
    `longer` is the length of the system's text minus that of the other's, in any unit. The length
    coefficient is shared, because it describes the judge. Each system gets two halves of a tie, one
    with a far longer and one with a far shorter text, so that every estimate is finite. Intervals
    are percentiles over 1,000 resamples of the items, from 30 items on. If all differences are
    equal, there are no estimates.
    """
    if len(set(longer)) < 2:
        return {}
    names = list(dict.fromkeys(systems))
    pairs = _pairs_with_half_ties(names, systems, preferences, longer)
    item_names = list(dict.fromkeys(items))
    index_by_item = {item: index for index, item in enumerate(item_names)}
    item_index = np.array([index_by_item[item_name] for item_name in items])

    start = np.zeros(len(names) + 1)
    best = _fit(pairs, np.ones(len(item_index)), start)
    rates = _probability(best[1:])
    n_items = _items_of_systems(items, systems)
    rate_ends = np.full((2, len(names)), np.nan)
    if max(n_items.values()) >= _MIN_ITEMS:
        rate_ends = _interval_ends(pairs, item_index, best, seed)
    method = (
        f"logistic regression; 95% percentile interval, {_RESAMPLES} resamples of items, "
        f"seed {seed}"
    )
    estimates: dict[str, Estimate] = {}
    for index, system in enumerate(names):
        lower_bound: float | None = None
        upper_bound: float | None = None
        if n_items[system] >= _MIN_ITEMS:
            lower_bound, upper_bound = rate_ends[:, index].tolist()
        estimates[system] = Estimate(
            name="win rate at equal length",
            value=float(rates[index]),
            low=lower_bound,
            high=upper_bound,
            n=n_items[system],
            method=method,
        )
    return estimates


def _interval_ends(pairs: _Pairs, item_index: Ints, best: Floats, seed: int) -> Floats:
    """Return the low and the high ends of the systems' win rates (2 × systems).

    `item_index` is the index of each pair's item, `best` the fit to all items.
    """
    n_items = int(item_index.max()) + 1
    log_odds: list[Floats] = []
    for chunk in resample_weights(n_items, _RESAMPLES, seed):
        for item_weights in chunk:
            # Newton's method needs few steps from the best fit.
            parameters = _fit(pairs, item_weights[item_index], best)
            log_odds.append(parameters[1:])
    tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    return _probability(np.quantile(log_odds, tails, axis=0))


class _Pairs(NamedTuple):
    """The pairs, then the two halves of a tie of each system: far longer, then far shorter.

    `x` is the tanh of the length difference in standard deviations, `y` the preference.
    """

    system: Ints
    x: Floats
    y: Floats
    half_ties: Floats


def _pairs_with_half_ties(
    names: Sequence[str],
    systems: Sequence[str],
    preferences: Sequence[float],
    longer: Sequence[float],
) -> _Pairs:
    """Return the pairs, each with the index of its system in `names`, and the half ties."""
    index_by_system = {system: index for index, system in enumerate(names)}
    system_of_pair = [index_by_system[system] for system in systems]
    every_system = range(len(names))
    system = np.array([*system_of_pair, *every_system, *every_system])
    difference = np.array(longer, dtype=np.float64)
    length = np.tanh(difference / difference.std())
    # 1 and −1 are the limits of tanh: a far longer and a far shorter text.
    longest = np.ones(len(names))
    x = np.concatenate([length, longest, -longest])
    half_ties = np.full(2 * len(names), 0.5)
    observed = np.array(preferences, dtype=np.float64)
    y = np.concatenate([observed, half_ties])
    return _Pairs(system, x, y, half_ties)


def _items_of_systems(items: Sequence[Any], systems: Sequence[str]) -> dict[str, int]:
    """Return the number of different items of each system's pairs."""
    items_of_system: dict[str, set[Any]] = {}
    for item, system in zip(items, systems, strict=True):
        items_of_system.setdefault(system, set()).add(item)
    return {system: len(distinct) for system, distinct in items_of_system.items()}


def _probability(log_odds: Floats) -> Floats:
    """Return the probability of these log-odds: the logistic function."""
    probability: Floats = 1 / (1 + np.exp(-log_odds))
    return probability


def _fit(pairs: _Pairs, pair_weights: Floats, start_parameters: Floats) -> Floats:
    """Return the most likely coefficient of x and constant of each system (Newton's method).

    The matrix of second derivatives has one row for x, and is diagonal for the systems. So its
    system of equations is solved for the coefficient of x first.
    """
    system = pairs.system
    x = pairs.x
    # Half a tie has the weight ½.
    weights = np.concatenate([pair_weights, pairs.half_ties])
    n_systems = len(start_parameters) - 1
    parameters = start_parameters.copy()
    for _ in range(_MAX_STEPS):
        odds = parameters[1 + system] + parameters[0] * x
        probability = _probability(odds)
        error = weights * (pairs.y - probability)
        curvature = weights * probability * (1 - probability)
        gradient = np.bincount(system, error, n_systems)
        diagonal = np.bincount(system, curvature, n_systems)
        mixed = np.bincount(system, curvature * x, n_systems)
        # The Schur complement of the systems' block leaves one equation for the slope.
        gradient_of_systems = (mixed * gradient / diagonal).sum()
        curvature_of_systems = (mixed**2 / diagonal).sum()
        slope_gradient = (error * x).sum() - gradient_of_systems
        slope_curvature = (curvature * x * x).sum() - curvature_of_systems
        step_of_slope = slope_gradient / slope_curvature
        steps_of_systems = (gradient - mixed * step_of_slope) / diagonal
        step = np.concatenate([[step_of_slope], steps_of_systems])
        parameters += np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        if np.abs(step).max() < _TOLERANCE:
            break
    return parameters
