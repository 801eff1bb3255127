"""A judge's scores beside people's ratings, text by text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from judge.core.records import Column
from judge.report.charts import geometry
from judge.report.format import count, line, number, span
from judge.results.result import Result
from judge.stats.validity import Rated, Row

MOST = 1_600
"""Points of one chart."""
_SIDE = 1_000  # units of the drawing, both ways
_AWAY = 28  # of these, how far at most a point is moved so that equal ones can be seen
_GOLDEN, _SILVER = 0.6180339887, 0.7548776662  # whose multiples fill an interval evenly

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Scatter:
    """One judge on one criterion: its scores to the right, people's ratings up.

    `path` draws a dot for each text in 1,000 × 1,000 units; `told` says what is drawn and how the two go together.
    """

    title: str
    across: geometry.Axis
    up: geometry.Axis
    path: str
    told: str


def scatters(result: Result) -> tuple[Scatter, ...]:
    """A chart for each judge of each criterion that people rated."""
    return tuple(one for rated in result.rated for one in _of(result, rated))


def _of(result: Result, rated: Rated) -> Iterator[Scatter]:
    columns = [c for c in result.table.columns if c.kind == "criterion" and (c.criterion or c.name) == rated.criterion]
    for column, row in zip(columns, rated.judges, strict=False):
        points = list(_points(result, column, rated.criterion))
        if points:
            yield _scatter(column, rated.criterion, row, points)


def _points(result: Result, column: Column, criterion: str) -> Iterator[Point]:
    """The judge's score and people's rating of every text that has both."""
    scores = {(score.item, score.system): score.value for score in result.table.of(column.name)}
    for s in result.table.samples:
        if criterion in s.human and (s.item, s.system) in scores:
            yield scores[s.item, s.system], s.human[criterion]


def _scatter(column: Column, criterion: str, row: Row, points: Sequence[Point]) -> Scatter:
    shown = points if len(points) <= MOST else [points[k * len(points) // MOST] for k in range(MOST)]
    across = _axis(column, [judge for judge, _ in points])
    up = _axis(column, [people for _, people in points])
    return Scatter(
        f"{line(criterion)}, {line(row.name)}", across, up, _path(across, up, shown), _told(row, points, shown)
    )


def _axis(column: Column, values: Sequence[float]) -> geometry.Axis:
    """The scale, where the values are on it, else from the lowest to the highest."""
    low, high = min(values), max(values)
    if column.low is not None and column.high is not None and column.low <= low and high <= column.high:
        return geometry.axis(column, [])
    return geometry.axis(Column("", "criterion", "", low, high if high > low else low + 1), [])


def _path(across: geometry.Axis, up: geometry.Axis, points: Sequence[Point]) -> str:
    """Every point as a line without length, moved by an amount that is always the same; from one to the next."""
    at = [
        (_moved(across.at(judge), k * _GOLDEN), _moved(100 - up.at(people), k * _SILVER))
        for k, (judge, people) in enumerate(points)
    ]
    steps = (f"m{x - left} {y - top}h0" for (left, top), (x, y) in pairwise([(0, 0), *sorted(at)]))
    return "".join(steps)


def _moved(at: float, turn: float) -> int:
    """A place in per cent of the plot as units of the drawing, moved and kept within the frame."""
    place = at * _SIDE / 100 + _AWAY * (2 * (turn % 1) - 1)
    return round(_SIDE - abs(_SIDE - abs(place)))


def _told(row: Row, points: Sequence[Point], shown: Sequence[Point]) -> str:
    found = row.correlation.estimates.get(("item", "spearman"))
    rho = ""
    if found is not None:
        rho = f"Spearman {number(found.value, 2)} {span(found.low, found.high, 2)}".rstrip() + " over all texts. "
    drawn = (
        f"{len(shown):,} of {count(len(points), 'text')}" if len(shown) < len(points) else count(len(points), "text")
    )
    return f"{rho}{drawn}, each moved a little so that equal ones are seen."
