"""Check people's ratings against the scale of their criterion.

`on_scale` leaves out what is outside of it, and `out_of_scale` says so. A new run refuses a few
ratings outside, which are slips.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.core.errors import DataError
from judge.core.format import first_names
from judge.core.records import Sample

_NAMED = 3  # ratings outside the scale in a message; as few may be typing errors
_STRAY = 0.1  # share of ratings; if more are outside, people used another scale

Ends = tuple[float, float]


def another_scale(outside: int, rating_count: int) -> bool:
    """Return whether `outside` of `rating_count` ratings show that people used another scale."""
    return outside > max(_NAMED, _STRAY * rating_count)


def are_verdicts(votes: Collection[float], lowest: float, highest: float) -> bool:
    """Return whether ratings are verdicts, 0 for fail and 1 for pass, not points of the scale.

    All are 0 or 1, and the scale is from 0 to 1, or it starts above 0 and some rating is 0.
    """
    if not set(votes) <= {0.0, 1.0}:
        return False
    on_own_scale = (lowest, highest) == (0.0, 1.0)
    # On a scale that starts above 0, a 0 can only be a verdict.
    is_below_scale = lowest > 0 and 0.0 in votes
    return on_own_scale or is_below_scale


def votes_on(sample: Sample, criterion: str) -> list[float]:
    """Return each rater's rating, or else people's mean."""
    votes = sample.ratings.get(criterion) or (sample.human.get(criterion),)
    return [vote for vote in votes if vote is not None]


def on_scale(
    samples: Sequence[Sample],
    criterion: str,
    lowest: float,
    highest: float,
) -> list[Sample]:
    """Return the samples without the ratings of a criterion that are outside its scale.

    No rating of it remains if people used another scale or gave verdicts. A text that loses its
    only rating is returned without one.
    """
    votes = [vote for sample in samples for vote in votes_on(sample, criterion)]
    n_outside = sum(not lowest <= vote <= highest for vote in votes)
    used_other_scale = another_scale(n_outside, len(votes))
    gave_verdicts = n_outside > 0 and are_verdicts(votes, lowest, highest)
    if used_other_scale or gave_verdicts:
        return [_with_votes(sample, criterion, []) for sample in samples]
    cleaned: list[Sample] = []
    for sample in samples:
        usable = [
            vote for vote in votes_on(sample, criterion) if lowest <= vote <= highest
        ]
        cleaned.append(_with_votes(sample, criterion, usable))
    return cleaned


def _with_votes(sample: Sample, criterion: str, usable: Collection[float]) -> Sample:
    """Return the sample with only the usable ratings of a criterion; itself if all are."""
    if len(usable) == len(votes_on(sample, criterion)):
        return sample
    human = {**sample.human}
    human.pop(criterion, None)
    if usable:
        human[criterion] = sum(usable) / len(usable)
    all_votes = sample.ratings.get(criterion, ())
    # None keeps the position, which says whose rating it is.
    votes = tuple(vote if vote in usable else None for vote in all_votes)
    ratings = {**sample.ratings, criterion: votes}
    return replace(sample, human=human, ratings=ratings)


def out_of_scale(
    samples: Sequence[Sample],
    scales: Mapping[str, Ends],
    marked: Collection[str] = (),
    lower_is_better: Collection[str] = (),
) -> Iterator[str]:
    """Yield a sentence per criterion that has ratings outside its scale, with their rows.

    A scale is from `lowest` to `highest`. Each rater's rating counts. If more than a tenth and
    more than three ratings are outside, people used another scale. On the `marked` criteria, which
    have `pass_at`, verdicts are compared with the judge's; 0 is a pass if `lower_is_better`.
    """
    for criterion, (lowest, highest) in scales.items():
        votes: list[float] = []
        outside: list[tuple[Sample, float]] = []
        for sample in samples:
            for vote in votes_on(sample, criterion):
                votes.append(vote)
                if not lowest <= vote <= highest:
                    outside.append((sample, vote))
        scale = f"its scale is {lowest:g} to {highest:g}"
        if outside and criterion in marked and are_verdicts(votes, lowest, highest):
            meaning = "fail and pass"
            if criterion in lower_is_better:
                meaning = "pass and fail"
            labels = f"People rated {criterion} with 0 and 1, which count as {meaning}"
            yield f"{labels}; {scale}: there is no calibration or list of disagreements."
        elif another_scale(len(outside), len(votes)):
            used = f"People rated {criterion} from {min(votes):g} to {max(votes):g}"
            limits = "there is no agreement, calibration or list of disagreements"
            yield f"{used}, and {scale}: correlations hold, but {limits}."
        elif outside:
            rows = [f"{vote:g} at {_location(sample)}" for sample, vote in outside]
            outside_scale = (
                f"Ratings of {criterion} outside its scale, {lowest:g} to {highest:g}"
            )
            names = first_names(rows, _NAMED)
            yield f"{outside_scale}: {names}. Only correlations count them."


@dataclass(frozen=True, slots=True)
class LocatedRating:
    """A rating and its location, such as `ratings.csv:3`."""

    value: float
    location: str


def require_on_scale(
    criterion: str,
    ratings: Sequence[LocatedRating],
    lowest: float,
    highest: float,
) -> None:
    """Raise DataError if a few ratings are outside the scale of their criterion.

    A few such ratings are slips. Many are ratings on another scale, which is no error, and neither
    are verdicts (0 and 1).
    """
    values = [rating.value for rating in ratings]
    outside = [rating for rating in ratings if not lowest <= rating.value <= highest]
    is_other_scale = another_scale(len(outside), len(values))
    if not outside or is_other_scale or are_verdicts(values, lowest, highest):
        return
    first_outside = outside[0]
    more = ""
    if len(outside) > 1:
        more = f" (and {len(outside) - 1:,} more)"
    raise DataError(
        f"{first_outside.location}: {criterion} is {first_outside.value:g}, outside its scale, "
        f"{lowest:g} to {highest:g}{more}. Correct the rating, remove it, or judge by a "
        "criterion with its scale"
    )


def require_samples_on_scale(
    samples: Sequence[Sample], scales: Mapping[str, Ends]
) -> None:
    """Raise DataError if a few ratings of the data are outside the scale of their criterion."""
    for criterion, (lowest, highest) in scales.items():
        ratings: list[LocatedRating] = []
        for sample in samples:
            location = _location(sample)
            ratings += [
                LocatedRating(vote, location) for vote in votes_on(sample, criterion)
            ]
        require_on_scale(criterion, ratings, lowest, highest)


def _location(sample: Sample) -> str:
    """Return the row of a text in its file, or else its item and system."""
    return sample.where or ", ".join(sample.key)
