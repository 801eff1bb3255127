"""The result of `judge.validate`, and the record of each rated criterion in JSON and run.json.

JSON has no keys of several parts: `flat` turns a criterion into records, and `read` turns them
back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from judge.core.records import Estimate
from judge.stats.agreement import Agreement, Measure
from judge.stats.alt_test import AltTest
from judge.stats.calibration_curve import Calibration
from judge.stats.coefficients import Coefficient, Key, Level
from judge.stats.correlation import Correlation
from judge.stats.human_agreement import FailedJudgments, Rated, Row, Versus
from judge.stats.pass_agreement import PassAgreement
from judge.stats.raters import Rater
from judge.stats.system_ratings import RatedAbove, SystemRating


@dataclass(frozen=True, slots=True)
class Correlated:
    """A correlation with people's ratings.

    `n` counts items (level within-items), texts (all-texts) or systems (systems).
    """

    level: Level
    coefficient: Coefficient
    value: float
    low: float | None
    high: float | None
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class Agreed:
    """A measure of agreement over `n` texts."""

    measure: Measure
    value: float
    low: float | None
    high: float | None
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A judge, a baseline or one human rater, compared with people's ratings of `texts` texts.

    `lacking` says why a level has no value, `no_agreement` why a measure has none. `agreement` is a
    judge's with people's mean, or that of the raters with one another. `few` says by level why a
    baseline cannot be compared. `alt_test` is a judge's in a validation: may it replace a rater?
    `directed` is false for a baseline without a better direction, such as length. `passes` has the
    texts that pass by the judge and by people; `no_passes` why people's ratings do not allow it.
    `exact` is the share of texts (0–1) to which the judge and people's mean give the same label.
    """

    name: str
    kind: Literal["judge", "baseline", "rater"]
    signature: str
    texts: int
    correlations: tuple[Correlated, ...]
    lacking: Mapping[Level, str]
    agreement: tuple[Agreed, ...]
    no_agreement: Mapping[Measure, str]
    calibration: Calibration | None
    no_calibration: str | None
    few: Mapping[Level, str]
    failed: FailedJudgments | None = None
    alt_test: AltTest | None = None
    directed: bool = True
    passes: PassAgreement | None = None
    no_passes: str | None = None
    exact: Estimate | None = None


@dataclass(frozen=True, slots=True)
class BaselineDifference:
    """Spearman of a judge minus that of a baseline."""

    judge: str
    baseline: str
    level: Level
    coefficient: Literal["spearman"]
    value: float
    low: float | None
    high: float | None
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class JudgeDifference:
    """A coefficient of one judge minus that of another.

    The interval is corrected for the number of judges. Pearson's has `p` of Williams' test after
    Holm's correction between systems, and over all texts if each item has one.
    """

    judge: str
    other: str
    level: Level
    coefficient: Coefficient
    value: float
    low: float | None
    high: float | None
    n: int
    method: str
    p: float | None
    test: str = ""


