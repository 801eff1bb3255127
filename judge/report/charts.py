"""Draw charts as SVG: intervals, lines over time, heat maps, histograms and calibration.

Colours come from classes, so that a stylesheet sets them; places are in pixels.

Filled are `bar` (also `bar best` and `bar worse`), `dot`, `heat-good`, `heat-bad` and the texts
`label`, `value` and `tick`; lines are `ci` (an interval), `zero`, `axis` and `grid`. Shades are
`fill-opacity` attributes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    width = round(size[0])
    height = round(size[1])
    alt = "; ".join(values[:_ALT])
    if len(values) > _ALT:
        alt = f"{alt}; and {plural(len(values) - _ALT, 'more value')}"
    alt = one_line(alt)
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
    attributes = f'class="{kind}"{place(x=x, y=y)} text-anchor="{anchor}"{small}{weight}'
    return f"<text {attributes}>{escaped(content)}</text>"


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
    box = place(x=corner[0], y=corner[1], width=size[0], height=size[1])
    return f'<rect class="{kind}"{box} rx="2"{shade}/>'


def line(kind: str, start: tuple[float, float], end: tuple[float, float], dashes: str = "") -> str:
    """Draw a line."""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    ends = place(x1=start[0], y1=start[1], x2=end[0], y2=end[1])
    return f'<line class="{kind}"{ends}{dashed}/>'


def dot(x: float, y: float, radius: float) -> str:
    """Draw a dot."""
    return f'<circle class="dot"{place(cx=x, cy=y, r=radius)}/>'


def group(title: str, *parts: str) -> str:
    """Group elements under one tooltip."""
    inner = "".join(parts)
    return f"<g><title>{escaped(title)}</title>{inner}</g>" if title else inner


def label_width(names: Iterable[str]) -> float:
    """Return the width in pixels of a column of shortened names, some of which may be bold."""
    longest = max((cell_len(shorten(name)) for name in names), default=0)
    return round(1.12 * CELL * longest) + 12  # bold letters are wider


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
        """Return the distance of a value from the start of an axis of this length.

        Values outside are on its ends.
        """
        share = (value - self.low) / (self.high - self.low)
        return length * min(1.0, max(0.0, share))


def scale(low: float, high: float) -> Axis:
    """Return an axis of a whole scale, with a tick per point if there are few."""
    span = (high - low) or 1.0
    step = 1.0 if 2 <= span <= 10 and span == int(span) else _round_step(span)
    return even(low, low + span, step)


def around(values: Iterable[float]) -> Axis:
    """Return an axis that contains 0 and these values and ends at round numbers."""
    finite = [value for value in values if math.isfinite(value)]
    lowest = min([0.0, *finite])
    highest = max([0.0, *finite])
    step = _round_step((highest - lowest) or 1.0)
    # Rounding errors must not add a step: 0.3 / 0.1 is a little less than 3.
    low = math.floor(lowest / step + 1e-9) * step
    high = math.ceil(highest / step - 1e-9) * step
    return even(low, high if high > low else low + step, step)


def even(low: float, high: float, step: float) -> Axis:
    """Return an axis with a tick at every step."""
    places = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else 0
    n_steps = math.floor((high - low) / step + 1e-9)
    values = [low + index * step for index in range(n_steps + 1)]
    return Axis(low, high, tuple((value, number(value, places)) for value in values))


def _round_step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, so that about five steps make the span."""
    power = 10.0 ** math.floor(math.log10(span / 5))
    steps = [multiple * power for multiple in (1, 2, 5, 10)]
    return next(step for step in steps if step * 5 >= span * 0.999)


# Bars with their intervals: means, win rates, coefficients

