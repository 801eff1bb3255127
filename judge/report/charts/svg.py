"""SVG as PNG, drawn by the Chromium or Chrome of the machine.

The page's charts as files: SVG with its colours in it, and PNG where there is Chromium to draw it.
"""

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
from judge.core.messages import one_line, plural
from judge.report.charts.geometry import scatters
from judge.report.renderers import html
from judge.report.views.heat_maps import Heat, Wins, heats, wins
from judge.report.views.leaderboard import Leaderboard, build_leaderboard
from judge.report.views.ranking import Contest, RankingView, build_ranking
from judge.report.views.score_drivers import JudgeDrivers, build_judge_drivers
from judge.report.views.validation import people
from judge.results.result import Result
from judge.table import store

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_MOST = 16_000  # pixels a side that Chromium can draw
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
# One page draws them all, as a browser takes a second or two to start. When it has loaded, its images have.
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
    """The PNG of each SVG, which has so many pixels across and down, twice as many where that is not too many.

    Raises ConfigError where there is no browser or it does not draw them.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise ConfigError(
            "png is drawn by Chromium or Chrome, and neither is on the PATH; --format svg needs neither of them"
        )
    for _, width, height in drawings:
        if max(width, height) > _MOST:
            raise ConfigError(
                f"{width} × {height} pixels are too many for one PNG; give a folder, or take --format svg"
            )
    found = re.findall("data:image/png;base64,([A-Za-z0-9+/=]+)", _dumped(browser, drawings))
    if len(found) != len(drawings):
        raise ConfigError(f"{browser} drew {len(found)} of {len(drawings)} charts; take --format svg")
    return [b64decode(text) for text in found]


def _dumped(browser: str, drawings: Sequence[tuple[str, int, int]]) -> str:
    """The page as the browser leaves it."""
    images = "".join(
        f'<img width="{width}" height="{height}" data-scale="{2 if 2 * max(width, height) <= _MOST else 1}" '
        f'src="data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}">'
        for svg, width, height in drawings
    )
    # A browser refuses its sandbox to root; what it is shown is our own drawing, in which texts are inert.
    root = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = Path(folder) / "charts.html"
        page.write_text(_PAGE.format(images=images), encoding="utf-8")
        command = [browser, *_FLAGS, *root, f"--user-data-dir={folder}/profile", page.as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)  # noqa: S603
        except subprocess.CalledProcessError as error:
            raise ConfigError(f"{browser} drew nothing: {error.stderr.strip()[-300:]}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"{browser} drew nothing: {error}") from error
    return done.stdout


_MOST_of_svg = 100  # systems in a chart
_FILE = 150  # bytes of a file's name
_NAME, _TITLE = 28, 80  # cells of a name, of which a CJK character takes two, and of a title
_CELL = 7.5  # pixels of such a cell at 13 px
_CLOUD = 260  # pixels of a chart with two equal axes
_APART = 0.5  # how deep the colour of two that are told apart is
_DEEPEST = 0.6  # of a colour, so that a text can be read on it
_PLOT, _SMALL, _ACROSS = 420, 150, 4  # pixels of a plot, of one of several, and how many of these stand side by side


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
        """The figure as a document of its own."""
        return _document(self.width, self.height, self.title, self.about, self.body)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a matrix, and what is said where one points at it."""

    text: str
    title: str
    colour: str


def render(result: Result) -> str:
    """All charts one below the other in one SVG."""
    return _sheet(figures(result)).svg


def write(result: Result, output: Path, format: str) -> tuple[Path, ...]:
    """Draw every chart into a file of its own in the folder `output`, or all into one where that ends in `format`.

    `format` is "svg" or "png". Raises ConfigError where a PNG is wanted and there is no Chromium, and StorageError.
    """
    found = figures(result)
    names = [f"{figure.name}.{format}" for figure in found]
    if output.suffix.lower() == f".{format}":
        found, names, output = (_sheet(found),), [output.name], output.parent
    drawings = [(figure.svg, figure.width, figure.height) for figure in found]
    files = pictures(drawings) if format == "png" else [svg.encode() for svg, *_ in drawings]
    store(output, dict(zip(names, files, strict=True)))
    return tuple(output / name for name in names)


