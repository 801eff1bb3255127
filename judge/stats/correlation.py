"""Correlate columns with people's ratings and with each other.

`CorrelationWithRatings` correlates columns with ratings and compares two columns. `rater_correlation` does this for an
rater, `change_in_agreement` for two runs. `matrices` correlates all columns of a run. All have three levels: within
items, over texts, between system means; the first has intervals of a mean over items, the others bootstrap intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product
from math import sqrt
from statistics import median
from typing import NamedTuple

import numpy as np

from judge.core.records import Column, Estimate, Sample
from judge.stats.bootstrap import (
    DEFAULT,
    MIN_INTERVAL_ITEMS,
    Bools,
    Bootstrap,
    Floats,
    Interval,
    Ints,
    Resampled,
    Statistic,
    mean_estimate,
    t_quantile,
    t_test,
    too_few,
)
from judge.stats.coefficients import (
    COEFFICIENTS,
    LEVELS,
    Coefficient,
    Key,
    Level,
    Pair,
    average,
    between,
    coefficients,
    of_pair,
    paired,
    rounded,
    within,
)
from judge.stats.paired_differences import mean_differences
from judge.table import Table, matrix

Values = Mapping[tuple[str, str], float]
"""By item and system."""
UNITS: Mapping[Level, str] = {"document": "item", "item": "text", "system": "system"}
"""The unit of an estimate's `n`."""
NAMES = {"spearman": "Spearman's rho", "kendall": "Kendall's tau-b", "pearson": "Pearson's r"}
OVER = {
    "document": "between the systems of an item, mean over items",
    "item": "over all texts",
    "system": "between the systems' means",
}
MIN_CORRELATION_ITEMS = 3  # texts or systems: with two, every coefficient is 1 or −1
CONCLUSIVE = 5
"""Fewer systems are not compared by their means: four match the order of their ratings, or its reverse, by chance in
one of twelve cases.
"""
FEWEST_ITEMS: Mapping[Level, int] = {
    "document": MIN_INTERVAL_ITEMS,
    "item": MIN_INTERVAL_ITEMS,
    "system": 50,
}
"""Fewer items choose no candidate (`selection`)."""
INTERVAL_ITEMS: Mapping[Level, int] = {"document": MIN_INTERVAL_ITEMS, "item": 10}
"""Fewer items have no interval: over all texts, one of 5 items held its level in 68–89% (`benchmarks/claims.py`).
Systems' means have none.
"""
INTERVAL_ITEMS_OF_JUDGES: Mapping[Level, int] = {**INTERVAL_ITEMS, "item": 20}
"""The same for the difference of two judges. With fewer items, equally good judges differ too often over all texts, if
most ratings are the best one (`benchmarks/equal_judges.py`).
"""
NO_SYSTEM_INTERVAL = "no interval: noise in the systems' means pulls resamples towards 0"
"""Percentile and BCa intervals held the true coefficient of 12 systems in 0–31% of simulations (`benchmarks/claims.py`).
"""
_MAX_WEIGHTS = 4_000_000  # in memory
_WITHIN_ITEMS = "95% Wilson interval with Student's t over items"
_MAX_SYSTEMS = 200  # all pairs are compared in every resample

# With people's ratings


@dataclass(frozen=True, slots=True)
class Correlation:
    """The correlations of a column with people's ratings, and the reason for each missing level.

    `texts` have a value and a rating. The `n` of an estimate counts its items, texts or systems.
    """

    texts: int
    estimates: Mapping[Key, Estimate]
    lacking: Mapping[Level, str]


def usual_level(rated: Iterable[Sample]) -> Level:
    """Return `document` if most items have at least three texts; with two, every coefficient there is 1 or −1."""
    texts = [*Counter(sample.item for sample in rated).values()]
    return "document" if texts and median(texts) >= MIN_CORRELATION_ITEMS else "item"


def criterion(column: Column) -> str:
    """Return the name of a column's criterion."""
    return column.criterion or column.name


