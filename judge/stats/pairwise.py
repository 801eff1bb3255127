"""Rank systems by comparisons of two texts.

A ranking has win rates, Bradley-Terry strengths, and the effect of the order shown. `verdict`
combines the two orders of one pair; `rankings` ranks the systems of each column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import ceil, sqrt
from typing import Any, Literal, NamedTuple

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

    `preference` (0–1) is for the pair's first text. `tied`: every answer was a tie. `flipped`: the
    answer changed with the order; None if the judge was not asked in both orders.
    """

    preference: float
    tied: bool
    flipped: bool | None


def verdict(forward: Score | None, backward: Score | None) -> Verdict:
    """Combine the answers about one pair of texts; one may be missing.

    `forward` is the answer with the first text shown first, `backward` with the second. The
    preference is the mean of `forward`'s value and 1 − `backward`'s.
    """
    answers = [row for row in (forward, backward) if row is not None]
    tied = all(_snapped(row.value) == TIE for row in answers)
    if forward is None or backward is None:
        return Verdict(_preference_of_one_order(forward, backward), tied, None)
    for_first = _snapped(forward.value)
    for_second = _snapped(backward.value)
    preference = _snapped(TIE + (for_first - for_second) / 2)
    # About identical texts no judge was asked, so that no answer could change with the order.
    if any(row.provenance.method == IDENTICAL for row in answers):
        return Verdict(preference, tied, None)
    same_side = _side(for_first) == -_side(for_second)
    return Verdict(preference, tied, not same_side)


def _preference_of_one_order(forward: Score | None, backward: Score | None) -> float:
    """Return the preference for the first text if only one order has an answer."""
    if forward is not None:
        return _snapped(forward.value)
    return 1 - (0.0 if backward is None else _snapped(backward.value))


def _side(value: float) -> int:
    """Return 1 if the text shown first is preferred, −1 if the other is, 0 for a tie."""
    return (value > TIE) - (value < TIE)


def _snapped(value: float) -> float:
    """Return the value, or a tie if it differs from one by rounding only."""
    return TIE if abs(value - TIE) < _NEAR else value


@dataclass(frozen=True, slots=True)
class Standing:
    """The results of one system against the others in one column.

    `win_rate` (0–1) is the mean preference over its pairs. It depends on the opponents; `strength`
    accounts for them. `low`/`high` are None if its pairs come from fewer than five items.
    `strength` is in log-odds with mean zero over the systems: the difference of two strengths is
    the log-odds of preferring one. It is None if `Ranking.note` says why.

    `n` pairs are `wins` + `losses` + `ties` + `undecided`: in a tie every order said 0.5, in an
    undecided pair the two orders cancel out. `flip_rate` is the share of pairs whose verdict
    changed with the order, None if none was asked in both. `items` counts the items of its pairs.
    If all systems met `Ranking.against` only, `p` is that of the win rate being 50%: sign flips
    over items, Holm-corrected for the other systems. `equal_length` is the estimated win rate
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
        if self.p is None or self.p >= ALPHA:
            return 0
        return 1 if self.win_rate > TIE else -1


@dataclass(frozen=True, slots=True)
class Ranking:
    """The systems of one column, `standings` best first; a system without comparisons has none.

    They are ordered by win rate if every two systems met equally often, else by strength
    (`by_strength`), because win rates against different opponents cannot be compared.

    `win_rate[a][b]` is the mean preference for `systems[a]` over `systems[b]` in `n[a][b]` pairs of
    texts, None if there are none. `pairs` were compared, `incomplete` lack the answer to one order,
    and `failed` counts failed judgments. `position_bias` is the mean value of the text shown first
    minus 0.5, over pairs asked in both orders; 0.5 means that the first always wins. It and
    `flip_rate` exclude identical texts, which no judge compared. `method` describes the intervals.
    `against` is the system that all others met, "" if every two systems met.

    `groups` are the systems that met directly or through others, in the order of `standings`.
    Systems of two groups cannot be compared: one group follows the other in `standings`.
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
_TOLERANCE = 1e-9  # evalica's, of its scores
_LIMIT = 20_000  # iterations
# Tolerance of the likelihood equations, per comparison. If strengths differ a lot, evalica's own
# tolerance is below the rounding of its scores, and it iterates to the limit without gain.
_RESIDUAL = 1e-8


