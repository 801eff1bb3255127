"""Charts with two equal axes, the judge's scores to the right and people's ratings up: scatter and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from judge.core.format import plural
from judge.report.charts.axes import Axis, scale
from judge.report.charts.drawing import chart, dot, group, line, place, text
from judge.report.document import Chart

_SIDE, _LEFT, _TOP, _FOOT = 240, 44, 10, 44  # pixels of the plot, and around it
_MAX_POINTS = 1_000
_JITTER = 6.7  # pixels at most
_GOLDEN_RATIO, _PLASTIC_RATIO = 0.6180339887, 0.7548776662  # multiples modulo 1 fill the interval evenly
_LARGEST, _SMALLEST = 7.0, 2.5  # radius in pixels of a calibration point; the largest has the most texts

Point = tuple[float, float]
"""A judge's score and people's rating."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Texts with similar scores: the mean score of the judge and of people, with its interval, and their number."""

    judge: float
    people: float
    low: float | None
    high: float | None
    texts: int
    note: str = ""


def scatter(
    name: str,
    title: str,
    points: Sequence[Point],
    ends: tuple[float | None, float | None] = (None, None),
    *,
    caption: str = "",
) -> Chart:
    """Draw a dot per text at the judge's score and people's rating; `ends` are those of the scale.

    The jitter is the same on every call.
    """
    drawn = points
    if len(points) > _MAX_POINTS:
        drawn = [points[k * len(points) // _MAX_POINTS] for k in range(_MAX_POINTS)]
    across, up = (_axis([point[side] for point in points], ends) for side in (0, 1))
    dots = "".join(
        f"<circle{place(cx=_jittered(across.at(judge, _SIDE), k * _GOLDEN_RATIO) + _LEFT)}"
        f'{place(cy=_jittered(_SIDE - up.at(people, _SIDE), k * _PLASTIC_RATIO) + _TOP)} r="3"/>'
        for k, (judge, people) in enumerate(drawn)
    )
    part = f"{len(drawn):,} of " if len(drawn) < len(points) else ""
    caption = f"{caption} {part}{plural(len(points), 'text')}; points are jittered slightly.".lstrip()
    parts = [*_frame(across, up), f'<g class="dot" fill-opacity="0.45">{dots}</g>']
    return chart(name, title, _SIZE, parts, values=[caption], caption=caption)


def calibration(name: str, title: str, bins: Sequence[Bin], ends: tuple[float, float], *, caption: str = "") -> Chart:
    """Draw people's mean rating for texts with similar scores; on the diagonal the judge and people agree."""
    axis, most = scale(*ends), max((bin.texts for bin in bins), default=1)
    parts = [*_frame(axis, axis), line("zero", (_LEFT, _TOP + _SIDE), (_LEFT + _SIDE, _TOP), "4 4")]

    def height(value: float) -> float:
        return _TOP + _SIDE - axis.at(value, _SIDE)

    for bin in bins:
        x = _LEFT + axis.at(bin.judge, _SIDE)
        drawn = [dot(x, height(bin.people), max(_SMALLEST, _LARGEST * sqrt(bin.texts / most)))]
        if bin.low is not None and bin.high is not None:
            drawn.insert(0, line("ci", (x, height(bin.low)), (x, height(bin.high))))
        parts.append(group(bin.note, *drawn))
    return chart(name, title, _SIZE, parts, values=[bin.note for bin in bins], caption=caption)


_SIZE = (_LEFT + _SIDE + 16, _TOP + _SIDE + _FOOT)


def _axis(values: Sequence[float], ends: tuple[float | None, float | None]) -> Axis:
    """Return an axis of the whole scale if all values are on it, else from the lowest to the highest value."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if ends[0] is not None and ends[1] is not None and ends[0] <= low and high <= ends[1]:
        return scale(ends[0], ends[1])
    return scale(low, high)


def _frame(across: Axis, up: Axis) -> list[str]:
    right, floor = _LEFT + _SIDE, _TOP + _SIDE
    parts = []
    for value, label in across.ticks:
        x = _LEFT + across.at(value, _SIDE)
        parts += [line("grid", (x, _TOP), (x, floor)), text(x, floor + 15, label, "tick", "middle")]
    for value, label in up.ticks:
        y = floor - up.at(value, _SIDE)
        parts += [line("grid", (_LEFT, y), (right, y)), text(_LEFT - 6, y + 4, label, "tick", "end")]
    parts.append(text(_LEFT + _SIDE / 2, floor + 36, "judge", "label", "middle"))
    turned = text(0, 0, "people", "label", "middle")
    return [*parts, f'<g transform="translate(12 {_TOP + _SIDE / 2:g}) rotate(-90)">{turned}</g>']


def _jittered(at: float, turn: float) -> float:
    """Jitter a place by `turn` and reflect it at the frame."""
    return _SIDE - abs(_SIDE - abs(at + _JITTER * (2 * (turn % 1) - 1)))
