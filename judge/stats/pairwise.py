"""Rank systems by comparisons of two texts.

A ranking has win rates, Bradley-Terry strengths, and the effect of the order shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil
from typing import Any

import numpy as np

from judge.core.records import Estimate, Failure, Score
from judge.stats.bootstrap import (
    MIN_INTERVAL_ITEMS,
    Floats,
    mean_interval,
    sum_of_squares,
    without_nan,
)
from judge.stats.coefficients import Cells, none_for_nan, share
from judge.stats.compared_pairs import NEAR_TIE, TIE, Orders, Sides, collect_sides
from judge.stats.equal_length import win_rates
from judge.stats.paired_differences import holm, mean_differences
from judge.stats.power import ALPHA
from judge.stats.strengths import Strengths, fit_strengths
from judge.table import Text


@dataclass(frozen=True, slots=True)
class Standing:
    """The results of one system against the others in one column.

    `win_rate` (0–1) is the mean preference over its pairs. It depends on the opponents; `strength`
    accounts for them. `low`/`high` are None if its pairs come from fewer than five items.
    `strength` is in log-odds with mean zero over the systems: the difference of two strengths is
    the log-odds of preferring one. It is None if `Ranking.note` says why.

    `n` pairs are `wins` + `losses` + `ties` + `undecided`. A pair is won if one order prefers the
    system and none prefers the opponent. It is a tie if every order said 0.5, or if a tie was the
    likeliest label in every order. In an undecided pair the two orders prefer different texts.
    `flip_rate` is the share of pairs whose verdict changed with the order, None if none was
    asked in both. `items` counts the items of its pairs. If all systems met `Ranking.against` only,
    `p` is that of the win rate being 50%: sign flips over items, Holm-corrected for the other
    systems. `equal_length` is the estimated win rate against it if both texts were equally long
    (`stats.equal_length`).
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

    - `by_strength`: whether they are ordered by strength, because not every two systems met equally
      often. Otherwise they are ordered by win rate.
    - `win_rate[a][b]`: the mean preference for `systems[a]` over `systems[b]` in `n[a][b]` pairs of
      texts, None if there are none.
    - `pairs`, `incomplete`, `failed`: the pairs that were compared, those that lack the answer to
      one order, and the failed judgments.
    - `position_bias`: the mean value of the text shown first minus 0.5, over pairs asked in both
      orders; 0.5 means that the first always wins. It and `flip_rate` exclude identical texts.
    - `groups`: the systems that met directly or through others. Systems of two groups cannot be
      compared: one group follows the other in `standings`.
    - `against`: the system that all others met, "" if every two systems met.
    - `method`: how the intervals were computed.
    """

    column: str
    systems: tuple[str, ...]
    standings: tuple[Standing, ...]
    win_rate: Cells
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


_METHOD = (
    "95% over items, with Student's t: Wilson's score for win rates, "
    "sandwich errors for strengths"
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
    lengths: Mapping[Text, int] = {},
    tie_labels: Mapping[str, str | None] = {},
    seed: int = 0,
) -> tuple[Ranking, ...]:
    """Return one `Ranking` for each of `columns`, from its rows with an opponent.

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
    resamples by `seed`. `tie_labels` are by column.
    """
    known_systems = set(systems)
    rows_by_column: dict[str, list[Score | Failure]] = defaultdict(list)
    all_rows: Iterable[Score | Failure] = chain(scores, failures)
    for row in all_rows:
        if {row.system, row.opponent} <= known_systems:
            rows_by_column[row.column].append(row)
    ranked: list[Ranking] = []
    for column in dict.fromkeys(columns):
        rows = rows_by_column[column]
        tie_label = tie_labels.get(column)
        sides = collect_sides(
            rows, systems, orders, source_items, lengths, tie_label=tie_label
        )
        failed = sum(isinstance(row, Failure) for row in rows)
        ranking = _ranking(
            column, sides, tuple(systems), failed=failed, against=against, seed=seed
        )
        ranked.append(ranking)
    return tuple(ranked)


def _ranking(
    column: str,
    sides: Sides,
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
    strengths = fit_strengths(sides, number, preferred, groups=n_groups)
    standings = _standings(sides, column, strengths, against=against, seed=seed)
    # Win rates against different opponents cannot be compared.
    by_strength = strengths.values is not None and not _met_equally_often(number)

    def best_first(standing: Standing) -> tuple[int, float]:
        score = (standing.strength or 0.0) if by_strength else standing.win_rate
        return groups[standing.system], -score

    standings.sort(key=best_first)
    number_in_data = _in_order_of_data(number, sides.systems, systems)
    preferred_in_data = _in_order_of_data(preferred, sides.systems, systems)
    numbers = [tuple(row) for row in number_in_data.astype(int).tolist()]
    mean_of_first = _mean(sides.first)
    position_bias = None if mean_of_first is None else mean_of_first - TIE
    method = _METHOD
    if all(standing.low is None for standing in standings):
        method = f"fewer than {MIN_INTERVAL_ITEMS} items: too few for an interval"
    # Each pair of texts has two sides.
    n_pairs = len(sides.p) // 2
    return Ranking(
        column,
        systems,
        tuple(standings),
        win_rate=none_for_nan(share(preferred_in_data, number_in_data)),
        n=tuple(numbers),
        pairs=n_pairs,
        incomplete=sides.incomplete,
        failed=failed,
        flip_rate=_mean(sides.flipped),
        position_bias=position_bias,
        method=method,
        note=strengths.note,
        by_strength=by_strength,
        against=against,
        groups=_names_by_group(standings, groups),
    )


def _met_equally_often(number: Floats) -> bool:
    """Return whether all pairs of systems have the same `number` (systems × systems)."""
    above_diagonal = np.triu_indices(len(number), 1)
    return len(np.unique(number[above_diagonal])) <= 1


def _in_order_of_data(
    cells: Floats,
    compared: Sequence[str],
    systems: Sequence[str],
) -> Floats:
    """Return the cells in the order of all systems, 0 for those that were not compared."""
    positions = [systems.index(system) for system in compared]
    in_data = np.zeros((len(systems), len(systems)))
    in_data[np.ix_(positions, positions)] = cells
    return in_data


def _standings(
    sides: Sides,
    column: str,
    strengths: Strengths,
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
    longer_by = sides.longer[met].tolist()
    equal_length = win_rates(items_met, systems_met, preferences, longer_by, seed)
    standings: list[Standing] = []
    for index, system in enumerate(sides.systems):
        standing = _standing(sides, index, column, strengths)
        p_value = p_values.get(system)
        standing = replace(standing, p=p_value, equal_length=equal_length.get(system))
        standings.append(standing)
    return standings


def _p_values_against(sides: Sides, against: str) -> dict[str, float | None]:
    """Return the corrected p of each other system's win rate against this one, over items."""
    if against not in sides.systems:
        return {}
    opponents = [system for system in sides.systems if system != against]
    pairs_with_against = [(system, against) for system in opponents]
    differences = _preferences(sides, pairs_with_against) - TIE
    # With fewer flips no p could be significant after Holm's correction.
    n_resamples = max(10_000, ceil(2 * len(opponents) / ALPHA))
    estimates = mean_differences(differences, n_resamples=n_resamples)
    p_values = [estimate.p if estimate else None for estimate in estimates]
    return dict(zip(opponents, holm(p_values), strict=True))


