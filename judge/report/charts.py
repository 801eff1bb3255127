"""Draw charts as SVG: intervals, lines over time, heat maps, histograms and calibration.

Colours come from classes, so that a stylesheet sets them; places are in pixels.

Filled are `bar` (also `bar best` and `bar worse`), `dot`, `heat-good`, `heat-bad` and the texts `label`, `value` and
`tick`; lines are `ci` (an interval), `zero`, `axis` and `grid`. Shades are `fill-opacity` attributes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import sqrt
from typing import Literal

from rich.cells import cell_len, set_cell_size

from judge.core.format import decimals, minus, number, one_line, plural
from judge.report.document import Cell, Chart
from judge.report.format import isolate

MAX_ROWS = 100
"""Systems in a chart."""
CELL = 7.5
"""Pixels of a character at 13 px; a CJK character takes two."""
_NAME = 28  # cells of a name
_NONCHARACTERS = {0xFFFE: "�", 0xFFFF: "�"}  # not allowed in XML
_ALT = 20  # values that a chart's description lists
Anchor = Literal["start", "middle", "end"]


def chart(
    name: str,
    title: str,
    size: tuple[float, float],
    parts: Iterable[str],
    *,
    values: Sequence[str],
    caption: str = "",
) -> Chart:
    """Return the chart of these elements; `values` describe it to readers who cannot see it."""
    width, height = (round(side) for side in size)
    more = f"; and {plural(len(values) - _ALT, 'more value')}" if len(values) > _ALT else ""
    alt = one_line(f"{'; '.join(values[:_ALT])}{more}")
    label = escaped(f"{title}: {alt}" if alt else title)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-size="13" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    )
    return Chart(name, title, svg, alt, width, height, caption)


def _first(n: int, most: int, noun: str) -> str:
    """Say that only the first ones are drawn, if there are more than `most`."""
    return f"The first {most} of {plural(n, noun)}. " if n > most else ""


def text(
    x: float,
    y: float,
    content: str,
    kind: str = "label",
    anchor: Anchor = "start",
    *,
    bold: bool = False,
) -> str:
    """Draw a text. Its baseline is `y`."""
    small = ' font-size="11"' if kind == "tick" else ""
    weight = ' font-weight="700"' if bold else ""
    return f'<text class="{kind}"{place(x=x, y=y)} text-anchor="{anchor}"{small}{weight}>{escaped(content)}</text>'


def name_text(
    x: float,
    y: float,
    name: str,
    anchor: Anchor = "start",
    *,
    cells: int = _NAME,
    bold: bool = False,
) -> str:
    """Draw a name, shortened to this many cells, with the whole name as a tooltip."""
    short = shorten(name, cells)
    drawn = text(x, y, short, "label", anchor, bold=bold)
    return drawn if short == one_line(name) else group(name, drawn)


def rect(
    kind: str, corner: tuple[float, float], size: tuple[float, float], opacity: float | None = None
) -> str:
    """Draw a rectangle from its upper left corner."""
    shade = "" if opacity is None else f' fill-opacity="{opacity:.2g}"'
    return f'<rect class="{kind}"{place(x=corner[0], y=corner[1], width=size[0], height=size[1])} rx="2"{shade}/>'


def line(kind: str, start: tuple[float, float], end: tuple[float, float], dashes: str = "") -> str:
    """Draw a line."""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line class="{kind}"{place(x1=start[0], y1=start[1], x2=end[0], y2=end[1])}{dashed}/>'


def dot(x: float, y: float, radius: float) -> str:
    """Draw a dot."""
    return f'<circle class="dot"{place(cx=x, cy=y, r=radius)}/>'


def group(title: str, *parts: str) -> str:
    """Group elements under one tooltip."""
    return f"<g><title>{escaped(title)}</title>{''.join(parts)}</g>" if title else "".join(parts)


def label_width(names: Iterable[str]) -> float:
    """Return the width in pixels of a column of shortened names, some of which may be bold."""
    return round(1.12 * CELL * max((cell_len(shorten(name)) for name in names), default=0)) + 12


def shorten(name: str, limit: int = _NAME) -> str:
    """Return the name on one line, cut to this many cells."""
    flat = one_line(name, 2 * limit)
    return flat if cell_len(flat) <= limit else f"{set_cell_size(flat, limit - 1).rstrip()}…"


def place(**numbers: float) -> str:
    """Write attributes with at most one decimal."""
    return "".join(f' {name}="{round(number, 1):g}"' for name, number in numbers.items())


def escaped(content: str) -> str:
    """Return the text on one line, as XML, with names of a right-to-left script isolated."""
    return escape(isolate(one_line(content).translate(_NONCHARACTERS)))


# Linear axes, with ticks at round numbers


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high`; `ticks` are values and their labels."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]

    def at(self, value: float, length: float) -> float:
        """Return the distance of a value from the start of an axis of this length. Values outside are on its ends."""
        return length * min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def scale(low: float, high: float) -> Axis:
    """Return an axis of a whole scale, with a tick per point if there are few."""
    span = (high - low) or 1.0
    step = 1.0 if 2 <= span <= 10 and span == int(span) else _round_step(span)
    return even(low, low + span, step)


def around(values: Iterable[float]) -> Axis:
    """Return an axis that contains 0 and these values and ends at round numbers."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    step = _round_step((high - low) or 1.0)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return even(low, high if high > low else low + step, step)


