"""Draw charts as SVG: intervals, lines over time, heat maps, histograms and calibration.

Colours come from classes, so that a stylesheet sets them. Positions are in pixels.

Filled are `bar` (also `bar best` and `bar worse`), `dot`, `heat-good`, `heat-bad` and the texts
`label`, `value` and `tick`; lines are `ci` (an interval), `zero`, `axis` and `grid`. Shades are
`fill-opacity` attributes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import chain, pairwise
from typing import Literal

from rich.cells import cell_len, set_cell_size

from judge.core.format import decimals, minus, number, one_line, plural
from judge.report.document import Cell, Chart
from judge.report.format import isolate, shortest_places

MAX_ROWS = 100
"""Systems in a chart."""
CELL = 7.5
"""Pixels of a character at 13 px; a CJK character takes two."""
_NAME = 28  # cells of a name
_NONCHARACTERS = {0xFFFE: "�", 0xFFFF: "�"}  # not allowed in XML
_DIGITS_OF_EDGES = 9  # after the point; edges of bins differ by more
_ALT = 20  # values that a chart's description lists
Anchor = Literal["start", "middle", "end"]


def chart(
    chart_name: str,
    title: str,
    size: tuple[float, float],
    elements: Iterable[str],
    *,
    values: Sequence[str],
    caption: str = "",
) -> Chart:
    """Return the chart of these elements; `values` describe it to readers who cannot see it."""
    width = round(size[0])
    height = round(size[1])
    alt = "; ".join(values[:_ALT])
    if len(values) > _ALT:
        n_more = len(values) - _ALT
        alt = f"{alt}; and {plural(n_more, 'more value')}"
    alt = one_line(alt)
    description = f"{title}: {alt}" if alt else title
    label = escaped(description)
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    described = f'role="img" aria-label="{label}"'
    namespace = 'xmlns="http://www.w3.org/2000/svg"'
    content = "".join(elements)
    svg = f'<svg {namespace} {box} font-size="13" {described}>{content}</svg>'
    return Chart(chart_name, title, svg, alt, width, height, caption)


def _first(total: int, drawn_count: int, noun: str) -> str:
    """Say that only the first ones are drawn, if there are more than `drawn_count`."""
    if total <= drawn_count:
        return ""
    all_of_them = plural(total, noun)
    return f"The first {drawn_count} of {all_of_them}. "


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
    position = _attributes(x=x, y=y)
    attributes = f'class="{kind}"{position} text-anchor="{anchor}"{small}{weight}'
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
    kind: str,
    corner: tuple[float, float],
    size: tuple[float, float],
    opacity: float | None = None,
) -> str:
    """Draw a rectangle from its upper left corner."""
    shade = "" if opacity is None else f' fill-opacity="{opacity:.2g}"'
    x, y = corner
    width, height = size
    box = _attributes(x=x, y=y, width=width, height=height)
    return f'<rect class="{kind}"{box} rx="2"{shade}/>'


def line(
    kind: str,
    start_point: tuple[float, float],
    end_point: tuple[float, float],
    dashes: str = "",
) -> str:
    """Draw a line."""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    x1, y1 = start_point
    x2, y2 = end_point
    ends = _attributes(x1=x1, y1=y1, x2=x2, y2=y2)
    return f'<line class="{kind}"{ends}{dashed}/>'


def dot(x: float, y: float, radius: float) -> str:
    """Draw a dot."""
    circle = _attributes(cx=x, cy=y, r=radius)
    return f'<circle class="dot"{circle}/>'


def group(title: str, *elements: str) -> str:
    """Group elements under one tooltip."""
    inner = "".join(elements)
    if not title:
        return inner
    return f"<g><title>{escaped(title)}</title>{inner}</g>"


def label_width(row_names: Iterable[str]) -> float:
    """Return the width in pixels of a column of shortened names. Some names may be bold."""
    widths = [cell_len(shorten(name)) for name in row_names]
    longest = max(widths, default=0)
    return round(1.12 * CELL * longest) + 12  # bold letters are wider


def shorten(name: str, limit: int = _NAME) -> str:
    """Return the name on one line, cut to this many cells."""
    flat = one_line(name, 2 * limit)
    if cell_len(flat) <= limit:
        return flat
    # A wide character at the cut is replaced by a space.
    beginning = set_cell_size(flat, limit - 1).rstrip()
    return f"{beginning}…"


def _attributes(**numbers: float) -> str:
    """Write attributes with at most one decimal."""
    attributes = ""
    for attribute, value in numbers.items():
        rounded = round(value, 1)
        attributes += f' {attribute}="{rounded:g}"'
    return attributes


def escaped(content: str) -> str:
    """Return the text on one line, as XML, with names of a right-to-left script isolated."""
    allowed = one_line(content).translate(_NONCHARACTERS)
    return escape(isolate(allowed))


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
        span = self.high - self.low
        share = (value - self.low) / span
        return length * min(1.0, max(0.0, share))


def scale(lowest: float, highest: float) -> Axis:
    """Return an axis of a whole scale, with a tick per point if there are few."""
    span = (highest - lowest) or 1.0
    is_short = 2 <= span <= 10
    step = 1.0 if is_short and span == int(span) else _round_step(span)
    return even(lowest, lowest + span, step)


def around(values: Iterable[float]) -> Axis:
    """Return an axis that contains 0 and these values and ends at round numbers."""
    finite = [value for value in values if math.isfinite(value)]
    lowest = min([0.0, *finite])
    highest = max([0.0, *finite])
    step = _round_step((highest - lowest) or 1.0)
    # Rounding errors must not add a step: 0.3 / 0.1 is a little less than 3.
    lowest_tick = math.floor(lowest / step + 1e-9) * step
    highest_tick = math.ceil(highest / step - 1e-9) * step
    if highest_tick <= lowest_tick:
        highest_tick = lowest_tick + step
    return even(lowest_tick, highest_tick, step)


def even(lowest: float, highest: float, step: float) -> Axis:
    """Return an axis with a tick at every step."""
    n_decimals = 0
    if step < 1:
        # Rounding errors must not add a decimal: log10(0.001) may be a little less than -3.
        n_decimals = -math.floor(math.log10(step) + 1e-9)
    n_steps = math.floor((highest - lowest) / step + 1e-9)
    ticks = []
    for index in range(n_steps + 1):
        value = lowest + index * step
        ticks.append((value, number(value, n_decimals)))
    return Axis(lowest, highest, tuple(ticks))


def _round_step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, so that about five steps make the span."""
    power = 10.0 ** math.floor(math.log10(span / 5))
    for multiple in (1, 2, 5):
        step = multiple * power
        # A span that is a rounding error too long keeps its step.
        if 5 * step >= 0.999 * span:
            return step
    return 10 * power


