"""Choose the candidate that agrees best with people, and estimate its agreement without the winner's curse.

The best of several candidates looks better than it is, because chance helped to select it. `select` repeats the choice
on resampled items and measures each choice on the items left out (Tsamardinos et al. 2018). `benchmarks/choosing.py`
measures its bias and coverage.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from judge.core.errors import DataError
from judge.core.records import Estimate
from judge.stats.bootstrap import (
    CONFIDENCE,
    DEFAULT,
    NORMAL,
    Bools,
    Bootstrap,
    Floats,
    Ints,
    Statistic,
    mean_interval,
    one_thread,
    resample_weights,
    t_quantile,
)
from judge.stats.coefficients import Level, average, between, coefficients, mean, rounded, share
from judge.stats.correlation import FEWEST_ITEMS, NAMES, OVER

MOST_ITEMS = 1_000
"""More rated items are never proposed."""
_POWER = 0.8
_DRAWN = 0.632  # share of the items that a resample contains


@dataclass(frozen=True, slots=True)
class Selection:
    """The candidate with the highest Spearman, over `items` rated items.

    By candidate: `values` are Spearman on all items (None if undefined), `shares` how often it was chosen in resamples,
    `differences` the chosen one's Spearman minus its own, with simultaneous intervals (None for the chosen one and if
    undefined). `honest` is what to expect of the chosen one on other items. `runner_up` has the second highest value.
    `more_items` are expected to show a significant difference to it (power 80%): 0 if it is, None if more than
    `MOST_ITEMS` would be needed.
    """

    chosen: int
    level: Level
    items: int
    values: tuple[float | None, ...]
    shares: tuple[float, ...]
    honest: Estimate
    differences: tuple[Estimate | None, ...]
    runner_up: int | None
    more_items: int | None

    @property
    def naive(self) -> float:
        """The value of the chosen candidate on the items that chose it."""
        return self.values[self.chosen] or 0.0

    @property
    def optimism(self) -> float:
        return self.naive - self.honest.value

    @property
    def not_worse(self) -> tuple[int, ...]:
        """The chosen candidate, and those that are not significantly worse."""
        within = (d is not None and d.low is not None and d.low <= 0 for d in self.differences)
        return tuple(place for place, near in enumerate(within) if near or place == self.chosen)


@one_thread
def select(
    values: Floats,
    ratings: Floats,
    level: Level = "document",
    *,
    failed: Bools | None = None,
    bootstrap: Bootstrap = DEFAULT,
) -> Selection:
    """Choose among `values` (candidates × items × systems) by their Spearman with `ratings` (items × systems).

    A text counts if it has a rating and a value of every candidate. A `failed` text (a mask like `values`) counts too:
    the candidate gets its mean value there, so that it gains nothing from failures. At level `document`, items with
    equal ratings do not count, and a candidate that gives all texts of an item the same value has 0 there.

    The estimate is that of the .632+ bootstrap (Efron and Tibshirani 1997): between the choices' values on the items
    left out and the value on all items, closer to the first the less sure the choice is. Its variance adds that between
    the choices to the chosen candidate's. Differences have max-t intervals: the best candidate is called worse in at
    most 5% of cases.

    Raises DataError for too few rated items, or if no candidate has a value.
    """
    statistic, items = _statistic(values, ratings, level, failed)
    if items < FEWEST_ITEMS[level]:
        raise DataError(
            f"choosing at level {level} needs at least {FEWEST_ITEMS[level]} items whose ratings differ between texts; "
            f"there {'is' if items == 1 else 'are'} {items}"
        )
    draws = _draw(statistic, items, bootstrap)
    observed = draws.observed
    if np.isnan(observed).all():
        raise DataError(f"no candidate has a Spearman with the ratings at level {level}: its values are all equal")
    ranked = _best_first(observed[None])[0]
    chosen, second = int(ranked[0]), int(ranked[1]) if (~np.isnan(observed)).sum() > 1 else None
    errors, critical = _simultaneous(draws, chosen, items)
    gaps = observed[chosen] - observed
    drawn = f"{bootstrap.n_resamples} resamples of items, seed {bootstrap.seed}"
    method = f"difference of {NAMES['spearman']} {OVER[level]}; simultaneous 95% max-t interval; {drawn}"
    differences = [
        Estimate("difference", gap, gap - critical * error, gap + critical * error, items, method)
        if gap == gap and place != chosen
        else None
        for place, (gap, error) in enumerate(zip(gaps.tolist(), errors.tolist(), strict=True))
    ]
    more = None
    if second is not None and gaps[second] > critical * errors[second]:
        more = 0
    elif second is not None:
        more = _more_items(_corrected(gaps[second], draws.gap_to_second), float(errors[second]), critical, items)
    return Selection(
        chosen=chosen,
        level=level,
        items=items,
        values=tuple(value if value == value else None for value in observed.tolist()),
        shares=tuple(draws.shares.tolist()),
        honest=_honest(draws, chosen, items, level, drawn),
        differences=tuple(differences),
        runner_up=second,
        more_items=more,
    )


def fill_failed(values: Floats, failed: Bools, level: Level) -> Floats:
    """Return candidates × items × systems with a candidate's mean at its failed texts, which then count for nothing.

    At level `document` it is the mean within the item, because that of all texts is an opinion on the item's order.
    """
    scored = np.where(failed, np.nan, values)
    axes = -1 if level == "document" else (-2, -1)
    known = (~np.isnan(scored)).sum(axis=axes, keepdims=True)
    middle = share(np.nansum(scored, axis=axes, keepdims=True), known)
    filled: Floats = np.where(failed, np.where(np.isnan(middle), 0.0, middle), values)
    return filled


def _statistic(values: Floats, ratings: Floats, level: Level, failed: Bools | None) -> tuple[Statistic, int]:
    """Return Spearman of each candidate with the ratings (resamples × candidates), and the number of items."""
    values = values if failed is None else fill_failed(values, failed, level)
    columns, last = rounded(np.concatenate([values, ratings[None]])), len(values)
    columns = np.where(np.isnan(columns).any(axis=0), np.nan, columns)
    if level != "document":
        used = columns[:, ~np.isnan(columns[-1]).all(axis=1)]
        of_pairs = coefficients(used, [(place, last) for place in range(last)], level, ["spearman"])
        return lambda counts: of_pairs(counts)[:, 0], used.shape[1]
    ends = [extreme.reduce(columns[-1], axis=1) for extreme in (np.fmin, np.fmax)]
    by_item = between(columns[:, ends[0] < ends[1]], "spearman")[:, :last, last]
    return mean(np.nan_to_num(by_item)), len(by_item)


@dataclass(frozen=True, slots=True)
class _Draws:
    """Spearman on all items (candidates), inside and outside resamples (resamples × candidates), and the choices."""

    observed: Floats
    inside: Floats
    outside: Floats
    order: Ints

    @property
    def shares(self) -> Floats:
        """How often each candidate was chosen."""
        return np.bincount(self.order[:, 0], minlength=len(self.observed)) / len(self.order)

    @property
    def gain(self) -> float:
        """How much better than the mean candidate the chosen one is outside."""
        best = np.take_along_axis(self.outside, self.order[:, :1], axis=1)[:, 0]
        return float(average(best - average(self.outside.T)))

    @property
    def gap_to_second(self) -> float:
        """How much better than the second the chosen candidate is outside."""
        first, second = np.take_along_axis(self.outside, self.order[:, :2], axis=1).T
        return float(average(first - second))


def _draw(statistic: Statistic, items: int, bootstrap: Bootstrap) -> _Draws:
    counts = np.concatenate(list(resample_weights(items, bootstrap.n_resamples, bootstrap.seed)))
    left_out = counts == 0
    counts, left_out = (each[left_out.any(axis=1)] for each in (counts, left_out))
    outside = statistic(left_out * (items / left_out.sum(axis=1, keepdims=True)))
    inside = rounded(statistic(counts))
    return _Draws(rounded(statistic(np.ones((1, items)))[0]), inside, outside, _best_first(inside))


def _best_first(values: Floats) -> Ints:
    """Return the places of each row's values, the highest first and NaN last; ties keep their order."""
    return np.argsort(-values, axis=1, kind="stable")


