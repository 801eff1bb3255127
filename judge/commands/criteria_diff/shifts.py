"""The scores of two runs of `judge criteria diff`: how far they shift, flip and follow people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from judge.commands.compare.command import compare
from judge.commands.criteria_diff.record import Agreement, FlipCount, Judged
from judge.core.messages import option
from judge.core.records import Sample
from judge.data import ledger
from judge.results.result import Result
from judge.stats.bootstrap import Bools, Floats
from judge.stats.coefficients import Level
from judge.stats.correlation import change_in_agreement, usual_level
from judge.stats.rated_columns import column_from_table

_DECIMALS = 9  # equal values may differ by rounding


def criterion_shifts(
    before: Result,
    after: Result,
    rows: Sequence[Sample],
) -> tuple[Judged, tuple[str, ...]]:
    """Compare two runs of a criterion on the same texts; also return notes.

    `rows` have the human ratings. Raises DataError for a rating that was used to make either
    prompt.
    """
    # The run of one criterion has its column first, then those of a panel's judges.
    column = before.table.columns[0]
    new_column = after.table.columns[0]
    notes: list[str] = []
    old_side = before
    new_side = after
    if (column.low, column.high) != (new_column.low, new_column.high):
        notes.append(
            "The scales differ, so scores are compared as shares of their scale, 0 to 1."
        )
        old_side = _as_shares(before)
        new_side = _as_shares(after)
    old_texts = {score.key for score in old_side.table.column_scores(column.name)}
    new_texts = {score.key for score in new_side.table.column_scores(column.name)}
    comparison = None
    if old_texts & new_texts:
        comparison = compare(old_side, new_side, seed=before.info.config.seed)
        # Only the criteria's settings differ, and the diff itself shows them.
        comparison = replace(comparison, changes=())
        notes += comparison.notes
    n_judgments_before, n_failed_before = count_judgments(before)
    n_judgments_after, n_failed_after = count_judgments(after)
    judged = Judged(
        judgments=(n_judgments_before, n_judgments_after),
        failed=(n_failed_before, n_failed_after),
        comparison=comparison,
        flips=tuple(_flips(before, after, column.name)),
        rating=column.criterion,
    )
    seen = ledger.seen_by([*old_side.table.columns, *new_side.table.columns])
    ledger.check(rows, seen)
    notes += ledger.notes(rows)
    rated_rows = [row for row in rows if judged.rating in row.human]
    if rated_rows:
        level = _level(rows, judged.rating)
        judged = _with_agreement(judged, before, after, rated_rows, level)
    else:
        judged = replace(judged, no_agreement=_unrated_reason(rows, judged.rating))
    return judged, tuple(notes)


def count_judgments(result: Result) -> tuple[int, int]:
    """Return the number of judgments and of the failed ones, without the means of a panel."""
    by_judge = {column.name for column in result.table.columns if column.judge}
    judged = by_judge or {column.name for column in result.table.columns}
    n_scores = sum(score.column in judged for score in result.table.scores)
    n_failed = sum(failure.column in judged for failure in result.failures)
    return n_scores + n_failed, n_failed


def _unrated_reason(rows: Sequence[Sample], rating: str) -> str:
    """Say that no text has a rating of this name, and which names there are."""
    known_names: dict[str, None] = {}
    for row in rows:
        known_names |= dict.fromkeys(row.human)
    missing_rating = "human rating"
    if known_names:
        human_option = option("human")
        listed = ", ".join(known_names)
        other_ratings = f"{human_option} selects another: {listed}"
        missing_rating = f"human rating of {rating} ({other_ratings})"
    return f"No text has a {missing_rating}, so agreement with people is unknown"


def _level(rows: Sequence[Sample], rating: str) -> Level:
    """Return the usual level of all texts that people rated, also of those withheld.

    With them, it is the level of `judge criteria improve`, which chooses it before it withholds the
    ratings of its training part.
    """
    rated_rows = [row for row in rows if rating in row.human or rating in row.withheld]
    return usual_level(rated_rows)


def _with_agreement(
    judged: Judged,
    before: Result,
    after: Result,
    rated_rows: Sequence[Sample],
    usual: Level,
) -> Judged:
    """Add the agreement of both runs with people's ratings, or why it is undefined.

    The verdict is at the level `usual` if the agreement is defined there, else over all texts.
    """
    column = before.table.columns[0]
    old_values = column_from_table(column, before.table, column.name).values
    new_values = column_from_table(column, after.table, column.name).values
    seed = before.info.config.seed
    shifts, missing = change_in_agreement(
        rated_rows,
        judged.rating,
        old_values,
        new_values,
        seed=seed,
    )
    agreements = []
    for level, shift in shifts.items():
        agreement = Agreement(
            level=level,
            before=shift.before,
            after=shift.after,
            difference=shift.change,
        )
        agreements.append(agreement)
    reason = ""
    if not agreements:
        reason = f"Agreement with people's {judged.rating} is undefined: {missing}"
    return replace(
        judged,
        agreement=tuple(agreements),
        no_agreement=reason,
        level=usual if usual in shifts else "all-texts",
    )


def _as_shares(result: Result) -> Result:
    """Return the result with every value as a share (0–1) of its scale."""
    table = result.table
    lowest = {}
    widths = {}
    columns = []
    for column in table.columns:
        if column.low is not None and column.high is not None:
            lowest[column.name] = column.low
            widths[column.name] = column.high - column.low
        column_of_shares = replace(column, low=0.0, high=1.0, labels=())
        columns.append(column_of_shares)
    scores = []
    for score in table.scores:
        above_lowest = score.value - lowest[score.column]
        share = above_lowest / widths[score.column]
        scores.append(replace(score, value=share))
    table_of_shares = replace(table, columns=tuple(columns), scores=tuple(scores))
    return replace(result, table=table_of_shares)


def _flips(before: Result, after: Result, column: str) -> Iterator[FlipCount]:
    """Count changed labels, and reversed pairs of texts and of systems."""
    labels_before = before.table.columns[0].labels
    labels_after = after.table.columns[0].labels
    if labels_before == labels_after:
        yield from _label_flips(before, after)
    # Systems × items, NaN for missing scores.
    old_matrix = np.round(before.table.matrix(column), _DECIMALS)
    new_matrix = np.round(after.table.matrix(column), _DECIMALS)
    if len(old_matrix) < 2:
        return
    is_missing = np.isnan(old_matrix) | np.isnan(new_matrix)
    scored = ~is_missing
    n_reversed = 0
    n_pairs = 0
    by_item = zip(old_matrix.T, new_matrix.T, scored.T, strict=True)
    for old_values, new_values, has_both in by_item:
        n_systems = int(has_both.sum())
        n_pairs += math.comb(n_systems, 2)
        n_reversed += _reversed_pairs(old_values[has_both], new_values[has_both])
    yield FlipCount("order within items", n_reversed, n_pairs)
    old_means = _system_means(old_matrix, scored)
    new_means = _system_means(new_matrix, scored)
    n_reversed = _reversed_pairs(old_means, new_means)
    n_pairs = math.comb(len(old_means), 2)
    yield FlipCount("order of systems", n_reversed, n_pairs)


def _label_flips(before: Result, after: Result) -> Iterator[FlipCount]:
    """Count the scores whose likeliest label is another one now, with the labels of all judges."""
    old_labels = _likeliest_labels(before)
    new_labels = _likeliest_labels(after)
    shared = old_labels.keys() & new_labels.keys()
    if shared:
        n_changed = sum(old_labels[key] != new_labels[key] for key in shared)
        yield FlipCount("likeliest label", n_changed, len(shared))


def _system_means(matrix: Floats, scored: Bools) -> Floats:
    """Return the mean of each system that has scores, over the texts with scores by both."""
    counts = scored.sum(axis=1)
    has_scores = counts > 0
    sums = np.where(scored, matrix, 0.0).sum(axis=1)
    means: Floats = sums[has_scores] / counts[has_scores]
    return np.round(means, _DECIMALS)


def _likeliest_labels(result: Result) -> dict[tuple[str, str, str], str]:
    """Return the likeliest label by item, system and column."""
    labels: dict[tuple[str, str, str], str] = {}
    for score in result.table.scores:
        likeliest = score.provenance.argmax
        # A score that is not made of labels has none.
        if likeliest:
            labels[score.item, score.system, score.column] = likeliest
    return labels


def _reversed_pairs(values_before: Floats, values_after: Floats) -> int:
    """Return how many pairs are in the opposite order; tied pairs do not count."""
    # Each value minus each other one, and its sign: (values, values).
    old_differences = values_before[:, None] - values_before[None, :]
    new_differences = values_after[:, None] - values_after[None, :]
    old_order = np.sign(old_differences)
    new_order = np.sign(new_differences)
    is_reversed = old_order * new_order < 0
    # Each pair is in the matrix twice.
    return int(is_reversed.sum()) // 2
