"""The raters of a criterion, one by one: severity, agreement with the others, consistency, drift and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan
from statistics import median

import numpy as np

from judge.core.records import Estimate, Sample
from judge.data.ratings import Ratings, base_name
from judge.stats.agreement import agree
from judge.stats.bootstrap import Bootstrap, Floats, sums_by_item
from judge.stats.coefficients import average, of_pair, paired, share
from judge.stats.correlation import NAMES, OVER
from judge.stats.paired_differences import mean_differences
from judge.table import matrix

_FAST = 1 / 3  # of the rater's own median time
_MIN_SPEARMAN_TEXTS, _MIN_DRIFT_TEXTS = 3, 10
_PER = 100  # ratings


@dataclass(frozen=True, slots=True)
class Votes:
    """Everyone's ratings of a criterion: `values` are raters × items × systems, NaN for missing ratings."""

    names: tuple[str, ...]
    values: Floats


@dataclass(frozen=True, slots=True)
class Rater:
    """One rater compared with the mean of the others, on the texts that another one rated too; None if undefined.

    `severity` is the rater's mean minus the others'. `spearman` and `alpha` are over these texts. The rest needs a file
    of ratings: `repeated` texts were rated twice, `same` of them with the same value; `drift` is the change of the
    deviation from the others per 100 ratings, in the order of the file; `seconds` is the median of one rating, and
    `fast` the share of ratings that took less than a third of it.
    """

    rater: str
    ratings: int
    mean: float
    severity: Estimate | None
    spearman: Estimate | None
    alpha: Estimate | None
    repeated: int = 0
    same: int = 0
    drift: Estimate | None = None
    seconds: float | None = None
    fast: float | None = None


def named_votes(sample: Sample, criterion: str) -> Iterator[tuple[str, float | None]]:
    """Yield each rater and their rating. A rater without a name is the place in the list, such as "rater 1"."""
    votes = sample.ratings.get(criterion, ())
    names = sample.raters.get(criterion) or tuple(f"rater {place}" for place in range(1, len(votes) + 1))
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
    rows = [row for row in sheet.single if row.criterion == name and (row.item, row.system) in texts]
    down = {item: place for place, item in enumerate(dict.fromkeys(s.source_item for s in samples))}
    across = {system: place for place, system in enumerate(dict.fromkeys(s.system for s in samples))}
    cells = {s.key: (down[s.source_item], across[s.system]) for s in samples}
    table = []
    for place, rater in enumerate(votes.names):
        own, others = votes.values[place], average(np.delete(votes.values, place, axis=0))
        known = own[~np.isnan(own)]
        if not len(known):
            continue
        rated = [row for row in rows if row.rater == rater]
        first = {(row.item, row.system): row.value for row in rated if not row.repeat}
        again = [(first[key], row.value) for row in rated if row.repeat and (key := (row.item, row.system)) in first]
        seconds = [row.seconds for row in rated if row.seconds is not None]
        usual = median(seconds) if seconds else None
        drift = _drift([(item, float((own - others)[cells[item, system]])) for item, system in first], bootstrap)
        table.append(
            Rater(
                rater,
                len(known),
                float(known.mean()),
                *_against(own, others, bootstrap),
                repeated=len(again),
                same=sum(one == other for one, other in again),
                drift=drift,
                seconds=usual,
                fast=None if usual is None else sum(each < _FAST * usual for each in seconds) / len(seconds),
            )
        )
    return tuple(table)


def _against(
    own: Floats, others: Floats, bootstrap: Bootstrap
) -> tuple[Estimate | None, Estimate | None, Estimate | None]:
    """Return severity, Spearman and alpha of a rater against the mean of the others."""
    shared, other = pair = paired(own, others)
    texts = ~np.isnan(shared)
    if not texts.any():
        return None, None, None
    (severity,) = mean_differences(average((own - others).T)[None])
    spearman = None
    if (n := int(texts.sum())) >= _MIN_SPEARMAN_TEXTS:
        resampled = bootstrap.resampled(of_pair(*pair, "item", "spearman"), len(own), int(texts.any(axis=1).sum()))
        spearman = bootstrap.estimate("spearman", resampled, n, f"{NAMES['spearman']} {OVER['item']}")
    agreement = agree(np.stack([shared, other]), ("alpha_interval",), bootstrap)
    return severity and replace(severity, name="severity"), spearman, agreement.estimates.get("alpha_interval")


def _drift(deviations: Sequence[tuple[str, float]], bootstrap: Bootstrap) -> Estimate | None:
    """Return the slope of the deviations, each of an item, on their place, per 100 ratings; None for few texts."""
    points = [(place / _PER, away, item) for place, (item, away) in enumerate(deviations) if not isnan(away)]
    if len(points) < _MIN_DRIFT_TEXTS:
        return None
    x, y = (np.array(side) for side in list(zip(*points, strict=True))[:2])
    x, y = x - x.mean(), y - y.mean()
    items = {item: place for place, item in enumerate(dict.fromkeys(item for *_, item in points))}
    item = np.array([items[item] for *_, item in points])
    sums = sums_by_item(item, np.stack([np.ones(len(x)), x, y, x * x, x * y], axis=1), len(items))

    def slope(counts: Floats) -> Floats:
        n, x, y, xx, xy = (counts @ sums).T
        return share(n * xy - x * y, n * xx - x * x)

    resampled = bootstrap.resampled(slope, len(items), len(items))
    return bootstrap.estimate("drift", resampled, len(points), "least squares slope, per 100 ratings")
