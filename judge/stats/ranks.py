"""The place of every system among all, with the places it takes when items are drawn anew."""

from __future__ import annotations

from typing import Any

import numpy as np

from judge.stats.differences import Singles

Ints = np.ndarray[Any, np.dtype[np.intp]]

_NEAR = 5  # decimals of means on a range of 1: what lies closer together may differ by rounding
_HELD = 1_000_000  # numbers ranked at once


def ranks(means: Singles) -> Ints:
    """From means, rows × systems, the ranks in each row: 1 is the highest, equal ones share the better rank.

    A system without a mean (NaN) comes last.
    """
    known = ~np.isnan(means)
    span = float(np.ptp(means[known])) if known.any() else 0.0
    away = np.where(known, np.round(-means / (span or 1.0), _NEAR), np.inf)
    order = np.argsort(away, axis=1, kind="stable")
    ranked = np.take_along_axis(away, order, axis=1)
    first = np.zeros_like(order)
    first[:, 1:] = np.where(ranked[:, 1:] > ranked[:, :-1], np.arange(1, means.shape[1]), 0)
    found = np.empty_like(order)
    np.put_along_axis(found, order, np.maximum.accumulate(first, axis=1) + 1, axis=1)
    return found


def interval(means: Singles, confidence: float = 0.95) -> tuple[list[int], list[int]]:
    """The percentile interval of each system's rank over the rows: its low and its high ends."""
    tail = (1 - confidence) / 2
    step = max(1, _HELD // means.shape[1])
    found = np.concatenate([ranks(means[at : at + step]).astype(np.int32) for at in range(0, len(means), step)])
    ends = np.quantile(found, (tail, 1 - tail), axis=0, method="inverted_cdf")
    low, high = ends.astype(int).tolist()
    return low, high
