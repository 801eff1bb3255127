"""Calibration curves: a judge's mean values beside people's mean ratings, in bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from judge.core.records import Column, Estimate
from judge.stats.agreement import values_by_label
from judge.stats.bootstrap import (
    DEFAULT,
    Bootstrap,
    Floats,
    Resampled,
    Statistic,
    without_interval,
)
from judge.stats.coefficients import paired

_BINS = 10
_DIGITS = 9  # of an edge, after the point
_MAX_LABELS = 11  # scales with more labels get ten equal bins


@dataclass(frozen=True, slots=True)
class Bin:
    """Texts with judge values from `low` to below `high` (the last bin includes its end).

    `value` is their mean, `people` the mean of people's ratings of them with its interval; its `n`
    counts the texts.
    """

    low: float
    high: float
    value: float
    people: Estimate


@dataclass(frozen=True, slots=True)
class Calibration:
    """The judge's values against people's, on a scale from `low` to `high`.

    `error` is the expected calibration error (Naeini et al. 2015) on the scale mapped to 0–1: the
    distance between the two means of each bin, weighted by its texts. `bias` is the judge's mean
    minus people's, in units of the scale. Empty bins are left out.
    """

    low: float
    high: float
    bins: tuple[Bin, ...]
    error: Estimate
    bias: Estimate


def levels(column: Column) -> tuple[float, ...]:
    """Return the values of a column's labels, ascending; empty if unknown."""
    return tuple(sorted(values_by_label(column).values()))


def edges(column: Column) -> tuple[float, ...]:
    """Return the bin edges of a column.

    They are half way between labels, or ten equal parts for more than eleven labels.
    """
    if column.low is None or column.high is None or column.low >= column.high:
        return ()
    points = levels(column)
    if 2 <= len(points) <= _MAX_LABELS:
        middles = [(lower + upper) / 2 for lower, upper in pairwise(points)]
        ends_and_middles = [column.low, *middles, column.high]
        return tuple(ends_and_middles)
    # Rounded, so that the score 0.3 is on the edge 3 * 0.1, not below it.
    equal_bins = np.linspace(column.low, column.high, _BINS + 1).round(_DIGITS)
    return tuple(equal_bins.tolist())


def calibration(
    values: Floats,
    ratings: Floats,
    edges: Sequence[float],
    bootstrap: Bootstrap = DEFAULT,
) -> Calibration | None:
    """Compare a judge's values with people's mean ratings on the same scale.

    Both are items × systems, NaN for missing values. The first and the last of `edges` are the ends
    of the scale. Intervals resample items with all their texts. The error is biased upwards for few
    texts, because the means of small bins differ by chance. Return None if no text has both values.
    """
    binned = _sums_by_bin(values, ratings, edges)
    if not binned.texts:
        return None
    statistic = _error_bias_and_means(binned, edges[-1] - edges[0])
    observed, drawn = bootstrap.observed_and_resampled(statistic, len(values))

    def resampled(position: int, items: int) -> Resampled:
        return Resampled(float(observed[position]), drawn[:, position], items)

    # The columns of `statistic` are the error, the bias, and then people's mean in each bin.
    error = _estimate(
        "error",
        resampled(0, binned.items),
        binned.texts,
        "expected calibration error, scale mapped to 0–1",
        bootstrap,
    )
    bias = _estimate(
        "bias",
        resampled(1, binned.items),
        binned.texts,
        "the judge's mean minus people's",
        bootstrap,
    )
    if error is None or bias is None:
        return None
    texts_of_bin, judge_sums, _ = binned.sums.sum(axis=1)
    has_texts = binned.sums[0] > 0
    items_of_bin = has_texts.sum(axis=0)
    bins: list[Bin] = []
    for position, (lower_edge, upper_edge) in enumerate(pairwise(edges)):
        n_texts = int(texts_of_bin[position])
        people_mean = resampled(2 + position, int(items_of_bin[position]))
        people = _estimate(
            "people", people_mean, n_texts, "mean of people's ratings", bootstrap
        )
        if people is not None:  # None for an empty bin
            mean = float(judge_sums[position] / n_texts)
            bins.append(Bin(lower_edge, upper_edge, mean, people))
    return Calibration(edges[0], edges[-1], tuple(bins), error, bias)


def _estimate(
    name: str,
    resampled: Resampled,
    texts: int,
    method: str,
    bootstrap: Bootstrap,
) -> Estimate | None:
    """Return the estimate of a number; it has no interval if all resamples are equal."""
    estimate = bootstrap.estimate(name, resampled, texts, method)
    if estimate is None or estimate.low is None or estimate.low != estimate.high:
        return estimate
    # Equal ratings of few texts do not show that all ratings are equal.
    note = f"{method}; all resamples equal: no interval"
    return without_interval(name=name, value=resampled.value, n=texts, reason=note)


@dataclass(frozen=True, slots=True)
class _BinnedTexts:
    """The texts with both values, by bin: `sums` is 3 × items × bins.

    Its three parts are the number of texts, the sum of the judge's values, and that of people's.
    `items` and `texts` count what is in any bin.
    """

    sums: Floats
    items: int
    texts: int


def _error_bias_and_means(binned: _BinnedTexts, width_of_scale: float) -> Statistic:
    """Return the statistic of each resample: error, bias, and people's mean in every bin."""

    def statistic(counts: Floats) -> Floats:
        texts, judge_sums, people_sums = counts @ binned.sums
        differences = judge_sums - people_sums
        total_distance = np.abs(differences).sum(axis=1)
        total_difference = differences.sum(axis=1)
        total_texts = texts.sum(axis=1)
        # A resample can lack all texts of a bin: its mean is then NaN, and left out.
        with np.errstate(invalid="ignore", divide="ignore"):
            error = total_distance / total_texts / width_of_scale
            bias = total_difference / total_texts
            people_means = people_sums / texts
        return np.column_stack([error, bias, people_means])

    return statistic


def _sums_by_bin(
    values: Floats, ratings: Floats, edges: Sequence[float]
) -> _BinnedTexts:
    """Sort the texts with both values into bins by the judge's value."""
    values, ratings = paired(values, ratings)
    item, system = np.nonzero(~np.isnan(values))
    judge_values = values[item, system]
    people_values = ratings[item, system]
    position = np.searchsorted(edges[1:-1], judge_values, "right")
    n_bins = len(edges) - 1
    sums = np.zeros((3, len(values), n_bins))
    # `sums[…] += …` would add only one of several texts of an item in a bin.
    np.add.at(sums[0], (item, position), 1.0)
    np.add.at(sums[1], (item, position), judge_values)
    np.add.at(sums[2], (item, position), people_values)
    return _BinnedTexts(sums, len(np.unique(item)), len(item))
