"""Compare two runs on the same texts: changes of means, and of single items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

import numpy as np

from judge.core.records import Column, Estimate, Failure, Sample, Score
from judge.stats.bootstrap import (
    Bools,
    Floats,
    Ints,
    one_thread,
    without_interval,
    without_nan,
)
from judge.stats.coefficients import average
from judge.stats.derived_columns import overall, pass_columns, pass_table
from judge.stats.judge_shift import split_change
from judge.stats.paired_differences import PLACES, holm, mean_differences
from judge.stats.power import ALPHA
from judge.table import Table, Text

_MAX_ITEMS = 50  # named items
_MAX_SHIFTS = 12  # values of each named item


@dataclass(frozen=True, slots=True)
class MeanChange:
    """The mean of a column before and after, of one system or, if `system` is "", of all systems.

    The mean is over the items whose texts have a value in both runs. For all systems, it is over
    the means of the items.

    - `up`, `same`, `down`: the number of texts whose value rose, stayed or fell.
    - `estimate`: the mean difference, after minus before, with its interval and p (see
      `mean_differences`). A value of all texts together, such as corpus BLEU, has neither.
    - `adjusted`: p after Holm's correction over all systems and columns in which any value differs;
      for all systems together, over the columns.
    - `judge`: the part of the change that comes from the judge, measured on texts that are the same
      in both runs. If no text changed, it is the whole change.
    - `system_change`: the rest of the change; None if no text changed.
    - `system_adjusted`: p of `system_change` after Holm's correction over the rows that have one.

    `judge` and `system_change` are None for metrics, and if fewer than five items have a text that
    is the same in both runs.
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
        """Whether the change that does not come from the judge is significant."""
        return self.system_adjusted is not None and self.system_adjusted < ALPHA


@dataclass(frozen=True, slots=True)
class Shift:
    """One text's value before and after.

    `share` is the difference as a share of the scale or of the values' range.
    """

    item: str
    system: str
    column: str
    before: float
    after: float
    share: float


@dataclass(frozen=True, slots=True)
class Item:
    """The changes of an item: its `shifts`, the largest first, and the size of the first."""

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

    - `means`: column by column, all systems together (if there are several) and then each one.
    - `changed_items`: the 50 items that changed most, of the `n_changed_items`.
    - `appeared`: failures of the second run where the first has a score; `vanished`: the reverse.
    - `edited`: the number of texts with another output, source or references.
    - `anchors`: the number of items with a text that is the same in both runs.
    - `unanswered`: how many scores of the first run have neither a score nor a failure in the
      second, and the reverse.
    - `incomparable`: each column that is left out, with the reason.
    - `only`: the names that only one of the runs has.
    """

    texts: int
    items: int
    edited: int
    anchors: int
    means: tuple[MeanChange, ...]
    changed_items: tuple[Item, ...]
    n_changed_items: int
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
        """After minus before; NaN where a run has no value."""
        # An equal value is a change of 0 and not of 1e-17, which would count as a rise.
        rounded: Floats = np.round(self.after - self.before, PLACES)
        return rounded

    @property
    def span(self) -> float:
        """The width of the scale, or the range of the values."""
        if self.column.low is not None and self.column.high is not None:
            return self.column.high - self.column.low
        known_values = without_nan(np.stack([self.before, self.after]))
        if not len(known_values):
            return 0.0
        return float(np.ptp(known_values))


@one_thread
def compare_runs(
    before: Table, after: Table, *, seed: int = 0, n_resamples: int = 10_000
) -> Runs:
    """Compare two tables of scores.

    The unit of tests and intervals is the item. Tests of all systems and columns flip the signs of
    the same items.
    """
    systems = _shared_names(before.systems, after.systems)
    items = _shared_names(before.items, after.items)
    comparable = _comparable(before, after)
    stored = [_column_in_both(pair, systems, items) for pair in comparable.columns]
    derived = [_column_in_both(pair, systems, items) for pair in comparable.derived]
    changed_texts = _changed_texts(before, after, systems, items)
    mean_changes = _mean_changes(
        [*stored, *derived], systems, changed_texts, n_resamples, seed
    )
    columns = [both.column for both in stored]
    corpus_rows = _corpus_rows(before, after, columns, systems)
    # Derived columns repeat the changes of the stored ones, and a panel's judges those of the
    # panel.
    columns_of_items = [both for both in stored if not both.column.judge]
    changed_items, n_changed_items = _most_changed(columns_of_items, systems, items)

    shared_texts = _shared_texts(before, after)
    # A value of all texts of a system has no item.
    all_texts = {("", system) for system in systems}
    compared = shared_texts.keys | all_texts
    cells_before = _cells_of_run(before, columns, compared)
    cells_after = _cells_of_run(after, columns, compared)
    unanswered_after = cells_before.scored - cells_after.answered
    unanswered_before = cells_after.scored - cells_before.answered
    return Runs(
        texts=len(shared_texts.keys),
        items=len(items),
        edited=shared_texts.edited,
        anchors=len(shared_texts.anchors),
        means=(*mean_changes, *corpus_rows),
        changed_items=changed_items,
        n_changed_items=n_changed_items,
        appeared=cells_after.failures_of(cells_before.scored),
        vanished=cells_before.failures_of(cells_after.scored),
        unanswered=(len(unanswered_after), len(unanswered_before)),
        incomparable=tuple(comparable.refused.items()),
        only=(_unshared(before, after), _unshared(after, before)),
    )


@dataclass(frozen=True, slots=True)
class _SharedTexts:
    """The texts of both runs.

    `keys` are their items and systems, `edited` counts those that differ, and `anchors` are the
    items with a text that is the same in both runs.
    """

    keys: set[Text]
    edited: int
    anchors: set[str]


def _shared_texts(before: Table, after: Table) -> _SharedTexts:
    """Return which texts both runs have, and which of them are the same in both."""
    text_before = {sample.key: text_of(sample) for sample in before.samples}
    shared = [sample for sample in after.samples if sample.key in text_before]
    unedited = [
        sample for sample in shared if text_before[sample.key] == text_of(sample)
    ]
    keys = {sample.key for sample in shared}
    anchors = {sample.source_item for sample in unedited}
    return _SharedTexts(keys, len(shared) - len(unedited), anchors)


def _shared_names(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the names that both have, in the order of the first."""
    other_names = set(others)
    return [name for name in names if name in other_names]


