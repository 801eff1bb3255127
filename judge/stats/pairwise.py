"""From comparisons of two texts to a ranking: win rates, Bradley-Terry strengths, and the effect of the order shown.

`verdict` combines the two orders of one pair; `rankings` ranks the systems of each column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import sqrt
from typing import Literal, NamedTuple

import numpy as np

from judge.core.records import IDENTICAL, Failure, Score
from judge.stats.bootstrap import Bools, Floats, Ints, t_quantile, wilson_ends

TIE = 0.5
_NEAR = 1e-9
"""How far from a tie a value may be by rounding alone."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the answers about one pair of texts come to.

    `preference` (0–1) is for the one of the pair that comes first. `tied`: every answer was a tie. `flipped`: the
    answer changed with the order; None where the judge was not asked in both, or not at all.
    """

    preference: float
    tied: bool
    flipped: bool | None


def verdict(forward: Score | None, backward: Score | None) -> Verdict:
    """Combine the answers about one pair of texts, of which one may be missing.

    `forward` is the answer with the first text shown first, `backward` with the second text shown first.

    The preference is the mean of `forward`'s value and 1 − `backward`'s.
    """
    answers = [row for row in (forward, backward) if row is not None]
    for_first, for_second = (None if row is None else _snapped(row.value) for row in (forward, backward))
    tied = all(_snapped(row.value) == TIE for row in answers)
    if for_first is None or for_second is None:
        return Verdict(for_first if for_first is not None else 1 - (for_second or 0.0), tied, None)
    preference = _snapped(TIE + (for_first - for_second) / 2)
    if any(row.provenance.method == IDENTICAL for row in answers):
        return Verdict(preference, tied, None)
    sides = {(for_first > TIE) - (for_first < TIE), (for_second < TIE) - (for_second > TIE)}
    return Verdict(preference, tied, len(sides) > 1)


def _snapped(value: float) -> float:
    """The value; a tie that rounding has moved is a tie."""
    return TIE if abs(value - TIE) < _NEAR else value


@dataclass(frozen=True, slots=True)
class Standing:
    """How one system did against the others in one column.

    `win_rate` (0–1) is the mean preference over its pairs, in which every pair of texts weighs the same: systems that
    met different rivals are not alike in it, `strength` takes the rivals into account. `low`/`high` are None where its
    pairs come from one item. `strength` is in log-odds, mean zero over the systems: that of `a` less that of `b` is the
    log-odds of `a` being preferred. It is None where `Ranking.note` says why.

    `n` pairs are `wins` + `losses` + `ties` + `undecided`: a tie is a pair of which every order said 0.5, undecided one
    whose two orders cancel out. `flip_rate` is the share of its pairs whose verdict changed with the order, None where
    none was asked in both.
    """

    system: str
    column: str
    win_rate: float
    low: float | None
    high: float | None
    strength: float | None
    strength_low: float | None
    strength_high: float | None
    n: int
    wins: int
    losses: int
    ties: int
    undecided: int
    flip_rate: float | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The systems in one column, `standings` by win rate, best first; a system never compared has none.

    `win_rate[a][b]` is the mean preference for `systems[a]` over `systems[b]` in `n[a][b]` pairs of texts, None where
    there are none. `pairs` were compared; `incomplete` were asked, but lack the answer to an order; `failed` counts the
    judgments that failed. `position_bias` is the mean value of the text shown first less 0.5, over pairs asked in both
    orders, so that the texts' quality cancels out: 0.5 where the first always wins. It and `flip_rate` leave out
    identical texts, about which no judge was asked. `method` says how the intervals were made.
    """

    column: str
    systems: tuple[str, ...]
    standings: tuple[Standing, ...]
    win_rate: tuple[tuple[float | None, ...], ...]
    n: tuple[tuple[int, ...], ...]
    pairs: int
    incomplete: int
    failed: int
    flip_rate: float | None
    position_bias: float | None
    method: str
    note: str = ""


Orders = Literal[1, 2]
"""In how many orders every pair of texts was meant to be asked."""

_METHOD = "over items, with Student's t: Wilson's score for win rates, sandwich errors for strengths"
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


def rankings(
    scores: Iterable[Score],
    failures: Iterable[Failure],
    systems: Sequence[str],
    columns: Iterable[str],
    *,
    orders: Orders = 2,
    confidence: float = 0.95,
) -> tuple[Ranking, ...]:
    """One `Ranking` for each of `columns`, from its rows with a rival; rows of other columns or systems are left out.

    The preference for `a` in a pair of texts is the mean of `a`'s value when shown first and 1 − `b`'s value when `b`
    is. With `orders=2` a pair without both is not compared, as the position's bias would go into it uncorrected; with
    `orders=1` the orders that are there count. For two systems the win rate is that of AlpacaEval (Li et al. 2023): the
    mean preference.

    Strengths are those of Bradley and Terry (1952), a preference p counted as p wins and 1 − p losses, with one tie
    added between every two systems that met. Without it there is no estimate where a system wins every time (Ford
    1957). They are None where the systems fall into groups that never met.

    Intervals are over items, as an item's pairs are not independent. Of win rates they are Wilson's (1927) for as many
    items as would scatter so much if each were one win or loss (Franco et al. 2019), with Student's t; of strengths
    ± t errors by White's (1982) sandwich. Where a system's items all say the same, each counts as one win or loss.
    """
    known = set(systems)
    rows: dict[str, list[Score | Failure]] = defaultdict(list)
    every: Iterable[Score | Failure] = chain(scores, failures)
    for row in every:
        if {row.system, row.rival} <= known:
            rows[row.column].append(row)
    return tuple(_ranking(name, rows[name], tuple(systems), orders, confidence) for name in columns)


