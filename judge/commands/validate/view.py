"""The report of `judge validate`: the judges of runs compared with people, at one level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from judge.commands.validate.record import Validation
from judge.core.format import one_line, plural
from judge.core.records import Estimate
from judge.report.document import Block, Column, Content, Document, Section, Table, table
from judge.report.views import disagreements, preferences
from judge.report.views.agreement_finding import (
    PLACES,
    Side,
    Verdict,
    best_judge,
    criterion_sentences,
    reversed_name,
    side,
    spearman,
    usable_level,
    verdict,
)
from judge.report.views.calibration import (
    NOTE,
    calibration_blocks,
    calibration_finding,
    calibration_summary,
)
from judge.report.views.columns import estimate_cell
from judge.report.views.human_agreement import (
    SHORT,
    charted_rows,
    criteria_blocks,
    failed_cell,
    failure_notes,
    finding_sentences,
    other_level_note,
)
from judge.report.views.raters import rater_records
from judge.results.rated_criteria import flat
from judge.stats.coefficients import LEVELS, Level
from judge.stats.correlation import OVER, UNITS
from judge.stats.human_agreement import Rated
from judge.stats.pairwise_agreement import PreferenceAgreement

_ONE_RATER = "One rater: compared with the mean of the others."


def view(validation: Validation) -> Document:
    """Make the report at the validation's level; JSON and CSV have every level."""
    if validation.preferences:
        return _view_of_ranking(validation)
    rated, level, compared = validation.rated, validation.level, validation.disagreements
    best = best_judge(rated, level) if compared else ""

    def blocks() -> Iterable[Block]:
        return *disagreements.blocks(compared, best, level, linked=False), *criteria_blocks(
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
            *finding_sentences(rated, level),
            *disagreements.finding(compared, best),
            *calibration_finding(validation.calibrated),
        ),
        scope=plural(max((criterion.texts for criterion in rated), default=0), "text"),
        notices=(
            *validation.notes,
            *(note for criterion in rated[:1] if (note := other_level_note(criterion, level))),
            *(note for criterion in rated for note in failure_notes(criterion, level)),
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


def _view_of_ranking(validation: Validation) -> Document:
    """Lay out the comparison of a ranking with people."""
    compared = validation.preferences
    first, *others = preferences.sentences(compared)
    return Document(
        title=validation.title,
        finding=(first.removesuffix("."), *others),
        scope="",
        notices=validation.notes,
        summary=(preferences.preference_table(compared, short=True),),
        sections=(
            Section("people", "Agreement with people", lambda: preferences.blocks(compared)),
        ),
        data={
            "title": validation.title,
            "notes": validation.notes,
            "preferences": [asdict(agreement) for agreement in compared],
        },
        records=tuple(_preference_records(compared)),
    )


def _preference_records(compared: Sequence[PreferenceAgreement]) -> Iterator[dict[str, Any]]:
    """Yield a record per criterion, judge, side and measure."""
    for agreement in compared:
        for row in agreement.rows:
            for measure, estimate in (("same", row.same), ("kappa", row.kappa)):
                if estimate is None:
                    continue
                numbers = asdict(estimate)
                for unused in ("name", "p", "test"):
                    del numbers[unused]
                yield {
                    "criterion": agreement.criterion,
                    "judge": agreement.judge,
                    "kind": row.kind,
                    "rater": row.name,
                    "measure": measure,
                    **numbers,
                }


def _records(criteria: Sequence[Rated]) -> Iterator[dict[str, Any]]:
    """Yield a record per judge, baseline and rater, level and coefficient, then those of the
    alt-tests and raters.
    """
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
            others = estimate_cell(rater, SHORT), estimate_cell(lead, SHORT)
            rows.append((name, judged, *others, baseline, failed_cell(judge), e.n if e else None))
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
        f"Spearman's correlation with people, {'; or '.join(used)}. * significantly above 0 and "
        "every baseline.",
        name="agreement",
        caption="Agreement with people.",
    )


def _best_baseline(rated: Rated, level: Level) -> tuple[str | None, Estimate | None]:
    """Return the baseline with the highest correlation; one without a better direction counts with
    the better sign.
    """
    known = []
    for row, e in charted_rows(rated, level):
        if row.kind == "baseline" and not row.directed and e.value < 0:
            known.append((reversed_name(row.name), e.times(-1)))
        elif row.kind == "baseline":
            known.append((row.name, e))
    return max(known, key=lambda pair: pair[1].value, default=(None, None))


def _places(e: Estimate | None) -> int:
    """Return the decimals of a correlation: more if the interval would seem to reach 0 and does
    not.
    """
    if e is None or e.low is None or e.high is None:
        return SHORT
    excludes = side(e) in (Side.ABOVE, Side.BELOW)
    seems = 0.0 in (round(e.low, SHORT), round(e.high, SHORT))
    return PLACES if excludes and seems else SHORT