# Bars with their intervals: means, win rates, coefficients

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
    rows_cut = _first(len(rows), MAX_ROWS, "row")
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


# A matrix of shaded cells: correlations, win rates, differences between systems

_TALL = 28  # pixels of a row
_HEADINGS = 24  # pixels of the headings
_MIN_WIDE = 60  # pixels of the narrowest column
_MAX_COLUMNS = 40
_CELLS = 12  # of a heading; longer ones become numbers that the rows repeat
_DEEPEST = 0.6  # opacity, so that a text can be read on it


def heat_map(
    chart_name: str,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    table: Sequence[Sequence[Cell | None]],
    *,
    caption: str = "",
) -> Chart:
    """Draw a shaded cell per row and column, its title as a tooltip; None leaves it empty."""
    rows_cut = _first(len(rows), MAX_ROWS, "row")
    columns_cut = _first(len(columns), _MAX_COLUMNS, "column")
    caption = f"{rows_cut}{columns_cut}{caption}".rstrip()
    rows = rows[:MAX_ROWS]
    columns = columns[:_MAX_COLUMNS]
    longest = max(map(cell_len, columns), default=0)
    # Long headings become numbers, if the rows have the same names.
    is_numbered = longest > _CELLS and list(rows) == list(columns)
    cell_width = float(_MIN_WIDE)
    labels = list(rows)
    if is_numbered:
        labels = [f"{index} {row}" for index, row in enumerate(rows, 1)]
    else:
        width_of_names = CELL * min(longest, _CELLS) + 6
        cell_width = max(cell_width, width_of_names)
    margin = label_width(labels)
    headings = _heat_headings(columns, margin, cell_width, is_numbered=is_numbered)
    elements = list(headings)
    for row_index, label in enumerate(labels):
        top = _HEADINGS + _TALL * row_index
        cells = table[row_index][: len(columns)]
        elements.append(name_text(0, top + 18, label))
        elements += _heat_cells(cells, (margin, top), cell_width)
    width = margin + cell_width * len(columns)
    height = _HEADINGS + _TALL * len(rows)
    descriptions = _strongest_cells(rows, columns, table) or ["nothing stands out"]
    return chart(
        chart_name,
        title,
        (width, height),
        elements,
        values=descriptions,
        caption=caption,
    )


