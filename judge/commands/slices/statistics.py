"""Means and differences in parts of the data: which slice is worse than the rest, and which contradicts the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judge.core.records import Column, Estimate
from judge.stats.bootstrap import MIN_INTERVAL_ITEMS, Bools, Floats, mean_estimate, one_thread
from judge.stats.paired_differences import holm, mean_differences
from judge.stats.power import ALPHA
from judge.stats.system_differences import Difference


@dataclass(frozen=True, slots=True)
class SliceMean:
    """A system's mean in one slice.

    `gap` is the mean in the slice minus that of all other items, on the column's scale. `adjusted` is its p, corrected
    for all slices, systems and columns; both are None if fewer than five items are inside or outside.
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
    """The mean difference of two systems in a slice, `better` minus `worse`: their order is that of the whole data.

    `adjusted` is p of the sign-flip test over items, after Holm's correction over all slices, pairs and columns.
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
    n_permutations: int = 5_000,
) -> tuple[SliceMean, ...]:
    """Return the means of every slice, column and system that has values.

    `columns` has values of systems × items, NaN for missing ones; `slices` says which items belong to each. Slices are
    compared with the rest by a permutation test: items change places, all systems and columns together, and p is the
    share of permutations whose largest standardized gap reaches the observed one (Westfall and Young 1993, maxT).
    """
    rows = np.concatenate([values for _, values in columns.values()])
    gaps, adjusted = _permuted(
        rows, np.array(list(slices.values()), dtype=np.float64), seed, n_permutations
    )
    means = []
    for place, (column, system) in enumerate(
        (column, system) for column, _ in columns.values() for system in systems
    ):
        for at, (name, inside) in enumerate(slices.items()):
            values = rows[place][inside]
            values = values[~np.isnan(values)]
            if not len(values):
                continue
            estimate = mean_estimate(values, column.low, column.high)
            tested = (
                (None, None)
                if np.isnan(p := adjusted[place, at])
                else (float(gaps[place, at]), float(p))
            )
            means.append(SliceMean(name, column.name, system, estimate, *tested))
    return tuple(means)


def _permuted(
    rows: Floats, inside: Floats, seed: int, n_permutations: int
) -> tuple[Floats, Floats]:
    """Return the gaps, rows × slices, and their corrected p; NaN where there are too few items."""
    known = ~np.isnan(rows)
    counts = known.sum(axis=1, keepdims=True)
    means = np.where(counts, np.nansum(rows, axis=1, keepdims=True) / np.maximum(counts, 1), np.nan)
    centred = np.where(known, rows - means, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=1, keepdims=True) / np.maximum(counts - 1, 1))

    def gap(inside: Floats) -> tuple[Floats, Floats]:
        n_inside = known @ inside.T
        n_outside = counts - n_inside
        enough = (
            (n_inside >= MIN_INTERVAL_ITEMS) & (n_outside >= MIN_INTERVAL_ITEMS) & (deviation > 0)
        )
        total = centred @ inside.T
        with np.errstate(all="ignore"):
            gaps = total / n_inside + total / n_outside  # the rest sums to −total
            scaled = np.abs(gaps) / (deviation * np.sqrt(1 / n_inside + 1 / n_outside))
        return np.where(enough, gaps, np.nan), np.where(enough, scaled, np.nan)

    gaps, observed = gap(inside)
    if np.isnan(observed).all():
        return gaps, observed
    random = np.random.default_rng(seed)
    reached = np.zeros_like(observed)
    for _ in range(n_permutations):
        sizes = gap(inside[:, random.permutation(inside.shape[1])])[1]
        reached += np.nanmax(sizes, initial=-np.inf) >= observed - 1e-9
    return gaps, np.where(np.isnan(observed), np.nan, (reached + 1) / (n_permutations + 1))


def slice_differences(
    columns: Mapping[str, tuple[Column, Floats]],
    systems: Sequence[str],
    slices: Mapping[str, Bools],
    significant: Mapping[str, Sequence[Difference]],
    *,
    seed: int = 0,
) -> tuple[SliceDifference, ...]:
    """Return the differences in each slice of the pairs that differ significantly in the whole data, by column.

    Other pairs have no conclusion that a slice could contradict, and would weaken the tests of those that have one.
    """
    place = {name: at for at, name in enumerate(systems)}
    about: list[tuple[str, str, str, str, float]] = []
    rows = []
    for name, pairs in significant.items():
        column, values = columns[name]
        for pair in pairs:
            first = (pair.estimate.value > 0) == (column.better != "lower")
            better, worse = (pair.system, pair.other) if first else (pair.other, pair.system)
            difference = values[place[better]] - values[place[worse]]
            overall = float(np.nanmean(difference))
            for each, inside in slices.items():
                about.append((each, name, better, worse, overall))
                rows.append(np.where(inside, difference, np.nan))
    if not rows:
        return ()
    estimates = mean_differences(np.array(rows), seed=seed)
    p_values = holm([estimate.p if estimate else None for estimate in estimates])
    return tuple(
        SliceDifference(*names, estimate, p)
        for names, estimate, p in zip(about, estimates, p_values, strict=True)
        if estimate is not None
    )
