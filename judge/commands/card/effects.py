"""Measure how changes to a text change its scores, and correct the tests of a card.

`sensitivity_table` computes how often a change moves a score by at least half a step, and by how
much on average. `apply_holm` corrects the findings of all probes and puts each into words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2

import numpy as np

from judge.commands.card.card import (
    FEWEST,
    ORIGINAL,
    PLAIN_UNITS,
    BiasFinding,
    CardEvidence,
    SensitivityCell,
)
from judge.commands.card.number_text import written
from judge.core import format
from judge.core.format import plural
from judge.core.records import Column, Estimate
from judge.stats.bootstrap import Bools, Floats, too_few, wilson_interval
from judge.stats.paired_differences import holm, mean_differences
from judge.stats.power import ALPHA
from judge.table import Table

_NEAR = 1e-9  # how far a sum of steps may be off


def sensitivity_table(
    evidence: CardEvidence,
    changes: Mapping[str, str],
    *,
    rises: bool = False,
    control: str = "",
    seed: int = 0,
) -> tuple[SensitivityCell, ...]:
    """Return a cell for every change that has texts and every criterion.

    `changes` maps the names of changes to the criterion that each damages. A changed text is
    compared with the unchanged one, or with its `control` (another change of the same text) if it
    exists; `vs_original` then compares it with the unchanged one.

    - `rate`: the share of texts whose score moves towards the worse end (with `rises`, the better
      one) by at least `CardEvidence.least_change`, among those far enough from that end.
    - `opposite`: the share that moves the other way.
    - `mean_change`: the mean over all texts with both scores; its p has Holm's correction over all
      these cells.

    All are None for a criterion without a scored text.
    """
    table = evidence.changed
    change_names = [name for name in changes if name in table.systems]
    if not change_names or ORIGINAL not in table.systems:
        return ()
    compared = _compared_texts(table, change_names, control)
    cells: list[SensitivityCell] = []
    for criterion, column in evidence.columns.items():
        values = table.matrix(column.name)
        reference_values = values[compared.reference_rows]
        differences = values[compared.changed_rows] - reference_values
        mean_changes = means(differences, seed)
        changes_from_original = means(evidence.changes(column, change_names), seed)
        least = evidence.least_change(column)
        # After a damage, a score should fall; a lower value may be the better one.
        direction = 1.0 if rises != (column.better == "lower") else -1.0
        for index, change_name in enumerate(change_names):
            moves = (reference_values[index], differences[index])
            has_failed = compared.has_text[index] & np.isnan(differences[index])
            vs_original = None
            if compared.references[index] != ORIGINAL:
                vs_original = without_p(changes_from_original[index])
            cell = SensitivityCell(
                change=change_name,
                criterion=criterion,
                targeted=changes[change_name] == criterion,
                rate=_rate(column, *moves, direction, least),
                mean_change=mean_changes[index],
                failed=int(has_failed.sum()),
                opposite=_rate(column, *moves, -direction, least),
                vs_original=vs_original,
                control=change_name == control,
            )
            cells.append(cell)
    return _with_holm(cells)


@dataclass(frozen=True, slots=True)
class _ComparedTexts:
    """The texts of each change, and those that they are compared with.

    `references` are systems of the table, and the rows are those of its matrices. `has_text` says
    for each change (row) which items have a text with it.
    """

    references: list[str]
    changed_rows: list[int]
    reference_rows: list[int]
    has_text: Bools


def _compared_texts(
    table: Table,
    change_names: Sequence[str],
    control: str,
) -> _ComparedTexts:
    """Return which texts are compared.

    The control is compared with the unchanged texts, and every other change with the control if
    there is one.
    """
    has_control = control in change_names
    references: list[str] = []
    for change_name in change_names:
        reference = ORIGINAL
        if has_control and change_name != control:
            reference = control
        references.append(reference)
    row_of_system = {system: row for row, system in enumerate(table.systems)}
    keys = {sample.key for sample in table.samples}
    has_text = np.zeros((len(change_names), len(table.items)), dtype=bool)
    for row, change_name in enumerate(change_names):
        has_text[row] = [(item, change_name) in keys for item in table.items]
    changed_rows = [row_of_system[change_name] for change_name in change_names]
    reference_rows = [row_of_system[reference] for reference in references]
    return _ComparedTexts(references, changed_rows, reference_rows, has_text)


def _with_holm(cells: Sequence[SensitivityCell]) -> tuple[SensitivityCell, ...]:
    """Return the cells with Holm's correction over the tests of all their mean changes."""
    adjusted = holm_corrected([cell.mean_change for cell in cells])
    corrected = []
    for cell, mean_change in zip(cells, adjusted, strict=True):
        corrected.append(replace(cell, mean_change=mean_change))
    return tuple(corrected)