def _heat_headings(
    columns: Sequence[str],
    margin: float,
    cell_width: float,
    *,
    is_numbered: bool,
) -> Iterator[str]:
    """Draw a name over the middle of each column, or its number with the name as a tooltip."""
    for index, head in enumerate(columns):
        middle = margin + cell_width * (index + 0.5)
        if is_numbered:
            heading = name_text(middle, 15, f"{index + 1}", "middle", cells=_CELLS)
            yield group(head, heading)
        else:
            yield name_text(middle, 15, head, "middle", cells=_CELLS)


def _strongest_cells(
    rows: Sequence[str],
    columns: Sequence[str],
    table: Sequence[Sequence[Cell | None]],
) -> list[str]:
    """Describe the shaded cells in words, the most shaded first."""
    depth_and_words: dict[frozenset[str], tuple[float, str]] = {}
    # The table may have more rows and columns than are drawn.
    for row, cells in zip(rows, table, strict=False):
        for column, cell in zip(columns, cells, strict=False):
            if cell is not None and cell.text and cell.shade:
                words = f"{row} and {column} {cell.text}"
                # Negative, so that sorting puts the deepest shade first.
                described = (-abs(cell.shade), words)
                # A symmetric matrix has each pair twice.
                pair = frozenset((row, column))
                depth_and_words.setdefault(pair, described)
    return [words for _, words in sorted(depth_and_words.values())]


def _heat_cells(
    cells: Sequence[Cell | None],
    corner: tuple[float, float],
    width: float,
) -> Iterator[str]:
    """Draw a row of a heat map from its upper left corner; cells without a text stay empty."""
    left_edge, top = corner
    for index, cell in enumerate(cells):
        if cell is not None and cell.text:
            yield _heat_cell(cell, (left_edge + width * index, top), width)


def _heat_cell(cell: Cell, corner: tuple[float, float], width: float) -> str:
    """Draw a cell of a heat map; the stronger its shade, the deeper the colour."""
    x, y = corner
    shade = cell.shade or 0.0
    drawn_cell = ""
    if shade:
        kind = "heat-good" if shade > 0 else "heat-bad"
        depth = _DEEPEST * min(1.0, abs(shade))
        inner_corner = (x + 1, y + 1)
        inner_size = (width - 2, _TALL - 2)
        drawn_cell = rect(kind, inner_corner, inner_size, depth)
    middle = x + width / 2
    value = text(middle, y + 18, cell.text, "value", "middle")
    return group(cell.title, drawn_cell, value)


# Small histograms side by side, on the same bins and with the same height

_WIDTH = 150  # pixels of a histogram
_HEIGHT = 60
_PER_ROW = 4  # histograms
_GUTTER = 24  # pixels between histograms
_ROW_PITCH = 128  # pixels from row to row
_FEW = 8  # bins, below which each has a label


def histograms(
    chart_name: str,
    title: str,
    values: Mapping[str, Sequence[float]],
    scale: Mapping[str, float],
    ends: tuple[float | None, float | None],
) -> Chart:
    """Draw a histogram per system; `scale` has the value of each label, if it has any."""
    all_scores = [score for scores in values.values() for score in scores]
    binning = bins(scale, ends, all_scores)
    caption = _first(len(values), MAX_ROWS, "system")
    if binning.is_by_label and not set(all_scores) <= set(scale.values()):
        caption += "Scores between two levels count at the nearest one."
    drawn_systems = list(values)[:MAX_ROWS]
    counts_by_system: dict[str, list[int]] = {}
    for system in drawn_systems:
        counts_by_system[system] = binning.count(values[system])
    # The same height means the same number of scores in every histogram.
    all_counts = chain.from_iterable(counts_by_system.values())
    tallest = max(all_counts, default=0) or 1
    elements: list[str] = []
    descriptions: list[str] = []
    for index, (system, counts) in enumerate(counts_by_system.items()):
        row, column = divmod(index, _PER_ROW)
        upper_left = ((_WIDTH + _GUTTER) * column, _ROW_PITCH * row)
        elements += _histogram(system, counts, binning.labels, upper_left, tallest)
        in_words = []
        for label, count in zip(binning.labels, counts, strict=True):
            if count:
                in_words.append(f"{count} × {label}")
        description = ", ".join(in_words)
        descriptions.append(f"{system} {description}")
    n_across = min(_PER_ROW, len(counts_by_system)) or 1
    n_down = math.ceil(len(counts_by_system) / _PER_ROW) or 1
    # No gutter follows the last histogram of a row.
    width = (_WIDTH + _GUTTER) * n_across - _GUTTER
    height = _ROW_PITCH * n_down - 16
    return chart(
        chart_name,
        title,
        (width, height),
        elements,
        values=descriptions,
        caption=caption.rstrip(),
    )


