"""Prediction-powered estimates as every format shows them: by criterion the systems' means, then their differences.

A judge against people laid out for reading: tables, and the sentences that the numbers support.

The page's view of the judges against people: tables, sentences, and a calibration curve for each judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.core.messages import decimals, format_interval, number, one_line, percent, plural, signed
from judge.core.records import Column, Estimate
from judge.report.charts import geometry
from judge.results.result import Result
from judge.stats.agreement import MEASURES, TITLES
from judge.stats.calibration import Bin, Calibrated, Calibration, Powered
from judge.stats.coefficients import COEFFICIENTS
from judge.stats.correlation import CONCLUSIVE, UNITS, Level
from judge.stats.human_agreement import Rated, Row, Versus

TITLE = "On people's scale"
_HOW = (
    "Prediction-powered estimates (PPI++, Angelopoulos et al. 2023) with 95% intervals: the judge's scores of all "
    "items, less what it is off by on the rated ones. They hold whatever the judge is like, if the rated items were "
    "drawn at random. λ: how much the judge counts, 0 to 1. Worth: the ratings that alone would give as narrow an "
    "interval. Fewer than were rated: the judge follows people too little to make up for what estimating λ costs, and "
    "the interval is wider than that of the ratings alone."
)
_DIFFER = (
    "A difference is estimated and tested by itself, within items and with a λ of its own: it is not that of the means "
    "above it."
)
_APART = "≠ told apart: p < .05 after Holm over the criterion's pairs."
_NOTE = 300  # characters of what could not be estimated
_FEW = 6  # pairs of systems; of more, a format that is read from top to bottom shows those with the best one
_MEANS = ("system", "with the judge", "ratings alone", "rated", "judged", "λ", "worth")
_DIFFERENCES = ("difference", "with the judge", "ratings alone", "rated", "judged", "λ", "worth", "p")

CalibrationCell = tuple[str, str]
"""A value, and its interval where it has one."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: headings and rows, of which the first cell is a name."""

    heads: tuple[str, ...]
    rows: tuple[tuple[CalibrationCell, ...], ...]


@dataclass(frozen=True, slots=True)
class CalibrationBlock:
    """One criterion laid out; `told` are the sentences below its tables."""

    name: str
    grids: tuple[Grid, ...]
    told: tuple[str, ...]


def blocks(found: Sequence[Calibrated], *, every: bool = False) -> tuple[CalibrationBlock, ...]:
    """Every criterion laid out, with every difference or, where they are many, those from the best system."""
    return tuple(_block(one, one.differences if every else _few(one)) for one in found)


def calibration_note(found: Sequence[Calibrated]) -> str:
    """What the numbers are."""
    marked = any(difference.apart for one in found for difference in one.differences)
    differ = any(one.differences for one in found)
    return " ".join([_HOW, *[_DIFFER] * differ, *[_APART] * marked])


def show(console: Console, found: Sequence[Calibrated]) -> None:
    """Print all of them; nothing where there are none."""
    for block in blocks(found):
        console.print(Text(f"\n{TITLE}: {block.name}", "bold"))
        for grid in block.grids:
            console.print(table(grid))
        for told in block.told:
            console.print(Text(told))
    if found:
        console.print(Text(calibration_note(found), "dim"))


def table(grid: Grid) -> Table:
    """A grid for a terminal, intervals below their values."""
    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for place, head in enumerate(grid.heads):
        folded = Text(head.replace(" ", "\n") if place else head)
        made.add_column(folded, justify="right" if place else "left", no_wrap=bool(place), overflow="fold")
    for row in grid.rows:
        made.add_row(*(Text.assemble(value, (f"\n{below}" if below else "", "dim")) for value, below in row))
    return made


def _few(found: Calibrated) -> tuple[Powered, ...]:
    if len(found.differences) <= _FEW:
        return found.differences
    return tuple(one for one in found.differences if one.system == found.means[0].system)