_Cell = tuple[str, str, str]
"""Item, system and column."""


@dataclass(frozen=True, slots=True)
class _CellsOfRun:
    """The scores and failures of a run, of the texts and columns that both runs have."""

    scored: frozenset[_Cell]
    failures: tuple[tuple[_Cell, Failure], ...]

    @property
    def answered(self) -> frozenset[_Cell]:
        """Return the cells with a score or a failure."""
        return self.scored.union(cell for cell, _ in self.failures)

    def failures_of(self, cells: Collection[_Cell]) -> tuple[Failure, ...]:
        """Return the failures in these cells."""
        return tuple(failure for cell, failure in self.failures if cell in cells)


def _cells_of_run(
    table: Table,
    columns: Sequence[Column],
    texts: Collection[Text],
) -> _CellsOfRun:
    """Return the scores and failures of a run in these columns and texts (item and system)."""
    names = {column.name for column in columns}
    scored: set[_Cell] = set()
    for score in table.scores:
        if score.column in names and score.key in texts:
            scored.add((score.item, score.system, score.column))
    failures: list[tuple[_Cell, Failure]] = []
    for failure in table.failures:
        if failure.stage == "panel":  # it follows from the judges' failures
            continue
        if failure.column in names and failure.key in texts:
            cell = (failure.item, failure.system, failure.column)
            failures.append((cell, failure))
    return _CellsOfRun(frozenset(scored), tuple(failures))


def _unshared(table: Table, other_table: Table) -> Unshared:
    """Return the names that only the first of two runs has."""
    other_items = set(other_table.items)
    other_systems = set(other_table.systems)
    other_columns = {column.name for column in other_table.columns}
    items = [item for item in table.items if item not in other_items]
    systems = [system for system in table.systems if system not in other_systems]
    columns = [
        column.name for column in table.columns if column.name not in other_columns
    ]
    return Unshared(items=tuple(items), systems=tuple(systems), columns=tuple(columns))


class TextParts(NamedTuple):
    """The parts of a text that a judge may see."""

    output: str
    source: str | None
    references: tuple[str, ...]


def text_of(sample: Sample) -> TextParts:
    """Return the parts of a text that a judge may see.

    If they are the same in two runs, only the judge can change a score.
    """
    return TextParts(sample.output, sample.source, sample.references)


