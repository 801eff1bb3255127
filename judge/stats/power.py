"""Power of the paired tests: which differences a number of items can detect, and how many items one needs.

The two-sided test of a mean of paired differences, by the normal approximation (Lachin 1981, Controlled Clinical Trials
2, pp. 93–113): n = ((z(1 − α/2) + z(power)) · sd / d)², with sd that of the differences item by item and d their mean.
α is what the run's own tests have to stay below: of k systems .05 divided by k (k − 1) / 2, Holm's first step.
Verdicts, `judge power` and `Result.power` all take their numbers from `scatter`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil, sqrt

import numpy as np

from judge.core.records import Column, Estimate
from judge.stats.bootstrap import NORMAL, Floats
from judge.stats.paired_differences import TESTED, Pair, best_first, differences, pairs, tests
from judge.table import Table

ALPHA, POWER = 0.05, 0.8
MIN_ITEMS = 6
"""Items of which all have to point one way before a sign-flip test gives p < .05 (2 / 2⁶), where it is the only test;
fewer show nothing, and say little of how far differences scatter."""
_ALL_CONSTANT = "between any two systems the difference is the same in every item that they share"
_MAX_RATIO = 1e9  # its square is more items than anyone has


def min_items(alpha: float) -> int:
    """The items of which all have to point one way before a sign-flip test gives p < alpha: 2 / 2ⁿ is the smallest."""
    return next(n for n in count(1) if 2.0 ** (1 - n) < alpha)


def detectable(sd: float, items: int, *, power: float = POWER, alpha: float = ALPHA) -> float:
    """The smallest mean of paired differences that a two-sided test of level `alpha` finds with that power."""
    return (NORMAL.inv_cdf(1 - alpha / 2) + NORMAL.inv_cdf(power)) * sd / sqrt(items)


def needed(sd: float, difference: float, *, power: float = POWER, alpha: float = ALPHA) -> int:
    """The items at which `difference` is detectable, at least those of which the test can tell anything apart."""
    ratio = min(detectable(sd, 1, power=power, alpha=alpha) / abs(difference), _MAX_RATIO)
    return max(min_items(alpha), ceil(ratio**2))


def items_needed(estimate: Estimate) -> int | None:
    """The items at which a statistic like this one is detectable, if it scatters as its bootstrap interval says.

    For what has no differences item by item, such as a correlation. None where it is zero, has no interval of a width
    above zero, or is of fewer than 6 items.
    """
    low, high = estimate.low, estimate.high
    if low is None or high is None or not estimate.value or high <= low or estimate.n < MIN_ITEMS:
        return None
    error = (high - low) / (2 * NORMAL.inv_cdf(1 - ALPHA / 2))
    return needed(error * sqrt(estimate.n), estimate.value)


def power_of(sd: float, items: int, difference: float) -> float:
    """The power: how probably so many items show the difference (0–1)."""
    away, z = abs(difference) * sqrt(items) / sd, NORMAL.inv_cdf(1 - ALPHA / 2)
    return NORMAL.cdf(away - z) + NORMAL.cdf(-away - z)


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
        order = best_first(values, column.better)
        compared = pairs(order)
        if pair is not None:
            first, second = table.systems.index(pair[0]), table.systems.index(pair[1])
            if lacking := [name for name, row in zip(pair, (first, second), strict=True) if row not in order]:
                scatters.append(Scatter(column.name, len(order), note=f"{lacking[0]} has no value"))
                continue
            compared = [(first, second)]
        rows = differences(values, compared)
        each = scatter_of_pairs(column.name, table.systems, compared, rows, len(order))
        if pair is not None and not each.pairs and each.tests:
            shared = int((~np.isnan(rows)).sum())
            note = "the difference is the same in every item that the two share"
            if shared < MIN_ITEMS:
                items = f"{shared} item{'s' * (shared != 1)}"
                note = f"the two share {items}; it takes {MIN_ITEMS} to say how far differences scatter"
            each = replace(each, note=note)
        scatters.append(each)
    return scatters


def scatter_of_pairs(
    column: str, names: Sequence[str], compared: Sequence[Pair], rows: Floats, systems: int
) -> Scatter:
    """The scatter of the differences between compared systems, pairs × items; so many `systems` have values."""
    if systems > TESTED:
        return Scatter(column, systems, note=f"more than {TESTED} systems: too many to test")
    number, sd = spreads(rows)
    level = ALPHA / max(1, tests(systems))
    varying = [
        Spread((names[first], names[second]), int(n), float(np.nanmean(row)), float(s), level)
        for (first, second), row, n, s in zip(compared, rows, number, sd, strict=True)
        if s > 0 and n >= MIN_ITEMS
    ]
    few = int((number < MIN_ITEMS).sum())
    pairs_are = "1 pair of systems is" if few == 1 else f"{few:,} pairs of systems are"
    note = f"{pairs_are} left out, with fewer than {MIN_ITEMS} items in common" if few else ""
    if not systems:
        note = "no text has a value"
    elif systems == 1:
        note = "one system has values: nothing to compare it with"
    elif few == len(rows):
        most = f"more than {number.max():.0f}" if number.any() else "an item"
        note = f"no two systems share {most}; it takes {MIN_ITEMS} to tell any apart, or how far differences scatter"
    elif not varying:
        note = "; ".join(filter(None, [_ALL_CONSTANT, note]))
    return Scatter(column, systems, tuple(sorted(varying, key=lambda spread: spread.sd)), note)
