"""The exact p of a sign-flip test for scores that are whole steps of a scale.

Written scores, means of several draws and means of several criteria all lie on a lattice: 4, 3.55,
0.6875. The distribution of their sum over all assignments of signs is then known without drawing
any. Its characteristic function is a product of cosines, and a Fourier transform turns it into
probabilities (Pagano and Tritchler 1983).
"""

from __future__ import annotations

from math import pi

import numpy as np
from scipy import fft

from judge.stats.bootstrap import Floats, Ints

_MOST_STEPS = 240
"""Steps per point that are tried. 240 is the lattice of 4 judges and 3 criteria with 20 draws."""
_TOLERANCE = 1e-6
"""Rounding error of a difference, in steps."""
_MOST_COSINES = 50_000_000
"""Cosines of all rows together, above which drawing flips is faster: about half a second."""


def lattice_p(differences: Floats) -> Floats:
    """Return the two-sided p of each row (rows × items); NaN for all if they are on no lattice.

    p is the share of all assignments of signs whose sum is at least as far from 0 as the observed
    sum. It is NaN as well if there are too many items and steps to compute it quickly.
    """
    unknown = np.full(len(differences), np.nan)
    steps = _in_steps(differences)
    if steps is None:
        return unknown
    periods = [_period(row) for row in steps]
    numbers_of_sizes = [len(np.unique(np.abs(row))) for row in steps]
    n_cosines = np.dot(periods, numbers_of_sizes)
    if n_cosines > _MOST_COSINES:
        return unknown
    rows_and_periods = zip(steps, periods, strict=True)
    return np.array([_p_of_row(row, period) for row, period in rows_and_periods])


def _in_steps(differences: Floats) -> Ints | None:
    """Return the differences as whole numbers of steps; None if they are on no lattice."""
    distinct = np.unique(np.abs(differences))
    for steps_per_point in range(1, _MOST_STEPS + 1):
        in_steps = distinct * steps_per_point
        rounding_errors = np.abs(in_steps - np.rint(in_steps))
        if rounding_errors.max(initial=0.0) < _TOLERANCE:
            return np.rint(differences * steps_per_point).astype(np.int64)
    return None


def _period(row: Ints) -> int:
    """Return the length of a transform in which no two sums share an index."""
    largest_sum = int(np.abs(row).sum())
    return int(fft.next_fast_len(2 * largest_sum + 1, real=True))


def _p_of_row(row: Ints, period: int) -> float:
    """Return the two-sided p of differences in steps, by a transform of length `period`."""
    nonzero = row[row != 0]
    sizes, numbers = np.unique(np.abs(nonzero), return_counts=True)
    frequencies = np.arange(period // 2 + 1) * (2 * pi / period)
    # ±k with equal probability has the characteristic function cos(k · frequency).
    characteristic = np.ones(len(frequencies))
    for size, number in zip(sizes.tolist(), numbers.tolist(), strict=True):
        characteristic *= np.cos(size * frequencies) ** number
    probabilities = fft.irfft(characteristic, period)
    observed = abs(int(row.sum()))
    # Index s is the sum s, and index period − s the sum −s.
    tails = float(probabilities[observed : period - observed + 1].sum())
    # Rounding leaves an error of 1e-15, but two assignments are always as extreme: all signs as
    # observed, and all turned.
    least = 2.0 ** (1 - int(numbers.sum()))
    return min(1.0, max(tails, least))
