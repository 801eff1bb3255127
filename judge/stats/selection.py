"""Choose the candidate that agrees best with people, and estimate its agreement without the winner's curse.

The best of several candidates looks better than it is, because chance helped to select it. `select` repeats the choice
on resampled items and measures each choice on the items left out (Tsamardinos et al. 2018). `benchmarks/choosing.py`
measures its bias and coverage.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isnan, sqrt

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

    A text counts if it has a rating and a value of every candidate, or if it `failed` (a mask like `values`): with the
    candidate's mean value, which gains nothing. At level `document`, items with equal ratings do not count, and a
    candidate that gives all texts of an item the same value has 0 there.

    The estimate is that of the .632+ bootstrap (Efron and Tibshirani 1997): between the choices' values on the items
    left out and the value on all items, closer to the first the less sure the choice is. Differences have max-t
    intervals: the best candidate is called worse in at most 5% of cases.

    Raises DataError for too few rated items, or if no candidate has a value.
    """
    statistic, items = _statistic(values, ratings, level, failed)
    if items < FEWEST_ITEMS[level]:
        raise DataError(
            f"choosing at level {level} needs at least {FEWEST_ITEMS[level]} items whose ratings differ between texts; "
            f"there {'is' if items == 1 else 'are'} {items}"
        )
    observed = rounded(statistic(np.ones((1, items)))[0])
    if np.isnan(observed).all():
        raise DataError(f"no candidate has a Spearman with the ratings at level {level}: its values are all equal")
    chosen, *others = _best_first(observed[None])[0].tolist()
    second = others[0] if (~np.isnan(observed)).sum() > 1 else None
    inside, outside = _inside_and_outside(statistic, items, bootstrap)
    order = _best_first(inside)
    by_rank = np.take_along_axis(outside, order, axis=1)
    shares = np.bincount(order[:, 0], minlength=len(observed)) / len(order)
    gaps = observed[chosen] - observed
    errors, critical = _simultaneous(inside[:, [chosen]] - inside, gaps, items)
    drawn = f"{bootstrap.n_resamples} resamples of items, seed {bootstrap.seed}"
    method = f"difference of {NAMES['spearman']} {OVER[level]}; simultaneous 95% max-t interval; {drawn}"
    differences = [
        Estimate("difference", gap, gap - half, gap + half, items, method)
        for gap, half in zip(gaps.tolist(), (critical * errors).tolist(), strict=True)
    ]
    more = None
    if second is not None:
        corrected = _corrected(gaps[second], average(by_rank[:, 0] - by_rank[:, 1]))
        significant = gaps[second] > critical * errors[second]
        more = 0 if significant else _more_items(corrected, float(errors[second]), critical, items)
    gain = average(by_rank[:, 0] - average(outside.T))
    return Selection(
        chosen=chosen,
        level=level,
        items=items,
        values=tuple(None if isnan(value) else value for value in observed.tolist()),
        shares=tuple(shares.tolist()),
        honest=_honest(observed, inside, chosen, gain=gain, shares=shares, items=items, level=level, drawn=drawn),
        differences=tuple(None if at == chosen or isnan(d.value) else d for at, d in enumerate(differences)),
        runner_up=second,
        more_items=more,
    )


def _inside_and_outside(statistic: Statistic, items: int, bootstrap: Bootstrap) -> tuple[Floats, Floats]:
    """Return the candidates' values on the items of each resample, and on those that it leaves out."""
    counts = np.concatenate(list(resample_weights(items, bootstrap.n_resamples, bootstrap.seed)))
    counts = counts[(counts == 0).any(axis=1)]
    left_out = counts == 0
    return rounded(statistic(counts)), statistic(left_out * (items / left_out.sum(axis=1, keepdims=True)))


def _honest(
    observed: Floats, inside: Floats, chosen: int, *, gain: Floats, shares: Floats, items: int, level: Level, drawn: str
) -> Estimate:
    """Return what to expect of the chosen candidate, which has this `gain` over the mean one on the items left out.

    The variance is its own and that between the choices.
    """
    usual, known = float(average(observed)), np.nan_to_num(observed)
    value = usual + _corrected(observed[chosen] - usual, gain)
    between_choices = float(shares @ (known - shares @ known) ** 2)
    variance = float(_variance(inside[:, chosen])) * items / (items - 1) + between_choices
    if level == "document" and abs(value) < 1:  # a mean of coefficients
        low, high, interval = mean_interval(value, variance * items, items, -1.0, 1.0)
    else:
        half = t_quantile((1 - CONFIDENCE) / 2, items - 1) * sqrt(variance)
        low, high, interval = max(-1.0, value - half), min(1.0, value + half), "95% t interval over items"
    method = f"{NAMES['spearman']} {OVER[level]}; .632+ bootstrap; {drawn}; {interval}"
    return Estimate("spearman", value, low, high, items, method)


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
        return coefficients(used, [(place, last) for place in range(last)], level, "spearman"), used.shape[1]
    ends = [extreme.reduce(columns[-1], axis=1) for extreme in (np.fmin, np.fmax)]
    by_item = between(columns[:, ends[0] < ends[1]], "spearman")[:, :last, last]
    return mean(np.nan_to_num(by_item)), len(by_item)


def _best_first(values: Floats) -> Ints:
    """Return the places of each row's values, the highest first and NaN last; ties keep their order."""
    return np.argsort(-values, axis=1, kind="stable")


def _corrected(naive: float, outside: Floats) -> float:
    """Return the .632+ estimate of a gain from its values on all items and on those left out (nearly none is 0)."""
    least = min(naive, float(outside))
    overfitting = min(1.0, (naive - least) / naive) if naive > 0 else 0.0
    return naive + _DRAWN / (1 - (1 - _DRAWN) * overfitting) * (least - naive)


def _variance(resampled: Floats) -> Floats:
    return average((resampled - average(resampled)) ** 2)


def _simultaneous(drawn: Floats, gaps: Floats, items: int) -> tuple[Floats, float]:
    """Return the standard errors of the differences to the chosen candidate, and how many the intervals reach."""
    errors = np.sqrt(_variance(drawn))
    away = np.abs(drawn - gaps) / np.where(errors > 0, errors, np.inf)
    reach = float(np.quantile(np.nan_to_num(away).max(axis=1), CONFIDENCE))
    # Student's t in place of the normal distribution, and the divisor n − 1.
    usual = t_quantile((1 - CONFIDENCE) / 2, items - 1) / NORMAL.inv_cdf((1 + CONFIDENCE) / 2)
    return errors * sqrt(items / (items - 1)), reach * usual


def _more_items(gap: float, error: float, critical: float, items: int) -> int | None:
    """Return how many items to add until a difference of `gap` is expected to be significant."""
    if gap <= 0:
        return None
    lacking = ceil(items * ((critical + NORMAL.inv_cdf(_POWER)) * error / gap) ** 2) - items
    return max(1, lacking) if lacking <= MOST_ITEMS else None
