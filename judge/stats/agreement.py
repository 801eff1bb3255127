"""Do the judges of a panel agree? Krippendorff's alpha over the texts they all scored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judge.core.records import IDENTICAL, Estimate
from judge.stats.resampling import Floats, draws
from judge.table import Table

# Variance of values put on a range of 1, below which a resample has no variation but that of rounding.
_ROUNDING = 1e-12
_PLACES = 9


def alpha(
    table: Table, columns: Sequence[str], *, confidence: float = 0.95, n_resamples: int = 1000, seed: int = 0
) -> Estimate | None:
    """Krippendorff's alpha (2011; 2018, ch. 12) between the judges of one criterion, whose columns are `columns`.

    1 is perfect agreement, 0 that of chance; below 0 judges disagree more than by chance. The unit is the text, or, in
    a comparison, the two texts in one order; identical texts, about which no judge was asked, are left out. A missing
    value is one that failed; `n` counts the texts with two values or more. The distance is the interval one, (v − w)²,
    on the values of the scale, for labels too: a scale says by its values how far apart its labels are.

    None where alpha is not defined: fewer than two judges, fewer than two texts with two values, or no variation at
    all, of which one cannot tell whether the judges agree or do not look. The interval is the percentile one over
    resampled items, each with all its texts; resamples without variation are left out, and below 2 items there is none.
    """
    items, values = _units(table, columns)
    known = values[~np.isnan(values)]
    if len(items) < 2 or np.ptp(known) == 0:
        return None
    names, places = np.unique(items, return_inverse=True)
    terms = np.zeros((len(names), 4))
    np.add.at(terms, places, unit_terms((values - known.mean()) / np.ptp(known)))
    how = f"Krippendorff's alpha, interval distance, {len(columns)} judges"
    value = float(alpha_of(terms.sum(axis=0)))
    if len(names) < 2:
        return Estimate("alpha", value, None, None, len(items), f"{how}; one item: too few for an interval")
    drawn = np.concatenate([alpha_of(counts @ terms) for counts in draws(len(names), n_resamples, seed)])
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn[~np.isnan(drawn)], (tail, 1 - tail))
    how += f"; {100 * confidence:g}% percentile bootstrap over items, {n_resamples} resamples, seed {seed}"
    return Estimate("alpha", value, float(low), float(high), len(items), how)


def _units(table: Table, columns: Sequence[str]) -> tuple[list[str], Floats]:
    """The item of every unit with two values or more, and its values: units × judges, NaN for missing ones."""
    places: dict[tuple[str, str, str], int] = {}
    found = [
        (places.setdefault((score.item, score.system, score.rival), len(places)), judge, score.value)
        for judge, column in enumerate(columns)
        for score in table.of(column)
        if score.provenance.method != IDENTICAL
    ]
    values = np.full((len(places), len(columns)), np.nan)
    for place, judge, value in found:
        values[place, judge] = round(value, _PLACES)  # equal scores may differ by rounding
    paired = (~np.isnan(values)).sum(axis=1) > 1
    return [item for (item, _, _), is_paired in zip(places, paired, strict=True) if is_paired], values[paired]


def unit_terms(values: Floats) -> Floats:
    """What every unit adds to alpha: number of values, their sum, sum of squares, and number × variance."""
    number = (~np.isnan(values)).sum(axis=1)
    within = number * np.nanvar(values, axis=1, ddof=1)
    return np.stack([number, np.nansum(values, axis=1), np.nansum(values**2, axis=1), within], axis=1)


def alpha_of(terms: Floats) -> Floats:
    """1 − observed / expected disagreement from sums of `unit_terms`; NaN where nothing is expected.

    With (v − w)² both are variances: Σ_u m_u s_u² / n within the units, s² over all n values that can be paired. That
    needs neither the matrix of coincidences, quadratic in the number of different values (expected scores rarely repeat
    one), nor another one for every resample. Krippendorff's own bootstrap redraws pairs and not items, as evalica's
    does, and so takes the texts of one item for independent.
    """
    n, total, squares, within = np.moveaxis(terms, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (squares - total**2 / n) / (n - 1)
        return np.where(variance > _ROUNDING, 1 - within / n / variance, np.nan)
