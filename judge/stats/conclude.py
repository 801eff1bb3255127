"""From the rows of a run to all that they support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judge.records import Column, Estimate, Failure, Sample, Score
from judge.stats import panel
from judge.stats.agreement import alpha
from judge.stats.comparison import Ranking
from judge.stats.drivers import Drivers, Looks, Text, drivers
from judge.stats.rank import Orders, rankings
from judge.stats.resample import means
from judge.table import Table


@dataclass(frozen=True, slots=True)
class Findings:
    """The table with a panel's means in it, and what it supports (`report.Result` says what each of them is)."""

    table: Table
    estimates: Mapping[tuple[str, str], Estimate] = field(default_factory=dict)
    agreement: Mapping[str, Estimate] = field(default_factory=dict)
    rankings: tuple[Ranking, ...] = ()
    drivers: tuple[Drivers, ...] = ()


def conclude(
    samples: Sequence[Sample],
    columns: Sequence[Column],
    rows: Sequence[Score | Failure],
    *,
    orders: Orders | None = None,
    seed: int = 0,
    looks: Mapping[Text, Looks] | None = None,
) -> Findings:
    """Means, or, where the rows are comparisons in so many `orders`, rankings; of a panel, how far its judges agree.

    Where the texts' `looks` are known, also how far these move a judge's scores.
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
        moved = drivers(table, looks, seed=seed) if looks else ()
        return Findings(table, means(table, seed=seed), agreement, drivers=moved)
    judged = [column.name for column in columns if column.kind == "criterion"]
    ranked = rankings(scores, failures, table.systems, judged, orders=orders, seed=seed)
    return Findings(table, agreement=agreement, rankings=ranked)
