"""Judges against human ratings, laid out for all formats.

First the prediction-powered means on people's scale, then correlations, agreement and calibration of each criterion,
then the calibration curves of the HTML page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.core.format import decimals, format_interval, number, one_line, percent, plural, signed
from judge.core.records import Column, Estimate
from judge.report import charts
from judge.report.views.columns import p_cell
from judge.results.result import Result
from judge.stats.agreement import MEASURES, TITLES
from judge.stats.calibration import Calibrated, Calibration, Powered
from judge.stats.coefficients import COEFFICIENTS, Level
from judge.stats.correlation import CONCLUSIVE, UNITS
from judge.stats.human_agreement import Rated, Row, Versus

TITLE = "On people's scale"
_METHOD = (
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
_NOTE = 300  # characters of the note on what could not be estimated
_MAX_DIFFERENCES = 6  # if there are more pairs of systems, only those with the best one are shown
_MEANS = ("system", "with the judge", "ratings alone", "rated", "judged", "λ", "worth")
_DIFFERENCES = ("difference", "with the judge", "ratings alone", "rated", "judged", "λ", "worth", "p")

CalibrationCell = tuple[str, str]
"""A value and its interval, or "" if it has none."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: headings and rows, of which the first cell is a name."""

    heads: tuple[str, ...]
    rows: tuple[tuple[CalibrationCell, ...], ...]


@dataclass(frozen=True, slots=True)
class CalibrationBlock:
    """One criterion; `sentences` stand below its tables."""

    name: str
    grids: tuple[Grid, ...]
    sentences: tuple[str, ...]


def blocks(criteria: Sequence[Calibrated], *, every: bool = False) -> tuple[CalibrationBlock, ...]:
    """Lay out every criterion, with `every` difference or, if there are many, those with the best system."""
    laid_out = []
    for calibrated in criteria:
        differences = calibrated.differences
        if not every and len(differences) > _MAX_DIFFERENCES:
            best = calibrated.means[0].system
            differences = tuple(difference for difference in differences if difference.system == best)
        places = decimals([mean.estimate.value for mean in calibrated.means])
        grids = []
        if calibrated.means:
            rows = [((one_line(mean.system), ""), *_cells(mean, places)) for mean in calibrated.means]
            grids.append(Grid(_MEANS, tuple(rows)))
        if differences:
            rows = [
                (
                    (f"{one_line(powered.system)} {'≠' if powered.apart else '−'} {one_line(powered.other)}", ""),
                    *_cells(powered, places),
                    (p_cell(powered.adjusted), ""),
                )
                for powered in differences
            ]
            grids.append(Grid(_DIFFERENCES, tuple(rows)))
        sentences = []
        worth = [
            (mean.estimate.n, mean.effective_ratings) for mean in calibrated.means if mean.effective_ratings is not None
        ]
        if worth:
            rated, alone = (round(median(side)) for side in zip(*worth, strict=True))
            together = f"{plural(rated, 'rating')} and the judge together"
            sentences.append(f"{together} are worth {alone:,} (median over the systems).")
        if n_pairs := len(calibrated.differences):
            apart = sum(powered.apart for powered in calibrated.differences)
            those = f"; shown are the {len(differences):,} with the best system" if len(differences) < n_pairs else ""
            sentences.append(f"{apart:,} of {plural(n_pairs, 'pair')} of systems are told apart{those}.")
        if calibrated.note:
            sentences.append(f"{one_line(f'{calibrated.note[0].upper()}{calibrated.note[1:]}', _NOTE)}.")
        laid_out.append(CalibrationBlock(one_line(calibrated.column), tuple(grids), tuple(sentences)))
    return tuple(laid_out)


def calibration_note(criteria: Sequence[Calibrated]) -> str:
    """Explain the method, and the marks in use."""
    marked = any(difference.apart for calibrated in criteria for difference in calibrated.differences)
    differ = any(calibrated.differences for calibrated in criteria)
    return " ".join([_METHOD, *[_DIFFER] * differ, *[_APART] * marked])


def show(console: Console, criteria: Sequence[Calibrated]) -> None:
    """Print all criteria; nothing if there are none."""
    for block in blocks(criteria):
        console.print(Text(f"\n{TITLE}: {block.name}", "bold"))
        for grid in block.grids:
            console.print(table(grid))
        for sentence in block.sentences:
            console.print(Text(sentence))
    if criteria:
        console.print(Text(calibration_note(criteria), "dim"))


