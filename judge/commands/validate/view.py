"""The report of `judge validate`: the judges of runs compared with people, at one level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from judge.commands.validate.record import Validation
from judge.core.format import one_line, plural
from judge.core.messages import Remark
from judge.report.document import (
    Block,
    Column,
    Content,
    Document,
    Section,
    Table,
    Tone,
    table,
)
from judge.report.views import disagreements, preferences
from judge.report.views.agreement_finding import (
    Verdict,
    best_judge,
    criterion_sentences,
    places,
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
    best_baseline,
    bias_note,
    criteria_blocks,
    different_texts_note,
    failed_cell,
    failure_notes,
    finding_sentences,
    other_level_note,
)
from judge.report.views.metrics_table import metrics_table
from judge.report.views.pass_fail import (
    pass_fail_records,
    pass_fail_sentences,
    pass_fail_summary,
    pass_rate_blocks,
)
from judge.report.views.raters import rater_records
from judge.results.rated_criteria import flat
from judge.stats.coefficients import LEVELS, Level
from judge.stats.correlation import OVER, UNITS
from judge.stats.disagreements import Disagreements
from judge.stats.human_agreement import Rated
from judge.stats.pairwise_agreement import PreferenceAgreement

_ONE_RATER = "One rater: compared with the mean of the others."


def view(validation: Validation) -> Document:
    """Make the report at the validation's level; JSON and CSV have every level."""
    if validation.preferences:
        return _view_of_ranking(validation)
    rated = validation.rated
    level = validation.level
    compared = validation.disagreements
    calibrated = validation.calibrated
    best = best_judge(rated, level) if compared else ""
    # People may have rated different texts on each criterion.
    texts = max((criterion.texts for criterion in rated), default=0)
    several_runs = any(criterion.versus for criterion in rated)
    notes = list(_notices(validation))
    notices = [note for note in notes if not isinstance(note, Remark)]
    remarks = [note for note in notes if isinstance(note, Remark)]
    finding = [
        *finding_sentences(rated, level),
        *pass_fail_sentences(rated),
        *disagreements.finding(compared, best),
        *calibration_finding(calibrated),
    ]
    summary = [
        _overview(rated, level),
        *pass_fail_summary(rated),
        *calibration_summary(calibrated),
        *pass_rate_blocks(validation.pass_rates, short=True),
    ]
    data = {
        "title": validation.title,
        "notes": validation.notes,
        "criteria": [_criterion_data(criterion, compared) for criterion in rated],
        "calibrated": calibrated,
        "pass_rates": validation.pass_rates,
    }
    return Document(
        title=validation.title,
        finding=tuple(finding),
        scope=plural(texts, "text"),
        notices=tuple(notices),
        remarks=tuple(remarks),
        summary=tuple(summary),
        sections=tuple(_sections(validation, best)),
        # RUN would name only one of several runs.
        next=() if several_runs else ("judge validate RUN --full",),
        data=data,
        records=tuple(_records(rated)),
    )


def _sections(validation: Validation, best: str) -> Iterator[Section]:
    """Yield the sections of a full report; `best` is the judge that agrees best with people."""
    rated = validation.rated
    level = validation.level

    def disagreements_with_people() -> Iterator[Block]:
        return disagreements.blocks(validation.disagreements, best, level, linked=False)

    def on_peoples_scale() -> Iterator[Block]:
        yield from calibration_blocks(validation.calibrated)
        yield from pass_rate_blocks(validation.pass_rates)

    metrics = metrics_table(rated, level)
    if metrics is not None:
        yield Section("metrics", "Judges and metrics", lambda: (metrics,))
    yield Section(
        "disagreements", "Disagreements with people", disagreements_with_people
    )
    yield Section(
        "people", "Agreement by criterion", lambda: criteria_blocks(rated, level)
    )
    if validation.calibrated:
        yield Section("calibrated", "On people's scale", on_peoples_scale)


def _notices(validation: Validation) -> Iterator[str]:
    """Yield the notes on the data, the level, bias, failed judgments and the calibration."""
    yield from validation.notes
    for criterion in validation.rated[:1]:  # one note is enough for the report
        note = other_level_note(criterion, validation.level)
        if note:
            yield note
    judged = [criterion for criterion in validation.rated if criterion.judges]
    if judged:
        bias = bias_note(judged, best_judge(judged, validation.level))
        if bias:
            yield bias
    different_texts = different_texts_note(validation.rated)
    if different_texts:
        yield different_texts
    for criterion in validation.rated:
        yield from failure_notes(criterion, validation.level)
    for column in validation.calibrated:
        if column.note:
            yield one_line(f"{column.column} on people's scale: {column.note}", NOTE)