def even(low: float, high: float, step: float) -> Axis:
    """Return an axis with a tick at every step."""
    places = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else 0
    at = [low + k * step for k in range(math.floor((high - low) / step + 1e-9) + 1)]
    return Axis(low, high, tuple((value, number(value, places)) for value in at))


def _round_step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, so that about five steps make the span."""
    power = 10.0 ** math.floor(math.log10(span / 5))
    return next(m * power for m in (1, 2, 5, 10) if m * power * 5 >= span * 0.999)


# Bars with their intervals: means, win rates, coefficients

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


def intervals(
    name: str, title: str, rows: Sequence[str], panels: Sequence[Panel], *, caption: str = ""
) -> Chart:
    """Draw bars with intervals: a row per name, and the panels side by side."""
    caption = f"{_first(len(rows), MAX_ROWS, 'row')}{caption}".rstrip()
    rows = rows[:MAX_ROWS]
    margin, plot = label_width(rows), _WIDE if len(panels) == 1 else _NARROW
    top = _HEAD if any(panel.head for panel in panels) else 4
    bottom = top + _PITCH * len(rows)
    best = {
        place
        for panel in panels
        for place, bar in enumerate(panel.bars)
        if bar and bar.tone == "best"
    }
    parts = [
        name_text(0, top + _PITCH * k + 17, row, bold=k in best and len(panels) == 1)
        for k, row in enumerate(rows)
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
            parts += [
                line(kind, (tick, top), (tick, bottom)),
                text(tick, bottom + 14, label, "tick", "middle"),
            ]
        room = CELL * max(map(cell_len, texts), default=0) + 10
        for k, (bar, content) in enumerate(zip(bars, texts, strict=True)):
            y = top + _PITCH * k
            parts.append(_bar(panel.axis, bar, (x, y + _PITCH / 2), plot) if bar else "")
            bold = bar is not None and bar.tone == "best"
            parts.append(text(x + plot + room, y + 17, content, "value", "end", bold=bold))
        head = f"{panel.head} " if panel.head else ""
        values += [f"{row} {head}{content}" for row, content in zip(rows, texts, strict=True)]
        x += plot + room + _GAP
    return chart(name, title, (x - _GAP + 4, bottom + _FOOT), parts, values=values, caption=caption)


def bars(
    name: str, title: str, rows: Sequence[str], values: Sequence[Bar], *, caption: str = ""
) -> Chart:
    """Draw bars of shares or correlations, up to 1; negative ones go to the left."""
    lowest = min((end for bar in values for end in (bar.value, bar.low or 0.0)), default=0.0)
    axis = even(math.floor(2 * min(0.0, lowest)) / 2, 1, 0.5)
    return intervals(name, title, rows, [Panel(axis, values)], caption=caption)


def _bar(axis: Axis, bar: Bar, at: tuple[float, float], plot: float) -> str:
    """Draw a bar from 0, or from the low end of an axis without 0, and its interval."""
    x, middle = at
    start, end = axis.at(max(0.0, axis.low), plot), axis.at(bar.value, plot)
    kind = f"bar {bar.tone}".rstrip()
    parts = [rect(kind, (x + min(start, end), middle - _THICK / 2), (abs(end - start), _THICK))]
    if bar.low is not None and bar.high is not None:
        low, high = x + axis.at(bar.low, plot), x + axis.at(bar.high, plot)
        parts += [
            line("ci", (low, middle), (high, middle)),
            *(line("ci", (tip, middle - 4), (tip, middle + 4)) for tip in (low, high)),
        ]
    elif start == end:  # an empty bar cannot be seen
        parts.append(dot(x + end, middle, 3))
    return group(bar.note, *parts)


# A matrix of shaded cells: correlations, win rates, differences between systems

_TALL, _HEADINGS, _MIN_WIDE = (
    28,
    24,
    60,
)  # pixels of a row and of the headings, and of the narrowest column
_MAX_COLUMNS = 40
_CELLS = 12  # of a heading; longer ones become numbers that the rows repeat
_DEEPEST = 0.6  # opacity, so that a text can be read on it


def heat_map(
    name: str,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    table: Sequence[Sequence[Cell | None]],
    *,
    caption: str = "",
) -> Chart:
    """Draw a shaded cell per row and column, its title as a tooltip; None leaves it empty."""
    cut = _first(len(rows), MAX_ROWS, "row") + _first(len(columns), _MAX_COLUMNS, "column")
    caption = f"{cut}{caption}".rstrip()
    rows, columns = rows[:MAX_ROWS], columns[:_MAX_COLUMNS]
    longest = max(map(cell_len, columns), default=0)
    numbered = longest > _CELLS and list(rows) == list(columns)
    wide = max(_MIN_WIDE, 0 if numbered else CELL * min(longest, _CELLS) + 6)
    labels = [f"{k} {row}" for k, row in enumerate(rows, 1)] if numbered else rows
    margin, parts = label_width(labels), []
    described: dict[frozenset[str], tuple[float, str]] = {}
    for k, head in enumerate(columns):
        label = f"{k + 1}" if numbered else head
        drawn = name_text(margin + wide * (k + 0.5), 15, label, "middle", cells=_CELLS)
        parts.append(group(head, drawn) if numbered else drawn)
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        y = _HEADINGS + _TALL * i
        parts.append(name_text(0, y + 18, label))
        for k, (head, cell) in enumerate(zip(columns, table[i], strict=False)):
            if cell is None or not cell.text:
                continue
            x, shade = margin + wide * k, cell.shade or 0.0
            kind, depth = "heat-good" if shade > 0 else "heat-bad", _DEEPEST * min(1.0, abs(shade))
            drawn = rect(kind, (x + 1, y + 1), (wide - 2, _TALL - 2), depth) if shade else ""
            parts.append(
                group(cell.title, drawn, text(x + wide / 2, y + 18, cell.text, "value", "middle"))
            )
            if shade:
                described.setdefault(
                    frozenset((row, head)), (-abs(shade), f"{row} and {head} {cell.text}")
                )
    size = (margin + wide * len(columns), _HEADINGS + _TALL * len(rows))
    values = [value for _, value in sorted(described.values())] or ["nothing stands out"]
    return chart(name, title, size, parts, values=values, caption=caption)


# Small histograms side by side, on the same bins and with the same height

_WIDTH, _HEIGHT, _PER_ROW, _GUTTER = (
    150,
    60,
    4,
    24,
)  # pixels of a histogram, histograms in a row, pixels between them
_ROW_PITCH = 128  # pixels from row to row
_FEW = 8  # bins, below which each has a label


def histograms(
    name: str,
    title: str,
    values: Mapping[str, Sequence[float]],
    scale: Mapping[str, float],
    ends: tuple[float | None, float | None],
) -> Chart:
    """Draw a histogram per system; `scale` has the value of each label, if it has any."""
    edges, heads = bins(scale, ends, [value for scores in values.values() for value in scores])
    caption = _first(len(values), MAX_ROWS, "system").rstrip()
    counts = {}
    for system, scores in list(values.items())[:MAX_ROWS]:
        counts[system] = [0] * len(heads)
        for value in scores:
            counts[system][bisect_right(edges, value)] += 1
    tallest = max((n for row in counts.values() for n in row), default=0) or 1
    step, parts, described = _WIDTH / len(heads), [], []
    for place, (system, row) in enumerate(counts.items()):
        x, top = (_WIDTH + _GUTTER) * (place % _PER_ROW), _ROW_PITCH * (place // _PER_ROW)
        floor = top + 32 + _HEIGHT
        parts += [
            name_text(x, top + 12, system, cells=20),
            line("axis", (x, floor), (x + _WIDTH, floor)),
        ]
        for k, (head, n) in enumerate(zip(heads, row, strict=True)):
            tall, start, middle = _HEIGHT * n / tallest, x + step * k, x + step * (k + 0.5)
            drawn = [rect("bar", (start + 1, floor - tall), (step - 2, tall))]
            drawn += [text(middle, floor - tall - 4, f"{n:,}", "tick", "middle")] if n else []
            parts.append(group(f"{head}: {n:,} of {plural(sum(row), 'score')}", *drawn))
            first, last = k == 0, k == len(heads) - 1
            if len(heads) < _FEW or first or last:
                parts.append(
                    text(middle, floor + 13, head.split("–")[-1 if last else 0], "tick", "middle")
                )
        described.append(
            f"{system} "
            + ", ".join(f"{n} × {head}" for head, n in zip(heads, row, strict=True) if n)
        )
    across, down = min(_PER_ROW, len(counts)) or 1, -(-len(counts) // _PER_ROW) or 1
    size = ((_WIDTH + _GUTTER) * across - _GUTTER, _ROW_PITCH * down - 16)
    return chart(name, title, size, parts, values=described, caption=caption)


def bins(
    scale: Mapping[str, float], ends: tuple[float | None, float | None], values: Sequence[float]
) -> tuple[list[float], list[str]]:
    """Return the inner edges of the bins and the bins' labels.

    A scale of up to eleven labels has a bin per label, for the scores nearest to it (halves go up); any other has ten
    equal bins.
    """
    if 2 <= len(scale) <= 11:
        labels = sorted(scale, key=lambda label: scale[label])
        return [(scale[a] + scale[b]) / 2 for a, b in pairwise(labels)], [
            minus(label) for label in labels
        ]
    low = min(values, default=0.0) if ends[0] is None else ends[0]
    high = max(values, default=1.0) if ends[1] is None else ends[1]
    width = ((high - low) or 1.0) / 10
    places = decimals([high, low])
    starts = [low + k * width for k in range(10)]
    return starts[1:], [f"{number(s, places)}–{number(s + width, places)}" for s in starts]


# Two equal axes: the judge's scores to the right, people's ratings up

_SIDE, _LEFT, _TOP, _BELOW = 240, 44, 10, 44  # pixels of the plot, and around it
_LARGEST, _SMALLEST = 7.0, 2.5  # radius in pixels of a point; the largest has the most texts


@dataclass(frozen=True, slots=True)
class Bin:
    """Texts with similar scores: the mean score of the judge and of people, with its interval, and their number."""

    judge: float
    people: float
    low: float | None
    high: float | None
    texts: int
    note: str = ""


def calibration(name: str, title: str, bins: Sequence[Bin], ends: tuple[float, float]) -> Chart:
    """Draw people's mean rating for texts with similar scores; on the diagonal the judge and people agree."""
    axis, most = scale(*ends), max((bin.texts for bin in bins), default=1)
    right, floor, middle = _LEFT + _SIDE, _TOP + _SIDE, _TOP + _SIDE / 2
    parts = []
    for value, label in axis.ticks:
        x, y = _LEFT + axis.at(value, _SIDE), floor - axis.at(value, _SIDE)
        parts += [line("grid", (x, _TOP), (x, floor)), text(x, floor + 15, label, "tick", "middle")]
        parts += [
            line("grid", (_LEFT, y), (right, y)),
            text(_LEFT - 6, y + 4, label, "tick", "end"),
        ]
    turned = text(0, 0, "people", "label", "middle")
    parts += [
        text(_LEFT + _SIDE / 2, floor + 36, "judge", "label", "middle"),
        f'<g transform="translate(12 {middle:g}) rotate(-90)">{turned}</g>',
        line("zero", (_LEFT, floor), (right, _TOP), "4 4"),
    ]
    for bin in bins:
        x, y = _LEFT + axis.at(bin.judge, _SIDE), floor - axis.at(bin.people, _SIDE)
        drawn = [dot(x, y, max(_SMALLEST, _LARGEST * sqrt(bin.texts / most)))]
        if bin.low is not None and bin.high is not None:
            low, high = (floor - axis.at(end, _SIDE) for end in (bin.low, bin.high))
            drawn.insert(0, line("ci", (x, low), (x, high)))
        parts.append(group(bin.note, *drawn))
    size = right + 16, floor + _BELOW
    return chart(name, title, size, parts, values=[bin.note for bin in bins])
