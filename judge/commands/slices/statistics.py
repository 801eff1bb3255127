"""Means and differences of systems in slices of the data.

They show which slice is worse than the rest, and which contradicts the conclusion on all data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judge.core.records import Column, Estimate
from judge.stats.bootstrap import (
    MIN_INTERVAL_ITEMS,
    Bools,
    Floats,
    mean_estimate,
    one_thread,
)
from judge.stats.paired_differences import holm, mean_differences
from judge.stats.power import ALPHA
from judge.stats.system_differences import Difference


@dataclass(frozen=True, slots=True)
class SliceMean:
    """A system's mean in one slice.

    `gap` is the mean in the slice minus that of all other items, on the column's scale. `adjusted`
    is its p, corrected for all slices, systems and columns; both are None if fewer than five items
    are inside or outside.
    """

    slice: str
    column: str
    system: str
    mean: Estimate
    gap: float | None = None
    adjusted: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the slice differs from the rest."""
        return self.adjusted is not None and self.adjusted < ALPHA


@dataclass(frozen=True, slots=True)
class SliceDifference:
    """The mean difference of two systems in a slice, `better` minus `worse`.

    Which system is better is decided on the whole data. `adjusted` is p of the sign-flip test over
    items, after Holm's correction over all slices, pairs and columns.
    """

    slice: str
    column: str
    better: str
    worse: str
    overall: float
    estimate: Estimate
    adjusted: float | None

    @property
    def contradicts(self) -> bool:
        """Whether the other system is significantly better here."""
        return (
            self.adjusted is not None
            and self.adjusted < ALPHA
            and self.estimate.value * self.overall < 0
        )


@one_thread
def slice_means(
    columns: Mapping[str, tuple[Column, Floats]],
    systems: Sequence[str],
    slices: Mapping[str, Bools],
    *,
    seed: int = 0,
    n_resamples: int = 5_000,
) -> tuple[SliceMean, ...]:
    """Return the means of every slice, column and system that has values.

    `columns` has values of systems × items, NaN for missing ones. `slices` has a mask of the items
    for each slice. A permutation test compares each slice with the other items. It permutes the
    items, with all systems and columns together. p is the share of permutations whose largest
    standardized gap reaches the observed one (Westfall and Young 1993, maxT).
    """
    # A row for each column and system, in the order of `column_and_system`.
    rows = np.concatenate([values for _, values in columns.values()])
    memberships = list(slices.values())
    members = np.array(memberships, dtype=np.float64)  # slices × items, 1 for a member
    gaps, p_values = _permuted(rows, members, seed, n_resamples)
    column_and_system = [
        (column, system) for column, _ in columns.values() for system in systems
    ]
    means = []
    for row, (column, system) in enumerate(column_and_system):
        for position, (slice_name, inside) in enumerate(slices.items()):
            values = rows[row][inside]
            scored_values = values[~np.isnan(values)]
            if not len(scored_values):
                continue
            estimate = mean_estimate(scored_values, column.low, column.high)
            slice_mean = SliceMean(slice_name, column.name, system, estimate)
            p_value = float(p_values[row, position])
            if not np.isnan(p_value):
                gap = float(gaps[row, position])
                slice_mean = replace(slice_mean, gap=gap, adjusted=p_value)
            means.append(slice_mean)
    return tuple(means)


def _permuted(
    rows: Floats,
    members: Floats,
    seed: int,
    n_resamples: int,
) -> tuple[Floats, Floats]:
    """Return the gaps, rows × slices, and their corrected p; NaN where there are too few items.

    `members` has slices × items: 1 for an item of the slice.
    """
    scores = _CentredScores.of(rows)
    gaps, observed = scores.gaps(members)
    is_untested = np.isnan(observed)
    if is_untested.all():
        # Every observed size is NaN, and so is every p.
        return gaps, observed
    random = np.random.default_rng(seed)
    n_reached = np.zeros_like(observed)
    n_items = members.shape[1]
    for _ in range(n_resamples):
        permuted = members[:, random.permutation(n_items)]
        _, sizes = scores.gaps(permuted)
        largest_size = np.nanmax(sizes, initial=-np.inf)
        # An equal size may differ by rounding.
        n_reached += largest_size >= observed - 1e-9
    # The observed order is one of the permutations, so p is never 0.
    p_values = (n_reached + 1) / (n_resamples + 1)
    return gaps, np.where(is_untested, np.nan, p_values)


