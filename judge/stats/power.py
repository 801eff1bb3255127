"""Power of the paired tests: which differences a number of items can detect, and how many items one needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import ceil, sqrt
from statistics import NormalDist

import numpy as np

from judge.core.records import Column, Estimate
from judge.stats.bootstrap import Floats
from judge.stats.paired_differences import TESTED, best_first, differences, pairs, tests
from judge.table import Table

ALPHA, POWER = 0.05, 0.8
MIN_ITEMS = 6
"""Items of which all have to point one way before a sign-flip test gives p < .05 (2 / 2⁶), where it is the only test;
fewer show nothing, and say little of how far differences scatter."""
_ALL_CONSTANT = "between any two systems the difference is the same in every item that they share"
_MAX_RATIO = 1e9  # its square is more items than anyone has
_NORMAL = NormalDist()


def min_items(alpha: float = ALPHA) -> int:
    """The items of which all have to point one way before a sign-flip test gives p < alpha: 2 / 2ⁿ is the smallest."""
    return next(n for n in count(1) if 2.0 ** (1 - n) < alpha)


def detectable(sd: float, items: int, *, power: float = POWER, alpha: float = ALPHA) -> float:
    """The smallest mean of paired differences that a two-sided test of level `alpha` finds with that power.

    (z(1 − alpha / 2) + z(power)) · sd / √items, `sd` being that of the differences: the normal approximation. Of
    several pairs of systems `alpha` is .05 divided by the tests, Holm's first step.
    """
    return _detectable_z(power, alpha) * sd / sqrt(items)


def needed(sd: float, difference: float, *, power: float = POWER, alpha: float = ALPHA) -> int:
    """The items at which `difference` is detectable, at least those of which the test can tell anything apart."""
    ratio = min(_detectable_z(power, alpha) * sd / abs(difference), _MAX_RATIO)
    return max(min_items(alpha), ceil(ratio**2))


def items_needed(estimate: Estimate, *, alpha: float = ALPHA) -> int | None:
    """The items at which a mean of paired differences like this one, that scatters as its interval says, is detectable.

    By a test of level `alpha`, as in `detectable`. None where it is zero, has no interval of a width above zero, or is
    of fewer than 6 items.
    """
    if (
        estimate.low is None
        or estimate.high is None
        or not estimate.value
        or estimate.high <= estimate.low
        or estimate.n < MIN_ITEMS
    ):
        return None
    error = (estimate.high - estimate.low) / (2 * _NORMAL.inv_cdf(1 - ALPHA / 2))
    return needed(error * sqrt(estimate.n), estimate.value, alpha=alpha)


def power_of(sd: float, items: int, difference: float, *, alpha: float = ALPHA) -> float:
    """The power: how probably so many items show the difference (0–1)."""
    away, z = abs(difference) * sqrt(items) / sd, _NORMAL.inv_cdf(1 - alpha / 2)
    return _NORMAL.cdf(away - z) + _NORMAL.cdf(-away - z)


def _detectable_z(power: float, alpha: float) -> float:
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


@dataclass(frozen=True, slots=True)
class Spread:
    """How the values of two systems differ, item by item: in `items` that both have, by `mean` and with `sd`.

    `mean` is of the first less the second. `level` is what one of the run's tests has to stay below.
    """

    systems: tuple[str, str]
    items: int
    mean: float
    sd: float
    level: float

    def detectable(self, items: int | None = None, *, power: float = POWER) -> float | None:
        """The smallest difference found with the items that there are, or with so many; None for too few to tell."""
        n = items or self.items
        return detectable(self.sd, n, power=power, alpha=self.level) if n >= min_items(self.level) else None

    def needed(self, difference: float | None = None, *, power: float = POWER) -> int | None:
        """The items that this difference takes, or the one found here; None where that is zero."""
        sought = self.mean if difference is None else difference
        return needed(self.sd, sought, power=power, alpha=self.level) if sought else None


@dataclass(frozen=True, slots=True)
class Scatter:
    """How far the paired differences of one column scatter, for every pair of systems between which they vary.

    `pairs` share 6 items at least, and come by their standard deviation. `systems` have values: their number says how
    many tests there are, none of more than 100. `note` says which pairs are left out, or why there are none.
    """

    column: str
    systems: int = 0
    pairs: tuple[Spread, ...] = ()
    note: str = ""

    @property
    def tests(self) -> int:
        """The pairs that a run corrects its tests for."""
        return tests(self.systems)

    @property
    def median(self) -> Spread:
        """The pair of systems in the middle, of two that are there the one that scatters more."""
        return self.pairs[len(self.pairs) // 2]

    @property
    def worst(self) -> Spread:
        """The pair of systems that scatters most, and needs most."""
        return self.pairs[-1]

    @property
    def least(self) -> int:
        """The items of which a run of so many systems can tell any two apart."""
        return min_items(self.level)

    @property
    def level(self) -> float:
        """What the smallest p has to stay below: Holm's first step over all pairs."""
        return ALPHA / max(1, self.tests)


