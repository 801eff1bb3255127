"""Render a result as one self-contained HTML page, and results, comparisons and diffs as fragments for notebooks.

The page has no network, no fonts or scripts from elsewhere, and is complete without JavaScript. Every piece of user
text passes `escape_controls` and Jinja's autoescape, and stands only in element content or in quoted attributes. The
page's own script is named by hash in its content security policy, so that no other one can run.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from judge.core.format import escape_controls, one_line, plural
from judge.core.records import ABSTAINED, Column, Estimate, Failure, Score
from judge.criteria import render as prompts
from judge.report import charts
from judge.report.charts import scatters
from judge.report.renderers import old_items as items
from judge.report.renderers.old_items import Item, gaps, means, shares
from judge.report.views import people as validation
from judge.report.views.columns import ALPHA, ARROWS
from judge.report.views.heat_maps import heats, wins
from judge.report.views.leaderboard_old import Leaderboard, build_leaderboard, verdict
from judge.report.views.people import HEADS as HEADS_OF_PEOPLE
from judge.report.views.provenance import Provenance, abstained, failed
from judge.report.views.qags import HEADS
from judge.report.views.ranking_old import Contest, RankingView, build_ranking
from judge.report.views.score_drivers import build_judge_drivers
from judge.results.result import Result

MOST_DRAWN = 30
"""Systems in a chart of the page."""
MOST_MET = 40
"""Systems in a matrix of win rates."""
TEMPLATES = Path(__file__).parents[1] / "templates"

# Metrics that measure overlap with the references, in the order of preference for comparing them with a judge
_OVERLAPS = ("rouge1", "rougeL", "rougeLsum", "rouge2", "bleu", "chrf")
_MOST_TOP_ITEMS = 20
_NO_SHEETS = {"usual": None, "others": ()}
_MOST_KINDS = 4  # of failures that a notebook names


@dataclass(frozen=True, slots=True)
class Bar:
    """A system's row in a chart; `bar` is None where there is no number."""

    system: str
    text: str
    best: bool
    mark: str
    failed: int
    bar: charts.Bar | None


@dataclass(frozen=True, slots=True)
class Plot:
    """A bar per system on one axis, and for a criterion's scores a histogram per system; `better` is the good end."""

    title: str
    part: str
    axis: charts.Axis
    rows: tuple[Bar, ...]
    bins: Mapping[str, tuple[charts.Bin, ...]]
    better: Literal["higher", "lower", ""] = ""

    @property
    def heading(self) -> str:
        """The title with an arrow to the better end."""
        title = f"{self.title}, {self.part}" if self.part else self.title
        return f"{title} {ARROWS[self.better]}".rstrip()


def render(result: Result) -> str:
    """The page. Of more than 2,000 outputs the first items are shown and the page says where the others are."""
    if not result.rankings:
        return _means_page(result)
    view = build_ranking(result)
    shown_items = list(items.ranked(result, view))
    drawn_plots = {contest.name: standing_plots(contest) for contest in view.contests}
    parts = {"view": view, "plots": drawn_plots, "browse": browse_ranked(result, view, shown_items), "most": MOST_MET}
    return _page("ranking.html.jinja", result, view.about, shown_items, **parts)


def summary(result: Result) -> str:
    """The table of means or the standings alone, as an HTML fragment for notebooks."""
    macros = template("summary.html.jinja").module
    return str(
        macros.standings(build_ranking(result)) if result.rankings else macros.summary(build_leaderboard(result))
    )


def _means_page(result: Result) -> str:
    board = build_leaderboard(result)
    shown_items = list(items.scored(result, board))
    drawn_plots = [replace(plot, rows=plot.rows[:MOST_DRAWN]) for plot in plots(result, board)]
    n_systems = len(board.systems)
    undrawn = f"The first {MOST_DRAWN} of {n_systems:,} systems are drawn; the leaderboard has all."
    parts = {
        "view": board,
        "moved": build_judge_drivers(result),
        "plots": drawn_plots,
        "undrawn": undrawn if n_systems > MOST_DRAWN else "",
        "wins": wins(result, board),
        "heats": heats(result),
        "scatters": scatters(result),
        "browse": browse_scored(result, board, shown_items),
        "calibrated": validation.blocks(result.calibrated, every=True),
        "calibrated_how": validation.calibration_note(result.calibrated),
        "people": validation.people(result),
        "people_heads": HEADS_OF_PEOPLE,
        "people_how": validation.curve_note(result),
    }
    return _page("report.html.jinja", result, board.about, shown_items, **parts)


