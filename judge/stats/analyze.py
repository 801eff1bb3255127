"""From the rows of a run to all that they support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from judge.core.records import Column, Estimate, Failure, Sample, Score
from judge.stats import panel
from judge.stats.agreement import alpha
from judge.stats.correlation_matrix import Matrix, matrices
from judge.stats.overall import Overall, overall
from judge.stats.pairwise import Ranking
from judge.stats.ppi import Calibrated, calibrate
from judge.stats.ranking import Orders, rankings
from judge.stats.resampling import means
from judge.stats.score_drivers import Drivers, Looks, Text, drivers
from judge.stats.self_consistency import repeats
from judge.stats.system_differences import Comparison, compare
from judge.table import Table


@dataclass(frozen=True, slots=True)
class Findings:
    """The table with a panel's means in it, and what it supports (`report.Result` says what each of them is)."""

    table: Table
    estimates: Mapping[tuple[str, str], Estimate] = field(default_factory=dict)
    agreement: Mapping[str, Estimate] = field(default_factory=dict)
    rankings: tuple[Ranking, ...] = ()
    drivers: tuple[Drivers, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    overall: Overall | None = None
    repeats: Mapping[tuple[str, str], Estimate] = field(default_factory=dict)
    calibrated: tuple[Calibrated, ...] = ()
    matrices: tuple[Matrix, ...] = ()


def conclude(
    samples: Sequence[Sample],
    columns: Sequence[Column],
    rows: Sequence[Score | Failure],
    *,
    orders: Orders | None = None,
    seed: int = 0,
    looks: Mapping[Text, Looks] | None = None,
    people: bool = False,
) -> Findings:
    """Means, differences and ranks, or, where the rows are comparisons in so many `orders`, rankings.

    Of a panel also how far its judges agree. Where the texts' `looks` are known, how far these move a judge's scores;
    with `people`, the means on the scale of the ratings that some of the texts have.
    """
    rows = [*rows, *panel.means(columns, rows)]
    scores = tuple(row for row in rows if isinstance(row, Score))
    failures = tuple(row for row in rows if isinstance(row, Failure))
    table = Table(tuple(samples), tuple(columns), scores, failures)
    alphas = {
        criterion: alpha(table, [column.name for column in judges], seed=seed)
        for criterion, judges in panel.judged(columns).items()
    }
    agreement = {criterion: estimate for criterion, estimate in alphas.items() if estimate is not None}
    if orders is None:
        return replace(
            _of_systems(table, seed),
            agreement=agreement,
            drivers=drivers(table, looks, seed=seed) if looks else (),
            calibrated=calibrate(table) if people else (),
        )
    judged = [column.name for column in columns if column.kind == "criterion"]
    ranked = rankings(scores, failures, table.systems, judged, orders=orders)
    return Findings(table, agreement=agreement, rankings=ranked)


def _of_systems(table: Table, seed: int) -> Findings:
    """Means, comparisons, correlations and repeats, and means of the overall score, where there is one."""
    estimates, compared = means(table, seed=seed), compare(table, seed=seed)
    weighed = overall(table)
    if weighed is not None:
        estimates |= means(weighed[1], seed=seed)
        compared += compare(weighed[1], seed=seed)
    return Findings(
        table,
        estimates,
        comparisons=compared,
        overall=weighed and weighed[0],
        repeats=repeats(table, seed=seed),
        matrices=matrices(table, seed),
    )