def _ranking(
    column: str, rows: Sequence[Score | Failure], systems: tuple[str, ...], orders: Orders, confidence: float
) -> Ranking:
    pairs = _collect_pairs(rows, systems, orders)
    size = max(1, len(pairs.systems))
    codes, cell_of_pair = np.unique(pairs.a * size + pairs.b, return_inverse=True)
    cells = _Cells(
        codes // size,
        codes % size,
        cell_of_pair.astype(np.intp),
        np.bincount(cell_of_pair, weights=pairs.p, minlength=len(codes)).astype(np.float64),
        np.bincount(cell_of_pair, minlength=len(codes)).astype(np.float64),
    )
    strengths = _fit_strengths(pairs, cells)
    standings = [_standing(pairs, at, column, strengths, (1 - confidence) / 2) for at in range(len(pairs.systems))]
    rates: dict[tuple[str, str], tuple[float, int]] = {}
    for a, b, preferred, n_pairs in zip(cells.a, cells.b, cells.preferred, cells.n_pairs, strict=True):
        system, rival = pairs.systems[a], pairs.systems[b]
        rates[system, rival] = float(preferred / n_pairs), int(n_pairs)
        rates[rival, system] = float((n_pairs - preferred) / n_pairs), int(n_pairs)
    matrix = [[rates.get((system, rival), (None, 0)) for rival in systems] for system in systems]
    bias = _mean(pairs.first)
    bounded = any(standing.low is not None for standing in standings)
    return Ranking(
        column,
        systems,
        tuple(sorted(standings, key=lambda standing: -standing.win_rate)),
        tuple(tuple(rate for rate, _ in row) for row in matrix),
        tuple(tuple(n for _, n in row) for row in matrix),
        pairs=len(pairs.p),
        incomplete=pairs.incomplete,
        failed=sum(isinstance(row, Failure) for row in rows),
        flip_rate=_mean(pairs.flipped),
        position_bias=None if bias is None else bias - TIE,
        method=f"{100 * confidence:g}% {_METHOD}" if bounded else "fewer than two items: too few for an interval",
        note=strengths.note,
    )


def _collect_pairs(rows: Iterable[Score | Failure], systems: Sequence[str], orders: Orders) -> _Pairs:
    """The rows of one column, two orders put together."""
    place = {name: at for at, name in enumerate(systems)}
    asked: dict[tuple[str, str, str], list[Score | None]] = {}
    for row in rows:
        swapped = place[row.system] > place[row.rival]
        earlier, later = (row.rival, row.system) if swapped else (row.system, row.rival)
        answers = asked.setdefault((row.item, earlier, later), [None, None])
        if isinstance(row, Score):
            answers[swapped] = row
    # sorted by name, so that results do not depend on the order of the rows
    complete = {key: asked[key] for key in sorted(asked) if 2 - asked[key].count(None) >= orders}
    present = {name for _, *ends in complete for name in ends}
    names = tuple(name for name in systems if name in present)
    at = {name: k for k, name in enumerate(names)}
    items = {item: k for k, item in enumerate(dict.fromkeys(item for item, _, _ in complete))}
    item, a, b = np.array([(items[item], at[a], at[b]) for item, a, b in complete], dtype=np.intp).reshape(-1, 3).T
    verdicts = []
    for forward, backward in complete.values():
        outcome = verdict(forward, backward)
        flip, mean_of_first = np.nan, np.nan
        if forward is not None and backward is not None and orders == 2 and outcome.flipped is not None:
            flip, mean_of_first = float(outcome.flipped), (forward.value + backward.value) / 2
        verdicts.append((outcome.preference, outcome.tied, flip, mean_of_first))
    p, tied, flipped, first = np.array(verdicts, dtype=np.float64).reshape(-1, 4).T
    return _Pairs(names, item, a, b, p, tied > 0, flipped, first, len(asked) - len(complete))


@dataclass(frozen=True, slots=True)
class _Cells:
    """The pairs of systems that met, `a` and `b`: sum of preferences for `a`, number of pairs of texts.

    `cell_of_pair` is the cell of every pair of texts.
    """

    a: Ints
    b: Ints
    cell_of_pair: Ints
    preferred: Floats
    n_pairs: Floats


