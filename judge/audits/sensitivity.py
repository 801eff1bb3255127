"""How changes to a text change its scores: how often by at least half a step, and by how much on average.

Also the findings of all probes, before and after the correction of their p-values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import ceil, log2

import numpy as np

from judge.audits.card import (
    DETECTED,
    FEWEST,
    ORIGINAL,
    AuditData,
    BiasFinding,
    SensitivityCell,
    brackets,
    chance,
    of_count,
)
from judge.core.records import Column, Estimate
from judge.stats.bootstrap import Floats, too_few, wilson_interval
from judge.stats.paired_differences import holm, mean_differences
from judge.stats.power import ALPHA
from judge.table import Table

_NEAR = 1e-9  # how far a sum of steps may be off


def sensitivity_table(
    evidence: AuditData, changes: Mapping[str, str], *, rises: bool = False, control: str = "", seed: int = 0
) -> tuple[SensitivityCell, ...]:
    """Return a cell for every change that has texts and every criterion; `changes` maps names to the damaged criterion.

    `rate` is the share of the texts whose score moves towards the worse end (with `rises`, the better one) by at least
    `detection_threshold`, among those far enough from that end; `against` is the share that moves the other way. `move`
    is the mean over all texts with both scores; its p has Holm's correction over all these cells. Both compare with the
    unchanged text, or with that of `control` (a change of the same text) if it exists; `raw` then compares with the
    unchanged text. All are None for a criterion without a scored text.
    """
    table = evidence.changed
    names = [name for name in changes if name in table.systems]
    if not names or ORIGINAL not in table.systems:
        return ()
    # For each change, which items have a text of it.
    existing = {(sample.item, sample.system) for sample in table.samples}
    texts = [np.array([(item, name) in existing for item in table.items]) for name in names]
    cells = []
    for criterion, column in evidence.columns.items():
        values, plain = table.matrix(column.name), score_changes(table, column, names)
        baseline = [
            table.systems.index(control if control in names and name != control else ORIGINAL) for name in names
        ]
        before = values[baseline]
        rows = values[[table.systems.index(name) for name in names]] - before
        least = detection_threshold(column, values[table.systems.index(ORIGINAL)])
        moved, raws = (means(differences, seed) for differences in (rows, plain))
        for at, (name, row, exists) in enumerate(zip(names, rows, texts, strict=True)):
            rate, against = (_rate(column, before[at], row, least, rises=up) for up in (rises, not rises))
            failed = int((exists & np.isnan(row)).sum())
            raw = without_p(raws[at]) if control in names and name != control else None
            is_own = changes[name] == criterion
            cells.append(
                SensitivityCell(name, criterion, is_own, rate, moved[at], failed, against, raw, name == control)
            )
    adjusted = holm_corrected([cell.mean_change for cell in cells])
    return tuple(replace(cell, mean_change=move) for cell, move in zip(cells, adjusted, strict=True))


def means(rows: Floats, seed: int) -> list[Estimate | None]:
    """Return `mean_differences` of the rows, without intervals that have too few items."""
    return [suppress_small_samples(estimate) for estimate in mean_differences(rows, seed=seed)]


def without_p(estimate: Estimate | None) -> Estimate | None:
    """Return the estimate without its test."""
    return estimate and replace(estimate, p=None, method=estimate.method.partition("; p:")[0])


def suppress_small_samples(estimate: Estimate | None) -> Estimate | None:
    """Remove the interval of an estimate with fewer than FEWEST items."""
    if estimate is None or estimate.n >= FEWEST:
        return estimate
    _, separator, test = estimate.method.partition("; p:")
    return replace(estimate, low=None, high=None, method=f"{too_few(estimate.n)}{separator}{test}")


def min_items_for_significance(tests: int) -> int:
    """Return the number of items from which a sign-flip test can be significant after Holm's correction."""
    return ceil(log2(2 * tests / ALPHA)) if tests else 0


def score_changes(table: Table, column: Column, names: Sequence[str]) -> Floats:
    """Return changed minus original score in points, changes × items; NaN if a text or either score is missing."""
    values = table.matrix(column.name)
    rows: Floats = values[[table.systems.index(name) for name in names]] - values[table.systems.index(ORIGINAL)]
    return rows


