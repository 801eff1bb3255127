"""Bars with their intervals: means, win rates, coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from judge.core.format import plural
from judge.report.charts.axes import Axis
from judge.report.charts.drawing import (
    CELL,
    MAX_ROWS,
    cells,
    chart,
    dot,
    label_width,
    line,
    name_text,
    rect,
    text,
)
from judge.report.charts.drawing import group as titled
from judge.report.document import Chart

_PITCH, _THICK = 24, 12  # pixels from row to row, and of a bar
_WIDE, _NARROW = 320, 150  # pixels of a plot that is alone, and of one of several
_HEAD, _FOOT, _GAP = 22, 20, 24  # pixels above and below the rows, and between panels


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its interval, if it has one. `text` is the value as the reader sees it, `note` a longer tooltip."""

    value: float
    low: float | None = None
    high: float | None = None
    text: str = ""
    note: str = ""
    tone: Literal["", "best", "worse"] = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A bar per row on one axis; None for a row without a value."""

    axis: Axis
    bars: Sequence[Bar | None]
    head: str = ""


def intervals(name: str, title: str, rows: Sequence[str], panels: Sequence[Panel], *, caption: str = "") -> Chart:
    """Draw bars with intervals: a row per name, and the panels side by side."""
    if len(rows) > MAX_ROWS:
        caption = f"The first {MAX_ROWS} of {plural(len(rows), 'row')}. {caption}".rstrip()
        rows = rows[:MAX_ROWS]
    margin, plot = label_width(rows), _WIDE if len(panels) == 1 else _NARROW
    top = _HEAD if any(panel.head for panel in panels) else 4
    bottom = top + _PITCH * len(rows)
    best = {place for panel in panels for place, bar in enumerate(panel.bars) if bar and bar.tone == "best"}
    parts = [
        name_text(0, top + _PITCH * k + 17, row, bold=k in best and len(panels) == 1) for k, row in enumerate(rows)
    ]
    x, values = margin, []
    for panel in panels:
        bars = panel.bars[: len(rows)]
        texts = [bar.text if bar else "–" for bar in bars]
        if panel.head:
            parts.append(name_text(x, 14, panel.head, cells=round(plot / CELL), bold=True))
        for at, label in panel.axis.ticks:
            tick = x + panel.axis.at(at, plot)
            kind = "zero" if at == 0 and panel.axis.low < 0 else "grid"
            parts += [line(kind, (tick, top), (tick, bottom)), text(tick, bottom + 14, label, "tick", "middle")]
        room = CELL * max(map(cells, texts), default=0) + 10
        for k, (bar, content) in enumerate(zip(bars, texts, strict=True)):
            y = top + _PITCH * k
            parts.append(_bar(panel.axis, bar, (x, y + _PITCH / 2), plot) if bar else "")
            bold = bar is not None and bar.tone == "best"
            parts.append(text(x + plot + room, y + 17, content, "value", "end", bold=bold))
        head = f"{panel.head} " if panel.head else ""
        values += [f"{row} {head}{content}" for row, content in zip(rows, texts, strict=True)]
        x += plot + room + _GAP
    return chart(name, title, (x - _GAP + 4, bottom + _FOOT), parts, values=values, caption=caption)


def bars(name: str, title: str, rows: Sequence[str], values: Sequence[Bar], *, caption: str = "") -> Chart:
    """Draw few thick bars of shares or correlations, each with its value behind it; negative ones go to the left."""
    pitch, thick, plot = 34, 18, 240
    margin, lowest = label_width(rows), min((end for bar in values for end in (bar.value, bar.low or 0.0)), default=0.0)
    axis = Axis(min(0.0, lowest), 1.0, ())
    room = CELL * max((cells(bar.text) for bar in values), default=0) + 10
    parts = []
    for k, (row, bar) in enumerate(zip(rows, values, strict=True)):
        middle = pitch * k + pitch / 2
        end = max(bar.value, bar.high or bar.value, 0.0)
        parts += [
            name_text(0, middle + 5, row),
            _bar(axis, bar, (margin, middle), plot, thick),
            text(margin + axis.at(end, plot) + 8, middle + 5, bar.text, "value", bold=bar.tone == "best"),
        ]
    zero = margin + axis.at(0, plot)
    parts.append(line("zero", (zero, 0), (zero, pitch * len(rows))))
    described = [f"{row} {bar.text}" for row, bar in zip(rows, values, strict=True)]
    return chart(name, title, (margin + plot + room, pitch * len(rows)), parts, values=described, caption=caption)


def _bar(axis: Axis, bar: Bar, at: tuple[float, float], plot: float, thick: float = _THICK) -> str:
    """Draw a bar from 0, or from the low end of an axis without 0, and its interval."""
    x, middle = at
    start, end = axis.at(max(0.0, axis.low), plot), axis.at(bar.value, plot)
    kind = f"bar {bar.tone}".rstrip()
    parts = [rect(kind, (x + min(start, end), middle - thick / 2), (abs(end - start), thick))]
    if bar.low is not None and bar.high is not None:
        low, high = x + axis.at(bar.low, plot), x + axis.at(bar.high, plot)
        parts += [
            line("ci", (low, middle), (high, middle)),
            *(line("ci", (tip, middle - 4), (tip, middle + 4)) for tip in (low, high)),
        ]
    elif start == end:  # an empty bar cannot be seen
        parts.append(dot(x + end, middle, 3))
    return titled(bar.note, *parts)
