"""Comparisons to a ranking: win rates, Bradley-Terry strengths, and how often the order of showing decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np

from judge.records import Failure, Score
from judge.stats.comparison import TIE, Ranking, Standing, verdict
from judge.stats.resample import Floats, draws

Ints = np.ndarray[Any, np.dtype[np.intp]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Orders = Literal[1, 2]
"""In how many orders every pair of texts was meant to be asked."""

_TOLERANCE, _LIMIT = 1e-9, 20_000
# How far the likelihood equations may be from zero, per comparison. Where strengths are far apart, evalica's tolerance
# is below the rounding of its scores and it goes on to the limit with nothing left to gain: the equations decide.
_RESIDUAL = 1e-8


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The compared pairs of texts, in arrays of equal length, and the systems that occur in them.

    `item`, `a` and `b` are places (a < b in the order of the systems), `p` is the preference for `a`, `tied` whether
    every order said 0.5. `flipped` (0 or 1) and `first`, the mean value of the text shown first, are NaN where the
    judge was not asked in both orders.
    """

    systems: tuple[str, ...]
    item: Ints
    a: Ints
    b: Ints
    p: Floats
    tied: Bools
    flipped: Floats
    first: Floats
    incomplete: int


@dataclass(frozen=True, slots=True)
class _Interval:
    """The bootstrap that was asked for."""

    n_resamples: int
    confidence: float
    seed: int

    @property
    def method(self) -> str:
        return (
            f"{100 * self.confidence:g}% percentile bootstrap over items, {self.n_resamples} resamples, "
            f"seed {self.seed}"
        )

    def of(self, drawn: Floats) -> tuple[float, float]:
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(drawn[~np.isnan(drawn)], (tail, 1 - tail))
        return float(low), float(high)