def detection_threshold(column: Column, original: Floats) -> float:
    """Return the smallest move that counts: DETECTED of the scale, or half the originals' sd if it has no ends."""
    if column.low is not None and column.high is not None:
        return DETECTED * (column.high - column.low)
    known = original[~np.isnan(original)]
    return float(known.std(ddof=1)) / 2 if len(known) > 1 else 0.0


def holm_corrected(estimates: Iterable[Estimate | None]) -> list[Estimate | None]:
    """Apply Holm's correction over all estimates that have a p."""
    rows = list(estimates)
    adjusted = holm([estimate.p if estimate else None for estimate in rows])
    suffix = f", Holm over {sum(p is not None for p in adjusted)}"
    return [
        replace(estimate, p=p, method=estimate.method + suffix) if estimate and p is not None else estimate
        for estimate, p in zip(rows, adjusted, strict=True)
    ]


def _rate(column: Column, original: Floats, row: Floats, least: float, *, rises: bool) -> Estimate | None:
    toward = 1.0 if rises != (column.better == "lower") else -1.0
    known = ~np.isnan(row)
    end = column.high if toward > 0 else column.low
    if end is not None:
        known &= np.abs(end - original) >= least - _NEAR
    moved = (toward * row[known] >= least - _NEAR) & (toward * row[known] > _NEAR)
    return wilson_interval(int(moved.sum()), int(known.sum()), "rate")


@dataclass(frozen=True, slots=True)
class CandidateFinding(BiasFinding):
    """A finding before the correction: `sentence` if its test is significant, else `otherwise`.

    Without `otherwise` there is nothing to test.
    """

    otherwise: str = ""


def apply_holm(drafts: Iterable[CandidateFinding]) -> tuple[BiasFinding, ...]:
    """Return the findings, with Holm's correction over all of them."""
    rows, findings = list(drafts), []
    for draft, estimate in zip(rows, holm_corrected([draft.estimate for draft in rows]), strict=True):
        if estimate is None:
            continue
        significant = is_significant(estimate) if draft.otherwise else None
        known = {field.name: getattr(draft, field.name) for field in fields(BiasFinding)}
        finding = BiasFinding(**(known | {"estimate": estimate, "significant": significant}))
        if finding.suggestive and finding.same_direction:
            sentence = f"{draft.sentence} (in {of_count(finding.same_direction, finding.counted)}; too few to test)"
        elif significant is None:
            sentence = draft.sentence
        else:
            sentence = f"{draft.sentence if significant else draft.otherwise}{brackets(chance(estimate.p))}"
        findings.append(replace(finding, sentence=sentence))
    return tuple(findings)


def minimum_effect(evidence: AuditData, column: Column) -> float:
    """Return the smallest move that counts in a criterion's column, see `detection_threshold`."""
    table = evidence.changed
    known = ORIGINAL in table.systems and any(other_column.name == column.name for other_column in table.columns)
    scores = table.matrix(column.name)[table.systems.index(ORIGINAL)] if known else np.array([])
    return detection_threshold(column, scores)


def agreement_with_mean(values: Floats, least: float) -> Estimate | None:
    """Return the share of differences (NaN if missing) on the side of their mean by at least `least`."""
    known = values[~np.isnan(values)]
    toward = np.sign(known.mean()) if len(known) else 0.0
    return wilson_interval(int(((toward * known >= least - _NEAR) & (toward * known > _NEAR)).sum()), len(known))


def is_significant(estimate: Estimate) -> bool:
    """Return whether the corrected p is below .05."""
    return estimate.p is not None and estimate.p < ALPHA


def criteria(evidence: AuditData, table: Table) -> list[tuple[str, Column]]:
    """Return the columns of a table with the names of their criteria, in the order of `evidence.columns`."""
    known = {column.name: name for name, column in evidence.columns.items()}
    place = {name: at for at, name in enumerate(known)}
    columns = sorted(table.columns, key=lambda column: place.get(column.name, len(place)))
    return [(known.get(column.name, column.name), column) for column in columns]