def _page(name: str, result: Result, about: Provenance, shown_items: Sequence[Item], **parts: Any) -> str:
    script = source("report.js") + source("items.js")
    # Of a ranking, only items with compared texts count.
    names = {row.item for row in result.table.rows()} if result.rankings else set(result.table.items)
    left_out = ""
    if len(shown_items) != len(names):
        outputs = sum(len(item.outputs) for item in shown_items)
        texts = sum(sample.item in names for sample in result.table.samples)
        left_out = (
            f"The first {len(shown_items):,} of {len(names):,} items ({outputs:,} of {texts:,} texts) are shown; "
            f"all are in scores.parquet."
        )
    page: str = template(name).render(
        about=about,
        verdict=verdict(result),
        items=shown_items,
        left_out=left_out,
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
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["asked_heads"] = HEADS
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    environment.filters |= {
        "clean": lambda value: escape_controls(str(value)),
        "line": one_line,
        "count": plural,
        "key": prompts.fence_digest,
    }
    return environment


def template(name: str) -> Any:
    return _environment().get_template(name)


@cache
def source(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def plots(result: Result, board: Leaderboard) -> list[Plot]:
    """The charts of means, one for each column."""
    drawn, grouped = [], [(group, column) for group in board.groups for column in group.columns]
    for group, column in grouped:
        cells = {system: board.cells[system, column.name] for system in board.systems}
        along = charts.axis(column, [cell.estimate for cell in cells.values() if cell.estimate])
        rows = []
        for system, cell in cells.items():
            title = f"{one_line(system)}: {cell.mean} {cell.interval}, {plural(cell.n, 'text')}"
            bar = charts.bar(along, cell.estimate, title) if cell.estimate else None
            rows.append(Bar(system, cell.mean, cell.best, cell.mark, cell.failed, bar))
        bins: dict[str, tuple[charts.Bin, ...]] = {}
        if column.kind == "criterion" and column in board.of_texts:
            values: dict[str, list[float]] = {system: [] for system in board.systems}
            for score in result.table.column_scores(column.name):
                values[score.system].append(score.value)
            bins = charts.histograms(column, values)
        drawn.append(Plot(group.name, group.parts[column.name], along, tuple(rows), bins, column.better))
    return drawn


def standing_plots(contest: Contest) -> tuple[Plot, ...]:
    """Win rates in per cent and strengths, each on an axis of its own; strengths only where there are any."""
    rates = {s.system: _estimate(s.n, 100, s.win_rate, s.low, s.high) for s in contest.ranking.standings}
    strengths = {
        s.system: _estimate(s.n, 1, s.strength, s.strength_low, s.strength_high)
        for s in contest.ranking.standings
        if s.strength is not None
    }
    along = charts.axis(Column("strength", "metric", ""), list(strengths.values()))
    win_rates = (_standing_plot(contest, "win rate", charts.even(0, 100, 25), rates),)
    return (*win_rates, _standing_plot(contest, "strength", along, strengths)) if strengths else win_rates


def _estimate(n: int, unit: float, value: float, low: float | None, high: float | None) -> Estimate:
    ends = [None if end is None else unit * end for end in (low, high)]
    return Estimate("", unit * value, ends[0], ends[1], n, "")


def _standing_plot(contest: Contest, name: str, along: charts.Axis, estimates: Mapping[str, Estimate]) -> Plot:
    rows = []
    for system, (value, interval) in zip(contest.systems, contest.columns[name], strict=True):
        estimate = estimates.get(system)
        title = f"{one_line(system)}: {value} {interval}, {plural(estimate.n, 'pair')}" if estimate else ""
        rows.append(Bar(system, value, False, "", 0, charts.bar(along, estimate, title) if estimate else None))
    return Plot(name, "", along, tuple(rows), {})


@dataclass(frozen=True, slots=True)
class ItemBrowser:
    """The controls above the items, each with what it is called, and what the script reads.

    `tops` are the orders of which the first few items can be shown alone, `copied` says that some text repeats its
    source.
    """

    systems: tuple[str, ...]
    criteria: tuple[str, ...]
    orders: tuple[tuple[str, str], ...]
    tops: tuple[tuple[str, str], ...]
    failures: bool
    copied: bool
    data: Mapping[str, Any]

    @property
    def names(self) -> frozenset[str]:
        """The names of the texts that the sheets hold; those of a comparison are two outputs."""
        sheets = self.data["sheets"]
        names = {hole.partition(" ")[2] for sheet in sheets for _, parts in sheet for hole in parts[1::2]}
        return frozenset(names | {"output"} if "first" in names else names)


def browse_scored(result: Result, board: Leaderboard, shown_items: Sequence[Item]) -> ItemBrowser:
    """Of a run that scores texts. `data` has a row for each output, in the order of the page.

    `values` are by column, false where there is a failure; `mean` is that of the criteria, each as a share of its
    scale; `gap` how far the text's ranks by the judge and by an overlap metric are apart (-1 to 1, above 0 where the
    judge's is the better one), of all criteria together and of each; `mass` the least found on the scale, by criterion.
    """
    heads = [g for g in board.groups if g.columns[0].kind == "criterion" and g.columns[0] in board.of_texts]
    outputs = [(item, output) for item in shown_items for output in item.outputs]
    rows = {(row.item, row.system, row.column): row for row in result.table.rows()}
    each = [shares(group.columns[0], result.table) for group in heads]
    whole = means(each)
    overlap = next((name for name in _OVERLAPS if name in {c.name for c in board.of_texts}), "")
    rank_gaps = [
        gaps(scores, result.table.column_scores(overlap)) for scores in ([whole, *each] if len(each) > 1 else each)
    ]
    texts = [(item.name, output.sample.system) for item, output in outputs]
    masses = [[_mass([rows.get((*text, c.name)) for c in group.columns]) for group in heads] for text in texts]
    place = {system: k for k, system in enumerate(result.table.systems)}
    ranked_by = (
        "the mean of the criteria, each as a share of its scale, or the chosen criterion"
        if len(heads) > 1
        else "the judge"
    )
    data = {
        "columns": [  # the number of the column's criterion; -1 for a metric
            next((k for k, group in enumerate(heads) if column in group.columns), -1) for column in board.of_texts
        ],
        "top": _top_size(shown_items),
        "system": [place[system] for _, system in texts],
        "values": [[_value(column, rows.get((*text, column.name))) for column in board.of_texts] for text in texts],
        "mean": [_short(whole.get(text)) for text in texts],
        "gap": [[scores.get(text) for scores in rank_gaps] for text in texts] if any(rank_gaps) else [],
        "overlap": overlap,
        "told": {
            "gap": f"All texts of the run are ranked by the judge ({ranked_by}) and by {overlap}. Shown is who ranks "
            "the text higher, and by what share of the texts: 1 is first against last.",
            "spread": f"The highest less the lowest of an item's systems: {ranked_by}.",
            "mass": "The least probability, or share of draws, that was found on the scale.",
        },
        "mass": masses if any(m is not None and m < 1 for mass in masses for m in mass) else [],
        "runs": [output.runs for _, output in outputs],
        **_prompt_sheets(result, [c.name for c in board.of_texts], shown_items),
    }
    tops = (
        *([("gap", f"judge and {overlap} furthest apart")] if data["gap"] else []),
        *([("spread", "systems furthest apart")] if heads and len(place) > 1 else []),
        *([("mass", "least mass on the scale")] if data["mass"] else []),
    )
    return ItemBrowser(
        systems=result.table.systems,
        criteria=tuple(group.name for group in heads),
        orders=(*tops, *((f"low {k}", f"lowest {column.name}") for k, column in enumerate(board.of_texts))),
        tops=tops,
        failures=any(item.failed for item in shown_items),
        copied=any(data["runs"]),
        data=data,
    )


def browse_ranked(result: Result, view: RankingView, shown_items: Sequence[Item]) -> ItemBrowser:
    """Of a run that compares texts. `data` has the `flips` of every item by contest, and its number of failures."""
    labels = [contest.label for contest in view.contests]
    data = {
        "columns": list(range(len(labels))),
        "top": _top_size(shown_items),
        "told": {},
        "flips": [[comparison.flips for comparison in item.comparisons] for item in shown_items],
        "failed": [item.failed for item in shown_items],
        "runs": [output.runs for item in shown_items for output in item.outputs],
        **_prompt_sheets(result, [contest.name for contest in view.contests], shown_items),
    }
    return ItemBrowser(
        systems=(),
        criteria=tuple(labels),
        orders=tuple((f"flips {k}", f"most flips in {label} first") for k, label in enumerate(labels)),
        tops=(),
        failures=any(item.failed for item in shown_items),
        copied=any(data["runs"]),
        data=data,
    )


def _top_size(shown_items: Sequence[Item]) -> int:
    """Number of items in a list of the top ones."""
    return min(_MOST_TOP_ITEMS, ceil(len(shown_items) / 5))


def _value(column: Column, row: Score | Failure | None) -> float | bool | None:
    if isinstance(row, Score):
        return _short(row.value)
    return False if failed(row) and not abstained(column, row) else None


def _short(value: float | None) -> float | None:
    """Round to four digits, enough to sort by; the page shows fewer."""
    return None if value is None else float(f"{value:.4g}")


def _mass(rows: Sequence[Score | Failure | None]) -> float | None:
    masses = [row.provenance.mass for row in rows if isinstance(row, Score) and row.provenance.mass is not None]
    return round(min(masses), 3) if masses else None


def _prompt_sheets(result: Result, columns: Sequence[str], shown_items: Sequence[Item]) -> dict[str, Any]:
    """The prompt sheets, and by column the one that was used: the usual one, and others by output or pair."""
    stored = result.info.get("prompts") or {}
    numbers: dict[tuple[str, str], int] = {}
    for item in shown_items:
        for output in item.outputs:
            numbers[item.name, output.sample.system] = len(numbers)
    by_column = {}
    for place, column in enumerate(columns):
        used_sheets = stored.get("asked", {}).get(column, _NO_SHEETS)
        others = {
            " ".join(str(numbers[item, name]) for name in (system, rival) if name): sheet
            for item, system, rival, sheet in used_sheets["others"]
            if (item, system) in numbers
        }
        if others or used_sheets["usual"] is not None:
            by_column[place] = [used_sheets["usual"], others]
    sheets = [
        [[role, [escape_controls(part) for part in parts]] for role, parts in sheet]
        for sheet in stored.get("sheets", ())
    ]
    return {"sheets": sheets, "asked": by_column}


def of_result(result: Result) -> str:
    """The verdict, the table of means or the standings, and what failed."""
    macros = template("summary.html.jinja").module
    sentences = [verdict(result), *failed_lines(result)]
    if result.rankings:
        contests = build_ranking(result)
        tables = [str(macros.standing(contest, contest.label)) for contest in contests.contests]
        return "".join([*_lines(sentences), *tables, _folded("How to read this", _lines([contests.caption]))])
    board = build_leaderboard(result)
    captions = [text for text in (board.ranked, board.caption) if text]
    return "".join(
        [*_lines(sentences), str(macros.summary(board, caption=False)), _folded("How to read this", _lines(captions))]
    )


def failed_lines(result: Result) -> Iterator[str]:
    """How many values could not be had, by their kinds; nothing where all could."""
    if not result.failed:
        return
    kinds = Counter((row.error, row.column) for row in result.failures if row.error != ABSTAINED)
    named = [f"{many:,} {error} ({column})" for (error, column), many in kinds.most_common(_MOST_KINDS)]
    more = f" and {len(kinds) - _MOST_KINDS} more kinds" if len(kinds) > _MOST_KINDS else ""
    every = result.failed + len(result.table.scores)
    yield f"{result.failed:,} of {plural(every, 'value')} failed: {', '.join(named)}{more}. .failures says why of each."


def _lines(texts: Iterable[str]) -> list[str]:
    return [f"<p>{_escaped(text)}</p>" for text in texts if text]


def _folded(title: str, parts: list[str]) -> str:
    return f"<details><summary>{_escaped(title)}</summary>{''.join(parts)}</details>" if parts else ""


def _escaped(text: str) -> Markup:
    return escape(escape_controls(text))
