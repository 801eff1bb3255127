"""Compare two runs on the same texts: changes of means by system and column, and of single items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Any

import numpy as np

from judge.core.records import Column, Estimate, Failure, Sample
from judge.stats.analyze import overall, pass_columns, pass_table
from judge.stats.bootstrap import (
    CONFIDENCE,
    MIN_INTERVAL_ITEMS,
    Bools,
    Floats,
    one_thread,
    t_quantile,
    t_test,
    too_few,
)
from judge.stats.coefficients import average
from judge.stats.paired_differences import ALL_EQUAL, PLACES, holm, mean_differences
from judge.stats.power import ALPHA, MIN_ITEMS
from judge.table import Table

_MAX_ITEMS, _MAX_SHIFTS = 50, 12  # named items, and values of each


@dataclass(frozen=True, slots=True)
class MeanChange:
    """The mean of a column before and after, for one system or, if `system` is empty, for all systems.

    It covers the texts that have a value in both runs; `up`, `same` and `down` count those whose value rose, stayed or
    fell. Means are over items; for all systems, over the means of the items. `estimate` is the mean difference, after
    minus before, with its interval and p (see `mean_differences`).
    `adjusted` is p after Holm's correction over all systems and columns in which any value differs; for all systems
    together, over the columns. A value of all texts together, such as corpus BLEU, has no interval and no test.

    `judge` is the part of the change that is the judge's, measured on texts that are the same in both runs, and
    `system_change` the rest; `system_adjusted` is its p after Holm's correction over the rows that have one. If no text
    changed, the whole change is the judge's. Both are None for metrics, and if fewer than five items have such a text.
    """

    column: str
    system: str
    before: float
    after: float
    estimate: Estimate
    up: int
    same: int
    down: int
    adjusted: float | None = None
    judge: Estimate | None = None
    system_change: Estimate | None = None
    system_adjusted: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the difference is significant."""
        return self.adjusted is not None and self.adjusted < ALPHA

    @property
    def system_changed(self) -> bool:
        """Whether the difference without the judge's part is significant."""
        return self.system_adjusted is not None and self.system_adjusted < ALPHA


@dataclass(frozen=True, slots=True)
class Shift:
    """One text's value before and after; `share` is the difference as a share of the scale or of the values' range."""

    item: str
    system: str
    column: str
    before: float
    after: float
    share: float


@dataclass(frozen=True, slots=True)
class Item:
    """The changes of an item: its `shifts`, the largest first, and the absolute share of the first."""

    item: str
    size: float
    shifts: tuple[Shift, ...]


@dataclass(frozen=True, slots=True)
class Unshared:
    """Names that only one of the two runs has, in the order of that run."""

    items: tuple[str, ...]
    systems: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Runs:
    """Differences of two runs on the `texts` texts of `items` items that both have.

    `means` has, column by column, all systems together (if there are several) and then each one. `changed_items` has
    the 50 items that changed most. `appeared` are failures of the second run for which the first has a score,
    `vanished` the reverse. `edited` counts texts with another output, source or references, `anchors` the items with a
    text that is the same in both runs. `unanswered` counts values
    of the first run that the second neither has nor failed at, and the reverse. `incomparable` says by column why it is
    left out, `only` what just one run has.
    """

    texts: int
    items: int
    edited: int
    anchors: int
    means: tuple[MeanChange, ...]
    changed_items: tuple[Item, ...]
    appeared: tuple[Failure, ...]
    vanished: tuple[Failure, ...]
    unanswered: tuple[int, int]
    incomparable: tuple[tuple[str, str], ...]
    only: tuple[Unshared, Unshared]


@dataclass(frozen=True, slots=True)
class _ColumnInBoth:
    """A column in both runs, systems × items."""

    column: Column
    before: Floats
    after: Floats

    @property
    def differences(self) -> Floats:
        rounded: Floats = np.round(self.after - self.before, PLACES)
        return rounded

    @property
    def span(self) -> float:
        """Return the width of the scale, or the range of the values."""
        if self.column.low is not None and self.column.high is not None:
            return self.column.high - self.column.low
        values = np.concatenate([self.before.ravel(), self.after.ravel()])
        known = values[~np.isnan(values)]
        return float(np.ptp(known)) if len(known) else 0.0


