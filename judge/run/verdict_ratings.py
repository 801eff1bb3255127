"""Ratings that are verdicts in words, such as `pass` and `fail`, which count as 1 and 0."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from judge.core.errors import DataError
from judge.core.records import Column, Scale
from judge.core.verdicts import says_whether_it_passes, verdict
from judge.data.ratings import Rating, base_name
from judge.stats.rating_scales import are_verdicts


def with_readable_verdicts(
    ratings: Sequence[Rating],
    scales: Mapping[str, Scale | Column],
    lower_is_better: Collection[str],
) -> list[Rating]:
    """Return the ratings with those verdicts as numbers whose 1 and 0 would be misread.

    If the lower end of a scale is better, 0 passes, so that the ratings rise with the scores. The
    words yes and no are 1 and 0 on such a scale, too: yes, it is toxic. Raises DataError if 1 and 0
    would count as points of the scale, such as if all ratings on a scale from 1 to 5 are `pass`.
    """
    turned: set[str] = set()
    for criterion_name, scale in _with_base_names(scales).items():
        of_criterion = [
            rating for rating in ratings if rating.criterion == criterion_name
        ]
        votes = _verdicts(of_criterion, scale)
        if not votes or scale.low is None or scale.high is None:
            continue
        if not are_verdicts(votes, scale.low, scale.high):
            first_rating = of_criterion[0]
            raise DataError(
                f"{first_rating.where}: {criterion_name} is {first_rating.value!r}, and 1 for pass "
                "and 0 for fail would count as points of its scale, "
                f"{scale.low:g} to {scale.high:g}: rate in its points, or also rate a text as "
                "failed"
            )
        values = [str(rating.value) for rating in of_criterion]
        says_pass = all(map(says_whether_it_passes, values))
        if says_pass and criterion_name in lower_is_better:
            turned.add(criterion_name)
    readable: list[Rating] = []
    for rating in ratings:
        is_turned = rating.criterion in turned
        readable.append(_turned(rating) if is_turned else rating)
    return readable


def _with_base_names(scales: Mapping[str, Scale | Column]) -> dict[str, Scale | Column]:
    # Ratings of `fluency` are read for `fluency_5`, unless a criterion has just that name.
    by_base_name = {
        base_name(criterion_name): scale for criterion_name, scale in scales.items()
    }
    return by_base_name | dict(scales)


def _verdicts(ratings: Sequence[Rating], scale: Scale | Column) -> list[float]:
    """Return the verdicts that ratings are, none if one of them is a number or a label."""
    votes: list[float] = []
    for rating in ratings:
        is_label = rating.value in scale.labels
        vote = None if is_label else verdict(rating.value)
        if vote is None:
            return []
        votes.append(vote)
    return votes


def _turned(rating: Rating) -> Rating:
    return replace(rating, value=1 - (verdict(rating.value) or 0.0))
