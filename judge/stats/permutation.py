"""Sign-flip permutation tests of paired differences, and Holm's correction for several tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from judge.stats.resampling import Floats

Bools = np.ndarray[Any, np.dtype[np.bool_]]

EXACT = 12
"""Differences other than 0 up to which every assignment of signs is looked at."""
# How far a sum of a row whose squares add up to 1 may be off, in double and in single precision.
_NEAR, _NEAR_SINGLE = 1e-9, 1e-4
_HELD = 4_000_000  # numbers held at once


def sign_flip(differences: Floats, *, n_flips: int = 10_000, seed: int = 0) -> tuple[Floats, Bools]:
    """Two-sided p of each row (rows × items, NaN where there is none), and whether it is exact.

    Where systems do not differ, a difference is as likely with the other sign (Fisher 1935, ch. 3): p is the share of
    flips whose sum is as far from 0 as the one found, or further. Up to `EXACT` differences other than 0 these are all
    flips; else `n_flips` that are drawn, the same for all rows, and p is (b + 1) / (n_flips + 1), b as far (Phipson and
    Smyth 2010). NaN for a row of fewer than two values.
    """
    known = np.nan_to_num(differences)
    norm = np.sqrt((known**2).sum(axis=1, keepdims=True))
    known = known / np.where(norm > 0, norm, 1.0)
    found = np.abs(known.sum(axis=1))
    exact = (known != 0).sum(axis=1) <= EXACT
    p = np.empty(len(known))
    p[exact] = _enumerated(known[exact], found[exact] - _NEAR)
    p[~exact] = (_reached(known[~exact], found[~exact] - _NEAR_SINGLE, n_flips, seed) + 1) / (n_flips + 1)
    p[(~np.isnan(differences)).sum(axis=1) < 2] = np.nan
    return p, exact


def _enumerated(rows: Floats, found: Floats) -> Floats:
    """The share of all flips that reach what was found; one sign stays, for the other half is the mirror image."""
    places = np.argsort(rows == 0, axis=1, kind="stable")[:, :EXACT]
    values = np.take_along_axis(rows, places, axis=1)
    size = values.shape[1]
    signs = 1.0 - 2.0 * (np.arange(2 ** max(0, size - 1))[:, None] >> np.arange(size) & 1)
    step = max(1, _HELD // len(signs))
    parts = [
        (np.abs(values[at : at + step] @ signs.T) >= found[at : at + step, None]).mean(axis=1)
        for at in range(0, len(rows), step)
    ]
    return np.concatenate([np.empty(0), *parts])


def _reached(rows: Floats, found: Floats, n_flips: int, seed: int) -> Floats:
    """How many of the drawn flips reach what was found."""
    counts = np.zeros(len(rows))
    if not len(rows):
        return counts
    random = np.random.default_rng(seed)
    values = rows.T.astype(np.float32)
    step = max(1, _HELD // max(rows.shape))
    for first in range(0, n_flips, step):
        drawn = random.integers(2, size=(min(step, n_flips - first), rows.shape[1]))
        counts += (np.abs((2 * drawn - 1).astype(np.float32) @ values) >= found.astype(np.float32)).sum(axis=0)
    return counts


def holm(p: Sequence[float], of: int = 0) -> list[float]:
    """The p-values as Holm (1979) adjusts them: where one is below alpha, so is the chance of any false finding.

    `of` are all the tests that these were picked from by looking at the data, where that is more than there are.
    """
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    times = max(of, len(p)) - np.arange(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(np.asarray(p)[order] * times))
    return [float(one) for one in adjusted]
