"""Compute the power of the paired tests.

Compute the differences that a number of items can detect, and the number of items that a difference
needs. The test is the same as in a run: two-sided sign flips of the differences by item. Its α is
that of Holm's first step: .05 divided by k (k − 1) / 2 for k systems, or by k − 1 if all are
compared with one. `Spread` approximates its power, and holds at few items and on scales with few
labels (docs/statistics.md). Verdicts, `judge plan` and `Result.power` use `scatter`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import comb, exp, fsum, inf, sqrt

import numpy as np

from judge.core.format import plural
from judge.core.records import Column, Estimate
from judge.stats.bootstrap import NORMAL, Floats, t_quantile, without_nan
from judge.stats.paired_differences import (
    TESTED,
    Pair,
    best_first,
    differences,
    pairs,
    partly_scored,
    row_of,
    tests,
)
from judge.table import Table

ALPHA = 0.05
POWER = 0.8  # as Cohen (1988) proposes
MIN_ITEMS = 6
"""With fewer items no sign-flip test can give p < .05 (2 / 2⁶), even as the only test."""
_ALL_CONSTANT = "the differences are the same in all shared items"
_MAX_RATIO = 1e9  # of a difference to its standard deviation
_MAX_ITEMS = 10**18  # that `Spread.needed` tries
_DECIMALS = 6  # of differences: closer ones are equal
_TOLERANCE = 1e-9  # of the smallest detectable difference, in standard deviations
_MAX_EFFECT = 30.0  # mean / sd: its density would be 0
_MANY = 1_000  # items from which Student's t is normal


def min_items(alpha: float) -> int:
    """Return the smallest n at which a sign-flip test can give p < alpha.

    The smallest p of n items is 2 / 2ⁿ.
    """
    return next(n for n in count(1) if 2.0 ** (1 - n) < alpha)


def items_needed(
    estimate: Estimate, *, over_items: bool = False, tests: int = 1
) -> int | None:
    """Return the items that are needed to detect a statistic, given its estimate.

    The standard deviation is taken from the width of the interval: Student's t `over_items`, as of
    a mean, or a bootstrap interval, as of a correlation. The statistic has the smallest p of so
    many `tests`. Return None if the statistic is zero, has no interval of positive width, or has
    fewer than 6 items.
    """
    lower_bound = estimate.low
    upper_bound = estimate.high
    if lower_bound is None or upper_bound is None or upper_bound <= lower_bound:
        return None
    if not estimate.value or estimate.n < MIN_ITEMS:
        return None
    tail = ALPHA / 2
    half_width = (upper_bound - lower_bound) / 2
    quantile = NORMAL.inv_cdf(1 - tail)
    if over_items:
        quantile = t_quantile(tail, estimate.n - 1)
    deviation = half_width / quantile * sqrt(estimate.n)
    # The smallest p-value has the strictest level of Holm's procedure.
    spread = Spread(estimate.n, estimate.value, deviation, ALPHA / tests)
    return spread.needed()


@dataclass(frozen=True, slots=True)
class Spread:
    """The paired differences of two `systems`: the `items` that both have, their `mean` and `sd`.

    `mean` is that of the first minus the second. `level` is the α of one of the run's tests. `step`
    is the distance of neighbouring values, and `zeros` the share of items without a difference if
    the mean were 0; as the density of a normal variable, it falls by exp(−(mean / sd)² / 2).
    """

    items: int
    mean: float
    sd: float
    level: float = ALPHA
    zeros: float = 0.0
    step: float = 0.0
    systems: tuple[str, str] = ("", "")

    def power_of(
        self, items: int | None = None, difference: float | None = None
    ) -> float:
        """Return the probability (0–1) that the sign-flip test finds a difference significant.

        The difference is the given one, or the observed one. The power is that of Student's t test
        (Johnson and Welch 1940) of the difference less step / n, a continuity correction, times the
        probability of more than `min_items` nonzero differences. With exactly that many, all must
        also have the same sign. With fewer, nothing is significant.
        """
        items = items or self.items
        least = min_items(self.level)
        if items < least:
            return 0.0
        difference = abs(self.mean if difference is None else difference)
        effect = difference / self.sd
        zeros = self._share_of_zeros(effect)
        # Binomial probabilities of 0, 1, …, `least` nonzero differences.
        p_of_numbers: list[float] = []
        for number in range(least + 1):
            p_of_nonzero = (1 - zeros) ** number
            p_of_zeros = zeros ** (items - number)
            p_of_numbers.append(comb(items, number) * p_of_nonzero * p_of_zeros)
        p_of_more = max(0.0, 1 - fsum(p_of_numbers))
        power = self._t_power(items, difference)
        p_same_sign = NORMAL.cdf(effect) ** least
        power_of_least = min(power, p_same_sign)
        return p_of_more * power + p_of_numbers[-1] * power_of_least

    def _share_of_zeros(self, effect: float) -> float:
        """Return the share of items without a difference, for a mean of `effect` deviations.

        A variable with a mean has values other than 0: its share of zeros is at most
        1 / (1 + effect²), by the inequality of Cauchy and Schwarz.
        """
        largest = min(effect, _MAX_EFFECT)
        fallen = self.zeros * exp(-(largest**2) / 2)
        return min(fallen, 1 / (1 + effect**2))

    def _t_power(self, items: int, difference: float) -> float:
        """Return the power of Student's t test, by Johnson and Welch's (1940) approximation."""
        freedom = items - 1
        tail = self.level / 2
        critical = NORMAL.inv_cdf(1 - tail)
        if items < _MANY:
            critical = t_quantile(tail, freedom)
        detectable_part = max(0.0, difference - self.step / items)
        shift = detectable_part * sqrt(items) / self.sd
        middle = critical * (1 - 1 / (4 * freedom))
        width = sqrt(1 + critical**2 / (2 * freedom))
        above = NORMAL.cdf((shift - middle) / width)
        below = NORMAL.cdf((-shift - middle) / width)
        return above + below

    def detectable(
        self, items: int | None = None, *, power: float = POWER
    ) -> float | None:
        """Return the smallest difference that `items` (default: all) detect with this power.

        None if there are too few items.
        """
        from scipy.optimize import brentq

        def surplus(difference: float) -> float:
            return self.power_of(items, difference) - power

        if surplus(_MAX_RATIO * self.sd) < 0:
            return None
        if surplus(0.0) >= 0:
            return 0.0
        # Double the difference until it is detectable: the root is below.
        detectable = self.sd
        while surplus(detectable) < 0:
            detectable *= 2
        return float(brentq(surplus, 0.0, detectable, xtol=_TOLERANCE * self.sd))

    def needed(
        self, difference: float | None = None, *, power: float = POWER
    ) -> int | None:
        """Return the items needed to detect this difference, or the observed one.

        None if the difference is zero.
        """
        needed_difference = self.mean if difference is None else difference
        if not needed_difference:
            return None

        def enough(items: int) -> bool:
            return self.power_of(items, needed_difference) >= power

        # Double the items until they are enough, then bisect.
        fewest = min_items(self.level)
        most = fewest
        while most < _MAX_ITEMS and not enough(most):
            fewest = most + 1
            most = 2 * most
        candidates = range(fewest, most)
        return fewest + bisect_left(candidates, True, key=enough)


@dataclass(frozen=True, slots=True)
class Scatter:
    """The spread of the paired differences of one column, for every pair of systems that varies.

    `pairs` share at least 6 items and are sorted by standard deviation. The number of `systems`
    with values gives the number of tests, none for more than 100. `note` explains missing pairs. If
    the run compares all systems with one, `against` is its name.
    """

    column: str
    systems: int = 0
    pairs: tuple[Spread, ...] = ()
    note: str = ""
    against: str = ""

    @property
    def tests(self) -> int:
        """The number of pairs for which a run corrects its tests."""
        return tests(self.systems, against=bool(self.against))

    @property
    def median(self) -> Spread:
        """The pair with the median standard deviation, the larger of two."""
        return self.pairs[len(self.pairs) // 2]

    @property
    def worst(self) -> Spread:
        """The pair with the largest standard deviation.

        `hardest` may be another one, with more equal scores.
        """
        return self.pairs[-1]

    def hardest(
        self, difference: float | None = None, items: int | None = None
    ) -> Spread:
        """Return the pair that needs most items to detect a difference.

        Without a difference, it is the pair whose smallest detectable difference is the largest:
        with `items`, or else with the fewest items that a pair has.
        """
        items = items or min(pair.items for pair in self.pairs)

        def need(pair: Spread) -> float:
            """Return the items (or the difference) that the pair needs, infinite without one."""
            if difference is None:
                least_difference = pair.detectable(items)
                return inf if least_difference is None else least_difference
            least_items = pair.needed(difference)
            return inf if least_items is None else least_items

        zeros = max(pair.zeros for pair in self.pairs)
        step = max(pair.step for pair in self.pairs)
        hardest = self.worst
        most = need(hardest)
        for pair in reversed(self.pairs[:-1]):
            # No pair with a smaller deviation needs more than this one would with the most equal
            # scores and the largest step.
            bound = replace(pair, zeros=zeros, step=step)
            if need(bound) <= most:
                break
            need_of_pair = need(pair)
            if need_of_pair > most:
                hardest = pair
                most = need_of_pair
        return hardest

    @property
    def least(self) -> int:
        """The fewest items with which a run of these systems can find a significant difference."""
        return min_items(self.level)

    @property
    def level(self) -> float:
        """The level of the smallest p: Holm's first step over all pairs."""
        return ALPHA / max(1, self.tests)


