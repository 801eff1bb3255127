"""Draw the page's charts as files: SVG with its colours in it, or PNG drawn by Chromium or Chrome."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

from markupsafe import Markup

from judge.core.errors import ConfigError
from judge.core.format import one_line, plural
from judge.report.charts import scatters
from judge.report.renderers import html
from judge.report.views.heat_maps import Wins, heats, wins
from judge.report.views.leaderboard_old import Leaderboard, build_leaderboard
from judge.report.views.people import people
from judge.report.views.ranking_old import RankingView, build_ranking
from judge.report.views.score_drivers import build_judge_drivers
from judge.results.result import Result
from judge.table import store

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_MOST_PIXELS = 16_000  # a side that Chromium can draw
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=10000",
    "--dump-dom",
)
# One page draws all charts, because a browser takes a second or two to start. Its load event waits for the images.
_PAGE = """<!doctype html><meta charset="utf-8"><body>{images}<script>
addEventListener("load", () => {{
  for (const image of [...document.images]) {{
    const canvas = document.createElement("canvas"), scale = Number(image.dataset.scale);
    canvas.width = scale * image.width;
    canvas.height = scale * image.height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    image.replaceWith(canvas.toDataURL("image/png"), "\\n");
  }}
}});
</script>"""


def pictures(drawings: Sequence[tuple[str, int, int]]) -> list[bytes]:
    """Draw each SVG, given with its width and height, as PNG at twice the size if Chromium can draw that.

    Raises ConfigError if there is no browser or it does not draw them.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise ConfigError(
            "png is drawn by Chromium or Chrome, and neither is on the PATH; --format svg needs neither of them"
        )
    for _, width, height in drawings:
        if max(width, height) > _MOST_PIXELS:
            raise ConfigError(
                f"{width} × {height} pixels are too many for one PNG; give a folder, or take --format svg"
            )
    images = "".join(
        f'<img width="{width}" height="{height}" data-scale="{2 if 2 * max(width, height) <= _MOST_PIXELS else 1}" '
        f'src="data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}">'
        for svg, width, height in drawings
    )
    # Chromium does not start as root with its sandbox. The page is our own drawing, in which texts are inert.
    root = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = Path(folder) / "charts.html"
        page.write_text(_PAGE.format(images=images), encoding="utf-8")
        command = [browser, *_FLAGS, *root, f"--user-data-dir={folder}/profile", page.as_uri()]
        try:
            process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)  # noqa: S603
        except subprocess.CalledProcessError as error:
            raise ConfigError(f"{browser} drew nothing: {error.stderr.strip()[-300:]}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"{browser} drew nothing: {error}") from error
    encoded = re.findall("data:image/png;base64,([A-Za-z0-9+/=]+)", process.stdout)
    if len(encoded) != len(drawings):
        raise ConfigError(f"{browser} drew {len(encoded)} of {len(drawings)} charts; take --format svg")
    return [b64decode(text) for text in encoded]


_MOST_SYSTEMS = 100  # in a chart
_FILE_NAME = 150  # bytes
_NAME, _TITLE = 28, 80  # cells of a name, of which a CJK character takes two, and of a title
_CELL = 7.5  # pixels of such a cell at 13 px
_CLOUD = 260  # pixels of a chart with two equal axes
_SIGNIFICANT = 0.5  # depth of the colour of a significant difference
_DEEPEST = 0.6  # of a colour, so that a text can be read on it
_PLOT, _SMALL, _PER_ROW = 420, 150, 4  # pixels of a plot, of a small one, and number of small ones side by side


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart: `name` is its file's without the ending, `about` says how its numbers were made, `body` is SVG in
    `width` × `height` pixels.
    """

    name: str
    title: str
    about: str
    width: int
    height: int
    body: str

    @property
    def svg(self) -> str:
        """The figure as a standalone SVG document."""
        body = Markup(self.body)  # noqa: S704  (by our own macros)
        return str(_macros().document(self.width, self.height, self.title, self.about, body)).strip() + "\n"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a matrix and its tooltip."""

    text: str
    title: str
    colour: str


def render(result: Result) -> str:
    """Draw all charts, one below the other, in one SVG."""
    return _one_figure(figures(result)).svg


def write(result: Result, output: Path, format: str) -> tuple[Path, ...]:
    """Draw every chart into a file of its own in the folder `output`, or all into one file if that ends in `format`.

    `format` is "svg" or "png". Raises ConfigError for a PNG without Chromium, and StorageError.
    """
    drawn = figures(result)
    names = [f"{figure.name}.{format}" for figure in drawn]
    if output.suffix.lower() == f".{format}":
        drawn, names, output = (_one_figure(drawn),), [output.name], output.parent
    drawings = [(figure.svg, figure.width, figure.height) for figure in drawn]
    files = pictures(drawings) if format == "png" else [svg.encode() for svg, *_ in drawings]
    store(output, dict(zip(names, files, strict=True)))
    return tuple(output / name for name in names)


def figures(result: Result) -> tuple[Figure, ...]:
    """Every chart of a result: means and distributions by column and what moves the judge, or of a ranking win rates,
    strengths and the matrix.
    """
    if result.rankings:
        drawn = _ranking_figures(build_ranking(result))
    else:
        drawn = _means_figures(result, build_leaderboard(result))
    # File names have to be valid, and unique even on a disk that ignores case.
    named: dict[str, Figure] = {}
    for figure in drawn:
        name = re.sub(r"[^\w.-]+", "-", figure.name).strip("-.").encode()[:_FILE_NAME].decode(errors="ignore")
        unique, number = name, 2
        while unique.casefold() in named:
            unique, number = f"{name}-{number}", number + 1
        width = max(figure.width, 32 + round(1.2 * _CELL * _width(figure.title)))
        named[unique.casefold()] = replace(figure, name=unique, width=width)
    return tuple(named.values())


def _one_figure(drawn: Sequence[Figure]) -> Figure:
    """Put all figures into one, below each other."""
    parts, y = [], 0
    for figure in drawn:
        parts.append(f'<svg y="{y}" width="{figure.width}" height="{figure.height}">{figure.body}</svg>')
        y += figure.height
    about = " ".join(dict.fromkeys(figure.about for figure in drawn))
    width = max((figure.width for figure in drawn), default=_PLOT)
    return Figure("charts", "Charts", about, width, max(y, 1), "\n".join(parts))


def _means_figures(result: Result, board: Leaderboard) -> Iterator[Figure]:
    plots = html.plots(result, board)
    for column, plot in zip(board.columns, plots, strict=True):
        yield _bar_chart(f"mean-{column.name}", plot.heading, board.caption, plot)
    for column, plot in zip(board.columns, plots, strict=True):
        if plot.bins:
            systems = plot.rows[:_MOST_SYSTEMS]
            short = [_shorten(row.system, 20) for row in systems]
            title = f"{_shorten(_title(plot.title, plot.part), _TITLE)}: distribution of scores"
            title += _systems_note(len(plot.rows))
            per_row = min(_PER_ROW, len(systems)) or 1
            body = _macros().spread(title, plot, list(zip(systems, short, strict=True)), per_row, _SMALL)
            about = "How many texts were scored near each answer of the scale, by system."
            width, height = 8 + (_SMALL + 24) * per_row, 44 + 132 * -(-len(systems) // per_row)
            yield Figure(f"scores-{column.name}", title, about, width, height, body)
    for matrix in wins(result, board):
        if matrix.rows == matrix.columns:
            yield _differences(matrix)
    for heat in heats(result):
        cells = [[_shaded_cell(cell.text, cell.title, cell.value or 0.0) for cell in row] for row in heat.cells]
        title = f"Correlation of the columns, {heat.level.lower()}"
        yield _matrix(f"correlations-{heat.level.split()[0].lower()}", title, heat.caption, heat.names, cells)
    clouds, curves = html.template("charts.html.jinja").module, html.template("people.html.jinja")
    for cloud in scatters(result):
        title = f"{_shorten(cloud.title, _TITLE)}: the judge against people"
        yield _square_chart(f"scatter-{cloud.title}", title, cloud.told, "cloud", clouds.scatter(cloud))
    for rated, block in zip(result.rated, people(result), strict=True):
        for curve in block.curves:
            name = _title(rated.criterion, curve.title)
            title = f"{_shorten(name, _TITLE)}: calibration"
            chart = curves.make_module({"people": ()}).curve(curve)
            yield _square_chart(f"calibration-{name}", title, curve.summary, "curve", chart)
    if pulls := build_judge_drivers(result):
        rows = list(chain.from_iterable(pulls.criteria))
        names, label_width = _row_labels([_title(row.name, row.part) for row in rows])
        title = "What moves the judge"
        about = f"{pulls.lead} {pulls.legend}"
        body = _macros().pulls(title, pulls, list(zip(rows, names, strict=True)), label_width, _SMALL)
        width = label_width + (_SMALL + 90) * len(pulls.heads)
        yield Figure("drivers", title, about, width, 60 + 22 * len(rows) + 28, body)


def _ranking_figures(view: RankingView) -> Iterator[Figure]:
    for contest in view.contests:
        for plot in html.standing_plots(contest):
            name = f"{plot.title.replace(' ', '-')}-{contest.name}"
            yield _bar_chart(name, f"{contest.label}: {plot.title}", view.caption, plot)
        if 2 < len(contest.systems) <= html.MOST_MET:
            rows = [
                [_shaded_cell(cell.text, cell.title, 0.0 if cell.share is None else 2 * cell.share - 1) for cell in row]
                for row in contest.matrix
            ]
            title = f"{_shorten(contest.label, _TITLE)}: win rates in per cent, row against column"
            yield _matrix(f"win-rates-{contest.name}", title, contest.sentences[0], contest.systems, rows)


def _title(title: str, part: str) -> str:
    return f"{title}, {part}" if part else title


def _bar_chart(name: str, title: str, about: str, plot: html.Plot) -> Figure:
    rows = plot.rows[:_MOST_SYSTEMS]
    names, label_width = _row_labels([row.system for row in rows])
    title = _shorten(title, _TITLE) + _systems_note(len(plot.rows))
    body = _macros().bars(title, plot, list(zip(rows, names, strict=True)), label_width, _PLOT)
    return Figure(name, title, about, label_width + _PLOT + 80, 40 + 22 * len(rows) + 28, body)


def _square_chart(name: str, title: str, about: str, kind: str, drawn: str) -> Figure:
    """Turn a chart of the page, an element with two equal axes, into a figure."""
    inner = drawn.partition("<svg")[2].partition(">")[2].rpartition("</svg>")[0]
    inner = inner.replace(' vector-effect="non-scaling-stroke"', "")  # not every program knows it
    (axes,) = re.findall(r'<p class="axis"[^>]*>([^<]*)</p>', drawn)
    body = _macros().square(title, kind, Markup(inner), axes, _CLOUD)  # noqa: S704  (the page's own)
    return Figure(name, title, about, _CLOUD + 80, _CLOUD + 104, body)


def _differences(matrix: Wins) -> Figure:
    rows = [
        [
            _shaded_cell(
                pair.difference if pair else "",
                f"{row} less {rival}: {pair.difference} {pair.interval}, {pair.record}" if pair else "",
                {"won": _SIGNIFICANT, "lost": -_SIGNIFICANT, "": 0.0}[pair.side] if pair else 0.0,
            )
            for rival, pair in zip(matrix.columns, cells, strict=True)
        ]
        for row, cells in zip(matrix.rows, matrix.cells, strict=True)
    ]
    title = f"{_shorten(matrix.title, _TITLE)}: differences, row less column"
    return _matrix(f"differences-{matrix.title}", title, matrix.caption, matrix.rows, rows)


def _matrix(name: str, title: str, about: str, texts: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Figure:
    names, label_width = _row_labels(texts, extra=3)
    size = len(names)
    body = _macros().grid(title, names, rows, label_width)
    return Figure(name, title, about, label_width + 56 * size + 16, 62 + 28 * size + 16, body)


def _shaded_cell(text: str, title: str, share: float) -> Cell:
    """A cell with the colour of better systems if `share` (−1 to 1) is above 0, else of worse ones; 0 has none."""
    if not share:
        return Cell(text, title, _colours()["raised"])
    depth, names = _DEEPEST * min(1.0, abs(share)), ("best" if share > 0 else "lost", "page")
    over, under = (tuple(bytes.fromhex(_colours()[name].removeprefix("#"))) for name in names)
    mixed = "".join(f"{round(depth * a + (1 - depth) * b):02x}" for a, b in zip(over, under, strict=True))
    return Cell(text, title, f"#{mixed}")


def _systems_note(systems: int) -> str:
    return f" (the first {_MOST_SYSTEMS} of {plural(systems, 'system')})" if systems > _MOST_SYSTEMS else ""


def _row_labels(texts: Sequence[str], extra: int = 0) -> tuple[list[str], int]:
    """The names shortened to fit, and the width of their column in pixels."""
    names = [_shorten(text, _NAME) for text in texts]
    widest = max((_width(name) for name in names), default=0)
    return names, 16 + round(_CELL * (widest + extra)) + 14


def _shorten(text: str, cells: int) -> str:
    flat = one_line(text, 2 * cells)
    if _width(flat) <= cells:
        return flat
    while _width(flat) >= cells:
        flat = flat[:-1]
    return f"{flat.rstrip()}…"


def _width(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


@cache
def _colours() -> Mapping[str, str]:
    """The light page's custom properties by name."""
    light = html.source("report.css").partition("@media")[0]
    return {name: " ".join(value.split()) for name, value in re.findall(r"--([\w-]+):([^;]+);", light)}


@cache
def _macros() -> Any:
    template = html.template("figures.svg.jinja")
    return template.make_module({"colour": _colours()})
