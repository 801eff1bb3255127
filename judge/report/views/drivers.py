"""What a judge's scores correlate with: length, copying and position of the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from judge.core.format import listed, percent, signed
from judge.core.records import Estimate
from judge.report.charts.axes import even
from judge.report.charts.bars import Bar, Panel, intervals
from judge.report.document import Block, Cell, Chart, Content, Paragraph, Tone, table
from judge.report.views.columns import estimate_cell, groups, share_cell
from judge.results.result import Result
from judge.stats.score_drivers import NAMES, Drivers

_ABOUT = (
    "A correlation is no proof of bias: a judge may prefer longer texts because they are better. "
    "Compare it with that of people's ratings, if there are any."
)
_KEY = (
    "Explained: share of the score variance (R²); by chance: share that random numbers would "
    "explain. Other columns: Pearson's r. Length: log of the number of words. Copying: share of "
    "word pairs from the source. Position: place of copied words in the source."
)
_Correlations = Mapping[str, Estimate]
"""The correlations of a column by what it correlates with."""


def drivers_blocks(result: Result) -> Iterator[Block]:
    """Yield how far scores correlate with length, copying and position; nothing if unknown."""
    rows = _rows(result)
    of_judges = [drivers for drivers in rows.values() if not drivers.people]
    if not any(drivers.each for drivers in of_judges):
        return
    yield Paragraph(_ABOUT)
    correlations: dict[str, _Correlations] = {}
    measured: set[str] = set()
    for title, drivers in rows.items():
        by_name = {driver.name: driver.correlation for driver in drivers.each}
        correlations[title] = by_name
        measured.update(by_name)
    # Scores that are all equal have a row with their note, but no bars.
    correlations_by_row = {
        title: by_name for title, by_name in correlations.items() if by_name
    }
    names = [driver_name for driver_name in NAMES if driver_name in measured]
    yield _chart(names, correlations_by_row)
    lines = []
    for title, drivers in rows.items():
        line = _line(title, drivers, correlations[title], names)
        lines.append(line)
    heads = ("scores", "explained", "by chance", *names, "texts")
    yield table(heads, lines, _KEY, name="drivers")


def _rows(result: Result) -> dict[str, Drivers]:
    """Return the drivers of each judge's and of people's scores by the heading of their row."""
    drivers_of_judge: dict[str, Drivers] = {}
    drivers_of_people: dict[str, Drivers] = {}
    for drivers in result.drivers:
        if drivers.people:
            drivers_of_people[drivers.column] = drivers
        else:
            drivers_of_judge[drivers.column] = drivers
    rows: dict[str, Drivers] = {}
    for group in groups(result):
        judged = [name for name in group.parts if name in drivers_of_judge]
        for column_name in judged:
            parts = (group.name, group.parts[column_name])
            title = ", ".join(filter(None, parts))
            rows[title] = drivers_of_judge[column_name]
        if judged and group.name in drivers_of_people:
            rows[f"{group.name}, people"] = drivers_of_people[group.name]
    return rows


def _chart(
    names: Sequence[str], correlations_by_row: Mapping[str, _Correlations]
) -> Chart:
    """Draw a panel of correlations for each driver, all on the same symmetric axis."""
    largest = 0.0
    for by_name in correlations_by_row.values():
        for estimate in by_name.values():
            for number in (estimate.value, estimate.low, estimate.high):
                if number is not None:
                    largest = max(largest, abs(number))
    # Correlations are often below 0.5 and would be hard to compare on an axis up to 1.
    limit = 0.5 if largest <= 0.5 else 1.0
    panels = []
    for driver_name in names:
        bars: list[Bar | None] = []
        for by_name in correlations_by_row.values():
            correlation = by_name.get(driver_name)
            bar = None
            if correlation is not None:
                text = signed(correlation.value, 2)
                bar = Bar(correlation.value, correlation.low, correlation.high, text)
            bars.append(bar)
        axis = even(-limit, limit, limit)
        panels.append(Panel(axis, bars, head=driver_name))
    title = f"Correlation with {listed(names)}"
    chart = intervals("drivers", title, [*correlations_by_row], panels)
    return replace(chart, tabled=True)


def _line(
    title: str,
    drivers: Drivers,
    correlations: _Correlations,
    names: Sequence[str],
) -> list[Content]:
    """Return a row of the table."""
    chance = None
    if drivers.chance is not None:
        chance = Cell(percent(drivers.chance), value=drivers.chance)
    tone: Tone = "muted" if drivers.people else ""
    scores = Cell(title, drivers.note, tone)
    explained = share_cell(drivers.together)
    cells = [estimate_cell(correlations.get(name), 2, signed) for name in names]
    level = "within items" if drivers.within else "pooled"
    texts = Cell(f"{drivers.texts:,}", level, value=drivers.texts)
    return [scores, explained, chance, *cells, texts]
