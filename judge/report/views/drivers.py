"""What a judge's scores correlate with: length, copying and position of the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from judge.core.format import listed, percent, signed
from judge.report.charts import Bar, Panel, even, intervals
from judge.report.document import Block, Cell, Paragraph, table
from judge.report.views.columns import estimate_cell, groups, share_cell
from judge.results.result import Result
from judge.stats.score_drivers import NAMES, Drivers

_ABOUT = (
    "A correlation is no proof of bias: a judge may prefer longer texts because they are better. Compare it with that "
    "of people's ratings, if there are any."
)
_KEY = (
    "Explained: share of the score variance (R²); by chance: share that random numbers would explain. Other columns: "
    "Pearson's r. Length: log of the number of words. Copying: share of word pairs from the source. Position: place of "
    "copied words in the source."
)


def drivers_blocks(result: Result) -> Iterator[Block]:
    """Yield how far scores correlate with a text's length, copying and position; nothing if that is not known."""
    known = {(drivers.column, drivers.people): drivers for drivers in result.drivers}
    rows: dict[str, Drivers] = {}
    for group in groups(result):
        judged = {name: known[name, False] for name in group.parts if (name, False) in known}
        rows |= {
            ", ".join(filter(None, (group.name, group.parts[name]))): drivers
            for name, drivers in judged.items()
        }
        if judged and (group.name, True) in known:
            rows[f"{group.name}, people"] = known[group.name, True]
    if not any(drivers.each for drivers in rows.values() if not drivers.people):
        return
    yield Paragraph(_ABOUT)
    each = {
        name: {driver.name: driver.correlation for driver in drivers.each}
        for name, drivers in rows.items()
    }
    drawn = {name: correlations for name, correlations in each.items() if correlations}
    names = [name for name in NAMES if any(name in correlations for correlations in drawn.values())]
    ends = [
        end
        for row in drawn.values()
        for e in row.values()
        for end in (e.value, e.low, e.high)
        if end is not None
    ]
    limit = 0.5 if max(map(abs, ends)) <= 0.5 else 1.0
    panels = [
        Panel(
            even(-limit, limit, limit),
            [
                Bar(e.value, e.low, e.high, signed(e.value, 2)) if (e := row.get(name)) else None
                for row in drawn.values()
            ],
            head=name,
        )
        for name in names
    ]
    yield replace(
        intervals("drivers", f"Correlation with {listed(names)}", [*drawn], panels), tabled=True
    )
    yield table(
        ("scores", "explained", "by chance", *names, "texts"),
        [
            (
                Cell(name, drivers.note, tone="muted" if drivers.people else ""),
                share_cell(drivers.together),
                None
                if drivers.chance is None
                else Cell(percent(drivers.chance), value=drivers.chance),
                *(estimate_cell(each[name].get(driver), 2, signed) for driver in names),
                Cell(
                    f"{drivers.texts:,}",
                    "within items" if drivers.within else "pooled",
                    value=drivers.texts,
                ),
            )
            for name, drivers in rows.items()
        ],
        _KEY,
        name="drivers",
    )