@one_thread
def compare_runs(before: Table, after: Table, *, seed: int = 0, n_flips: int = 10_000) -> Runs:
    """Compare two tables of scores. Items are the unit; all systems and columns share the sign flips."""
    systems, items = (
        [name for name in had if name in set(has)]
        for had, has in ((before.systems, after.systems), (before.items, after.items))
    )
    old, new = (
        np.ix_(_places(table.systems, systems), _places(table.items, items))
        for table in (before, after)
    )
    texts = {s.key for s in before.samples} & {s.key for s in after.samples}
    columns, derived, refused = _comparable(before, after)
    tables = [*((before, after, column) for column in columns), *derived]
    compared = [
        _ColumnInBoth(c, a.matrix(c.name)[old], b.matrix(c.name)[new]) for a, b, c in tables
    ]
    names = {column.name for column in columns}
    # A panel's failures follow from its judges'.
    failed = [
        [
            row
            for row in table.failures
            if row.column in names and row.stage != "panel" and (row.key in texts or not row.item)
        ]
        for table in (before, after)
    ]
    first, second = ({(row.item, row.system, row.column) for row in rows} for rows in failed)
    scored = [
        {
            (row.item, row.system, row.column)
            for row in table.scores
            if row.column in names and row.key in texts
        }
        for table in (before, after)
    ]
    first_cells, second_cells = (_texts_by_cell(table) for table in (before, after))
    changed = np.array(
        [[first_cells.get((s, i)) != second_cells.get((s, i)) for i in items] for s in systems],
        dtype=bool,
    )
    changed = changed.reshape(len(systems), len(items))
    texts_before = {s.key: text_of(s) for s in before.samples}
    only = [
        Unshared(
            tuple(name for name in table.items if name not in set(rival.items)),
            tuple(name for name in table.systems if name not in set(rival.systems)),
            tuple(
                c.name
                for c in table.columns
                if c.name not in {column.name for column in rival.columns}
            ),
        )
        for table, rival in ((before, after), (after, before))
    ]
    return Runs(
        texts=len(texts),
        items=len(items),
        edited=sum(texts_before.get(s.key, text_of(s)) != text_of(s) for s in after.samples),
        anchors=len(
            {s.source_item for s in after.samples if texts_before.get(s.key) == text_of(s)}
        ),
        means=(
            *_mean_changes(compared, systems, changed, n_flips, seed),
            *_corpus_rows(before, after, columns, systems),
        ),
        changed_items=_items(
            [both for both in compared[: len(columns)] if not both.column.judge], systems, items
        ),
        appeared=tuple(row for row in failed[1] if (row.item, row.system, row.column) in scored[0]),
        vanished=tuple(row for row in failed[0] if (row.item, row.system, row.column) in scored[1]),
        unanswered=(len(scored[0] - scored[1] - second), len(scored[1] - scored[0] - first)),
        incomparable=tuple(refused.items()),
        only=(only[0], only[1]),
    )


def text_of(sample: Sample) -> tuple[str, str | None, tuple[str, ...]]:
    """Return the parts of a text that a judge may see: with the same ones, only the judge can change a score."""
    return sample.output, sample.source, sample.references


def _places(names: Sequence[str], shared: Sequence[str]) -> list[int]:
    places = {name: place for place, name in enumerate(names)}
    return [places[name] for name in shared]


def _texts_by_cell(table: Table) -> dict[tuple[str, str], Counter[Any]]:
    """Return the texts of every system and item; the order of generations does not count."""
    cells: dict[tuple[str, str], Counter[Any]] = {}
    for sample in table.samples:
        cells.setdefault((sample.system, sample.source_item), Counter())[text_of(sample)] += 1
    return cells


