"""A judge against people laid out for reading: tables, and the sentences that the numbers support."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.core.records import Estimate
from judge.report.format import count, decimals, line, number, percent, span
from judge.report.views.calibration import Cell, Grid
from judge.stats.annotator_agreement import MEASURES, TITLES
from judge.stats.calibration import Calibration
from judge.stats.coefficients import COEFFICIENTS
from judge.stats.correlation import CONCLUSIVE, UNITS, Level
from judge.stats.validity import Rated, Row, Versus

HEADS = ("Spearman", "Kendall tau-b", "Pearson")
_LEVELS: Mapping[Level, str] = {
    "document": "between the systems of an item, mean over items",
    "item": "over all texts",
    "system": "between the systems' means",
}
_PLACES = 3
FEW = MEASURES[:4]
"""The measures of agreement that fit a narrow table."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row as text: its coefficients, what they are over, and of how many texts."""

    label: str
    kind: str
    cells: tuple[Cell, ...]
    n: str
    texts: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A judge's calibration: what it comes to, and its bins."""

    judge: str
    told: str
    bins: Grid

    @property
    def title(self) -> str:
        return f"Calibration of {self.judge}: {self.told}"


@dataclass(frozen=True, slots=True)
class Block:
    """A criterion as text, at the level that could be shown.

    `told` says what the correlations support. `agreement` has a row for each judge and for the annotators, None where
    there are neither; `curves` are the calibration of each judge that has one; `notes` say what is missing.
    """

    title: str
    over: str
    unit: str
    lines: tuple[Line, ...]
    told: tuple[str, ...]
    agreement: Grid | None
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]


def block(rated: Rated, level: Level) -> Block:
    """Lay a criterion out at a level, or over all texts where that has nothing."""
    shown = _usable(rated, level)
    notes = []
    if shown != level:
        notes.append(f"Nothing at level {level}: {_reason(rated, level)}. Shown is what there is {_LEVELS[shown]}.")
    return Block(
        title=f"{line(rated.criterion)}: {count(rated.texts, 'text')} rated by people",
        over=f"Correlation {_LEVELS[shown]}",
        unit=f"{UNITS[shown]}s",
        lines=tuple(_line(row, shown) for row in rated.rows),
        told=tuple(told(rated, shown)),
        agreement=_agreement(rated),
        curves=tuple(_curve(row.name, row.calibration) for row in rated.judges if row.calibration),
        notes=(*notes, *_lacking(rated, shown), *_other_scales(rated)),
    )


def _usable(rated: Rated, level: Level) -> Level:
    """The level, or that of all texts together where it has nothing and that has."""
    levels: tuple[Level, ...] = (level, "item")
    has = [one for one in levels if any((one, "spearman") in row.correlation.estimates for row in rated.rows)]
    return has[0] if has else level


def _reason(rated: Rated, level: Level) -> str:
    """Why no row has a value: what holds of one that has texts, if any has."""
    rows = sorted((row.correlation for row in rated.rows), key=lambda found: not found.texts)
    return next(found.lacking[level] for found in rows if level in found.lacking)


def _line(row: Row, level: Level) -> Line:
    found = [row.correlation.estimates.get((level, name)) for name in COEFFICIENTS]
    n = next((f"{e.n:,}" for e in found if e is not None), "–")
    texts = "" if level == "item" else f"{row.correlation.texts:,}"
    return Line(line(row.label), row.kind, tuple(map(_cell, found)), n, texts)


def _cell(found: Estimate | None, places: int = _PLACES) -> Cell:
    return ("–", "") if found is None else (number(found.value, places), span(found.low, found.high, places))


def _lacking(rated: Rated, level: Level) -> Iterator[str]:
    """Why rows have no value, or are no floors, rows of one reason together."""
    reasons: dict[str, list[str]] = {}
    few: dict[str, list[str]] = {}
    for row in rated.rows:
        if level in row.correlation.lacking:
            reasons.setdefault(row.correlation.lacking[level], []).append(row.name)
        elif level in row.few:
            few.setdefault(row.few[level], []).append(row.name)
    for reason, names in reasons.items():
        yield f"No value for {', '.join(map(line, names))}: {reason}."
    for reason, names in few.items():
        yield f"Left out as a floor: {', '.join(map(line, names))}: {reason}."


def _other_scales(rated: Rated) -> Iterator[str]:
    for row in rated.judges:
        if row.no_calibration and row.correlation.texts:
            yield f"No agreement and calibration for {line(row.name)}: {row.no_calibration}."


# What the correlations support


def told(rated: Rated, level: Level) -> Iterator[str]:
    """What the differences support: a sentence for each judge on the floors, then of the best on each other judge."""
    if not rated.judges:
        yield f"No judge scored {line(rated.criterion)}: the floors stand alone."
    if few := _few(rated, level):
        yield few
        return
    for judge in rated.judges:
        if level in judge.correlation.lacking:
            continue
        against = {floor.name: rated.differences.get((judge.name, floor.name, level)) for floor in rated.floors}
        yield f"{line(judge.name)} {_stands(against)}"
        if above := _over_ceiling(judge, rated.ceiling, level):
            yield above
    for floor in _counted(rated, level) if rated.judges else ():
        found = floor.correlation.estimates.get((level, "spearman"))
        if found is not None and found.high is not None and round(found.high, _PLACES) < 0:
            opposite = number(-found.value, _PLACES)
            yield f"{floor.name} goes the other way, {_difference(found)}: its opposite is a floor of {opposite}."
    yield from _beside(rated, level)