def _criterion_data(
    criterion: Rated, compared: Sequence[Disagreements]
) -> dict[str, Any]:
    """Return the JSON of a criterion, with its sentences at every level."""
    sentences = {level: list(criterion_sentences(criterion, level)) for level in LEVELS}
    return {
        **asdict(flat(criterion)),
        "sentences": sentences,
        **disagreements.data(compared, criterion.criterion),
    }


def _view_of_ranking(validation: Validation) -> Document:
    """Lay out the comparison of a ranking with people."""
    compared = validation.preferences
    first_sentence, *others = preferences.sentences(compared)
    # The first sentence is the headline, which has no full stop.
    headline = first_sentence.removesuffix(".")
    summary = preferences.preference_table(compared, short=True)
    people = Section(
        "people", "Agreement with people", lambda: preferences.blocks(compared)
    )
    data = {
        "title": validation.title,
        "notes": validation.notes,
        "preferences": [asdict(agreement) for agreement in compared],
    }
    return Document(
        title=validation.title,
        finding=(headline, *others),
        scope="",
        notices=validation.notes,
        summary=(summary,),
        sections=(people,),
        data=data,
        records=tuple(_preference_records(compared)),
    )


def _preference_records(
    compared: Sequence[PreferenceAgreement],
) -> Iterator[dict[str, Any]]:
    """Yield a record per criterion, judge, side and measure."""
    for agreement in compared:
        for row in agreement.rows:
            estimates = {"same": row.same, "kappa": row.kappa}
            for measure, estimate in estimates.items():
                if estimate is None:
                    continue
                numbers = asdict(estimate)
                # A share of equal verdicts is described, not tested.
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
    """Yield a record per row, level and coefficient of each criterion.

    A row is a judge, a baseline or a rater. The records of the alt-tests and the single raters
    follow.
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
        # CSV has one header, so these records have the columns of the others, left empty.
        for record in (*pass_fail_records(rated), *rater_records(rated)):
            yield {
                "criterion": rated.criterion,
                **record,
                "texts": rated.texts,
                "excluded": rated.excluded,
                "failed": 0,
                "not_compared": "",
                "signature": "",
            }


def _overview(criteria: Sequence[Rated], level: Level) -> Table:
    """Tabulate Spearman's correlation with people: a row per criterion and judge."""
    judges = {row.name for rated in criteria for row in rated.judges}
    usable_levels = [usable_level(rated, level) for rated in criteria]
    rows: list[tuple[Content, ...]] = []
    for rated, usable in zip(criteria, usable_levels, strict=True):
        rows += _overview_rows(rated, usable, named=len(judges) > 1)
    units = {f"{UNITS[usable]}s" for usable in usable_levels}
    # A criterion may need another level than the report's: then the rows count different units.
    number_head = units.pop() if len(units) == 1 else "n"
    levels_in_words = dict.fromkeys(OVER[usable] for usable in usable_levels)
    over = "; or ".join(levels_in_words)
    about_failed = "Failed: judgments of rated texts without a score."
    heads = (
        "",
        Column("judge", better="higher"),
        Column("one rater", better="higher", optional=True, about=(_ONE_RATER,)),
        Column(
            "baseline",
            better="higher",
            optional=True,
            about=("Baseline: the best one.",),
        ),
        Column("", numeric=False, name="best baseline", optional=True),
        Column("failed", optional=True, about=(about_failed,)),
        number_head,
    )
    return table(
        heads,
        rows,
        f"Spearman's correlation with people, {over}.",
        star="* significantly above 0 and every baseline.",
        name="agreement",
        caption="Agreement with people.",
    )


def _overview_rows(
    rated: Rated,
    level: Level,
    *,
    named: bool,
) -> Iterator[tuple[Content, ...]]:
    """Yield a row for each judge of a criterion, or one row with the baseline if it has none.

    With `named`, a row's name has the judge.
    """
    baseline, baseline_correlation = best_baseline(rated, level)
    rater_correlation = spearman(rated.rater, level)
    baseline_cell = estimate_cell(baseline_correlation, places(baseline_correlation))
    rater_cell = estimate_cell(rater_correlation, places(rater_correlation))
    for judge in rated.judges or (None,):
        row_name = rated.criterion
        if named and judge is not None:
            row_name = f"{rated.criterion} · {judge.name}"
        is_best = False
        if judge is not None:
            is_best = verdict(rated, judge.name, level) is Verdict.BEST
        correlation = spearman(judge, level)
        mark = "*" if is_best else ""
        tone: Tone = "good" if is_best else "strong"
        decimals = places(correlation)
        judge_cell = estimate_cell(correlation, decimals, mark=mark, tone=tone)
        yield (
            row_name,
            judge_cell,
            rater_cell,
            baseline_cell,
            baseline,
            failed_cell(judge),
            correlation.n if correlation else None,
        )