@dataclass(frozen=True, slots=True)
class _Sides:
    """The compared pairs of texts, each from both sides, as arrays of equal length.

    `systems` are those that were compared. `item`, `system` and `opponent` are indices, `p` is the
    preference for `system`, `tied` whether every order said 0.5. `longer` is by how many characters
    the system's text is longer than the opponent's, 0 if unknown. `flipped` (0 or 1) and `first`, the
    mean value of the text shown first, are NaN if the judge was not asked in both orders.
    """

    systems: tuple[str, ...]
    item: Ints
    system: Ints
    opponent: Ints
    p: Floats
    tied: Bools
    flipped: Floats
    first: Floats
    longer: Floats
    incomplete: int

    @classmethod
    def from_rows(cls, systems: tuple[str, ...], rows: Sequence[_Side], incomplete: int) -> _Sides:
        """Return the rows as arrays."""
        item = np.array([row.item for row in rows], dtype=np.intp)
        system = np.array([row.system for row in rows], dtype=np.intp)
        opponent = np.array([row.opponent for row in rows], dtype=np.intp)
        preferences = np.array([row.p for row in rows], dtype=np.float64)
        tied = np.array([row.tied for row in rows], dtype=np.bool_)
        flipped = np.array([row.flipped for row in rows], dtype=np.float64)
        first = np.array([row.first for row in rows], dtype=np.float64)
        longer = np.array([row.longer for row in rows], dtype=np.float64)
        return cls(
            systems,
            item=item,
            system=system,
            opponent=opponent,
            p=preferences,
            tied=tied,
            flipped=flipped,
            first=first,
            longer=longer,
            incomplete=incomplete,
        )

    def between(self, values: Floats) -> Floats:
        """Return the sum of one value per side, systems × opponents."""
        size = len(self.systems)
        cell = self.system * size + self.opponent
        totals = np.bincount(cell, values, size * size)
        sums: Floats = totals.astype(np.float64)
        return sums.reshape(size, size)

    def by_item(self, chosen: Bools) -> Floats:
        """Return the mean preference of these sides by item, NaN without any."""
        items = self.item[chosen]
        n_items = int(self.item.max(initial=-1)) + 1
        sums = np.bincount(items, self.p[chosen], n_items)
        return share(sums, np.bincount(items, minlength=n_items))

    def against(self, name: str) -> Bools:
        """Return which sides have this system as the opponent; none if it was not compared."""
        if name not in self.systems:
            return np.zeros(len(self.opponent), dtype=bool)
        mask: Bools = self.opponent == self.systems.index(name)
        return mask


