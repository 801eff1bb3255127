"""What the judge's scores correlate with: length, copying and position, laid out for all formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from judge.core.format import format_interval, one_line, signed
from judge.core.records import Estimate
from judge.report import charts
from judge.report.views.columns import Group, groups
from judge.results.result import Result
from judge.stats.score_drivers import NAMES, Drivers

PEOPLE = "people"
LEAD = (
    "How far a text's scores go with its length, with how much it copies, and with where in the source it copies from. "
    "That is no proof of a bias: a judge may like longer texts because they are better."
)
_COMPARE_PEOPLE = " Compare what moves people's ratings."
_HOW = (
    "Together: share of the differences in scores that all of them explain (R², not adjusted). By chance: what as many "
    "numbers at random would. Under a driver's name Pearson's r{interval}: above 0, more of it scores higher. "
    "Length: log of the number of words. Copying: share of the word pairs that are in the source. Position: where in "
    "the source the copied words are, from its start to its end."
)
_BOUNDED, _BARE = " with its 95% interval", " (no interval below 10 items)"
_WITHIN, _POOLED = "within items", "pooled"
_SCOPES = {
    frozenset({_WITHIN}): "Within items: scores are compared with those of the item's other texts.",
    frozenset({_POOLED}): "Over all texts, as most items have only one.",
}
_MORE = {"length": "longer texts", "copying": "texts that copy more", "position": "texts that copy from further down"}
_MIN_SHARE = 0.25  # drivers that explain a smaller share of the differences get no sentence


@dataclass(frozen=True, slots=True)
class _CriterionDrivers:
    """A criterion with the drivers of its judges' columns, and of people's ratings of it."""

    group: Group
    judged: list[Drivers]
    rated: Drivers | None


@dataclass(frozen=True, slots=True)
class DriverBar:
    """One driver of one row: `text` and `interval` are its correlation; the bar's title says it in words."""

    text: str
    interval: str
    bar: charts.Bar


@dataclass(frozen=True, slots=True)
class Row:
    """A judge's column, or people's ratings of its criterion. `pulls` are by the names of drivers.

    `together`, its `interval` and `chance` are per cents, empty where `note` says why there are none; `scope` is empty
    where all rows have the same.
    """

    name: str
    part: str
    people: bool
    pulls: Mapping[str, DriverBar]
    together: str
    interval: str
    chance: str
    texts: str
    scope: str
    note: str


@dataclass(frozen=True, slots=True)
class JudgeDrivers:
    """The rows of every criterion, people's last; `heads` are the drivers that any row has.

    All bars are on one axis. `lead` says what the numbers mean and do not mean, `legend` how they are computed.
    """

    criteria: tuple[tuple[Row, ...], ...]
    heads: tuple[str, ...]
    axis: charts.Axis
    lead: str
    legend: str


def build_judge_drivers(result: Result) -> JudgeDrivers | None:
    """Lay out what the judges' scores correlate with; None if too little is known."""
    by_criterion = list(_by_criterion(result))
    every = [
        drivers
        for criterion in by_criterion
        for drivers in (*criterion.judged, *([criterion.rated] if criterion.rated else ()))
    ]
    if not any(drivers.each for drivers in every if not drivers.people):
        return None
    bars = [driver for drivers in every for driver in drivers.each]
    scopes = frozenset(_scope(drivers) for drivers in every if drivers.each)
    ends = [abs(end) for bar in bars for e in [bar.correlation] for end in (e.value, e.low, e.high) if end is not None]
    limit = 0.5 if max(ends) <= 0.5 else 1
    axis, scoped = charts.even(-limit, limit, limit), len(scopes) > 1
    criteria = []
    for criterion in by_criterion:
        name, parts = criterion.group.name, criterion.group.parts
        rows = [_row(name, parts[drivers.column], drivers, axis, scoped) for drivers in criterion.judged]
        if criterion.rated:
            rows.append(_row(name, PEOPLE, criterion.rated, axis, scoped))
        criteria.append(tuple(rows))
    names = {bar.name for bar in bars}
    has_people = any(drivers.people and drivers.each for drivers in every)
    bounded = {bar.correlation.low is not None for bar in bars}
    interval = "".join(
        wording for wording, has_interval in ((_BOUNDED, True), (_BARE, False)) if has_interval in bounded
    )
    return JudgeDrivers(
        criteria=tuple(criteria),
        heads=tuple(name for name in NAMES if name in names),
        axis=axis,
        lead=LEAD + (_COMPARE_PEOPLE if has_people else ""),
        legend=" ".join(filter(None, (_HOW.format(interval=interval), _SCOPES.get(scopes)))),
    )


def _scope(drivers: Drivers) -> str:
    return _WITHIN if drivers.within else _POOLED


def drivers_sentence(result: Result) -> str:
    """Name the columns in which drivers explain at least a quarter of the differences, clearly more than chance.

    Returns "" if there are none.
    """
    parts, names = [], set[str]()
    for criterion in _by_criterion(result):
        rated = criterion.rated
        for drivers in criterion.judged:
            share = drivers.together
            if share is None or share.value < _MIN_SHARE or (share.low or 0.0) <= (drivers.chance or 0.0):
                continue
            beside = f" (of people's ratings {_percent(rated.together)})" if rated and rated.together else ""
            parts.append(
                f"{_percent(share)} {_interval(share)} of the differences in {one_line(drivers.column)}{beside}"
            )
            names.update(driver.name for driver in drivers.each)
    if not parts:
        return ""
    *first, last = [name for name in NAMES if name in names]
    explain = f"{', '.join(first)} and {last} explain" if first else f"{last} explains"
    return f"What moves the judge: {explain} {', '.join(parts)}."


def _by_criterion(result: Result) -> Iterator[_CriterionDrivers]:
    known = {(drivers.column, drivers.people): drivers for drivers in result.drivers}
    for group in groups(result):
        judged = [known[column.name, False] for column in group.columns if (column.name, False) in known]
        if judged:
            yield _CriterionDrivers(group, judged, known.get((group.name, True)))


def _row(name: str, part: str, drivers: Drivers, axis: charts.Axis, scoped: bool) -> Row:
    together, chance = drivers.together, drivers.chance
    pulls = {}
    for driver in drivers.each:
        e = driver.correlation
        sure = e.low is not None and e.high is not None and e.low * e.high > 0
        direction = ("higher" if e.value > 0 else "lower") if sure else "neither clearly higher nor lower"
        title = f"{_MORE[driver.name]} score {direction}; alone {_percent(driver.explained)}"
        ends = format_interval(e.low, e.high, 2)
        pulls[driver.name] = DriverBar(signed(e.value, 2), ends, charts.bar(axis, e, title))
    return Row(
        name,
        part,
        drivers.people,
        pulls,
        _percent(together) if together else "",
        _interval(together) if together else "",
        "" if chance is None else f"{100 * chance:.{0 if chance >= 0.01 else 1}f}%",
        f"{drivers.texts:,}",
        _scope(drivers) if scoped else "",
        drivers.note,
    )


def _percent(share: Estimate) -> str:
    return f"{100 * share.value:.0f}%"


def _interval(share: Estimate) -> str:
    low, high = (None if end is None else 100 * end for end in (share.low, share.high))
    return format_interval(low, high, 0)
