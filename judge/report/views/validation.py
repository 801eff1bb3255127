"""The report of `judge validate`, and the sections on human ratings in the report of a run.

`view` makes the report, `people_blocks` the section. `agreement_chart` and `agreement_tiles` show the correlations at a
glance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from judge.core.format import format_p, number, one_line, percent, plural
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
    Document,
    Heading,
    Notice,
    Paragraph,
    Section,
    Table,
    Tile,
    Tone,
    table,
)
from judge.report.format import column_title
from judge.report.views import disagreements, preferences
from judge.report.views.agreement_finding import (
    PLACES,
    Side,
    Verdict,
    best_judge,
    criterion_sentences,
    finding,
    reversed_name,
    side,
    spearman,
    usable_level,
    verdict,
)
from judge.report.views.calibration import (
    NOTE,
    calibration_blocks,
    calibration_curve,
    calibration_finding,
    calibration_summary,
)
from judge.report.views.columns import estimate_cell
from judge.report.views.comparison_finding import REFERENCE_METRICS
from judge.report.views.raters import HELP, alt_test_finding, rater_blocks, rater_records
from judge.results.result import Result
from judge.results.validation import Validation, flat
from judge.stats.agreement import MEASURES, TITLES
from judge.stats.coefficients import COEFFICIENTS, LEVELS, Level
from judge.stats.correlation import OVER, UNITS
from judge.stats.human_agreement import Rated, Row
from judge.stats.power import ALPHA

_SHORT = 2  # decimals of the summary
_MANY_FAILED = 0.05  # share of judgments
_HEADS = ("Spearman", "Kendall tau-b", "Pearson")
_REFERENCES = [column_title(name) for name in REFERENCE_METRICS]
_ONE_RATER = "One rater: compared with the mean of the others."


# The report of `judge validate`


def view(validation: Validation) -> Document:
    """Make the report at the validation's level; JSON and CSV have every level."""
    if validation.preferences:
        return preferences.view(validation)
    rated, level, compared = validation.rated, validation.level, validation.disagreements
    best = best_judge(rated, level) if compared else ""

    def blocks() -> Iterable[Block]:
        return *disagreements.blocks(compared, best, level, linked=False), *_criteria_blocks(
            rated, level
        )

    sections = [Section("people", "Agreement with people", blocks)]
    if validation.calibrated:
        sections.append(
            Section(
                "calibrated", "On people's scale", lambda: calibration_blocks(validation.calibrated)
            )
        )
    return Document(
        title=validation.title,
        finding=(
            *_finding(rated, level),
            *disagreements.finding(compared, best),
            *calibration_finding(validation.calibrated),
        ),
        scope=plural(max((criterion.texts for criterion in rated), default=0), "text"),
        notices=(
            *validation.notes,
            *(note for criterion in rated[:1] if (note := _other_level(criterion, level))),
            *(note for criterion in rated for note in _failure_notes(criterion, level)),
            *(
                one_line(f"{c.column} on people's scale: {c.note}", NOTE)
                for c in validation.calibrated
                if c.note
            ),
        ),
        summary=(_overview(rated, level), *calibration_summary(validation.calibrated)),
        sections=tuple(sections),
        # RUN would name only one of several runs.
        next=() if any(criterion.versus for criterion in rated) else ("judge validate RUN --full",),
        data={
            "title": validation.title,
            "notes": validation.notes,
            "criteria": [
                {
                    **asdict(flat(each)),
                    "sentences": {
                        level: list(criterion_sentences(each, level)) for level in LEVELS
                    },
                }
                | disagreements.data(compared, each.criterion)
                for each in rated
            ],
            "calibrated": validation.calibrated,
        },
        records=tuple(_records(rated)),
    )


def _records(criteria: Sequence[Rated]) -> Iterator[dict[str, Any]]:
    """Yield a record per judge, baseline and rater, level and coefficient, then those of the alt-tests and raters."""
    for rated in criteria:
        for row in flat(rated).rows:
            for correlation in row.correlations:
                yield {
                    "criterion": rated.criterion,
                    "name": row.name,
                    "kind": row.kind,
                    **asdict(correlation),
                    "texts": row.texts,
                    "excluded": rated.excluded,
                    "failed": row.failed.n if row.failed else 0,
                    "not_compared": row.few.get(correlation.level, ""),
                    "signature": row.signature,
                }
        rest = {
            "texts": rated.texts,
            "excluded": rated.excluded,
            "failed": 0,
            "not_compared": "",
            "signature": "",
        }
        yield from (
            {"criterion": rated.criterion, **record, **rest} for record in rater_records(rated)
        )


# The finding and the overview


def _finding(criteria: Sequence[Rated], level: Level) -> Iterator[str]:
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


def _overview(criteria: Sequence[Rated], level: Level) -> Table:
    """Tabulate Spearman's correlation with people: a row per criterion and judge."""
    single = len({row.name for rated in criteria for row in rated.judges}) < 2
    units = {f"{UNITS[usable_level(rated, level)]}s" for rated in criteria}
    rows: list[tuple[Content, ...]] = []
    for rated in criteria:
        usable = usable_level(rated, level)
        baseline, lead = _best_baseline(rated, usable)
        rater = spearman(rated.rater, usable)
        for judge in rated.judges or (None,):
            name = (
                rated.criterion if single or judge is None else f"{rated.criterion} · {judge.name}"
            )
            best = judge is not None and verdict(rated, judge.name, usable) is Verdict.BEST
            e = spearman(judge, usable)
            judged = estimate_cell(
                e, _places(e), mark="*" * best, tone="good" if best else "strong"
            )
            others = estimate_cell(rater, _SHORT), estimate_cell(lead, _SHORT)
            rows.append((name, judged, *others, baseline, _failed_cell(judge), e.n if e else None))
    used = dict.fromkeys(OVER[usable_level(rated, level)] for rated in criteria)
    return table(
        (
            "",
            Column("judge", better="higher"),
            Column("one rater", better="higher", optional=True, about=_ONE_RATER),
            Column("baseline", better="higher", about="Baseline: the best one."),
            Column("", numeric=False),
            Column(
                "failed", optional=True, about="Failed: judgments of rated texts without a score."
            ),
            units.pop() if len(units) == 1 else "n",
        ),
        rows,
        f"Spearman's correlation with people, {'; or '.join(used)}. * significantly above 0 and every baseline.",
        name="agreement",
        caption="Agreement with people.",
    )