# In pixels.
_PITCH = 24  # from row to row
_THICK = 12  # height of a bar
_WIDE = 320  # width of a plot that is alone
_NARROW = 150  # width of one of several
_HEAD = 22  # above the rows
_FOOT = 20  # below the rows
_GAP = 24  # between panels


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
    margin = label_width(rows)
    plot = _WIDE if len(panels) == 1 else _NARROW
    top = _HEAD if any(panel.head for panel in panels) else 4
    bottom = top + _PITCH * len(rows)
    parts = []
    for index, row in enumerate(rows):
        # In several panels, a row may be the best one in some only.
        is_best = len(panels) == 1 and _is_best(panels[0].bars[index])
        parts.append(name_text(0, top + _PITCH * index + 17, row, bold=is_best))
    left = float(margin)
    values = []
    for panel in panels:
        texts = [bar.text if bar else "–" for bar in panel.bars[: len(rows)]]
        room = CELL * max(map(cell_len, texts), default=0) + 10  # of the values beside the plot
        box = _Box(left, top, plot, bottom)
        parts += _panel_frame(panel, box)
        for index, (bar, content) in enumerate(zip(panel.bars, texts, strict=False)):
            y = top + _PITCH * index
            if bar is not None:
                parts.append(_bar(panel.axis, bar, (left, y + _PITCH / 2), plot))
            end = left + plot + room
            parts.append(text(end, y + 17, content, "value", "end", bold=_is_best(bar)))
        head = f"{panel.head} " if panel.head else ""
        values += [f"{row} {head}{content}" for row, content in zip(rows, texts, strict=True)]
        left += plot + room + _GAP
    size = (left - _GAP + 4, bottom + _FOOT)
    return chart(name, title, size, parts, values=values, caption=caption)


def _is_best(bar: Bar | None) -> bool:
    return bar is not None and bar.tone == "best"


@dataclass(frozen=True, slots=True)
class _Box:
    """Where a plot is drawn, in pixels."""

    left: float
    top: float
    width: float
    bottom: float


def _panel_frame(panel: Panel, box: _Box) -> Iterator[str]:
    """Draw the heading of a panel and its ticks, with a stronger line at 0 if values go below."""
    if panel.head:
        yield name_text(box.left, 14, panel.head, cells=round(box.width / CELL), bold=True)
    for value, label in panel.axis.ticks:
        x = box.left + panel.axis.at(value, box.width)
        kind = "zero" if value == 0 and panel.axis.low < 0 else "grid"
        yield line(kind, (x, box.top), (x, box.bottom))
        yield text(x, box.bottom + 14, label, "tick", "middle")


def bars(
    name: str, title: str, rows: Sequence[str], values: Sequence[Bar], *, caption: str = ""
) -> Chart:
    """Draw bars of shares or correlations, up to 1; negative ones go to the left."""
    lowest = min((end for bar in values for end in (bar.value, bar.low or 0.0)), default=0.0)
    axis = even(math.floor(2 * min(0.0, lowest)) / 2, 1, 0.5)
    return intervals(name, title, rows, [Panel(axis, values)], caption=caption)


def _bar(axis: Axis, bar: Bar, at: tuple[float, float], plot: float) -> str:
    """Draw a bar from 0, or from the low end of an axis without 0, and its interval."""
    left, middle = at
    start = axis.at(max(0.0, axis.low), plot)
    end = axis.at(bar.value, plot)
    kind = f"bar {bar.tone}".rstrip()
    corner = (left + min(start, end), middle - _THICK / 2)
    parts = [rect(kind, corner, (abs(end - start), _THICK))]
    if bar.low is not None and bar.high is not None:
        low = left + axis.at(bar.low, plot)
        high = left + axis.at(bar.high, plot)
        parts.append(line("ci", (low, middle), (high, middle)))
        parts.extend(line("ci", (tip, middle - 4), (tip, middle + 4)) for tip in (low, high))
    elif start == end:  # an empty bar cannot be seen
        parts.append(dot(left + end, middle, 3))
    return group(bar.note, *parts)


# A matrix of shaded cells: correlations, win rates, differences between systems

