"""The result of `judge.validate`, and the records that JSON and run.json hold of each rated criterion.

JSON has no keys of several parts: `flat` turns a criterion into records, `read` turns them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.records import Estimate
from judge.stats.agreement import Agreement, Measure
from judge.stats.calibration import Calibrated, Calibration
from judge.stats.coefficients import LEVELS, Coefficient, Level
from judge.stats.correlation import Correlation
from judge.stats.human_agreement import Rated, Row, Versus

FORMATS = ("console", "markdown", "json", "csv", "latex")


@dataclass(frozen=True, slots=True)
class Correlated:
    """A coefficient with people's ratings at a level; `n` counts items (document), texts (item) or systems (system)."""

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
class Held:
    """A judge, a floor or an annotator against people's ratings of so many texts.

    `lacking` says why a level has nothing, `no_agreement` why a measure.
    `agreement` is a judge's with people's mean, or of the annotators with one another. `few` says by level why a floor
    is left out of what is said of floors.
    """

    name: str
    kind: Literal["judge", "floor", "ceiling"]
    signature: str
    texts: int
    correlations: tuple[Correlated, ...]
    lacking: Mapping[Level, str]
    agreement: tuple[Agreed, ...]
    no_agreement: Mapping[Measure, str]
    calibration: Calibration | None
    no_calibration: str | None
    few: Mapping[Level, str]


@dataclass(frozen=True, slots=True)
class Below:
    """Spearman of a judge less that of a floor."""

    judge: str
    floor: str
    level: Level
    coefficient: Literal["spearman"]
    value: float
    low: float | None
    high: float | None
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class Beside:
    """A coefficient of one judge less that of another; `p` of Williams' test, for Pearson but at level document."""

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


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion. `no_ceiling` says why there are no annotators to compare."""

    criterion: str
    texts: int
    rows: tuple[Held, ...]
    no_ceiling: str | None
    differences: tuple[Below, ...]
    versus: tuple[Beside, ...]


def flat(rated: Rated) -> Criterion:
    """Return the records of a criterion."""
    coefficients: list[tuple[Versus, Coefficient, Estimate | None]] = []
    for versus in rated.versus:
        coefficients += [(versus, "spearman", versus.spearman), (versus, "pearson", versus.pearson)]
    return Criterion(
        rated.criterion,
        rated.texts,
        tuple(
            Held(
                row.name,
                row.kind,
                row.signature,
                row.correlation.texts,
                tuple(Correlated(level, name, **_numbers(e)) for (level, name), e in row.correlation.estimates.items()),
                row.correlation.lacking,
                tuple(Agreed(measure, **_numbers(e)) for measure, e in row.agreement.estimates.items()),
                row.agreement.lacking,
                row.calibration,
                row.no_calibration or None,
                row.few,
            )
            for row in rated.rows
        ),
        rated.no_ceiling or None,
        tuple(
            Below(judge, floor, level, "spearman", **_numbers(estimate))
            for (judge, floor, level), estimate in rated.differences.items()
        ),
        tuple(
            Beside(versus.judge, versus.other, versus.level, coefficient, **_numbers(estimate), p=estimate.p)
            for versus, coefficient, estimate in coefficients
            if estimate is not None
        ),
    )


def _numbers(estimate: Estimate) -> dict[str, Any]:
    return {name: value for name, value in asdict(estimate).items() if name not in ("name", "p")}


def read(stored: Any) -> Rated:
    """Restore a criterion from the JSON of `flat(…)`. Raises ValidationError for anything else."""
    criterion = _adapter().validate_python(stored)
    rows = []
    for row in criterion.rows:
        estimates = {(c.level, c.coefficient): _estimate(c.coefficient, c) for c in row.correlations}
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
        tuple(row for row in rows if row.kind == "floor"),
        next((row for row in rows if row.kind == "ceiling"), None),
        criterion.no_ceiling or "",
        {(entry.judge, entry.floor, entry.level): _estimate("difference", entry) for entry in criterion.differences},
        tuple(Versus(*key, pair["spearman"], pair.get("pearson")) for key, pair in versus.items()),
    )


@cache
def _adapter() -> TypeAdapter[Criterion]:
    return TypeAdapter(Criterion)


def _estimate(name: str, record: Correlated | Agreed | Below | Beside) -> Estimate:
    p = record.p if isinstance(record, Beside) else None
    return Estimate(name, record.value, record.low, record.high, record.n, record.method, p)


@dataclass(frozen=True, repr=False)
class Validation:
    """A result against people's ratings, by criterion; `notes` are what there is to know beside.

    `calibrated` are the means on people's scale, where they were asked for.
    """

    title: str
    rated: tuple[Rated, ...]
    notes: tuple[str, ...] = ()
    calibrated: tuple[Calibrated, ...] = ()

    def __repr__(self) -> str:
        named = ", ".join(f"{criterion.criterion} ({plural(criterion.texts, 'text')})" for criterion in self.rated)
        return f"<Validation: {named}>"

    def report(self, format: str = "console", level: str = "document", *, colour: bool = False) -> str:
        """As console (in `colour` with a terminal's codes), markdown, json, csv or latex.

        `level` is document, item or system; json and csv have every level. Raises ConfigError for another of either.
        """
        check(format, level)
        return str(plugins.report("validation")(self, format, level, colour=colour))


def check(format: str, level: str) -> None:
    """Raises ConfigError for a format or level that there is not."""
    if format not in FORMATS:
        raise ConfigError(plugins.unknown_name_message("format", format, list(FORMATS)))
    if level not in LEVELS:
        raise ConfigError(f"--level: {plugins.unknown_name_message('level', level, list(LEVELS))}")
