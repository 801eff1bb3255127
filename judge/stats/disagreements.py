"""Where a judge and people disagree: the texts with the largest gaps, a confusion by level, and each rater."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from judge.core.records import Column, Estimate, Sample
from judge.data.ratings import Ratings, base_name
from judge.stats.agreement import values_by_label
from judge.stats.bootstrap import Bootstrap, one_thread
from judge.stats.calibration import calibration
from judge.stats.coefficients import LEVELS, Level
from judge.stats.correlation import CorrelationWithRatings
from judge.stats.human_agreement import RatedColumn, on_scale, votes_on
from judge.stats.raters import named_votes, votes_of
from judge.table import matrix

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
    """Counts of ratings by people's level (rows) and the judge's likeliest level of that text (columns).

    `labels` are the levels, ascending. A text that has only a mean rating counts once.
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        return sum(map(sum, self.counts))

    def share(self, distance: int) -> float:
        """Return the share of ratings that are at most this many levels away from the judge's."""
        near = sum(
            n
            for p, row in enumerate(self.counts)
            for j, n in enumerate(row)
            if abs(p - j) <= distance
        )
        return near / self.n


@dataclass(frozen=True, slots=True)
class AgainstRater:
    """The judge against one rater on the `texts` with both: Spearman by level, and judge minus rater in points."""

    rater: str
    texts: int
    spearman: Mapping[Level, Estimate]
    difference: Estimate | None


@dataclass(frozen=True, slots=True)
class Disagreements:
    """A judge against people on one criterion.

    `higher` and `lower` are the texts that the judge scores furthest above and below people's mean, the largest gap
    first, tied ones in the order of the data. They, `confusion` and `AgainstRater.difference` need ratings on the
    judge's scale; `confusion` also needs at most 11 levels. `raters` is empty for fewer than two, and has the 20 with
    most texts; `named` says whether the data name them.
    """

    criterion: str
    judge: str
    column: Column
    higher: tuple[Gap, ...]
    lower: tuple[Gap, ...]
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
    """Compare each judge's column with the ratings of its criterion; a column without any is left out.

    `sheet`, the file of the ratings, has the raters' comments.
    """
    comments: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in sheet.single if sheet else ():
        if row.comment and not row.repeat:
            comments.setdefault((row.item, row.system, row.criterion), {})[row.rater] = row.comment
    compared = []
    for judge in judges:
        name, column = judge.criterion, judge.scale
        texts = [s for s in samples if name in s.human and s.key in judge.values]
        if not texts or column is None:
            continue
        # Whether people used another scale shows in all of their ratings, also of texts that the judge failed to score.
        rated = [s for s in samples if name in s.human]
        same = [s for s in on_same_scale(column, name, rated) if s.key in judge.values]
        gaps = []
        for sample in same:
            score = judge.scores[sample.key]
            votes = tuple(
                (rater, vote) for rater, vote in named_votes(sample, name) if vote is not None
            )
            by_name = (comments.get((*sample.key, each)) for each in (name, base_name(name)))
            reason, quote = score.provenance.reason or "", score.provenance.quote or ""
            written = next(filter(None, by_name), {})
            people = sample.human[name]
            gaps.append(
                Gap(*sample.key, score.value, people, votes, reason, quote, sample.output, written)
            )
        gaps.sort(key=lambda gap: -round(abs(gap.size), _DIGITS))
        higher = tuple(gap for gap in gaps if round(gap.size, _DIGITS) > 0)[:_MOST_GAPS]
        lower = tuple(gap for gap in gaps if round(gap.size, _DIGITS) < 0)[:_MOST_GAPS]
        confusion = _confusion(judge, column, same) if same else None
        raters = tuple(_raters(judge, column, texts, same, bootstrap))
        named = any(sample.raters.get(name) for sample in texts)
        compared.append(
            Disagreements(name, judge.name, column, higher, lower, confusion, raters, named)
        )
    return tuple(compared)


def on_same_scale(column: Column, name: str, samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples with ratings of this name on the column's scale, without their other ratings of it."""
    low, high = column.low, column.high
    if low is None or high is None or not low < high:
        return []
    return [sample for sample in on_scale(samples, name, low, high) if name in sample.human]


def _confusion(judge: RatedColumn, column: Column, texts: Sequence[Sample]) -> Confusion | None:
    known = values_by_label(column)
    labels = sorted(known, key=lambda label: known[label])
    points = [known[label] for label in labels]
    if not 2 <= len(set(points)) == len(points) <= _MOST_LEVELS:
        return None
    middles = [(low + high) / 2 for low, high in pairwise(points)]
    counts = [[0] * len(points) for _ in points]
    for sample in texts:
        score = judge.scores[sample.key]
        likeliest = known.get(score.provenance.argmax or "", score.value)
        for vote in votes_on(sample, judge.criterion):
            counts[bisect_right(middles, vote)][bisect_right(middles, likeliest)] += (
                1  # half way is rounded up
            )
    return Confusion(tuple(labels), tuple(map(tuple, counts)))


def _raters(
    judge: RatedColumn,
    scale: Column,
    texts: Sequence[Sample],
    same: Sequence[Sample],
    bootstrap: Bootstrap,
) -> Iterator[AgainstRater]:
    votes = votes_of(texts, judge.criterion)
    counts = dict(
        zip(votes.names, (~np.isnan(votes.values)).sum(axis=(1, 2)).tolist(), strict=True)
    )
    by_rater = dict(zip(votes.names, votes.values, strict=True))
    known = [name for name in votes.names if counts[name]]
    if len(known) < 2:
        return
    values = matrix(texts, judge.values)
    for rater in sorted(known, key=lambda name: -counts[name])[:_MOST_RATERS]:
        ratings = by_rater[rater]
        estimates = CorrelationWithRatings(ratings, bootstrap).correlate(values).estimates
        spearman = {
            level: estimates[level, "spearman"]
            for level in LEVELS
            if (level, "spearman") in estimates
        }
        difference = None
        if same and scale.low is not None and scale.high is not None:
            own = {
                s.key: vote
                for s in same
                for name, vote in named_votes(s, judge.criterion)
                if name == rater
            }
            curve = calibration(values, matrix(texts, own), (scale.low, scale.high), bootstrap)
            difference = curve.bias if curve else None
        yield AgainstRater(rater, counts[rater], spearman, difference)