class CorrelationWithRatings:
    """Correlate columns with the same ratings, on the same resamples.

    Values and ratings are items × systems with NaN for missing values; a text counts if it has both. At level
    `document` intervals are those of a mean over items. At level `item` they are percentile intervals over resampled
    items with all their texts (for tau-b, see `pooled`), without resamples that have no value. Below INTERVAL_ITEMS and at
    level `system` there is none. Each statistic is computed once.
    """

    def __init__(self, ratings: Floats, bootstrap: Bootstrap) -> None:
        self._ratings, self._bootstrap = rounded(ratings), bootstrap
        self._resampled: dict[tuple[bytes, bytes, Key], Resampled] = {}

    def correlate(self, values: Floats) -> Correlation:
        """Correlate one column with the ratings.

        `document` is the mean over items with at least two texts in which both sides vary; `method` counts the others.
        `item` needs three texts, `system` three systems.
        """
        pair = paired(values, self._ratings)
        return _correlation(
            [pair], lambda key: self._drawn(values, ~np.isnan(pair[0]), key), "", self._bootstrap
        )

    def difference(
        self,
        values: Floats,
        other_values: Floats,
        level: Level,
        coefficient: Coefficient = "spearman",
        n_intervals: int | None = None,
    ) -> Estimate | None:
        """Return the coefficient of `values` minus that of `other_values`, on texts with both and a rating.

        None if undefined, and between the means of fewer than five systems. At level `document` it is the mean over
        items in which both are defined. Pearson's at the other levels has the p of Williams' test, which assumes
        independent texts (or systems).

        `n_intervals` is for two judges: so many intervals hold together with the confidence (Bonferroni's correction;
        p is not corrected). Then that over texts is Student's t with the jackknife's standard error over items, as
        percentiles are too narrow so far from the middle, and needs INTERVAL_ITEMS_OF_JUDGES.
        """
        tail = (1 - self._bootstrap.confidence) / max(1, n_intervals or 1)
        bootstrap = replace(self._bootstrap, confidence=1 - tail)
        known = ~(np.isnan(values) | np.isnan(other_values) | np.isnan(self._ratings))
        ratings = np.where(known, self._ratings, np.nan)
        pairs = [paired(side, ratings) for side in (values, other_values)]
        if any(_reason_undefined([pair], level) for pair in pairs):
            return None
        n = _sample_size(pairs, level)
        if level == "system" and n < CONCLUSIVE:
            return None
        method = f"difference of {NAMES[coefficient]} {OVER[level]}"
        if level == "document":
            differences = within(*pairs[0], coefficient) - within(*pairs[1], coefficient)
            known_differences = differences[~np.isnan(differences)]
            (estimate,) = mean_differences(differences[None], confidence=bootstrap.confidence)
            if (
                estimate and estimate.value and not np.ptp(known_differences)
            ):  # Student's t has no interval
                estimate = mean_estimate(
                    known_differences, -2.0, 2.0, confidence=bootstrap.confidence
                )
            return estimate and replace(
                estimate,
                name="difference",
                p=None,
                test="",
                method=f"{method}; {estimate.method}",
            )
        first, second = (
            self._drawn(side, known, (level, coefficient)) for side in (values, other_values)
        )
        drawn = Resampled(
            first.value - second.value, first.resampled - second.resampled, first.items
        )
        estimate = _resampled_estimate(
            "difference", drawn, n, method, level=level, bootstrap=bootstrap
        )
        if estimate is not None and level == "item" and n_intervals is not None:
            used = known.any(axis=1)
            without = [
                _without_each(
                    of_pair(side[used], ratings[used], level, coefficient), int(used.sum())
                )
                for side in (values, other_values)
            ]
            ends = jackknife_interval(drawn.value, without[0] - without[1], bootstrap.confidence)
            estimate = Estimate("difference", drawn.value, *ends[:2], n, f"{method}; {ends.method}")
        if coefficient != "pearson" or estimate is None:
            return estimate
        r_between = of_pair(pairs[0][0], pairs[1][0], level, coefficient)(
            np.ones((1, len(ratings)))
        )
        test = williams(first.value, second.value, float(r_between[0]), n)
        if test is None:
            return estimate
        return replace(estimate, p=test.p, test=f"Williams' test, t({n - 3}) = {test.t:.2f}")

    def change(self, before: Floats, after: Floats, level: Level) -> Estimate | None:
        """Return Spearman after minus before, of one column in two runs, or None if undefined.

        `document` has the p of a sign-flip test over the items' coefficients; the other levels use the interval.
        """
        if level != "document":
            return self.difference(after, before, level)
        changes = within(after, self._ratings, "spearman") - within(
            before, self._ratings, "spearman"
        )
        return mean_differences(changes[None, :], seed=self._bootstrap.seed)[0]

    def _drawn(self, values: Floats, known: Bools, key: Key) -> Resampled:
        cell = rounded(values).tobytes(), known.tobytes(), key
        if cell not in self._resampled:
            statistic = of_pair(values, np.where(known, self._ratings, np.nan), *key)
            self._resampled[cell] = self._bootstrap.resampled(
                statistic, len(known), int(known.any(axis=1).sum())
            )
        return self._resampled[cell]