def _counted(rated: Rated, level: Level) -> list[Row]:
    """The floors that have values for enough of the items."""
    return [floor for floor in rated.floors if level not in floor.few]


def _over_ceiling(judge: Row, ceiling: Row | None, level: Level) -> str:
    """What it means that a judge goes with people better than one of them does; nothing where it does not."""
    found = judge.correlation.estimates.get((level, "spearman"))
    top = None if ceiling is None else ceiling.correlation.estimates.get((level, "spearman"))
    if found is None or top is None or round(found.value, _PLACES) <= round(top.value, _PLACES):
        return ""
    return (
        f"{line(judge.name)} is above the ceiling ({number(found.value, _PLACES)} over {number(top.value, _PLACES)}): "
        "it is nearer to the annotators' mean than one of them is to the mean of the others, which is the noisier; "
        "that does not make it better than people."
    )


def _few(rated: Rated, level: Level) -> str:
    """That there are too few systems for a verdict between their means; nothing where there are enough."""
    found = [row.correlation.estimates.get((level, "spearman")) for row in rated.rows]
    most = max((e.n for e in found if e is not None), default=CONCLUSIVE)
    if level != "system" or most >= CONCLUSIVE:
        return ""
    return f"{count(most, 'system')} are too few for a verdict between their means: it takes {CONCLUSIVE} or more."


def _stands(floors: Mapping[str, Estimate | None]) -> str:
    """Which floors are beaten, and which not."""
    against = {name: found for name, found in floors.items() if found is not None}
    if not against:
        return "could not be compared with a floor."
    # by the ends as they are shown: +0.072 [0.000, 0.147] beats nothing
    beaten = {name: e for name, e in against.items() if e.low is not None and round(e.low, _PLACES) > 0}
    if len(beaten) == len(against):
        name, nearest = min(against.items(), key=lambda one: one[1].value)
        every = "every floor" if len(against) == len(floors) else "every floor that has values"
        return f"beats {every}: {_difference(nearest)} in Spearman over {name}, the nearest."
    below = {name: e for name, e in against.items() if e.high is not None and round(e.high, _PLACES) < 0}
    level = {name: e for name, e in against.items() if name not in beaten and name not in below}
    parts = [f"is below {_listed(below)}"] if below else []
    parts += [f"is not told apart from {_listed(level)}"] if level else []
    parts += [f"beats {', '.join(beaten)}"] if beaten else []
    return f"{'; '.join(parts)} (differences in Spearman)."


def _listed(against: Mapping[str, Estimate]) -> str:
    return ", ".join(f"{name} ({_difference(found)})" for name, found in against.items())


def _difference(found: Estimate) -> str:
    sign = "+" if found.value >= 0 else ""
    interval = span(found.low, found.high, _PLACES)
    return f"{sign}{number(found.value, _PLACES)} {interval or 'without an interval'}"


def _beside(rated: Rated, level: Level) -> Iterator[str]:
    """The judge that goes with people best against every other one."""
    estimates = {row.name: row.correlation.estimates.get((level, "spearman")) for row in rated.judges}
    values = {name: found.value for name, found in estimates.items() if found is not None}
    if len(values) < 2:
        return
    best = max(values, key=lambda name: values[name])
    for one in rated.versus:
        if one.level == level and best in (one.judge, one.other):
            yield _against(one, best, _williams(rated, one))


def _against(one: Versus, best: str, williams: Estimate | None) -> str:
    sign, other = (1, one.other) if one.judge == best else (-1, one.judge)
    e = one.spearman
    ends = (e.low, e.high) if sign > 0 else (e.high and -e.high, e.low and -e.low)
    turned = Estimate(e.name, sign * e.value, *ends, e.n, e.method)
    apart = turned.low is not None and round(turned.low, _PLACES) > 0
    over = _LEVELS["item" if one.level == "document" else one.level]
    tested = f"; Williams' test of Pearson {over}: {_p(williams)}" if williams else ""
    how = "goes with people better than" if apart else "is not told apart from"
    return f"{line(best)} {how} {line(other)}: {_difference(turned)} in Spearman{tested}."


def _williams(rated: Rated, one: Versus) -> Estimate | None:
    level = "item" if one.level == "document" else one.level
    found = next((v for v in rated.versus if (v.judge, v.other, v.level) == (one.judge, one.other, level)), None)
    return found.pearson if found is not None and found.pearson is not None and found.pearson.p is not None else None


def _p(found: Estimate) -> str:
    return "p < .001" if (found.p or 0.0) < 0.001 else f"p = {number(found.p or 0.0, 3).removeprefix('0')}"


