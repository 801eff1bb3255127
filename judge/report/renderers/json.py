"""The summary as JSON, for programs, and its schema: both are made of the records below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from judge.core.format import json_text
from judge.core.records import Column
from judge.report.views.leaderboard_old import Leaderboard, build_leaderboard, verdict
from judge.report.views.provenance import FailureKind, build_provenance
from judge.results.result import Result
from judge.results.validation import Criterion, flat
from judge.stats.analyze import Overall
from judge.stats.calibration import Calibrated
from judge.stats.correlation import Matrix
from judge.stats.pairwise import Standing
from judge.stats.score_drivers import Drivers
from judge.stats.system_differences import Comparison

SCHEMA: Literal["judge.report/1"] = "judge.report/1"
"""The number goes up where something is taken away or means something else; more may come without."""


@dataclass(frozen=True, slots=True)
class Row:
    """A system's mean in one column, null where nothing was scored; `failed` counts what could not be.

    `mark` is "best" for a system that is told apart from all others, "same" for each of several that are not told
    apart from the first.
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
    mark: Literal["best", "same", ""]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a panel's judges agree on a criterion: Krippendorff's alpha over `n` texts."""

    criterion: str
    alpha: float
    low: float | None
    high: float | None
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """The standard deviation of the draws of one text, its mean over a system's texts."""

    system: str
    column: str
    value: float
    low: float | None
    high: float | None
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class WinRates:
    """A ranking beside its standings: `win_rate[a][b]` (0–1) is the mean preference for system a over b in `n[a][b]`
    pairs of texts, null where there are none.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """A run that scores texts: a row of `table` per system and column. What has a default is left out where it has it.

    `systems` are the best first, where they could be compared; `verdict` says in words what the numbers support.
    `failures` are counted by kind; `info` says how the run went, as in run.json.
    """

    schema: Literal["judge.report/1"]
    verdict: str
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
    drivers: tuple[Drivers, ...] = ()
    failures: tuple[FailureKind, ...]
    info: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A run that compares texts: a row of `systems` per system and column. See Means for the rest."""

    schema: Literal["judge.report/1"]
    verdict: str
    systems: tuple[Standing, ...]
    rankings: tuple[WinRates, ...]
    agreement: tuple[Agreement, ...] = ()
    drivers: tuple[Drivers, ...] = ()
    failures: tuple[FailureKind, ...]
    info: Mapping[str, Any]


def render(result: Result) -> str:
    """A `Ranked` where there are rankings, else a `Means`. Strict JSON: a number that does not exist is null."""
    summary: Means | Ranked
    if result.rankings:
        names = [field.name for field in fields(WinRates)]
        summary = Ranked(
            schema=SCHEMA,
            verdict=verdict(result),
            systems=tuple(standing for ranking in result.rankings for standing in ranking.standings),
            rankings=tuple(WinRates(**{name: getattr(ranking, name) for name in names}) for ranking in result.rankings),
            agreement=_agreement(result),
            drivers=result.drivers,
            failures=build_provenance(result).failures,
            info=result.info,
        )
    else:
        board = build_leaderboard(result)
        summary = Means(
            schema=SCHEMA,
            verdict=board.verdict,
            systems=board.systems,
            columns=board.columns,
            table=tuple(_row(board, *key) for key in board.cells),
            comparisons=result.comparisons,
            matrices=result.matrices,
            overall=result.overall,
            repeats=tuple(
                Repeat(*key, value=e.value, low=e.low, high=e.high, n=e.n, method=e.method)
                for key, e in result.repeats.items()
            ),
            calibrated=result.calibrated,
            rated=tuple(map(flat, result.rated)),
            agreement=_agreement(result),
            drivers=result.drivers,
            failures=build_provenance(result).failures,
            info=result.info,
        )
    given_fields = {field.name for field in fields(summary) if getattr(summary, field.name) != field.default}
    document = {name: value for name, value in asdict(summary).items() if name in given_fields}
    return json_text(document)


def schema() -> dict[str, Any]:
    """The JSON schema (2020-12) of what `render` writes; schema.json beside this module holds it."""
    from pydantic import TypeAdapter

    definition: dict[str, Any] = _terse(TypeAdapter(Means | Ranked).json_schema(mode="serialization"))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **definition}


def _terse(node: Any) -> Any:
    """Without titles that repeat a field's name, descriptions on one line, `anyOf` of plain types as one list."""
    if isinstance(node, list):
        return [_terse(child) for child in node]
    if not isinstance(node, dict):
        return node
    short = {name: _terse(value) for name, value in node.items() if name != "title" or not isinstance(value, str)}
    if isinstance(text := short.get("description"), str):
        short["description"] = " ".join(text.split())
    if all(child.keys() == {"type"} for child in short.get("anyOf", [{}])):
        short["type"] = [child["type"] for child in short.pop("anyOf")]
    return short


def _row(board: Leaderboard, system: str, column: str) -> Row:
    cell = board.cells[system, column]
    counts = {"n": cell.n, "total": cell.total, "failed": cell.failed}
    if (e := cell.estimate) is None:
        return Row(system, column, None, None, None, **counts, method=None, mark="")
    mark: Literal["best", "same", ""] = "best" if cell.best else "same" if cell.same else ""
    return Row(system, column, e.value, e.low, e.high, **counts, method=e.method, mark=mark)


def _agreement(result: Result) -> tuple[Agreement, ...]:
    return tuple(Agreement(name, e.value, e.low, e.high, e.n, e.method) for name, e in result.agreement.items())
