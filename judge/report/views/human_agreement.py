"""The report of `judge validate`, and the sections on human ratings in the report of a run.

`view` makes the report, `people_blocks` the section. `agreement_chart` and `agreement_tiles` show
the correlations at a glance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from judge.core.format import (
    decimals,
    first_names,
    format_p,
    minus,
    number,
    percent,
    plural,
    signed,
)
from judge.core.records import Estimate
from judge.report.charts.bars import Bar, bars
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
    PANELS,
    Side,
    best_judge,
    criterion_sentences,
    finding,
    places,
    reversed_name,
    side,
    spearman,
    usable_level,
    usual_level,
)
from judge.report.views.calibration import calibration_curve
from judge.report.views.columns import estimate_cell
from judge.report.views.pass_fail import HELP as PASS_FAIL_HELP
from judge.report.views.pass_fail import pass_fail_blocks
from judge.report.views.raters import HELP, alt_test_finding, rater_blocks
from judge.report.views.system_ratings import system_finding, system_table
from judge.results.result import Result
from judge.stats.agreement import MEASURES, TITLES
from judge.stats.coefficients import COEFFICIENTS, Level
from judge.stats.correlation import OVER, UNITS
from judge.stats.human_agreement import Rated, Row
from judge.stats.power import ALPHA

SHORT = 2  # decimals of the summary
_MANY_FAILED = 0.05  # share of judgments
_LARGE_BIAS = 0.1  # of the scale's width
_LIKE_TEXTS = 0.9  # as many of the other judge's texts are nearly the same ones
_HEADS = ("Spearman", "Kendall tau-b", "Pearson")
_ONE_RATER = "One rater: compared with the mean of the others."


# The finding and the overview


def finding_sentences(criteria: Sequence[Rated], level: Level) -> Iterator[str]:
    """Say whether the best judge beats the baselines, and how it compares with other judges.

    The best judge is a panel, or else the one with the highest mean correlation.
    """
    judged = [rated for rated in criteria if rated.judges]
    if not judged:
        names = ", ".join(rated.criterion for rated in criteria)
        yield f"No judge scored {names}; only baselines are shown"
        return
    best = best_judge(judged, level)
    yield from finding(judged, best, level)
    yield from system_finding(judged, best)
    yield from alt_test_finding(judged, best)


def failed_cell(row: Row | None) -> Cell | None:
    """Return the share of a judge's judgments that failed; None without any."""
    if row is None or row.failed is None or not row.failed.n:
        return None
    share = row.failed.n / row.failed.of
    return Cell(percent(share), value=share)


def failure_notes(rated: Rated, level: Level) -> Iterator[str]:
    """Warn of many failed judgments, or of failures on texts that people rate differently."""
    judges_failed = any(row.failed for row in rated.judges if row.name not in PANELS)
    for row in rated.judges:
        failed = row.failed
        if failed is None:
            continue
        is_panel = row.name in PANELS
        # A panel has no value because a judge of it failed, or because it has no majority.
        if is_panel and judges_failed:
            continue
        are_many = failed.n / failed.of >= _MANY_FAILED
        are_rated_differently = failed.p is not None and failed.p < ALPHA
        if not (are_many or are_rated_differently):
            continue
        if is_panel:
            values = plural(failed.of, "value")
            count = f"{failed.n:,} of {values}"
            note = f"{rated.criterion}: {count} of the {row.name} are missing."
        else:
            judgments = plural(failed.of, "judgment")
            count = f"{failed.n:,} of {judgments}"
            note = f"{rated.criterion}: {count} by {row.name} failed."
        if failed.scored_ratings is not None:
            ratings = number(failed.ratings, SHORT)
            scored = number(failed.scored_ratings, SHORT)
            test = ""
            if failed.p is not None:
                test = f" ({format_p(failed.p)})"
            note += (
                f" People's mean rating of these texts is {ratings}, "
                f"of the scored ones {scored}{test}."
            )
        yield note


def bias_note(criteria: Sequence[Rated], best: str) -> str:
    """Say on which criteria the best judge scores much higher or lower than people do.

    A correlation ignores such a bias. Return "" if no bias is both significant and large.
    """
    biases = []
    for rated in criteria:
        for row in rated.judges:
            if row.name != best or row.calibration is None:
                continue
            curve = row.calibration
            width = curve.high - curve.low
            is_large = abs(curve.bias.value) >= _LARGE_BIAS * width
            if is_large and side(curve.bias) in (Side.BELOW, Side.ABOVE):
                bias = signed(curve.bias.value, decimals([curve.low, curve.high]))
                scale = f"{minus(f'{curve.low:g}')}–{curve.high:g}"
                biases.append(f"{rated.criterion} {bias} (scale {scale})")
    if not biases:
        return ""
    return (
        f"{best} does not score as people do. Its mean minus theirs: {first_names(biases)}. "
        "Correlations do not show this."
    )


