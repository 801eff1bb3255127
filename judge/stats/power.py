"""Compute the power of the paired tests: which differences a number of items can detect, and how many items are needed.

The two-sided test of a mean of paired differences, by the normal approximation (Lachin 1981, Controlled Clinical Trials
2, pp. 93–113): n = ((z(1 − α/2) + z(power)) · sd / d)², with sd that of the differences by item and d their mean. α is
the level of the run's own tests: for k systems .05 divided by k (k − 1) / 2, Holm's first step. Verdicts, `judge power`
and `Result.power` all use `scatter`.
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
"""With fewer items no sign-flip test can give p < .05 (2 / 2⁶), even as the only test."""
_ALL_CONSTANT = "the differences are the same in all shared items"
_MAX_RATIO = 1e9  # its square exceeds any number of items


def min_items(alpha: float) -> int:
    """Return the smallest n at which a sign-flip test can give p < alpha: 2 / 2ⁿ is the smallest p."""
    return next(n for n in count(1) if 2.0 ** (1 - n) < alpha)


def detectable(sd: float, items: int, *, power: float = POWER, alpha: float = ALPHA) -> float:
    """Return the smallest mean of paired differences that a two-sided test of level `alpha` detects with that power."""
    return (NORMAL.inv_cdf(1 - alpha / 2) + NORMAL.inv_cdf(power)) * sd / sqrt(items)


def needed(sd: float, difference: float, *, power: float = POWER, alpha: float = ALPHA) -> int:
    """Return the items at which `difference` is detectable, at least `min_items`."""
    ratio = min(detectable(sd, 1, power=power, alpha=alpha) / abs(difference), _MAX_RATIO)
    return max(min_items(alpha), ceil(ratio**2))


def items_needed(estimate: Estimate) -> int | None:
    """Return the items at which a statistic is detectable, if its standard error follows its bootstrap interval.

    For statistics without differences by item, such as a correlation. Return None if it is zero, has no interval of
    positive width, or has fewer than 6 items.
    """
    low, high = estimate.low, estimate.high
    if low is None or high is None or not estimate.value or high <= low or estimate.n < MIN_ITEMS:
        return None
    error = (high - low) / (2 * NORMAL.inv_cdf(1 - ALPHA / 2))
    return needed(error * sqrt(estimate.n), estimate.value)


def power_of(sd: float, items: int, difference: float) -> float:
    """Return the probability (0–1) that this many items detect the difference."""
    away, z = abs(difference) * sqrt(items) / sd, NORMAL.inv_cdf(1 - ALPHA / 2)
    return NORMAL.cdf(away - z) + NORMAL.cdf(-away - z)


def spreads(rows: Floats) -> tuple[Floats, Floats]:
    """Return number and standard deviation of each row of paired differences (rows × items, NaN for missing values).

    The deviation (divisor n − 1) of fewer than two is NaN.
    """
    known = ~np.isnan(rows)
    number = known.sum(axis=1).astype(np.float64)
    filled = np.where(known, rows, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        away = np.where(known, filled - (filled.sum(axis=1) / number)[:, None], 0.0)
        return number, np.sqrt(np.where(number > 1, (away**2).sum(axis=1) / (number - 1), np.nan))


@dataclass(frozen=True, slots=True)
class Spread:
    """The paired differences of two systems: `items` that both have, their `mean` and `sd`.

    `mean` is that of the first minus the second. `level` is the α of one of the run's tests.
    """

    systems: tuple[str, str]
    items: int
    mean: float
    sd: float
    level: float

    def detectable(self, items: int | None = None, *, power: float = POWER) -> float | None:
        """Return the smallest detectable difference with the present items or with `items`; None if too few."""
        n = items or self.items
        return detectable(self.sd, n, power=power, alpha=self.level) if n >= min_items(self.level) else None

    def needed(self, difference: float | None = None, *, power: float = POWER) -> int | None:
        """Return the items needed to detect this difference, or the observed one; None if that is zero."""
        sought = self.mean if difference is None else difference
        return needed(self.sd, sought, power=power, alpha=self.level) if sought else None


@dataclass(frozen=True, slots=True)
class Scatter:
    """The spread of the paired differences of one column, for every pair of systems that varies.

    `pairs` share at least 6 items and are sorted by standard deviation. The number of `systems` with values gives the
    number of tests, none for more than 100. `note` explains missing pairs.
    """

    column: str
    systems: int = 0
    pairs: tuple[Spread, ...] = ()
    note: str = ""

    @property
    def tests(self) -> int:
        """Return the number of pairs for which a run corrects its tests."""
        return tests(self.systems)

    @property
    def median(self) -> Spread:
        """Return the pair with the median standard deviation, the larger of two."""
        return self.pairs[len(self.pairs) // 2]

    @property
    def worst(self) -> Spread:
        """Return the pair with the largest standard deviation, which needs most items."""
        return self.pairs[-1]

    @property
    def least(self) -> int:
        """Return the fewest items at which a run with this many systems can find a significant difference."""
        return min_items(self.level)

    @property
    def level(self) -> float:
        """Return the level of the smallest p: Holm's first step over all pairs."""
        return ALPHA / max(1, self.tests)


def scatter(table: Table, columns: Sequence[Column], pair: tuple[str, str] | None = None) -> list[Scatter]:
    """Return the spread of these columns' paired differences, for all pairs of systems or for one `pair`."""
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
            note = "the difference is the same in all shared items"
            if shared < MIN_ITEMS:
                items = f"{shared} item{'s' * (shared != 1)}"
                note = f"the two share {items}; at least {MIN_ITEMS} are needed"
            each = replace(each, note=note)
        scatters.append(each)
    return scatters


def scatter_of_pairs(
    column: str, names: Sequence[str], compared: Sequence[Pair], rows: Floats, systems: int
) -> Scatter:
    """Return the spread of the differences (pairs × items) between compared systems; `systems` have values."""
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
        note = "only one system has values"
    elif few == len(rows):
        most = f"more than {number.max():.0f}" if number.any() else "an item"
        note = f"no two systems share {most}; at least {MIN_ITEMS} are needed"
    elif not varying:
        note = "; ".join(filter(None, [_ALL_CONSTANT, note]))
    return Scatter(column, systems, tuple(sorted(varying, key=lambda spread: spread.sd)), note)
