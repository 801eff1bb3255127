"""Geometry of the report's charts, in percent of the plot so that it scales with the page."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from judge.core.format import decimals, format_interval, minus, number, one_line, plural
from judge.core.records import Column, Estimate
from judge.results.result import Result


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: `at` in percent of the plot's width."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A mean from the axis' zero (or lower end) and its interval, in percent; `title` says it in words."""

    left: float
    width: float
    mean: float
    low: float | None
    high: float | None
    title: str


@dataclass(frozen=True, slots=True)
class Bin:
    """One column of a histogram; `height` is a share of the tallest bin of the criterion, in percent."""

    label: str
    count: int
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis from `low` to `high`, in the column's unit."""

    low: float
    high: float
    ticks: tuple[Tick, ...]

    def at(self, value: float) -> float:
        """Percent of the way along, kept on the plot."""
        return round(100 * min(1.0, max(0.0, (value - self.low) / (self.high - self.low))), 2)


def axis(column: Column, estimates: Sequence[Estimate]) -> Axis:
    """A criterion's axis is its whole scale; a metric's starts at 0 (or below) and ends at a round number above all."""
    if column.kind == "criterion" and column.low is not None and column.high is not None and column.low < column.high:
        span = column.high - column.low
        step = 1.0 if 2 <= span <= 10 and span == int(span) else _round_step(span)
        return even(column.low, column.high, step)
    ends = [end for e in estimates for end in (e.value, e.low, e.high) if end is not None and math.isfinite(end)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    step = _round_step((high - low) or 1.0)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return even(low, high if high > low else low + step, step)


def _round_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, so that about five of them make the span."""
    power = 10.0 ** math.floor(math.log10(span / 5))
    return next(m * power for m in (1, 2, 5, 10) if m * power * 5 >= span * 0.999)


def even(low: float, high: float, step: float) -> Axis:
    """An axis from `low` to `high` with a tick at every step."""
    places = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else 0
    at = [low + k * step for k in range(math.floor((high - low) / step + 1e-9) + 1)]
    ticks = tuple(Tick(round(100 * (value - low) / (high - low), 2), number(value, places)) for value in at)
    return Axis(low, high, ticks)


def bar(along: Axis, estimate: Estimate, title: str) -> Bar:
    """A mean and its interval on an axis."""
    start, mean = along.at(max(0.0, along.low)), along.at(estimate.value)
    ends = [None if end is None else along.at(end) for end in (estimate.low, estimate.high)]
    return Bar(min(start, mean), round(abs(mean - start), 2), mean, ends[0], ends[1], title)


def edges(column: Column, values: Sequence[float]) -> tuple[list[float], list[str]]:
    """Bins for a criterion's scores: their inner edges and labels.

    A scale of up to eleven numbers has one bin a number, holding the scores nearest to it (half way goes up); any
    other has ten equal bins.
    """
    try:
        points = sorted((float(label), label) for label in column.labels)
    except ValueError:  # a label is a word, whose value the column does not hold
        points = []
    if 2 <= len(points) <= 11:
        numbers = [point for point, _ in points]
        inner = [(first + second) / 2 for first, second in pairwise(numbers)]
        return inner, [label for _, label in points]
    low = min(values, default=0.0) if column.low is None else column.low
    high = max(values, default=1.0) if column.high is None else column.high
    width = ((high - low) or 1.0) / 10
    places = decimals([high, low])
    starts = [low + k * width for k in range(10)]
    return starts[1:], [f"{number(s, places)}–{number(s + width, places)}" for s in starts]


def histograms(column: Column, values: Mapping[str, Sequence[float]]) -> dict[str, tuple[Bin, ...]]:
    """A histogram per system, all on the same bins and the same height."""
    inner, labels = edges(column, [v for scores in values.values() for v in scores])
    counts = {system: [0] * len(labels) for system in values}
    for system, scores in values.items():
        for value in scores:
            counts[system][bisect_right(inner, value)] += 1
    tallest = max((n for row in counts.values() for n in row), default=0) or 1
    return {
        system: tuple(
            Bin(
                minus(label),
                n,
                round(100 * n / tallest, 1),
                f"{minus(label)}: {n} of {plural(len(values[system]), 'score')}",
            )
            for label, n in zip(labels, row, strict=True)
        )
        for system, row in counts.items()
    }


def spark(distribution: Mapping[str, float], labels: Sequence[str]) -> tuple[str, str]:
    """A score's distribution as a tiny bar chart, and it in words: an SVG path to draw 6 wide, 8 per label by 20.

    Labels the distribution does not name have no bar; bars are a share of all the mass that was seen on the scale.
    """
    total = sum(distribution.values()) or 1.0
    path, words = [], []
    for place, label in enumerate(labels or tuple(distribution)):
        share = distribution.get(label, 0.0) / total
        if share > 0:
            path.append(f"M{8 * place + 4} 20V{min(19, 20 - round(20 * share))}")
            words.append(f"{minus(label)}: {share:.0%}" if share >= 0.005 else f"{minus(label)}: <1%")
    return "".join(path), ", ".join(words)


MOST = 1_600
"""Points at most in one chart."""
_SIDE = 1_000  # units of the drawing, both ways
_JITTER = 28  # units at most, so that equal points can be seen
_GOLDEN_RATIO, _PLASTIC_RATIO = 0.6180339887, 0.7548776662  # multiples modulo 1 fill the interval evenly

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Scatter:
    """One judge on one criterion: its scores to the right, people's ratings up.

    `path` draws a dot for each text in 1,000 × 1,000 units; `told` says what is drawn and how the two correlate.
    """

    title: str
    across: Axis
    up: Axis
    path: str
    told: str


def scatters(result: Result) -> tuple[Scatter, ...]:
    """A chart for each judge of each criterion that people rated."""
    charts = []
    for rated in result.rated:
        criterion = rated.criterion
        columns = [c for c in result.table.columns if c.kind == "criterion" and (c.criterion or c.name) == criterion]
        for column, row in zip(columns, rated.judges, strict=False):
            scores = {(score.item, score.system): score.value for score in result.table.column_scores(column.name)}
            points = [
                (scores[sample.item, sample.system], sample.human[criterion])
                for sample in result.table.samples
                if criterion in sample.human and (sample.item, sample.system) in scores
            ]
            if not points:
                continue
            drawn = points if len(points) <= MOST else [points[k * len(points) // MOST] for k in range(MOST)]
            across = _axis_of_values(column, [judge for judge, _ in points])
            up = _axis_of_values(column, [people for _, people in points])
            title = f"{one_line(criterion)}, {one_line(row.name)}"
            note = "each moved a little so that equal ones are seen."
            note = f"{f'{len(drawn):,} of ' if len(drawn) < len(points) else ''}{plural(len(points), 'text')}, {note}"
            if e := row.correlation.estimates.get(("item", "spearman")):
                rho = f"{number(e.value, 2)} {format_interval(e.low, e.high, 2)}".rstrip()
                note = f"Spearman {rho} over all texts. {note}"
            charts.append(Scatter(title, across, up, _path(across, up, drawn), note))
    return tuple(charts)


def _axis_of_values(column: Column, values: Sequence[float]) -> Axis:
    """An axis of the whole scale if all values are on it, else from the lowest to the highest value."""
    low, high = min(values), max(values)
    if column.low is not None and column.high is not None and column.low <= low and high <= column.high:
        return axis(column, [])
    return axis(Column("", "criterion", "", low, high if high > low else low + 1), [])


def _path(across: Axis, up: Axis, points: Sequence[Point]) -> str:
    """An SVG path with a line of length 0 for each point. The jitter is the same on every call."""
    places = [
        (_jittered(across.at(judge), k * _GOLDEN_RATIO), _jittered(100 - up.at(people), k * _PLASTIC_RATIO))
        for k, (judge, people) in enumerate(points)
    ]
    steps = (
        f"m{x - previous_x} {y - previous_y}h0"
        for (previous_x, previous_y), (x, y) in pairwise([(0, 0), *sorted(places)])
    )
    return "".join(steps)


def _jittered(at: float, turn: float) -> int:
    """Convert percent of the plot to units of the drawing, jittered by `turn` and reflected at the frame."""
    place = at * _SIDE / 100 + _JITTER * (2 * (turn % 1) - 1)
    return round(_SIDE - abs(_SIDE - abs(place)))