def _column_in_both(
    pair: _ComparableColumn,
    systems: Sequence[str],
    items: Sequence[str],
) -> _ColumnInBoth:
    """Return the values of a column in both runs, for shared systems and items."""
    before = _matrix_of(pair.before, pair.column, systems, items)
    after = _matrix_of(pair.after, pair.column, systems, items)
    return _ColumnInBoth(pair.column, before, after)


def _matrix_of(
    table: Table,
    column: Column,
    systems: Sequence[str],
    items: Sequence[str],
) -> Floats:
    """Return a column's values, systems × items in this order."""
    rows = _positions(table.systems, systems)
    columns = _positions(table.items, items)
    cells = np.ix_(rows, columns)
    values: Floats = table.matrix(column.name)[cells]
    return values


def _positions(names: Sequence[str], shared: Sequence[str]) -> list[int]:
    """Return the position of each of the shared names among `names`."""
    position = {name: index for index, name in enumerate(names)}
    return [position[name] for name in shared]


def _changed_texts(
    before: Table,
    after: Table,
    systems: Sequence[str],
    items: Sequence[str],
) -> Bools:
    """Return which cells (systems × items) have other texts in the second run."""
    texts_before = _texts_by_system_and_item(before)
    texts_after = _texts_by_system_and_item(after)
    changed = np.zeros((len(systems), len(items)), dtype=bool)
    for row, system in enumerate(systems):
        for column, item in enumerate(items):
            key = (system, item)
            changed[row, column] = texts_before.get(key) != texts_after.get(key)
    return changed


def _texts_by_system_and_item(
    table: Table,
) -> dict[tuple[str, str], Counter[TextParts]]:
    """Return the texts of every system and item; the order of generations does not count."""
    texts_by_key: dict[tuple[str, str], Counter[TextParts]] = {}
    for sample in table.samples:
        key = (sample.system, sample.source_item)
        texts = texts_by_key.setdefault(key, Counter())
        texts[text_of(sample)] += 1
    return texts_by_key


@dataclass(frozen=True, slots=True)
class _ComparableColumn:
    """A column, and the tables of both runs that have it."""

    before: Table
    after: Table
    column: Column


@dataclass(frozen=True, slots=True)
class _Comparable:
    """The columns that can be compared, and those that cannot.

    - `derived`: the overall score and pass rates, if both runs compute them in the same way.
    - `refused`: the reason why a column cannot be compared, by its name.
    """

    columns: list[_ComparableColumn]
    derived: list[_ComparableColumn]
    refused: dict[str, str]


def _comparable(before: Table, after: Table) -> _Comparable:
    """Return the columns that both runs have on the same scale."""
    comparable = _Comparable([], [], {})
    columns_before = {column.name: column for column in before.columns}
    for column in after.columns:
        column_before = columns_before.get(column.name)
        if column_before is None:
            continue
        reason = _reason_incomparable(before, after, column_before, column)
        if reason:
            comparable.refused[column.name] = reason
        else:
            comparable.columns.append(_ComparableColumn(before, after, column))
    _add_overall(comparable, before, after)
    _add_pass_rates(comparable, before, after)
    return comparable


def _add_overall(comparable: _Comparable, before: Table, after: Table) -> None:
    """Add the overall score if both runs have it, or why it cannot be compared."""
    overall_before = overall(before)
    overall_after = overall(after)
    if overall_before is None or overall_after is None:
        return
    column = overall_after.summary.column
    weights = overall_after.summary.weights
    if not weights.keys().isdisjoint(comparable.refused):
        comparable.refused[column.name] = "not all of its criteria can be compared"
    elif overall_before.summary.weights == weights:
        comparable.derived.append(
            _ComparableColumn(overall_before.table, overall_after.table, column),
        )
    else:
        comparable.refused[column.name] = "its criteria or weights differ"


def _add_pass_rates(comparable: _Comparable, before: Table, after: Table) -> None:
    """Add the pass rates of the comparable columns, or why they cannot be compared."""
    columns_before = {column.name: column for column in before.columns}
    rates_before = pass_table(before)
    rates_after = pass_table(after)
    for pair in comparable.columns:
        column = pair.column
        rate = pass_columns([column]).get(column.name)
        if rate is None:
            continue
        pass_at_before = columns_before[column.name].pass_at
        if pass_at_before == column.pass_at:
            pass_rates = _ComparableColumn(rates_before, rates_after, rate)
            comparable.derived.append(pass_rates)
        # A criterion that only now has a mark is no change of its pass rate.
        elif pass_at_before is not None:
            reason = f"its pass_at was {pass_at_before:g} and is {column.pass_at:g}"
            comparable.refused[rate.name] = reason


