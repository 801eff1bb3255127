"""The page's view of the judges against people: tables, sentences, and a calibration curve for each judge."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from judge.core.records import Column
from judge.report.charts import geometry
from judge.report.format import count, decimals, number
from judge.report.views import validation
from judge.report.views.validation import Block, block, closing
from judge.results.result import Result
from judge.stats.calibration import Bin, Calibration
from judge.stats.correlation import Level
from judge.stats.validity import Rated

LEVEL: Level = "document"
_LARGEST = 7.0  # radius of the point that has most texts


@dataclass(frozen=True, slots=True)
class Point:
    """A bin: the judge's mean to the right, people's up, with its interval, in percent; `title` says it in words."""

    x: float
    y: float
    low: float | None
    high: float | None
    radius: float
    title: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A judge's calibration on two equal axes."""

    title: str
    told: str
    axis: geometry.Axis
    points: tuple[Point, ...]

    @property
    def label(self) -> str:
        return f"{self.title}: {'; '.join(point.title for point in self.points)}"


@dataclass(frozen=True, slots=True)
class RatedCriterion:
    """A criterion."""

    block: Block
    curves: tuple[Curve, ...]


def people(result: Result) -> tuple[RatedCriterion, ...]:
    """Every criterion that people rated, of a run with judges."""
    return tuple(_shown(one) for one in result.rated)


def how(result: Result) -> str:
    """What the numbers are."""
    return " ".join(closing(result.rated, LEVEL)) if result.rated else ""


def _shown(rated: Rated) -> RatedCriterion:
    made = block(rated, LEVEL)
    drawn = [row.calibration for row in rated.judges if row.calibration]
    return RatedCriterion(made, tuple(_curve(laid, found) for laid, found in zip(made.curves, drawn, strict=True)))


def _curve(laid: validation.Curve, found: Calibration) -> Curve:
    along = geometry.axis(Column("", "criterion", "", found.low, found.high), [])
    most = max(one.people.n for one in found.bins)
    places = decimals([found.low, found.high])
    points = tuple(_point(one, along, sqrt(one.people.n / most), places) for one in found.bins)
    return Curve(laid.judge, f"{laid.told[0].upper()}{laid.told[1:]}.", along, points)


def _point(one: Bin, along: geometry.Axis, size: float, places: int) -> Point:
    rated = one.people
    low, high = (None if end is None else round(100 - along.at(end), 2) for end in (rated.low, rated.high))
    said = f"judge {number(one.value, places)}, people {number(rated.value, places)}, {count(rated.n, 'text')}"
    return Point(along.at(one.value), round(100 - along.at(rated.value), 2), low, high, round(_LARGEST * size, 1), said)