def _comparable(
    before: Table, after: Table
) -> tuple[list[Column], list[tuple[Table, Table, Column]], dict[str, str]]:
    """Return the columns that both runs have on the same scale, and by name why others are not compared.

    Between them the tables of the overall score and of pass rates, if both runs compute them in the same way.
    """
    columns_before = {column.name: column for column in before.columns}
    both = [column for column in after.columns if column.name in columns_before]
    refused = {}
    for column in both:
        ends = [(c.low, c.high) for c in (columns_before[column.name], column)]
        if ends[0] != ends[1]:
            scales = [
                "open" if low is None or high is None else f"{low:g}–{high:g}" for low, high in ends
            ]
            refused[column.name] = f"its scale was {scales[0]} and is {scales[1]}"
        elif (column.name in before.corpus_columns) != (column.name in after.corpus_columns):
            refused[column.name] = "one run has a value per text, the other one per system"
    columns = [column for column in both if column.name not in refused]
    derived: list[tuple[Table, Table, Column]] = []
    first, second = overall(before), overall(after)
    if first and second and first.summary.weights == second.summary.weights:
        derived.append((first.table, second.table, second.summary.column))
    elif first and second:
        refused[second.summary.column.name] = "its criteria or weights differ"
    tables = pass_table(before), pass_table(after)
    for column in columns:
        rate, old = pass_columns([column]).get(column.name), columns_before[column.name].pass_at
        if rate and old == column.pass_at:
            derived.append((*tables, rate))
        elif rate and old is not None:
            refused[rate.name] = f"its pass_at was {old:g} and is {column.pass_at:g}"
    return columns, derived, refused


def _mean_changes(
    columns: Sequence[_ColumnInBoth],
    systems: Sequence[str],
    changed: Bools,
    n_flips: int,
    seed: int,
) -> Iterator[MeanChange]:
    """Yield the rows of every column with a value per text: all systems together, if there are several, then each."""
    parts = [("", slice(None))] if len(systems) > 1 else []
    parts += [(system, slice(place, place + 1)) for place, system in enumerate(systems)]
    each = [(both, system, here) for both in columns for system, here in parts]
    if not each:
        return
    by_item = np.array([average(both.differences[here]) for both, _, here in each])
    n_flips = max(n_flips, ceil(2 * len(each) / ALPHA))  # otherwise Holm's p could not be small
    moved = []
    for (both, system, here), estimate in zip(
        each, mean_differences(by_item, n_flips=n_flips, seed=seed), strict=True
    ):
        if estimate is None:  # no text has both values
            continue
        differences = both.differences[here]
        known = ~np.isnan(differences)
        up, down = int((differences > 0).sum()), int((differences < 0).sum())
        before, after = (
            float(np.nanmean(average(np.where(known, side[here], np.nan))))
            for side in (both.before, both.after)
        )
        same = int(known.sum()) - up - down
        edited = int((changed[here] & known).sum())
        row = MeanChange(both.column.name, system, before, after, estimate, up, same, down)
        if both.column.kind != "metric" and not edited:
            row = replace(row, judge=estimate)
        elif both.column.kind != "metric" and (
            split := split_change(both.differences, changed, here)
        ):
            judge_moved = both.differences[~np.isnan(both.differences) & ~changed].any()
            # If the judge did not move, the test of the change stands.
            row = replace(
                row, judge=split.judge, system_change=split.system if judge_moved else estimate
            )
        moved.append(row)
    corrected: dict[tuple[str, str], MeanChange] = {}
    # All systems together are corrected over the columns, single ones over systems and columns. A row without any
    # difference is no test: its p is 1.
    for rows in ([row for row in moved if not row.system], [row for row in moved if row.system]):
        adjusted = holm([row.estimate.p if row.up + row.down else None for row in rows])
        without_judge = holm([row.system_change.p if row.system_change else None for row in rows])
        for row, p, own in zip(rows, adjusted, without_judge, strict=True):
            p = 1.0 if p is None and row.estimate.p is not None else p
            corrected[row.column, row.system] = replace(row, adjusted=p, system_adjusted=own)
    yield from (corrected[row.column, row.system] for row in moved)


