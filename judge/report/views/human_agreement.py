"""The report of `judge validate`, and the sections on human ratings in the report of a run.

`view` makes the report, `people_blocks` the section. `agreement_chart` and `agreement_tiles` show the correlations at a
glance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from judge.core.format import format_p, number, percent, plural
from judge.core.records import Estimate
from judge.report import charts
from judge.report.document import (
    Block,
    Bullets,
    Cell,
    Chart,
    Column,
    Content,
    Details,
    Heading,
    Notice,
    Paragraph,
    Table,
    Tile,
    Tone,
    table,
)
from judge.report.format import column_title
from judge.report.views import disagreements
from judge.report.views.agreement_finding import (
    PLACES,
    best_judge,
    criterion_sentences,
    finding,
    spearman,
    usable_level,
)
from judge.report.views.calibration import (
    calibration_curve,
)
from judge.report.views.columns import estimate_cell
from judge.report.views.comparison_finding import REFERENCE_METRICS
from judge.report.views.raters import HELP, alt_test_finding, rater_blocks
from judge.results.result import Result
from judge.stats.agreement import MEASURES, TITLES
from judge.stats.coefficients import COEFFICIENTS, Level
from judge.stats.correlation import OVER, UNITS
from judge.stats.human_agreement import Rated, Row
from judge.stats.power import ALPHA

SHORT = 2  # decimals of the summary
_MANY_FAILED = 0.05  # share of judgments
_HEADS = ("Spearman", "Kendall tau-b", "Pearson")
_REFERENCES = [column_title(name) for name in REFERENCE_METRICS]
_ONE_RATER = "One rater: compared with the mean of the others."


# The report of `judge validate`


# The finding and the overview


def finding_sentences(criteria: Sequence[Rated], level: Level) -> Iterator[str]:
    """Say whether the best judge beats the baselines, then where it does not, then how it compares with other judges.

    The best judge is a panel, or else the one with the highest mean correlation.
    """
    judged = [rated for rated in criteria if rated.judges]
    if not judged:
        yield f"No judge scored {', '.join(rated.criterion for rated in criteria)}; only baselines are shown"
        return
    best = best_judge(judged, level)
    yield from finding(judged, best, level)
    yield from alt_test_finding(judged, best)


def failed_cell(row: Row | None) -> Cell | None:
    share = row.failed.n / row.failed.of if row and row.failed else None
    return Cell(percent(share), value=share) if share else None


def failure_notes(rated: Rated, level: Level) -> Iterator[str]:
    """Warn of judges with many failed judgments, or with failures on texts that people rate differently."""
    for row in rated.judges:
        failed = row.failed
        if failed is None or (
            failed.n / failed.of < _MANY_FAILED and (failed.p is None or failed.p >= ALPHA)
        ):
            continue
        note = f"{rated.criterion}: {failed.n:,} of {plural(failed.of, 'judgment')} by {row.name} failed."
        if failed.scored_ratings is not None:
            ratings, scored = number(failed.ratings, SHORT), number(failed.scored_ratings, SHORT)
            tested = "" if failed.p is None else f" ({format_p(failed.p)})"
            note += f" People's mean rating of these texts is {ratings}, of the scored ones {scored}{tested}."
        yield note


# Each criterion in detail


def people_blocks(result: Result) -> tuple[Block, ...]:
    """Make the section on human ratings in the report of a run; empty if people rated no criterion of its judges."""
    if not result.rated:
        return ()
    finding = Paragraph(f"{next(finding_sentences(result.rated, 'within-items'))}.", "strong")
    notes = (
        Notice(note) for rated in result.rated for note in failure_notes(rated, "within-items")
    )
    best = best_judge([rated for rated in result.rated if rated.judges], "within-items")
    gaps = disagreements.blocks(disagreements.of_result(result), best, "within-items", linked=True)
    return (finding, *notes, *gaps, *criteria_blocks(result.rated, "within-items"))


def criteria_blocks(criteria: Sequence[Rated], level: Level) -> Iterator[Block]:
    for rated in criteria:
        yield Heading(f"{rated.criterion}: {plural(rated.texts, 'rated text')}")
        yield from _criterion_blocks(rated, level)
    if criteria:
        texts = [*_HELP, *(HELP if any(rated.raters for rated in criteria) else ())]
        known = [
            e
            for rated in criteria
            for row in rated.rows
            if (e := spearman(row, usable_level(rated, level)))
        ]
        methods = dict.fromkeys(e.method.rpartition("; ")[2] for e in known if e.low is not None)
        shared = "a difference uses the texts with both values, and the same resamples."
        texts += [f"[low, high]: {method}; {shared}" for method in methods]
        missing = dict.fromkeys(e.method.rpartition("; ")[2] for e in known if e.low is None)
        texts += [f"Without [low, high]: {reason}." for reason in missing]
        yield Details("How to read these tables", (Bullets(tuple(texts)),))


def _criterion_blocks(rated: Rated, level: Level) -> Iterator[Block]:
    usable, name = usable_level(rated, level), rated.criterion
    rows: list[tuple[Content, ...]] = []
    for row in rated.rows:
        estimates = [
            row.correlation.estimates.get((usable, coefficient)) for coefficient in COEFFICIENTS
        ]
        tone: Tone = "" if row.kind == "judge" else "muted"
        label = {"judge": row.name, "baseline": f"{row.name} (baseline)", "rater": "one rater"}
        cells = [estimate_cell(estimate, PLACES, tone=tone) for estimate in estimates]
        texts = None if usable == "all-texts" else row.correlation.texts
        n = next((e.n for e in estimates if e), None)
        rows.append((Cell(label[row.kind], tone=tone), *cells, failed_cell(row), n, texts))
    yield table(
        (
            "",
            *(Column(head, better="higher") for head in _HEADS),
            Column("failed", optional=True),
            f"{UNITS[usable]}s",
            Column("texts", optional=True),
        ),
        rows,
        caption=f"{name}: correlation with people {OVER[usable]}.",
        name=f"people-{name}",
    )
    if sentences := tuple(criterion_sentences(rated, usable)):
        yield Bullets(sentences)
    if rated.judges and charted_rows(rated, usable):
        yield agreement_chart(rated, usable)
    if (agreement := _agreement_table(rated)) is not None:
        yield agreement
    for row in rated.judges:
        if row.calibration:
            yield from calibration_curve(row.name, name, row.calibration)
    yield from rater_blocks(rated)
    missing: dict[str, list[str]] = {}
    for row in rated.rows:
        if reason := row.correlation.lacking.get(usable):
            missing.setdefault(f"No value for %s: {reason}.", []).append(row.name)
        elif reason := row.few.get(usable):
            missing.setdefault(f"Not compared with the judges: %s: {reason}.", []).append(row.name)
        if row.kind == "judge" and row.no_calibration and row.correlation.texts:
            missing.setdefault(
                f"No agreement and calibration for %s: {row.no_calibration}.", []
            ).append(row.name)
    notes = [note.replace("%s", ", ".join(names)) for note, names in missing.items()]
    yield from map(Notice, filter(None, [other_level_note(rated, level), *notes]))


def other_level_note(rated: Rated, level: Level) -> str:
    """Say why a level has no values, and which one is shown; "" if it has."""
    # A row that has texts gives the better reason.
    rows = sorted(
        (row.correlation for row in rated.rows), key=lambda correlation: not correlation.texts
    )
    reason = next(
        (correlation.lacking[level] for correlation in rows if level in correlation.lacking), ""
    )
    usable = usable_level(rated, level)
    return (
        ""
        if usable == level
        else f"No values at level {level}: {reason}. The table is {OVER[usable]}."
    )


def _agreement_table(rated: Rated) -> Table | None:
    """Tabulate the agreement of the judges with people's mean, and of the raters with one another."""
    rows = [(row.name, row.agreement) for row in rated.judges]
    rows += [(rated.rater.signature, rated.rater.agreement)] if rated.rater else []
    rows = [(name, agreement) for name, agreement in rows if agreement.estimates]
    measures = [
        measure
        for measure in MEASURES
        if any(measure in agreement.estimates for _, agreement in rows)
    ]
    if not measures:
        return None
    return table(
        ("", *(Column(TITLES[measure], better="higher") for measure in measures)),
        [
            (name, *(estimate_cell(agreement.estimates.get(m), PLACES) for m in measures))
            for name, agreement in rows
        ],
        caption=f"{rated.criterion}: agreement with people's mean, and of the raters with one another.",
        name=f"raters-{rated.criterion}",
    )


