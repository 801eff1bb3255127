"""SVG elements of the charts. Colours come from classes, so that a stylesheet sets them; places are in pixels.

Filled are `bar` (also `bar best` and `bar worse`), `dot`, `heat-good`, `heat-bad` and the texts `label`, `value` and
`tick`; lines are `ci` (an interval), `zero`, `axis` and `grid`. Shades are `fill-opacity` attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Literal
from unicodedata import east_asian_width

from judge.core.format import one_line, plural
from judge.report.document import Chart
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
    name: str, title: str, size: tuple[float, float], parts: Iterable[str], *, values: Sequence[str], caption: str = ""
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


def text(x: float, y: float, content: str, kind: str = "label", anchor: Anchor = "start", *, bold: bool = False) -> str:
    """Draw a text. Its baseline is `y`."""
    small = ' font-size="11"' if kind == "tick" else ""
    weight = ' font-weight="700"' if bold else ""
    return f'<text class="{kind}"{place(x=x, y=y)} text-anchor="{anchor}"{small}{weight}>{escaped(content)}</text>'


def name_text(
    x: float, y: float, name: str, anchor: Anchor = "start", *, cells: int = _NAME, bold: bool = False
) -> str:
    """Draw a name, shortened to this many cells, with the whole name as a tooltip."""
    short = shorten(name, cells)
    drawn = text(x, y, short, "label", anchor, bold=bold)
    return drawn if short == one_line(name) else group(name, drawn)


def rect(kind: str, corner: tuple[float, float], size: tuple[float, float], opacity: float | None = None) -> str:
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
    return round(1.12 * CELL * max((cells(shorten(name)) for name in names), default=0)) + 12


def shorten(name: str, limit: int = _NAME) -> str:
    """Return the name on one line, cut to this many cells."""
    flat = one_line(name, 2 * limit)
    if cells(flat) <= limit:
        return flat
    while cells(flat) >= limit:
        flat = flat[:-1]
    return f"{flat.rstrip()}…"


def cells(content: str) -> int:
    """Return the width of a text in cells, of which a CJK character takes two."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in content)


def place(**numbers: float) -> str:
    """Write attributes with at most one decimal."""
    return "".join(f' {name}="{round(number, 1):g}"' for name, number in numbers.items())


def escaped(content: str) -> str:
    """Return the text on one line, as XML, with names of a right-to-left script isolated."""
    return escape(isolate(one_line(content).translate(_NONCHARACTERS)))