def rankings(
    scores: Iterable[Score],
    failures: Iterable[Failure],
    systems: Sequence[str],
    columns: Iterable[str],
    *,
    orders: Orders = 2,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[Ranking, ...]:
    """One `Ranking` for each of `columns`, from its rows with a rival; rows of other columns or systems are left out.

    The preference for `a` in a pair of texts is the mean of `a`'s value when shown first and 1 − `b`'s value when `b`
    is. With `orders=2` a pair without both is not compared, as the position's bias would go into it uncorrected; with
    `orders=1` the orders that are there count. For two systems the win rate is that of AlpacaEval (Li et al. 2023): the
    mean preference.

    Strengths are those of Bradley and Terry (1952), a preference p counted as p wins and 1 − p losses, with one tie
    added between every two systems that met. Without it there is no estimate where a system wins every time (Ford
    1957). They are None where the systems fall into groups that never met. Intervals are percentiles over resampled
    items, each drawn with all of its pairs; the added ties stay as they are. Where every pair of a system says the
    same, its interval has no width.
    """
    interval = _Interval(n_resamples, confidence, seed)
    known = set(systems)
    rows: dict[str, list[Score | Failure]] = defaultdict(list)
    every: Iterable[Score | Failure] = chain(scores, failures)
    for row in every:
        if {row.system, row.rival} <= known:
            rows[row.column].append(row)
    return tuple(_ranking(name, rows[name], tuple(systems), orders, interval) for name in columns)


def _ranking(
    column: str, rows: Sequence[Score | Failure], systems: tuple[str, ...], orders: Orders, interval: _Interval
) -> Ranking:
    pairs = _pairs(rows, systems, orders)
    standings, note = _standings(pairs, column, interval)
    rates, met = _matrices(pairs, systems)
    bias = _mean(pairs.first)
    bounded = any(standing.low is not None for standing in standings)
    return Ranking(
        column,
        systems,
        tuple(sorted(standings, key=lambda standing: -standing.win_rate)),
        rates,
        met,
        pairs=len(pairs.p),
        incomplete=pairs.incomplete,
        failed=sum(isinstance(row, Failure) for row in rows),
        flip_rate=_mean(pairs.flipped),
        position_bias=None if bias is None else bias - TIE,
        method=interval.method if bounded else "fewer than two items: too few for an interval",
        note=note,
    )


def _pairs(rows: Iterable[Score | Failure], systems: Sequence[str], orders: Orders) -> _Pairs:
    """The rows of one column, two orders put together."""
    place = {name: at for at, name in enumerate(systems)}
    asked: dict[tuple[str, str, str], list[Score | None]] = {}
    for row in rows:
        swapped = place[row.system] > place[row.rival]
        one, other = (row.rival, row.system) if swapped else (row.system, row.rival)
        answers = asked.setdefault((row.item, one, other), [None, None])
        if isinstance(row, Score):
            answers[swapped] = row
    # in the order of their names, so that the draws do not depend on that of the rows
    whole = {key: asked[key] for key in sorted(asked) if 2 - asked[key].count(None) >= orders}
    present = {name for _, *ends in whole for name in ends}
    names = tuple(name for name in systems if name in present)
    at = {name: k for k, name in enumerate(names)}
    items = {item: k for k, item in enumerate(dict.fromkeys(item for item, _, _ in whole))}
    item, a, b = np.array([(items[item], at[a], at[b]) for item, a, b in whole], dtype=np.intp).reshape(-1, 3).T
    verdicts = [_figures(one, other, orders) for one, other in whole.values()]
    p, tied, flipped, first = np.array(verdicts, dtype=np.float64).reshape(-1, 4).T
    return _Pairs(names, item, a, b, p, tied > 0, flipped, first, len(asked) - len(whole))


def _figures(one: Score | None, other: Score | None, orders: Orders) -> tuple[float, bool, float, float]:
    """Preference, tied, flipped and mean value of the first, of one pair: `one` was shown first, then `other`."""
    found = verdict(one, other)
    both = one is not None and other is not None and orders == 2 and found.flipped is not None
    first = (one.value + other.value) / 2 if both and one and other else np.nan
    return found.preference, found.tied, float(bool(found.flipped)) if both else np.nan, first


def _matrices(
    pairs: _Pairs, systems: Sequence[str]
) -> tuple[tuple[tuple[float | None, ...], ...], tuple[tuple[int, ...], ...]]:
    """Win rates and numbers of pairs, systems × systems."""
    cells = _cells(pairs)
    rates: dict[tuple[str, str], tuple[float, int]] = {}
    for a, b, preferred, met in zip(cells.a, cells.b, cells.preferred, cells.met, strict=True):
        one, other = pairs.systems[a], pairs.systems[b]
        rates[one, other] = float(preferred / met), int(met)
        rates[other, one] = float((met - preferred) / met), int(met)
    found = [[rates.get((one, other), (None, 0)) for other in systems] for one in systems]
    return tuple(tuple(rate for rate, _ in row) for row in found), tuple(tuple(n for _, n in row) for row in found)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The pairs of systems that met, `a` and `b`: sum of preferences for `a`, number of pairs of texts.

    `of` is the cell of every pair of texts.
    """

    a: Ints
    b: Ints
    of: Ints
    preferred: Floats
    met: Floats


def _cells(pairs: _Pairs) -> _Cells:
    size = max(1, len(pairs.systems))
    found, of = np.unique(pairs.a * size + pairs.b, return_inverse=True)
    preferred = np.bincount(of, weights=pairs.p, minlength=len(found)).astype(np.float64)
    met = np.bincount(of, minlength=len(found)).astype(np.float64)
    return _Cells(found // size, found % size, of.astype(np.intp), preferred, met)


def _standings(pairs: _Pairs, column: str, interval: _Interval) -> tuple[list[Standing], str]:
    """The standings in the order of the systems, and what there is to say about the strengths."""
    if not pairs.systems:
        return [], "No pair was compared."
    cells = _cells(pairs)
    drawn = _resampled(pairs, cells, interval)
    rates = _win_rates(cells, *drawn, len(pairs.systems))
    strengths, resampled, note = _strengths(cells, *drawn, len(pairs.systems))
    found = []
    for at, system in enumerate(pairs.systems):
        its = (pairs.a == at) | (pairs.b == at)
        enough = len(np.unique(pairs.item[its])) > 1
        strength = None if strengths is None else float(strengths[at])
        low, high = interval.of(rates[:, at]) if enough else (None, None)
        ends = interval.of(resampled[:, at]) if enough and resampled is not None else (None, None)
        found.append(Standing(system, column, _rate(pairs, at), low, high, strength, *ends, **_counts(pairs, at, its)))
    return found, note


def _rate(pairs: _Pairs, at: int) -> float:
    return float(np.concatenate([pairs.p[pairs.a == at], 1 - pairs.p[pairs.b == at]]).mean())


def _counts(pairs: _Pairs, at: int, its: Bools) -> Mapping[str, Any]:
    sign = np.sign(pairs.p - TIE)[its] * np.where(pairs.a == at, 1, -1)[its]
    ties = int(pairs.tied[its].sum())
    return {
        "n": len(sign),
        "wins": int((sign > 0).sum()),
        "losses": int((sign < 0).sum()),
        "ties": ties,
        "undecided": int((sign == 0).sum()) - ties,
        "flip_rate": _mean(pairs.flipped[its]),
    }


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _resampled(pairs: _Pairs, cells: _Cells, interval: _Interval) -> tuple[Floats, Floats]:
    """Sums of preferences and numbers of pairs in every cell, resamples × cells; an item brings all of its pairs."""
    from scipy.sparse import csr_array

    shape = (int(pairs.item.max()) + 1, len(cells.a))
    preferred = csr_array((pairs.p, (pairs.item, cells.of)), shape=shape)
    met = csr_array((np.ones(len(pairs.p)), (pairs.item, cells.of)), shape=shape)
    sums = [(counts @ preferred, counts @ met) for counts in draws(shape[0], interval.n_resamples, interval.seed)]
    return np.concatenate([p for p, _ in sums]), np.concatenate([n for _, n in sums])


def _win_rates(cells: _Cells, preferred: Floats, met: Floats, size: int) -> Floats:
    """Resamples × systems; NaN where a resample drew no pair of the system."""
    one, other = np.eye(size)[cells.a], np.eye(size)[cells.b]
    with np.errstate(invalid="ignore"):
        return (preferred @ one + (met - preferred) @ other) / (met @ (one + other))


def _strengths(cells: _Cells, preferred: Floats, met: Floats, size: int) -> tuple[Floats | None, Floats | None, str]:
    """Strengths by system, the same for every resample, and why either is None."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(cells.a)), (cells.a, cells.b)), shape=(size, size))
    groups, _ = connected_components(graph, directed=False)
    if groups > 1:
        return None, None, f"The systems fall into {groups} groups that never met: no strengths."
    strengths = _fitted(cells, cells.preferred, cells.met, size)
    if strengths is None:
        return None, None, "The Bradley-Terry fit did not converge: no strengths."
    fits = [_fitted(cells, *row, size) for row in zip(preferred, met, strict=True)]
    resampled = [fit for fit in fits if fit is not None]
    if len(resampled) < len(fits):
        failed = len(fits) - len(resampled)
        return strengths, None, f"{failed} of {len(fits)} resampled fits did not converge: strengths have no interval."
    return strengths, np.array(resampled), ""


def _fitted(cells: _Cells, preferred: Floats, met: Floats, size: int) -> Floats | None:
    """Bradley-Terry log-odds with one tie added to every cell, mean zero; None unless they solve the likelihood."""
    import evalica

    ends = [*cells.a.tolist(), *cells.b.tolist()]
    others = [*cells.b.tolist(), *cells.a.tolist()]
    wins = np.concatenate([preferred, met - preferred]) + 0.5
    winners = [evalica.Winner.X] * len(ends)
    result = evalica.bradley_terry(ends, others, winners, weights=wins.tolist(), tolerance=_TOLERANCE, limit=_LIMIT)
    odds = result.scores.sort_index().to_numpy(dtype=np.float64)
    number = np.tile(met + 1, 2)
    with np.errstate(all="ignore"):
        left = np.bincount(ends, wins - number * odds[ends] / (odds[ends] + odds[others]), size)
        solved = np.abs(left) <= _RESIDUAL * np.bincount(ends, number, size)
        strengths = np.log(odds)
    return strengths - strengths.mean() if solved.all() and np.isfinite(strengths).all() else None
