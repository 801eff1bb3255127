"""Calibration against people: prediction-powered means on their scale, and calibration curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.core.format import (
    decimals,
    format_interval,
    number,
    one_line,
    percent,
    plural,
    signed,
)
from judge.report.charts.calibration import Bin, calibration_plot
from judge.report.document import (
    STAR,
    Block,
    Bullets,
    Cell,
    Content,
    Details,
    Notice,
    Paragraph,
    Table,
    table,
)
from judge.report.views.columns import change_text, estimate_cell, p_cell
from judge.stats.calibration import Calibrated
from judge.stats.calibration_curve import Calibration
from judge.stats.powered_mean import Powered

_HEADS = ("", "mean", "95% interval", "ratings alone", "rated", "judged", "λ", "worth")
# If there are more pairs of systems, the table has only those with the best system.
_MAX_DIFFERENCES = 6
_HELP = (
    "Prediction-powered means (PPI++, Angelopoulos et al. 2023) with 95% intervals: the judge's "
    "mean over all items, minus its mean error on the rated items. They are valid for any judge if "
    "the rated items are a random sample.",
    "λ: weight of the judge, 0 to 1. Worth: number of ratings that would give an equally narrow "
    "interval without the judge. If it is below the number of rated items, use the ratings alone.",
    "A difference is estimated within items, with its own λ, so it can deviate from the difference "
    "of means.",
)
_STAR = "* significant: p < .05 after Holm's correction over the criterion's pairs."
NOTE = 300  # characters of the note on what could not be estimated


def calibration_blocks(criteria: Sequence[Calibrated]) -> tuple[Block, ...]:
    """Make the section on means on people's scale; empty if there are none."""
    blocks: list[Block] = [*calibration_summary(criteria, short=False)]
    rows = []
    for calibrated in criteria:
        best = calibrated.means[0].system if calibrated.means else ""
        shows_all = len(calibrated.differences) <= _MAX_DIFFERENCES
        for difference in calibrated.differences:
            if shows_all or difference.system == best:
                cells = _cells(criteria, calibrated, difference)
                rows.append((*cells, p_cell(difference.adjusted)))
    if rows:
        differences = table(
            (*_HEADS, "p"),
            rows,
            star=_STAR,
            caption="Differences on people's scale; of many, only those from the best system.",
            name="calibrated-differences",
        )
        blocks.append(differences)
    for calibrated in criteria:
        if calibrated.note:
            text = one_line(f"{calibrated.column}: {calibrated.note}", NOTE)
            blocks.append(Notice(text))
    if blocks:
        explanation = Bullets(_HELP)
        blocks.append(Details("How to read these tables", (explanation,)))
    return tuple(blocks)


def calibration_finding(criteria: Sequence[Calibrated]) -> Iterator[str]:
    """Compare the two best systems on people's scale, for each criterion."""
    for calibrated in criteria:
        for difference in calibrated.differences[:1]:
            size = change_text(difference.estimate, _places(calibrated))
            verb = "differ" if difference.apart else "do not differ"
            names = f"{difference.system} and {difference.other}"
            rated_items = plural(difference.estimate.n, "rated item")
            result = f"{names} {verb} significantly on {calibrated.column}"
            yield f"On people's scale, {result}: {size}, {rated_items}."


def calibration_summary(
    criteria: Sequence[Calibrated], *, short: bool = True
) -> tuple[Table, ...]:
    """Tabulate the means on people's scale: a row per criterion and system."""
    rows: list[Sequence[Content]] = []
    for calibrated in criteria:
        rows += [_cells(criteria, calibrated, mean) for mean in calibrated.means]
    if not rows:
        return ()
    table_key = (
        "Means on people's scale, by ratings and judge (λ: its weight). Worth: ratings that alone "
        "would be as precise."
    )
    return (table(_HEADS, rows, table_key, name="calibrated", short=short),)


def _cells(
    criteria: Sequence[Calibrated],
    calibrated: Calibrated,
    powered: Powered,
) -> Sequence[Content]:
    """Write the mean of a system, or the difference of two."""
    places = _places(calibrated)
    estimate = powered.estimate
    write = signed if powered.other else number
    row_name = powered.system
    if powered.other:
        row_name = f"{row_name} − {powered.other}"
    if len(criteria) > 1:
        row_name = f"{calibrated.column} · {row_name}"
    value = write(estimate.value, places)
    mark = STAR if powered.apart else ""
    interval = format_interval(estimate.low, estimate.high, places)
    # In the order of _HEADS.
    return [
        row_name,
        Cell(value, mark=mark),
        interval or None,
        estimate_cell(powered.people, places, write),
        estimate.n,
        powered.judged,
        number(powered.weight, 2),
        powered.effective_ratings,
    ]


def _places(calibrated: Calibrated) -> int:
    return decimals([mean.estimate.value for mean in calibrated.means])


def calibration_curve(
    judge: str,
    criterion: str,
    calibration: Calibration,
) -> Iterator[Block]:
    """Yield the calibration of a judge: a sentence, and its bins folded."""
    places = decimals([calibration.low, calibration.high])
    error = calibration.error
    percentage = percent(error.value)
    interval = format_interval(error.low, error.high, 1, 100)
    percent_error = f"{percentage} {interval}".rstrip()
    bias = change_text(calibration.bias, places)
    yield Paragraph(
        f"Calibration of {judge}: error {percent_error} of the scale, bias {bias} points."
    )
    points = []
    rows: list[tuple[Content, ...]] = []
    for bin in calibration.bins:
        people = bin.people
        mean = number(bin.value, places)
        rating = number(people.value, places)
        texts = plural(people.n, "text")
        note = f"judge {mean}, people {rating}, {texts}"
        point = Bin(bin.value, people.value, people.low, people.high, people.n, note)
        points.append(point)
        lowest = number(bin.low, 1)
        highest = number(bin.high, 1)
        rating_cell = estimate_cell(people, places)
        rows.append((f"{lowest}–{highest}", people.n, mean, rating_cell))
    block_name = f"calibration-{criterion}-{judge}"
    caption = f"{criterion}: mean score and rating by {judge}'s score."
    heads = ("scores", "texts", "judge", "people")
    bins = table(heads, rows, caption=caption, name=block_name)
    ends = (calibration.low, calibration.high)
    title = f"Calibration: {criterion}, {judge}"
    chart = calibration_plot(block_name, title, points, ends)
    yield Details(f"Calibration bins of {judge}", (chart, bins))
