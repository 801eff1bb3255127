"""The systems' means by people and by the judges, on the same texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judge.core.records import Sample
from judge.stats.bootstrap import Floats
from judge.stats.paired_differences import holm, mean_differences
from judge.stats.power import ALPHA
from judge.stats.rated_columns import RatedColumn
from judge.table import matrix


@dataclass(frozen=True, slots=True)
class SystemRating:
    """A system's mean rating by people, and each judge's mean score, over the same texts."""

    system: str
    texts: int
    people: float
    judges: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RatedAbove:
    """A system that people rate significantly better than the one that a judge scores highest.

    `difference` is that of people's means over the items that both systems have. `p` is that of the
    sign-flip test, after Holm's correction for all other systems.
    """

    judge: str
    judges_best: str
    system: str
    difference: float
    p: float


def system_ratings(
    texts: Sequence[Sample],
    rating_name: str,
    judges: Sequence[RatedColumn],
    systems: Collection[str],
) -> tuple[SystemRating, ...]:
    """Return the means of each system over the texts with a rating and a score of every judge.

    Empty without a judge, for one system, and if a system has no such text.
    """
    means: list[SystemRating] = []
    shared = _shared_texts(texts, judges)
    for system in systems:
        of_system = [sample for sample in shared if sample.system == system]
        if not of_system:
            return ()
        ratings = [sample.human[rating_name] for sample in of_system]
        by_judge = {
            judge.name: float(np.mean([judge.values[sample.key] for sample in of_system]))
            for judge in judges
        }
        rating = SystemRating(system, len(of_system), float(np.mean(ratings)), by_judge)
        means.append(rating)
    return tuple(means) if judges and len(means) > 1 else ()


def _shared_texts(texts: Sequence[Sample], judges: Sequence[RatedColumn]) -> list[Sample]:
    """Return the texts that every judge scored."""
    return [sample for sample in texts if all(sample.key in judge.values for judge in judges)]


def rated_above(
    texts: Sequence[Sample],
    rating_name: str,
    judges: Sequence[RatedColumn],
    means: Sequence[SystemRating],
    *,
    lower_is_better: bool,
) -> tuple[RatedAbove, ...]:
    """Return for each judge the system that people rate best, if significantly above its own."""
    if not means:
        return ()
    sign = -1 if lower_is_better else 1
    shared = _shared_texts(texts, judges)
    ratings = matrix(shared, {sample.key: sample.human[rating_name] for sample in shared})
    # In the order of `matrix`.
    systems = list(dict.fromkeys(sample.system for sample in shared))
    contradictions: list[RatedAbove] = []
    for judge in judges:
        best = max(means, key=lambda mean: sign * mean.judges[judge.name]).system
        above = _furthest_above(ratings, systems, best, sign)
        if above is not None:
            system, difference, p_value = above
            contradictions.append(RatedAbove(judge.name, best, system, difference, p_value))
    return tuple(contradictions)


def _furthest_above(
    ratings: Floats,
    systems: Sequence[str],
    best: str,
    sign: int,
) -> tuple[str, float, float] | None:
    """Return the system that is furthest above the best one, with the difference and its p.

    `ratings` are items × systems. None if no system is significantly above it.
    """
    others = [index for index, system in enumerate(systems) if system != best]
    of_best = ratings[:, systems.index(best)]
    rows = sign * (ratings[:, others] - of_best[:, None]).T
    estimates = mean_differences(rows)
    p_values = [None if estimate is None else estimate.p for estimate in estimates]
    above: list[tuple[float, str, float]] = []
    for index, estimate, p_value in zip(others, estimates, holm(p_values), strict=True):
        if estimate is None or p_value is None or p_value >= ALPHA or estimate.value <= 0:
            continue
        above.append((estimate.value, systems[index], p_value))
    if not above:
        return None
    difference, system, p_value = max(above)
    return system, sign * difference, p_value