def _corpus_rows(
    before: Table, after: Table, columns: Sequence[Column], systems: Sequence[str]
) -> Iterator[MeanChange]:
    """Yield the rows of columns with one value per system."""
    method = "one value for all texts: no interval and no test"
    for column in columns:
        old_rows, new_rows = (
            {row.system: row for row in table.column_scores(column.name) if not row.item}
            for table in (before, after)
        )
        for system in systems:
            if system in old_rows and system in new_rows:
                old, new = old_rows[system], new_rows[system]
                value = round(new.value - old.value, PLACES)
                estimate = Estimate("difference", value, None, None, new.provenance.n, method)
                up, same, down = int(value > 0), int(value == 0), int(value < 0)
                yield MeanChange(
                    new.column, new.system, old.value, new.value, estimate, up, same, down
                )


def _items(
    columns: Sequence[_ColumnInBoth], systems: Sequence[str], items: Sequence[str]
) -> tuple[Item, ...]:
    """Return the items that changed most, without those that did not change."""
    varying = [both for both in columns if both.span > 0]
    if not varying or not items:
        return ()
    shares = np.nan_to_num(
        [both.differences / both.span for both in varying]
    )  # columns × systems × items
    sizes = np.abs(shares).max(axis=(0, 1), initial=0.0)
    changed = []
    for place in np.argsort(-sizes, kind="stable")[: min(_MAX_ITEMS, np.count_nonzero(sizes))]:
        moved = shares[:, :, place]
        furthest = np.argsort(-np.abs(moved), axis=None, kind="stable")[
            : min(_MAX_SHIFTS, np.count_nonzero(moved))
        ]
        shifts = []
        for of_column, of_system in zip(*np.unravel_index(furthest, moved.shape), strict=True):
            both, names = varying[of_column], (items[place], systems[of_system])
            ends = float(both.before[of_system, place]), float(both.after[of_system, place])
            shifts.append(
                Shift(*names, both.column.name, *ends, float(moved[of_column, of_system]))
            )
        changed.append(Item(items[place], float(sizes[place]), tuple(shifts)))
    return tuple(changed)


# The change in parts: texts that are the same in both runs are anchors, as only the judge can move their scores. Their
# shift is subtracted from the changed texts' changes, assuming that the judge's shift is the same for both.

MIN_SYSTEMS = 3
"""Other systems with anchors from which the shift for a system without its own is estimated with an interval."""
_NO_INTERVAL = (
    f"the judge's shift was measured on fewer than {MIN_SYSTEMS} other systems: no interval"
)
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Split:
    """The `judge`'s part of a change and what is left of it, the `system`'s; they sum to the change."""

    judge: Estimate
    system: Estimate


@dataclass(frozen=True, slots=True)
class _AnchorShift:
    """The error of the anchors' shift, weighted as the changed texts: by item, and between systems.

    `errors` has each item's influence on the standard error, `items` those with an anchor in use. `between` is the
    variance between `systems` systems, 0 if each system has anchors of its own.
    """

    errors: Floats
    items: Bools
    between: float
    systems: int


