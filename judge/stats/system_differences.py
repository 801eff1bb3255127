"""Compare systems in every column: differences with tests, ranks, and the systems that may be the best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from judge.core.records import Column, Estimate
from judge.stats.bootstrap import Floats
from judge.stats.paired_differences import (
    MOST,
    PLACES,
    TESTED,
    Pair,
    best_first,
    cliffs_delta,
    differences,
    holm,
    mean_differences,
    pairs,
    partly_scored,
    row_of,
    tests,
)
from judge.stats.power import ALPHA, scatter_of_pairs
from judge.table import Table

TOO_FEW = "too few items for any significant difference"
_MAX_DIFFERENCES = 4_000_000  # differences in memory
_TOLERANCE = 1e-12  # relative: closer means differ by rounding only


@dataclass(frozen=True, slots=True)
class Difference:
    """One system against another in one column, paired by item.

    `estimate` is the mean of `system` minus that of `other` over the items of both, with its interval and `p` (see
    `mean_differences`), None for one item. `adjusted` is p after Holm's correction over all differences of the column.
    `delta` is Cliff's delta, −1 to 1, positive if the values of `system` tend to be larger. `wins` counts the items in
    which `system` is better.
    """

    system: str
    other: str
    estimate: Estimate
    adjusted: float | None
    delta: float | None
    wins: int
    ties: int
    losses: int

    @property
    def apart(self) -> bool:
        """Return whether the difference is significant."""
        return self.adjusted is not None and self.adjusted < ALPHA


@dataclass(frozen=True, slots=True)
class Rank:
    """A system's rank by its mean, 1 the best; equal means share it.

    `low` to `high` is a 95% interval of the rank, simultaneous for all systems (Mogstad et al. 2024, section 3): from
    1 + the number of significantly better systems to the number of systems minus the significantly worse ones, on
    shared items: `rank` may be outside. With too few items it covers every rank; for more than 30 systems it uses only
    the tests against the first, and for a comparison against one system only those.
    """

    system: str
    rank: int
    low: int
    high: int

    @property
    def interval(self) -> str:
        """Return `1–3`, or nothing if the interval is one rank."""
        return f"{self.low}–{self.high}" if self.low < self.high else ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between systems in one column.

    `differences` come best first: the first system with the second, the third, …, then the second with the third; for
    more than 30 systems only those with the first. `best` are the leader, the first system by mean that no other beats
    significantly on their shared items, and the systems that do not differ significantly from it; empty if nothing is
    known. `partly_scored` are the systems with values for less than half of the items: they do not lead, unless all
    others are beaten. `items` counts those that any system has a value for.

    `detectable` is the smallest difference that this many items detect with 80% power, for the pair with the median
    standard deviation (`power.Scatter`), or None. `note` explains what could not be computed.

    If all systems are compared with one, `against` is its name, the differences are those of each other system minus
    it, and `best` is empty: the other systems are not tested against each other.
    """

    column: str
    differences: tuple[Difference, ...] = ()
    ranks: tuple[Rank, ...] = ()
    best: tuple[str, ...] = ()
    detectable: float | None = None
    note: str = ""
    against: str = ""
    partly_scored: tuple[str, ...] = ()
    items: int = 0


@dataclass(frozen=True, slots=True)
class _ColumnValues:
    """A column's values, systems × items; the systems that have any, best first, and those to compare.

    `partly` are the rows with values for less than half of the items. `against` is the system with which all others
    are compared, "" if every two are.
    """

    column: Column
    systems: Sequence[str]
    values: Floats
    order: list[int]
    pairs: list[Pair]
    partly: set[int]
    against: str = ""

    @property
    def tests(self) -> int:
        """Return the number of tests for Holm's correction."""
        return tests(len(self.order), against=bool(self.against))

    @property
    def sign(self) -> int:
        """Return 1 if larger values are better, −1 if smaller ones are."""
        return -1 if self.column.better == "lower" else 1

    @property
    def constant(self) -> bool:
        return len(np.unique(np.round(self.values[~np.isnan(self.values)], PLACES))) < 2


