"""The raters of a criterion, one by one.

Each is compared with the others, and with earlier ratings of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from judge.core.records import Estimate, Sample
from judge.data.ratings import Rating, Ratings, base_name
from judge.stats.agreement import agree
from judge.stats.bootstrap import Bootstrap, Floats, without_nan
from judge.stats.coefficients import Level, average, of_pair, paired, within
from judge.stats.correlation import NAMES, OVER, mean_over_items, usual_level
from judge.table import Text, matrix

_MIN_SPEARMAN_TEXTS = 3  # with two, every coefficient is 1 or −1


@dataclass(frozen=True, slots=True)
class Votes:
    """Everyone's ratings of a criterion.

    `values` are raters × items × systems, NaN for missing ratings.
    """

    names: tuple[str, ...]
    values: Floats


@dataclass(frozen=True, slots=True)
class Rater:
    """One rater compared with the mean of the others, None if undefined.

    Only texts that another rater rated too count. `repeated` texts were rated twice, `same` of them
    with the same value; both need a file of ratings.
    """

    rater: str
    ratings: int
    mean: float
    spearman: Estimate | None
    alpha: Estimate | None
    repeated: int = 0
    same: int = 0


def named_votes(sample: Sample, criterion: str) -> Iterator[tuple[str, float | None]]:
    """Yield each rater and their rating.

    A rater without a name is called by the position in the list, such as "rater 1".
    """
    votes = sample.ratings.get(criterion, ())
    names = sample.raters.get(criterion)
    if not names:
        numbers = range(1, len(votes) + 1)
        names = tuple(f"rater {number}" for number in numbers)
    return zip(names, votes, strict=True)


def votes_of(samples: Sequence[Sample], criterion: str) -> Votes:
    """Return the ratings by rater."""
    by_rater: dict[str, dict[Text, float | None]] = {}
    for sample in samples:
        for rater, vote in named_votes(sample, criterion):
            by_rater.setdefault(rater, {})[sample.key] = vote
    values = [matrix(samples, votes) for votes in by_rater.values()]
    stacked = np.stack(values) if values else np.empty((0, 0, 0))
    return Votes(tuple(by_rater), stacked)


def raters(
    samples: Sequence[Sample],
    criterion: str,
    bootstrap: Bootstrap,
    sheet: Ratings | None = None,
    *,
    level: Level | None = None,
) -> tuple[Rater, ...]:
    """Return the table of a criterion's raters, in the order of their first rating.

    `sheet` is the file of ratings. `level` is that of their correlations, by default the usual one
    for the rated texts. Empty if no text has a list of ratings.
    """
    votes = votes_of(samples, criterion)
    if level is None:
        level = usual_level(sample for sample in samples if criterion in sample.human)
    rows = _rows_of_sheet(sheet, samples, criterion) if sheet else []
    table: list[Rater] = []
    for index, rater in enumerate(votes.names):
        own_ratings = votes.values[index]
        known_ratings = without_nan(own_ratings)
        if not len(known_ratings):
            continue
        other_votes = np.delete(votes.values, index, axis=0)
        mean_of_others = average(other_votes)
        against = _against(own_ratings, mean_of_others, level, bootstrap)
        repeated = _repeated([row for row in rows if row.rater == rater])
        same = sum(first_vote == second_vote for first_vote, second_vote in repeated)
        row = Rater(
            rater,
            ratings=len(known_ratings),
            mean=float(known_ratings.mean()),
            spearman=against.spearman,
            alpha=against.alpha,
            repeated=len(repeated),
            same=same,
        )
        table.append(row)
    return tuple(table)


def _rows_of_sheet(
    sheet: Ratings, samples: Sequence[Sample], criterion: str
) -> list[Rating]:
    """Return the sheet's ratings of these texts by this criterion."""
    # The sheet may call the criterion `fluency_5` by its base name, `fluency`.
    criterion_name = criterion if criterion in sheet.criteria else base_name(criterion)
    texts = {sample.key for sample in samples}
    on_criterion = [row for row in sheet.single if row.criterion == criterion_name]
    return [row for row in on_criterion if (row.item, row.system) in texts]


def _repeated(rows: Sequence[Rating]) -> list[tuple[float | str, float | str]]:
    """Return the first and the later value of one rater's repeated ratings."""
    first_rows = [row for row in rows if not row.repeat]
    first_value = {(row.item, row.system): row.value for row in first_rows}
    repeated: list[tuple[float | str, float | str]] = []
    for row in rows:
        text = (row.item, row.system)
        if row.repeat and text in first_value:
            repeated.append((first_value[text], row.value))
    return repeated


@dataclass(frozen=True, slots=True)
class _AgainstOthers:
    """The agreement of a rater with the mean of the others, None if undefined."""

    spearman: Estimate | None = None
    alpha: Estimate | None = None


def _against(
    ratings: Floats,
    mean_of_others: Floats,
    level: Level,
    bootstrap: Bootstrap,
) -> _AgainstOthers:
    """Compare a rater with the mean of the others (both items × systems)."""
    own_ratings, other_ratings = paired(ratings, mean_of_others)
    rated = ~np.isnan(own_ratings)
    n_texts = int(rated.sum())
    if not n_texts:
        return _AgainstOthers()
    spearman = None
    method = f"{NAMES['spearman']} {OVER[level]}"
    if level == "within-items":
        by_item = within(own_ratings, other_ratings, "spearman")
        spearman = mean_over_items("spearman", by_item, method, bootstrap.confidence)
    elif n_texts >= _MIN_SPEARMAN_TEXTS:
        statistic = of_pair(own_ratings, other_ratings, "all-texts", "spearman")
        n_items = int(rated.any(axis=1).sum())
        resampled = bootstrap.resampled(statistic, len(ratings), n_items)
        spearman = bootstrap.estimate("spearman", resampled, n_texts, method)
    both = np.stack([own_ratings, other_ratings])
    agreement = agree(both, ("alpha_interval",), bootstrap)
    return _AgainstOthers(spearman, agreement.estimates.get("alpha_interval"))