def _reason_incomparable(
    before: Table,
    after: Table,
    column_before: Column,
    column_after: Column,
) -> str:
    """Return why a column of both runs cannot be compared, or nothing if it can."""
    ends_before = (column_before.low, column_before.high)
    ends_after = (column_after.low, column_after.high)
    if ends_before != ends_after:
        return f"its scale was {_scale_name(*ends_before)} and is {_scale_name(*ends_after)}"
    if column_before.better != column_after.better:
        end_before = column_before.better or "neither end"
        end_after = column_after.better or "neither end"
        return f"{end_before} was better and now it is {end_after}"
    column_name = column_after.name
    if (column_name in before.corpus_columns) != (column_name in after.corpus_columns):
        return "one run has a value per text, the other one per system"
    return ""


def _scale_name(lowest: float | None, highest: float | None) -> str:
    if lowest is None or highest is None:
        return "open"
    return f"{lowest:g}–{highest:g}"


def _mean_changes(
    columns: Sequence[_ColumnInBoth],
    systems: Sequence[str],
    changed_texts: Bools,
    n_resamples: int,
    seed: int,
) -> Iterator[MeanChange]:
    """Yield the rows of every column with a value per text.

    A column has a row for all systems together, if there are several, and one for each system.
    `changed_texts` (systems × items) are those that were edited.
    """
    parts: list[_Part] = []
    for both in columns:
        if len(systems) > 1:
            parts.append(_Part(both, "", slice(None)))
        for row, system in enumerate(systems):
            parts.append(_Part(both, system, slice(row, row + 1)))
    if not parts:
        return
    # Parts × items.
    differences_by_item = np.array([average(part.differences) for part in parts])
    # With fewer flips no p could be significant after Holm's correction.
    n_resamples = max(n_resamples, ceil(2 * len(parts) / ALPHA))
    estimates = mean_differences(
        differences_by_item, n_resamples=n_resamples, seed=seed
    )
    changes: list[MeanChange] = []
    for part, estimate in zip(parts, estimates, strict=True):
        if estimate is not None:  # None if no text has both values
            changes.append(_mean_change(part, estimate, changed_texts))
    # All systems together are corrected over the columns, single ones over systems and columns.
    corrected = _corrected([change for change in changes if not change.system])
    corrected |= _corrected([change for change in changes if change.system])
    for change in changes:
        yield corrected[change.column, change.system]


@dataclass(frozen=True, slots=True)
class _Part:
    """A column's values of one system, or of all systems (`system` is then empty)."""

    both: _ColumnInBoth
    system: str
    rows: slice

    @property
    def differences(self) -> Floats:
        return self.both.differences[self.rows]


def _mean_change(part: _Part, estimate: Estimate, changed_texts: Bools) -> MeanChange:
    """Return the row of one part, with the judge's share of the change if it is known.

    `changed_texts` (systems × items) are those that were edited.
    """
    both = part.both
    differences = part.differences
    is_known = ~np.isnan(differences)
    up = int((differences > 0).sum())
    down = int((differences < 0).sum())
    same = int(is_known.sum()) - up - down
    before = _mean_over_items(both.before[part.rows], is_known)
    after = _mean_over_items(both.after[part.rows], is_known)
    column_name = both.column.name
    change = MeanChange(
        column_name,
        part.system,
        before=before,
        after=after,
        estimate=estimate,
        up=up,
        same=same,
        down=down,
    )
    if both.column.kind == "metric":
        return change
    is_edited = changed_texts[part.rows] & is_known
    if not is_edited.any():
        # On equal texts, only the judge can change a score.
        return replace(change, judge=estimate)
    # With the rows of all systems, because this part may have too few unchanged texts.
    all_differences = both.differences
    split = split_change(all_differences, changed_texts, part.rows)
    if split is None:
        return change
    anchors = ~np.isnan(all_differences) & ~changed_texts
    judge_moved = all_differences[anchors].any()
    # If the judge did not move, the test of the change stands.
    system_change = split.system if judge_moved else estimate
    return replace(change, judge=split.judge, system_change=system_change)


def _mean_over_items(values: Floats, is_known: Bools) -> float:
    """Return the mean over items of the mean of an item's known values (systems × items)."""
    by_item = average(np.where(is_known, values, np.nan))
    return float(np.nanmean(by_item))


