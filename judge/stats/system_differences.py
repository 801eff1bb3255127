"""Systems against each other in every column: differences with tests, ranks, and which are not told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
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
    tests,
)
from judge.stats.power import ALPHA, detectable, spreads
from judge.table import Table

TOO_FEW = "too few items to tell any two systems apart"
_HELD = 4_000_000  # differences held at once
_NEAR = 1e-12  # of their size: means that lie closer differ by rounding alone


@dataclass(frozen=True, slots=True)
class Difference:
    """One system against another in one column, item by item: `estimate` is the mean of `system` less that of `other`.

    Over the items that both have: value with its interval and `p` (see `mean_differences`), None for one item.
    `adjusted` is p after Holm over all differences of the column. `delta` is Cliff's delta, −1 to 1, positive where the
    values of `system` tend to be larger. `wins` counts the items in which `system` is the better one by the column's
    better end.
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
        """Whether the two are told apart."""
        return self.adjusted is not None and self.adjusted < ALPHA


@dataclass(frozen=True, slots=True)
class Rank:
    """A system's place by its mean, 1 the best; equal means share it.

    `low` to `high` are the places that the tests leave it, a 95 % interval of all systems at once (Mogstad et al. 2024,
    section 3): from 1 + those told to be better to the number of systems less those told to be worse. Where items are
    too few to tell any apart it is every place; of more than 30 systems it rests on the tests against the first alone.
    """

    system: str
    rank: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the values of one column say about the systems.

    `differences` come best first: the first system with the second, the third, …, then the second with the third; of
    more than 30 systems only those with the first. `best` are the systems that are not told apart from the first,
    itself included; none where nothing can be said. `detectable` is the smallest difference that this many items
    show with 80 % power, the median over the pairs; None where they are too few to show any. `note` says what could
    not be computed, and why.
    """

    column: str
    differences: tuple[Difference, ...] = ()
    ranks: tuple[Rank, ...] = ()
    best: tuple[str, ...] = ()
    detectable: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Values:
    """A column's values, systems × items; the systems that have any, best first, and those of them to compare."""

    column: Column
    systems: Sequence[str]
    values: Floats
    order: list[int]
    pairs: list[Pair]

    @property
    def sign(self) -> int:
        """What turns values so that more is better."""
        return -1 if self.column.better == "lower" else 1

    @property
    def items(self) -> int:
        """How many items any system has a value for."""
        return int((~np.isnan(self.values)).any(axis=0).sum())

    @property
    def tests(self) -> int:
        """How many Holm counts: also those with others than the best one, which the data picked. None of too many."""
        return tests(len(self.order))

    @property
    def constant(self) -> bool:
        return len(np.unique(np.round(self.values[~np.isnan(self.values)], PLACES))) < 2