def table(grid: Grid) -> Table:
    """Return a grid for a terminal, with intervals below their values."""
    rich_table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for place, head in enumerate(grid.heads):
        folded = Text(head.replace(" ", "\n") if place else head)
        rich_table.add_column(folded, justify="right" if place else "left", no_wrap=bool(place), overflow="fold")
    for row in grid.rows:
        rich_table.add_row(*(Text.assemble(value, (f"\n{below}" if below else "", "dim")) for value, below in row))
    return rich_table


def _cells(powered: Powered, places: int) -> tuple[CalibrationCell, ...]:
    counts = f"{powered.estimate.n:,}", f"{powered.judged:,}", number(powered.weight, 2)
    worth = "–" if powered.effective_ratings is None else f"{powered.effective_ratings:,}"
    format_value = signed if powered.other else number
    ends = [
        (format_value(estimate.value, places), format_interval(estimate.low, estimate.high, places))
        for estimate in (powered.estimate, powered.people)
    ]
    return (*ends, *((text, "") for text in (*counts, worth)))


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
    """A row as text: its coefficients, the number of units they cover, and the number of texts."""

    label: str
    kind: str
    cells: tuple[CalibrationCell, ...]
    n: str
    texts: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A judge's calibration: a summary, and its bins."""

    judge: str
    summary: str
    bins: Grid

    @property
    def title(self) -> str:
        return f"Calibration of {self.judge}: {self.summary}"


@dataclass(frozen=True, slots=True)
class ValidationBlock:
    """A criterion as text, at the level that could be shown.

    `sentences` say what the correlations support. `agreement` has a row for each judge and for the annotators, None if
    there are neither; `curves` are the calibration of each judge that has one; `notes` say what is missing.
    """

    title: str
    over: str
    unit: str
    lines: tuple[Line, ...]
    sentences: tuple[str, ...]
    agreement: Grid | None
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]


def block(rated: Rated, level: Level) -> ValidationBlock:
    """Lay out a criterion at a level, or over all texts if that level has no values."""
    usable = _usable(rated, level)
    notes = []
    if usable != level:
        # A row that has texts gives the better reason.
        rows = sorted((row.correlation for row in rated.rows), key=lambda correlation: not correlation.texts)
        reason = next(correlation.lacking[level] for correlation in rows if level in correlation.lacking)
        notes.append(f"Nothing at level {level}: {reason}. Shown is what there is {_LEVELS[usable]}.")
    reasons: dict[str, list[str]] = {}
    few: dict[str, list[str]] = {}
    for row in rated.rows:
        if usable in row.correlation.lacking:
            reasons.setdefault(row.correlation.lacking[usable], []).append(one_line(row.name))
        elif usable in row.few:
            few.setdefault(row.few[usable], []).append(one_line(row.name))
    notes += [f"No value for {', '.join(names)}: {reason}." for reason, names in reasons.items()]
    notes += [f"Left out as a floor: {', '.join(names)}: {reason}." for reason, names in few.items()]
    notes += [
        f"No agreement and calibration for {one_line(row.name)}: {row.no_calibration}."
        for row in rated.judges
        if row.no_calibration and row.correlation.texts
    ]
    return ValidationBlock(
        title=f"{one_line(rated.criterion)}: {plural(rated.texts, 'text')} rated by people",
        over=f"Correlation {_LEVELS[usable]}",
        unit=f"{UNITS[usable]}s",
        lines=tuple(_line(row, usable) for row in rated.rows),
        sentences=tuple(correlation_sentences(rated, usable)),
        agreement=_agreement(rated),
        curves=tuple(_curve(row.name, row.calibration) for row in rated.judges if row.calibration),
        notes=tuple(notes),
    )


def _usable(rated: Rated, level: Level) -> Level:
    """Return the level, or "item" if only that has values."""
    candidates: tuple[Level, ...] = (level, "item")
    for candidate in candidates:
        if any((candidate, "spearman") in row.correlation.estimates for row in rated.rows):
            return candidate
    return level


def _line(row: Row, level: Level) -> Line:
    estimates = [row.correlation.estimates.get((level, name)) for name in COEFFICIENTS]
    n = next((f"{e.n:,}" for e in estimates if e is not None), "–")
    texts = "" if level == "item" else f"{row.correlation.texts:,}"
    return Line(
        one_line(row.name if row.kind == "judge" else f"{row.name} ({row.kind})"),
        row.kind,
        tuple(map(_cell_or_dash, estimates)),
        n,
        texts,
    )


