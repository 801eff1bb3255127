"""Draw bars with their intervals: means, win rates, coefficients."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from rich.cells import cell_len

from judge.report.charts.axes import Axis, even
from judge.report.charts.shapes import (
    CELL,
    MAX_ROWS,
    chart,
    cut_note,
    dot,
    group,
    label_width,
    line,
    name_text,
    rect,
    shorten,
    text,
)
from judge.report.document import Chart

# The sizes of a panel, in pixels.
_PITCH = 24  # from row to row
_THICK = 12  # height of a bar
_WIDE = 320  # width of a plot that is alone
_NARROW = 150  # width of one of several
_HEAD = 22  # above the rows
_FOOT = 20  # below the rows
_AXIS_LABEL = 16  # below the ticks
_GAP = 24  # between panels
_TICK_CELL = 7.5  # width of a character of a tick at 11 px, with some space


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its interval, if it has one.

    `text` is the value as the reader sees it, `note` a longer tooltip.
    """

    value: float
    low: float | None = None
    high: float | None = None
    text: str = ""
    note: str = ""
    tone: Literal["", "best", "worse"] = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A bar per row on one axis; None for a row without a value.

    `label`, below the ticks, says what the axis measures.
    """

    axis: Axis
    bars: Sequence[Bar | None]
    head: str = ""
    label: str = ""


def intervals(
    chart_name: str,
    title: str,
    rows: Sequence[str],
    panels: Sequence[Panel],
    *,
    caption: str = "",
) -> Chart:
    """Draw bars with intervals: a row per name, and the panels side by side."""
    rows_cut = cut_note(len(rows), MAX_ROWS, "row")
    caption = f"{rows_cut}{caption}".rstrip()
    rows = rows[:MAX_ROWS]
    plot_width = _WIDE if len(panels) == 1 else _NARROW
    top = _HEAD if any(panel.head for panel in panels) else 4
    bottom = top + _PITCH * len(rows)
    elements = []
    for index, row in enumerate(rows):
        # In several panels, a row may be the best one in some only.
        is_best = len(panels) == 1 and _is_best(panels[0].bars[index])
        baseline = top + _PITCH * index + 17
        elements.append(name_text(0, baseline, row, bold=is_best))
    box = _Box(label_width(rows), top, plot_width, bottom)
    right = box.left_edge
    descriptions = []
    for panel in panels:
        drawn_bars = panel.bars[: len(rows)]
        texts = [bar.text if bar else "–" for bar in drawn_bars]
        longest = max(map(cell_len, texts), default=0)
        # The values are written beside the plot, aligned at their right end.
        width_of_texts = CELL * longest + 10
        right = box.left_edge + plot_width + width_of_texts
        elements += _panel_frame(panel, box)
        elements += _panel_rows(panel, texts, box, right)
        head = f"{panel.head} " if panel.head else ""
        for row, value in zip(rows, texts, strict=True):
            descriptions.append(f"{row} {head}{value}")
        box = replace(box, left_edge=right + _GAP)
    has_labels = any(panel.label for panel in panels)
    foot = _FOOT + _AXIS_LABEL if has_labels else _FOOT
    size = (right + 4, bottom + foot)
    return chart(
        chart_name, title, size, elements, values=descriptions, caption=caption
    )


def _is_best(bar: Bar | None) -> bool:
    return bar is not None and bar.tone == "best"


@dataclass(frozen=True, slots=True)
class _Box:
    """The edges and the width of a plot, in pixels."""

    left_edge: float
    top: float
    width: float
    bottom: float


def _panel_frame(panel: Panel, box: _Box) -> Iterator[str]:
    """Draw the heading of a panel, the label of its axis, and its ticks.

    The line at 0 is stronger if values go below.
    """
    n_cells = round(box.width / CELL)
    if panel.label:
        middle = box.left_edge + box.width / 2
        label = shorten(panel.label, n_cells)
        yield text(middle, box.bottom + 30, label, "tick", "middle")
    if panel.head:
        yield name_text(box.left_edge, 14, panel.head, cells=n_cells, bold=True)
    labelled = _labelled_ticks(panel.axis, box.width)
    for value, label in panel.axis.ticks:
        x = box.left_edge + panel.axis.at(value, box.width)
        kind = "zero" if value == 0 and panel.axis.low < 0 else "grid"
        yield line(kind, (x, box.top), (x, box.bottom))
        if (value, label) in labelled:
            yield text(x, box.bottom + 14, label, "tick", "middle")


def _labelled_ticks(axis: Axis, width: float) -> Sequence[tuple[float, str]]:
    """Return the ticks whose labels fit beside each other: all, or every second one and so on.

    The tick nearest to 0 keeps its label.
    """
    values = [abs(value) for value, _ in axis.ticks]
    zero = values.index(min(values))
    for step in range(1, len(values)):
        ticks = axis.ticks[zero % step :: step]
        fits = True
        for (value, label), (next_value, next_label) in pairwise(ticks):
            distance = axis.at(next_value, width) - axis.at(value, width)
            # A label is centred below its tick, so that half of each is between the two.
            labels_width = _TICK_CELL * cell_len(label + next_label) / 2
            fits = fits and distance > labels_width
        if fits:
            return ticks
    return axis.ticks[zero : zero + 1]


def _panel_rows(
    panel: Panel,
    texts: Sequence[str],
    box: _Box,
    right: float,
) -> Iterator[str]:
    """Draw the bar of each row, and its text up to the `right` edge."""
    for index, (bar, content) in enumerate(zip(panel.bars, texts, strict=False)):
        y = box.top + _PITCH * index
        if bar is not None:
            bar_position = (box.left_edge, y + _PITCH / 2)
            yield _bar(panel.axis, bar, bar_position, box.width)
        is_best = _is_best(bar)
        yield text(right, y + 17, content, "value", "end", bold=is_best)


def bars(
    chart_name: str,
    title: str,
    rows: Sequence[str],
    values: Sequence[Bar],
    *,
    label: str = "",
    caption: str = "",
) -> Chart:
    """Draw bars of shares or correlations, up to 1; negative ones go to the left."""
    lowest = 0.0
    for bar in values:
        lowest = min(lowest, bar.value, bar.low or 0.0)
    axis = even(math.floor(2 * lowest) / 2, 1, 0.5)
    panel = Panel(axis, values, label=label)
    return intervals(chart_name, title, rows, [panel], caption=caption)


def _bar(
    axis: Axis,
    bar: Bar,
    position: tuple[float, float],
    plot_width: float,
) -> str:
    """Draw a bar from 0, or from the low end of an axis without 0, and its interval."""
    left_edge, middle = position
    bar_start = axis.at(max(0.0, axis.low), plot_width)
    bar_end = axis.at(bar.value, plot_width)
    kind = f"bar {bar.tone}".rstrip()
    bar_left = left_edge + min(bar_start, bar_end)
    bar_top = middle - _THICK / 2
    size = (abs(bar_end - bar_start), _THICK)
    elements = [rect(kind, (bar_left, bar_top), size)]
    if bar.low is not None and bar.high is not None:
        interval_start = left_edge + axis.at(bar.low, plot_width)
        interval_end = left_edge + axis.at(bar.high, plot_width)
        # The interval is a line with a stroke at each end.
        above = middle - 4
        below = middle + 4
        interval = line("ci", (interval_start, middle), (interval_end, middle))
        start_stroke = line("ci", (interval_start, above), (interval_start, below))
        end_stroke = line("ci", (interval_end, above), (interval_end, below))
        elements += [interval, start_stroke, end_stroke]
    elif bar_start == bar_end:  # an empty bar cannot be seen
        elements.append(dot(left_edge + bar_end, middle, 3))
    return group(bar.note, *elements)