def _best_baseline(rated: Rated, level: Level) -> tuple[str | None, Estimate | None]:
    """Return the baseline with the highest correlation; one without a better direction counts with the better sign."""
    known = []
    for row, e in _charted(rated, level):
        if row.kind == "baseline" and not row.directed and e.value < 0:
            known.append((reversed_name(row.name), e.times(-1)))
        elif row.kind == "baseline":
            known.append((row.name, e))
    return max(known, key=lambda pair: pair[1].value, default=(None, None))


def _places(e: Estimate | None) -> int:
    """Return the decimals of a correlation: more if the interval would seem to reach 0 and does not."""
    if e is None or e.low is None or e.high is None:
        return _SHORT
    excludes = side(e) in (Side.ABOVE, Side.BELOW)
    seems = 0.0 in (round(e.low, _SHORT), round(e.high, _SHORT))
    return PLACES if excludes and seems else _SHORT


def _failed_cell(row: Row | None) -> Cell | None:
    share = row.failed.n / row.failed.of if row and row.failed else None
    return Cell(percent(share), value=share) if share else None


def _failure_notes(rated: Rated, level: Level) -> Iterator[str]:
    """Warn of judges with many failed judgments, or with failures on texts that people rate differently."""
    for row in rated.judges:
        failed = row.failed
        if failed is None or (
            failed.n / failed.of < _MANY_FAILED and (failed.p is None or failed.p >= ALPHA)
        ):
            continue
        note = f"{rated.criterion}: {failed.n:,} of {plural(failed.of, 'judgment')} by {row.name} failed."
        if failed.scored_ratings is not None:
            ratings, scored = number(failed.ratings, _SHORT), number(failed.scored_ratings, _SHORT)
            tested = "" if failed.p is None else f" ({format_p(failed.p)})"
            note += f" People's mean rating of these texts is {ratings}, of the scored ones {scored}{tested}."
        yield note


# Each criterion in detail


def people_blocks(result: Result) -> tuple[Block, ...]:
    """Make the section on human ratings in the report of a run; empty if people rated no criterion of its judges."""
    if not result.rated:
        return ()
    finding = Paragraph(f"{next(_finding(result.rated, 'document'))}.", "strong")
    notes = (Notice(note) for rated in result.rated for note in _failure_notes(rated, "document"))
    best = best_judge([rated for rated in result.rated if rated.judges], "document")
    gaps = disagreements.blocks(disagreements.of_result(result), best, "document", linked=True)
    return (finding, *notes, *gaps, *_criteria_blocks(result.rated, "document"))


def _criteria_blocks(criteria: Sequence[Rated], level: Level) -> Iterator[Block]:
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
        texts = None if usable == "item" else row.correlation.texts
        n = next((e.n for e in estimates if e), None)
        rows.append((Cell(label[row.kind], tone=tone), *cells, _failed_cell(row), n, texts))
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
    if rated.judges and _charted(rated, usable):
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
    yield from map(Notice, filter(None, [_other_level(rated, level), *notes]))


def _other_level(rated: Rated, level: Level) -> str:
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
            if rated.judges and _charted(rated, usable_level(rated, "document"))
        ),
        None,
    )


def _charted(rated: Rated, level: Level) -> list[tuple[Row, Estimate]]:
    rows = (*rated.judges, *([rated.rater] if rated.rater else []), *rated.baselines)
    return [(row, e) for row in rows if level not in row.few and (e := spearman(row, level))]


def agreement_chart(rated: Rated, level: Level = "document") -> Chart:
    """Draw Spearman's correlation with people on a criterion: the judges, one rater and the baselines."""
    drawn = {
        "one rater" if row.kind == "rater" else row.name: charts.Bar(
            e.value,
            e.low,
            e.high,
            number(e.value, _SHORT),
            tone="best" if row.kind == "judge" else "",
        )
        for row, e in _charted(rated, usable_level(rated, level))
    }
    name, title = f"people-{rated.criterion}", f"Judge against people: {rated.criterion}"
    caption = "Spearman's correlation with people's ratings, with 95% intervals."
    return replace(
        charts.bars(name, title, [*drawn], [*drawn.values()], caption=caption), tabled=True
    )


def agreement_tiles(result: Result) -> Iterator[Tile]:
    """Yield the agreement of the judge and of a reference metric with people, on the main criterion."""
    if rated := main_agreement(result):
        raters = (
            f"your {rated.rater.signature.partition(' ')[0]} raters" if rated.rater else "people"
        )
        charted = _charted(rated, usable_level(rated, "document"))
        for _, e in [pair for pair in charted if pair[0].kind == "judge"][:1]:
            label = f"agreement of the judge with {raters} ({rated.criterion})"
            yield Tile(f"ρ {number(e.value, 2)}", label, link="people")
        for row, e in [pair for pair in charted if pair[0].name in _REFERENCES][:1]:
            yield Tile(
                f"ρ {number(e.value, 2)}", f"agreement of {row.name} with people", "muted", "people"
            )