# Agreement and calibration


def _agreement(rated: Rated) -> Grid | None:
    """The judges with people's mean, the annotators with one another, in the measures that any of them has."""
    rows = [(line(row.name), row.agreement) for row in rated.judges]
    rows += [(rated.ceiling.signature, rated.ceiling.agreement)] if rated.ceiling else []
    rows = [(name, found) for name, found in rows if found.estimates]
    measures = [measure for measure in MEASURES if any(measure in found.estimates for _, found in rows)]
    if not measures:
        return None
    return Grid(
        ("agreement", *(TITLES[measure] for measure in measures)),
        tuple(((name, ""), *(_cell(found.estimates.get(measure)) for measure in measures)) for name, found in rows),
    )


def _curve(name: str, found: Calibration) -> Curve:
    places = decimals([found.low, found.high])
    side = "above" if found.bias.value >= 0 else "below"
    ends = (found.bias.low, found.bias.high)
    if found.bias.value < 0 and ends[0] is not None and ends[1] is not None:
        ends = -ends[1], -ends[0]
    bias = f"{number(abs(found.bias.value), places)} {span(*ends, places)}".rstrip()
    low, high = (None if end is None else 100 * end for end in (found.error.low, found.error.high))
    error = f"{percent(found.error.value)} {span(low, high, 1)}".rstrip()
    rows = tuple(
        (
            (f"{number(one.low, 1)}–{number(one.high, 1)}", ""),
            (f"{one.people.n:,}", ""),
            (number(one.value, places), ""),
            *((text, "") for text in _cell(one.people, places)),
        )
        for one in found.bins
    )
    said = f"error {error} of the scale; on average {bias} points {side} people"
    return Curve(line(name), said, Grid(("scores", "texts", "judge", "people", "interval"), rows))


# What holds for all criteria


def brief(found: Sequence[Rated], level: Level) -> Grid:
    """A row for each judge of each criterion: its Spearman, the floor that comes highest, the ceiling."""
    return Grid(
        ("criterion", "judge", "Spearman", "highest floor", "ceiling", "texts"),
        tuple(row for rated in found for row in _brief(rated, _usable(rated, level))),
    )


def _brief(rated: Rated, level: Level) -> Iterator[tuple[Cell, ...]]:
    floors = [(one.name, one.correlation.estimates.get((level, "spearman"))) for one in _counted(rated, level)]
    name, highest = max(floors, key=lambda one: -2.0 if one[1] is None else one[1].value, default=("", None))
    ceiling = rated.ceiling.correlation.estimates.get((level, "spearman")) if rated.ceiling else None
    best = "–" if highest is None else f"{number(highest.value, _PLACES)} ({line(name)})"
    for row in rated.judges:
        cells = _cell(row.correlation.estimates.get((level, "spearman"))), (best, ""), (_cell(ceiling)[0], "")
        yield (line(rated.criterion), ""), (line(row.name), ""), *cells, (f"{row.correlation.texts:,}", "")


def closing(rated: Sequence[Rated], level: Level) -> Iterator[str]:
    """What floors, ceiling, agreement and calibration are, and how the intervals were made."""
    yield "Floors need no judge: one that does not beat them adds nothing to them."
    if any(one.ceiling for one in rated):
        yield "Ceiling: one annotator against the mean of the others, averaged over the annotators."
    missing: dict[str, list[str]] = {}
    for one in rated:
        if one.no_ceiling:
            missing.setdefault(one.no_ceiling, []).append(line(one.criterion))
    for why, names in missing.items():
        yield f"No ceiling for {', '.join(names)}: {why}."
    shown = {_usable(one, level) for one in rated}
    if "document" in shown:
        yield "An item counts in which both the values and the ratings differ between texts."
    yield from _explained(rated)
    found = [row.correlation.estimates.get((at, "spearman")) for one in rated for row in one.rows for at in shown]
    bounded = dict.fromkeys(e.method.rpartition("; ")[2] for e in found if e is not None and e.low is not None)
    paired = "; differences are on the texts that both have, from the same resamples"
    for how in bounded:
        yield f"[low, high]: {how}{paired if any(one.differences for one in rated) else ''}."


def _explained(rated: Sequence[Rated]) -> Iterator[str]:
    rows = [row for one in rated for row in one.rows]
    kinds = {row.kind for row in rows if row.agreement.estimates}
    if kinds:
        yield "Agreement: Krippendorff's alpha (interval distance) and Cohen's kappa (quadratic weights)."
    if "judge" in kinds:
        yield "A judge's is that with people's mean, for kappa both rounded to the scale."
    if "ceiling" in kinds:
        yield "ICC(2,1) is of one annotator, ICC(2,k) of their mean."
    if any(row.calibration for row in rows):
        yield (
            "Calibration: texts by the judge's score, with people's mean of them; the error is how far the two are "
            "apart, in per cent of the scale; points are steps of the scale itself."
        )
    if any(len(one.judges) > 2 for one in rated):
        yield "The best judge is held against each other one without a correction for their number."
