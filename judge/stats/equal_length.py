"""Estimate win rates against one system at equal length: what the judge would prefer if both texts were equally long.

A logistic regression of the preferences, with a constant for each system and one coefficient of the tanh of the length
difference, in standard deviations. It is a simpler model than the length-controlled win rate of AlpacaEval (Dubois et
al. 2024), which also needs a difficulty of each instruction and runs of the baseline in other lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from judge.core.records import Estimate
from judge.stats.bootstrap import CONFIDENCE, Floats, Ints, resample_weights

_RESAMPLES = 1_000
_MIN_ITEMS = 30  # with 10 or 20 items, percentile intervals cover only 85% in simulations
_STEPS, _TOLERANCE = 100, 1e-8
_LARGEST_STEP = 2.0  # in log-odds: without a limit, Newton's method may diverge


def win_rates(
    items: Sequence[Any],
    systems: Sequence[str],
    preferences: Sequence[float],
    longer: Sequence[float],
    seed: int = 0,
) -> dict[str, Estimate]:
    """Return each system's win rate (0–1) at equal length, from its pairs with the same other system.

    `longer` is by how much the system's text is longer than the other's, in any unit. The length coefficient is shared,
    because it describes the judge. Each system gets two halves of a tie, one with a far longer and one with a far
    shorter text, so that every estimate is finite. Intervals are percentiles over 1,000 resamples of the items, from 30
    items on. If all differences are equal, there are no estimates.
    """
    if len({*longer}) < 2:
        return {}
    names, item_names = list(dict.fromkeys(systems)), list(dict.fromkeys(items))
    place, item_place = (
        {name: k for k, name in enumerate(names)},
        {name: k for k, name in enumerate(item_names)},
    )
    system = np.array([*(place[name] for name in systems), *range(len(names)), *range(len(names))])
    item = np.array([item_place[name] for name in items])
    difference = np.array(longer, dtype=np.float64)
    x = np.concatenate(
        [np.tanh(difference / difference.std()), np.ones(len(names)), -np.ones(len(names))]
    )
    y = np.concatenate([np.array(preferences, dtype=np.float64), np.full(2 * len(names), 0.5)])
    ties = np.full(2 * len(names), 0.5)
    start = np.zeros(len(names) + 1)
    best = _fit(system, x, y, np.concatenate([np.ones(len(item)), ties]), start)
    n_items = {
        name: len({i for i, s in zip(items, systems, strict=True) if s == name}) for name in names
    }
    ends = np.full((2, len(names)), np.nan)
    if max(n_items.values()) >= _MIN_ITEMS:
        drawn = [
            _fit(system, x, y, np.concatenate([weights[item], ties]), best)[1:]
            for part in resample_weights(len(item_names), _RESAMPLES, seed)
            for weights in part
        ]
        ends = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    rates, ends = 1 / (1 + np.exp(-best[1:])), 1 / (1 + np.exp(-ends))
    method = f"logistic regression; 95% percentile interval, {_RESAMPLES} resamples of items, seed {seed}"
    estimates = {}
    for k, name in enumerate(names):
        low, high = ends[:, k].tolist() if n_items[name] >= _MIN_ITEMS else (None, None)
        estimates[name] = Estimate(
            "win rate at equal length", float(rates[k]), low, high, n_items[name], method
        )
    return estimates


def _fit(system: Ints, x: Floats, y: Floats, weights: Floats, start: Floats) -> Floats:
    """Return the coefficient of x and the constant of each system that maximize the likelihood (Newton's method)."""
    size, at = len(start) - 1, start.copy()
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-(at[1 + system] + at[0] * x)))
        error, curvature = weights * (y - p), weights * p * (1 - p)
        gradient = np.bincount(system, error, size)
        diagonal, mixed = (
            np.bincount(system, curvature, size),
            np.bincount(system, curvature * x, size),
        )
        slope = ((error * x).sum() - (mixed * gradient / diagonal).sum()) / (
            (curvature * x * x).sum() - (mixed**2 / diagonal).sum()
        )
        step = np.concatenate([[slope], (gradient - mixed * slope) / diagonal])
        at += np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        if np.abs(step).max() < _TOLERANCE:
            break
    return at
