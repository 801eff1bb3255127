"""Rank systems by comparisons of two texts: win rates, Bradley-Terry strengths, and the effect of the order shown.

`verdict` combines the two orders of one pair; `rankings` ranks the systems of each column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import ceil, sqrt
from typing import Any, Literal

import numpy as np

from judge.core.records import IDENTICAL, Estimate, Failure, Score
from judge.stats.bootstrap import (
    CONFIDENCE,
    MIN_INTERVAL_ITEMS,
    Bools,
    Floats,
    Ints,
    mean_interval,
    t_quantile,
)
from judge.stats.coefficients import share
from judge.stats.equal_length import win_rates
from judge.stats.paired_differences import holm, mean_differences
from judge.stats.power import ALPHA

TIE = 0.5
_NEAR = 1e-9
"""The largest rounding error of a tie."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The combined answers about one pair of texts.

    `preference` (0–1) is for the pair's first text. `tied`: every answer was a tie. `flipped`: the answer changed with
    the order; None if the judge was not asked in both orders.
    """

    preference: float
    tied: bool
    flipped: bool | None


def verdict(forward: Score | None, backward: Score | None) -> Verdict:
    """Combine the answers about one pair of texts; one may be missing.

    `forward` is the answer with the first text shown first, `backward` with the second. The preference is the mean of
    `forward`'s value and 1 − `backward`'s.
    """
    answers = [row for row in (forward, backward) if row is not None]
    for_first, for_second = (
        None if row is None else _snapped(row.value) for row in (forward, backward)
    )
    tied = all(_snapped(row.value) == TIE for row in answers)
    if for_first is None or for_second is None:
        return Verdict(for_first if for_first is not None else 1 - (for_second or 0.0), tied, None)
    preference = _snapped(TIE + (for_first - for_second) / 2)
    if any(row.provenance.method == IDENTICAL for row in answers):
        return Verdict(preference, tied, None)
    sides = {(for_first > TIE) - (for_first < TIE), (for_second < TIE) - (for_second > TIE)}
    return Verdict(preference, tied, len(sides) > 1)


def _snapped(value: float) -> float:
    """Return the value, or a tie if it differs from one by rounding only."""
    return TIE if abs(value - TIE) < _NEAR else value


@dataclass(frozen=True, slots=True)
class Standing:
    """The results of one system against the others in one column.

    `win_rate` (0–1) is the mean preference over its pairs. It depends on the opponents; `strength` accounts for them.
    `low`/`high` are None if its pairs come from fewer than five items. `strength` is in log-odds with mean zero over
    the systems: the difference of two strengths is the log-odds of preferring one. It is None if `Ranking.note` says
    why.

    `n` pairs are `wins` + `losses` + `ties` + `undecided`: in a tie every order said 0.5, in an undecided pair the two
    orders cancel out. `flip_rate` is the share of pairs whose verdict changed with the order, None if none was asked in
    both. `items` counts the items of its pairs. If all systems met `Ranking.against` only, `p` is that of the win rate
    being 50%: sign flips over items, Holm-corrected for the other systems. `equal_length` is the estimated win rate
    against it if both texts were equally long (`stats.equal_length`).
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
    items: int = 0
    p: float | None = None
    equal_length: Estimate | None = None

    @property
    def apart(self) -> int:
        """Return 1 if it beats `Ranking.against` significantly, −1 if it loses, else 0."""
        significant = self.p is not None and self.p < ALPHA
        return (1 if self.win_rate > TIE else -1) if significant else 0