def _corrected(changes: Sequence[MeanChange]) -> dict[tuple[str, str], MeanChange]:
    """Return the changes of one family of tests, after Holm's correction, by column and system."""
    p_values: list[float | None] = []
    system_p_values: list[float | None] = []
    for change in changes:
        # A row without any difference is no test, and must not make the correction stricter.
        differs = change.up + change.down > 0
        p_values.append(change.estimate.p if differs else None)
        system_change = change.system_change
        system_p_values.append(system_change.p if system_change else None)
    adjusted = holm(p_values)
    system_adjusted = holm(system_p_values)
    corrected: dict[tuple[str, str], MeanChange] = {}
    changes_with_p = zip(changes, adjusted, system_adjusted, strict=True)
    for change, p_value, system_p in changes_with_p:
        if p_value is None and change.estimate.p is not None:
            # No value differs, so the row was left out of the correction.
            p_value = 1.0
        key = (change.column, change.system)
        corrected[key] = replace(change, adjusted=p_value, system_adjusted=system_p)
    return corrected


def _corpus_rows(
    before: Table,
    after: Table,
    columns: Sequence[Column],
    systems: Sequence[str],
) -> Iterator[MeanChange]:
    """Yield the rows of columns with one value for all texts of a system, such as corpus BLEU."""
    method = "one value for all texts: no interval and no test"
    for column in columns:
        old_rows = _corpus_scores(before, column.name)
        new_rows = _corpus_scores(after, column.name)
        for system in systems:
            if system not in old_rows or system not in new_rows:
                continue
            old = old_rows[system]
            new = new_rows[system]
            difference = round(new.value - old.value, PLACES)
            estimate = without_interval(
                name="difference", value=difference, n=new.provenance.n, reason=method
            )
            yield MeanChange(
                new.column,
                new.system,
                before=old.value,
                after=new.value,
                estimate=estimate,
                up=int(difference > 0),
                same=int(difference == 0),
                down=int(difference < 0),
            )


def _corpus_scores(table: Table, column: str) -> dict[str, Score]:
    """Return the scores of all texts of a system together, by system."""
    return {row.system: row for row in table.column_scores(column) if not row.item}


def _most_changed(
    columns: Sequence[_ColumnInBoth],
    systems: Sequence[str],
    items: Sequence[str],
) -> tuple[tuple[Item, ...], int]:
    """Return the items that changed most, and how many changed.

    The size of a change is a share of the column's scale, so that columns can be compared.
    """
    varying = [both for both in columns if both.span > 0]
    if not varying or not items:
        return (), 0
    # Columns × systems × items; 0 where a run has no value.
    shares: Floats = np.nan_to_num([both.differences / both.span for both in varying])
    sizes = np.abs(shares).max(axis=(0, 1), initial=0.0)
    changed_items: list[Item] = []
    for index in _largest(sizes, _MAX_ITEMS):
        shifts = _largest_shifts(varying, shares, int(index), systems, items[index])
        changed_items.append(Item(items[index], float(sizes[index]), shifts))
    return tuple(changed_items), int(np.count_nonzero(sizes))


def _largest_shifts(
    columns: Sequence[_ColumnInBoth],
    shares: Floats,
    index: int,
    systems: Sequence[str],
    item: str,
) -> tuple[Shift, ...]:
    """Return the largest shifts of an item, whose position is `index`.

    `shares` are columns × systems × items.
    """
    shares_of_item = shares[:, :, index]
    shifts: list[Shift] = []
    for cell in _largest(np.abs(shares_of_item), _MAX_SHIFTS):
        # A position in the flattened array, columns × systems.
        column_index, row = divmod(int(cell), len(systems))
        both = columns[column_index]
        shift = Shift(
            item,
            systems[row],
            both.column.name,
            before=float(both.before[row, index]),
            after=float(both.after[row, index]),
            share=float(shares_of_item[column_index, row]),
        )
        shifts.append(shift)
    return tuple(shifts)


def _largest(sizes: Floats, most: int) -> Ints:
    """Return the positions (in the flattened array) of the largest sizes that are not 0."""
    # Equal sizes keep the order of the data.
    descending: Ints = np.argsort(-sizes, axis=None, kind="stable")
    n_changed = int(np.count_nonzero(sizes))
    return descending[: min(most, n_changed)]
