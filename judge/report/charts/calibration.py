"""Draw the judge's scores to the right and people's ratings up, on two equal axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.report.charts.axes import Axis, scale
from judge.report.charts.shapes import chart, dot, group, line, text
from judge.report.document import Chart

_SIDE = 240  # pixels of the plot
_LEFT = 44  # pixels beside it
_TOP = 10
_BELOW = 44
_LARGEST = 7.0  # radius in pixels of the point with the most texts
_SMALLEST = 2.5


@dataclass(frozen=True, slots=True)
class Bin:
    """Texts with similar scores: the judge's mean, people's mean with its interval, and a count."""

    judge: float
    people: float
    low: float | None
    high: float | None
    texts: int
    note: str = ""


def calibration_plot(
    chart_name: str,
    title: str,
    bins: Sequence[Bin],
    ends: tuple[float, float],
) -> Chart:
    """Draw people's mean rating for texts with similar scores.

    On the diagonal the judge and people agree.
    """
    axis = scale(*ends)
    elements = list(_calibration_frame(axis))
    most_texts = max((bin.texts for bin in bins), default=1)
    elements += [_calibration_point(bin, axis, most_texts) for bin in bins]
    size = (_LEFT + _SIDE + 16, _TOP + _SIDE + _BELOW)
    notes = [bin.note for bin in bins]
    return chart(chart_name, title, size, elements, values=notes)


def _calibration_frame(axis: Axis) -> Iterator[str]:
    """Draw the grid with its ticks, the names of the axes, and the diagonal."""
    floor = _TOP + _SIDE
    right = _LEFT + _SIDE
    for value, label in axis.ticks:
        x = _LEFT + axis.at(value, _SIDE)
        y = floor - axis.at(value, _SIDE)
        yield line("grid", (x, _TOP), (x, floor))
        yield text(x, floor + 15, label, "tick", "middle")
        yield line("grid", (_LEFT, y), (right, y))
        yield text(_LEFT - 6, y + 4, label, "tick", "end")
    yield text(_LEFT + _SIDE / 2, floor + 36, "judge", "label", "middle")
    turned = text(0, 0, "people", "label", "middle")
    middle = _TOP + _SIDE / 2
    yield f'<g transform="translate(12 {middle:g}) rotate(-90)">{turned}</g>'
    yield line("zero", (_LEFT, floor), (right, _TOP), "4 4")


def _calibration_point(bin: Bin, axis: Axis, most_texts: int) -> str:
    """Draw the point of a bin and its interval."""
    floor = _TOP + _SIDE
    x = _LEFT + axis.at(bin.judge, _SIDE)
    y = floor - axis.at(bin.people, _SIDE)
    # The area of a point is proportional to the number of texts.
    radius = _LARGEST * math.sqrt(bin.texts / most_texts)
    point = dot(x, y, max(_SMALLEST, radius))
    if bin.low is None or bin.high is None:
        return group(bin.note, point)
    lower_y = floor - axis.at(bin.low, _SIDE)
    upper_y = floor - axis.at(bin.high, _SIDE)
    # The point is drawn over its interval.
    interval = line("ci", (x, lower_y), (x, upper_y))
    return group(bin.note, interval, point)