def scatter(table: Table, columns: Sequence[Column], pair: tuple[str, str] | None = None) -> list[Scatter]:
    """What a next run can expect of these columns, from the pairs of systems of this one, or from one `pair`."""
    scatters = []
    for column in columns:
        values = table.matrix(column.name)
        scatters.append(_scatter(column.name, table.systems, values, best_first(values, column.better), pair))
    return scatters


def _scatter(
    column: str, names: Sequence[str], values: Floats, order: Sequence[int], pair: tuple[str, str] | None
) -> Scatter:
    systems, compared = len(order), pairs(order)
    if pair is not None:
        rows_of = names.index(pair[0]), names.index(pair[1])
        if lacking := [name for name, row in zip(pair, rows_of, strict=True) if row not in order]:
            return Scatter(column, systems, note=f"{lacking[0]} has no value")
        compared = [rows_of]
    if systems > TESTED:
        return Scatter(column, systems, note=f"more than {TESTED} systems: too many to test")
    rows = differences(values, compared)
    number, sd = spreads(rows)
    level = ALPHA / max(1, tests(systems))
    varying = [
        Spread((names[first], names[second]), int(n), float(np.nanmean(row)), float(s), level)
        for (first, second), row, n, s in zip(compared, rows, number, sd, strict=True)
        if s > 0 and n >= MIN_ITEMS
    ]
    varying.sort(key=lambda first: first.sd)
    if varying:
        note = _describe_left_out(number)
    elif pair is None:
        note = _reason_no_pairs(systems, number)
    elif (shared := int(number[0])) < MIN_ITEMS:
        note = (
            f"the two share {shared} item{'s' * (shared != 1)}; it takes {MIN_ITEMS} to say how far differences scatter"
        )
    else:
        note = "the difference is the same in every item that the two share"
    return Scatter(column, systems, tuple(varying), note)


def _describe_left_out(number: Floats) -> str:
    """That some pairs share too few items, from the items that every two share."""
    few = int((number < MIN_ITEMS).sum())
    if not few:
        return ""
    are = "1 pair of systems is" if few == 1 else f"{few:,} pairs of systems are"
    return f"{are} left out, with fewer than {MIN_ITEMS} items in common"


def _reason_no_pairs(systems: int, number: Floats) -> str:
    """Why no two systems have differences that vary."""
    if systems < 2:
        return "one system has values: nothing to compare it with" if systems else "no text has a value"
    if (number < MIN_ITEMS).all():
        most = f"more than {number.max():.0f}" if number.any() else "an item"
        return f"no two systems share {most}; it takes {MIN_ITEMS} to tell any apart, or how far differences scatter"
    return "; ".join(part for part in (_ALL_CONSTANT, _describe_left_out(number)) if part)
