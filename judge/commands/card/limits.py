"""Compare intervals with the limits of a line, and say how many texts would decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import asin, ceil, sqrt

from judge.commands.card.card import FEWEST, Mark
from judge.core.records import Estimate
from judge.stats.paired_differences import ALL_EQUAL

_MOST_NEEDED = 10_000
"""A larger number of needed texts is not named."""


def ends(estimate: Estimate) -> tuple[float, float] | None:
    """Return the ends of the interval; None without one.

    Equal values of enough items have no interval, but leave no doubt.
    """
    if estimate.low is not None and estimate.high is not None:
        return estimate.low, estimate.high
    if ALL_EQUAL in estimate.method and estimate.n >= FEWEST:
        return estimate.value, estimate.value
    return None


def compare(estimate: Estimate, lower_limit: float, upper_limit: float) -> Mark:
    """Return whether an interval is inside the limits, outside, or neither."""
    interval = ends(estimate)
    if interval is None:
        return "unclear"
    low, high = interval
    if lower_limit <= low and high <= upper_limit:
        return "pass"
    if high < lower_limit or low > upper_limit:
        return "fail"
    return "unclear"


def needed(
    estimate: Estimate,
    limits: Sequence[float],
    counted: str,
    unit: str = "",
) -> str:
    """Say how many texts would move the interval to one side of the limits next to its value.

    The distance of an end from the value is assumed to fall with the square root of their number,
    after the transformation for the unit.
    """
    interval = ends(estimate)
    if interval is None:
        return f"too few {counted} for an interval: {FEWEST} or more are needed"
    if not limits or estimate.value in limits:
        return f"more {counted} decide"
    low, high = interval
    transform = _TRANSFORMATIONS.get(unit, float)
    transformed_value = transform(estimate.value)
    ratio = 0.0
    for limit in _limits_beside(estimate.value, limits):
        end = low if limit < estimate.value else high
        distance_of_end = abs(transform(end) - transformed_value)
        distance_of_limit = abs(transform(limit) - transformed_value)
        ratio = max(ratio, distance_of_end / distance_of_limit)
    texts = ceil(estimate.n * ratio**2)
    if texts > _MOST_NEEDED:
        return f"the value is at the limit: more than {_MOST_NEEDED:,} {counted} are needed"
    texts = max(texts, estimate.n + 1)
    return f"about {texts:,} {counted} are needed"


def _limits_beside(value: float, limits: Sequence[float]) -> list[float]:
    """Return the nearest limits below and above the value, as far as there are any."""
    beside = []
    below = [limit for limit in limits if limit < value]
    if below:
        beside.append(max(below))
    above = [limit for limit in limits if limit > value]
    if above:
        beside.append(min(above))
    return beside


def _arcsine(share: float) -> float:
    """Return the arcsine of the root, which stabilises the variance of a share."""
    within_range = min(1.0, max(0.0, share))
    return asin(sqrt(within_range))


def _square(spread: float) -> float:
    """Return the mean square. The interval of a spread is the root of its interval."""
    return spread**2


_TRANSFORMATIONS: Mapping[str, Callable[[float], float]] = {
    "share": _arcsine,
    "sd": _square,
}
"""By unit: on a transformed scale, the ends of an interval approach the value evenly as n grows."""