def figures(result: Result) -> tuple[Figure, ...]:
    """Every chart of a result: means and distributions by column and what moves the judge, or of a ranking win rates,
    strengths and the matrix.
    """
    drawn = _of_ranking(build_ranking(result)) if result.rankings else _of_means(result, build_leaderboard(result))
    return tuple(_named(drawn))


def _sheet(found: Sequence[Figure]) -> Figure:
    """All figures as one."""
    parts, y = [], 0
    for figure in found:
        parts.append(f'<svg y="{y}" width="{figure.width}" height="{figure.height}">{figure.body}</svg>')
        y += figure.height
    about = " ".join(dict.fromkeys(figure.about for figure in found))
    width = max((figure.width for figure in found), default=_PLOT)
    return Figure("charts", "Charts", about, width, max(y, 1), "\n".join(parts))


def _named(found: Iterator[Figure]) -> Iterator[Figure]:
    """The figures with names that a file may have, no two alike on a disk that takes a for A."""
    taken: set[str] = set()
    for figure in found:
        name = re.sub(r"[^\w.-]+", "-", figure.name).strip("-.").encode()[:_FILE].decode(errors="ignore")
        unique, number = name, 2
        while unique.casefold() in taken:
            unique, number = f"{name}-{number}", number + 1
        taken.add(unique.casefold())
        yield replace(figure, name=unique, width=max(figure.width, 32 + round(1.2 * _CELL * _width(figure.title))))


def _of_means(result: Result, shown: Leaderboard) -> Iterator[Figure]:
    plots = html.plots(result, shown)
    for column, plot in zip(shown.columns, plots, strict=True):
        yield _bars(f"mean-{column.name}", plot.heading, shown.caption, plot)
    for column, plot in zip(shown.columns, plots, strict=True):
        if plot.bins:
            yield _spread(f"scores-{column.name}", _joined(plot.title, plot.part), plot)
    for one in wins(result, shown):
        if one.rows == one.columns:
            yield _differences(one)
    yield from map(_correlations, heats(result))
    yield from _of_people(result)
    if pulls := build_judge_drivers(result):
        yield _pulls(pulls)


def _of_people(result: Result) -> Iterator[Figure]:
    clouds, curves = html.template("charts.html.jinja").module, html.template("people.html.jinja")
    for cloud in scatters(result):
        title = f"{_cut(cloud.title, _TITLE)}: the judge against people"
        yield _square(f"scatter-{cloud.title}", title, cloud.told, "cloud", clouds.scatter(cloud))
    for rated, shown in zip(result.rated, people(result), strict=True):
        for curve in shown.curves:
            name = _joined(rated.criterion, curve.title)
            drawn = curves.make_module({"people": ()}).curve(curve)
            yield _square(f"calibration-{name}", f"{_cut(name, _TITLE)}: calibration", curve.told, "curve", drawn)


def _of_ranking(shown: RankingView) -> Iterator[Figure]:
    for contest in shown.contests:
        for plot in html.standing_plots(contest):
            name = f"{plot.title.replace(' ', '-')}-{contest.name}"
            yield _bars(name, f"{contest.label}: {plot.title}", shown.caption, plot)
        if 2 < len(contest.systems) <= html.MOST_MET:
            yield _win_rates(contest)


def _joined(title: str, part: str) -> str:
    return f"{title}, {part}" if part else title


def _bars(name: str, title: str, about: str, plot: html.Plot) -> Figure:
    rows = plot.rows[:_MOST_of_svg]
    names, left = _names([row.system for row in rows])
    title = _cut(title, _TITLE) + _of_all(len(plot.rows))
    body = _macros().bars(title, plot, list(zip(rows, names, strict=True)), left, _PLOT)
    return Figure(name, title, about, left + _PLOT + 80, 40 + 22 * len(rows) + 28, body)