def _names_by_group(
    standings: Sequence[Standing],
    groups: Mapping[str, int],
) -> tuple[tuple[str, ...], ...]:
    """Return the systems of each group, in the order of the standings."""
    names_by_group: dict[int, list[str]] = {}
    for group in sorted(set(groups.values())):
        names_by_group[group] = []
    for standing in standings:
        group = groups[standing.system]
        names_by_group[group].append(standing.system)
    return tuple(tuple(names) for names in names_by_group.values())


def _groups_that_met(number: Floats, systems: Sequence[str]) -> dict[str, int]:
    """Return the group of each system: systems that met directly or through others are in one.

    `number` of pairs is systems × opponents. Groups are numbered by their first systems.
    """
    from scipy.sparse.csgraph import connected_components

    if not systems:
        return {}
    _, labels = connected_components(number, directed=False)
    return dict(zip(systems, labels.tolist(), strict=True))


def _preferences(sides: Sides, met: Sequence[tuple[str, str]]) -> Floats:
    """Return the mean preference for the first of two systems, pairs of systems × items.

    NaN if they did not meet.
    """
    rows: list[Floats] = []
    for system, opponent in met:
        is_system = sides.system == sides.systems.index(system)
        rows.append(sides.by_item(is_system & sides.against(opponent)))
    return np.array(rows).reshape(len(met), -1)


def mean_over_items(values: Floats, items: np.ndarray[Any, Any]) -> Estimate:
    """Return the mean of one value (0–1) per pair, with an interval over items, which `n` counts.

    `items` has the item of each pair.
    """
    mean = float(values.mean())
    distinct_items, item_of_pair = np.unique(items, return_inverse=True)
    n_items = len(distinct_items)
    deviations = np.bincount(item_of_pair, values - mean)
    # The variance of a ratio of sums: items with more pairs count for more.
    squares = sum_of_squares(deviations)
    mean_square = squares / len(values) ** 2
    variance = mean_square * n_items**2 / max(1, n_items - 1)
    # Rounding errors are no variance; `mean_interval` treats equal items differently.
    if variance <= NEAR_TIE**2:
        variance = 0.0
    ends = mean_interval(mean, variance, n_items, 0.0, 1.0)
    return Estimate(
        name="share",
        value=mean,
        low=ends.low,
        high=ends.high,
        n=n_items,
        method=ends.method,
    )


def _standing(sides: Sides, index: int, column: str, strengths: Strengths) -> Standing:
    """Return the results of the system with this index."""
    of_system = sides.system == index
    preferred = sides.p[of_system]
    by_item = sides.by_item(of_system)
    rate = mean_over_items(preferred, sides.item[of_system])
    items_agree = np.nanmax(by_item) - np.nanmin(by_item) < NEAR_TIE
    n_agreeing = len(preferred) if items_agree else None
    strength = strengths.with_interval(index, rate.n, n_agreeing)
    tied = sides.tied[of_system]
    winner = sides.winner[of_system]
    undecided = (winner == 0) & ~tied
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
        wins=int((winner == 1).sum()),
        losses=int((winner == -1).sum()),
        ties=int(tied.sum()),
        undecided=int(undecided.sum()),
        flip_rate=flip_rate,
        items=rate.n,
    )


def _mean(values: Floats) -> float | None:
    """Return the mean of the known values, None without any."""
    known_values = without_nan(values)
    if not len(known_values):
        return None
    return float(known_values.mean())
