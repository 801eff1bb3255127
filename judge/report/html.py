"""The report as one self-contained page: no network, no fonts or scripts from elsewhere, complete without JavaScript.

Every piece of user text passes `clean` and Jinja's autoescape, and stands only in element content or in quoted
attributes. The page's own script is named by hash in its content security policy, so that no other one can run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from judge.records import Column, Failure, Provenance, Sample, Score
from judge.report import chart
from judge.report.result import Result
from judge.report.view import View, view
from judge.report.words import clean, count, line, number

TEMPLATES = Path(__file__).parent / "templates"
MOST_OUTPUTS = 2000


@dataclass(frozen=True, slots=True)
class Plot:
    """A column's chart: a bar per system on one axis, and for a criterion a histogram per system."""

    column: Column
    axis: chart.Axis
    bars: Mapping[str, chart.Bar]
    bins: Mapping[str, tuple[chart.Bin, ...]]


@dataclass(frozen=True, slots=True)
class Judged:
    """One column's finding for one text, as shown: `value` is empty for a failure."""

    column: Column
    value: str
    path: str
    shares: str
    facts: str
    told: tuple[tuple[str, str], ...]
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Output:
    """One system's text with its findings, judgments before metrics. `others` are the further columns judged by."""

    sample: Sample
    others: tuple[tuple[str, str], ...]
    judgments: tuple[Judged, ...]
    metrics: tuple[tuple[str, str], ...]
    human: str


@dataclass(frozen=True, slots=True)
class Item:
    """What is shown to open: a source once, and every system's output. `lows` are its lowest scores by column.

    `others` are the further columns that a criterion read and that all systems share.
    """

    name: str
    source: str | None
    references: tuple[str, ...]
    others: tuple[tuple[str, str], ...]
    outputs: tuple[Output, ...]
    failed: int
    lows: str


def render(result: Result) -> str:
    """The page. Of more than 2,000 outputs the first items are shown and the page says where the others are."""
    shown = view(result)
    items = list(_items(result, shown))
    outputs = sum(len(item.outputs) for item in items)
    script = _source("report.js")
    page: str = _template("report.html.jinja").render(
        view=shown,
        info=result.info,
        plots=[_plot(result, shown, column) for column in shown.columns],
        items=items,
        left_out=_left_out(result, len(items), outputs),
        criteria=result.info.get("criteria") or {},
        versions=result.info.get("versions") or {},
        style=Markup(_source("report.css")),  # noqa: S704  (our own file)
        script=Markup(script),  # noqa: S704  (our own file)
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return page


def summary(result: Result) -> str:
    """The table of means alone, as an HTML fragment for notebooks."""
    return str(_template("summary.html.jinja").module.summary(view(result)))


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"clean": _shown, "line": line, "count": count}
    return found


def _template(name: str) -> Any:
    return _environment().get_template(name)


