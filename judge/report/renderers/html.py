"""The report as one self-contained page: no network, no fonts or scripts from elsewhere, complete without JavaScript.

Every piece of user text passes `clean` and Jinja's autoescape, and stands only in element content or in quoted
attributes. The page's own script is named by hash in its content security policy, so that no other one can run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from judge.core.records import Column, Estimate
from judge.criteria import render as prompts
from judge.report.charts import geometry
from judge.report.charts.scatter import scatters
from judge.report.format import clean, count, line
from judge.report.renderers import item_browser
from judge.report.views import calibration, items, people
from judge.report.views.correlation_matrix import heats
from judge.report.views.difference_matrix import wins
from judge.report.views.leaderboard import View, view
from judge.report.views.panel import ALPHA, ARROWS
from judge.report.views.provenance import About
from judge.report.views.qags import HEADS
from judge.report.views.ranking import Contest, ranked
from judge.report.views.score_drivers import moved
from judge.report.views.validation import HEADS as HEADS_OF_PEOPLE
from judge.report.views.verdict import verdict
from judge.results.result import Result

MOST_DRAWN = 30
"""Systems in a chart of the page."""
MOST_MET = 40
"""Systems in a matrix of win rates."""
TEMPLATES = Path(__file__).parents[1] / "templates"


@dataclass(frozen=True, slots=True)
class Bar:
    """A system's row in a chart; `bar` is None where there is no number."""

    system: str
    text: str
    best: bool
    mark: str
    failed: int
    bar: geometry.Bar | None


@dataclass(frozen=True, slots=True)
class Plot:
    """A bar per system on one axis, and for a criterion's scores a histogram per system; `better` is the good end."""

    title: str
    part: str
    axis: geometry.Axis
    rows: tuple[Bar, ...]
    bins: Mapping[str, tuple[geometry.Bin, ...]]
    better: Literal["higher", "lower", ""] = ""

    @property
    def heading(self) -> str:
        """The title with an arrow to the better end."""
        title = f"{self.title}, {self.part}" if self.part else self.title
        return f"{title} {ARROWS[self.better]}".rstrip()


def render(result: Result) -> str:
    """The page. Of more than 2,000 outputs the first items are shown and the page says where the others are."""
    return _ranking(result) if result.rankings else _means(result)


def summary(result: Result) -> str:
    """The table of means or the standings alone, as an HTML fragment for notebooks."""
    macros = template("summary.html.jinja").module
    return str(macros.standings(ranked(result)) if result.rankings else macros.summary(view(result)))


def _means(result: Result) -> str:
    shown = view(result)
    found = list(items.scored(result, shown))
    drawn = [replace(plot, rows=plot.rows[:MOST_DRAWN]) for plot in plots(result, shown)]
    parts: dict[str, Any] = {"view": shown, "moved": moved(result), "plots": drawn, "undrawn": _undrawn(shown.systems)}
    parts |= {"wins": wins(result, shown), "heats": heats(result), "scatters": scatters(result)}
    parts["browse"] = item_browser.scored(result, shown, found)
    parts["calibrated"] = calibration.blocks(result.calibrated, every=True)
    parts["calibrated_how"] = calibration.how(result.calibrated)
    parts |= {"people": people.people(result), "people_heads": HEADS_OF_PEOPLE, "people_how": people.how(result)}
    return _page("report.html.jinja", result, shown.about, found, **parts)


def _ranking(result: Result) -> str:
    shown = ranked(result)
    found = list(items.ranked(result, shown))
    drawn = {contest.name: standing_plots(contest) for contest in shown.contests}
    parts = {"view": shown, "plots": drawn, "browse": item_browser.ranked(result, shown, found), "most": MOST_MET}
    return _page("ranking.html.jinja", result, shown.about, found, **parts)