def _cell_or_dash(estimate: Estimate | None, places: int = _PLACES) -> CalibrationCell:
    if estimate is None:
        return "–", ""
    return number(estimate.value, places), format_interval(estimate.low, estimate.high, places)


# What the correlations support


def correlation_sentences(rated: Rated, level: Level) -> Iterator[str]:
    """Compare each judge with the floors and the ceiling, then the best judge with each other one."""
    if not rated.judges:
        yield f"No judge scored {one_line(rated.criterion)}: the floors stand alone."
    estimates = [row.correlation.estimates.get((level, "spearman")) for row in rated.rows]
    n_systems = max((e.n for e in estimates if e is not None), default=CONCLUSIVE)
    if level == "system" and n_systems < CONCLUSIVE:
        needed = f"it takes {CONCLUSIVE} or more"
        yield f"{plural(n_systems, 'system')} are too few for a verdict between their means: {needed}."
        return
    for judge in rated.judges:
        if level in judge.correlation.lacking:
            continue
        against = {floor.name: rated.differences.get((judge.name, floor.name, level)) for floor in rated.baselines}
        yield f"{one_line(judge.name)} {_floors_sentence(against)}"
        estimate = judge.correlation.estimates.get((level, "spearman"))
        ceiling = rated.rater and rated.rater.correlation.estimates.get((level, "spearman"))
        if estimate and ceiling and round(estimate.value, _PLACES) > round(ceiling.value, _PLACES):
            yield (  # which looks as if the judge were better than people
                f"{one_line(judge.name)} is above the ceiling ({number(estimate.value, _PLACES)} over "
                f"{number(ceiling.value, _PLACES)}): "
                "it is nearer to the annotators' mean than one of them is to the mean of the others, which is the "
                "noisier; that does not make it better than people."
            )
    for floor in _counted(rated, level) if rated.judges else ():
        estimate = floor.correlation.estimates.get((level, "spearman"))
        if estimate is not None and estimate.high is not None and round(estimate.high, _PLACES) < 0:
            opposite = number(-estimate.value, _PLACES)
            yield f"{floor.name} goes the other way, {_difference(estimate)}: its opposite is a floor of {opposite}."
    estimates_by_judge = {row.name: row.correlation.estimates.get((level, "spearman")) for row in rated.judges}
    values = {name: estimate.value for name, estimate in estimates_by_judge.items() if estimate is not None}
    if len(values) > 1:
        best = max(values, key=lambda name: values[name])
        for versus in rated.versus:
            if versus.level == level and best in (versus.judge, versus.other):
                yield _versus_sentence(rated, versus, best)


def _counted(rated: Rated, level: Level) -> list[Row]:
    """Return the floors that have values for enough of the items."""
    return [floor for floor in rated.baselines if level not in floor.few]


def _floors_sentence(floors: Mapping[str, Estimate | None]) -> str:
    """Say which floors the judge beats, and which not."""
    against = {name: estimate for name, estimate in floors.items() if estimate is not None}
    if not against:
        return "could not be compared with a floor."
    # Compare the ends as they are shown: +0.072 [0.000, 0.147] beats nothing.
    beaten = {name: e for name, e in against.items() if e.low is not None and round(e.low, _PLACES) > 0}
    if len(beaten) == len(against):
        name, nearest = min(against.items(), key=lambda pair: pair[1].value)
        every = "every floor" if len(against) == len(floors) else "every floor that has values"
        return f"beats {every}: {_difference(nearest)} in Spearman over {name}, the nearest."
    below = {name: e for name, e in against.items() if e.high is not None and round(e.high, _PLACES) < 0}
    level = {name: e for name, e in against.items() if name not in beaten and name not in below}
    parts = [f"is below {_difference_list(below)}"] if below else []
    parts += [f"is not told apart from {_difference_list(level)}"] if level else []
    parts += [f"beats {', '.join(beaten)}"] if beaten else []
    return f"{'; '.join(parts)} (differences in Spearman)."


def _difference_list(against: Mapping[str, Estimate]) -> str:
    return ", ".join(f"{name} ({_difference(estimate)})" for name, estimate in against.items())


