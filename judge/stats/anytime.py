"""Test and estimate means while values still come in: valid at any number of items, whatever made the reader stop.

A gambler bets on each value, in the order in which items were asked, that the mean is above m. If it is not, the
capital is not expected to grow, so it ever reaches 1 / α with a probability of at most α (Ville 1939). Values need
bounds and a random order, and no other assumption (Waudby-Smith and Ramdas 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from judge.core.records import Estimate
from judge.stats.bootstrap import CONFIDENCE, MIN_INTERVAL_ITEMS, Floats, too_few

_BETS = ((0.05, 1 / 8), (0.15, 1 / 8), (0.4, 1 / 4), (0.95, 1 / 2))
"""Parts of the capital to bet on a value, and the share of the capital that bets so (`benchmarks/until_decided.py`)."""
_HALVINGS = 20  # the ends are exact to a millionth of the scale
_METHOD = f"{100 * CONFIDENCE:g}% confidence sequence over items"
NO_SCALE = "asked until decided, and values without a scale: no interval and no test"


def was_used(info: Mapping[str, Any]) -> bool:
    """Return whether the run with this `info` asked until its systems were decided, so that only these tests hold."""
    return bool((info.get("plan") or {}).get("until_decided"))


def capital(values: Floats, low: float, mean: Floats | float) -> Floats:
    """Return for each row the log of the largest capital so far, at least 0, of bets that its mean is above `mean`.

    `values` are rows × items in the order asked, none below `low`, NaN for missing ones. `mean` is above `low`.
    """
    ratio = np.maximum(values - low, 0.0) / (np.reshape(mean, (-1, 1)) - low)  # expected to be 1 or less
    gains = np.nan_to_num(ratio - 1.0)
    logs = [np.log(share) + np.log1p(part * gains).cumsum(axis=1) for part, share in _BETS]
    largest: Floats = np.logaddexp.reduce(logs).max(axis=1, initial=0.0)
    return largest


def p_values(values: Floats, low: float, high: float, mean: float) -> Floats:
    """Return the two-sided p of each row for this mean: 2 / the larger capital of the bets on either side."""
    most = np.maximum(capital(values, low, mean), capital(-values, -high, -mean))
    p: Floats = np.minimum(1.0, 2 * np.exp(-most))
    return p


def estimates(
    values: Floats, low: float | None, high: float | None, null: float | None = None
) -> list[Estimate | None]:
    """Return the mean of each row on a scale from `low` to `high`, with a 95% confidence sequence; None for no value.

    All intervals of a sequence, one for each number of items, contain the mean together with 95%. There is none below
    5 items. With `null`, p tests that mean. Without a scale there is neither.
    """
    known = ~np.isnan(values)
    sizes = known.sum(axis=1).tolist()
    centres = (np.where(known, values, 0.0).sum(axis=1) / np.maximum(1, sizes)).tolist()
    name = "mean" if null is None else "difference"
    if low is None or high is None or not low < high:
        return [Estimate(name, m, None, None, n, NO_SCALE) if n else None for m, n in zip(centres, sizes, strict=True)]
    p = [None] * len(values) if null is None else p_values(values, low, high, null).tolist()
    ends = zip(_lower(values, low, high).tolist(), (-_lower(-values, -high, -low)).tolist(), strict=True)
    made: list[Estimate | None] = []
    for mean, n, tested, (first, last) in zip(centres, sizes, p, ends, strict=True):
        if n < MIN_INTERVAL_ITEMS:
            made.append(Estimate(name, mean, None, None, n, too_few(n), tested) if n else None)
        else:
            made.append(Estimate(name, mean, min(mean, first), max(mean, last), n, _METHOD, tested))
    return made


def mean_estimate(values: Floats, low: float | None, high: float | None) -> Estimate:
    """Return the mean of one value per item, at least one, with a confidence sequence."""
    (estimate,) = estimates(values[None], low, high)
    assert estimate is not None  # noqa: S101
    return estimate


def estimator(info: Mapping[str, Any]) -> Callable[[Floats, float | None, float | None], Estimate] | None:
    """Return what makes estimates of means in the run with this `info`: None for those of a fixed number of items."""
    return mean_estimate if was_used(info) else None


def _lower(values: Floats, low: float, high: float) -> Floats:
    """Return the largest mean of each row that the bets rule out, by bisection: their capital falls in the mean."""
    below, above = np.full(len(values), low), np.full(len(values), high)
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        out = capital(values, low, middle) >= np.log(2 / (1 - CONFIDENCE))
        below, above = np.where(out, middle, below), np.where(out, above, middle)
    return below
