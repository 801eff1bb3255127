"""Which differences so many items can show, and how many items a difference takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist, median
from typing import NamedTuple

import numpy as np

from judge.records import Column, Estimate
from judge.stats.pairs import best_first, differences, pairs
from judge.stats.resample import Floats
from judge.table import Table

ALPHA, POWER = 0.05, 0.8
LEAST = 6
"""Items of which all have to point one way before a sign-flip test gives p < .05 (2 / 2⁶); fewer show nothing."""
_MOST = 1e9  # whose square is more items than there are
_NORMAL = NormalDist()


def detectable(sd: float, items: int, *, power: float = POWER, alpha: float = ALPHA) -> float:
    """The smallest mean of paired differences that a two-sided test of level `alpha` finds with that power.

    (z(1 − alpha / 2) + z(power)) · sd / √items, `sd` being that of the differences: the normal approximation, for one
    pair of systems, without correction for several.
    """
    return _distance(power, alpha) * sd / sqrt(items)


def needed(sd: float, difference: float, *, power: float = POWER, alpha: float = ALPHA) -> int:
    """The items at which `difference` is detectable, at least 6: of fewer the test can tell nothing apart."""
    ratio = min(_distance(power, alpha) * sd / abs(difference), _MOST)
    return max(LEAST, ceil(ratio**2))


def takes(found: Estimate) -> int | None:
    """The items at which a mean of paired differences like this one, that scatters as its interval says, is detectable.

    None where it is zero or has no interval of a width above zero.
    """
    if found.low is None or found.high is None or not found.value or found.high <= found.low:
        return None
    error = (found.high - found.low) / (2 * _NORMAL.inv_cdf(1 - ALPHA / 2))
    return needed(error * sqrt(found.n), found.value)


def chance(sd: float, items: int, difference: float, *, alpha: float = ALPHA) -> float:
    """The power: how probably so many items show the difference (0–1)."""
    away, z = abs(difference) * sqrt(items) / sd, _NORMAL.inv_cdf(1 - alpha / 2)
    return _NORMAL.cdf(away - z) + _NORMAL.cdf(-away - z)


def _distance(power: float, alpha: float) -> float:
    return _NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(power)


def spreads(rows: Floats) -> tuple[Floats, Floats]:
    """Of each row of paired differences (rows × items, NaN where there is none) the number and the standard deviation.

    NaN for the deviation of fewer than two (divisor n − 1).
    """
    known = ~np.isnan(rows)
    number = known.sum(axis=1).astype(np.float64)
    filled = np.where(known, rows, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        away = np.where(known, filled - (filled.sum(axis=1) / number)[:, None], 0.0)
        return number, np.sqrt(np.where(number > 1, (away**2).sum(axis=1) / (number - 1), np.nan))


class Middle(NamedTuple):
    """Of several pairs of systems the median, and that of the pair that needs most."""

    median: float
    worst: float


@dataclass(frozen=True, slots=True)
class Scatter:
    """How far the paired differences of one column scatter, for every pair of systems between which they vary.

    `items` two systems share, `sd` the standard deviation of their differences. Where there is no such pair, `note`
    says why.
    """

    column: str
    items: tuple[int, ...] = ()
    sd: tuple[float, ...] = ()
    note: str = ""

    def spread(self) -> Middle:
        return Middle(median(self.sd), max(self.sd))

    def detectable(self, items: int | None = None, *, power: float = POWER) -> Middle | None:
        """The smallest differences to be found, with the items that there are or with so many; None for too few."""
        of = [(sd, items or n) for n, sd in zip(self.items, self.sd, strict=True)]
        found = [detectable(sd, n, power=power) for sd, n in of if n >= LEAST]
        return Middle(median(found), max(found)) if found else None

    def needed(self, difference: float, *, power: float = POWER) -> Middle:
        """The items that this difference takes."""
        return Middle(*(needed(sd, difference, power=power) for sd in self.spread()))


def scatter(table: Table, columns: Sequence[Column]) -> list[Scatter]:
    """What a next run can expect of these columns, from the pairs of systems of this one."""
    found = []
    for column in columns:
        values = table.matrix(column.name)
        order = best_first(values, column.better)
        number, sd = spreads(differences(values, pairs(order)))
        items = tuple(int(n) for n in number[sd > 0])
        note = "" if items else _why(values, len(order))
        found.append(Scatter(column.name, items, tuple(sd[sd > 0].tolist()), note))
    return found


def _why(values: Floats, systems: int) -> str:
    """Why no two systems have differences that vary."""
    if systems < 2:
        return "one system has values: nothing to compare it with" if systems else "no text has a value"
    if ((~np.isnan(values)).sum(axis=0) > 1).sum() < 2:
        return "no two systems share two items"
    return "between any two systems the difference is the same in every item that they share"