def scatter(
    table: Table,
    columns: Sequence[Column],
    pair: tuple[str, str] | None = None,
    against: str = "",
) -> list[Scatter]:
    """Return the spread of these columns' paired differences, of one `pair` of systems or of all.

    All pairs are those that a run tests; `against` is the system that a run compares all with.
    """
    row_against = row_of(table.systems, against)
    scatters: list[Scatter] = []
    for column in columns:
        values = table.matrix(column.name)
        order = best_first(values, column.better)
        compared = pairs(order, row_against, partly=partly_scored(values))
        if pair is not None:
            first_row, second_row = (table.systems.index(system) for system in pair)
            compared = [(first_row, second_row)]
        rows = differences(values, compared)
        column_scatter = scatter_of_pairs(
            column.name,
            table.systems,
            compared,
            rows,
            systems=len(order),
            against=against,
        )
        scatters.append(column_scatter)
    return scatters


def scatter_of_pairs(
    column: str,
    names: Sequence[str],
    compared: Sequence[Pair],
    rows: Floats,
    *,
    systems: int,
    against: str = "",
) -> Scatter:
    """Return the spread of the differences between compared systems.

    `systems` counts those with values. `rows` are pairs × items.
    """
    n_tests = tests(systems, against=bool(against))
    if systems > TESTED and not n_tests:
        return Scatter(
            column, systems, note=f"more than {TESTED} systems: too many to test"
        )
    level = ALPHA / max(1, n_tests)
    known_differences = [without_nan(row) for row in rows]
    spreads: list[Spread] = []
    for pair, row in zip(compared, known_differences, strict=True):
        first_index, second_index = pair
        if len(row) >= MIN_ITEMS and np.ptp(row) != 0:
            systems_of_pair = (names[first_index], names[second_index])
            spreads.append(_spread(row, level, systems_of_pair))
    spreads.sort(key=lambda spread: spread.sd)
    shared_items = [len(row) for row in known_differences]
    note = _note(shared_items, systems, varying=bool(spreads))
    return Scatter(column, systems, tuple(spreads), note, against)