def _difference(estimate: Estimate) -> str:
    sign = "+" if estimate.value >= 0 else ""
    interval = format_interval(estimate.low, estimate.high, _PLACES)
    return f"{sign}{number(estimate.value, _PLACES)} {interval or 'without an interval'}"


def _versus_sentence(rated: Rated, versus: Versus, best: str) -> str:
    sign, rival = (1, versus.other) if versus.judge == best else (-1, versus.judge)
    e = versus.spearman
    ends = (e.low, e.high) if sign > 0 else (e.high and -e.high, e.low and -e.low)
    turned = Estimate(e.name, sign * e.value, *ends, e.n, e.method)
    apart = turned.low is not None and round(turned.low, _PLACES) > 0
    # There is no Williams' test at level document: quote the one over all texts.
    level = "item" if versus.level == "document" else versus.level
    tested = ""
    for other in rated.versus:
        same_pair = (other.judge, other.other, other.level) == (versus.judge, versus.other, level)
        if same_pair and other.pearson is not None and other.pearson.p is not None:
            p = other.pearson.p
            equation = "p < .001" if p < 0.001 else f"p = {number(p, 3).removeprefix('0')}"
            tested = f"; Williams' test of Pearson {_LEVELS[level]}: {equation}"
    verdict = "goes with people better than" if apart else "is not told apart from"
    return f"{one_line(best)} {verdict} {one_line(rival)}: {_difference(turned)} in Spearman{tested}."


# Agreement and calibration


def _agreement(rated: Rated) -> Grid | None:
    """Tabulate the agreement of the judges with people's mean, and of the annotators with one another."""
    rows = [(one_line(row.name), row.agreement) for row in rated.judges]
    rows += [(rated.rater.signature, rated.rater.agreement)] if rated.rater else []
    rows = [(name, agreement) for name, agreement in rows if agreement.estimates]
    measures = [measure for measure in MEASURES if any(measure in agreement.estimates for _, agreement in rows)]
    if not measures:
        return None
    return Grid(
        ("agreement", *(TITLES[measure] for measure in measures)),
        tuple(
            ((name, ""), *(_cell_or_dash(agreement.estimates.get(measure)) for measure in measures))
            for name, agreement in rows
        ),
    )


def _curve(name: str, calibration: Calibration) -> Curve:
    places = decimals([calibration.low, calibration.high])
    side = "above" if calibration.bias.value >= 0 else "below"
    ends = (calibration.bias.low, calibration.bias.high)
    if calibration.bias.value < 0 and ends[0] is not None and ends[1] is not None:
        ends = -ends[1], -ends[0]
    bias = f"{number(abs(calibration.bias.value), places)} {format_interval(*ends, places)}".rstrip()
    low, high = (None if end is None else 100 * end for end in (calibration.error.low, calibration.error.high))
    error = f"{percent(calibration.error.value)} {format_interval(low, high, 1)}".rstrip()
    rows = tuple(
        (
            (f"{number(bin.low, 1)}–{number(bin.high, 1)}", ""),
            (f"{bin.people.n:,}", ""),
            (number(bin.value, places), ""),
            *((text, "") for text in _cell_or_dash(bin.people, places)),
        )
        for bin in calibration.bins
    )
    sentence = f"error {error} of the scale; on average {bias} points {side} people"
    return Curve(one_line(name), sentence, Grid(("scores", "texts", "judge", "people", "interval"), rows))


# What holds for all criteria


def brief(criteria: Sequence[Rated], level: Level) -> Grid:
    """Tabulate each judge of each criterion: its Spearman, the highest floor, the ceiling."""
    rows: list[tuple[CalibrationCell, ...]] = []
    for rated in criteria:
        usable = _usable(rated, level)
        floors = [
            (floor.name, floor.correlation.estimates.get((usable, "spearman"))) for floor in _counted(rated, usable)
        ]
        name, highest = max(floors, key=lambda pair: -2.0 if pair[1] is None else pair[1].value, default=("", None))
        best = "–" if highest is None else f"{number(highest.value, _PLACES)} ({one_line(name)})"
        ceiling = rated.rater.correlation.estimates.get((usable, "spearman")) if rated.rater else None
        rows += [
            (
                (one_line(rated.criterion), ""),
                (one_line(row.name), ""),
                _cell_or_dash(row.correlation.estimates.get((usable, "spearman"))),
                (best, ""),
                (_cell_or_dash(ceiling)[0], ""),
                (f"{row.correlation.texts:,}", ""),
            )
            for row in rated.judges
        ]
    return Grid(("criterion", "judge", "Spearman", "highest floor", "ceiling", "texts"), tuple(rows))