_HELP = (
    "Baselines need no judge. A judge that does not beat them adds nothing. Length has no better direction: if people "
    "prefer short texts, a judge must beat it reversed. Other baselines count with their sign.",
    "One rater: each rater is compared with the mean of the others; the value is the mean over the raters. The mean of "
    "all raters has less noise than one, so a judge can beat one rater without being better than people.",
    "Within items, only those whose values and ratings both differ between texts are counted.",
    "Agreement: Krippendorff's alpha (interval distance) and Cohen's kappa (quadratic weights; the judge's score and "
    "people's mean are rounded to the scale). ICC(2,1) is for one rater, ICC(2,k) for the mean of all raters.",
    "Calibration: texts are binned by the judge's score. The error is the mean distance between the judge's mean and "
    "people's mean in a bin. The bias is the judge's mean minus people's.",
    "The best judge is compared with each other judge. The intervals of these differences are wider than 95%: those of "
    "all pairs of judges hold together with 95% (Bonferroni).",
)


# Numbers for the page of a run


def main_agreement(result: Result) -> Rated | None:
    """Return the first criterion that people rated and a judge scored, with values for the chart, or None."""
    return next(
        (
            rated
            for rated in result.rated
            if rated.judges and charted_rows(rated, usable_level(rated, "within-items"))
        ),
        None,
    )


