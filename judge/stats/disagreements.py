"""Where a judge and people disagree.

The result has the texts with the largest gaps, a confusion by level, and each rater.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from judge.core.records import Column, Estimate, Sample
from judge.data.ratings import Ratings, base_name
from judge.stats.agreement import values_by_label
from judge.stats.bootstrap import Bootstrap, Floats, one_thread
from judge.stats.calibration_curve import calibration
from judge.stats.coefficients import LEVELS, Level
from judge.stats.correlation import CorrelationWithRatings
from judge.stats.rated_columns import RatedColumn
from judge.stats.raters import named_votes, votes_of
from judge.stats.rating_scales import on_scale, votes_on
from judge.table import Text, matrix

_MOST_GAPS = 5  # on each side
_MOST_LEVELS = 11  # of a scale in a confusion
_MOST_RATERS = 20
_DIGITS = 9  # gaps that differ by less are tied


@dataclass(frozen=True, slots=True)
class Gap:
    """A text that the judge and people score differently.

    `people` is their mean, `ratings` are each rater's, `comments` are those by rater.
    """

    item: str
    system: str
    judge: float
    people: float
    ratings: tuple[tuple[str, float], ...]
    reason: str
    quote: str
    output: str
    comments: Mapping[str, str]

    @property
    def size(self) -> float:
        """The judge's score minus people's mean, in points of the scale."""
        return self.judge - self.people


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of ratings by people's and the judge's level.

    Rows are people's levels, columns the judge's likeliest level of that text. `labels` are the
    levels, ascending. A text that has only a mean rating counts once.
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        return sum(map(sum, self.counts))

    def share(self, distance: int) -> float:
        """Return the share of ratings that are at most this many levels away from the judge's."""
        near = 0
        for people_level, row in enumerate(self.counts):
            for judge_level, count in enumerate(row):
                if abs(people_level - judge_level) <= distance:
                    near += count
        return near / self.n


@dataclass(frozen=True, slots=True)
class AgainstRater:
    """The judge against one rater on the `texts` with both.

    `spearman` is by level, `difference` is judge minus rater in points.
    """

    rater: str
    texts: int
    spearman: Mapping[Level, Estimate]
    difference: Estimate | None


@dataclass(frozen=True, slots=True)
class Disagreements:
    """A judge against people on one criterion.

    `higher` and `lower` are the texts that the judge scores furthest above and below people's mean,
    the largest gap first, tied ones in the order of the data, at most 5 of the `n_higher` and
    `n_lower`. They, `confusion` and `AgainstRater.difference` need ratings on the judge's scale;
    `confusion` also needs at most 11 levels. `raters` is empty for fewer than two, and has the 20
    with most texts; `named` says whether the data name them.
    """

    criterion: str
    judge: str
    column: Column
    higher: tuple[Gap, ...]
    lower: tuple[Gap, ...]
    n_higher: int
    n_lower: int
    confusion: Confusion | None
    raters: tuple[AgainstRater, ...]
    named: bool


@one_thread
def disagreements(
    samples: Sequence[Sample],
    judges: Iterable[RatedColumn],
    bootstrap: Bootstrap,
    sheet: Ratings | None = None,
) -> tuple[Disagreements, ...]:
    """Compare each judge's column with the ratings of its criterion.

    A column without ratings is left out. `sheet`, the file of the ratings, has the raters'
    comments.
    """
    comments = _comments_by_text(sheet) if sheet else {}
    compared: list[Disagreements] = []
    for judge in judges:
        column = judge.scale
        rated = [sample for sample in samples if judge.criterion in sample.human]
        texts = [sample for sample in rated if sample.key in judge.values]
        if not texts or column is None:
            continue
        # Whether people used another scale shows in all of their ratings, also of texts that the
        # judge failed to score.
        comparable = on_same_scale(column, judge.criterion, rated)
        same_scale = [sample for sample in comparable if sample.key in judge.values]
        gaps = [_gap(judge, sample, comments) for sample in same_scale]
        # Tied gaps keep the order of the data.
        gaps.sort(key=_by_size)
        higher = [gap for gap in gaps if round(gap.size, _DIGITS) > 0]
        lower = [gap for gap in gaps if round(gap.size, _DIGITS) < 0]
        confusion: Confusion | None = None
        if same_scale:
            confusion = _confusion(judge, column, same_scale)
        rows = tuple(_raters(judge, column, texts, same_scale, bootstrap))
        named = any(sample.raters.get(judge.criterion) for sample in texts)
        disagreement = Disagreements(
            judge.criterion,
            judge.name,
            column,
            higher=tuple(higher[:_MOST_GAPS]),
            lower=tuple(lower[:_MOST_GAPS]),
            n_higher=len(higher),
            n_lower=len(lower),
            confusion=confusion,
            raters=rows,
            named=named,
        )
        compared.append(disagreement)
    return tuple(compared)


def _by_size(gap: Gap) -> float:
    """Return the key that sorts the largest gaps first, whatever their sign."""
    return -round(abs(gap.size), _DIGITS)


_Comments = Mapping[tuple[str, str, str], Mapping[str, str]]
"""Comments by rater, by item, system and criterion."""


