"""The result of `judge criteria improve`.

It has the revisions of a criterion, and the gain of the best one on ratings that it has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from judge.commands.criteria_diff.record import Agreement
from judge.core import plugins
from judge.core.records import Criterion, Estimate, Sample
from judge.stats.bootstrap import Bools, Bootstrap, Floats, mean_estimate
from judge.stats.coefficients import Level, within
from judge.stats.correlation import CorrelationWithRatings
from judge.stats.paired_differences import mean_differences
from judge.stats.rated_columns import RatedColumn
from judge.stats.selection import Selection, fill_failed, select
from judge.table import matrix

MOST_FAILED = 0.05
"""A revision with which the judge fails on a larger share of texts than before is not kept."""


class Part(NamedTuple):
    """The size of one part of the rated data: its items and their texts."""

    items: int
    texts: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One revision of a criterion, tried on the training part.

    - `number`: 1 for the first revision.
    - `reason`: why the writer made it.
    - `agreement`: its agreement with people, None if it was not tried or has none.
    - `failed`: the number of failed judgments.
    - `skipped`: why it was not tried, "" if it was.
    """

    number: int
    reason: str = ""
    agreement: float | None = None
    failed: int = 0
    skipped: str = ""


@dataclass(frozen=True, repr=False)
class Improvement(plugins.Reported):
    """An attempt to improve a criterion.

    - `name`, `file`: the criterion and its file.
    - `training`, `testing`: the part of the ratings that chose among the revisions, and the part
      that no step has seen.
    - `trials`: the revisions, also those that were not tried. `chosen` is the number of the best
      one, None if the present wording is the best in training.
    - `level`: the level of all correlations.
    - `selection`: the present wording, then the revisions that were tried.
    - `agreement`: agreement with people on the testing part, before and after; None if no revision
      was better in training.
    - `failed`: failed judgments on the testing part, before and after.
    - `judgments`: the failed judgments and all judgments, of both parts and all wordings.
    - `criterion`: the better wording, None if the present one stays. `text` is its file's text,
      `written` the file if there is one, and `diff` the lines that differ.
    - `notes`: warnings about the data.
    """

    VIEW: ClassVar[str] = "judge.commands.improve.view:view"

    name: str
    file: str
    training: Part
    testing: Part
    trials: tuple[Trial, ...]
    level: Level
    selection: Selection | None = None
    chosen: int | None = None
    agreement: Agreement | None = None
    failed: tuple[int, int] = (0, 0)
    judgments: tuple[int, int] = (0, 0)
    criterion: Criterion | None = None
    text: str = ""
    written: str = ""
    diff: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        if self.improved:
            return f"<Improvement: {self.name}, revision {self.chosen} is better>"
        return f"<Improvement: {self.name}, the present wording stays>"

    @property
    def gain(self) -> Estimate | None:
        """The difference of the agreement with people on the testing part; None if unknown."""
        return self.agreement.difference if self.agreement else None

    @property
    def usable(self) -> bool:
        """Whether any revision could be tried."""
        return any(not trial.skipped for trial in self.trials)

    @property
    def fails_more(self) -> bool:
        """Whether the judge fails on clearly more texts with the revision."""
        failed_before, failed_after = self.failed
        return failed_after - failed_before > MOST_FAILED * self.testing.texts

    @property
    def improved(self) -> bool:
        """Whether the gain on the testing part is significant."""
        if self.gain is None or self.agreement is None or self.fails_more:
            return False
        return self.agreement.is_significant and self.gain.value > 0


def choose_wording(
    rated: Sequence[Sample],
    rating: str,
    columns: Sequence[RatedColumn],
    level: Level,
) -> Selection:
    """Choose among the columns of wordings, the present one first.

    The present one stays unless another one agrees better.
    """
    matrices = _matrices(rated, rating, columns)
    return select(matrices.values, matrices.ratings, level, failed=matrices.failed)


def measure_gain(
    rated: Sequence[Sample],
    rating: str,
    columns: Sequence[RatedColumn],
    level: Level,
    seed: int,
) -> Agreement | None:
    """Return the agreement of two columns (before, after) with people, or None if it is undefined.

    A failed text has the column's mean (`fill_failed`).

    - At level `within-items`, an item counts if its ratings differ. Equal scores have a Spearman of
      0 there, so a wording that gives all texts the same score gains nothing. The test is that of
      `mean_differences`.
    - At level `all-texts`, the test is the interval of `CorrelationWithRatings`.
    """
    matrices = _matrices(rated, rating, columns)
    old, new = fill_failed(matrices.values, matrices.failed, level)
    # Both are compared on the texts that both have scored.
    lacks_a_score = np.isnan(old) | np.isnan(new)
    ratings = np.where(lacks_a_score, np.nan, matrices.ratings)
    if level == "within-items":
        return _gain_within_items(ratings, old, new, seed)
    correlations = CorrelationWithRatings(ratings, Bootstrap(seed=seed))
    agreement_before = correlations.correlate(old).estimates.get((level, "spearman"))
    agreement_after = correlations.correlate(new).estimates.get((level, "spearman"))
    if agreement_before is None or agreement_after is None:
        return None
    difference = correlations.difference(new, old, level)
    return Agreement(
        level=level,
        before=agreement_before,
        after=agreement_after,
        difference=difference,
    )


def _gain_within_items(
    ratings: Floats,
    old: Floats,
    new: Floats,
    seed: int,
) -> Agreement | None:
    """Return the agreement within items; ratings and scores are items × systems."""
    # The ratings of an item correlate with themselves, unless they are all equal.
    ratings_vary = ~np.isnan(within(ratings, ratings, "spearman"))
    if not ratings_vary.any():
        return None
    rho_before = within(old, ratings, "spearman")[ratings_vary]
    rho_after = within(new, ratings, "spearman")[ratings_vary]
    # An item whose scores are all equal orders nothing: its correlation counts as 0.
    known_before: Floats = np.nan_to_num(rho_before)
    known_after: Floats = np.nan_to_num(rho_after)
    gains = known_after - known_before
    (difference,) = mean_differences(gains[None], seed=seed)
    mean_before = mean_estimate(known_before, -1.0, 1.0)
    mean_after = mean_estimate(known_after, -1.0, 1.0)
    return Agreement(
        level="within-items",
        before=replace(mean_before, name="spearman"),
        after=replace(mean_after, name="spearman"),
        difference=difference,
    )


@dataclass(frozen=True, slots=True)
class _Matrices:
    """Values and failures (columns × items × systems), and ratings (items × systems)."""

    values: Floats
    failed: Bools
    ratings: Floats


def _matrices(
    rated: Sequence[Sample],
    rating: str,
    columns: Sequence[RatedColumn],
) -> _Matrices:
    """Return the values and failures of the columns, and people's ratings, of the same texts."""
    values = np.stack([matrix(rated, column.values) for column in columns])
    failures = []
    for column in columns:
        # `matrix` has NaN for all texts but these, whatever their value.
        any_value_by_failed_text = dict.fromkeys(column.failed, 0.0)
        has_failed = ~np.isnan(matrix(rated, any_value_by_failed_text))
        failures.append(has_failed)
    rating_by_text = {sample.key: sample.human[rating] for sample in rated}
    return _Matrices(
        values=values,
        failed=np.stack(failures),
        ratings=matrix(rated, rating_by_text),
    )