def _spread(differences: Floats, level: float, systems: tuple[str, str]) -> Spread:
    """Return the spread of two systems' differences, which vary."""
    mean = float(differences.mean())
    deviation = float(differences.std(ddof=1))
    sizes = np.round(np.abs(differences), _DECIMALS)
    # The share if the mean were 0: undo the fall with the density that `Spread` describes.
    effect = min(abs(mean) / deviation, _MAX_EFFECT)
    fall = exp(effect**2 / 2)
    zeros = float((sizes == 0).mean() * fall)
    # The smallest distance between sizes, or from 0.
    distinct_sizes = np.unique([0.0, *sizes])
    step = float(np.diff(distinct_sizes).min())
    return Spread(len(differences), mean, deviation, level, zeros, step, systems)


def _note(shared_items: Sequence[int], systems: int, *, varying: bool) -> str:
    """Explain which pairs are missing, from the number of items that each pair shares."""
    if not systems:
        return "no text has a value"
    if systems == 1:
        return "only one system has values"
    few = sum(n_items < MIN_ITEMS for n_items in shared_items)
    if few == len(shared_items):
        most = max(shared_items, default=0)
        shared = "an item"
        if most:
            shared = f"more than {plural(most, 'item')}"
        return f"no two systems share {shared}; at least {MIN_ITEMS} are needed"
    reasons: list[str] = []
    if not varying:
        reasons.append(_ALL_CONSTANT)
    if few:
        verb = "is" if few == 1 else "are"
        pairs_of_systems = f"{plural(few, 'pair')} of systems"
        reasons.append(
            f"{pairs_of_systems} {verb} left out, with fewer than {MIN_ITEMS} items in common"
        )
    return "; ".join(reasons)