def _block(found: Calibrated, shown: Sequence[Powered]) -> CalibrationBlock:
    return CalibrationBlock(one_line(found.column), tuple(_grids(found, shown)), tuple(_told(found, len(shown))))


def _grids(found: Calibrated, shown: Sequence[Powered]) -> Iterator[Grid]:
    places = decimals([one.estimate.value for one in found.means])
    if found.means:
        yield Grid(_MEANS, tuple(((one_line(one.system), ""), *_cells(one, places)) for one in found.means))
    if shown:
        yield Grid(_DIFFERENCES, tuple((_pair(one), *_cells(one, places), (_p(one), "")) for one in shown))


def _pair(found: Powered) -> CalibrationCell:
    return f"{one_line(found.system)} {'≠' if found.apart else '−'} {one_line(found.other)}", ""


def _cells(found: Powered, places: int) -> tuple[CalibrationCell, ...]:
    counts = f"{found.estimate.n:,}", f"{found.judged:,}", number(found.weight, 2)
    worth = "–" if found.effective_ratings is None else f"{found.effective_ratings:,}"
    written = signed if found.other else number
    ends = [_cell(estimate, written, places) for estimate in (found.estimate, found.people)]
    return (*ends, *((text, "") for text in (*counts, worth)))


def _cell(estimate: Estimate, written: Callable[[float, int], str], places: int) -> CalibrationCell:
    return written(estimate.value, places), format_interval(estimate.low, estimate.high, places)


def _p(found: Powered) -> str:
    """p after Holm, without the 0 before the point."""
    if found.adjusted is None:
        return "–"
    return "<.001" if found.adjusted < 0.001 else number(found.adjusted, 3).removeprefix("0")


def _told(found: Calibrated, shown: int) -> Iterator[str]:
    worth = [(one.estimate.n, one.effective_ratings) for one in found.means if one.effective_ratings is not None]
    if worth:
        rated, alone = (round(median(side)) for side in zip(*worth, strict=True))
        yield f"{plural(rated, 'rating')} and the judge together are worth {alone:,} (median over the systems)."
    if found.differences:
        apart = sum(one.apart for one in found.differences)
        those = f"; shown are the {shown:,} with the best system" if shown < len(found.differences) else ""
        yield f"{apart:,} of {plural(len(found.differences), 'pair')} of systems are told apart{those}."
    if found.note:
        yield f"{one_line(f'{found.note[0].upper()}{found.note[1:]}', _NOTE)}."


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
    cells: tuple[CalibrationCell, ...]
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
class ValidationBlock:
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


def block(rated: Rated, level: Level) -> ValidationBlock:
    """Lay a criterion out at a level, or over all texts where that has nothing."""
    shown = _usable(rated, level)
    notes = []
    if shown != level:
        notes.append(f"Nothing at level {level}: {_reason(rated, level)}. Shown is what there is {_LEVELS[shown]}.")
    return ValidationBlock(
        title=f"{one_line(rated.criterion)}: {plural(rated.texts, 'text')} rated by people",
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
    return Line(one_line(row.label), row.kind, tuple(map(_cell_of_validation, found)), n, texts)


def _cell_of_validation(found: Estimate | None, places: int = _PLACES) -> CalibrationCell:
    return ("–", "") if found is None else (number(found.value, places), format_interval(found.low, found.high, places))


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
        yield f"No value for {', '.join(map(one_line, names))}: {reason}."
    for reason, names in few.items():
        yield f"Left out as a floor: {', '.join(map(one_line, names))}: {reason}."


def _other_scales(rated: Rated) -> Iterator[str]:
    for row in rated.judges:
        if row.no_calibration and row.correlation.texts:
            yield f"No agreement and calibration for {one_line(row.name)}: {row.no_calibration}."


# What the correlations support


def told(rated: Rated, level: Level) -> Iterator[str]:
    """What the differences support: a sentence for each judge on the floors, then of the best on each other judge."""
    if not rated.judges:
        yield f"No judge scored {one_line(rated.criterion)}: the floors stand alone."
    if few := _few_of_validation(rated, level):
        yield few
        return
    for judge in rated.judges:
        if level in judge.correlation.lacking:
            continue
        against = {floor.name: rated.differences.get((judge.name, floor.name, level)) for floor in rated.floors}
        yield f"{one_line(judge.name)} {_stands(against)}"
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
        f"{one_line(judge.name)} is above the ceiling ({number(found.value, _PLACES)} over {number(top.value, _PLACES)}): "
        "it is nearer to the annotators' mean than one of them is to the mean of the others, which is the noisier; "
        "that does not make it better than people."
    )