def closing(rated: Sequence[Rated], level: Level) -> Iterator[str]:
    """Explain floors, ceiling, agreement, calibration and the intervals."""
    yield "Floors need no judge: one that does not beat them adds nothing to them."
    if any(criterion.rater for criterion in rated):
        yield "Ceiling: one annotator against the mean of the others, averaged over the annotators."
    missing: dict[str, list[str]] = {}
    for criterion in rated:
        if criterion.no_rater:
            missing.setdefault(criterion.no_rater, []).append(one_line(criterion.criterion))
    for why, names in missing.items():
        yield f"No ceiling for {', '.join(names)}: {why}."
    levels = {_usable(criterion, level) for criterion in rated}
    if "document" in levels:
        yield "An item counts in which both the values and the ratings differ between texts."
    rows = [row for criterion in rated for row in criterion.rows]
    kinds = {row.kind for row in rows if row.agreement.estimates}
    if kinds:
        yield "Agreement: Krippendorff's alpha (interval distance) and Cohen's kappa (quadratic weights)."
    if "judge" in kinds:
        yield "A judge's is that with people's mean, for kappa both rounded to the scale."
    if "rater" in kinds:
        yield "ICC(2,1) is of one annotator, ICC(2,k) of their mean."
    if any(row.calibration for row in rows):
        yield (
            "Calibration: texts by the judge's score, with people's mean of them; the error is how far the two are "
            "apart, in per cent of the scale; points are steps of the scale itself."
        )
    if any(len(criterion.judges) > 2 for criterion in rated):
        yield "The best judge is held against each other one without a correction for their number."
    estimates = [
        row.correlation.estimates.get((at, "spearman"))
        for criterion in rated
        for row in criterion.rows
        for at in levels
    ]
    bounded = dict.fromkeys(e.method.rpartition("; ")[2] for e in estimates if e is not None and e.low is not None)
    paired = "; differences are on the texts that both have, from the same resamples"
    for method in bounded:
        yield f"[low, high]: {method}{paired if any(criterion.differences for criterion in rated) else ''}."


LEVEL: Level = "document"
_LARGEST = 7.0  # radius of the point with the most texts


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A bin in percent of the axes: `x` is the judge's mean, `y` people's with its interval."""

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
    summary: str
    axis: charts.Axis
    points: tuple[CurvePoint, ...]

    @property
    def label(self) -> str:
        return f"{self.title}: {'; '.join(point.title for point in self.points)}"


@dataclass(frozen=True, slots=True)
class RatedCriterion:
    """A criterion, with a plot for each calibration curve."""

    block: ValidationBlock
    curves: tuple[CurvePlot, ...]


def people(result: Result) -> tuple[RatedCriterion, ...]:
    """Lay out every criterion that people rated, of a run with judges."""
    criteria = []
    for rated in result.rated:
        text_block = block(rated, LEVEL)
        calibrations = [row.calibration for row in rated.judges if row.calibration]
        plots = [_plot(curve, calibration) for curve, calibration in zip(text_block.curves, calibrations, strict=True)]
        criteria.append(RatedCriterion(text_block, tuple(plots)))
    return tuple(criteria)


def curve_note(result: Result) -> str:
    """Explain the numbers; "" if nothing was rated."""
    return " ".join(closing(result.rated, LEVEL)) if result.rated else ""


def _plot(curve: Curve, calibration: Calibration) -> CurvePlot:
    axis = charts.axis(Column("", "criterion", "", calibration.low, calibration.high), [])
    most = max(bin.people.n for bin in calibration.bins)
    places = decimals([calibration.low, calibration.high])
    points = []
    for bin in calibration.bins:
        rated = bin.people
        low, high = (None if end is None else round(100 - axis.at(end), 2) for end in (rated.low, rated.high))
        radius = round(_LARGEST * sqrt(rated.n / most), 1)
        title = f"judge {number(bin.value, places)}, people {number(rated.value, places)}, {plural(rated.n, 'text')}"
        points.append(CurvePoint(axis.at(bin.value), round(100 - axis.at(rated.value), 2), low, high, radius, title))
    return CurvePlot(curve.judge, f"{curve.summary[0].upper()}{curve.summary[1:]}.", axis, tuple(points))