def _histogram(
    system: str,
    counts: Sequence[int],
    labels: Sequence[str],
    upper_left: tuple[float, float],
    tallest: int,
) -> Iterator[str]:
    """Draw the name of a system, an axis, and a column for each count."""
    left_edge, top = upper_left
    floor = top + 32 + _HEIGHT
    lower_left = (left_edge, floor)
    lower_right = (left_edge + _WIDTH, floor)
    yield name_text(left_edge, top + 12, system, cells=20)
    yield line("axis", lower_left, lower_right)
    yield from _columns(counts, labels, lower_left, tallest)


def _columns(
    counts: Sequence[int],
    labels: Sequence[str],
    corner: tuple[float, float],
    tallest: int,
) -> Iterator[str]:
    """Draw the columns of a histogram with their counts and labels, up from its lower left."""
    left_edge, floor = corner
    step = _WIDTH / len(labels)
    total = plural(sum(counts), "score")
    for index, (label, count) in enumerate(zip(labels, counts, strict=True)):
        height = _HEIGHT * count / tallest
        middle = left_edge + step * (index + 0.5)
        # A pixel on each side separates the columns.
        upper_left = (left_edge + step * index + 1, floor - height)
        elements = [rect("bar", upper_left, (step - 2, height))]
        if count:
            label_baseline = floor - height - 4
            count_text = text(middle, label_baseline, f"{count:,}", "tick", "middle")
            elements.append(count_text)
        yield group(f"{label}: {count:,} of {total}", *elements)
        is_last = index == len(labels) - 1
        if len(labels) < _FEW or index == 0 or is_last:
            # Many bins show the ends only: of `1–2` the first one's start, the last one's end.
            ends = label.split("–")
            range_end = ends[-1] if is_last else ends[0]
            yield text(middle, floor + 13, range_end, "tick", "middle")


@dataclass(frozen=True, slots=True)
class Bins:
    """The inner edges of the bins of a histogram, and the bins' labels.

    `is_by_label` says that each label of the scale has a bin.
    """

    edges: list[float]
    labels: list[str]
    is_by_label: bool = False

    def count(self, values: Iterable[float]) -> list[int]:
        """Return how many of the values are in each bin. A value on an edge is in the upper one."""
        counts = [0] * len(self.labels)
        for value in values:
            counts[bisect_right(self.edges, value)] += 1
        return counts


def bins(
    scale: Mapping[str, float],
    ends: tuple[float | None, float | None],
    values: Sequence[float],
) -> Bins:
    """Return the bins of a histogram.

    A scale of up to eleven labels has a bin per label, for the scores nearest to it (halves go up);
    any other has ten equal bins.
    """
    if 2 <= len(scale) <= 11:
        labels = sorted(scale, key=scale.__getitem__)
        edges = []
        for below, above in pairwise(labels):
            midpoint = (scale[below] + scale[above]) / 2
            edges.append(midpoint)
        return Bins(edges, [minus(label) for label in labels], is_by_label=True)
    low, high = ends
    if low is None:
        low = min(values, default=0.0)
    if high is None:
        high = max(values, default=1.0)
    width = ((high - low) or 1.0) / 10
    # Rounded, so that the score 0.3 is on the edge 3 * 0.1, not below it.
    edges = [round(low + index * width, _DIGITS_OF_EDGES) for index in range(11)]
    n_decimals = shortest_places(edges, most=decimals([high, low]))
    edge_texts = [number(edge, n_decimals) for edge in edges]
    ranges = [f"{start}–{end}" for start, end in pairwise(edge_texts)]
    return Bins(edges[1:-1], ranges)


# Two equal axes: the judge's scores to the right, people's ratings up

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


def calibration(
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