_TALL = 28  # pixels of a row
_HEADINGS = 24  # pixels of the headings
_MIN_WIDE = 60  # pixels of the narrowest column
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
    rows = rows[:MAX_ROWS]
    columns = columns[:_MAX_COLUMNS]
    longest = max(map(cell_len, columns), default=0)
    # Long headings become numbers, if the rows have the same names.
    is_numbered = longest > _CELLS and list(rows) == list(columns)
    wide = float(_MIN_WIDE)
    labels = list(rows)
    if is_numbered:
        labels = [f"{index} {row}" for index, row in enumerate(rows, 1)]
    else:
        wide = max(wide, CELL * min(longest, _CELLS) + 6)
    margin = label_width(labels)
    parts = []
    for index, head in enumerate(columns):
        label = f"{index + 1}" if is_numbered else head
        drawn = name_text(margin + wide * (index + 0.5), 15, label, "middle", cells=_CELLS)
        parts.append(group(head, drawn) if is_numbered else drawn)
    strongest: dict[frozenset[str], tuple[float, str]] = {}
    for row_index, (row, label) in enumerate(zip(rows, labels, strict=True)):
        y = _HEADINGS + _TALL * row_index
        parts.append(name_text(0, y + 18, label))
        for index, (head, cell) in enumerate(zip(columns, table[row_index], strict=False)):
            if cell is None or not cell.text:
                continue
            parts.append(_heat_cell(cell, (margin + wide * index, y), wide))
            if cell.shade:
                # A symmetric matrix has each pair twice.
                described = (-abs(cell.shade), f"{row} and {head} {cell.text}")
                strongest.setdefault(frozenset((row, head)), described)
    size = (margin + wide * len(columns), _HEADINGS + _TALL * len(rows))
    values = [value for _, value in sorted(strongest.values())] or ["nothing stands out"]
    return chart(name, title, size, parts, values=values, caption=caption)


def _heat_cell(cell: Cell, corner: tuple[float, float], wide: float) -> str:
    """Draw a cell of a heat map; the stronger its shade, the deeper the colour."""
    x, y = corner
    shade = cell.shade or 0.0
    drawn = ""
    if shade:
        kind = "heat-good" if shade > 0 else "heat-bad"
        depth = _DEEPEST * min(1.0, abs(shade))
        drawn = rect(kind, (x + 1, y + 1), (wide - 2, _TALL - 2), depth)
    value = text(x + wide / 2, y + 18, cell.text, "value", "middle")
    return group(cell.title, drawn, value)


# Small histograms side by side, on the same bins and with the same height