def _honest(draws: _Draws, chosen: int, items: int, level: Level, drawn: str) -> Estimate:
    method = f"{NAMES['spearman']} {OVER[level]}; .632+ bootstrap; {drawn}"
    naive, usual = float(draws.observed[chosen]), float(average(draws.observed))
    value = usual + _corrected(naive - usual, draws.gain)
    known, shares = np.nan_to_num(draws.observed), draws.shares
    between_choices = float(shares @ (known - shares @ known) ** 2)
    variance = float(_variance(draws.inside[:, chosen])) * items / (items - 1) + between_choices
    if level == "document" and abs(value) < 1:  # a mean of coefficients
        low, high, interval = mean_interval(value, variance * items, items, -1.0, 1.0)
    else:
        half = t_quantile((1 - CONFIDENCE) / 2, items - 1) * sqrt(variance)
        low, high, interval = max(-1.0, value - half), min(1.0, value + half), "95% t interval over items"
    return Estimate("spearman", value, low, high, items, f"{method}; {interval}")


def _corrected(naive: float, outside: float) -> float:
    """Return the .632+ estimate of a gain from its values on all items and on those left out (nearly none is 0)."""
    outside = min(naive, outside)
    overfitting = min(1.0, (naive - outside) / naive) if naive > 0 else 0.0
    return naive + _DRAWN / (1 - (1 - _DRAWN) * overfitting) * (outside - naive)


def _variance(resampled: Floats) -> Floats:
    return average((resampled - average(resampled)) ** 2)


def _simultaneous(draws: _Draws, chosen: int, items: int) -> tuple[Floats, float]:
    """Return the standard errors of the differences to the chosen candidate, and how many the intervals reach."""
    drawn = draws.inside[:, [chosen]] - draws.inside
    errors = np.sqrt(_variance(drawn))
    away = np.abs(drawn - (draws.observed[chosen] - draws.observed)) / np.where(errors > 0, errors, np.inf)
    reach = float(np.quantile(np.nan_to_num(away).max(axis=1), CONFIDENCE))
    # Student's t in place of the normal distribution, and the divisor n − 1.
    usual = t_quantile((1 - CONFIDENCE) / 2, items - 1) / NORMAL.inv_cdf((1 + CONFIDENCE) / 2)
    return errors * sqrt(items / (items - 1)), reach * usual


def _more_items(gap: float, error: float, critical: float, items: int) -> int | None:
    """Return how many items to add until a difference of `gap` is expected to be significant."""
    if gap <= 0:
        return None
    needed = ceil(items * ((critical + NORMAL.inv_cdf(_POWER)) * error / gap) ** 2)
    return max(1, needed - items) if needed - items <= MOST_ITEMS else None
