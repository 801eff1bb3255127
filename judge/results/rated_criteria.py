"""The result of `judge.validate`, and the records that JSON and run.json hold of each rated criterion.

JSON has no keys of several parts: `flat` turns a criterion into records, and `read` turns them back.
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
from judge.stats.calibration import Calibration
from judge.stats.coefficients import Coefficient, Level
from judge.stats.correlation import Correlation
from judge.stats.human_agreement import FailedJudgments, Rated, Row, Versus
from judge.stats.raters import Rater


@dataclass(frozen=True, slots=True)
class Correlated:
    """A correlation with people's ratings; `n` counts items (level within-items), texts (all-texts) or systems (systems)."""

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

    `lacking` says why a level has no value, `no_agreement` why a measure has none. `agreement` is a judge's with
    people's mean, or that of the raters with one another. `few` says by level why a baseline cannot be compared.
    `alt_test` is a judge's in a validation: may it replace a rater? `directed` is false for a baseline without a better
    direction, such as length.
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
    """A coefficient of one judge minus that of another, with an interval corrected for the number of judges.

    Pearson's has `p` of Williams' test after Holm's correction, except at document.
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
class Criterion:
    """One criterion. `no_rater` says why no human rater can be compared with the others.

    `reversed` are the differences from baselines without a better direction that agree better with people if reversed.
    `excluded` counts the ratings that were used to make a prompt. `raters` has each person, in a validation.
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


def flat(rated: Rated) -> Criterion:
    """Return the records of a criterion."""
    coefficients: list[tuple[Versus, Coefficient, Estimate | None]] = []
    for versus in rated.versus:
        coefficients += [(versus, "spearman", versus.spearman), (versus, "pearson", versus.pearson)]
    return Criterion(
        rated.criterion,
        rated.texts,
        tuple(
            Compared(
                row.name,
                row.kind,
                row.signature,
                row.correlation.texts,
                tuple(
                    Correlated(level, name, **_numbers(e))
                    for (level, name), e in row.correlation.estimates.items()
                ),
                row.correlation.lacking,
                tuple(
                    Agreed(measure, **_numbers(e)) for measure, e in row.agreement.estimates.items()
                ),
                row.agreement.lacking,
                row.calibration,
                row.no_calibration or None,
                row.few,
                row.failed,
                row.alt_test,
                row.directed,
            )
            for row in rated.rows
        ),
        rated.no_rater or None,
        _from_baselines(rated.differences),
        tuple(
            JudgeDifference(
                versus.judge,
                versus.other,
                versus.level,
                coefficient,
                **_numbers(estimate),
                p=estimate.p,
                test=estimate.test,
            )
            for versus, coefficient, estimate in coefficients
            if estimate is not None
        ),
        rated.excluded,
        rated.raters,
        _from_baselines(rated.reversed),
    )


def _from_baselines(
    differences: Mapping[tuple[str, str, Level], Estimate],
) -> tuple[BaselineDifference, ...]:
    return tuple(
        BaselineDifference(*key, "spearman", **_numbers(estimate))
        for key, estimate in differences.items()
    )


def _by_baseline(
    entries: Iterable[BaselineDifference],
) -> dict[tuple[str, str, Level], Estimate]:
    return {
        (entry.judge, entry.baseline, entry.level): _estimate("difference", entry)
        for entry in entries
    }


def _numbers(estimate: Estimate) -> dict[str, Any]:
    return {
        name: value for name, value in asdict(estimate).items() if name not in ("name", "p", "test")
    }


def read(stored: Any) -> Rated:
    """Restore a criterion from the JSON of `flat(…)`. Raises ValidationError for anything else."""
    criterion = _adapter().validate_python(stored)
    rows = []
    for row in criterion.rows:
        estimates = {
            (c.level, c.coefficient): _estimate(c.coefficient, c) for c in row.correlations
        }
        agreed = {a.measure: _estimate(a.measure, a) for a in row.agreement}
        rows.append(
            Row(
                row.name,
                row.kind,
                row.signature,
                Correlation(row.texts, estimates, row.lacking),
                Agreement(agreed, row.no_agreement),
                row.calibration,
                row.no_calibration or "",
                row.few,
                row.failed,
                row.alt_test,
                row.directed,
            )
        )
    versus: dict[tuple[str, str, Level], dict[str, Estimate]] = {}
    for entry in criterion.versus:
        pair = versus.setdefault((entry.judge, entry.other, entry.level), {})
        pair[entry.coefficient] = _estimate("difference", entry)
    return Rated(
        criterion.criterion,
        criterion.texts,
        tuple(row for row in rows if row.kind == "judge"),
        tuple(row for row in rows if row.kind == "baseline"),
        next((row for row in rows if row.kind == "rater"), None),
        criterion.no_rater or "",
        _by_baseline(criterion.differences),
        tuple(Versus(*key, pair["spearman"], pair.get("pearson")) for key, pair in versus.items()),
        criterion.excluded,
        criterion.raters,
        _by_baseline(criterion.reversed),
    )


@cache
def _adapter() -> TypeAdapter[Criterion]:
    return TypeAdapter(Criterion)


def _estimate(
    name: str, record: Correlated | Agreed | BaselineDifference | JudgeDifference
) -> Estimate:
    estimate = Estimate(name, record.value, record.low, record.high, record.n, record.method)
    if isinstance(record, JudgeDifference):
        return replace(estimate, p=record.p, test=record.test)
    return estimate
