"""What a judge's scores correlate with: length, copying and position of the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from judge.core.format import format_interval, signed
from judge.core.records import Estimate
from judge.report import document as blocks
from judge.report.charts import Bar, Panel, even, intervals
from judge.report.document import Block, Cell
from judge.report.views.columns import estimate_cell, groups
from judge.results.result import Result
from judge.stats.score_drivers import NAMES, Driver, Drivers

_MORE = {"length": "longer texts", "copying": "texts that copy more", "position": "texts that copy from further down"}
_ABOUT = "A correlation is no proof of bias: a judge may prefer longer texts because they are better."
_COMPARE = " Compare it with that of people's ratings."
_KEY = (
    "Explained: share of the score variance (R²); by chance: share that random numbers would explain. Other columns: "
    "Pearson's r. Length: log of the number of words. Copying: share of word pairs from the source. Position: place of "
    "copied words in the source."
)
_SCOPES = {True: "Scores are compared within items.", False: "Scores are pooled over all texts."}


def drivers_blocks(result: Result) -> Iterator[Block]:
    """Yield how far scores correlate with a text's length, copying and position; nothing if that is not known."""
    rows = list(_rows(result))
    drawn = [driver for _, drivers in rows for driver in drivers.each]
    if not any(drivers.each for _, drivers in rows if not drivers.people):
        return
    yield blocks.Paragraph(_ABOUT + _COMPARE * any(drivers.people and drivers.each for _, drivers in rows))
    ends = [end for d in drawn for e in [d.correlation] for end in (e.value, e.low, e.high) if end is not None]
    limit = 0.5 if max(map(abs, ends)) <= 0.5 else 1.0
    names = [name for name in NAMES if any(driver.name == name for driver in drawn)]
    known = [(name, drivers) for name, drivers in rows if drivers.each]
    axis = even(-limit, limit, limit)
    panels = [Panel(axis, [_bar(_each(drivers).get(name)) for _, drivers in known], head=name) for name in names]
    title = f"Correlation with {', '.join(names[:-1])} and {names[-1]}" if names[1:] else f"Correlation with {names[0]}"
    yield replace(intervals("drivers", title, [name for name, _ in known], panels), tabled=True)
    scopes = {drivers.within for _, drivers in known}
    heads = ("scores", "explained", "by chance", *names, "texts")
    yield blocks.table(
        heads,
        [_cells(name, drivers, names, scoped=len(scopes) > 1) for name, drivers in rows],
        key=" ".join([_KEY, *(_SCOPES[scope] for scope in scopes if len(scopes) == 1)]),
        name="drivers",
    )


def _rows(result: Result) -> Iterator[tuple[str, Drivers]]:
    known = {(drivers.column, drivers.people): drivers for drivers in result.drivers}
    for group in groups(result):
        judged = [column.name for column in group.columns if (column.name, False) in known]
        for name in judged:
            part = group.parts[name]
            yield f"{group.name}, {part}" if part else group.name, known[name, False]
        if judged and (group.name, True) in known:
            yield f"{group.name}, people", known[group.name, True]


def _each(drivers: Drivers) -> dict[str, Driver]:
    return {driver.name: driver for driver in drivers.each}


def _bar(driver: Driver | None) -> Bar | None:
    if driver is None:
        return None
    e = driver.correlation
    sure = e.low is not None and e.high is not None and e.low * e.high > 0
    effect = ("score higher" if e.value > 0 else "score lower") if sure else "score neither clearly higher nor lower"
    note = f"{_MORE[driver.name]} {effect} ({_percent(driver.explained)} of the variance)"
    return Bar(e.value, e.low, e.high, signed(e.value, 2), note)


def _cells(name: str, drivers: Drivers, names: list[str], *, scoped: bool) -> tuple[Cell, ...]:
    each, together, chance = _each(drivers), drivers.together, drivers.chance
    share = Cell("–")
    if together:
        share = Cell(_percent(together), format_interval(together.low, together.high, 0, 100), value=together.value)
    scope = ("within items" if drivers.within else "pooled") if scoped and each else ""
    places = 0 if chance is None or chance >= 0.01 else 1
    return (
        Cell(name, drivers.note, tone="muted" if drivers.people else ""),
        share,
        Cell("–" if chance is None else f"{100 * chance:.{places}f}%", value=chance),
        *(estimate_cell(each[name].correlation if name in each else None, 2, signed) for name in names),
        Cell(f"{drivers.texts:,}", scope, value=drivers.texts),
    )


def _percent(share: Estimate) -> str:
    return f"{100 * share.value:.0f}%"
