"""Render the charts of a Document as standalone SVG, and as PNG with the package resvg-py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.cells import cell_len

from judge.core.errors import ConfigError, MissingExtra
from judge.core.files import store
from judge.core.plugins import unknown_name_message
from judge.report import document as blocks
from judge.report.charts import CELL, escaped, shorten, text
from judge.report.document import Chart, Document

_MARGIN, _HEAD, _TITLE = 16, 44, 80  # pixels around a chart and of its title, and cells of a title
_FILE_NAME = 150  # bytes
_SCALE = 2  # pixels of a PNG per pixel of a chart
# Families are named because rasterisers may not know which font sans-serif is.
_FONTS = "'Segoe UI', 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'Noto Sans', 'DejaVu Sans', sans-serif"
# The light colours of the page, for elements of class judge alone: a notebook puts the picture into its own page.
_COLOURS = {
    "text": "fill: #14181d",
    ".tick": "fill: #586270",
    ".bar": "fill: #9dc0e6",
    ".best": "fill: #6aa98f",
    ".worse": "fill: #d0957c",
    ".dot": "fill: #2563ae",
    ".heat-good": "fill: #1a7a52",
    ".heat-bad": "fill: #b04f25",
    ".ci": "stroke: #14181d; stroke-width: 1.5",
    ".grid": "stroke: #e1e5ea",
    ".axis": "stroke: #e1e5ea",
    ".zero": "stroke: #586270",
}


def charts(document: Document) -> list[Chart]:
    """Return the charts of the summary and the sections, each once."""
    groups = (document.summary, *(section.blocks for section in document.sections))
    return list(dict.fromkeys(chart for group in groups for chart in _charts(group)))


def render(document: Document) -> str:
    """Draw all charts below each other in one SVG."""
    return standalone(charts(document))


def plot(document: Document, name: str = "") -> str:
    """Draw the charts of this name, or of names that begin with it and a hyphen; by default those
    of the summary.

    Raises ConfigError for an unknown name and for a document without charts.
    """
    known = charts(document)
    chosen = [chart for chart in known if chart.name == name or chart.name.startswith(f"{name}-")]
    if not name:
        chosen = list(_charts(document.summary)) or known[:1]
    if not chosen:
        names = [chart.name for chart in known]
        raise ConfigError(
            unknown_name_message("chart", name, names) if names else "this report has no charts"
        )
    return standalone(chosen)


def png(svg: str) -> bytes:
    """Draw a standalone SVG as PNG, with two pixels per pixel.

    Raises MissingExtra without the package resvg-py.
    """
    try:
        from resvg_py import svg_to_bytes
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "PNG needs the package resvg-py: pip install 'textjudge[png]'; SVG needs nothing"
        ) from error
    return bytes(svg_to_bytes(svg_string=svg, zoom=_SCALE))


def write(document: Document, output: Path, format: str) -> tuple[Path, ...]:
    """Write a file per chart into the folder `output`, or all into one file if `output` ends in the
    format: svg or png.

    Raises MissingExtra for PNG without its package, and StorageError.
    """
    drawn = charts(document)
    groups: dict[str, list[Chart]] = {}
    taken = set[str]()  # names are unique even on a disk that ignores case
    for chart in drawn:
        name = (
            re.sub(r"[^\w.-]+", "-", chart.name)
            .strip("-.")
            .encode()[:_FILE_NAME]
            .decode(errors="ignore")
            or "chart"
        )
        unique, number = name, 2
        while unique.casefold() in taken:
            unique, number = f"{name}-{number}", number + 1
        taken.add(unique.casefold())
        groups[f"{unique}.{format}"] = [chart]
    if output.suffix.lower() == f".{format}":
        groups, output = {output.name: drawn}, output.parent
    drawings = {name: standalone(group) for name, group in groups.items()}
    store(
        output,
        {name: png(svg) if format == "png" else svg.encode() for name, svg in drawings.items()},
    )
    return tuple(output / name for name in groups)


def standalone(charts: Iterable[Chart]) -> str:
    """Return an SVG document with these charts, their titles and captions, in the light colours of
    the page."""
    drawn = list(charts)
    parts, width, y = [], 2 * _MARGIN, 0
    for chart in drawn:
        title = shorten(chart.title, _TITLE)
        head = text(_MARGIN, y + 26, title, bold=True)
        placed = chart.svg.replace("<svg ", f'<svg x="{_MARGIN}" y="{y + _HEAD}" ', 1)
        parts.append(f'<g font-size="15">{head}</g>\n{placed}\n')
        width = max(
            width, chart.width + 2 * _MARGIN, round(2 * _MARGIN + 1.2 * CELL * cell_len(title))
        )
        y += _HEAD + chart.height + _MARGIN
    height = max(y, 1)
    name = escaped(drawn[0].title if len(drawn) == 1 else "Charts")
    about = escaped(" ".join(dict.fromkeys(chart.caption for chart in drawn if chart.caption)))
    style = "".join(f".judge {selector} {{ {colour} }}\n" for selector, colour in _COLOURS.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'class="judge" font-family="{_FONTS}" role="img" aria-label="{name}">\n<desc>{about}</desc>\n'
        f'<style>\n{style}</style>\n<rect width="{width}" height="{height}" fill="#ffffff"/>\n{"".join(parts)}</svg>\n'
    )


def _charts(group: Iterable[blocks.Block]) -> Iterator[Chart]:
    for block in group:
        if isinstance(block, Chart):
            yield block
        elif isinstance(block, blocks.Details):
            yield from _charts(block.blocks)