def different_texts_note(criteria: Sequence[Rated]) -> str:
    """Say that the judges' own correlations are not comparable, or "" if they scored like texts."""
    for rated in criteria:
        n_texts = {
            row.name: row.correlation.texts
            for row in rated.judges
            if row.name not in PANELS and row.correlation.texts
        }
        if not n_texts:
            continue
        fewest = min(n_texts.values())
        most = max(n_texts.values())
        if fewest >= _LIKE_TEXTS * most:
            continue
        counts = ", ".join(f"{name} {count:,}" for name, count in n_texts.items())
        return (
            f"The judges scored different rated texts ({rated.criterion}: {counts}). Compare them "
            "by their differences, which are over the texts that both scored."
        )
    return ""


# Each criterion in detail


def people_blocks(result: Result) -> tuple[Block, ...]:
    """Make the section on human ratings in the report of a run.

    It is empty if people rated no criterion of its judges.
    """
    if not result.rated:
        return ()
    level = usual_level(result.rated)
    headline = next(finding_sentences(result.rated, level))
    blocks: list[Block] = [Paragraph(f"{headline}.", "strong")]
    if _validate_measures_rouge(result):
        hint = "judge validate also measures ROUGE: the run has no metric of texts."
        blocks.append(Paragraph(hint))
    for rated in result.rated:
        blocks += map(Notice, failure_notes(rated, level))
    judged = [rated for rated in result.rated if rated.judges]
    best = best_judge(judged, level)
    bias = bias_note(judged, best)
    if bias:
        blocks.append(Notice(bias))
    gaps = disagreements.of_result(result)
    blocks += disagreements.blocks(gaps, best, level, linked=True)
    return (*blocks, *criteria_blocks(result.rated, level))


def _validate_measures_rouge(result: Result) -> bool:
    """Return whether `judge validate` has further baselines: ROUGE, if the run has no metric."""
    table = result.table
    for column in table.columns:
        if column.kind != "metric" or column.name in table.corpus_columns:
            continue
        if not column.signature.is_external:
            return False
    return any(sample.references for sample in table.samples)


def criteria_blocks(criteria: Sequence[Rated], level: Level) -> Iterator[Block]:
    """Yield the tables of each criterion, and how to read them."""
    for rated in criteria:
        texts = plural(rated.texts, "rated text")
        yield Heading(f"{rated.criterion}: {texts}")
        yield from _criterion_blocks(rated, level)
    if criteria:
        help_texts = tuple(_help_texts(criteria, level))
        yield Details("How to read these tables", (Bullets(help_texts),))


def _help_texts(criteria: Sequence[Rated], level: Level) -> Iterator[str]:
    """Explain the columns, and name the methods of the intervals, or why there are none."""
    if any(rated.baselines for rated in criteria):
        yield _BASELINE_HELP
    yield from _HELP
    if any(row.passes for rated in criteria for row in rated.judges):
        yield from PASS_FAIL_HELP
    if any(rated.raters for rated in criteria):
        yield from HELP
    methods: dict[str, None] = {}
    reasons: dict[str, None] = {}
    for rated in criteria:
        for row in rated.rows:
            estimate = spearman(row, usable_level(rated, level))
            if estimate:
                # `Spearman's rho over all texts; 95% expanded percentile bootstrap ...`
                _, _, method = estimate.method.rpartition("; ")
                if estimate.low is None:
                    reasons[method] = None
                else:
                    methods[method] = None
    for method in methods:
        shared = "a difference uses the texts with both values"
        if "bootstrap" in method:
            shared += ", and the same resamples"
        yield f"[low, high]: {method}; {shared}."
    for reason in reasons:
        yield f"Without [low, high]: {reason}."


def _criterion_blocks(rated: Rated, level: Level) -> Iterator[Block]:
    usable = usable_level(rated, level)
    yield _correlation_table(rated, usable)
    sentences = tuple(criterion_sentences(rated, usable))
    if sentences:
        yield Bullets(sentences)
    if rated.judges and charted_rows(rated, usable):
        yield agreement_chart(rated, usable)
    systems = system_table(rated)
    if systems is not None:
        yield systems
    agreement = _agreement_table(rated)
    if agreement is not None:
        yield agreement
    for row in rated.judges:
        if row.calibration:
            yield from calibration_curve(row.name, rated.criterion, row.calibration)
    yield from pass_fail_blocks(rated)
    yield from rater_blocks(rated)
    notes = [other_level_note(rated, level), *_missing_notes(rated, usable)]
    yield from map(Notice, filter(None, notes))


