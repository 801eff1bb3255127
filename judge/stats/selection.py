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

    `chosen` is the candidate's position, `values` are the candidates' Spearman (None if undefined).
    """

    chosen: int
    level: Level
    items: int
    values: tuple[float | None, ...]


@one_thread
def select(
    values: Floats,
    ratings: Floats,
    level: Level = "within-items",
    *,
    failed: Bools | None = None,
) -> Selection:
    """Choose among candidates by their Spearman with people's ratings.

    `values` are candidates × items × systems, `ratings` items × systems. A text counts if it has a
    rating and a value of every candidate, or if it `failed` (a mask like `values`): with the
    candidate's mean value, which gains nothing. At level `within-items`, items with equal ratings
    do not count, and a candidate that gives all texts of an item the same value has 0 there. Of
    equal candidates the first is chosen.

    Raises DataError for too few rated items, or if no candidate has a value.
    """
    statistic, items = _statistic(values, ratings, level, failed)
    if items < FEWEST_ITEMS[level]:
        requirement = f"choosing at level {level} needs at least {FEWEST_ITEMS[level]}"
        shortage = _shortage(ratings, items, level)
        raise DataError(f"{requirement} {shortage}")
    all_once = np.ones((1, items))
    observed = rounded(statistic(all_once)[0])
    if np.isnan(observed).all():
        reason = _reason_undefined(values, ratings, failed)
        raise DataError(
            f"no candidate has a Spearman with the ratings at level {level}: {reason}"
        )
    known_correlations = tuple(
        None if isnan(value) else value for value in observed.tolist()
    )
    best = int(np.nanargmax(observed))
    return Selection(best, level, items, known_correlations)


def _shortage(ratings: Floats, items: int, level: Level) -> str:
    """Describe the items that a choice needs, and how many usable `items` there are."""
    if level == "within-items":
        rated = int(_vary(ratings).sum())
        kind = "items whose ratings differ between texts"
    else:
        is_unrated = np.isnan(ratings).all(axis=1)
        rated = int((~is_unrated).sum())
        kind = "rated items"
    verb = "is" if items == 1 else "are"
    if rated == items:
        return f"{kind}; there {verb} {items}"
    # The ratings are not to blame: texts without a value of every candidate do not count.
    return (
        f"{kind}; there are {rated}, of which {items} {verb} left with the texts that every "
        "candidate scored"
    )


def _vary(ratings: Floats) -> Bools:
    """Return which rows have two different values."""
    values = rounded(ratings)
    # `fmin` and `fmax` ignore NaN, without a warning for rows that have nothing else.
    lowest = np.fmin.reduce(values, axis=1)
    highest = np.fmax.reduce(values, axis=1)
    differ: Bools = lowest < highest
    return differ


def _reason_undefined(values: Floats, ratings: Floats, failed: Bools | None) -> str:
    """Return why no candidate has a correlation: which side does not vary."""
    scored = values if failed is None else np.where(failed, np.nan, values)
    has_value = ~np.isnan(scored).all(axis=0)
    is_known = ~np.isnan(ratings) & has_value
    if is_known.any() and np.ptp(rounded(ratings[is_known])) == 0:
        return "people's ratings are all equal"
    return "each one's values are all equal"


def fill_failed(values: Floats, failed: Bools, level: Level) -> Floats:
    """Return the values (candidates × items × systems) with a candidate's mean at its failed texts.

    These then count for nothing. At level `within-items` it is the mean within the item, because
    the mean of all texts would be an opinion on the item's order.
    """
    scored = np.where(failed, np.nan, values)
    axes = -1 if level == "within-items" else (-2, -1)
    number_scored = (~np.isnan(scored)).sum(axis=axes, keepdims=True)
    total_scored = np.nansum(scored, axis=axes, keepdims=True)
    mean_scored = share(total_scored, number_scored)
    # Without any score in the item, all its texts get the same value.
    substitute = np.where(np.isnan(mean_scored), 0.0, mean_scored)
    filled: Floats = np.where(failed, substitute, values)
    return filled


def _statistic(
    values: Floats,
    ratings: Floats,
    level: Level,
    failed: Bools | None,
) -> tuple[Statistic, int]:
    """Return Spearman of each candidate with the ratings, and the number of items.

    The statistic is resamples × candidates.
    """
    values = values if failed is None else fill_failed(values, failed, level)
    n_candidates = len(values)
    columns = rounded(np.concatenate([values, ratings[None]]))
    is_missing = np.isnan(columns).any(axis=0)
    complete = np.where(is_missing, np.nan, columns)
    complete_ratings = complete[-1]
    if level == "within-items":
        varying = complete[:, _vary(complete_ratings)]
        by_item = between(varying, "spearman")[:, :n_candidates, n_candidates]
        # A candidate that gives all texts of an item the same value has 0 there.
        return mean(np.nan_to_num(by_item)), len(by_item)
    has_rating = ~np.isnan(complete_ratings).all(axis=1)
    used = complete[:, has_rating]
    pairs = [(candidate, n_candidates) for candidate in range(n_candidates)]
    return coefficients(used, pairs, level, "spearman"), used.shape[1]
