"""How the columns of a run go with one another: every two of them, at every level, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np

from judge.core.records import Column
from judge.stats.bootstrap import Bootstrap, Statistic
from judge.stats.coefficients import COEFFICIENTS, Bools, Coefficient, Ints, between, mean, rounded, system_means
from judge.stats.correlation import LEAST, LEVELS, NAMES, OVER, Key, Level
from judge.stats.pooled import pooled
from judge.stats.resampling import Floats
from judge.table import Table

MOST = 24
"""Columns of a matrix."""
_RESAMPLES = 500
_EXACT = 200  # texts up to which Spearman over all of them is ranked anew in every resample
_HELD = 1_000_000  # numbers held at once
_FEW = 64  # systems up to which tau-b within items and between systems is computed: k (k − 1) / 2 signs for each row

_Pair = tuple[int, int]
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
    columns, note = _chosen(table)
    if len(columns) < 2:
        return ()
    values = np.stack([rounded(table.matrix(column.name).T) for column in columns])
    bootstrap = Bootstrap(n_resamples, seed)
    found = {key: _Found(len(columns)) for key in product(LEVELS, COEFFICIENTS)}
    for pairs in _groups(values):
        _correlate(values, pairs, bootstrap, found)
    names = tuple(column.name for column in columns)
    known: Bools = np.asarray(~np.isnan(values).all(axis=0))
    return tuple(_matrix(key, names, one, str(bootstrap), (note, _lacking(known, key))) for key, one in found.items())


def _chosen(table: Table) -> tuple[list[Column], str]:
    order = {("criterion", False): 0, ("criterion", True): 1}
    scored = [column for column in table.columns if column.name not in table.wholes and table.of(column.name)]
    scored.sort(key=lambda column: order.get((column.kind, bool(column.judge)), 2))
    note = f"the first {MOST} of {len(scored)} columns, criteria before metrics" if len(scored) > MOST else ""
    return scored[:MOST], note


class _Found:
    """What is known of every two columns: value, ends of the interval and number, NaN for what is not."""

    def __init__(self, columns: int) -> None:
        self.value, self.low, self.high = np.full((3, columns, columns), np.nan)
        self.n = np.zeros((columns, columns), dtype=np.intp)


def _groups(values: Floats) -> list[list[_Pair]]:
    """All pairs of columns (columns × items × systems), one with itself included, those on the same texts together."""
    known = ~np.isnan(values)
    found: dict[bytes, list[_Pair]] = {}
    for one, other in combinations_with_replacement(range(len(values)), 2):
        found.setdefault(np.packbits(known[one] & known[other]).tobytes(), []).append((one, other))
    return list(found.values())


def _correlate(values: Floats, pairs: Sequence[_Pair], bootstrap: Bootstrap, found: Mapping[Key, _Found]) -> None:
    """Write down what there is to say of pairs of columns that have the same texts in common."""
    used = sorted({place for pair in pairs for place in pair})
    known: Bools = np.asarray(~np.isnan(values[list(pairs[0])]).any(axis=0))
    columns = np.where(known, values[used], np.nan)
    one, other = (np.array([used.index(pair[side]) for pair in pairs]) for side in (0, 1))
    several = int(known.any(axis=1).sum()) > 1
    for level in LEVELS:
        names = _defined(known, level)
        if not names:
            continue
        statistic, n = _statistic(columns, one, other, level, names)
        value, drawn = bootstrap.both(statistic, len(known))
        ends = bootstrap.ends(drawn)
        bounded = (n > 1) & (one != other) & several
        down, across = np.array(pairs).T
        for place, name in enumerate(names):
            to = found[level, name]
            low, high = np.where(bounded, ends[:, place], np.nan)
            for at in ((down, across), (across, down)):
                to.value[at], to.low[at], to.high[at], to.n[at] = value[place], low, high, n


def _defined(known: Bools, level: Level) -> list[Coefficient]:
    """The coefficients that can be had at a level from so many texts and systems."""
    systems = int(known.any(axis=0).sum())
    if (known.sum() if level == "item" else systems) < (2 if level == "document" else LEAST):
        return []
    return [name for name in COEFFICIENTS if level == "item" or name != "kendall" or systems <= _FEW]


def _statistic(
    columns: Floats, one: Ints, other: Ints, level: Level, names: Sequence[Coefficient]
) -> tuple[Statistic, Ints]:
    """Of pairs of places in columns × items × systems: from draws to resamples × coefficients × pairs, and n."""
    known = ~np.isnan(columns[0])
    if level == "document":
        by_item = np.stack([between(columns, name)[:, one, other] for name in names], axis=1)
        means = mean(by_item.reshape(len(by_item), -1))
        counted = (~np.isnan(by_item[:, 0])).sum(axis=0)
        return lambda counts: means(counts).reshape(len(counts), len(names), -1), counted
    if level == "system":
        return _between_systems(columns, one, other, names), np.full(len(one), known.any(axis=0).sum())
    each = [
        [pooled(columns[i], columns[j], name, exact=_EXACT) for i, j in zip(one, other, strict=True)] for name in names
    ]

    def over_texts(counts: Floats) -> Floats:
        return np.array([[statistic(counts) for statistic in row] for row in each]).transpose(2, 0, 1)

    return over_texts, np.full(len(one), known.sum())


def _between_systems(columns: Floats, one: Ints, other: Ints, names: Sequence[Coefficient]) -> Statistic:
    means = system_means(columns)
    step = max(1, _HELD // (columns.shape[0] * columns.shape[2]))

    def part(counts: Floats) -> Floats:
        found = means(counts)
        return np.stack([between(found, name)[:, one, other] for name in names], axis=1)

    return lambda counts: np.concatenate([part(counts[at : at + step]) for at in range(0, len(counts), step)])


def _matrix(key: Key, names: tuple[str, ...], found: _Found, how: str, notes: tuple[str, str]) -> Matrix:
    level, coefficient = key
    told = list(filter(None, notes))
    constant = [name for name, value in zip(names, np.diagonal(found.value), strict=True) if np.isnan(value)]
    if constant and not notes[1]:
        told.append(f"all values are equal{' in each item' if level == 'document' else ''}: {', '.join(constant)}")
    return Matrix(
        level,
        coefficient,
        names,
        _cells(found.value),
        _cells(found.low),
        _cells(found.high),
        tuple(map(tuple, found.n.tolist())),
        f"{NAMES[coefficient]} {OVER[level]}; {how}",
        "; ".join(told),
    )


def _lacking(known: Bools, key: Key) -> str:
    """Why a matrix is empty, where it is."""
    level, coefficient = key
    if coefficient in _defined(known, level):
        return ""
    if level == "item":
        return f"there are fewer than {LEAST} texts"
    if "spearman" in _defined(known, level):
        return f"tau-b of more than {_FEW} systems is not computed"
    return f"there are fewer than {LEAST} systems" if level == "system" else "one system: nothing to compare in an item"


def _cells(values: Floats) -> Cells:
    return tuple(tuple(None if value != value else value for value in row) for row in values.tolist())