@dataclass(frozen=True, slots=True)
class Lead:
    """Spearman of the judge or metric that agrees best with people minus that of another one."""

    other: str
    level: Level
    value: float
    low: float | None
    high: float | None
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion. `no_rater` says why no human rater can be compared with the others.

    `reversed` are the differences from baselines without a better direction that agree better with
    people if reversed. `leads` compare the best judge or metric with each other one, in a
    validation. `excluded` counts the ratings that were used to make a prompt. `raters` has each
    person, in a validation. `usual_level` is the level that reports show by default. `systems` has
    the systems' means by people and judges, `rated_above` the judges whose best system people rate
    significantly below another one.
    """

    criterion: str
    texts: int
    rows: tuple[Compared, ...]
    no_rater: str | None
    differences: tuple[BaselineDifference, ...]
    versus: tuple[JudgeDifference, ...]
    excluded: int = 0
    raters: tuple[Rater, ...] = ()
    reversed: tuple[BaselineDifference, ...] = ()
    leads: tuple[Lead, ...] = ()
    usual_level: Level = "within-items"
    systems: tuple[SystemRating, ...] = ()
    rated_above: tuple[RatedAbove, ...] = ()


def flat(rated: Rated) -> Criterion:
    """Return the records of a criterion."""
    versus_records: list[JudgeDifference] = []
    for versus in rated.versus:
        versus_records.append(_versus_record(versus, "spearman", versus.spearman))
        if versus.pearson is not None:
            versus_records.append(_versus_record(versus, "pearson", versus.pearson))
    leads: list[Lead] = []
    for (column_name, level), estimate in rated.behind.items():
        leads.append(Lead(column_name, level, **_numbers(estimate)))
    return Criterion(
        criterion=rated.criterion,
        texts=rated.texts,
        rows=tuple(_row_record(row) for row in rated.rows),
        no_rater=rated.no_rater or None,
        differences=_from_baselines(rated.differences),
        versus=tuple(versus_records),
        excluded=rated.excluded,
        raters=rated.raters,
        reversed=_from_baselines(rated.reversed),
        leads=tuple(leads),
        usual_level=rated.usual_level,
        systems=rated.systems,
        rated_above=rated.rated_above,
    )


def _versus_record(
    versus: Versus, coefficient: Coefficient, estimate: Estimate
) -> JudgeDifference:
    return JudgeDifference(
        versus.judge,
        versus.other,
        versus.level,
        coefficient,
        **_numbers(estimate),
        p=estimate.p,
        test=estimate.test,
    )


def _row_record(row: Row) -> Compared:
    correlations: list[Correlated] = []
    for (level, coefficient), estimate in row.correlation.estimates.items():
        correlations.append(Correlated(level, coefficient, **_numbers(estimate)))
    agreement: list[Agreed] = []
    for measure, estimate in row.agreement.estimates.items():
        agreement.append(Agreed(measure, **_numbers(estimate)))
    return Compared(
        name=row.name,
        kind=row.kind,
        signature=row.signature,
        texts=row.correlation.texts,
        correlations=tuple(correlations),
        lacking=row.correlation.lacking,
        agreement=tuple(agreement),
        no_agreement=row.agreement.lacking,
        calibration=row.calibration,
        no_calibration=row.no_calibration or None,
        few=row.few,
        failed=row.failed,
        alt_test=row.alt_test,
        directed=row.directed,
        passes=row.passes,
        no_passes=row.no_passes or None,
        exact=row.exact,
    )


def _from_baselines(
    differences: Mapping[tuple[str, str, Level], Estimate],
) -> tuple[BaselineDifference, ...]:
    records: list[BaselineDifference] = []
    for (judge, baseline, level), estimate in differences.items():
        numbers = _numbers(estimate)
        record = BaselineDifference(judge, baseline, level, "spearman", **numbers)
        records.append(record)
    return tuple(records)


def _by_baseline(
    records: Iterable[BaselineDifference],
) -> dict[tuple[str, str, Level], Estimate]:
    """Restore the estimates of `_from_baselines`."""
    estimates: dict[tuple[str, str, Level], Estimate] = {}
    for record in records:
        key = (record.judge, record.baseline, record.level)
        estimates[key] = _estimate("difference", record)
    return estimates


def _numbers(estimate: Estimate) -> dict[str, Any]:
    """Return the fields of an estimate that every record has."""
    # A record has a name of its own, and `p` and `test` only if it has a test.
    numbers = asdict(estimate)
    for unused in ("name", "p", "test"):
        del numbers[unused]
    return numbers


def read(stored: Any) -> Rated:
    """Restore a criterion from the JSON of `flat(…)`. Raises ValidationError for anything else."""
    criterion = _adapter().validate_python(stored)
    rows = [_read_row(record) for record in criterion.rows]
    raters = [row for row in rows if row.kind == "rater"]
    judges = [row for row in rows if row.kind == "judge"]
    baselines = [row for row in rows if row.kind == "baseline"]
    behind: dict[tuple[str, Level], Estimate] = {}
    for lead in criterion.leads:
        behind[lead.other, lead.level] = _estimate("difference", lead)
    return Rated(
        criterion.criterion,
        criterion.texts,
        judges=tuple(judges),
        baselines=tuple(baselines),
        rater=raters[0] if raters else None,
        no_rater=criterion.no_rater or "",
        differences=_by_baseline(criterion.differences),
        versus=_read_versus(criterion.versus),
        excluded=criterion.excluded,
        raters=criterion.raters,
        reversed=_by_baseline(criterion.reversed),
        behind=behind,
        usual_level=criterion.usual_level,
        systems=criterion.systems,
        rated_above=criterion.rated_above,
    )


def _read_versus(records: Iterable[JudgeDifference]) -> tuple[Versus, ...]:
    """Put the records of two judges' coefficients together again."""
    estimates_by_pair: dict[tuple[str, str, Level], dict[str, Estimate]] = {}
    for record in records:
        pair = (record.judge, record.other, record.level)
        estimates = estimates_by_pair.setdefault(pair, {})
        estimates[record.coefficient] = _estimate("difference", record)
    versus: list[Versus] = []
    for pair, by_coefficient in estimates_by_pair.items():
        spearman = by_coefficient["spearman"]
        versus.append(Versus(*pair, spearman, by_coefficient.get("pearson")))
    return tuple(versus)


def _read_row(record: Compared) -> Row:
    correlations: dict[Key, Estimate] = {}
    for entry in record.correlations:
        correlation_key = (entry.level, entry.coefficient)
        correlations[correlation_key] = _estimate(entry.coefficient, entry)
    agreement: dict[Measure, Estimate] = {}
    for measured in record.agreement:
        agreement[measured.measure] = _estimate(measured.measure, measured)
    correlation = Correlation(record.texts, correlations, record.lacking)
    return Row(
        name=record.name,
        kind=record.kind,
        signature=record.signature,
        correlation=correlation,
        agreement=Agreement(agreement, record.no_agreement),
        calibration=record.calibration,
        no_calibration=record.no_calibration or "",
        few=record.few,
        failed=record.failed,
        alt_test=record.alt_test,
        directed=record.directed,
        passes=record.passes,
        no_passes=record.no_passes or "",
        exact=record.exact,
    )


@cache
def _adapter() -> TypeAdapter[Criterion]:
    return TypeAdapter(Criterion)


def _estimate(
    estimate_name: str,
    record: Correlated | Agreed | BaselineDifference | JudgeDifference | Lead,
) -> Estimate:
    """Restore the estimate of a record, see `_numbers`."""
    estimate = Estimate(
        name=estimate_name,
        value=record.value,
        low=record.low,
        high=record.high,
        n=record.n,
        method=record.method,
    )
    if isinstance(record, JudgeDifference):
        return replace(estimate, p=record.p, test=record.test)
    return estimate
