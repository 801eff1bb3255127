"""The shapes and texts that charts consist of, as SVG elements. Positions are in pixels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Literal

from rich.cells import cell_len, set_cell_size

from judge.core.format import one_line, plural
from judge.report.document import Chart
from judge.report.format import isolate

MAX_ROWS = 100
"""Systems in a chart."""
CELL = 7.5
"""Pixels of a character at 13 px; a CJK character takes two."""
_NAME = 28  # cells of a name
_NONCHARACTERS = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}  # not allowed in XML
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


def cut_note(total: int, drawn_count: int, noun: str) -> str:
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