def compare(table: Table, *, seed: int = 0, n_resamples: int = 10_000) -> tuple[Comparison, ...]:
    """A comparison of the systems for every column that has values of single texts and a better end.

    Items are the unit, drawn anew for all systems and columns alike. Comparisons of two texts have rankings instead.
    """
    if any(row.rival for rows in (table.scores, table.failures) for row in rows):
        return ()
    columns = iter([column for column in table.columns if column.better and column.name not in table.corpus_columns])
    systems = len(table.systems)
    most = systems if systems > MOST else systems * (systems - 1) // 2
    step = max(1, _HELD // max(1, most * len(table.items)))
    found: list[Comparison] = []
    while group := [_values(table, column) for column in islice(columns, step)]:
        found += _compared(group, n_resamples, seed)
    return tuple(found)


def _values(table: Table, column: Column) -> _Values:
    values = table.matrix(column.name)
    order = best_first(values, column.better)
    return _Values(column, table.systems, values, order, pairs(order))


def _compared(group: Sequence[_Values], n_resamples: int, seed: int) -> Iterator[Comparison]:
    """Several columns by the same draws."""
    rows = np.concatenate([differences(one.values, one.pairs) for one in group])
    flips = max(n_resamples, *(ceil(2 * one.tests / ALPHA) for one in group))  # else Holm's p could not be small
    estimates = mean_differences(rows, n_resamples=n_resamples, n_flips=flips, seed=seed)
    at = 0
    for one in group:
        here = slice(at, at := at + len(one.pairs))
        found = tuple(_differences(one, rows[here], estimates[here]))
        number, sd = spreads(rows[here])
        shown = [detectable(s, int(n)) for n, s in zip(number, sd.tolist(), strict=True) if s > 0]
        few = _too_few(one, found)
        yield Comparison(
            one.column.name,
            found,
            tuple(_ranks(one, found)),
            _best(one, found),
            float(np.median(shown)) if shown and not few else None,
            _note(one, found),
        )


def _differences(one: _Values, rows: Floats, estimates: Sequence[Estimate | None]) -> Iterator[Difference]:
    tested = [found.p for found in estimates if found is not None and found.p is not None]
    adjusted = iter(holm(tested, one.tests) if one.tests else [None] * len(tested))
    for (first, second), row, found in zip(one.pairs, rows, estimates, strict=True):
        if found is None:
            continue
        both, turned = ~np.isnan(row), row * one.sign
        wins, losses = int((turned > 0).sum()), int((turned < 0).sum())
        yield Difference(
            one.systems[first],
            one.systems[second],
            found,
            None if found.p is None else next(adjusted),
            cliffs_delta(*(np.round(one.values[place][both], PLACES) for place in (first, second))),
            wins,
            found.n - wins - losses,
            losses,
        )


def _best(one: _Values, found: Sequence[Difference]) -> tuple[str, ...]:
    """The first, and all that are not told to be worse, as are those that share no item with it."""
    if one.constant or all(difference.adjusted is None for difference in found):
        return ()
    first = one.systems[one.order[0]]
    worse = {d.other for d in found if d.system == first and d.apart and d.estimate.value * one.sign > 0}
    return tuple(one.systems[place] for place in one.order if one.systems[place] not in worse)


def _ranks(one: _Values, found: Sequence[Difference]) -> Iterator[Rank]:
    """By the mean of each system's own items, which the interval holds also where the items that two share say else."""
    if not one.order:
        return
    means = np.nanmean(one.values[one.order], axis=1)
    apart = ~np.isclose(means[1:], means[:-1], rtol=_NEAR, atol=10.0**-PLACES)
    places = np.maximum.accumulate(np.where([True, *apart], np.arange(1, len(means) + 1), 0)).tolist()
    told = [d for d in found if d.apart]
    ends = [(d.system, d.other) if d.estimate.value * one.sign > 0 else (d.other, d.system) for d in told]
    worse, better = Counter(winner for winner, _ in ends), Counter(loser for _, loser in ends)
    for place, rank in zip(one.order, places, strict=True):
        name = one.systems[place]
        yield Rank(name, rank, min(rank, 1 + better[name]), max(rank, len(places) - worse[name]))


def _note(one: _Values, found: Sequence[Difference]) -> str:
    """What could not be computed, and why."""
    known = ~np.isnan(one.values[one.order])
    nothing = {
        "no text has a value": not one.order,
        "one system has values: nothing to compare it with": len(one.order) == 1,
        "one item: too few for intervals and tests": one.items == 1,
        "all values are equal": one.constant,
    }
    for why, holds in nothing.items():
        if holds:
            return why
    lost = len(one.pairs) - len(found)
    partly = {
        f"more than {MOST} systems: compared with the best one only": len(one.order) > MOST,
        "different items: a difference is over those that both systems have": bool((known != known[0]).any()),
        f"{lost:,} of {len(one.pairs):,} pairs of systems share no item": lost > 0,
        f"more than {TESTED} systems: too many to test": len(one.order) > TESTED,
        TOO_FEW: _too_few(one, found),
    }
    return "; ".join(why for why, holds in partly.items() if holds)


def _too_few(one: _Values, found: Sequence[Difference]) -> bool:
    """Whether the smallest p that there can be is, after Holm, not below alpha."""
    sizes = [difference.estimate.n for difference in found if difference.adjusted is not None]
    return bool(sizes) and one.tests * 2.0 ** (1 - max(sizes)) >= ALPHA
