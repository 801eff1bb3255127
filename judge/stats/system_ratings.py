"""The systems' means by people and by the judges, on the same texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
    if not judges or len(systems) < 2:
        return ()
    means: list[SystemRating] = []
    shared = _shared_texts(texts, judges)
    for system in systems:
        of_system = [sample for sample in shared if sample.system == system]
        if not of_system:
            return ()
        ratings = [sample.human[rating_name] for sample in of_system]
        by_judge: dict[str, float] = {}
        for judge in judges:
            scores = [judge.values[sample.key] for sample in of_system]
            by_judge[judge.name] = float(np.mean(scores))
        mean_rating = float(np.mean(ratings))
        means.append(SystemRating(system, len(of_system), mean_rating, by_judge))
    return tuple(means)


def _shared_texts(
    texts: Sequence[Sample], judges: Sequence[RatedColumn]
) -> list[Sample]:
    """Return the texts that every judge scored."""
    scored = {sample.key for sample in texts}
    for judge in judges:
        scored &= judge.values.keys()
    return [sample for sample in texts if sample.key in scored]


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
    rating_by_text = {sample.key: sample.human[rating_name] for sample in shared}
    ratings = matrix(shared, rating_by_text)
    # In the order of `matrix`.
    systems = list(dict.fromkeys(sample.system for sample in shared))
    contradictions: list[RatedAbove] = []
    for judge in judges:
        best = max(means, key=lambda mean: sign * mean.judges[judge.name])
        above = _furthest_above(ratings, systems, best.system, sign)
        if above is not None:
            contradiction = RatedAbove(
                judge.name,
                best.system,
                above.system,
                difference=sign * above.difference,
                p=above.p,
            )
            contradictions.append(contradiction)
    return tuple(contradictions)


class _Above(NamedTuple):
    """A system that is significantly better by `difference` points; ordered by these."""

    difference: float
    system: str
    p: float


def _furthest_above(
    ratings: Floats,
    systems: Sequence[str],
    best: str,
    sign: int,
) -> _Above | None:
    """Return the system that is furthest above the `best` one of a judge.

    `ratings` are items × systems; `sign` is −1 if lower ones are better. None if no system is
    significantly above it.
    """
    others = [index for index, system in enumerate(systems) if system != best]
    ratings_of_best = ratings[:, systems.index(best)]
    rows = sign * (ratings[:, others] - ratings_of_best[:, None]).T
    estimates = mean_differences(rows)
    p_values = [None if estimate is None else estimate.p for estimate in estimates]
    above: list[_Above] = []
    for index, estimate, p_value in zip(others, estimates, holm(p_values), strict=True):
        if estimate is None or p_value is None:
            continue
        if p_value < ALPHA and estimate.value > 0:
            above.append(_Above(estimate.value, systems[index], p_value))
    return max(above, default=None)