def _correlation_table(rated: Rated, level: Level) -> Table:
    """Tabulate the correlations with people: the judges, one rater and the baselines."""
    rows: list[tuple[Content, ...]] = []
    for row in rated.rows:
        correlations = row.correlation.estimates
        estimates = [correlations.get((level, name)) for name in COEFFICIENTS]
        title = row.name
        if row.kind == "rater":
            title = "one rater"
        elif row.kind == "baseline":
            title = f"{column_title(row.name)} (baseline)"
        tone: Tone = "" if row.kind == "judge" else "muted"
        title_cell = Cell(title, tone=tone)
        cells = []
        for estimate in estimates:
            n_decimals = places(estimate)
            cell = estimate_cell(estimate, n_decimals, tone=tone)
            cells.append(cell)
        sizes = [estimate.n for estimate in estimates if estimate]
        n = sizes[0] if sizes else None
        # At level all-texts, n is the number of texts.
        n_texts = None if level == "all-texts" else row.correlation.texts
        rows.append((title_cell, *cells, failed_cell(row), n, n_texts))
    heads: list[str | Column] = [
        "",
        *(Column(head, better="higher") for head in _HEADS),
        Column("failed", optional=True),
        f"{UNITS[level]}s",
        Column("texts", optional=True),
    ]
    caption = f"{rated.criterion}: correlation with people {OVER[level]}."
    return table(heads, rows, caption=caption, name=f"people-{rated.criterion}")


def _missing_notes(rated: Rated, level: Level) -> Iterator[str]:
    """Say which columns lack a value, a comparison or an agreement, and why."""
    names_by_note: dict[tuple[str, str], list[str]] = {}
    for row in rated.rows:
        lacking = row.correlation.lacking.get(level)
        few = row.few.get(level)
        if lacking:
            note = ("No value for", lacking)
            names_by_note.setdefault(note, []).append(row.name)
        elif few:
            note = ("Not compared with the judges:", few)
            names_by_note.setdefault(note, []).append(row.name)
        if row.kind == "judge" and row.no_calibration and row.correlation.texts:
            note = ("No agreement and calibration for", row.no_calibration)
            names_by_note.setdefault(note, []).append(row.name)
    for (beginning, reason), names in names_by_note.items():
        listed_names = ", ".join(names)
        yield f"{beginning} {listed_names}: {reason}."


def other_level_note(rated: Rated, level: Level) -> str:
    """Say why a level is not the one of other data, or what it cannot show; "" if all is usual."""
    usable = usable_level(rated, level)
    if usable != level:
        return _missing_level_note(rated, level, usable)
    if rated.usual_level == "within-items" or level == "systems":
        return ""
    few_texts = "most items have fewer than three rated texts with a score"
    if level == "all-texts":
        return f"Correlations are over all texts: {few_texts}."
    return f"Most correlations within an item are only 1 or −1: {few_texts}."


def _missing_level_note(rated: Rated, level: Level, usable: Level) -> str:
    """Say why a level has no values, and which one is shown."""
    lacking = [
        row.correlation for row in rated.rows if level in row.correlation.lacking
    ]
    # A row that has texts gives the better reason.
    lacking.sort(key=lambda correlation: not correlation.texts)
    reason = ""
    if lacking:
        reason = lacking[0].lacking[level]
    return f"No values at level {level}: {reason}. The table is {OVER[usable]}."


def _agreement_table(rated: Rated) -> Table | None:
    """Tabulate the agreement of the judges with people's mean, and of the raters."""
    rows = [(row.name, row.agreement) for row in rated.judges]
    if rated.rater:
        rows.append((rated.rater.signature, rated.rater.agreement))
    rows = [(name, agreement) for name, agreement in rows if agreement.estimates]
    known_measures: set[str] = set()
    for _, agreement in rows:
        known_measures.update(agreement.estimates)
    measures = [measure for measure in MEASURES if measure in known_measures]
    if not measures:
        return None
    lines: list[list[Content]] = []
    for row_name, agreement in rows:
        estimates = [agreement.estimates.get(measure) for measure in measures]
        cells = [estimate_cell(estimate, places(estimate)) for estimate in estimates]
        lines.append([row_name, *cells])
    heads: list[str | Column] = [
        "",
        *(Column(TITLES[measure], better="higher") for measure in measures),
    ]
    about = "agreement with people's mean"
    if rated.rater and rated.rater.agreement.estimates:
        about += ", and of the raters with one another"
    name = f"raters-{rated.criterion}"
    return table(heads, lines, caption=f"{rated.criterion}: {about}.", name=name)


