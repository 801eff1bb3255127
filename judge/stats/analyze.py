"""Compute everything that the rows of a run support: means, differences, rankings, agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judge.core.records import Column, Estimate, Failure, Sample, Score
from judge.stats.agreement import alpha, repeats
from judge.stats.bootstrap import Bootstrap, item_means, one_thread
from judge.stats.calibration import Calibrated, calibrate, calibrate_overall
from judge.stats.compared_pairs import Orders, tie_label
from judge.stats.correlation_matrix import Matrix, matrices
from judge.stats.derived_columns import Overall, WeightedScores, overall
from judge.stats.pairwise import Ranking, rankings
from judge.stats.panels import judged_columns, panel_rows
from judge.stats.score_drivers import Drivers, TextFeatures, drivers
from judge.stats.system_differences import Comparison, compare
from judge.table import Table, Text, split_rows

# Nine matrices of 12 columns then take about a second (docs/decisions/0019).
_MATRIX_RESAMPLES = 500


@dataclass(frozen=True, slots=True)
class Analysis:
    """The table with a panel's values, and all statistics of it; `Result` describes each field."""

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


@one_thread
def analyze(
    samples: Sequence[Sample],
    columns: Sequence[Column],
    rows: Sequence[Score | Failure],
    *,
    orders: Orders | None = None,
    seed: int = 0,
    looks: Mapping[Text, TextFeatures] | None = None,
    people: bool = False,
    against: str = "",
) -> Analysis:
    """Compute means, differences and ranks, or rankings if the rows are comparisons.

    `orders` says in how many orders these were asked. A panel also gets its agreement. If the
    texts' `looks` are known, their correlations with the judge's scores are computed. With
    `people`, means are also estimated on the scale of the ratings. If the name of a system is
    given, each other system is only compared `against` it.
    """
    rows = [*rows, *panel_rows(columns, rows)]
    scores, failures = split_rows(rows)
    table = Table(tuple(samples), tuple(columns), scores, failures)
    bootstrap = Bootstrap(seed=seed)
    agreement = _agreement_of_panels(table, bootstrap)
    if orders is not None:
        ranked = _rankings(table, orders, against, seed)
        return Analysis(table, agreement=agreement, rankings=ranked)
    estimates = item_means(table)
    comparisons = compare(table, seed=seed, against=against)
    weighted = overall(table)
    if weighted is not None:
        estimates |= item_means(weighted.table)
        comparisons += compare(weighted.table, seed=seed, against=against)
    return Analysis(
        table,
        estimates,
        agreement=agreement,
        drivers=drivers(table, looks, bootstrap) if looks else (),
        comparisons=comparisons,
        overall=weighted.summary if weighted else None,
        repeats=repeats(table),
        calibrated=_calibrated_columns(table, weighted, against) if people else (),
        matrices=matrices(table, Bootstrap(_MATRIX_RESAMPLES, seed)),
    )


def _calibrated_columns(
    table: Table,
    weighted: WeightedScores | None,
    against: str,
) -> tuple[Calibrated, ...]:
    """Return the overall score, if there is one, and the criteria on people's scale."""
    criteria = calibrate(table, against)
    if weighted is None:
        return criteria
    total = calibrate_overall(table, weighted.table, weighted.summary.weights, against)
    return criteria if total is None else (total, *criteria)


def _agreement_of_panels(table: Table, bootstrap: Bootstrap) -> dict[str, Estimate]:
    """Return alpha between the judges of each panel by criterion, without undefined ones."""
    agreement: dict[str, Estimate] = {}
    for criterion, judges in judged_columns(table.columns).items():
        names = [column.name for column in judges]
        estimate = alpha(table, names, bootstrap)
        if estimate is not None:
            agreement[criterion] = estimate
    return agreement


def _rankings(
    table: Table, orders: Orders, against: str, seed: int
) -> tuple[Ranking, ...]:
    """Rank the systems of a table of comparisons by every criterion."""
    lengths: dict[Text, int] = {}
    if against:  # only win rates against one system are also estimated at equal length
        lengths = {sample.key: len(sample.output) for sample in table.samples}
    criteria = [column.name for column in table.columns if column.kind == "criterion"]
    source_items = {sample.item: sample.source_item for sample in table.samples}
    tie_labels = {column.name: tie_label(column) for column in table.columns}
    return rankings(
        table.scores,
        table.failures,
        table.systems,
        criteria,
        orders=orders,
        source_items=source_items,
        against=against,
        lengths=lengths,
        tie_labels=tie_labels,
        seed=seed,
    )
