"""Correlation of columns with people's ratings and with each other.

`CorrelationWithRatings` correlates columns with ratings and compares two columns; `human_ceiling` does the same for an
annotator, `change_in_agreement` for two runs. `matrices` correlates every two columns of a run. All have bootstrap
intervals, at three levels: within items, over texts, between systems' means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product
from statistics import median
from typing import Literal, NamedTuple, get_args

import numpy as np

from judge.core.records import Estimate, Sample
from judge.stats.bootstrap import DEFAULT, Bootstrap, Floats, Resampled, Statistic
from judge.stats.coefficients import (
    COEFFICIENTS,
    Bools,
    Coefficient,
    Ints,
    between,
    mean,
    of_means,
    paired,
    pooled,
    rounded,
    system_means,
    williams,
    within,
)
from judge.stats.paired_differences import mean_differences
from judge.table import Table

Level = Literal["document", "item", "system"]
"""Between the systems of an item, averaged over items (G-Eval's); over all texts; between the systems' means."""
LEVELS: tuple[Level, ...] = get_args(Level)
Key = tuple[Level, Coefficient]
Values = Mapping[tuple[str, str], float]
"""By item and system."""
UNITS: Mapping[Level, str] = {"document": "item", "item": "text", "system": "system"}
"""What an estimate's `n` counts."""

_Pair = tuple[Floats, Floats]
"""Two sides, items × systems, NaN in both where either is missing."""
NAMES = {"spearman": "Spearman's rho", "kendall": "Kendall's tau-b", "pearson": "Pearson's r"}
OVER = {
    "document": "between the systems of an item, mean over items",
    "item": "over all texts",
    "system": "between the systems' means",
}
_MAX_SYSTEMS = 200  # of which every two are compared in every resample
MIN_CORRELATION_ITEMS = 3  # texts or systems: of two, every coefficient is 1 or −1
CONCLUSIVE = 5
"""Systems between whose means columns are compared: four are in the very order of their ratings, or in its opposite, by
chance in one of twelve cases."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """A column against people's ratings: what could be estimated, and why a level could not.

    `texts` have a value and a rating. The `n` of an estimate counts the items, texts or systems that it is over.
    """

    texts: int
    estimates: Mapping[Key, Estimate]
    lacking: Mapping[Level, str]


def usual_level(rated: Iterable[Sample]) -> Level:
    """Within items where most of them have three texts or more; of two, every coefficient there is 1 or −1."""
    texts = [*Counter(sample.item for sample in rated).values()]
    return "document" if texts and median(texts) >= MIN_CORRELATION_ITEMS else "item"


class Shift(NamedTuple):
    """Spearman with people's ratings before and after, and the difference: None where it is undefined."""

    before: Estimate
    after: Estimate
    change: Estimate | None


def matrix(samples: Sequence[Sample], values: Mapping[tuple[str, str], float | None]) -> Floats:
    """The values of these samples, items × systems in the order of appearance, NaN for what there is not."""
    down = {item: place for place, item in enumerate(dict.fromkeys(s.item for s in samples))}
    across = {system: place for place, system in enumerate(dict.fromkeys(s.system for s in samples))}
    cells = np.full((len(down), len(across)), np.nan)
    for sample in samples:
        value = values.get((sample.item, sample.system))
        cells[down[sample.item], across[sample.system]] = np.nan if value is None else value
    return cells


class CorrelationWithRatings:
    """Columns against the same ratings by people, on the same resamples.

    Values and ratings are items × systems with NaN for missing ones; a text counts that has both. The intervals are
    percentile ones over items drawn anew with all their texts, the systems fixed (tau-b over all texts: see `pooled`);
    resamples without a value are left out, and below two items there is none.
    """

    def __init__(self, ratings: Floats, bootstrap: Bootstrap = DEFAULT) -> None:
        self._ratings, self._bootstrap = ratings, bootstrap
        self._resampled: dict[tuple[bytes, Key], Resampled] = {}

    def correlate(self, values: Floats) -> Correlation:
        """One column with the ratings.

        `document`: the mean over the items of two texts or more in which both sides vary; `method` counts the others.
        `item`: over three texts or more. `system`: between the means of three systems or more.
        """
        pairs = [paired(values, self._ratings)]
        return _correlation(pairs, lambda key: self._drawn(pairs[0], key), "", self._bootstrap)

    def difference(
        self, values: Floats, other_values: Floats, level: Level, coefficient: Coefficient = "spearman"
    ) -> Estimate | None:
        """The coefficient of `values` less that of `other_values`, on texts with both and a rating; None if undefined.

        Also None between the means of fewer than five systems, of which an order says too little. At level `document`
        the mean over the items in which both are defined. Pearson's at the other levels has the p of Williams' test,
        which takes the texts (or systems) for independent.
        """
        ratings = np.where(np.isnan(values) | np.isnan(other_values), np.nan, self._ratings)
        pairs = [paired(values, ratings), paired(other_values, ratings)]
        if any(_reason_undefined([pair], level) for pair in pairs):
            return None
        if level == "system" and _sample_size(pairs, level) < CONCLUSIVE:
            return None
        method = f"difference of {NAMES[coefficient]} {OVER[level]}"
        if level == "document":
            differences = within(*pairs[0], coefficient) - within(*pairs[1], coefficient)
            n, resampled = int((~np.isnan(differences)).sum()), _resampled(self._bootstrap, mean(differences), pairs)
            return self._bootstrap.estimate("difference", resampled, n, method)
        first, second = (self._drawn(pair, (level, coefficient)) for pair in pairs)
        resampled = Resampled(first.value - second.value, first.resampled - second.resampled, first.items)
        n = _sample_size(pairs, level)
        estimate = self._bootstrap.estimate("difference", resampled, n, method)
        if coefficient != "pearson" or estimate is None:
            return estimate
        between = float(_statistic([(pairs[0][0], pairs[1][0])], (level, coefficient))(np.ones((1, len(ratings))))[0])
        t_and_p = williams(first.value, second.value, between, n)
        if t_and_p is None:
            return estimate
        test = f"{estimate.method}; p: Williams' test, t({n - 3}) = {t_and_p[0]:.2f}"
        return replace(estimate, p=t_and_p[1], method=test)

    def change(self, before: Floats, after: Floats, level: Level) -> Estimate | None:
        """Spearman after less before, of one column in two runs; None where it is undefined.

        Within items with the p of a sign-flip test over the items' coefficients, at the other levels by the interval.
        """
        if level != "document":
            return self.difference(after, before, level)
        changes = within(after, self._ratings, "spearman") - within(before, self._ratings, "spearman")
        return mean_differences(changes[None, :], seed=self._bootstrap.seed)[0]

    def _drawn(self, pair: _Pair, key: Key) -> Resampled:
        cache_key = pair[0].tobytes(), key  # the bytes show missing values as well
        if cache_key not in self._resampled:
            self._resampled[cache_key] = _resampled(self._bootstrap, _statistic([pair], key), [pair])
        return self._resampled[cache_key]


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
    """How well two runs correlate with people's ratings `rating`, on the texts that have a value in both.

    By level where both have a coefficient, and why one of them has none, if so. `seed` is that of resamples and tests,
    `confidence` that of resampled intervals.
    """
    old, new = matrix(rated, before), matrix(rated, after)
    ratings = matrix(rated, {(s.item, s.system): s.human[rating] for s in rated})
    shared = np.where(np.isnan(old) | np.isnan(new), np.nan, ratings)
    against = CorrelationWithRatings(shared, Bootstrap(seed=seed, confidence=confidence))
    sides = against.correlate(old), against.correlate(new)
    shifts: dict[Level, Shift] = {}
    for level in levels:
        old_estimate, new_estimate = (side.estimates.get((level, "spearman")) for side in sides)
        if old_estimate is not None and new_estimate is not None:
            shifts[level] = Shift(old_estimate, new_estimate, against.change(old, new, level))
    return shifts, next((reason for side in sides for reason in side.lacking.values()), "")


def human_ceiling(votes: Floats, bootstrap: Bootstrap = DEFAULT) -> Correlation:
    """One annotator against the mean of the others, averaged over the annotators (for `document`, in each item).

    `votes` are annotators × items × systems, NaN where one did not rate. All else is as in `CorrelationWithRatings`.
    """
    voted = ~np.isnan(votes)
    known = np.where(voted, votes, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        others = (known.sum(axis=0) - known) / (voted.sum(axis=0) - voted)
    pairs = [paired(rater, rest) for rater, rest in zip(votes, others, strict=True)]
    subject = f"one of {len(votes)} annotators against the mean of the others, averaged: "
    return _correlation(pairs, lambda key: _resampled(bootstrap, _statistic(pairs, key), pairs), subject, bootstrap)


def _correlation(
    pairs: Sequence[_Pair], drawn: Callable[[Key], Resampled], subject: str, bootstrap: Bootstrap
) -> Correlation:
    lacking = {level: reason for level in LEVELS if (reason := _reason_undefined(pairs, level))}
    items = _count_items(pairs)
    single = int((_complete_texts(pairs).sum(axis=1) == 1).sum())
    constant = items - _sample_size(pairs, "document") - single
    reasons = [f"{constant} in which values or ratings do not vary"] if constant else []
    reasons += [f"{single} of one text"] if single else []
    left_out: Mapping[Level, str] = {"document": f"; left out of {items}: {' and '.join(reasons)}" if reasons else ""}
    estimates = {}
    for level in [level for level in LEVELS if level not in lacking]:
        for name in COEFFICIENTS:
            method = f"{subject}{NAMES[name]} {OVER[level]}{left_out.get(level, '')}"
            estimate = bootstrap.estimate(name, drawn((level, name)), _sample_size(pairs, level), method)
            if estimate is not None:
                estimates[level, name] = estimate
    return Correlation(_sample_size(pairs, "item"), estimates, lacking)


def _resampled(bootstrap: Bootstrap, statistic: Statistic, pairs: Sequence[_Pair]) -> Resampled:
    return bootstrap.resampled(statistic, len(pairs[0][0]), _count_items(pairs))


def _statistic(pairs: Sequence[_Pair], key: Key) -> Statistic:
    level, name = key
    if level == "document":
        return mean(_average([within(*pair, name) for pair in pairs]))
    make = pooled if level == "item" else of_means
    each = [make(*pair, name) for pair in pairs]
    return lambda counts: _average([statistic(counts) for statistic in each])


def _average(values: Sequence[Floats]) -> Floats:
    """The mean of several arrays, place by place, of those that are not NaN there."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        means: Floats = np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0)
    return means


def _sample_size(pairs: Sequence[_Pair], level: Level) -> int:
    """How many items, texts or systems a level compares."""
    if level == "document":
        return int((~np.isnan(_average([within(*pair, "spearman") for pair in pairs]))).sum())
    known = _complete_texts(pairs)
    return int(known.sum() if level == "item" else known.any(axis=0).sum())


def _complete_texts(pairs: Sequence[_Pair]) -> Bools:
    """Which texts have both sides of a pair, items × systems."""
    return np.asarray(~np.isnan([x for x, _ in pairs]).all(axis=0))


def _reason_undefined(pairs: Sequence[_Pair], level: Level) -> str:
    """Return why a level has no coefficient, or nothing if it has one."""
    known = _complete_texts(pairs)
    if not known.any():
        return "no text has both a value and a rating"
    for side, name in enumerate(("values", "ratings")):
        if all(len(np.unique(pair[side][~np.isnan(pair[side])])) < 2 for pair in pairs) and known.sum() > 1:
            return f"all {name} are equal"
    systems = int(known.any(axis=0).sum())
    if level == "document":
        if systems == 1:
            return "one system alone has values and ratings, and so there is nothing to compare within an item"
        return (
            "" if _sample_size(pairs, level) else "in no item do both the values and the ratings differ between texts"
        )
    if level == "item":
        return "" if known.sum() >= MIN_CORRELATION_ITEMS else f"there are fewer than {MIN_CORRELATION_ITEMS} texts"
    if systems > _MAX_SYSTEMS:
        return f"there are more than {_MAX_SYSTEMS} systems"
    have = f"{systems} system{'s have' if systems > 1 else ' has'} values and ratings"
    return (
        ""
        if systems >= MIN_CORRELATION_ITEMS
        else f"{have}, and between means it takes {MIN_CORRELATION_ITEMS} (of two, it is always 1 or −1)"
    )


def _count_items(pairs: Sequence[_Pair]) -> int:
    """How many items have a text with both sides of a pair."""
    return int(_complete_texts(pairs).any(axis=1).sum())


MOST = 24
"""Columns of a matrix."""
_RESAMPLES = 500
_EXACT = 200  # texts up to which Spearman over all of them is ranked anew in every resample
_MAX_NUMBERS = 1_000_000  # numbers held at once
_MAX_TAU_SYSTEMS = (
    64  # systems up to which tau-b within items and between systems is computed: k (k − 1) / 2 signs for each row
)

_ColumnPair = tuple[int, int]
Cells = tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A coefficient between every two columns at a level (`judge.stats.correlation` says what the levels are).

    `values`, `low`, `high` and `n` are rows and columns in the order of `names`; None where there is no value or no
    interval. A column with itself is 1 where it varies, without an interval. `n` counts the items (document), texts
    (item) or systems (system) of a value; on the diagonal those that have one. `note` says what was left out, and why.
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


def matrices(table: Table, seed: int = 0, *, n_resamples: int = _RESAMPLES) -> tuple[Matrix, ...]:
    """Spearman, tau-b and Pearson at each level: between the columns that have values of single texts.

    Criteria come first (of a panel its mean, then its judges); of more than 24 columns the first are taken. A pair is
    on the texts that have both values. Intervals are 95 % percentile ones over items drawn anew, the same for all pairs
    and with all their texts, the systems fixed. Over all texts tau-b and, of more than 200, Spearman are linear in the
    draws (`pooled`). None for fewer than two columns, and for comparisons.
    """
    if any(row.rival for rows in (table.scores, table.failures) for row in rows):
        return ()
    order = {("criterion", False): 0, ("criterion", True): 1}
    scored = [
        column
        for column in table.columns
        if column.name not in table.corpus_columns and table.column_scores(column.name)
    ]
    scored.sort(key=lambda column: order.get((column.kind, bool(column.judge)), 2))
    note = f"the first {MOST} of {len(scored)} columns, criteria before metrics" if len(scored) > MOST else ""
    columns = scored[:MOST]
    if len(columns) < 2:
        return ()
    values = np.stack([rounded(table.matrix(column.name).T) for column in columns])
    bootstrap = Bootstrap(n_resamples, seed)
    cells_by_key = {key: _CellArrays(len(columns)) for key in product(LEVELS, COEFFICIENTS)}
    present = ~np.isnan(values)
    groups: dict[bytes, list[_ColumnPair]] = {}  # pairs on the same texts, which share their resamples
    for first, second in combinations_with_replacement(range(len(columns)), 2):
        groups.setdefault(np.packbits(present[first] & present[second]).tobytes(), []).append((first, second))
    for pairs in groups.values():
        _correlate(values, pairs, bootstrap, cells_by_key)
    names = tuple(column.name for column in columns)
    known: Bools = np.asarray(~np.isnan(values).all(axis=0))
    return tuple(
        _matrix(key, names, cells, str(bootstrap), (note, _reason_empty(known, key)))
        for key, cells in cells_by_key.items()
    )


class _CellArrays:
    """The cells of a matrix: value, ends of the interval and number of every two columns; NaN for unknown ones."""

    def __init__(self, columns: int) -> None:
        self.value, self.low, self.high = np.full((3, columns, columns), np.nan)
        self.n = np.zeros((columns, columns), dtype=np.intp)


def _correlate(
    values: Floats, pairs: Sequence[_ColumnPair], bootstrap: Bootstrap, cells_by_key: Mapping[Key, _CellArrays]
) -> None:
    """Fill in the cells of pairs of columns that share the same texts."""
    used = sorted({place for pair in pairs for place in pair})
    known: Bools = np.asarray(~np.isnan(values[list(pairs[0])]).any(axis=0))
    columns = np.where(known, values[used], np.nan)
    first, second = (np.array([used.index(pair[side]) for pair in pairs]) for side in (0, 1))
    several = int(known.any(axis=1).sum()) > 1
    for level in LEVELS:
        names = _defined_coefficients(known, level)
        if not names:
            continue
        statistic, n = _matrix_statistic(columns, first, second, level, names)
        value, drawn = bootstrap.observed_and_resampled(statistic, len(known))
        ends = bootstrap.interval(drawn)
        bounded = (n > 1) & (first != second) & several
        down, across = np.array(pairs).T
        for place, name in enumerate(names):
            cells = cells_by_key[level, name]
            low, high = np.where(bounded, ends[:, place], np.nan)
            for at in ((down, across), (across, down)):
                cells.value[at], cells.low[at], cells.high[at], cells.n[at] = value[place], low, high, n


def _defined_coefficients(known: Bools, level: Level) -> list[Coefficient]:
    """The coefficients that are defined at a level, given which texts have values."""
    systems = int(known.any(axis=0).sum())
    if (known.sum() if level == "item" else systems) < (2 if level == "document" else MIN_CORRELATION_ITEMS):
        return []
    return [name for name in COEFFICIENTS if level == "item" or name != "kendall" or systems <= _MAX_TAU_SYSTEMS]


def _matrix_statistic(
    columns: Floats, first: Ints, second: Ints, level: Level, names: Sequence[Coefficient]
) -> tuple[Statistic, Ints]:
    """The statistic of pairs of columns (resamples × coefficients × pairs), and the n of each pair.

    `columns` are columns × items × systems; `first` and `second` are the places of each pair's columns.
    """
    known = ~np.isnan(columns[0])
    if level == "document":
        by_item = np.stack([between(columns, name)[:, first, second] for name in names], axis=1)
        means = mean(by_item.reshape(len(by_item), -1))
        counted = (~np.isnan(by_item[:, 0])).sum(axis=0)
        return lambda counts: means(counts).reshape(len(counts), len(names), -1), counted
    if level == "system":
        by_system = system_means(columns)
        step = max(1, _MAX_NUMBERS // (columns.shape[0] * columns.shape[2]))

        def between_systems(counts: Floats) -> Floats:
            parts = []
            for at in range(0, len(counts), step):
                values = by_system(counts[at : at + step])
                parts.append(np.stack([between(values, name)[:, first, second] for name in names], axis=1))
            return np.concatenate(parts)

        return between_systems, np.full(len(first), known.any(axis=0).sum())
    each = [
        [pooled(columns[i], columns[j], name, exact=_EXACT) for i, j in zip(first, second, strict=True)]
        for name in names
    ]

    def over_texts(counts: Floats) -> Floats:
        return np.array([[statistic(counts) for statistic in row] for row in each]).transpose(2, 0, 1)

    return over_texts, np.full(len(first), known.sum())


def _matrix(key: Key, names: tuple[str, ...], cells: _CellArrays, resampling: str, notes: tuple[str, str]) -> Matrix:
    level, coefficient = key
    remarks = list(filter(None, notes))
    constant = [name for name, value in zip(names, np.diagonal(cells.value), strict=True) if np.isnan(value)]
    if constant and not notes[1]:
        remarks.append(f"all values are equal{' in each item' if level == 'document' else ''}: {', '.join(constant)}")
    return Matrix(
        level,
        coefficient,
        names,
        _cells(cells.value),
        _cells(cells.low),
        _cells(cells.high),
        tuple(map(tuple, cells.n.tolist())),
        f"{NAMES[coefficient]} {OVER[level]}; {resampling}",
        "; ".join(remarks),
    )


def _reason_empty(known: Bools, key: Key) -> str:
    """Return why a matrix is empty, or nothing if it is not."""
    level, coefficient = key
    if coefficient in _defined_coefficients(known, level):
        return ""
    if level == "item":
        return f"there are fewer than {MIN_CORRELATION_ITEMS} texts"
    if "spearman" in _defined_coefficients(known, level):
        return f"tau-b of more than {_MAX_TAU_SYSTEMS} systems is not computed"
    return (
        f"there are fewer than {MIN_CORRELATION_ITEMS} systems"
        if level == "system"
        else "one system: nothing to compare in an item"
    )


def _cells(values: Floats) -> Cells:
    return tuple(tuple(None if value != value else value for value in row) for row in values.tolist())
