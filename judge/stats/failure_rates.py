"""Failed judgments by system: the share of each, and whether the shares differ between systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from math import inf

from judge.core.records import (
    Column,
    Estimate,
    Failure,
    Provenance,
    Score,
    is_unwritten,
)
from judge.core.signature import Signature
from judge.stats.bootstrap import item_means
from judge.stats.system_differences import Comparison, Difference, compare
from judge.table import Table, Text

_FAILED = Column(
    name="failed judgments",
    kind="criterion",
    signature=Signature(),
    low=0.0,
    high=1.0,
    better="lower",
)


@dataclass(frozen=True, slots=True)
class SystemFailures:
    """The `failed` of a system's `judgments`.

    `share` (0–1) is the mean over items of the share of the item's judgments that failed, with the
    interval of `mean_interval` over items.
    """

    system: str
    failed: int
    judgments: int
    share: Estimate


@dataclass(frozen=True, slots=True)
class FailuresBySystem:
    """The failed judgments of each system, in the order of the systems, and their comparison.

    A difference in `comparison` is the share of one system minus that of another, paired by item,
    with the p of sign flips and Holm's correction over all pairs of systems. `comparison` is None
    without any judgment.
    """

    systems: tuple[SystemFailures, ...] = ()
    comparison: Comparison | None = None

    @property
    def most(self) -> SystemFailures | None:
        """The system with the largest share of failures, the first of several; None without any."""
        return max(self.systems, key=lambda system: system.share.value, default=None)

    @property
    def clearest_difference(self) -> Difference | None:
        """The difference with the smallest corrected p; None if there is no test."""
        if self.comparison is None:
            return None
        clearest: Difference | None = None
        lowest_p = inf
        for difference in self.comparison.differences:
            if difference.adjusted is not None and difference.adjusted < lowest_p:
                clearest = difference
                lowest_p = difference.adjusted
        return clearest

    @property
    def differ(self) -> bool:
        """Whether two systems differ significantly in their share of failures."""
        clearest = self.clearest_difference
        return clearest is not None and clearest.apart


def failures_by_system(
    table: Table,
    columns: Collection[str] | None = None,
    *,
    seed: int = 0,
) -> FailuresBySystem:
    """Return how many judgments of single texts failed for each system, and test the differences.

    `columns` are the criteria that count, together; the default is all columns of criteria. A text
    without a score and without a failure was not judged and does not count, nor does one that its
    system could not write. Judgments of one item depend on each other, so intervals and tests are
    over items.
    """
    if columns is None:
        columns = [
            column.name for column in table.columns if column.kind == "criterion"
        ]
    judged = Counter[Text]()
    failed = Counter[Text]()
    for row in table.rows():
        if row.column not in columns or row.opponent or is_unwritten(row):
            continue
        judged[row.key] += 1
        if isinstance(row, Failure):
            failed[row.key] += 1
    if not judged:
        return FailuresBySystem()
    # A text's share of failures becomes its score, so that items are tested as for any column.
    scores: list[Score] = []
    for (item, system), n_judged in judged.items():
        share = failed[item, system] / n_judged
        scores.append(
            Score(
                item=item,
                system=system,
                column=_FAILED.name,
                value=share,
                provenance=Provenance("single"),
            )
        )
    failure_table = Table(table.samples, (_FAILED,), tuple(scores))
    (comparison,) = compare(failure_table, seed=seed)
    shares = item_means(failure_table)
    failed_by_system = _by_system(failed)
    judged_by_system = _by_system(judged)
    systems: list[SystemFailures] = []
    for system in table.systems:
        share_of_system = shares.get((system, _FAILED.name))
        if share_of_system is None:
            continue
        n_failed = failed_by_system[system]
        n_judged = judged_by_system[system]
        systems.append(SystemFailures(system, n_failed, n_judged, share_of_system))
    return FailuresBySystem(tuple(systems), comparison)


def _by_system(counts: Counter[Text]) -> Counter[str]:
    """Add up the counts of a system's texts, which are by item and system."""
    totals = Counter[str]()
    for (_, system), number in counts.items():
        totals[system] += number
    return totals