_WIDTH = 150  # pixels of a histogram
_HEIGHT = 60
_PER_ROW = 4
_GUTTER = 24  # pixels between histograms
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
    scores = [score for scores_of_system in values.values() for score in scores_of_system]
    binning = bins(scale, ends, scores)
    caption = _first(len(values), MAX_ROWS, "system").rstrip()
    counts: dict[str, list[int]] = {}
    for system, scores_of_system in list(values.items())[:MAX_ROWS]:
        counts[system] = [0] * len(binning.labels)
        for score in scores_of_system:
            counts[system][bisect_right(binning.edges, score)] += 1
    tallest = max((n for row in counts.values() for n in row), default=0) or 1
    parts = []
    described = []
    for index, (system, row) in enumerate(counts.items()):
        left = (_WIDTH + _GUTTER) * (index % _PER_ROW)
        top = _ROW_PITCH * (index // _PER_ROW)
        floor = top + 32 + _HEIGHT
        parts.append(name_text(left, top + 12, system, cells=20))
        parts.append(line("axis", (left, floor), (left + _WIDTH, floor)))
        parts += _columns(row, binning.labels, (left, floor), tallest)
        in_words = [f"{n} × {label}" for label, n in zip(binning.labels, row, strict=True) if n]
        described.append(f"{system} {', '.join(in_words)}")
    n_across = min(_PER_ROW, len(counts)) or 1
    n_down = math.ceil(len(counts) / _PER_ROW) or 1
    size = ((_WIDTH + _GUTTER) * n_across - _GUTTER, _ROW_PITCH * n_down - 16)
    return chart(name, title, size, parts, values=described, caption=caption)


def _columns(
    counts: Sequence[int], labels: Sequence[str], at: tuple[float, float], tallest: int
) -> Iterator[str]:
    """Draw the columns of a histogram with their counts and labels, up from its floor."""
    left, floor = at
    step = _WIDTH / len(labels)
    total = plural(sum(counts), "score")
    for index, (label, n) in enumerate(zip(labels, counts, strict=True)):
        tall = _HEIGHT * n / tallest
        middle = left + step * (index + 0.5)
        corner = (left + step * index + 1, floor - tall)
        drawn = [rect("bar", corner, (step - 2, tall))]
        if n:
            drawn.append(text(middle, floor - tall - 4, f"{n:,}", "tick", "middle"))
        yield group(f"{label}: {n:,} of {total}", *drawn)
        is_last = index == len(labels) - 1
        if len(labels) < _FEW or index == 0 or is_last:
            # Many bins show the ends only: of `1–2` the first one's start, the last one's end.
            ends = label.split("–")
            yield text(middle, floor + 13, ends[-1] if is_last else ends[0], "tick", "middle")


@dataclass(frozen=True, slots=True)
class Bins:
    """The inner edges of the bins of a histogram, and the bins' labels."""

    edges: list[float]
    labels: list[str]


def bins(
    scale: Mapping[str, float], ends: tuple[float | None, float | None], values: Sequence[float]
) -> Bins:
    """Return the bins of a histogram.

    A scale of up to eleven labels has a bin per label, for the scores nearest to it (halves go up);
    any other has ten equal bins.
    """
    if 2 <= len(scale) <= 11:
        labels = sorted(scale, key=lambda label: scale[label])
        edges = [(scale[below] + scale[above]) / 2 for below, above in pairwise(labels)]
        return Bins(edges, [minus(label) for label in labels])
    low = min(values, default=0.0) if ends[0] is None else ends[0]
    high = max(values, default=1.0) if ends[1] is None else ends[1]
    width = ((high - low) or 1.0) / 10
    places = decimals([high, low])
    starts = [low + index * width for index in range(10)]
    ranges = [f"{number(start, places)}–{number(start + width, places)}" for start in starts]
    return Bins(starts[1:], ranges)


# Two equal axes: the judge's scores to the right, people's ratings up

_SIDE = 240  # pixels of the plot
_LEFT = 44  # pixels beside it
_TOP = 10
_BELOW = 44
_LARGEST = 7.0  # radius in pixels of the point with the most texts
_SMALLEST = 2.5


@dataclass(frozen=True, slots=True)
class Bin:
    """Texts with similar scores: the judge's mean, that of people with its interval, and `texts`."""

    judge: float
    people: float
    low: float | None
    high: float | None
    texts: int
    note: str = ""


def calibration(name: str, title: str, bins: Sequence[Bin], ends: tuple[float, float]) -> Chart:
    """Draw people's mean rating for texts with similar scores.

    On the diagonal the judge and people agree.
    """
    axis = scale(*ends)
    most = max((bin.texts for bin in bins), default=1)
    floor = _TOP + _SIDE
    right = _LEFT + _SIDE
    parts = []
    for value, label in axis.ticks:
        x = _LEFT + axis.at(value, _SIDE)
        y = floor - axis.at(value, _SIDE)
        parts.append(line("grid", (x, _TOP), (x, floor)))
        parts.append(text(x, floor + 15, label, "tick", "middle"))
        parts.append(line("grid", (_LEFT, y), (right, y)))
        parts.append(text(_LEFT - 6, y + 4, label, "tick", "end"))
    parts.append(text(_LEFT + _SIDE / 2, floor + 36, "judge", "label", "middle"))
    turned = text(0, 0, "people", "label", "middle")
    middle = _TOP + _SIDE / 2
    parts.append(f'<g transform="translate(12 {middle:g}) rotate(-90)">{turned}</g>')
    parts.append(line("zero", (_LEFT, floor), (right, _TOP), "4 4"))
    for bin in bins:
        x = _LEFT + axis.at(bin.judge, _SIDE)
        y = floor - axis.at(bin.people, _SIDE)
        # The area of a point is proportional to the number of texts.
        drawn = [dot(x, y, max(_SMALLEST, _LARGEST * sqrt(bin.texts / most)))]
        if bin.low is not None and bin.high is not None:
            low = floor - axis.at(bin.low, _SIDE)
            high = floor - axis.at(bin.high, _SIDE)
            drawn.insert(0, line("ci", (x, low), (x, high)))
        parts.append(group(bin.note, *drawn))
    size = (right + 16, floor + _BELOW)
    return chart(name, title, size, parts, values=[bin.note for bin in bins])
