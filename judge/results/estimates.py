"""The statistics of a run as one long table, a row for each number.

It is stored as `estimates.parquet` and returned by `Result.estimates_frame`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import TYPE_CHECKING, Any, Protocol

from judge.core.normalization import whole
from judge.core.records import Estimate
from judge.stats.calibration import Calibrated
from judge.stats.checklists import Checklist
from judge.stats.correlation_matrix import Matrix
from judge.stats.human_agreement import Rated, Row
from judge.stats.pairwise import Ranking, Standing
from judge.stats.pairwise_agreement import PreferenceAgreement
from judge.stats.pass_rates import CalibratedPassRates
from judge.stats.score_drivers import Drivers
from judge.stats.system_differences import Comparison

if TYPE_CHECKING:
    import pyarrow as pa


ESTIMATES = "estimates.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRow:
    """A number of a report, with its subject.

    `kind` says what the number is; docs/results.md lists the kinds. `column` is a criterion or a
    metric, as in scores.parquet, and `measure` the coefficient. A difference is that of `system`
    minus `opponent`, or of `subject` minus `than`, which are judges, reference points or columns.
    `level` is that of a correlation. Each is "" if it does not apply.

    `low` and `high` are None if `n` is too small for an interval. `method` says how the interval
    was computed, `test` how `p` was. `adjusted` is p after Holm's correction.
    """

    kind: str
    column: str
    measure: str = ""
    system: str = ""
    opponent: str = ""
    subject: str = ""
    than: str = ""
    level: str = ""
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    p: float | None = None
    adjusted: float | None = None
    test: str = ""
    method: str = ""


Estimates = Mapping[tuple[str, str], Estimate]
"""By system and column."""


class Statistics(Protocol):
    """The statistics of a result."""

    @property
    def estimates(self) -> Estimates: ...
    @property
    def pass_rates(self) -> Estimates: ...
    @property
    def repeats(self) -> Estimates: ...
    @property
    def comparisons(self) -> Sequence[Comparison]: ...
    @property
    def rankings(self) -> Sequence[Ranking]: ...
    @property
    def agreement(self) -> Mapping[str, Estimate]: ...
    @property
    def calibrated(self) -> Sequence[Calibrated]: ...
    @property
    def calibrated_pass_rates(self) -> Sequence[CalibratedPassRates]: ...
    @property
    def rated(self) -> Sequence[Rated]: ...
    @property
    def checklists(self) -> Sequence[Checklist]: ...
    @property
    def drivers(self) -> Sequence[Drivers]: ...
    @property
    def matrices(self) -> Sequence[Matrix]: ...


def estimate_rows(
    result: Statistics,
    preferences: Sequence[PreferenceAgreement] = (),
) -> Iterator[EstimateRow]:
    """Yield all numbers of a result: means, differences, agreement, and what explains the scores.

    `preferences` compare a ranking with people.
    """
    for (system, column), estimate in result.estimates.items():
        yield _row("mean", column, estimate, system=system)
    for (system, column), estimate in result.pass_rates.items():
        yield _row("pass_rate", column, estimate, system=system)
    for comparison in result.comparisons:
        yield from _comparison_rows(comparison)
    for ranking in result.rankings:
        yield from _ranking_rows(ranking)
    for (system, column), estimate in result.repeats.items():
        yield _row("repeatability", column, estimate, system=system)
    for column, estimate in result.agreement.items():
        yield _row("panel_agreement", column, estimate, measure="alpha")
    for calibrated in result.calibrated:
        yield from _calibration_rows(calibrated)
    for pass_rates in result.calibrated_pass_rates:
        yield from _calibrated_pass_rate_rows(pass_rates)
    for rated in result.rated:
        yield from _rating_rows(rated)
    for checklist in result.checklists:
        yield from _checklist_rows(checklist)
    for agreement in preferences:
        yield from _preference_rows(agreement)
    for drivers in result.drivers:
        yield from _driver_rows(drivers)
    for matrix in result.matrices:
        yield from _matrix_rows(matrix)


def estimates_table(rows: Iterator[EstimateRow]) -> pa.Table:
    """Return the rows as an Arrow table."""
    import pyarrow as pa

    stored_rows = list(rows)
    schema = _schema()
    columns = []
    for field in schema:
        cells = [_cell(getattr(row, field.name)) for row in stored_rows]
        columns.append(pa.array(cells, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def parquet(rows: Iterator[EstimateRow]) -> bytes:
    """Return the rows as a Parquet file."""
    from pyarrow.parquet import write_table

    file = io.BytesIO()
    write_table(estimates_table(rows), file, compression="zstd")
    return file.getvalue()


def _cell(value: Any) -> Any:
    """Return a value as Arrow can store it: a name may have lone surrogates."""
    return whole(value) if isinstance(value, str) else value


def _schema() -> pa.Schema:
    import pyarrow as pa

    types = dict.fromkeys((field.name for field in fields(EstimateRow)), pa.string())
    for number in ("value", "low", "high", "p", "adjusted"):
        types[number] = pa.float64()
    types["n"] = pa.int64()
    return pa.schema(list(types.items()))


def _row(kind: str, column: str, estimate: Estimate, **subject: Any) -> EstimateRow:
    """Return the row of an estimate; `subject` has further fields of `EstimateRow`."""
    return EstimateRow(
        kind=kind,
        column=column,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        n=estimate.n,
        p=estimate.p,
        test=estimate.test,
        method=estimate.method,
        **subject,
    )


def _comparison_rows(comparison: Comparison) -> Iterator[EstimateRow]:
    for difference in comparison.differences:
        yield _row(
            "difference",
            comparison.column,
            difference.estimate,
            system=difference.system,
            opponent=difference.other,
            adjusted=difference.adjusted,
        )
        if difference.delta is not None:
            yield EstimateRow(
                kind="cliffs_delta",
                column=comparison.column,
                system=difference.system,
                opponent=difference.other,
                value=difference.delta,
                n=difference.estimate.n,
            )
    for rank in comparison.ranks:
        yield EstimateRow(
            kind="rank",
            column=comparison.column,
            system=rank.system,
            value=float(rank.rank),
            low=float(rank.low),
            high=float(rank.high),
        )
    if comparison.detectable is not None:
        yield EstimateRow(
            kind="detectable_difference",
            column=comparison.column,
            value=comparison.detectable,
            n=comparison.items,
        )


def _ranking_rows(ranking: Ranking) -> Iterator[EstimateRow]:
    for standing in ranking.standings:
        yield from _standing_rows(ranking, standing)
    yield from _pair_rows(ranking)
    if ranking.flip_rate is not None:
        yield EstimateRow(
            kind="flip_rate", column=ranking.column, value=ranking.flip_rate
        )
    if ranking.position_bias is not None:
        yield EstimateRow(
            kind="position_bias",
            column=ranking.column,
            value=ranking.position_bias,
        )


def _standing_rows(ranking: Ranking, standing: Standing) -> Iterator[EstimateRow]:
    yield EstimateRow(
        kind="win_rate",
        column=ranking.column,
        system=standing.system,
        opponent=ranking.against,
        value=standing.win_rate,
        low=standing.low,
        high=standing.high,
        n=standing.n,
        p=standing.p,
        method=ranking.method,
    )
    if standing.strength is not None:
        yield EstimateRow(
            kind="strength",
            column=ranking.column,
            system=standing.system,
            value=standing.strength,
            low=standing.strength_low,
            high=standing.strength_high,
            n=standing.n,
            method=ranking.method,
        )
    if standing.equal_length is not None:
        yield _row(
            "equal_length_win_rate",
            ranking.column,
            standing.equal_length,
            system=standing.system,
            opponent=ranking.against,
        )
    if standing.flip_rate is not None:
        yield EstimateRow(
            kind="flip_rate",
            column=ranking.column,
            system=standing.system,
            value=standing.flip_rate,
        )


def _pair_rows(ranking: Ranking) -> Iterator[EstimateRow]:
    """Yield the win rate of each system over each other one.

    The rate of the other system is 1 minus it.
    """
    for first_index, second_index in combinations(range(len(ranking.systems)), 2):
        value = ranking.win_rate[first_index][second_index]
        # None for two systems that never met.
        if value is not None:
            yield EstimateRow(
                kind="pair_win_rate",
                column=ranking.column,
                system=ranking.systems[first_index],
                opponent=ranking.systems[second_index],
                value=value,
                n=ranking.n[first_index][second_index],
            )


def _calibration_rows(calibrated: Calibrated) -> Iterator[EstimateRow]:
    for mean in calibrated.means:
        yield _row(
            "calibrated_mean", calibrated.column, mean.estimate, system=mean.system
        )
        yield _row("rated_mean", calibrated.column, mean.people, system=mean.system)
    for difference in calibrated.differences:
        yield _row(
            "calibrated_difference",
            calibrated.column,
            difference.estimate,
            system=difference.system,
            opponent=difference.other,
            adjusted=difference.adjusted,
        )
        yield _row(
            "rated_difference",
            calibrated.column,
            difference.people,
            system=difference.system,
            opponent=difference.other,
        )


def _calibrated_pass_rate_rows(
    pass_rates: CalibratedPassRates,
) -> Iterator[EstimateRow]:
    for rate in pass_rates.rates:
        with_judge = rate.people.estimate
        ratings_alone = rate.people.people
        yield _row(
            "calibrated_pass_rate", pass_rates.column, with_judge, system=rate.system
        )
        yield _row(
            "rated_pass_rate", pass_rates.column, ratings_alone, system=rate.system
        )


def _rating_rows(rated: Rated) -> Iterator[EstimateRow]:
    for row in rated.rows:
        yield from _agreement_rows(rated.criterion, row)
    differences_by_kind = {
        "correlation_difference": rated.differences,
        "reversed_correlation_difference": rated.reversed,
    }
    for kind, differences in differences_by_kind.items():
        for (judge, reference_point, level), estimate in differences.items():
            yield _row(
                kind,
                rated.criterion,
                estimate,
                measure="spearman",
                subject=judge,
                than=reference_point,
                level=level,
            )
    for versus in rated.versus:
        coefficients = {"spearman": versus.spearman, "pearson": versus.pearson}
        for coefficient, compared in coefficients.items():
            if compared is not None:
                yield _row(
                    "correlation_difference",
                    rated.criterion,
                    compared,
                    measure=coefficient,
                    subject=versus.judge,
                    than=versus.other,
                    level=versus.level,
                )


def _agreement_rows(criterion: str, row: Row) -> Iterator[EstimateRow]:
    for (level, coefficient), estimate in row.correlation.estimates.items():
        yield _row(
            "correlation",
            criterion,
            estimate,
            measure=coefficient,
            subject=row.name,
            level=level,
        )
    for measure, estimate in row.agreement.estimates.items():
        yield _row("agreement", criterion, estimate, measure=measure, subject=row.name)
    if row.exact is not None:
        yield _row("agreement", criterion, row.exact, measure="exact", subject=row.name)
    if row.calibration is not None:
        yield _row(
            "calibration_error", criterion, row.calibration.error, subject=row.name
        )
        yield _row("bias", criterion, row.calibration.bias, subject=row.name)
    if row.passes is not None:
        for name, pass_estimate in row.passes.estimates.items():
            yield _row(
                "pass_agreement",
                criterion,
                pass_estimate,
                measure=name,
                subject=row.name,
            )


def _preference_rows(agreement: PreferenceAgreement) -> Iterator[EstimateRow]:
    """Yield the agreement on pairs of texts: the judge with people or a rater, and the raters."""
    for row in agreement.rows:
        subject = "" if row.kind == "raters" else agreement.judge
        than = row.name or row.kind
        estimates = {"same": row.same, "kappa": row.kappa}
        for measure, estimate in estimates.items():
            if estimate is not None:
                yield _row(
                    "preference_agreement",
                    agreement.criterion,
                    estimate,
                    measure=measure,
                    subject=subject,
                    than=than,
                )


def _driver_rows(drivers: Drivers) -> Iterator[EstimateRow]:
    kind = "driver_of_ratings" if drivers.people else "driver"
    for driver in drivers.each:
        estimates = {"r": driver.correlation, "R2": driver.explained}
        for measure, estimate in estimates.items():
            yield _row(
                kind, drivers.column, estimate, measure=measure, subject=driver.name
            )
    if drivers.together is not None:
        yield _row(kind, drivers.column, drivers.together, measure="R2", subject="all")
    if drivers.chance is not None:
        yield EstimateRow(
            kind=kind,
            column=drivers.column,
            measure="R2",
            subject="chance",
            value=drivers.chance,
            n=drivers.texts,
        )


def _checklist_rows(checklist: Checklist) -> Iterator[EstimateRow]:
    for question in checklist.questions:
        for system, share in question.shares.items():
            yield EstimateRow(
                kind="question_share",
                column=checklist.column,
                system=system,
                subject=question.question,
                value=share,
                n=question.n[system],
            )


def _matrix_rows(matrix: Matrix) -> Iterator[EstimateRow]:
    """Yield the upper half of a symmetric matrix, without its diagonal."""
    for first_index, second_index in combinations(range(len(matrix.names)), 2):
        value = matrix.values[first_index][second_index]
        # None for two columns without a correlation, such as a constant one.
        if value is not None:
            yield EstimateRow(
                kind="column_correlation",
                column=matrix.names[first_index],
                measure=matrix.coefficient,
                than=matrix.names[second_index],
                level=matrix.level,
                value=value,
                low=matrix.low[first_index][second_index],
                high=matrix.high[first_index][second_index],
                n=matrix.n[first_index][second_index],
                method=matrix.method,
            )
