"""The raters of a criterion, one by one: agreement with the others, and of each with an earlier rating."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from judge.core.records import Estimate, Sample
from judge.data.ratings import Ratings, base_name
from judge.stats.agreement import agree
from judge.stats.bootstrap import Bootstrap, Floats
from judge.stats.coefficients import average, of_pair, paired
from judge.stats.correlation import NAMES, OVER
from judge.table import matrix

_MIN_SPEARMAN_TEXTS = 3


@dataclass(frozen=True, slots=True)
class Votes:
    """Everyone's ratings of a criterion: `values` are raters × items × systems, NaN for missing ratings."""

    names: tuple[str, ...]
    values: Floats


@dataclass(frozen=True, slots=True)
class Rater:
    """One rater compared with the mean of the others, on the texts that another one rated too; None if undefined.

    `repeated` texts were rated twice, `same` of them with the same value; both need a file of ratings.
    """

    rater: str
    ratings: int
    mean: float
    spearman: Estimate | None
    alpha: Estimate | None
    repeated: int = 0
    same: int = 0


def named_votes(sample: Sample, criterion: str) -> Iterator[tuple[str, float | None]]:
    """Yield each rater and their rating. A rater without a name is the place in the list, such as "rater 1"."""
    votes = sample.ratings.get(criterion, ())
    names = sample.raters.get(criterion) or tuple(
        f"rater {place}" for place in range(1, len(votes) + 1)
    )
    return zip(names, votes, strict=True)


def votes_of(samples: Sequence[Sample], criterion: str) -> Votes:
    """Return the ratings by rater."""
    by_rater: dict[str, dict[tuple[str, str], float | None]] = {}
    for sample in samples:
        for name, vote in named_votes(sample, criterion):
            by_rater.setdefault(name, {})[sample.key] = vote
    values = [matrix(samples, votes) for votes in by_rater.values()]
    return Votes(tuple(by_rater), np.stack(values) if values else np.empty((0, 0, 0)))


def raters(
    samples: Sequence[Sample], criterion: str, bootstrap: Bootstrap, sheet: Ratings | None = None
) -> tuple[Rater, ...]:
    """Return the table of a criterion's raters, in the order of their first rating; `sheet` is the file of ratings.

    Empty if no text has a list of ratings.
    """
    votes = votes_of(samples, criterion)
    texts = {sample.key for sample in samples}
    sheet = sheet or Ratings()
    name = criterion if criterion in sheet.criteria else base_name(criterion)
    rows = [
        row for row in sheet.single if row.criterion == name and (row.item, row.system) in texts
    ]
    table = []
    for place, rater in enumerate(votes.names):
        own, others = votes.values[place], average(np.delete(votes.values, place, axis=0))
        known = own[~np.isnan(own)]
        if not len(known):
            continue
        rated = [row for row in rows if row.rater == rater]
        first = {(row.item, row.system): row.value for row in rated if not row.repeat}
        again = [
            (first[key], row.value)
            for row in rated
            if row.repeat and (key := (row.item, row.system)) in first
        ]
        table.append(
            Rater(
                rater,
                len(known),
                float(known.mean()),
                *_against(own, others, bootstrap),
                repeated=len(again),
                same=sum(one == other for one, other in again),
            )
        )
    return tuple(table)


def _against(
    own: Floats, others: Floats, bootstrap: Bootstrap
) -> tuple[Estimate | None, Estimate | None]:
    """Return Spearman and alpha of a rater against the mean of the others."""
    shared, other = pair = paired(own, others)
    texts = ~np.isnan(shared)
    if not texts.any():
        return None, None
    spearman = None
    if (n := int(texts.sum())) >= _MIN_SPEARMAN_TEXTS:
        resampled = bootstrap.resampled(
            of_pair(*pair, "item", "spearman"), len(own), int(texts.any(axis=1).sum())
        )
        spearman = bootstrap.estimate(
            "spearman", resampled, n, f"{NAMES['spearman']} {OVER['item']}"
        )
    agreement = agree(np.stack([shared, other]), ("alpha_interval",), bootstrap)
    return spearman, agreement.estimates.get("alpha_interval")