def compare(
    table: Table, *, seed: int = 0, n_flips: int = 10_000, against: str = ""
) -> tuple[Comparison, ...]:
    """Compare the systems in every column with values of single texts and a better end.

    Compare every two, or each with the system `against`. All systems and columns share the sign flips. Comparisons of
    two texts have rankings instead.
    """
    if table.has_pairs:
        return ()
    columns, systems = table.ranked_columns, len(table.systems)
    most = systems if against or systems > MOST else systems * (systems - 1) // 2
    step = max(1, _MAX_DIFFERENCES // max(1, most * len(table.items)))
    comparisons: list[Comparison] = []
    for first in range(0, len(columns), step):
        group = [_column_values(table, column, against) for column in columns[first : first + step]]
        comparisons += _compare_columns(group, n_flips, seed)
    return tuple(comparisons)


def _column_values(table: Table, column: Column, against: str) -> _ColumnValues:
    values = table.matrix(column.name)
    order, partly = best_first(values, column.better), partly_scored(values)
    compared = pairs(order, row_of(table.systems, against), partly=partly)
    return _ColumnValues(column, table.systems, values, order, compared, partly, against)


def _compare_columns(
    group: Sequence[_ColumnValues], n_flips: int, seed: int
) -> Iterator[Comparison]:
    rows = np.concatenate([differences(data.values, data.pairs) for data in group])
    # With fewer flips p could not be small enough after Holm's correction.
    n_flips = max(n_flips, *(ceil(2 * data.tests / ALPHA) for data in group))
    estimates = mean_differences(rows, n_flips=n_flips, seed=seed)
    at = 0
    for data in group:
        here = slice(at, at := at + len(data.pairs))
        tested = tuple(_test_differences(data, rows[here], estimates[here]))
        scatter = scatter_of_pairs(
            data.column.name,
            data.systems,
            data.pairs,
            rows[here],
            systems=len(data.order),
            against=data.against,
        )
        sizes = [difference.estimate.n for difference in tested if difference.adjusted is not None]
        # The two systems of every significant difference, the worse one on their shared items first.
        ends = [
            (d.other, d.system) if d.estimate.value * data.sign > 0 else (d.system, d.other)
            for d in tested
            if d.apart
        ]
        best: tuple[str, ...] = ()
        if sizes and not data.constant and not data.against:
            best = _best(data, ends)
        yield Comparison(
            data.column.name,
            tested,
            tuple(_rank_systems(data, ends)),
            best,
            scatter.median.detectable() if scatter.pairs else None,
            _note(data, len(tested), too_few=bool(sizes) and max(sizes) < scatter.least),
            data.against,
            tuple(data.systems[row] for row in data.order if row in data.partly),
            int((~np.isnan(data.values)).any(axis=0).sum()),
        )


def _best(data: _ColumnValues, ends: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the leader, and the systems without a significant difference from it, even without shared items."""
    names = [data.systems[row] for row in data.order]
    beaten = {name for name, _ in ends}
    whole = [data.systems[row] for row in data.order if row not in data.partly]
    leader = next((name for name in [*whole, *names] if name not in beaten), names[0])
    losses = set(ends)
    return leader, *(name for name in names if name != leader and (name, leader) not in losses)


def _test_differences(
    data: _ColumnValues, rows: Floats, estimates: Sequence[Estimate | None]
) -> Iterator[Difference]:
    number = data.tests
    p_values = [estimate.p if estimate and number else None for estimate in estimates]
    adjusted_p = holm(p_values, number)
    values = np.round(data.values, PLACES)
    for (first, second), row, estimate, adjusted in zip(
        data.pairs, rows, estimates, adjusted_p, strict=True
    ):
        if estimate is None:
            continue
        both, turned = ~np.isnan(row), row * data.sign
        wins, losses = int((turned > 0).sum()), int((turned < 0).sum())
        yield Difference(
            data.systems[first],
            data.systems[second],
            estimate,
            adjusted,
            cliffs_delta(values[first][both], values[second][both]),
            wins,
            estimate.n - wins - losses,
            losses,
        )


def _rank_systems(data: _ColumnValues, ends: Sequence[tuple[str, str]]) -> Iterator[Rank]:
    """Rank by the mean of each system's own items; two systems' shared items may order them differently."""
    if not data.order:
        return
    means = np.nanmean(data.values[data.order], axis=1)
    apart = ~np.isclose(means[1:], means[:-1], rtol=_TOLERANCE, atol=10.0**-PLACES)
    places = np.maximum.accumulate(
        np.where([True, *apart], np.arange(1, len(means) + 1), 0)
    ).tolist()
    better, worse = Counter(loser for loser, _ in ends), Counter(winner for _, winner in ends)
    for place, rank in zip(data.order, places, strict=True):
        name = data.systems[place]
        yield Rank(name, rank, 1 + better[name], len(places) - worse[name])


def _note(data: _ColumnValues, compared: int, *, too_few: bool) -> str:
    """Explain what could not be computed."""
    known = ~np.isnan(data.values[data.order])
    lost = len(data.pairs) - compared
    remarks = {
        "no text has a value": not data.order,
        "only one system has values": len(data.order) == 1,
        "one item: too few for intervals and tests": bool(known.any(axis=0).sum() == 1),
        "all values are equal": data.constant,
        f"{data.against} has no value to compare with": bool(data.against) and not data.pairs,
    }
    if nothing := next((reason for reason, holds in remarks.items() if holds), ""):
        return nothing
    remarks = {
        f"more than {MOST} systems: compared with the best one only": len(data.order) > MOST
        and not data.against,
        "systems have different items: differences use the shared ones": bool(
            (known != known[0]).any()
        ),
        f"{lost:,} of {len(data.pairs):,} pairs of systems share no item": lost > 0,
        f"more than {TESTED} systems: too many to test": not data.tests,
        TOO_FEW: too_few,
    }
    return "; ".join(reason for reason, holds in remarks.items() if holds)