@dataclass(frozen=True, slots=True)
class Ranking:
    """The systems of one column, `standings` best first; a system without comparisons has none.

    They are ordered by win rate if every two systems met equally often, else by strength, if there are strengths: win
    rates against different rivals cannot be compared. `by_strength` is true if the order is by strength.

    `win_rate[a][b]` is the mean preference for `systems[a]` over `systems[b]` in `n[a][b]` pairs of texts, None if
    there are none. `pairs` were compared; `incomplete` lack the answer to one order; `failed` counts failed judgments.
    `position_bias` is the mean value of the text shown first minus 0.5, over pairs asked in both orders, so that the
    texts' quality cancels out; 0.5 means that the first always wins. It and `flip_rate` exclude identical texts, about
    which no judge was asked. `method` describes the intervals. `against` is the system that all others met, "" if every
    two systems met.

    `groups` are the systems that met directly or through others, in the order of `standings`. Systems of two groups
    cannot be compared: one group follows the other in `standings`.
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
    by_strength: bool = False
    against: str = ""
    groups: tuple[tuple[str, ...], ...] = ()


Orders = Literal[1, 2]
"""In how many orders each pair of texts is asked."""

_METHOD = (
    "95% over items, with Student's t: Wilson's score for win rates, sandwich errors for strengths"
)
_TOLERANCE, _LIMIT = 1e-9, 20_000
# Tolerance of the likelihood equations, per comparison. If strengths differ a lot, evalica's own tolerance is below the
# rounding of its scores, and it iterates to the limit without gain.
_RESIDUAL = 1e-8


@dataclass(frozen=True, slots=True)
class _Sides:
    """The compared pairs of texts, each from both sides, as arrays of equal length; and the systems that they have.

    `item`, `system` and `rival` are indices, `p` is the preference for `system`, `tied` whether every order said 0.5.
    `longer` is by how many characters the system's text is longer than the rival's, 0 if unknown. `flipped` (0 or 1)
    and `first`, the mean value of the text shown first, are NaN if the judge was not asked in both orders.
    """

    systems: tuple[str, ...]
    item: Ints
    system: Ints
    rival: Ints
    p: Floats
    tied: Bools
    flipped: Floats
    first: Floats
    longer: Floats
    incomplete: int

    def between(self, values: Floats) -> Floats:
        """Return the sum of one value per side, systems × rivals."""
        size = len(self.systems)
        sums: Floats = np.bincount(self.system * size + self.rival, values, size * size).astype(
            np.float64
        )
        return sums.reshape(size, size)

    def by_item(self, chosen: Bools) -> Floats:
        """Return the mean preference of these sides by item, NaN without any."""
        items, n_items = self.item[chosen], int(self.item.max(initial=-1)) + 1
        return share(
            np.bincount(items, self.p[chosen], n_items), np.bincount(items, minlength=n_items)
        )


def rankings(
    scores: Iterable[Score],
    failures: Iterable[Failure],
    systems: Sequence[str],
    columns: Iterable[str],
    *,
    orders: Orders = 2,
    source_items: Mapping[str, str] = {},
    against: str = "",
    lengths: Mapping[tuple[str, str], int] = {},
    seed: int = 0,
) -> tuple[Ranking, ...]:
    """Return one `Ranking` for each of `columns`, from its rows with a rival; other columns and systems are ignored.

    The preference for `a` is the mean of `a`'s value when shown first and 1 − `b`'s value when `b` is. With `orders=2`
    an incomplete pair is excluded, because it would carry position bias; with `orders=1` each order counts. For two
    systems the win rate is that of AlpacaEval (Li et al. 2023).

    Strengths follow Bradley and Terry (1952). A preference p counts as p wins and 1 − p losses, and each pair of
    systems that met gets one tie, without which an undefeated system has no estimate (Ford 1957). Strengths are None if
    the systems form groups that never met.

    Intervals are over items (`source_items` has the items of generations), as an item's pairs are not independent. Win
    rates use Wilson's interval (1927) with Student's t and as many items as would have the observed variance if each
    were one win or loss (Franco et al. 2019). Strengths use ± t standard errors of White's (1982) sandwich, and the end
    away from 0 is further out by what the added ties pull. If a system's items all agree, each counts as one win or
    loss.

    If all systems met one only, name it `against`: the win rates of the others are then tested, and with the `lengths`
    of the texts, by item and system, they also have one at equal length, with resamples by `seed`.
    """
    known = set(systems)
    rows: dict[str, list[Score | Failure]] = defaultdict(list)
    every: Iterable[Score | Failure] = chain(scores, failures)
    for row in every:
        if {row.system, row.rival} <= known:
            rows[row.column].append(row)
    sides = {
        name: _collect_sides(rows[name], systems, orders, source_items, lengths) for name in columns
    }
    return tuple(
        _ranking(
            name, sides[name], tuple(systems), against=against,
            failed=sum(isinstance(row, Failure) for row in rows[name]), seed=seed,
        )
        for name in sides
    )  # fmt: skip


def _ranking(
    column: str, sides: _Sides, systems: tuple[str, ...], *, failed: int, against: str, seed: int
) -> Ranking:
    number, preferred = sides.between(np.ones(len(sides.p))), sides.between(sides.p)
    groups = _groups_that_met(number, sides.systems)
    strengths = _fit_strengths(sides, number, preferred, groups=len(set(groups.values())))
    p_values: dict[str, float | None] = {}
    if against in sides.systems:
        # The corrected p of each other system's win rate against this one, over items.
        others = [name for name in sides.systems if name != against]
        rows = _preferences(sides, [(name, against) for name in others]) - TIE
        estimates = mean_differences(rows, n_flips=max(10_000, ceil(2 * len(others) / ALPHA)))
        p_values |= zip(
            others, holm([estimate.p if estimate else None for estimate in estimates]), strict=True
        )
    met = sides.rival == (sides.systems.index(against) if against in sides.systems else -1)
    names = [sides.systems[at] for at in sides.system[met]]
    equal_length = win_rates(
        sides.item[met].tolist(), names, sides.p[met].tolist(), sides.longer[met].tolist(), seed
    )
    standings = [
        replace(
            _standing(sides, at, column, strengths),
            p=p_values.get(name), equal_length=equal_length.get(name),
        )
        for at, name in enumerate(sides.systems)
    ]  # fmt: skip
    at = np.array([systems.index(name) for name in sides.systems], dtype=np.intp)
    cells = np.zeros((2, len(systems), len(systems)))
    cells[:, at[:, None], at] = number, preferred
    counts, sums = cells.tolist()
    bias = _mean(sides.first)
    bounded = any(standing.low is not None for standing in standings)
    by_strength = (
        len(np.unique(number[np.triu_indices(len(number), 1)])) > 1 and strengths.values is not None
    )
    standings.sort(
        key=lambda s: (groups[s.system], -((s.strength or 0.0) if by_strength else s.win_rate))
    )
    return Ranking(
        column,
        systems,
        tuple(standings),
        tuple(
            tuple(p / n if n else None for n, p in zip(*row, strict=True))
            for row in zip(counts, sums, strict=True)
        ),
        tuple(tuple(map(int, row)) for row in counts),
        pairs=len(sides.p) // 2,
        incomplete=sides.incomplete,
        failed=failed,
        flip_rate=_mean(sides.flipped),
        position_bias=None if bias is None else bias - TIE,
        method=_METHOD
        if bounded
        else f"fewer than {MIN_INTERVAL_ITEMS} items: too few for an interval",
        note=strengths.note,
        by_strength=by_strength,
        against=against,
        groups=tuple(
            tuple(s.system for s in standings if groups[s.system] == group)
            for group in sorted(set(groups.values()))
        ),
    )


def _groups_that_met(number: Floats, systems: Sequence[str]) -> dict[str, int]:
    """Return the group of each system: systems that met directly or through others are in one.

    `number` of pairs is systems × rivals. Groups are numbered by their first systems.
    """
    from scipy.sparse.csgraph import connected_components

    if not systems:
        return {}
    _, labels = connected_components(number, directed=False)
    return dict(zip(systems, labels.tolist(), strict=True))


def _preferences(sides: _Sides, met: Sequence[tuple[str, str]]) -> Floats:
    """Return the mean preference for the first of two systems, pairs of systems × items, NaN if they did not meet."""
    places = [(sides.systems.index(system), sides.systems.index(rival)) for system, rival in met]
    rows = [sides.by_item((sides.system == at) & (sides.rival == rival)) for at, rival in places]
    return np.array(rows).reshape(len(met), -1)


Answers = list[Score | None]
"""About one pair of texts: with its first text shown first, and with its second."""


def complete_pairs(
    rows: Iterable[Score | Failure], systems: Sequence[str], orders: Orders
) -> tuple[dict[tuple[str, str, str], Answers], int]:
    """Return the answers about each pair (item and two systems in this order), and the number of incomplete pairs.

    A pair is complete with answers in `orders` orders. They are sorted by name: the order of the rows does not matter.
    """
    place = {name: at for at, name in enumerate(systems)}
    answers_by_pair: dict[tuple[str, str, str], Answers] = {}
    for row in rows:
        swapped = place[row.system] > place[row.rival]
        earlier, later = (row.rival, row.system) if swapped else (row.system, row.rival)
        answers = answers_by_pair.setdefault((row.item, earlier, later), [None, None])
        if isinstance(row, Score):
            answers[swapped] = row
    complete = {
        key: answers_by_pair[key]
        for key in sorted(answers_by_pair)
        if 2 - answers_by_pair[key].count(None) >= orders
    }
    return complete, len(answers_by_pair) - len(complete)


def _collect_sides(
    rows: Iterable[Score | Failure],
    systems: Sequence[str],
    orders: Orders,
    source_items: Mapping[str, str],
    lengths: Mapping[tuple[str, str], int],
) -> _Sides:
    """Collect the rows of one column, combining the two orders. Several generations belong to one item."""
    complete, incomplete = complete_pairs(rows, systems, orders)
    present = {name for _, *ends in complete for name in ends}
    names = tuple(name for name in systems if name in present)
    at = {name: k for k, name in enumerate(names)}
    sources = {item: source_items.get(item, item) for item, _, _ in complete}
    ordered = [
        *(source for item, source in source_items.items() if item in sources),
        *sources.values(),
    ]
    items = {source: k for k, source in enumerate(dict.fromkeys(ordered))}
    found = []
    for (item, a, b), (forward, backward) in complete.items():
        outcome = verdict(forward, backward)
        flip, mean_of_first = np.nan, np.nan
        if (
            forward is not None
            and backward is not None
            and orders == 2
            and outcome.flipped is not None
        ):
            flip, mean_of_first = float(outcome.flipped), (forward.value + backward.value) / 2
        both = outcome.tied, flip, mean_of_first
        excess = lengths.get((item, a), 0) - lengths.get((item, b), 0)
        found.append((items[sources[item]], at[a], at[b], outcome.preference, *both, excess))
        found.append((items[sources[item]], at[b], at[a], 1 - outcome.preference, *both, -excess))
    *places, p, tied, flipped, first, longer = np.array(found, dtype=np.float64).reshape(-1, 8).T
    item, system, rival = np.array(places, dtype=np.intp)
    return _Sides(names, item, system, rival, p, tied > 0, flipped, first, longer, incomplete)


def mean_over_items(values: Floats, items: np.ndarray[Any, Any]) -> Estimate:
    """Return the mean of one value (0–1) per pair, each of an item, with an interval over items, which `n` counts."""
    mean, (known, item_of_pair) = float(values.mean()), np.unique(items, return_inverse=True)
    n, deviations = len(known), np.bincount(item_of_pair, values - mean)
    variance = float((deviations**2).sum()) / len(values) ** 2 * n**2 / max(1, n - 1)
    ends = mean_interval(mean, variance if variance > _NEAR**2 else 0.0, n, 0.0, 1.0)
    return Estimate("share", mean, ends.low, ends.high, n, ends.method)


def _standing(sides: _Sides, at: int, column: str, strengths: _Strengths) -> Standing:
    own = sides.system == at
    preferred, by_item = sides.p[own], sides.by_item(own)
    rate = mean_over_items(preferred, sides.item[own])
    alike = np.nanmax(by_item) - np.nanmin(by_item) < _NEAR
    ties = int(sides.tied[own].sum())
    return Standing(
        sides.systems[at],
        column,
        rate.value,
        rate.low,
        rate.high,
        *strengths.with_interval(at, rate.n, len(preferred) if alike else None),
        n=len(preferred),
        wins=int((preferred > TIE).sum()),
        losses=int((preferred < TIE).sum()),
        ties=ties,
        undecided=int((preferred == TIE).sum()) - ties,
        flip_rate=_mean(sides.flipped[own]),
        items=rate.n,
    )


@dataclass(frozen=True, slots=True)
class _Strengths:
    """Bradley-Terry log-odds by system, mean zero, and their variances; empty if `note` says why.

    `over_items` is the variance over items, `by_model` that of the model for independent pairs. `pull` is how far the
    added ties move a strength (towards 0).
    """

    note: str = ""
    values: Floats | None = None
    over_items: Floats = field(default_factory=lambda: np.empty(0))
    by_model: Floats = field(default_factory=lambda: np.empty(0))
    pull: Floats = field(default_factory=lambda: np.empty(0))

    def with_interval(
        self, at: int, items: int, alike: int | None
    ) -> tuple[float | None, float | None, float | None]:
        """Return a strength and both ends of its interval by Student's t; the ends are None below five items.

        `alike` is the number of pairs if all items agree.
        """
        if self.values is None:
            return None, None, None
        strength = float(self.values[at])
        if items < MIN_INTERVAL_ITEMS:
            return strength, None, None
        variance = float(self.over_items[at]) * items / (items - 1)
        if alike:
            variance = float(self.by_model[at]) * alike / items
        away, pull = (
            t_quantile((1 - CONFIDENCE) / 2, items - 1) * sqrt(variance),
            float(self.pull[at]),
        )
        return strength, strength - away - max(0.0, pull), strength + away - min(0.0, pull)


def _fit_strengths(sides: _Sides, number: Floats, preferred: Floats, *, groups: int) -> _Strengths:
    """Fit strengths and White's sandwich (1982), adding up the scores of an item's pairs (Liang and Zeger 1986).

    `number` of pairs and sum of preferences are systems × rivals; `groups` counts those that never met.
    """
    size = len(sides.systems)
    if not size:
        return _Strengths("No pair was compared.")
    if groups > 1:
        return _Strengths(f"The systems fall into {groups} groups that never met: no strengths.")
    import evalica

    # Add one tie to every pair of systems. Accept strengths only if they solve the likelihood equations.
    met = number > 0
    with_tie, wins = number + met, preferred + met / 2
    ends, others = (side.tolist() for side in np.nonzero(met))
    winners = [evalica.Winner.X] * len(ends)
    result = evalica.bradley_terry(
        ends, others, winners, weights=wins[met].tolist(), tolerance=_TOLERANCE, limit=_LIMIT
    )
    odds = result.scores.sort_index().to_numpy(dtype=np.float64)
    with np.errstate(all="ignore"):
        expected = odds[:, None] / (odds[:, None] + odds)
        residuals = (wins - with_tie * expected).sum(axis=1)
        solved = np.abs(residuals) <= _RESIDUAL * with_tie.sum(axis=1)
        strengths = np.log(odds)
    if not (solved.all() and np.isfinite(strengths).all()):
        return _Strengths("The Bradley-Terry fit did not converge: no strengths.")
    variance = expected * (1 - expected)
    inverse, untied = (
        np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
        for weights in (with_tie * variance, number * variance)
    )
    by_item = np.zeros((int(sides.item.max()) + 1, size))
    np.add.at(by_item, (sides.item, sides.system), sides.p - expected[sides.system, sides.rival])
    return _Strengths(
        "",
        strengths - strengths.mean(),
        ((by_item @ inverse) ** 2).sum(axis=0),
        np.diag(inverse).copy(),
        untied @ (met * (0.5 - expected)).sum(axis=1),
    )


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
