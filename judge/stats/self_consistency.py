"""How much a judge's answer about the same text varies from draw to draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import fsum, sqrt

from judge.core.records import Column, Estimate, Provenance, Score
from judge.stats.resampling import means
from judge.table import Table

_NEAR = 1e-6  # how far a mean over labels may be from the value that was stored


def repeats(table: Table, *, seed: int = 0) -> dict[tuple[str, str], Estimate]:
    """The standard deviation of the draws of one text (divisor draws − 1), its mean over texts, by system and column.

    In the units of the column's scale, for columns of which a text has two parsed draws or more; `n` counts these
    texts. What the labels count is read from their text, and, where there are two, from the ends of the scale; a
    column whose values that does not give has none.
    """
    columns = tuple(column for column in table.columns if column.kind == "criterion")
    counted = {column.name: _counts(column) for column in columns}
    rows = [row for row in table.scores if row.provenance.method == "samples" and counted.get(row.column)]
    spread = tuple(
        replace(row, value=sd, provenance=Provenance("samples"))
        for row in rows
        if (sd := _deviation(row, counted[row.column])) is not None
    )
    if not spread:
        return {}
    found = means(Table(table.samples, columns, spread), seed=seed)
    how = "mean over texts of the standard deviation of the draws of each"
    return {key: replace(one, name="repeat_sd", method=f"{how}; {one.method}") for key, one in found.items()}


def _counts(column: Column) -> Mapping[str, float]:
    """What each label counts; of two it does not matter which end is whose. Nothing where it is not known."""
    if len(column.labels) == 2 and column.low is not None and column.high is not None:
        return dict(zip(column.labels, (column.low, column.high), strict=True))
    try:
        return {label: float(label) for label in column.labels}
    except ValueError:
        return {}


def _deviation(score: Score, counts: Mapping[str, float]) -> float | None:
    """The standard deviation of the draws that parsed; None for one draw, or where the labels count something else."""
    p = score.provenance
    shares = {label: share for label, share in (p.distribution or {}).items() if share > 0}
    mass = fsum(shares.values())
    if p.n < 2 or not mass > 0 or shares.keys() - counts.keys():
        return None
    mean = fsum(share * counts[label] for label, share in shares.items()) / mass
    if len(counts) > 2 and abs(mean - score.value) > _NEAR:
        return None
    squares = fsum(share * (counts[label] - mean) ** 2 for label, share in shares.items()) / mass
    return sqrt(squares * p.n / (p.n - 1))