def jackknife_interval(value: float, without: Floats, confidence: float) -> Interval:
    """Return Student's t interval of a difference of two coefficients, from its values without each item.

    Its standard error is the jackknife's (Efron 1982, ch. 3). The degrees of freedom are those of a variance with the
    kurtosis of the items, 2 n / (kurtosis − 1) − 1 and at most n − 1 (Satterthwaite 1946): few items may decide a
    difference. None below INTERVAL_ITEMS_OF_JUDGES, and if the difference is undefined without one of the items.
    """
    n = len(without)
    if n < INTERVAL_ITEMS_OF_JUDGES["item"] or np.isnan(without).any():
        return Interval(None, None, too_few(n))
    away = without - without.mean()
    squares = float((away**2).sum()) if np.ptp(without) else 0.0
    kurtosis = n * float((away**4).sum()) / squares**2 if squares else 0.0
    freedom = n - 1
    if kurtosis > 1:
        freedom = max(1, min(n - 1, int(2 * n / (kurtosis - 1)) - 1))
    half = t_quantile((1 - confidence) / 2, freedom) * sqrt((n - 1) / n * squares)
    method = f"{100 * confidence:.6g}% t interval, jackknife over items"
    return Interval(max(-2.0, value - half), min(2.0, value + half), method)


def _without_each(statistic: Statistic, n: int) -> Floats:
    """Return a statistic of one number without each of n items."""
    step = max(1, _MAX_WEIGHTS // n)
    parts = [statistic(1.0 - np.eye(min(step, n - at), n, at)) for at in range(0, n, step)]
    return np.concatenate(parts)


class WilliamsTest(NamedTuple):
    """t with n − 3 degrees of freedom, and its two-sided p."""

    t: float
    p: float


def williams(r_one: float, r_other: float, between: float, n: int) -> WilliamsTest | None:
    """Test r_one = r_other (Williams 1959; Steiger 1980, eq. 7).

    Two variables correlate with a third by r_one and r_other, and with each other by `between`, over n independent
    cases. Return None for fewer than four cases or if the variables determine each other.
    """
    if n < 4:
        return None
    determinant = 1 - r_one**2 - r_other**2 - between**2 + 2 * r_one * r_other * between
    spread = (
        2 * (n - 1) / (n - 3) * max(determinant, 0.0)
        + ((r_one + r_other) / 2) ** 2 * (1 - between) ** 3
    )
    if r_one == r_other:
        return WilliamsTest(0.0, 1.0)
    if not spread > 0:
        return None
    t = (r_one - r_other) * sqrt((n - 1) * (1 + between) / spread)
    return WilliamsTest(t, t_test(t, n - 3))


class Shift(NamedTuple):
    """Spearman with people's ratings before and after, and the difference; None if undefined."""

    before: Estimate
    after: Estimate
    change: Estimate | None


def change_in_agreement(
    rated: Sequence[Sample],
    rating: str,
    before: Values,
    after: Values,
    *,
    levels: Sequence[Level] = LEVELS,
    seed: int = 0,
    confidence: float = 0.95,
) -> tuple[dict[Level, Shift], str]:
    """Compare how well two runs correlate with people's ratings `rating`, on texts with a value in both.

    Return the shift of each level at which both have a coefficient, and why one is missing. `seed` sets resamples and
    tests, `confidence` is that of resampled intervals.
    """
    old, new = matrix(rated, before), matrix(rated, after)
    ratings = matrix(rated, {s.key: s.human[rating] for s in rated})
    shared = np.where(np.isnan(old) | np.isnan(new), np.nan, ratings)
    against = CorrelationWithRatings(shared, Bootstrap(seed=seed, confidence=confidence))
    sides = against.correlate(old), against.correlate(new)
    shifts: dict[Level, Shift] = {}
    for level in levels:
        old_estimate, new_estimate = (side.estimates.get((level, "spearman")) for side in sides)
        if old_estimate is not None and new_estimate is not None:
            shifts[level] = Shift(old_estimate, new_estimate, against.change(old, new, level))
    return shifts, next((reason for side in sides for reason in side.lacking.values()), "")


def rater_correlation(votes: Floats, bootstrap: Bootstrap) -> Correlation:
    """Correlate each rater with the mean of the others, and average over raters (within items for `document`).

    `votes` are raters × items × systems, NaN for missing ratings. See `CorrelationWithRatings` for the rest.
    """
    voted = ~np.isnan(votes)
    known = np.where(voted, votes, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        others = (known.sum(axis=0) - known) / (voted.sum(axis=0) - voted)
    pairs = [paired(rater, rest) for rater, rest in zip(votes, others, strict=True)]

    def drawn(key: Key) -> Resampled:
        each = [of_pair(*pair, *key) for pair in pairs]

        def statistic(counts: Floats) -> Floats:
            return average([statistic_of_pair(counts) for statistic_of_pair in each])

        return bootstrap.resampled(
            statistic, votes.shape[1], int(_complete_texts(pairs).any(axis=1).sum())
        )

    subject = f"one of {len(votes)} raters against the mean of the others, averaged: "
    return _correlation(pairs, drawn, subject, bootstrap)


def _correlation(
    pairs: Sequence[Pair], drawn: Callable[[Key], Resampled], subject: str, bootstrap: Bootstrap
) -> Correlation:
    lacking = {level: reason for level in LEVELS if (reason := _reason_undefined(pairs, level))}
    sizes = {level: _sample_size(pairs, level) for level in LEVELS}
    texts_of_item = _complete_texts(pairs).sum(axis=1)
    items, single = int((texts_of_item > 0).sum()), int((texts_of_item == 1).sum())
    constant = items - sizes["document"] - single
    reasons = [f"{constant} in which values or ratings do not vary"] if constant else []
    reasons += [f"{single} of one text"] if single else []
    left_out: Mapping[Level, str] = {
        "document": f"; left out of {items}: {' and '.join(reasons)}" if reasons else ""
    }
    estimates = {}
    for level, name in product([level for level in LEVELS if level not in lacking], COEFFICIENTS):
        method = f"{subject}{NAMES[name]} {OVER[level]}{left_out.get(level, '')}"
        if level == "document":
            by_item = average([within(*pair, name) for pair in pairs])
            estimate = _mean_over_items(name, by_item, method, bootstrap.confidence)
        else:
            estimate = _resampled_estimate(
                name, drawn((level, name)), sizes[level], method, level=level, bootstrap=bootstrap
            )
        if estimate is not None:
            estimates[level, name] = estimate
    return Correlation(sizes["item"], estimates, lacking)


def _resampled_estimate(
    name: str, drawn: Resampled, n: int, method: str, *, level: Level, bootstrap: Bootstrap
) -> Estimate | None:
    """Return a bootstrap estimate over texts, or the value alone between systems; None if it is undefined."""
    if level != "system":
        return bootstrap.estimate(name, drawn, n, method, INTERVAL_ITEMS[level])
    if np.isnan(drawn.value):
        return None
    return Estimate(name, drawn.value, None, None, n, f"{method}; {NO_SYSTEM_INTERVAL}")


def _mean_over_items(name: str, by_item: Floats, method: str, confidence: float) -> Estimate | None:
    """Return the mean of the items' coefficients, NaN if undefined; None if all are NaN."""
    known = by_item[~np.isnan(by_item)]
    if not len(known):
        return None
    estimate = mean_estimate(known, -1.0, 1.0, confidence=confidence)
    return replace(estimate, name=name, method=f"{method}; {estimate.method}")


def _sample_size(pairs: Sequence[Pair], level: Level) -> int:
    """Return the number of items, texts or systems that a level compares."""
    if level == "document":
        return int((~np.isnan(average([within(*pair, "spearman") for pair in pairs]))).sum())
    known = _complete_texts(pairs)
    return int(known.sum() if level == "item" else known.any(axis=0).sum())


def _complete_texts(pairs: Sequence[Pair]) -> Bools:
    """Return which texts have both sides of a pair, items × systems."""
    return np.asarray(~np.isnan([x for x, _ in pairs]).all(axis=0))


def _reason_undefined(pairs: Sequence[Pair], level: Level) -> str:
    """Return why a level has no coefficient, or nothing if it has one."""
    known = _complete_texts(pairs)
    texts = int(known.sum())
    if not texts:
        return "no text has both a value and a rating"
    for side, name in enumerate(("values", "ratings")):
        if texts > 1 and all(
            np.nanmin(pair[side]) == np.nanmax(pair[side])
            for pair in pairs
            if not np.isnan(pair[side]).all()
        ):
            return f"all {name} are equal"
    if reason := _too_few(known, level):
        return reason
    if level == "system" and known.any(axis=0).sum() > _MAX_SYSTEMS:
        return f"there are more than {_MAX_SYSTEMS} systems"
    if level == "document" and not _sample_size(pairs, level):
        return "in no item do both the values and the ratings differ between texts"
    return ""


def _too_few(known: Bools, level: Level) -> str:
    """Return why a level has no coefficient between these texts, items × systems, or nothing if they are enough."""
    n, units = (known.sum(), "texts") if level == "item" else (known.any(axis=0).sum(), "systems")
    least = 2 if level == "document" else MIN_CORRELATION_ITEMS
    return f"there are fewer than {least} {units}" if n < least else ""


# Between the columns of a run

MOST = 24
"""The most columns of a matrix."""
_MATRIX_EXACT = 200  # with more texts, Spearman over all is not ranked in every resample
_MAX_TAU_SYSTEMS = 64  # for tau-b within items and between systems: k (k − 1) / 2 signs per row

Cells = tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A coefficient between all pairs of columns at a level (see `judge.stats.correlation`).

    Rows and columns of `values`, `low`, `high` and `n` are in the order of `names`; None without a value or interval.
    The diagonal is 1 if the column varies, without an interval. `n` counts the items (document), texts (item) or
    systems (system) of a value; on the diagonal those with a value. `note` explains what was left out.
    """

    level: Level
    coefficient: Coefficient
    names: tuple[str, ...]
    values: Cells
    low: Cells
    high: Cells
    n: tuple[tuple[int, ...], ...]
    method: str = ""
    note: str = ""


def matrices(table: Table, bootstrap: Bootstrap = DEFAULT) -> tuple[Matrix, ...]:
    """Return Spearman, tau-b and Pearson at each level between all columns with values of single texts.

    Criteria come first (a panel's mean, then its judges); at most 24 columns are used. A pair uses the texts with both
    values. Intervals are those of `CorrelationWithRatings`, from the same resamples for all pairs. Over all texts tau-b
    and, for more than 200, Spearman are linear in the draws (`pooled`). Return none for fewer than two columns and for
    comparisons.
    """
    if table.has_pairs:
        return ()
    order = {("criterion", False): 0, ("criterion", True): 1}
    scored = [
        column
        for column in table.columns
        if column.name not in table.corpus_columns and table.column_scores(column.name)
    ]
    scored.sort(key=lambda column: order.get((column.kind, bool(column.judge)), 2))
    note = (
        f"the first {MOST} of {len(scored)} columns, criteria before metrics"
        if len(scored) > MOST
        else ""
    )
    names = tuple(column.name for column in scored[:MOST])
    if len(names) < 2:
        return ()
    values = np.stack([rounded(table.matrix(name).T) for name in names])
    present = ~np.isnan(values)
    known: Bools = np.asarray(present.any(axis=0))
    groups: dict[
        bytes, list[tuple[int, int]]
    ] = {}  # pairs on the same texts, which share their resamples
    for pair in combinations_with_replacement(range(len(names)), 2):
        groups.setdefault(np.packbits(present[list(pair)].all(axis=0)).tobytes(), []).append(pair)
    built = []
    for level, coefficient in product(LEVELS, COEFFICIENTS):
        arrays, counted = _cells(values, groups.values(), level, coefficient, bootstrap)
        empty = _reason_empty(known, level, coefficient)
        constant = [
            name
            for name, itself in zip(names, np.diagonal(arrays[0]), strict=True)
            if np.isnan(itself)
        ]
        equal = f"all values are equal{' in each item' if level == 'document' else ''}: {', '.join(constant)}"
        value, low, high = (
            tuple(tuple(None if x != x else x for x in row) for row in array)
            for array in arrays.tolist()
        )
        built.append(
            Matrix(
                level,
                coefficient,
                names,
                value,
                low,
                high,
                n=tuple(map(tuple, counted.tolist())),
                method=f"{NAMES[coefficient]} {OVER[level]}; {_WITHIN_ITEMS if level == 'document' else bootstrap}",
                note="; ".join(filter(None, [note, empty or (equal if constant else "")])),
            )
        )
    return tuple(built)


def _cells(
    values: Floats,
    groups: Iterable[list[tuple[int, int]]],
    level: Level,
    coefficient: Coefficient,
    bootstrap: Bootstrap,
) -> tuple[Floats, Ints]:
    """Return value and ends of the interval (3 × columns × columns, NaN if unknown) of all pairs, and their n."""
    size = len(values)
    cells, counted = np.full((3, size, size), np.nan), np.zeros((size, size), dtype=np.intp)
    for pairs in groups:
        known: Bools = np.asarray(~np.isnan(values[list(pairs[0])]).any(axis=0))
        if _reason_empty(known, level, coefficient):
            continue
        used, places = np.unique(pairs, return_inverse=True)
        columns, within_group = np.where(known, values[used], np.nan), places.reshape(-1, 2)
        ends = np.full((2, len(pairs)), np.nan)
        here = [at for at, (first, second) in enumerate(pairs) if first != second]
        if level == "document":
            by_item = between(columns, coefficient)[:, within_group[:, 0], within_group[:, 1]]
            observed, n = average(by_item), (~np.isnan(by_item)).sum(axis=0)
            for at in here:
                estimate = _mean_over_items("", by_item[:, at], "", bootstrap.confidence)
                if estimate is not None and estimate.low is not None:
                    ends[:, at] = estimate.low, estimate.high
        else:
            statistic = coefficients(
                columns, within_group.tolist(), level, coefficient, _MATRIX_EXACT
            )
            observed, drawn = bootstrap.observed_and_resampled(statistic, len(known))
            n = known.sum() if level == "item" else known.any(axis=0).sum()
            items = int(known.any(axis=1).sum())
            if level == "item" and items >= INTERVAL_ITEMS[level]:
                ends[:, here] = bootstrap.interval(drawn[:, here], items)
        for first, second in (np.array(pairs).T, np.array(pairs).T[::-1]):
            cells[:, first, second] = np.vstack([observed, ends])
            counted[first, second] = n
    return cells, counted


def _reason_empty(known: Bools, level: Level, coefficient: Coefficient) -> str:
    """Return why a matrix is empty, or nothing if it is not, from which texts have values."""
    if level != "item" and coefficient == "kendall" and known.any(axis=0).sum() > _MAX_TAU_SYSTEMS:
        return f"tau-b of more than {_MAX_TAU_SYSTEMS} systems is not computed"
    return _too_few(known, level)