def _few_of_validation(rated: Rated, level: Level) -> str:
    """That there are too few systems for a verdict between their means; nothing where there are enough."""
    found = [row.correlation.estimates.get((level, "spearman")) for row in rated.rows]
    most = max((e.n for e in found if e is not None), default=CONCLUSIVE)
    if level != "system" or most >= CONCLUSIVE:
        return ""
    return f"{plural(most, 'system')} are too few for a verdict between their means: it takes {CONCLUSIVE} or more."


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
    interval = format_interval(found.low, found.high, _PLACES)
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
    tested = f"; Williams' test of Pearson {over}: {_p_of_validation(williams)}" if williams else ""
    how = "goes with people better than" if apart else "is not told apart from"
    return f"{one_line(best)} {how} {one_line(other)}: {_difference(turned)} in Spearman{tested}."


def _williams(rated: Rated, one: Versus) -> Estimate | None:
    level = "item" if one.level == "document" else one.level
    found = next((v for v in rated.versus if (v.judge, v.other, v.level) == (one.judge, one.other, level)), None)
    return found.pearson if found is not None and found.pearson is not None and found.pearson.p is not None else None


def _p_of_validation(found: Estimate) -> str:
    return "p < .001" if (found.p or 0.0) < 0.001 else f"p = {number(found.p or 0.0, 3).removeprefix('0')}"


# Agreement and calibration


def _agreement(rated: Rated) -> Grid | None:
    """The judges with people's mean, the annotators with one another, in the measures that any of them has."""
    rows = [(one_line(row.name), row.agreement) for row in rated.judges]
    rows += [(rated.ceiling.signature, rated.ceiling.agreement)] if rated.ceiling else []
    rows = [(name, found) for name, found in rows if found.estimates]
    measures = [measure for measure in MEASURES if any(measure in found.estimates for _, found in rows)]
    if not measures:
        return None
    return Grid(
        ("agreement", *(TITLES[measure] for measure in measures)),
        tuple(
            ((name, ""), *(_cell_of_validation(found.estimates.get(measure)) for measure in measures))
            for name, found in rows
        ),
    )


def _curve(name: str, found: Calibration) -> Curve:
    places = decimals([found.low, found.high])
    side = "above" if found.bias.value >= 0 else "below"
    ends = (found.bias.low, found.bias.high)
    if found.bias.value < 0 and ends[0] is not None and ends[1] is not None:
        ends = -ends[1], -ends[0]
    bias = f"{number(abs(found.bias.value), places)} {format_interval(*ends, places)}".rstrip()
    low, high = (None if end is None else 100 * end for end in (found.error.low, found.error.high))
    error = f"{percent(found.error.value)} {format_interval(low, high, 1)}".rstrip()
    rows = tuple(
        (
            (f"{number(one.low, 1)}–{number(one.high, 1)}", ""),
            (f"{one.people.n:,}", ""),
            (number(one.value, places), ""),
            *((text, "") for text in _cell_of_validation(one.people, places)),
        )
        for one in found.bins
    )
    said = f"error {error} of the scale; on average {bias} points {side} people"
    return Curve(one_line(name), said, Grid(("scores", "texts", "judge", "people", "interval"), rows))


# What holds for all criteria


