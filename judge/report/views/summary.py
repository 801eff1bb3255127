"""The data of a run's report, which JSON writes, and their JSON schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from judge.core.records import Column
from judge.report.views.finding import finding
from judge.report.views.provenance import FailureKind, Readings, readings
from judge.results.rated_criteria import Criterion, flat
from judge.results.result import Result
from judge.stats.calibration import Calibrated
from judge.stats.checklists import Checklist
from judge.stats.correlation_matrix import Matrix
from judge.stats.derived_columns import Overall
from judge.stats.pairwise import Standing
from judge.stats.pairwise_agreement import PreferenceAgreement
from judge.stats.panels import Splits, panel_splits
from judge.stats.score_drivers import Drivers
from judge.stats.system_differences import Comparison

SCHEMA: Literal["judge.report/1"] = "judge.report/1"
"""The number goes up if a key is removed or changes its meaning, but not for a new key."""


Mark = Literal["best", "same", "better", "worse", ""]


@dataclass(frozen=True, slots=True)
class Row:
    """A system's mean in one column, null if nothing was scored; `failed` counts failures.

    `mark` is "best" for a system that differs significantly from all others, "same" for each of
    several systems at the top that do not differ significantly from the first. If all systems are
    compared with one, it is "better" or "worse" for those that differ significantly from that one.
    """

    system: str
    column: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    total: int
    failed: int
    method: str | None
    mark: Mark

    @property
    def coverage(self) -> str:
        """`48/50` if not every item was scored, else nothing."""
        if self.n >= self.total:
            return ""
        return f"{self.n}/{self.total}"


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of a panel's judges on a criterion: Krippendorff's alpha over `n` texts."""

    criterion: str
    alpha: float
    low: float | None
    high: float | None
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """The standard deviation of repeated draws for one text, averaged over a system's texts."""

    system: str
    column: str
    value: float
    low: float | None
    high: float | None
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class WinRates:
    """A ranking beside its standings.

    `win_rate[a][b]` (0–1) is the mean preference for system a over b in `n[a][b]` pairs of texts,
    null if there are none. `by_strength` says that the standings are ordered by strength. `against`
    is the system that all others met, "" if every two systems met.
    """

    column: str
    systems: tuple[str, ...]
    win_rate: tuple[tuple[float | None, ...], ...]
    n: tuple[tuple[int, ...], ...]
    pairs: int
    incomplete: int
    failed: int
    flip_rate: float | None
    position_bias: float | None
    method: str
    note: str
    by_strength: bool
    against: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """A run that scores texts: a row of `table` per system and column.

    Fields with their default are left out. `finding` are the sentences that the numbers support,
    `notices` the reasons to doubt them. `systems` are ordered, the best first, if they were
    compared. `failures` are counted by kind; `info` is that of run.json.
    """

    schema: Literal["judge.report/1"]
    finding: tuple[str, ...]
    notices: tuple[str, ...] = ()
    systems: tuple[str, ...]
    columns: tuple[Column, ...]
    table: tuple[Row, ...]
    comparisons: tuple[Comparison, ...] = ()
    matrices: tuple[Matrix, ...] = ()
    overall: Overall | None = None
    repeats: tuple[Repeat, ...] = ()
    calibrated: tuple[Calibrated, ...] = ()
    rated: tuple[Criterion, ...] = ()
    agreement: tuple[Agreement, ...] = ()
    splits: tuple[Splits, ...] = ()
    drivers: tuple[Drivers, ...] = ()
    checklists: tuple[Checklist, ...] = ()
    failures: tuple[FailureKind, ...]
    readings: tuple[Readings, ...] = ()
    info: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A run that compares texts in pairs: a row of `systems` per system and column.

    See Means for the other fields.
    """

    schema: Literal["judge.report/1"]
    finding: tuple[str, ...]
    notices: tuple[str, ...] = ()
    systems: tuple[Standing, ...]
    rankings: tuple[WinRates, ...]
    preferences: tuple[PreferenceAgreement, ...] = ()
    agreement: tuple[Agreement, ...] = ()
    splits: tuple[Splits, ...] = ()
    drivers: tuple[Drivers, ...] = ()
    failures: tuple[FailureKind, ...]
    readings: tuple[Readings, ...] = ()
    info: Mapping[str, Any]


def means_data(
    result: Result,
    systems: tuple[str, ...],
    columns: tuple[Column, ...],
    rows: Sequence[Row],
    failures: tuple[FailureKind, ...],
    *,
    notices: tuple[str, ...],
) -> dict[str, Any]:
    """Return the fields of `Means`, without those that equal their default."""
    common_fields = _common_fields(result, failures)
    rated = [flat(criterion) for criterion in result.rated]
    means = Means(
        notices=notices,
        systems=systems,
        columns=columns,
        table=tuple(rows),
        comparisons=result.comparisons,
        matrices=result.matrices,
        overall=result.overall,
        repeats=_repeats(result),
        calibrated=result.calibrated,
        checklists=result.checklists,
        rated=tuple(rated),
        **common_fields,
    )
    return _without_defaults(means)


def _repeats(result: Result) -> tuple[Repeat, ...]:
    repeats = []
    for (system, column), deviation in result.repeats.items():
        repeat = Repeat(
            system,
            column,
            value=deviation.value,
            low=deviation.low,
            high=deviation.high,
            n=deviation.n,
            method=deviation.method,
        )
        repeats.append(repeat)
    return tuple(repeats)


def ranked_data(
    result: Result,
    failures: tuple[FailureKind, ...],
    people: tuple[PreferenceAgreement, ...],
    *,
    notices: tuple[str, ...],
) -> dict[str, Any]:
    """Return the fields of `Ranked`, without those that equal their default."""
    names = [field.name for field in fields(WinRates)]
    standings: list[Standing] = []
    win_rates = []
    for ranking in result.rankings:
        standings += ranking.standings
        values = {field_name: getattr(ranking, field_name) for field_name in names}
        win_rate = WinRates(**values)
        win_rates.append(win_rate)
    common_fields = _common_fields(result, failures)
    ranked = Ranked(
        notices=notices,
        systems=tuple(standings),
        rankings=tuple(win_rates),
        preferences=people,
        **common_fields,
    )
    return _without_defaults(ranked)


def _without_defaults(data: Means | Ranked) -> dict[str, Any]:
    # Not `asdict`: the records inside stay as they are until JSON is written.
    values = {}
    for field in fields(data):
        value = getattr(data, field.name)
        if value != field.default:
            values[field.name] = value
    return values


def schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of these data; judge/report/schema.json holds it."""
    # Loading pydantic's adapters is slow, and only the test of schema.json needs them.
    from pydantic import TypeAdapter

    definition = TypeAdapter(Means | Ranked).json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **definition,
    }


def _common_fields(result: Result, failures: tuple[FailureKind, ...]) -> dict[str, Any]:
    """Return the fields that both kinds of runs have."""
    agreement = []
    for criterion, alpha in result.agreement.items():
        agreement_of_criterion = Agreement(
            criterion,
            alpha.value,
            low=alpha.low,
            high=alpha.high,
            n=alpha.n,
            method=alpha.method,
        )
        agreement.append(agreement_of_criterion)
    return {
        "schema": SCHEMA,
        "finding": finding(result),
        "agreement": tuple(agreement),
        "splits": panel_splits(result.table),
        "drivers": result.drivers,
        "failures": failures,
        "readings": readings(result),
        "info": result.info.to_json(),
    }
