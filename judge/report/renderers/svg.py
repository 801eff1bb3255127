"""Render the charts of a Document as standalone SVG, as PNG (resvg-py) and as PDF (svglib)."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from judge.core.errors import ConfigError, MissingExtra
from judge.core.files import store
from judge.core.line_breaks import wrapped
from judge.core.plugins import require_known, unknown_name_message
from judge.report import document as blocks
from judge.report.charts.shapes import CELL, escaped, shorten, text
from judge.report.document import Chart, Document
from judge.report.renderers.pdf_fonts import EmbeddedFont, embedded_font

_MARGIN = 16  # pixels around a chart
_HEAD = 44  # pixels for a chart's title
_CAPTION_CELL = 6.5  # width of a character of a caption at 11 px
_CAPTION_LINE = 15  # pixels
_MAX_TITLE = 80  # terminal cells of a title; a CJK character takes two
_FILE_NAME = 150  # bytes; most file systems allow 255 for the whole name
_MAX_LETTERS = 20  # letters in a message
_SCALE = 2  # pixels of a PNG per pixel of a chart
_PDF_FONT = "judge"
# <text x="16" y="26">judge</text>
_DRAWN_TEXT = re.compile(r"<text[^>]*>([^<]*)</text>")
_KANA = re.compile("[ぁ-ヿ]")  # システム
# Families are named because rasterisers may not know which font sans-serif is.
_FONTS = (
    "'Segoe UI', 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'Noto Sans', "
    "'DejaVu Sans', sans-serif"
)

# <svg x="16" y="44" viewBox="0 0 460 120" width="460" font-size="13">
_NESTED = re.compile(r'<svg x="(\d+)" y="(\d+)"[^>]* font-size="(\d+)"[^>]*>')

# The light colours of the page. They hold only inside the class judge, because a notebook puts the
# picture into its own page.
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
    drawn_charts = list(_charts(document.summary))
    for section in document.sections:
        drawn_charts += _charts(section.blocks)
    return list(dict.fromkeys(drawn_charts))


def render(document: Document) -> str:
    """Draw all charts below each other in one SVG."""
    return standalone(charts(document))


def plot(document: Document, chart_name: str = "", usual: Collection[str] = ()) -> str:
    """Draw the charts with this name, or with names that begin with it and a hyphen.

    Without a name, draw the `usual` charts, and if there are none, the summary's. Raises
    ConfigError for an unknown name and for a document without charts.
    """
    all_charts = charts(document)
    if not all_charts:
        raise ConfigError("this report has no charts")
    if not chart_name:
        usual_charts = [chart for chart in all_charts if chart.name in usual]
        charts_of_summary = list(_charts(document.summary))
        return standalone(usual_charts or charts_of_summary or all_charts[:1])
    prefix = f"{chart_name}-"
    chosen = [chart for chart in all_charts if f"{chart.name}-".startswith(prefix)]
    if not chosen:
        chart_names = [chart.name for chart in all_charts]
        raise ConfigError(unknown_name_message("chart", chart_name, chart_names))
    return standalone(chosen)


def png(svg: str) -> bytes:
    """Draw a standalone SVG as PNG, with two pixels per pixel.

    Raises MissingExtra without the package resvg-py.
    """
    try:
        from resvg_py import svg_to_bytes
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "PNG needs the package resvg-py: pip install 'textjudge[png]'; SVG needs no package"
        ) from error
    return bytes(svg_to_bytes(svg_string=svg, zoom=_SCALE))


def pdf(svg: str, language: str = "") -> bytes:
    """Draw a standalone SVG as PDF, in vectors, with its font.

    `language` chooses the shapes of Chinese characters. Raises MissingExtra without the packages
    svglib and fontTools, and ConfigError for letters that no font file has.
    """
    try:
        import fontTools  # noqa: F401
        from reportlab.graphics import renderPDF
        from svglib.svglib import svg2rlg
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "PDF needs the packages svglib and fonttools: pip install 'textjudge[pdf]'; SVG needs "
            "no package"
        ) from error
    font = _font_of(svg, language)
    regular = _register(font.regular, "normal")
    _register(font.bold, "bold")
    svg = svg.replace('font-weight="700"', 'font-weight="bold"')
    svg = svg.replace(_FONTS, _PDF_FONT)
    flat_svg = io.StringIO(_without_nested(svg))
    drawing: Any = svg2rlg(flat_svg)
    # A file lists its initial font, Helvetica by default, even if no text has it.
    drawing.initialFontName = regular
    return bytes(renderPDF.drawToString(drawing))


def _register(font: bytes, weight: str) -> str:
    """Let svglib draw texts of this weight with a font. Return its name in reportlab."""
    from svglib.svglib import register_font

    # A name of its own, because reportlab keeps the first font of a name.
    font_name = f"{_PDF_FONT}-{sha256(font).hexdigest()}"
    # svglib hands the file on to reportlab, which reads paths and files.
    file: Any = io.BytesIO(font)
    register_font(_PDF_FONT, file, weight=weight, rlgFontName=font_name)
    return font_name


def _without_nested(svg: str) -> str:
    """Replace the pictures inside a picture by moved groups.

    svglib scales pixels to points in each picture, and so twice in a nested one.
    """
    moved_group = r'<g transform="translate(\1 \2)" font-size="\3">'
    groups, n_nested = _NESTED.subn(moved_group, svg)
    # The whole picture ends last.
    return groups.replace("</svg>", "</g>", n_nested)


def _font_of(svg: str, language: str) -> EmbeddedFont:
    """Return a font that has the letters of a picture. Raises ConfigError if none has them all."""
    texts = _DRAWN_TEXT.findall(svg)
    different_letters = set(unescape("".join(texts)))
    letters = "".join(sorted(different_letters))
    # Fonts share many letters: the script says whose shapes are meant, else the language.
    if _KANA.search(letters):
        language = "ja"
    font = embedded_font(letters, language)
    if font is not None:
        return font
    foreign = "".join(letter for letter in letters if not letter.isascii())
    raise ConfigError(
        f"a PDF embeds its font, and no font was found for all of {foreign[:_MAX_LETTERS]!r}: "
        "install Noto Sans CJK for Chinese, Japanese and Korean, or write the charts as svg or png"
    )


def figure(document: Document, chart_name: str, format: str) -> bytes:
    """Draw the chart of this name without its title, which belongs into the caption of a paper.

    Raises ConfigError for an unknown name, and MissingExtra.
    """
    chart_by_name = {chart.name: chart for chart in charts(document)}
    if not chart_by_name:
        raise ConfigError("--figure: this report has no charts")
    require_known("figure", [chart_name], chart_by_name, "--figure")
    svg = standalone([chart_by_name[chart_name]], titles=False)
    return drawn(svg, format, document.language)


def drawn(svg: str, format: str, language: str = "") -> bytes:
    """Return a standalone SVG as a file of this format: svg, png or pdf.

    Raises MissingExtra for PNG and PDF without their packages.
    """
    if format == "png":
        return png(svg)
    if format == "pdf":
        return pdf(svg, language)
    return svg.encode()


def write(document: Document, output: Path, format: str) -> tuple[Path, ...]:
    """Write a file per chart into the folder `output`, in a format: svg, png or pdf.

    If `output` ends in the format, it is the one file for all charts. Raises MissingExtra for PNG
    and PDF without their packages, and StorageError.
    """
    all_charts = charts(document)
    if output.suffix.lower() == f".{format}":
        folder = output.parent
        charts_by_file = {output.name: all_charts}
    else:
        folder = output
        file_names = [f"{stem}.{format}" for stem in _file_stems(all_charts)]
        charts_by_file = {}
        for file_name, chart in zip(file_names, all_charts, strict=True):
            charts_by_file[file_name] = [chart]
    contents = {}
    for file_name, group in charts_by_file.items():
        svg = standalone(group)
        contents[file_name] = drawn(svg, format, document.language)
    store(folder, contents)
    return tuple(folder / file_name for file_name in charts_by_file)


def _file_stems(group: Iterable[Chart]) -> list[str]:
    """Return a safe file name without an ending for each chart."""
    stems = []
    used = set[str]()  # case-folded, because some disks ignore case
    for chart in group:
        # `judge: east/west` becomes `judge-east-west`.
        safe = re.sub(r"[^\w.-]+", "-", chart.name).strip("-.")
        # Cutting may leave a part of a character at the end.
        safe_stem = safe.encode()[:_FILE_NAME].decode(errors="ignore") or "chart"
        unique_stem = safe_stem
        number = 2
        while unique_stem.casefold() in used:
            unique_stem = f"{safe_stem}-{number}"
            number += 1
        used.add(unique_stem.casefold())
        stems.append(unique_stem)
    return stems


def standalone(charts: Iterable[Chart], *, titles: bool = True) -> str:
    """Return an SVG document with these charts and, with `titles`, their titles and captions.

    It has the light colours of the page. A caption also explains the colours. A paper has titles
    and captions of its own.
    """
    drawn_charts = list(charts)
    elements = []
    width = 2 * _MARGIN
    top = 0
    for chart in drawn_charts:
        head = _HEAD if titles else _MARGIN
        if titles:
            title = shorten(chart.title, _MAX_TITLE)
            drawn_title = text(_MARGIN, top + 26, title, bold=True)
            elements.append(f'<g font-size="15">{drawn_title}</g>\n')
            # CELL is for 13 px and regular weight; titles are bold and have 15 px.
            title_width = round(2 * _MARGIN + 1.2 * CELL * cell_len(title))
            width = max(width, title_width)
        top_of_plot = top + head
        placed = chart.svg.replace("<svg ", f'<svg x="{_MARGIN}" y="{top_of_plot}" ', 1)
        elements.append(f"{placed}\n")
        width = max(width, chart.width + 2 * _MARGIN)
        top += head + chart.height + _MARGIN
        if titles:
            for line in _caption_lines(chart):
                drawn_line = text(_MARGIN, top, line, "tick")
                elements.append(f"{drawn_line}\n")
                top += _CAPTION_LINE
    height = max(top, 1)
    title_of_all = drawn_charts[0].title if len(drawn_charts) == 1 else "Charts"
    accessible_name = escaped(title_of_all)
    captions = dict.fromkeys(chart.caption for chart in drawn_charts if chart.caption)
    about = escaped(" ".join(captions))
    rules = [
        f".judge {selector} {{ {colour} }}\n" for selector, colour in _COLOURS.items()
    ]
    style = "".join(rules)
    content = "".join(elements)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" '
        f'class="judge" font-family="{_FONTS}" role="img" aria-label="{accessible_name}">\n'
        f"<desc>{about}</desc>\n"
        f"<style>\n{style}</style>\n"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
        f"{content}</svg>\n"
    )


def _caption_lines(chart: Chart) -> list[str]:
    """Return the lines of a chart's caption, as wide as the chart."""
    if not chart.caption:
        return []
    return wrapped(chart.caption, int(chart.width / _CAPTION_CELL), cell_len)


def _charts(group: Iterable[blocks.Block]) -> Iterator[Chart]:
    """Yield the charts of the blocks, also of folded ones."""
    for block in group:
        if isinstance(block, Chart):
            yield block
        elif isinstance(block, blocks.Details):
            yield from _charts(block.blocks)