def _comments_by_text(sheet: Ratings) -> _Comments:
    """Return the raters' comments on single texts, except comments of repeated ratings."""
    comments: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in sheet.single:
        if row.comment and not row.repeat:
            text = (row.item, row.system, row.criterion)
            comments.setdefault(text, {})[row.rater] = row.comment
    return comments


def _gap(judge: RatedColumn, sample: Sample, comments: _Comments) -> Gap:
    """Return the judge's and people's scores of a text."""
    criterion = judge.criterion
    score = judge.scores[sample.key]
    ratings: list[tuple[str, float]] = []
    for rater, vote in named_votes(sample, criterion):
        if vote is not None:
            ratings.append((rater, vote))
    # The sheet may call the criterion `fluency_5` by its base name, `fluency`.
    comments_by_rater = comments.get((*sample.key, criterion))
    if comments_by_rater is None:
        comments_by_rater = comments.get((*sample.key, base_name(criterion)), {})
    provenance = score.provenance
    return Gap(
        sample.item,
        sample.system,
        judge=score.value,
        people=sample.human[criterion],
        ratings=tuple(ratings),
        reason=provenance.reason or "",
        quote=provenance.quote or "",
        output=sample.output,
        comments=comments_by_rater,
    )


def on_same_scale(
    column: Column, criterion: str, samples: Sequence[Sample]
) -> list[Sample]:
    """Return the samples with ratings of this name on the column's scale.

    Their other ratings of this name are left out.
    """
    lowest = column.low
    highest = column.high
    if lowest is None or highest is None or not lowest < highest:
        return []
    usable = on_scale(samples, criterion, lowest, highest)
    return [sample for sample in usable if criterion in sample.human]


def _confusion(
    judge: RatedColumn, column: Column, texts: Sequence[Sample]
) -> Confusion | None:
    """Count ratings by people's and the judge's levels; None without 2 to 11 distinct levels."""
    value_by_label = values_by_label(column)
    labels = sorted(value_by_label, key=value_by_label.__getitem__)
    points = [value_by_label[label] for label in labels]
    if len(set(points)) < len(points) or not 2 <= len(points) <= _MOST_LEVELS:
        return None
    middles = [
        (lower_point + upper_point) / 2 for lower_point, upper_point in pairwise(points)
    ]
    counts = [[0] * len(points) for _ in points]
    for sample in texts:
        score = judge.scores[sample.key]
        # The most likely label, not the mean: a split between 1 and 5 is no 3.
        likeliest = value_by_label.get(score.provenance.argmax or "", score.value)
        judge_level = bisect_right(middles, likeliest)  # half way is rounded up
        for vote in votes_on(sample, judge.criterion):
            people_level = bisect_right(middles, vote)
            counts[people_level][judge_level] += 1
    rows = tuple(tuple(row) for row in counts)
    return Confusion(tuple(labels), rows)


def _raters(
    judge: RatedColumn,
    scale: Column,
    texts: Sequence[Sample],
    same_scale: Sequence[Sample],
    bootstrap: Bootstrap,
) -> Iterator[AgainstRater]:
    """Yield the judge against each rater, those with most texts first.

    There is nothing to yield for fewer than two raters.
    """
    votes = votes_of(texts, judge.criterion)
    is_rated = ~np.isnan(votes.values)
    numbers = is_rated.sum(axis=(1, 2)).tolist()
    texts_of_rater = dict(zip(votes.names, numbers, strict=True))
    ratings_of_rater = dict(zip(votes.names, votes.values, strict=True))
    raters = [rater_name for rater_name in votes.names if texts_of_rater[rater_name]]
    if len(raters) < 2:
        return
    values = matrix(texts, judge.values)
    raters.sort(key=lambda rater_name: -texts_of_rater[rater_name])
    for rater in raters[:_MOST_RATERS]:
        spearman = _spearman_by_level(values, ratings_of_rater[rater], bootstrap)
        difference: Estimate | None = None
        if same_scale and scale.low is not None and scale.high is not None:
            ratings = matrix(texts, _ratings_by(rater, same_scale, judge.criterion))
            # One bin, the whole scale: only the bias is needed.
            curve = calibration(values, ratings, (scale.low, scale.high), bootstrap)
            if curve is not None:
                difference = curve.bias
        yield AgainstRater(rater, texts_of_rater[rater], spearman, difference)


def _spearman_by_level(
    values: Floats,
    ratings: Floats,
    bootstrap: Bootstrap,
) -> dict[Level, Estimate]:
    """Return Spearman of a judge and a rater (items × systems), at the levels that have one."""
    correlation = CorrelationWithRatings(ratings, bootstrap).correlate(values)
    spearman: dict[Level, Estimate] = {}
    for level in LEVELS:
        estimate = correlation.estimates.get((level, "spearman"))
        if estimate is not None:
            spearman[level] = estimate
    return spearman


def _ratings_by(
    rater: str,
    samples: Sequence[Sample],
    criterion: str,
) -> dict[Text, float | None]:
    """Return one rater's ratings by text."""
    ratings: dict[Text, float | None] = {}
    for sample in samples:
        for voter, vote in named_votes(sample, criterion):
            if voter == rater:
                ratings[sample.key] = vote
    return ratings