def split_change(differences: Floats, changed: Bools, rows: slice) -> Split | None:
    """Split the mean change of these rows; None if no system has anchors of five items.

    `differences` are scores after minus before (systems × items, NaN for missing values). `changed` marks the cells
    whose text changed; the others are anchors.

    A system's shift J is the mean over its own anchors if they cover five items, else the mean of the other systems'
    shifts; their variance then counts too, as judges shift differently for different systems. The systems' part is the
    mean over items of Σ (change − J) over the changed cells, divided by the item's cells; the judge's part is the rest,
    so an anchor's shift counts as observed. Items are clusters: an item with both a changed text and an anchor counts
    as a pair, otherwise both variances add. Degrees of freedom: Welch (1947), less than the number of items.
    """
    known = ~np.isnan(differences)
    edited, anchors = changed & known, known & ~changed
    counts = anchors.sum(axis=1)
    usable = counts >= MIN_INTERVAL_ITEMS
    if not usable.any():
        return None
    cells = known[rows].sum(axis=0)
    items, per_item = cells > 0, np.maximum(cells, 1)
    means = np.where(anchors, differences, 0.0).sum(axis=1) / np.maximum(counts, 1)
    own = usable[rows, None]
    sources = np.where(own, np.eye(len(means), dtype=bool)[rows], usable / usable.sum())
    shares = edited[rows] / per_item
    moved = np.where(edited[rows], differences[rows], 0.0).sum(axis=0) / per_item
    total = np.where(known[rows], differences[rows], 0.0).sum(axis=0) / per_item
    imputed = (sources @ means) @ shares

    weights = shares[:, items].mean(axis=1)
    spread = np.sqrt(np.maximum(counts * (counts - 1), 1))[:, None]
    errors = (weights @ sources) @ (np.where(anchors, differences - means[:, None], 0.0) / spread)
    used = (weights @ sources) > 0
    borrowed, n_systems = weights[~own[:, 0]], int(usable.sum())
    between = 0.0
    if borrowed.any():
        several = n_systems >= MIN_SYSTEMS
        variance = float(means[usable].var(ddof=1)) if several else float("inf")
        between = variance * (float((borrowed**2).sum()) + float(borrowed.sum()) ** 2 / n_systems)
    shift = _AnchorShift(errors, anchors[used].any(axis=0), between, n_systems)
    few = int(edited[rows].any(axis=0).sum())
    return Split(
        _estimate(total - moved + imputed, items, shift, sign=1),
        _estimate(moved - imputed, items, shift, sign=-1, few=few),
    )


def _estimate(
    values: Floats, items: Bools, shift: _AnchorShift, *, sign: int, few: int = MIN_ITEMS
) -> Estimate:
    """Return the mean of `values` over `items`, with the error of the shift that was added (`sign`) or subtracted.

    `few` is the number of items with a changed text: below five there is no interval, below six no p.
    """
    n, m = int(items.sum()), int(shift.items.sum())
    mean, few = round(float(values[items].mean()), 9), min(n, few)
    if few < MIN_INTERVAL_ITEMS or np.isinf(shift.between):
        reason = too_few(few) if few < MIN_INTERVAL_ITEMS else _NO_INTERVAL
        return Estimate("difference", mean, None, None, n, reason)
    errors = np.where(items, values - mean, 0.0) / sqrt(n * (n - 1))
    over_items = float(((errors + sign * shift.errors) ** 2).sum())
    error = sqrt(over_items + shift.between)
    if error < _ROUNDING:
        p = (2.0 ** (1 - few) if mean else 1.0) if few >= MIN_ITEMS else None
        return Estimate(
            "difference", mean, None, None, n, ALL_EQUAL, p, "sign-flip permutation test"
        )
    variances = float((errors**2).sum()), float((shift.errors**2).sum())
    scatter = variances[0] ** 2 / (n - 1) + variances[1] ** 2 / (m - 1)
    freedom = min(
        sum(variances) ** 2 / max(scatter, 1e-300), float((items | shift.items).sum() - 1)
    )
    scatter = over_items**2 / max(freedom, 1.0)
    if shift.between:
        scatter += shift.between**2 / (shift.systems - 1)
    freedom = max(1, int(error**4 / max(scatter, 1e-300) + _ROUNDING))
    half = t_quantile((1 - CONFIDENCE) / 2, freedom) * error
    p = None
    if few >= MIN_ITEMS:
        p = t_test(mean / error, freedom)
    method = f"{100 * CONFIDENCE:g}% t interval over items, {m} with a text that is the same in both runs"
    test = "" if p is None else "t test"
    return Estimate("difference", mean, mean - half, mean + half, n, method, p, test)
