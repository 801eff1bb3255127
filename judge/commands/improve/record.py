"""The result of `judge criteria improve`: revisions of a criterion, and the gain of the best on unseen ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from judge.commands.criteria_diff.record import Agreement
from judge.core import plugins
from judge.core.records import Sample
from judge.stats.bootstrap import Bools, Bootstrap, Floats, mean_estimate
from judge.stats.coefficients import Level, within
from judge.stats.correlation import CorrelationWithRatings
from judge.stats.human_agreement import RatedColumn
from judge.stats.paired_differences import mean_differences
from judge.stats.selection import Selection, fill_failed, select
from judge.table import matrix

MOST_FAILED = 0.05
"""A revision with which the judge fails on a larger share of texts than before is not kept."""


class Part(NamedTuple):
    """One part of the rated data."""

    items: int
    texts: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One revision: why the writer made it, and its value on the training part.

    `skipped` says why it was not tried; `failed` counts failed judgments.
    """

    number: int
    reason: str = ""
    agreement: float | None = None
    failed: int = 0
    skipped: str = ""


@dataclass(frozen=True, repr=False)
class Improvement(plugins.Reported):
    """An attempt to improve a criterion.

    `training` was shown to the writer and chose among the revisions, `testing` was seen by no step. `selection` has the
    present wording first, then the revisions that were tried. `agreement` is that on the testing part before and after,
    None if no revision was better in training. `failed` counts failed judgments there, before and after. `written` is
    the new file, "" if the present wording stays. `diff` has the lines that differ.
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
    written: str = ""
    diff: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether any revision could be tried."""
        return any(not trial.skipped for trial in self.trials)

    @property
    def fails_more(self) -> bool:
        """Whether the judge fails on clearly more texts with the revision."""
        return self.failed[1] - self.failed[0] > MOST_FAILED * self.testing.texts

    @property
    def improved(self) -> bool:
        """Whether the gain on the testing part is significant."""
        agreement = self.agreement
        gain = agreement.difference if agreement else None
        return (
            bool(agreement and gain and agreement.is_significant and gain.value > 0)
            and not self.fails_more
        )


def choose_wording(
    rated: Sequence[Sample], rating: str, columns: Sequence[RatedColumn], level: Level
) -> Selection:
    """Choose among the columns of wordings, the present one first; it stays unless another one agrees better."""
    values, failed, ratings = _arrays(rated, rating, columns)
    return select(values, ratings, level, failed=failed)


def measure_gain(
    rated: Sequence[Sample], rating: str, columns: Sequence[RatedColumn], level: Level, seed: int
) -> Agreement | None:
    """Return the agreement of two columns (before, after) with people, or None if it is undefined.

    A failed text has the column's mean (`fill_failed`). At level `within-items`, an item counts if its ratings differ, and
    equal scores have a Spearman of 0 there: who gives all texts the same score gains nothing. The test is that of
    `mean_differences`. At level `item` it is the interval of `CorrelationWithRatings`.
    """
    values, failed, ratings = _arrays(rated, rating, columns)
    old, new = fill_failed(values, failed, level)
    ratings = np.where(np.isnan(old) | np.isnan(new), np.nan, ratings)
    if level != "within-items":
        against = CorrelationWithRatings(ratings, Bootstrap(seed=seed))
        before, after = (
            against.correlate(side).estimates.get((level, "spearman")) for side in (old, new)
        )
        if before is None or after is None:
            return None
        return Agreement(level, before, after, against.difference(new, old, level))
    varies = ~np.isnan(within(ratings, ratings, "spearman"))
    if not varies.any():
        return None
    sides: list[Floats] = [
        np.nan_to_num(within(side, ratings, "spearman"))[varies] for side in (old, new)
    ]
    first, second = (replace(mean_estimate(side, -1.0, 1.0), name="spearman") for side in sides)
    return Agreement(
        level, first, second, mean_differences((sides[1] - sides[0])[None], seed=seed)[0]
    )


def _arrays(
    rated: Sequence[Sample], rating: str, columns: Sequence[RatedColumn]
) -> tuple[Floats, Bools, Floats]:
    """Return values and failures (columns × items × systems) and ratings (items × systems)."""
    values = np.stack([matrix(rated, column.values) for column in columns])
    failed = ~np.isnan(
        np.stack([matrix(rated, dict.fromkeys(column.failed, 0.0)) for column in columns])
    )
    return values, failed, matrix(rated, {s.key: s.human[rating] for s in rated})