def _rate(
    column: Column,
    reference_scores: Floats,
    differences: Floats,
    direction: float,
    least: float,
) -> Estimate | None:
    """Return the share of scores that move by at least `least` in a direction, 1 or -1.

    Only scores count that are at least that far from the end of the scale in that direction.
    """
    scale_end = column.high if direction > 0 else column.low
    if scale_end is None:
        scale_end = np.inf
    # A score that is already near the end has no room to move there.
    room = np.abs(scale_end - reference_scores)
    has_room = room >= least - _NEAR
    return _moved(differences[has_room], direction, least)


def means(rows: Floats, seed: int) -> list[Estimate | None]:
    """Return `mean_differences` of the rows, without an interval below FEWEST items."""
    estimates: list[Estimate | None] = []
    for estimate in mean_differences(rows, seed=seed):
        if estimate is not None and estimate.n < FEWEST:
            method = too_few(estimate.n)
            estimate = replace(estimate, low=None, high=None, method=method)
        estimates.append(estimate)
    return estimates


def without_p(estimate: Estimate | None) -> Estimate | None:
    """Return the estimate without its test."""
    if estimate is None:
        return None
    return replace(estimate, p=None, test="")


def min_items_for_significance(tests: int) -> int:
    """Return the fewest items with which a Holm-corrected sign-flip test can be significant.

    n items have 2ⁿ sign flips, and the smallest two-sided p is 2 / 2ⁿ.
    """
    if not tests:
        return 0
    return ceil(log2(2 * tests / ALPHA))


def holm_corrected(estimates: Iterable[Estimate | None]) -> list[Estimate | None]:
    """Apply Holm's correction over all estimates that have a p."""
    rows = list(estimates)
    adjusted = holm([estimate.p if estimate else None for estimate in rows])
    tests = sum(p_value is not None for p_value in adjusted)
    corrected: list[Estimate | None] = []
    for estimate, p_value in zip(rows, adjusted, strict=True):
        if estimate is not None and p_value is not None:
            method = f"{estimate.method}, Holm over {tests}"
            estimate = replace(estimate, p=p_value, method=method)
        corrected.append(estimate)
    return corrected


def _moved(values: Floats, toward: float, least: float) -> Estimate | None:
    """Return the share of known values that are at least `least` on one side of 0."""
    known_values = toward * values[~np.isnan(values)]
    # A value of 0 is no move, even with a `least` of 0.
    moved = (known_values >= least - _NEAR) & (known_values > _NEAR)
    return wilson_interval(int(moved.sum()), len(known_values), "rate")


def apply_holm(
    findings: Iterable[BiasFinding], columns: Mapping[str, Column]
) -> tuple[BiasFinding, ...]:
    """Return the findings with Holm's correction over all of them, each in words."""
    rows = list(findings)
    estimates = holm_corrected([finding.estimate for finding in rows])
    corrected = []
    for finding, estimate in zip(rows, estimates, strict=True):
        if estimate is None:
            continue
        significant = None if estimate.p is None else is_significant(estimate)
        finding = replace(finding, estimate=estimate, significant=significant)
        sentence = _in_words(finding, columns.get(finding.criterion))
        corrected.append(replace(finding, sentence=sentence))
    return tuple(corrected)


def _in_words(finding: BiasFinding, column: Column | None) -> str:
    """Return the measure with its number, unit, count and p."""
    estimate = finding.estimate
    details = []
    if finding.unit not in PLAIN_UNITS:
        details.append(finding.unit)
    noun = finding.counted.removesuffix("s")
    details.append(plural(estimate.n, noun))
    if finding.suggestive:
        details.append("too few to test, but most agree")
    elif estimate.p is not None:
        details.append(format.format_p(estimate.p))
    value, ends = written(finding, column)
    if ends:
        value = f"{value} {ends}"
    listed_details = ", ".join(details)
    return f"{finding.criterion}: {finding.measure} {value} ({listed_details})"


def agreement_with_mean(values: Floats, least: float) -> Estimate | None:
    """Return the share of differences that are on the side of their mean by at least `least`.

    A missing difference is NaN.
    """
    known_values = values[~np.isnan(values)]
    side = 0.0
    if len(known_values):
        side = float(np.sign(known_values.mean()))
    return _moved(known_values, side, least)


def is_significant(estimate: Estimate) -> bool:
    """Return whether the corrected p is below .05."""
    return estimate.p is not None and estimate.p < ALPHA