def _standing(pairs: _Pairs, at: int, column: str, strengths: _Strengths, tail: float) -> Standing:
    involved = (pairs.a == at) | (pairs.b == at)
    preferred = np.where(pairs.a == at, pairs.p, 1 - pairs.p)[involved]
    win_rate, size = float(preferred.mean()), len(preferred)
    items, item_of_pair = np.unique(pairs.item[involved], return_inverse=True)
    deviations = np.bincount(item_of_pair, preferred - win_rate)
    variance = float((deviations**2).sum()) / size**2 * len(items) / max(1, len(items) - 1)
    rate = _Rate(win_rate, variance if variance > _NEAR**2 else 0.0, len(items), size)
    sign = np.sign(pairs.p - TIE)[involved] * np.where(pairs.a == at, 1, -1)[involved]
    ties = int(pairs.tied[involved].sum())
    return Standing(
        pairs.systems[at],
        column,
        win_rate,
        *rate.interval(tail),
        *strengths.with_interval(at, rate, tail),
        n=size,
        wins=int((sign > 0).sum()),
        losses=int((sign < 0).sum()),
        ties=ties,
        undecided=int((sign == 0).sum()) - ties,
        flip_rate=_mean(pairs.flipped[involved]),
    )


class _Rate(NamedTuple):
    """A win rate, its variance over items (0 where all say the same, of one item too), and its items and pairs."""

    value: float
    variance: float
    items: int
    pairs: int

    def interval(self, tail: float) -> tuple[float | None, float | None]:
        """Wilson's interval with Student's t; None for one item.

        It counts as many tries as have the variance that the rate has over items: those are the items where each says 0
        or 1, and more where they differ by less.
        """
        if self.items < 2:
            return None, None
        tries = self.value * (1 - self.value) / self.variance if self.variance else self.items
        return wilson_ends(self.value, tries, t_quantile(tail, self.items - 1))


@dataclass(frozen=True, slots=True)
class _Strengths:
    """Bradley-Terry log-odds by system, mean zero, and their variances; none where `note` says why.

    `over_items` is by how items scatter, `by_model` as the model has it for independent pairs.
    """

    note: str = ""
    values: Floats | None = None
    over_items: Floats = field(default_factory=lambda: np.empty(0))
    by_model: Floats = field(default_factory=lambda: np.empty(0))

    def with_interval(self, at: int, rate: _Rate, tail: float) -> tuple[float | None, float | None, float | None]:
        """A strength and both ends of its interval, as far as Student's t either way; these are None for one item."""
        if self.values is None:
            return None, None, None
        strength = float(self.values[at])
        if rate.items < 2:
            return strength, None, None
        variance = float(self.over_items[at]) * rate.items / (rate.items - 1)
        if not rate.variance:
            variance = float(self.by_model[at]) * rate.pairs / rate.items
        away = t_quantile(tail, rate.items - 1) * sqrt(variance)
        return strength, strength - away, strength + away


def _fit_strengths(pairs: _Pairs, cells: _Cells) -> _Strengths:
    """The fit, and White's sandwich (1982), with the scores of an item's pairs added up (Liang and Zeger 1986)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    size = len(pairs.systems)
    if not size:
        return _Strengths("No pair was compared.")
    groups, _ = connected_components(csr_array((np.ones(len(cells.a)), (cells.a, cells.b)), (size, size)), False)
    if groups > 1:
        return _Strengths(f"The systems fall into {groups} groups that never met: no strengths.")
    import evalica

    # One tie is added to every cell. Strengths count only where they solve the likelihood equations.
    ends = [*cells.a.tolist(), *cells.b.tolist()]
    others = [*cells.b.tolist(), *cells.a.tolist()]
    wins = np.concatenate([cells.preferred, cells.n_pairs - cells.preferred]) + 0.5
    winners = [evalica.Winner.X] * len(ends)
    result = evalica.bradley_terry(ends, others, winners, weights=wins.tolist(), tolerance=_TOLERANCE, limit=_LIMIT)
    odds = result.scores.sort_index().to_numpy(dtype=np.float64)
    number = np.tile(cells.n_pairs + 1, 2)
    with np.errstate(all="ignore"):
        residuals = np.bincount(ends, wins - number * odds[ends] / (odds[ends] + odds[others]), size)
        solved = np.abs(residuals) <= _RESIDUAL * np.bincount(ends, number, size)
        strengths = np.log(odds)
    if not (solved.all() and np.isfinite(strengths).all()):
        return _Strengths("The Bradley-Terry fit did not converge: no strengths.")
    strengths = strengths - strengths.mean()
    expected = 1 / (1 + np.exp(strengths[cells.b] - strengths[cells.a]))
    sides = np.eye(size)[cells.a] - np.eye(size)[cells.b]
    inverse = np.linalg.pinv(sides.T @ (((cells.n_pairs + 1) * expected * (1 - expected))[:, None] * sides))
    by_item = csr_array(
        (pairs.p - expected[cells.cell_of_pair], (pairs.item, cells.cell_of_pair)),
        shape=(int(pairs.item.max()) + 1, len(expected)),
    )
    return _Strengths("", strengths, ((by_item @ (sides @ inverse)) ** 2).sum(axis=0), np.diag(inverse).copy())


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