class _Side(NamedTuple):
    """A compared pair of texts from one side, with the fields of `_Sides`."""

    item: int
    system: int
    opponent: int
    p: float
    tied: bool
    flipped: float
    first: float
    longer: float

    def mirrored(self) -> _Side:
        """Return the pair from the opponent's side."""
        complement = 1 - self.p
        return self._replace(
            system=self.opponent,
            opponent=self.system,
            p=complement,
            longer=-self.longer,
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
    """Return one `Ranking` for each of `columns`, from its rows with a opponent.

    Other columns and systems are ignored. The preference for `a` is the mean of `a`'s value when
    shown first and 1 − `b`'s value when `b` is. With `orders=2` an incomplete pair is excluded,
    because it would carry position bias; with `orders=1` each order counts. For two systems the win
    rate is that of AlpacaEval (Li et al. 2023).

    Strengths follow Bradley and Terry (1952). A preference p counts as p wins and 1 − p losses, and
    each pair of systems that met gets one tie, without which an undefeated system has no estimate
    (Ford 1957). Strengths are None if the systems form groups that never met.

    Intervals are over items (`source_items` has the items of generations), as an item's pairs are
    not independent. Win rates use Wilson's interval (1927) with Student's t and as many items as
    would have the observed variance if each were one win or loss (Franco et al. 2019). Strengths
    use ± t standard errors of White's (1982) sandwich, and the end away from 0 is further out by
    what the added ties pull. If a system's items all agree, each counts as one win or loss.

    If all systems met one only, name it `against`: the win rates of the others are then tested, and
    with the `lengths` of the texts, by item and system, they also have one at equal length, with
    resamples by `seed`.
    """
    known = set(systems)
    rows_by_column: dict[str, list[Score | Failure]] = defaultdict(list)
    all_rows: Iterable[Score | Failure] = chain(scores, failures)
    for row in all_rows:
        if {row.system, row.opponent} <= known:
            rows_by_column[row.column].append(row)
    ranked: list[Ranking] = []
    for column in dict.fromkeys(columns):
        rows = rows_by_column[column]
        sides = _collect_sides(rows, systems, orders, source_items, lengths)
        failed = sum(isinstance(row, Failure) for row in rows)
        ranking = _ranking(column, sides, tuple(systems), failed=failed, against=against, seed=seed)
        ranked.append(ranking)
    return tuple(ranked)


def _ranking(
    column: str,
    sides: _Sides,
    systems: tuple[str, ...],
    *,
    failed: int,
    against: str,
    seed: int,
) -> Ranking:
    """Rank the systems of one column."""
    number = sides.between(np.ones(len(sides.p)))
    preferred = sides.between(sides.p)
    groups = _groups_that_met(number, sides.systems)
    n_groups = len(set(groups.values()))
    strengths = _fit_strengths(sides, number, preferred, groups=n_groups)
    standings = _standings(sides, column, strengths, against=against, seed=seed)
    pairs_of_systems = number[np.triu_indices(len(number), 1)]
    met_equally_often = len(np.unique(pairs_of_systems)) <= 1
    by_strength = not met_equally_often and strengths.values is not None

    def best_first(standing: Standing) -> tuple[int, float]:
        score = (standing.strength or 0.0) if by_strength else standing.win_rate
        return groups[standing.system], -score

    standings.sort(key=best_first)
    # The ranking shows its systems in the order of the data, which may have more of them.
    positions = [systems.index(system) for system in sides.systems]
    in_data = np.ix_(positions, positions)
    number_in_data = np.zeros((len(systems), len(systems)))
    number_in_data[in_data] = number
    preferred_in_data = np.zeros((len(systems), len(systems)))
    preferred_in_data[in_data] = preferred
    mean_of_first = _mean(sides.first)
    has_interval = any(standing.low is not None for standing in standings)
    without_interval = f"fewer than {MIN_INTERVAL_ITEMS} items: too few for an interval"
    bias = None if mean_of_first is None else mean_of_first - TIE
    n = tuple(tuple(int(count) for count in row) for row in number_in_data.tolist())
    win_rate = _quotients(preferred_in_data, number_in_data)
    return Ranking(
        column,
        systems,
        tuple(standings),
        win_rate=win_rate,
        n=n,
        pairs=len(sides.p) // 2,
        incomplete=sides.incomplete,
        failed=failed,
        flip_rate=_mean(sides.flipped),
        position_bias=bias,
        method=_METHOD if has_interval else without_interval,
        note=strengths.note,
        by_strength=by_strength,
        against=against,
        groups=_names_by_group(standings, groups),
    )


def _standings(
    sides: _Sides,
    column: str,
    strengths: _Strengths,
    *,
    against: str,
    seed: int,
) -> list[Standing]:
    """Return the systems' results in the order of the data."""
    p_values = _p_values_against(sides, against)
    met = sides.against(against)
    systems_met = [sides.systems[index] for index in sides.system[met]]
    items_met = sides.item[met].tolist()
    preferences = sides.p[met].tolist()
    equal_length = win_rates(items_met, systems_met, preferences, sides.longer[met].tolist(), seed)
    standings: list[Standing] = []
    for index, system in enumerate(sides.systems):
        standing = _standing(sides, index, column, strengths)
        p = p_values.get(system)
        standings.append(replace(standing, p=p, equal_length=equal_length.get(system)))
    return standings


def _p_values_against(sides: _Sides, against: str) -> dict[str, float | None]:
    """Return the corrected p of each other system's win rate against this one, over items."""
    if against not in sides.systems:
        return {}
    opponents = [system for system in sides.systems if system != against]
    pairs_with_against = [(system, against) for system in opponents]
    differences = _preferences(sides, pairs_with_against) - TIE
    # With fewer flips no p could be significant after Holm's correction.
    n_resamples = max(10_000, ceil(2 * len(opponents) / ALPHA))
    estimates = mean_differences(differences, n_resamples=n_resamples)
    adjusted = holm([estimate.p if estimate else None for estimate in estimates])
    return dict(zip(opponents, adjusted, strict=True))


def _quotients(sums: Floats, number: Floats) -> tuple[tuple[float | None, ...], ...]:
    """Return the means of cells, None for an empty cell."""
    rows: list[tuple[float | None, ...]] = []
    for sums_of_row, numbers_of_row in zip(sums.tolist(), number.tolist(), strict=True):
        cells = zip(sums_of_row, numbers_of_row, strict=True)
        quotients = [total / count if count else None for total, count in cells]
        rows.append(tuple(quotients))
    return tuple(rows)


def _names_by_group(
    standings: Sequence[Standing],
    groups: Mapping[str, int],
) -> tuple[tuple[str, ...], ...]:
    """Return the systems of each group, in the order of the standings."""
    groups_in_order = sorted(set(groups.values()))
    names: dict[int, list[str]] = {group: [] for group in groups_in_order}
    for standing in standings:
        names[groups[standing.system]].append(standing.system)
    return tuple(tuple(group) for group in names.values())


def _groups_that_met(number: Floats, systems: Sequence[str]) -> dict[str, int]:
    """Return the group of each system: systems that met directly or through others are in one.

    `number` of pairs is systems × opponents. Groups are numbered by their first systems.
    """
    from scipy.sparse.csgraph import connected_components

    if not systems:
        return {}
    _, labels = connected_components(number, directed=False)
    return dict(zip(systems, labels.tolist(), strict=True))


def _preferences(sides: _Sides, met: Sequence[tuple[str, str]]) -> Floats:
    """Return the mean preference for the first of two systems, pairs of systems × items.

    NaN if they did not meet.
    """
    rows: list[Floats] = []
    for system, opponent in met:
        is_system = sides.system == sides.systems.index(system)
        rows.append(sides.by_item(is_system & sides.against(opponent)))
    return np.array(rows).reshape(len(met), -1)


Answers = list[Score | None]
"""About one pair of texts: with its first text shown first, and with its second."""


def complete_pairs(
    rows: Iterable[Score | Failure],
    systems: Sequence[str],
    orders: Orders,
) -> tuple[dict[tuple[str, str, str], Answers], int]:
    """Return the answers about each pair, and the number of incomplete pairs.

    A pair is an item and two systems in the order of `systems`. A pair is complete with answers in
    `orders` orders. They are sorted by name: the order of the rows does not matter.
    """
    position = {system: index for index, system in enumerate(systems)}
    answers_by_pair: dict[tuple[str, str, str], Answers] = {}
    for row in rows:
        swapped = position[row.system] > position[row.opponent]
        earlier = row.opponent if swapped else row.system
        later = row.system if swapped else row.opponent
        answers = answers_by_pair.setdefault((row.item, earlier, later), [None, None])
        if isinstance(row, Score):
            answers[1 if swapped else 0] = row
    complete: dict[tuple[str, str, str], Answers] = {}
    for pair in sorted(answers_by_pair):
        answers = answers_by_pair[pair]
        if 2 - answers.count(None) >= orders:
            complete[pair] = answers
    return complete, len(answers_by_pair) - len(complete)


def _collect_sides(
    rows: Iterable[Score | Failure],
    systems: Sequence[str],
    orders: Orders,
    source_items: Mapping[str, str],
    lengths: Mapping[tuple[str, str], int],
) -> _Sides:
    """Collect the rows of one column, combining the two orders.

    Several generations belong to one item.
    """
    complete, incomplete = complete_pairs(rows, systems, orders)
    compared = {system for _, *ends in complete for system in ends}
    names = tuple(system for system in systems if system in compared)
    system_index = {system: index for index, system in enumerate(names)}
    item_index = _index_of_items([item for item, _, _ in complete], source_items)
    sides: list[_Side] = []
    for (item, first_name, second_name), (forward, backward) in complete.items():
        outcome = verdict(forward, backward)
        flipped = np.nan
        mean_of_first = np.nan
        if (
            forward is not None
            and backward is not None
            and orders == 2
            and outcome.flipped is not None
        ):
            flipped = float(outcome.flipped)
            mean_of_first = (forward.value + backward.value) / 2
        first_length = lengths.get((item, first_name), 0)
        second_length = lengths.get((item, second_name), 0)
        source_item = source_items.get(item, item)
        side = _Side(
            item=item_index[source_item],
            system=system_index[first_name],
            opponent=system_index[second_name],
            p=outcome.preference,
            tied=outcome.tied,
            flipped=flipped,
            first=mean_of_first,
            longer=first_length - second_length,
        )
        sides += [side, side.mirrored()]
    return _Sides.from_rows(names, sides, incomplete)


def _index_of_items(compared: Sequence[str], source_items: Mapping[str, str]) -> dict[str, int]:
    """Number the items of the data: in the order of `source_items`, then as they were compared."""
    known = set(compared)
    in_data = [source for item, source in source_items.items() if item in known]
    others = [source_items.get(item, item) for item in compared]
    in_order = dict.fromkeys(in_data + others)
    return {source: index for index, source in enumerate(in_order)}


def mean_over_items(values: Floats, items: np.ndarray[Any, Any]) -> Estimate:
    """Return the mean of one value (0–1) per pair, with an interval over items, which `n` counts.

    `items` has the item of each pair.
    """
    mean = float(values.mean())
    known, item_of_pair = np.unique(items, return_inverse=True)
    n = len(known)
    deviations = np.bincount(item_of_pair, values - mean)
    squares = float((deviations**2).sum())
    mean_square = squares / len(values) ** 2
    variance = mean_square * n**2 / max(1, n - 1)
    if variance <= _NEAR**2:
        variance = 0.0
    ends = mean_interval(mean, variance, n, 0.0, 1.0)
    return Estimate("share", mean, ends.low, ends.high, n, ends.method)


def _standing(sides: _Sides, index: int, column: str, strengths: _Strengths) -> Standing:
    """Return the results of the system with this index."""
    of_system = sides.system == index
    preferred = sides.p[of_system]
    by_item = sides.by_item(of_system)
    rate = mean_over_items(preferred, sides.item[of_system])
    items_agree = np.nanmax(by_item) - np.nanmin(by_item) < _NEAR
    n_agreeing = len(preferred) if items_agree else None
    strength = strengths.with_interval(index, rate.n, n_agreeing)
    ties = int(sides.tied[of_system].sum())
    wins = int((preferred > TIE).sum())
    losses = int((preferred < TIE).sum())
    undecided = int((preferred == TIE).sum()) - ties
    flip_rate = _mean(sides.flipped[of_system])
    return Standing(
        sides.systems[index],
        column,
        rate.value,
        rate.low,
        rate.high,
        strength=strength.value,
        strength_low=strength.low,
        strength_high=strength.high,
        n=len(preferred),
        wins=wins,
        losses=losses,
        ties=ties,
        undecided=undecided,
        flip_rate=flip_rate,
        items=rate.n,
    )


class _Strength(NamedTuple):
    """A system's strength and both ends of its interval, None if unknown."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class _Strengths:
    """Bradley-Terry log-odds by system, mean zero, and their variances; empty if `note` says why.

    `over_items` is the variance over items, `by_model` that of the model for independent pairs.
    `pull` is how far the added ties move a strength (towards 0).
    """

    note: str = ""
    values: Floats | None = None
    over_items: Floats = field(default_factory=lambda: np.empty(0))
    by_model: Floats = field(default_factory=lambda: np.empty(0))
    pull: Floats = field(default_factory=lambda: np.empty(0))

    def with_interval(self, index: int, items: int, n_agreeing: int | None) -> _Strength:
        """Return a strength with its interval by Student's t; the ends are None below five items.

        `n_agreeing` is the number of pairs if all items agree. Then the scores do not vary over
        items, and the model's variance takes the place of the sandwich's.
        """
        if self.values is None:
            return _Strength(None, None, None)
        strength = float(self.values[index])
        if items < MIN_INTERVAL_ITEMS:
            return _Strength(strength, None, None)
        if n_agreeing:  # each item counts as one win or loss
            variance = float(self.by_model[index]) * n_agreeing / items
        else:
            variance = float(self.over_items[index]) * items / (items - 1)
        quantile = t_quantile((1 - CONFIDENCE) / 2, items - 1)
        half = quantile * sqrt(variance)
        pull = float(self.pull[index])
        # The added ties pull strengths towards 0, so the end away from 0 is further out.
        low = strength - half - max(0.0, pull)
        high = strength + half - min(0.0, pull)
        return _Strength(strength, low, high)


def _fit_strengths(sides: _Sides, number: Floats, preferred: Floats, *, groups: int) -> _Strengths:
    """Fit strengths and White's sandwich (1982).

    The sandwich adds up the scores of an item's pairs (Liang and Zeger 1986). `number` of pairs and
    sum of preferences are systems × opponents; `groups` counts those that never met.
    """
    size = len(sides.systems)
    if not size:
        return _Strengths("No pair was compared.")
    if groups > 1:
        return _Strengths(f"The systems fall into {groups} groups that never met: no strengths.")

    # Add one tie to every pair of systems.
    met = number > 0
    with_tie = number + met
    wins = preferred + met / 2
    odds = _bradley_terry(wins, met)
    # Accept strengths only if they solve the likelihood equations.
    with np.errstate(all="ignore"):
        sums_of_odds = odds[:, None] + odds
        expected = odds[:, None] / sums_of_odds
        residuals = (wins - with_tie * expected).sum(axis=1)
        solved = np.abs(residuals) <= _RESIDUAL * with_tie.sum(axis=1)
        strengths = np.log(odds)
    if not (solved.all() and np.isfinite(strengths).all()):
        return _Strengths("The Bradley-Terry fit did not converge: no strengths.")

    variance = expected * (1 - expected)
    inverse = _inverse_information(with_tie * variance)
    inverse_without_ties = _inverse_information(number * variance)
    n_items = int(sides.item.max()) + 1
    scores_by_item = np.zeros((n_items, size))
    surprise = sides.p - expected[sides.system, sides.opponent]
    np.add.at(scores_by_item, (sides.item, sides.system), surprise)
    scores_of_ties = (met * (0.5 - expected)).sum(axis=1)
    influences = scores_by_item @ inverse
    over_items = (influences**2).sum(axis=0)
    pull = inverse_without_ties @ scores_of_ties
    return _Strengths(
        "",
        strengths - strengths.mean(),
        over_items=over_items,
        by_model=np.diag(inverse).copy(),
        pull=pull,
    )


def _bradley_terry(wins: Floats, met: Bools) -> Floats:
    """Return the systems' odds from their wins over each other (systems × opponents)."""
    import evalica

    systems, opponents = np.nonzero(met)
    winners = [evalica.Winner.X] * len(systems)
    weights = wins[met].tolist()
    result = evalica.bradley_terry(
        systems.tolist(),
        opponents.tolist(),
        winners,
        weights=weights,
        tolerance=_TOLERANCE,
        limit=_LIMIT,
    )
    return np.asarray(result.scores.sort_index(), dtype=np.float64)


def _inverse_information(weights: Floats) -> Floats:
    """Return the inverse of the Fisher information, a Laplacian: its rows sum to 0."""
    information = np.diag(weights.sum(axis=1)) - weights
    return np.asarray(np.linalg.pinv(information), dtype=np.float64)


def _mean(values: Floats) -> float | None:
    """Return the mean of the known values, None without any."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