def charted_rows(rated: Rated, level: Level) -> list[tuple[Row, Estimate]]:
    rows = (*rated.judges, *([rated.rater] if rated.rater else []), *rated.baselines)
    return [(row, e) for row in rows if level not in row.few and (e := spearman(row, level))]


def agreement_chart(rated: Rated, level: Level = "within-items") -> Chart:
    """Draw Spearman's correlation with people on a criterion: the judges, one rater and the baselines."""
    drawn = {
        "one rater" if row.kind == "rater" else row.name: charts.Bar(
            e.value,
            e.low,
            e.high,
            number(e.value, SHORT),
            tone="best" if row.kind == "judge" else "",
        )
        for row, e in charted_rows(rated, usable_level(rated, level))
    }
    name, title = f"people-{rated.criterion}", f"Judge against people: {rated.criterion}"
    caption = "Spearman's correlation with people's ratings, with 95% intervals."
    return replace(
        charts.bars(name, title, [*drawn], [*drawn.values()], caption=caption), tabled=True
    )


def agreement_tiles(result: Result) -> Iterator[Tile]:
    """Yield the agreement of the judge and of a reference metric with people, on the main criterion."""
    if rated := main_agreement(result):
        raters = f"your {rated.rater.signature}" if rated.rater else "people"
        charted = charted_rows(rated, usable_level(rated, "within-items"))
        for _, e in [pair for pair in charted if pair[0].kind == "judge"][:1]:
            label = f"agreement of the judge with {raters} ({rated.criterion})"
            yield Tile(f"ρ {number(e.value, 2)}", label, link="people")
        for row, e in [pair for pair in charted if pair[0].name in _REFERENCES][:1]:
            yield Tile(
                f"ρ {number(e.value, 2)}", f"agreement of {row.name} with people", "muted", "people"
            )
