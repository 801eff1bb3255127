"""Compute everything that the rows of a run support: means, differences, rankings, agreement.

`analyze` combines it. `overall` weights the criteria of each text into one number; `panel_means` averages the judges of
a panel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np

from judge.core.records import IDENTICAL, Column, Estimate, Failure, Provenance, Sample, Score
from judge.stats.agreement import alpha, repeats
from judge.stats.bootstrap import Bootstrap, item_means, one_thread
from judge.stats.calibration import Calibrated, calibrate
from judge.stats.correlation import Matrix, matrices
from judge.stats.pairwise import Orders, Ranking, rankings
from judge.stats.score_drivers import Drivers, Text, TextFeatures, drivers
from judge.stats.system_differences import Comparison, compare
from judge.table import Table

NAME = "overall"
"""The column's name."""
_PROVENANCE = Provenance("overall")
_MATRIX_RESAMPLES = 500


@dataclass(frozen=True, slots=True)
class Overall:
    """The weights of the column `overall`: each criterion's share; the shares sum to 1.

    Values are from 0 (worst end of the criteria's scales) to 1. `n` of `of` texts have a value: those with a value for
    every criterion.
    """

    weights: Mapping[str, float]
    n: int
    of: int

    @property
    def column(self) -> Column:
        """The column of these values."""
        signature = " + ".join(f"{share:.4g} {name}" for name, share in self.weights.items())
        return Column(NAME, "criterion", f"{NAME}|{signature}|0–1", 0.0, 1.0, criterion=NAME)


@dataclass(frozen=True, slots=True)
class WeightedScores:
    """The weights of the column `overall`, and a table of the same texts that contains it."""

    summary: Overall
    table: Table


def overall(table: Table) -> WeightedScores | None:
    """Compute the weighted mean of the criteria's columns (a panel's means) and a table that contains it.

    Return None for fewer than two weighted criteria, if a column is already called `overall`, and for comparisons.
    """
    columns = [
        column
        for column in table.columns
        if column.kind == "criterion" and not column.judge and column.better and column.weight > 0
        if column.low is not None and column.high is not None and column.low < column.high
    ]
    if len(columns) < 2 or table.has_pairs or any(column.name == NAME for column in table.columns):
        return None
    total = sum(column.weight for column in columns)
    weights = {column.name: column.weight / total for column in columns}
    values = np.zeros((len(table.systems), len(table.items)))
    for column in columns:  # 0 at the worse end of the scale, 1 at the better one
        low, high = float(column.low or 0.0), float(column.high or 0.0)
        bad, good = (high, low) if column.better == "lower" else (low, high)
        values += weights[column.name] * ((table.matrix(column.name) - bad) / (good - bad))
    by_system = dict(zip(table.systems, values.tolist(), strict=True))
    across = {name: place for place, name in enumerate(table.items)}
    scores = tuple(
        Score(s.item, s.system, NAME, value, _PROVENANCE)
        for s in table.samples
        if not np.isnan(value := by_system[s.system][across[s.item]])
    )
    summary = Overall(weights, len(scores), len(table.samples))
    return WeightedScores(summary, Table(table.samples, (summary.column,), scores))


Row = Score | Failure


def judged_columns(columns: Iterable[Column]) -> dict[str, list[Column]]:
    """Return the judges' columns of every criterion that a panel judged."""
    by_criterion: dict[str, list[Column]] = {}
    for column in columns:
        if column.judge:
            by_criterion.setdefault(column.criterion, []).append(column)
    return by_criterion


def mean_column(judges: Sequence[Column]) -> Column:
    """Return the column of a panel's mean on one criterion. Its signature contains the judges' signatures."""
    signature = f"mean of {len(judges)} judges: {'; '.join(column.signature for column in judges)}"
    return replace(judges[0], name=judges[0].criterion, signature=signature, judge="")


def panel_means(columns: Sequence[Column], rows: Iterable[Row]) -> list[Row]:
    """Average the judges' values for every text (or comparison) that any judge was asked about.

    If a judge has no score, the panel has none, because means over different judges are not comparable.
    """
    panels = judged_columns(columns)
    panel_columns = {column.name: column for judges in panels.values() for column in judges}
    rows_by_text: dict[tuple[str, str, str, str], dict[str, Row]] = {}
    for row in rows:
        if column := panel_columns.get(row.column):
            rows_by_text.setdefault((column.criterion, row.item, row.system, row.rival), {})[column.judge] = row
    means: list[Row] = []
    for (criterion, item, system, rival), by_judge in rows_by_text.items():
        judges = [column.judge for column in panels[criterion]]
        scores = {name: score for name in judges if isinstance(score := by_judge.get(name), Score)}
        if missing := [name for name in judges if name not in scores]:
            message = f"no score by {', '.join(missing)}"
            means.append(Failure(item, system, criterion, "panel", "IncompletePanel", message, rival=rival))
        elif all(score.provenance.method == IDENTICAL for score in scores.values()):
            means.append(replace(scores[judges[0]], column=criterion))
        else:
            note = "; ".join(f"{name}: {score.value:.4g}" for name, score in scores.items())
            value = fmean(score.value for score in scores.values())
            provenance = Provenance("panel", n=len(scores), note=note)
            means.append(Score(item, system, criterion, value, provenance, rival))
    return means


@dataclass(frozen=True, slots=True)
class Analysis:
    """The table with a panel's means, and all statistics of it; `Result` describes each field."""

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
) -> Analysis:
    """Compute means, differences and ranks, or rankings if the rows are comparisons in one or two `orders`.

    A panel also gets its agreement. If the texts' `looks` are known, their correlations with the judge's scores are
    computed. With `people`, means are also estimated on the scale of the ratings.
    """
    rows = [*rows, *panel_means(columns, rows)]
    scores = tuple(row for row in rows if isinstance(row, Score))
    failures = tuple(row for row in rows if isinstance(row, Failure))
    table = Table(tuple(samples), tuple(columns), scores, failures)
    bootstrap = Bootstrap(seed=seed)
    alphas = {
        criterion: alpha(table, [column.name for column in judges], bootstrap)
        for criterion, judges in judged_columns(columns).items()
    }
    agreement = {criterion: estimate for criterion, estimate in alphas.items() if estimate is not None}
    if orders is not None:
        judged = [column.name for column in columns if column.kind == "criterion"]
        ranked = rankings(scores, failures, table.systems, judged, orders=orders)
        return Analysis(table, agreement=agreement, rankings=ranked)
    estimates, comparisons = item_means(table), compare(table, seed=seed)
    weighted = overall(table)
    if weighted is not None:
        estimates |= item_means(weighted.table)
        comparisons += compare(weighted.table, seed=seed)
    return Analysis(
        table,
        estimates,
        agreement=agreement,
        drivers=drivers(table, looks, bootstrap) if looks else (),
        comparisons=comparisons,
        overall=weighted.summary if weighted else None,
        repeats=repeats(table),
        calibrated=calibrate(table) if people else (),
        matrices=matrices(table, Bootstrap(_MATRIX_RESAMPLES, seed)),
    )
