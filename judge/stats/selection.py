"""Choose the candidate that agrees best with people, such as a wording of a criterion."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

import numpy as np

from judge.core.errors import DataError
from judge.stats.bootstrap import Bools, Floats, Statistic, one_thread
from judge.stats.coefficients import Level, between, coefficients, mean, rounded, share
from judge.stats.correlation import FEWEST_ITEMS


@dataclass(frozen=True, slots=True)
class Selection:
    """The candidate with the highest Spearman, over `items` rated items.

    `values` are the candidates' Spearman (None if undefined).
    """

    chosen: int
    level: Level
    items: int
    values: tuple[float | None, ...]


@one_thread
def select(
    values: Floats, ratings: Floats, level: Level = "document", *, failed: Bools | None = None
) -> Selection:
    """Choose among `values` (candidates × items × systems) by their Spearman with `ratings` (items × systems).

    A text counts if it has a rating and a value of every candidate, or if it `failed` (a mask like `values`): with the
    candidate's mean value, which gains nothing. At level `document`, items with equal ratings do not count, and a
    candidate that gives all texts of an item the same value has 0 there. Of equal candidates the first is chosen.

    Raises DataError for too few rated items, or if no candidate has a value.
    """
    statistic, items = _statistic(values, ratings, level, failed)
    if items < FEWEST_ITEMS[level]:
        needed = f"choosing at level {level} needs at least {FEWEST_ITEMS[level]}"
        raise DataError(f"{needed} {_shortage(ratings, items, level)}")
    observed = rounded(statistic(np.ones((1, items)))[0])
    if np.isnan(observed).all():
        raise DataError(
            f"no candidate has a Spearman with the ratings at level {level}: {_constant(values, ratings, failed)}"
        )
    known = tuple(None if isnan(value) else value for value in observed.tolist())
    return Selection(int(np.nanargmax(observed)), level, items, known)


def _shortage(ratings: Floats, items: int, level: Level) -> str:
    """Describe the items that a choice needs, and how many of the `items` that it can use there are."""
    rated = (
        _vary(ratings) if level == "document" else np.asarray(~np.isnan(ratings).all(axis=1))
    ).sum()
    kind = "items whose ratings differ between texts" if level == "document" else "rated items"
    if rated == items:
        return f"{kind}; there {'is' if items == 1 else 'are'} {items}"
    # The ratings are not to blame: texts without a value of every candidate do not count.
    usable = "is" if items == 1 else "are"
    return f"{kind}; there are {rated}, of which {items} {usable} left with the texts that every candidate scored"


def _vary(ratings: Floats) -> Bools:
    """Return which rows have two different values."""
    lowest, highest = (extreme.reduce(rounded(ratings), axis=1) for extreme in (np.fmin, np.fmax))
    differ: Bools = lowest < highest
    return differ


def _constant(values: Floats, ratings: Floats, failed: Bools | None) -> str:
    """Return which side does not vary."""
    scored = values if failed is None else np.where(failed, np.nan, values)
    known = ~np.isnan(ratings) & ~np.isnan(scored).all(axis=0)
    if known.any() and np.ptp(rounded(ratings[known])) == 0:
        return "people's ratings are all equal"
    return "each one's values are all equal"


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


def _statistic(
    values: Floats, ratings: Floats, level: Level, failed: Bools | None
) -> tuple[Statistic, int]:
    """Return Spearman of each candidate with the ratings (resamples × candidates), and the number of items."""
    values = values if failed is None else fill_failed(values, failed, level)
    columns, last = rounded(np.concatenate([values, ratings[None]])), len(values)
    columns = np.where(np.isnan(columns).any(axis=0), np.nan, columns)
    if level != "document":
        used = columns[:, ~np.isnan(columns[-1]).all(axis=1)]
        return coefficients(
            used, [(place, last) for place in range(last)], level, "spearman"
        ), used.shape[1]
    by_item = between(columns[:, _vary(columns[-1])], "spearman")[:, :last, last]
    return mean(np.nan_to_num(by_item)), len(by_item)