_BASELINE_HELP = (
    "Baselines need no judge. A judge that does not beat them adds nothing. Length has no better "
    "direction: if people prefer short texts, a judge must beat it reversed. Other baselines count "
    "with their sign."
)
_HELP = (
    "One rater: each rater is compared with the mean of the others; the value is the mean over the "
    "raters. The mean of all raters has less noise than one, so a judge can beat one rater without "
    "being better than people.",
    "Within items, only those whose values and ratings both differ between texts are counted.",
    "Agreement: Krippendorff's alpha (interval distance) and, if the scale has levels, Cohen's "
    "kappa (quadratic weights; the judge's score and people's mean are rounded to a level, unless "
    "they are halfway). ICC(2,1) is for one rater, ICC(2,k) for the mean of all raters.",
    "Calibration: texts are binned by the judge's score. The error is the mean distance between "
    "the judge's mean and people's mean in a bin. The bias is the judge's mean minus people's.",
    "Intervals of differences are wider than 95%: those of all pairs of judges hold together with "
    "95% (Bonferroni), and so do those of a judge and all baselines, unless it beats every one.",
)


# Numbers for the page of a run


def main_agreement(result: Result) -> Rated | None:
    """Return the rated criterion on which the judge agrees least with people.

    Without any such value, return the first criterion that a judge scored and that has others, or
    None.
    """
    agreements = _agreements(result)
    if agreements:
        return min(agreements, key=lambda rated_and_rho: rated_and_rho[1])[0]
    for rated in result.rated:
        if rated.judges and charted_rows(rated, usable_level(rated, rated.usual_level)):
            return rated
    return None


def _agreements(result: Result) -> list[tuple[Rated, float]]:
    """Return each criterion with the correlation of its judge, or panel, with people."""
    agreements = []
    for rated in result.rated:
        level = usable_level(rated, rated.usual_level)
        rows = charted_rows(rated, level)
        of_judges = [estimate for row, estimate in rows if row.kind == "judge"]
        if of_judges:
            agreements.append((rated, of_judges[0].value))
    return agreements


def charted_rows(rated: Rated, level: Level) -> list[tuple[Row, Estimate]]:
    """Return the judges, one rater and the baselines that have a value, with Spearman's rho."""
    rows = [*rated.judges]
    if rated.rater:
        rows.append(rated.rater)
    rows += rated.baselines
    charted = []
    for row in rows:
        estimate = spearman(row, level)
        if estimate and level not in row.few:
            charted.append((row, estimate))
    return charted


def best_baseline(rated: Rated, level: Level) -> tuple[str | None, Estimate | None]:
    """Return the name and the correlation of the baseline that agrees best with people.

    A baseline without a better direction counts with the better sign.
    """
    correlations = []
    for row, correlation in charted_rows(rated, level):
        if row.kind != "baseline":
            continue
        baseline_name = column_title(row.name)
        if not row.directed and correlation.value < 0:
            baseline_name = reversed_name(baseline_name)
            correlation = correlation.times(-1)
        correlations.append((baseline_name, correlation))
    return max(correlations, key=lambda pair: pair[1].value, default=(None, None))


def agreement_chart(rated: Rated, level: Level | None = None) -> Chart:
    """Draw Spearman's correlation with people: the judges, one rater and the baselines.

    The strongest comes first.
    """
    bar_by_row = {}
    shown_level = usable_level(rated, level or rated.usual_level)
    rows = charted_rows(rated, shown_level)
    rows.sort(key=lambda row_and_estimate: -row_and_estimate[1].value)
    for row, estimate in rows:
        row_name = "one rater" if row.kind == "rater" else column_title(row.name)
        text = number(estimate.value, SHORT)
        bar = Bar(estimate.value, estimate.low, estimate.high, text)
        if row.kind == "judge":
            bar = replace(bar, tone="best")
        bar_by_row[row_name] = bar
    chart = bars(
        f"people-{rated.criterion}",
        f"Judge against people: {rated.criterion}",
        [*bar_by_row],
        [*bar_by_row.values()],
        label="Spearman's rho",
        caption=(
            f"Spearman's correlation with people's ratings, {OVER[shown_level]}, "
            "with 95% intervals."
        ),
    )
    return replace(chart, tabled=True)


def agreement_tiles(result: Result) -> Iterator[Tile]:
    """Yield how a judge and the best baseline agree with people, on the main criterion."""
    rated = main_agreement(result)
    if rated is None:
        return
    level = usable_level(rated, rated.usual_level)
    agreements = _agreements(result)
    if agreements:
        raters = "people"
        if rated.rater:
            raters = f"your {rated.rater.signature}"  # `3 raters`
        label = f"agreement of the judge with {raters} on {rated.criterion}"
        if len(agreements) > 1:
            label += f", the lowest of {len(agreements)} criteria"
        rho = number(min(value for _, value in agreements), SHORT)
        yield Tile(f"ρ {rho}", label, link="people")
    baseline_name, correlation = best_baseline(rated, level)
    if correlation is not None:
        label = f"agreement of {baseline_name} with people, the best baseline"
        rho = number(correlation.value, SHORT)
        yield Tile(f"ρ {rho}", label, "muted", "people")