def _spread(name: str, title: str, plot: html.Plot) -> Figure:
    rows = plot.rows[:_MOST_of_svg]
    names = [_cut(row.system, 20) for row in rows]
    title = f"{_cut(title, _TITLE)}: distribution of scores{_of_all(len(plot.rows))}"
    across = min(_ACROSS, len(rows)) or 1
    body = _macros().spread(title, plot, list(zip(rows, names, strict=True)), across, _SMALL)
    about = "How many texts were scored near each answer of the scale, by system."
    return Figure(name, title, about, 8 + (_SMALL + 24) * across, 44 + 132 * -(-len(rows) // across), body)


def _pulls(found: JudgeDrivers) -> Figure:
    rows = list(chain.from_iterable(found.criteria))
    names, left = _names([_joined(row.name, row.part) for row in rows])
    title = "What moves the judge"
    body = _macros().pulls(title, found, list(zip(rows, names, strict=True)), left, _SMALL)
    about = f"{found.lead} {found.how}"
    return Figure("drivers", title, about, left + (_SMALL + 90) * len(found.heads), 60 + 22 * len(rows) + 28, body)


def _square(name: str, title: str, about: str, kind: str, drawn: str) -> Figure:
    """A chart that the page has in one element: what is in that, and what its axes are."""
    inner = drawn.partition("<svg")[2].partition(">")[2].rpartition("</svg>")[0]
    inner = inner.replace(' vector-effect="non-scaling-stroke"', "")  # not every program knows it
    (axes,) = re.findall(r'<p class="axis"[^>]*>([^<]*)</p>', drawn)
    body = _macros().square(title, kind, Markup(inner), axes, _CLOUD)  # noqa: S704  (the page's own)
    return Figure(name, title, about, _CLOUD + 80, _CLOUD + 104, body)


def _differences(found: Wins) -> Figure:
    rows = [
        [
            _shaded(
                met.difference if met else "",
                f"{row} less {rival}: {met.difference} {met.interval}, {met.record}" if met else "",
                {"won": _APART, "lost": -_APART, "": 0.0}[met.side] if met else 0.0,
            )
            for rival, met in zip(found.columns, cells, strict=True)
        ]
        for row, cells in zip(found.rows, found.cells, strict=True)
    ]
    label = _joined(found.label, found.part)
    title = f"{_cut(label, _TITLE)}: differences, row less column"
    return _grid(f"differences-{label}", title, found.told, found.rows, rows)


def _correlations(found: Heat) -> Figure:
    rows = [[_shaded(met.text, met.title, met.value or 0.0) for met in row] for row in found.cells]
    title = f"Correlation of the columns, {found.level.lower()}"
    return _grid(f"correlations-{found.level.split()[0].lower()}", title, found.told, found.names, rows)


def _win_rates(contest: Contest) -> Figure:
    rows = [
        [_shaded(met.text, met.title, 0.0 if met.share is None else 2 * met.share - 1) for met in row]
        for row in contest.matrix
    ]
    title = f"{_cut(contest.label, _TITLE)}: win rates in per cent, row against column"
    return _grid(f"win-rates-{contest.name}", title, contest.told[0], contest.systems, rows)


def _grid(name: str, title: str, about: str, texts: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Figure:
    names, left = _names(texts, extra=3)
    size = len(names)
    body = _macros().grid(title, names, rows, left)
    return Figure(name, title, about, left + 56 * size + 16, 62 + 28 * size + 16, body)


def _shaded(text: str, title: str, share: float) -> Cell:
    """A cell in the colour of the good, above 0, or of the bad, as deep as `share` (−1 to 1) says."""
    if not share:
        return Cell(text, title, _colours()["raised"])
    return Cell(text, title, _mixed("best" if share > 0 else "lost", _DEEPEST * min(1.0, abs(share))))


def _of_all(systems: int) -> str:
    return f" (the first {_MOST_of_svg} of {plural(systems, 'system')})" if systems > _MOST_of_svg else ""


def _names(texts: Sequence[str], extra: int = 0) -> tuple[list[str], int]:
    """The names cut to fit, and where what stands beside them begins."""
    names = [_cut(text, _NAME) for text in texts]
    widest = max((_width(name) for name in names), default=0)
    return names, 16 + round(_CELL * (widest + extra)) + 14


def _cut(text: str, cells: int) -> str:
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


def _mixed(name: str, share: float) -> str:
    """So much (0–1) of a colour on the page's."""
    over, under = (_channels(_colours()[one]) for one in (name, "page"))
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in zip(over, under, strict=True))


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour.removeprefix("#")))


@cache
def _macros() -> Any:
    template = html.template("figures.svg.jinja")
    return template.make_module({"colour": _colours()})


def _document(width: int, height: int, title: str, about: str, body: str) -> str:
    drawn = Markup(body)  # noqa: S704  (by our own macros)
    return str(_macros().document(width, height, title, about, drawn)).strip() + "\n"
