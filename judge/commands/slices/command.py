"""`judge.slices`: the means and differences of a finished run in parts of its data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from judge.commands.finished_runs import open_run
from judge.commands.public import public_api
from judge.commands.slices.record import Slices
from judge.commands.slices.statistics import slice_differences, slice_means
from judge.core.errors import ConfigError
from judge.core.format import first_names, one_line, plural
from judge.core.messages import option
from judge.core.plugins import require_known
from judge.core.records import Column, Sample
from judge.report.views.provenance import UNFINISHED
from judge.report.views.slicing_column import is_score, own_columns
from judge.results.result import Result
from judge.stats.bootstrap import MIN_INTERVAL_ITEMS, Floats
from judge.stats.derived_columns import OVERALL, overall
from judge.table import Table

_MAX_SLICES = 50
_MAX_SMALL_SLICES = 5  # names of small slices in a note
_NONE = "(none)"  # the slice of the items without a value


@public_api()
def slices(
    run: Result | str | Path,
    by: str,
    *,
    columns: Sequence[str] = (),
    seed: int = 0,
    n_resamples: int = 5_000,
) -> Slices:
    """Compare slices of a run's data: the items with equal values in the column `by`.

    `columns` are by default the criteria and the overall score, else the first metric. A
    permutation test compares each slice's means with the means of all other items, corrected for
    the number of slices, systems and columns. Pairs of systems that differ significantly in the
    whole data are compared again in each slice.

    Raises ConfigError for a ranking, a column that the data does not have, that holds scores of the
    run, differs between the texts of an item or has more than 50 values, and for an unknown column
    of scores; raises StorageError.
    """
    run = open_run(run)
    if run.rankings or run.table.has_pairs:
        raise ConfigError("a ranking compares texts in pairs and has no means to slice")
    _require_data_column(run.table, by)
    slice_by_item = _slice_of_item(run.table.samples, by)
    matrices = _chosen_matrices(run, columns)
    slice_of_items = [slice_by_item[item] for item in run.table.items]
    size_by_slice = dict(Counter(slice_of_items).most_common())
    members = {}
    for slice_name in size_by_slice:
        is_member = [item_slice == slice_name for item_slice in slice_of_items]
        members[slice_name] = np.array(is_member)
    significant = {}
    for comparison in run.comparisons:
        if comparison.column in matrices:
            differences = [each for each in comparison.differences if each.apart]
            significant[comparison.column] = differences
    systems = run.table.systems
    means = slice_means(matrices, systems, members, seed=seed, n_resamples=n_resamples)
    differences_of_slices = slice_differences(
        matrices, systems, members, significant, seed=seed
    )
    return Slices(
        by=by,
        items=size_by_slice,
        systems=systems,
        columns={column_name: column for column_name, (column, _) in matrices.items()},
        main=next(iter(matrices)),
        means=means,
        differences=differences_of_slices,
        notes=tuple(_notes(run, size_by_slice)),
    )


def _chosen_matrices(
    run: Result, columns: Sequence[str]
) -> dict[str, tuple[Column, Floats]]:
    """Return the columns to compare by name, each with its values of systems × items.

    The overall score comes first, because the report's summary shows the first column.
    """
    tables = {}
    for ranked_column in run.table.ranked_columns:
        tables[ranked_column.name] = (ranked_column, run.table)
    weighted = overall(run.table)
    if weighted:
        overall_column = weighted.summary.column
        tables[overall_column.name] = (overall_column, weighted.table)
    require_known("column", columns, tables)
    all_columns = [column for column, _ in tables.values()]
    chosen = list(columns) or _default_columns(run, all_columns)
    if not chosen:
        needed_scores = "scores of single texts that say which is better"
        raise ConfigError(f"this run has no {needed_scores}")
    if OVERALL in chosen:
        # False sorts before True, and the sort keeps the order of the other columns.
        chosen.sort(key=lambda column_name: column_name != OVERALL)
    matrices = {}
    for column_name in chosen:
        column, table = tables[column_name]
        matrices[column_name] = (column, table.matrix(column_name))
    return matrices


def _default_columns(run: Result, columns: Sequence[Column]) -> list[str]:
    """Return the criteria and the overall score, or else the first metric."""
    judged = [column for column in columns if column.kind == "criterion"]
    criteria = [column.name for column in judged if not column.judge]
    first_metric = [column.name for column in run.table.ranked_columns[:1]]
    return criteria or first_metric


def _notes(run: Result, size_by_slice: Mapping[str, int]) -> Iterator[str]:
    """Yield what limits the numbers."""
    unfinished = UNFINISHED.get(run.info.status)
    if unfinished:
        yield unfinished
    small = [
        one_line(slice_name)
        for slice_name, n_items in size_by_slice.items()
        if n_items < MIN_INTERVAL_ITEMS
    ]
    if small:
        names = first_names(small, _MAX_SMALL_SLICES)
        yield f"Fewer than {MIN_INTERVAL_ITEMS} items, so not tested: {names}."


def _slice_of_item(samples: Sequence[Sample], by: str) -> dict[str, str]:
    """Return the slice of each item: the value of the column `by`, or "(none)".

    Raises ConfigError if its values make no slices to compare.
    """
    slice_by_item: dict[str, str] = {}
    for sample in samples:
        value = sample.extra.get(by)
        value_text = "" if value is None else str(value).strip()
        slice_name = value_text or _NONE
        item = sample.source_item
        first_name = slice_by_item.setdefault(item, slice_name)
        if first_name != slice_name:
            raise ConfigError(
                f"{by}: item {one_line(item, 40)!r} has both {first_name!r:.40} and "
                f"{slice_name!r:.40}; a slice is a set of items, so all texts of an item need the "
                "same value"
            )
    slice_names = set(slice_by_item.values())
    n_slices = len(slice_names)
    if n_slices > _MAX_SLICES:
        raise ConfigError(
            f"{by}: has {plural(n_slices, 'value')}, more than {_MAX_SLICES}; put them into groups "
            "first"
        )
    if n_slices < 2:
        problem = f"every item has {slice_names.pop()!r:.40}"
        raise ConfigError(f"{by}: {problem}; there is nothing to compare")
    return slice_by_item


def _require_data_column(table: Table, by: str) -> None:
    """Raise ConfigError unless `by` names one of the data's own columns that is no score."""
    known_columns = own_columns(table)
    is_in_data = any(by in sample.extra for sample in table.samples)
    if is_in_data and is_score(table, by):
        advice = "choose a column that says something about the items"
        if known_columns:
            advice = f"choose another column, such as {known_columns[0]}"
        raise ConfigError(
            f"{option('by', by)}: this column holds scores of the run, and slices by a score "
            f"always differ in it; {advice}"
        )
    if not known_columns:
        raise ConfigError(
            f"unknown column of the data {by!r}: the data have only the columns that judge itself "
            "reads"
        )
    # A column's name may itself contain a comma.
    pieces = [piece.strip() for piece in by.split(",")]
    are_columns = set(pieces) <= set(known_columns)
    if by not in known_columns and len(pieces) > 1 and are_columns:
        raise ConfigError(
            f"{option('by', by)}: only one column can define the slices; repeat the command for "
            "each column, or add a column to the data that combines them"
        )
    require_known("column of the data", [by], known_columns)