@cache
def _source(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _shown(value: Any) -> str:
    return clean(str(value))


def _left_out(result: Result, items: int, outputs: int) -> str:
    if outputs == len(result.table.samples):
        return ""
    every, texts = len(result.table.items), len(result.table.samples)
    return (
        f"The first {items:,} of {every:,} items ({outputs:,} of {texts:,} texts) are shown; all are in scores.parquet."
    )


def _plot(result: Result, shown: View, column: Column) -> Plot:
    cells = {system: shown.cells[system, column.name] for system in shown.systems}
    along = chart.axis(column, [cell.estimate for cell in cells.values() if cell.estimate])
    bars = {
        system: chart.bar(along, cell.estimate, f"{line(system)}: {cell.mean} {cell.interval}, {count(cell.n, 'text')}")
        for system, cell in cells.items()
        if cell.estimate
    }
    bins: dict[str, tuple[chart.Bin, ...]] = {}
    if column.kind == "criterion":
        values: dict[str, list[float]] = {system: [] for system in shown.systems}
        for score in result.table.of(column.name):
            values[score.system].append(score.value)
        bins = chart.histograms(column, values)
    return Plot(column, along, bars, bins)


def _items(result: Result, shown: View) -> Iterator[Item]:
    """The items in the table's order, as long as their outputs are within the page's limit."""
    samples: dict[str, list[Sample]] = {}
    for sample in result.table.samples:
        samples.setdefault(sample.item, []).append(sample)
    found = {(row.item, row.system, row.column): row for row in result.table.rows()}
    read = _read(result)
    outputs = 0
    for name, rows in samples.items():
        outputs += len(rows)
        if outputs > MOST_OUTPUTS and outputs > len(rows):
            return
        yield _item(name, rows, found, shown, read)


def _read(result: Result) -> list[str]:
    """The further columns of the data that some criterion read."""
    criteria = (result.info.get("criteria") or {}).values()
    read = {str(name) for criterion in criteria for name in criterion.get("needs") or ()}
    return sorted(read - {"source", "output", "reference", "references"})


def _item(
    name: str,
    samples: list[Sample],
    found: Mapping[tuple[str, str, str], Score | Failure],
    shown: View,
    read: list[str],
) -> Item:
    others = [_others(s, read) for s in samples]
    shared = tuple(pair for pair in others[0] if all(pair in pairs for pairs in others))
    rows = {(s.system, c.name): found.get((name, s.system, c.name)) for s in samples for c in shown.columns}
    lows = [
        min(
            (f"{row.value:.6g}" for s in samples if isinstance(row := rows[s.system, c.name], Score)),
            key=float,
            default="",
        )
        for c in shown.columns
    ]
    return Item(
        name=name,
        source=next((s.source for s in samples if s.source is not None), None),
        references=next((s.references for s in samples if s.references), ()),
        others=shared,
        outputs=tuple(
            _output(s, tuple(p for p in own if p not in shared), rows, shown)
            for s, own in zip(samples, others, strict=True)
        ),
        failed=sum(isinstance(row, Failure) for row in rows.values()),
        lows=" ".join(low or "-" for low in lows),
    )


def _others(sample: Sample, read: list[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(sample.extra[name])) for name in read if sample.extra.get(name) is not None)


def _output(
    sample: Sample,
    others: tuple[tuple[str, str], ...],
    rows: Mapping[tuple[str, str], Score | Failure | None],
    shown: View,
) -> Output:
    judgments: list[Judged] = []
    metrics: list[tuple[str, str]] = []
    for column in shown.columns:
        row = rows[sample.system, column.name]
        if column.kind == "metric" and isinstance(row, Score):
            metrics.append((column.name, number(row.value, shown.places[column.name])))
        elif row is not None:
            judgments.append(_judged(column, row, max(2, shown.places[column.name])))
    human = ", ".join(f"{name} {value:.3g}" for name, value in sample.human.items())
    return Output(sample, others, tuple(judgments), tuple(metrics), human)


def _judged(column: Column, row: Score | Failure, places: int) -> Judged:
    if isinstance(row, Failure):
        return Judged(column, "", "", "", "", (("reply", row.raw),) if row.raw else (), row)
    p = row.provenance
    path, shares = chart.spark(p.distribution, column.labels) if p.distribution else ("", "")
    told = tuple((name, text) for name, text in (("reply", p.raw), ("note", p.note), ("reason", p.reason)) if text)
    return Judged(column, number(row.value, places), path, shares, _how(p, places), told, None)


def _how(p: Provenance, places: int) -> str:
    """How a score was made, in a few words."""
    parts = [p.method]
    if p.n != 1:
        parts.append(count(p.n, "draw"))
    if p.mass is not None:
        parts.append(f"mass {p.mass:.2f}")
    if p.low is not None and p.high is not None and p.low != p.high:
        parts.append(f"bounds {number(p.low, places)}–{number(p.high, places)}")
    if p.entropy is not None:
        parts.append(f"entropy {p.entropy:.2f}")
    return ", ".join(parts)