def _page(name: str, result: Result, about: About, found: Sequence[items.Item], **parts: Any) -> str:
    script = source("report.js") + source("items.js")
    page: str = template(name).render(
        about=about,
        verdict=verdict(result),
        items=found,
        left_out=_left_out(result, found),
        alpha=ALPHA,
        criteria=result.info.get("criteria") or {},
        versions=result.info.get("versions") or {},
        style=Markup(source("report.css") + source("items.css") + source("people.css")),  # noqa: S704  (our own file)
        script=Markup(script),  # noqa: S704  (our own file)
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **parts,
    )
    return page


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals["asked_heads"] = HEADS
    found.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    found.filters |= {"clean": _shown, "line": line, "count": count, "key": prompts.key}
    return found


def template(name: str) -> Any:
    return _environment().get_template(name)


@cache
def source(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _shown(value: Any) -> str:
    return clean(str(value))


def _left_out(result: Result, found: Sequence[items.Item]) -> str:
    """What the page says where it does not hold every item; of a ranking, those of which texts were compared."""
    names = {row.item for row in result.table.rows()} if result.rankings else set(result.table.items)
    if len(found) == len(names):
        return ""
    outputs = sum(len(item.outputs) for item in found)
    texts = sum(sample.item in names for sample in result.table.samples)
    return (
        f"The first {len(found):,} of {len(names):,} items ({outputs:,} of {texts:,} texts) are shown; "
        f"all are in scores.parquet."
    )


def _undrawn(systems: Sequence[str]) -> str:
    """What the page says where its charts do not have every system."""
    if len(systems) <= MOST_DRAWN:
        return ""
    return f"The first {MOST_DRAWN} of {len(systems):,} systems are drawn; the leaderboard has all."


def plots(result: Result, shown: View) -> list[Plot]:
    """The charts of means, one for each column."""
    return [
        _plot(result, shown, column, group.name, group.parts[column.name])
        for group in shown.groups
        for column in group.columns
    ]


def _plot(result: Result, shown: View, column: Column, criterion: str, part: str) -> Plot:
    cells = {system: shown.cells[system, column.name] for system in shown.systems}
    along = geometry.axis(column, [cell.estimate for cell in cells.values() if cell.estimate])
    rows = []
    for system, cell in cells.items():
        title = f"{line(system)}: {cell.mean} {cell.interval}, {count(cell.n, 'text')}"
        drawn = geometry.bar(along, cell.estimate, title) if cell.estimate else None
        rows.append(Bar(system, cell.mean, cell.best, cell.mark, cell.failed, drawn))
    bins: dict[str, tuple[geometry.Bin, ...]] = {}
    if column.kind == "criterion" and column in shown.of_texts:
        values: dict[str, list[float]] = {system: [] for system in shown.systems}
        for score in result.table.of(column.name):
            values[score.system].append(score.value)
        bins = geometry.histograms(column, values)
    return Plot(criterion, part, along, tuple(rows), bins, column.better)


def standing_plots(contest: Contest) -> tuple[Plot, ...]:
    """Win rates in per cent and strengths, each on an axis of its own; strengths only where there are any."""
    rates = {s.system: _estimate(s.n, 100, s.win_rate, s.low, s.high) for s in contest.ranking.standings}
    strengths = {
        s.system: _estimate(s.n, 1, s.strength, s.strength_low, s.strength_high)
        for s in contest.ranking.standings
        if s.strength is not None
    }
    along = geometry.axis(Column("strength", "metric", ""), list(strengths.values()))
    found = (_standing_plot(contest, "win rate", geometry.even(0, 100, 25), rates),)
    return (*found, _standing_plot(contest, "strength", along, strengths)) if strengths else found


def _estimate(n: int, unit: float, value: float, low: float | None, high: float | None) -> Estimate:
    ends = [None if end is None else unit * end for end in (low, high)]
    return Estimate("", unit * value, ends[0], ends[1], n, "")


def _standing_plot(contest: Contest, name: str, along: geometry.Axis, estimates: Mapping[str, Estimate]) -> Plot:
    rows = []
    for system, (value, interval) in zip(contest.systems, contest.columns[name], strict=True):
        estimate = estimates.get(system)
        title = f"{line(system)}: {value} {interval}, {count(estimate.n, 'pair')}" if estimate else ""
        rows.append(Bar(system, value, False, "", 0, geometry.bar(along, estimate, title) if estimate else None))
    return Plot(name, "", along, tuple(rows), {})
