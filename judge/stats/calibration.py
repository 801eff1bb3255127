"""Whether a judge's values mean what people's do: where it says 4, do people say 4?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from judge.core.records import Column, Estimate
from judge.stats.bootstrap import DEFAULT, Bootstrap, Floats, Resampled, Statistic
from judge.stats.coefficients import paired

_BINS = 10
_LABELS = 11  # up to which each label of a scale has a bin of its own


@dataclass(frozen=True, slots=True)
class Bin:
    """Texts to which the judge gave values from `low` to below `high` (the last bin includes its end).

    `value` is their mean, `people` the mean of people's ratings of them, with its interval; its `n` counts the texts.
    """

    low: float
    high: float
    value: float
    people: Estimate


@dataclass(frozen=True, slots=True)
class Calibration:
    """The judge's values beside people's, on a scale from `low` to `high`.

    `error` is the expected calibration error (Naeini et al. 2015) on the scale put on 0 to 1: the distance of the two
    means of each bin, weighted by its texts. `bias` is the judge's mean less people's, in units of the scale. Bins
    without a text are left out.
    """

    low: float
    high: float
    bins: tuple[Bin, ...]
    error: Estimate
    bias: Estimate


def levels(column: Column) -> tuple[float, ...]:
    """What the labels of a column's scale count, ascending; nothing where that is not known.

    Of two labels they are the ends of the scale, else what they say as numbers.
    """
    if len(column.labels) == 2 and column.low is not None and column.high is not None:
        return column.low, column.high
    try:
        return tuple(sorted(map(float, column.labels)))
    except ValueError:
        return ()


def edges(column: Column) -> tuple[float, ...]:
    """Where the bins of a column begin and end: half way between labels, of more than eleven ten equal parts."""
    if column.low is None or column.high is None or column.low >= column.high:
        return ()
    points = levels(column)
    if 2 <= len(points) <= _LABELS:
        return column.low, *((one + other) / 2 for one, other in pairwise(points)), column.high
    return tuple(np.linspace(column.low, column.high, _BINS + 1).tolist())


def calibration(
    values: Floats, ratings: Floats, edges: Sequence[float], bootstrap: Bootstrap = DEFAULT
) -> Calibration | None:
    """A judge's values against people's mean ratings on the same scale, items × systems, NaN for missing ones.

    `edges` are those of the bins, the first and the last the ends of the scale. Intervals are over items drawn anew
    with all their texts. An error over few texts is too high, as chance alone parts the means of small bins. None
    without a text that has both.
    """
    values, ratings = paired(values, ratings)
    item, _ = known = np.nonzero(~np.isnan(values))
    if not len(item):
        return None
    place = np.searchsorted(edges[1:-1], values[known], "right")
    sums = np.zeros((3, len(values), len(edges) - 1))
    for of, side in zip(sums, (np.ones(len(item)), values[known], ratings[known]), strict=True):
        np.add.at(of, (item, place), side)
    found, drawn = bootstrap.both(_statistic(sums, edges[-1] - edges[0]), len(values))
    n, own, _ = sums.sum(axis=1)
    items = (sums[0] > 0).sum(axis=0)

    def estimate(at: int, name: str, how: str, n_items: int, n_texts: int) -> Estimate | None:
        return bootstrap.estimate(name, Resampled(float(found[at]), drawn[:, at], n_items), n_texts, how)

    whole = len(np.unique(item)), len(item)
    error = estimate(0, "error", "expected calibration error, the scale put on 0 to 1", *whole)
    bias = estimate(1, "bias", "the judge's mean less people's", *whole)
    people = [estimate(2 + k, "people", "mean of people's ratings", int(items[k]), int(n[k])) for k in range(len(n))]
    bins = [
        Bin(low, high, float(mean / number), one)
        for (low, high), mean, number, one in zip(pairwise(edges), own, n, people, strict=True)
        if one is not None
    ]
    return Calibration(edges[0], edges[-1], tuple(bins), error, bias) if error and bias else None


def _statistic(sums: Floats, span: float) -> Statistic:
    """Of each resample the error, the bias, and people's mean in every bin, from sums by item and bin.

    The sums are those of ones, of the judge's values and of people's.
    """

    def statistic(counts: Floats) -> Floats:
        number, own, people = counts @ sums
        total = number.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.abs(own - people).sum(axis=1) / total / span
            return np.column_stack([error, (own - people).sum(axis=1) / total, people / number])

    return statistic