@dataclass(frozen=True, slots=True)
class _CentredScores:
    """Rows of scores minus their mean; a row has the scores of a system on a column by item.

    - `known`: whether a score exists, rows × items.
    - `counts`: the number of scores, rows × 1.
    - `centred`: the scores minus the mean of their row, 0 for missing ones, rows × items.
    - `deviation`: the standard deviation (n − 1), rows × 1.
    """

    known: Bools
    counts: Floats
    centred: Floats
    deviation: Floats

    @classmethod
    def of(cls, rows: Floats) -> _CentredScores:
        """Return the centred scores of rows that have NaN for missing scores."""
        is_known = ~np.isnan(rows)
        counts = is_known.sum(axis=1, keepdims=True)
        sums = np.nansum(rows, axis=1, keepdims=True)
        # A row without scores must not divide by zero. Its mean and deviation are not used.
        means = np.where(counts, sums / np.maximum(counts, 1), np.nan)
        centred = np.where(is_known, rows - means, 0.0)
        sum_of_squares = (centred**2).sum(axis=1, keepdims=True)
        degrees_of_freedom = np.maximum(counts - 1, 1)
        deviation = np.sqrt(sum_of_squares / degrees_of_freedom)
        return cls(is_known, counts, centred, deviation)

    def gaps(self, members: Floats) -> tuple[Floats, Floats]:
        """Return the gaps, rows × slices, and their absolute sizes in standard errors.

        `members` has slices × items: 1 for an item of the slice. Both are NaN if the slice or the
        rest has too few values, or if all values of a row are equal.
        """
        n_inside = self.known @ members.T
        n_outside = self.counts - n_inside
        smaller = np.minimum(n_inside, n_outside)
        enough = (smaller >= MIN_INTERVAL_ITEMS) & (self.deviation > 0)
        total = self.centred @ members.T
        # A slice without values divides by zero here; its gap is replaced by NaN below.
        with np.errstate(all="ignore"):
            # The values are centred, so those outside the slice sum to −total.
            gaps = total / n_inside + total / n_outside
            standard_error = self.deviation * np.sqrt(1 / n_inside + 1 / n_outside)
            standardized = np.abs(gaps) / standard_error
        tested_gaps = np.where(enough, gaps, np.nan)
        return tested_gaps, np.where(enough, standardized, np.nan)


def slice_differences(
    columns: Mapping[str, tuple[Column, Floats]],
    systems: Sequence[str],
    slices: Mapping[str, Bools],
    significant: Mapping[str, Sequence[Difference]],
    *,
    seed: int = 0,
) -> tuple[SliceDifference, ...]:
    """Return the differences in each slice of the pairs that differ significantly in all data.

    `columns` and `slices` are as in `slice_means`; `significant` has the pairs by column. Other
    pairs have no conclusion that a slice could contradict, and would weaken the tests of those that
    have one.
    """
    row_of_system = {system: row for row, system in enumerate(systems)}
    tested: list[_TestedPair] = []
    for column_name, pairs in significant.items():
        column, values = columns[column_name]
        for pair in pairs:
            better, worse = _better_and_worse(pair, column)
            difference = values[row_of_system[better]] - values[row_of_system[worse]]
            overall = float(np.nanmean(difference))
            for slice_name, inside in slices.items():
                by_item = np.where(inside, difference, np.nan)
                pair_in_slice = _TestedPair(
                    slice_name,
                    column_name,
                    better,
                    worse,
                    overall,
                    by_item,
                )
                tested.append(pair_in_slice)
    if not tested:
        return ()
    rows = np.array([pair.difference_by_item for pair in tested])
    estimates = mean_differences(rows, seed=seed)
    p_values = holm([estimate.p if estimate else None for estimate in estimates])
    differences = []
    results = zip(tested, estimates, p_values, strict=True)
    for pair_in_slice, estimate, p_value in results:
        # There is no estimate if no item of the slice has scores of both systems.
        if estimate is not None:
            differences.append(pair_in_slice.tested(estimate, p_value))
    return tuple(differences)


@dataclass(frozen=True, slots=True)
class _TestedPair:
    """Two systems in one slice; `difference_by_item` is NaN outside the slice."""

    slice: str
    column: str
    better: str
    worse: str
    overall: float
    difference_by_item: Floats

    def tested(self, estimate: Estimate, p_value: float | None) -> SliceDifference:
        """Return the result of the test."""
        return SliceDifference(
            slice=self.slice,
            column=self.column,
            better=self.better,
            worse=self.worse,
            overall=self.overall,
            estimate=estimate,
            adjusted=p_value,
        )


def _better_and_worse(pair: Difference, column: Column) -> tuple[str, str]:
    """Return the two systems of a pair, the better one in the whole data first."""
    first_is_higher = pair.estimate.value > 0
    higher_is_better = column.better != "lower"
    if first_is_higher == higher_is_better:
        return pair.system, pair.other
    return pair.other, pair.system