def brief(found: Sequence[Rated], level: Level) -> Grid:
    """A row for each judge of each criterion: its Spearman, the floor that comes highest, the ceiling."""
    return Grid(
        ("criterion", "judge", "Spearman", "highest floor", "ceiling", "texts"),
        tuple(row for rated in found for row in _brief(rated, _usable(rated, level))),
    )


def _brief(rated: Rated, level: Level) -> Iterator[tuple[CalibrationCell, ...]]:
    floors = [(one.name, one.correlation.estimates.get((level, "spearman"))) for one in _counted(rated, level)]
    name, highest = max(floors, key=lambda one: -2.0 if one[1] is None else one[1].value, default=("", None))
    ceiling = rated.ceiling.correlation.estimates.get((level, "spearman")) if rated.ceiling else None
    best = "–" if highest is None else f"{number(highest.value, _PLACES)} ({one_line(name)})"
    for row in rated.judges:
        cells = (
            _cell_of_validation(row.correlation.estimates.get((level, "spearman"))),
            (best, ""),
            (_cell_of_validation(ceiling)[0], ""),
        )
        yield (one_line(rated.criterion), ""), (one_line(row.name), ""), *cells, (f"{row.correlation.texts:,}", "")


def closing(rated: Sequence[Rated], level: Level) -> Iterator[str]:
    """What floors, ceiling, agreement and calibration are, and how the intervals were made."""
    yield "Floors need no judge: one that does not beat them adds nothing to them."
    if any(one.ceiling for one in rated):
        yield "Ceiling: one annotator against the mean of the others, averaged over the annotators."
    missing: dict[str, list[str]] = {}
    for one in rated:
        if one.no_ceiling:
            missing.setdefault(one.no_ceiling, []).append(one_line(one.criterion))
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


LEVEL: Level = "document"
_LARGEST = 7.0  # radius of the point that has most texts


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A bin: the judge's mean to the right, people's up, with its interval, in percent; `title` says it in words."""

    x: float
    y: float
    low: float | None
    high: float | None
    radius: float
    title: str


@dataclass(frozen=True, slots=True)
class CurvePlot:
    """A judge's calibration on two equal axes."""

    title: str
    told: str
    axis: geometry.Axis
    points: tuple[CurvePoint, ...]

    @property
    def label(self) -> str:
        return f"{self.title}: {'; '.join(point.title for point in self.points)}"


@dataclass(frozen=True, slots=True)
class RatedCriterion:
    """A criterion."""

    block: ValidationBlock
    curves: tuple[CurvePlot, ...]


def people(result: Result) -> tuple[RatedCriterion, ...]:
    """Every criterion that people rated, of a run with judges."""
    return tuple(_shown(one) for one in result.rated)


def curve_note(result: Result) -> str:
    """What the numbers are."""
    return " ".join(closing(result.rated, LEVEL)) if result.rated else ""


def _shown(rated: Rated) -> RatedCriterion:
    made = block(rated, LEVEL)
    drawn = [row.calibration for row in rated.judges if row.calibration]
    return RatedCriterion(
        made, tuple(_curve_of_people(laid, found) for laid, found in zip(made.curves, drawn, strict=True))
    )


def _curve_of_people(laid: Curve, found: Calibration) -> CurvePlot:
    along = geometry.axis(Column("", "criterion", "", found.low, found.high), [])
    most = max(one.people.n for one in found.bins)
    places = decimals([found.low, found.high])
    points = tuple(_point(one, along, sqrt(one.people.n / most), places) for one in found.bins)
    return CurvePlot(laid.judge, f"{laid.told[0].upper()}{laid.told[1:]}.", along, points)


def _point(one: Bin, along: geometry.Axis, size: float, places: int) -> CurvePoint:
    rated = one.people
    low, high = (None if end is None else round(100 - along.at(end), 2) for end in (rated.low, rated.high))
    said = f"judge {number(one.value, places)}, people {number(rated.value, places)}, {plural(rated.n, 'text')}"
    return CurvePoint(
        along.at(one.value), round(100 - along.at(rated.value), 2), low, high, round(_LARGEST * size, 1), said
    )
