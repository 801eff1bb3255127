"""The report of `judge validate`, and the sections on human ratings in the report of a run.

`view` makes the report, `people_blocks` the section. `agreement_facts`, `agreement_chart` and `agreement_tile` show the
correlations at a glance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, Literal

from judge.core.format import format_interval, format_p, number, one_line, percent, plural, signed
from judge.core.records import Estimate
from judge.report import charts
from judge.report.document import (
    Block,
    Bullets,
    Cell,
    Chart,
    Column,
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
from judge.report.views import disagreements, preferences
from judge.report.views.calibration import (
    NOTE,
    calibration_blocks,
    calibration_curve,
    calibration_finding,
    calibration_summary,
)
from judge.report.views.columns import estimate_cell
from judge.report.views.raters import HELP, alt_test_finding, rater_blocks, rater_records
from judge.results.result import Result
from judge.results.validation import Validation, flat
from judge.stats.agreement import MEASURES, TITLES
from judge.stats.coefficients import COEFFICIENTS, LEVELS, Level
from judge.stats.correlation import CONCLUSIVE, OVER, UNITS
from judge.stats.human_agreement import Rated, Row, Versus
from judge.stats.power import ALPHA

_PLACES = 3
_SHORT = 2  # decimals of the summary
_MANY_FAILED = 0.05  # share of judgments
_MAX_LINES = 8  # sentences and rows that leave room for the largest disagreement on a screen
_MAX_NAMED = 3  # criteria and judges in the finding
_HEADS = ("Spearman", "Kendall tau-b", "Pearson")
_PANELS = ("panel mean", "panel median", "panel majority")
_ROUGE = ("ROUGE-1", "ROUGE-2", "ROUGE-L")


# The report of `judge validate`


def view(validation: Validation) -> Document:
    """Make the report at the validation's level; JSON and CSV have every level."""
    if validation.preferences:
        return preferences.view(validation)
    rated, level, compared = validation.rated, validation.level, validation.disagreements
    best = _best_judge(rated, level) if compared else ""
    finding, overview = tuple(_finding(rated, level)), _overview(rated, level)
    gap = disagreements.finding(compared, best) if len(finding) + len(overview.rows) <= _MAX_LINES else ()

    def blocks() -> Iterable[Block]:
        return *disagreements.blocks(compared, best, level, linked=False), *_criteria_blocks(rated, level)

    sections = [Section("people", "Agreement with people", blocks)]
    data: dict[str, Any] = {
        "title": validation.title,
        "notes": validation.notes,
        "criteria": [
            {**asdict(flat(each)), "sentences": {level: list(_sentences(each, level)) for level in LEVELS}}
            | disagreements.data(compared, each.criterion)
            for each in rated
        ],
    }
    if validation.calibrated:
        data["calibrated"] = [asdict(calibrated) for calibrated in validation.calibrated]
        sections.append(Section("calibrated", "On people's scale", lambda: calibration_blocks(validation.calibrated)))
    return Document(
        title=one_line(validation.title),
        finding=(*finding, *gap, *calibration_finding(validation.calibrated)),
        scope=plural(max((criterion.texts for criterion in rated), default=0), "text"),
        notices=(
            *map(one_line, validation.notes),
            *(note for criterion in rated[:1] if (note := _other_level(criterion, level))),
            *(note for criterion in rated for note in _failure_notes(criterion, level)),
            *(one_line(f"{c.column} on people's scale: {c.note}", NOTE) for c in validation.calibrated if c.note),
        ),
        summary=(overview, *calibration_summary(validation.calibrated)),
        sections=tuple(sections),
        # RUN would name only one of several runs.
        next=() if any(criterion.versus for criterion in rated) else ("judge validate RUN --full",),
        data=data,
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
        rest = {"texts": rated.texts, "excluded": rated.excluded, "failed": 0, "not_compared": "", "signature": ""}
        yield from ({"criterion": rated.criterion, **record, **rest} for record in rater_records(rated))


# The finding and the overview


def _finding(criteria: Sequence[Rated], level: Level) -> Iterator[str]:
    """Say whether the best judge beats the baselines, then where it does not, then how it compares with other judges.

    The best judge is a panel, or else the one with the highest mean correlation.
    """
    judged = [rated for rated in criteria if rated.judges]
    if not judged:
        yield f"No judge scored {_names(rated.criterion for rated in criteria)}; only baselines are shown"
        return
    best = _best_judge(judged, level)
    comparisons = {
        rated.criterion: against
        for rated in judged
        if (against := _against_baselines(rated, best, _usable(rated, level)))
    }
    if not comparisons:
        few = [sentence for rated in judged[:1] if (sentence := _too_few_systems(rated, level))]
        yield few[0] if few else f"{one_line(best)} could not be compared with a baseline"
    else:
        beaten = [name for name, against in comparisons.items() if against.beats_all]
        lost = all(against.loses for against in comparisons.values())
        if len(comparisons) == 1:
            on = f"on {one_line(next(iter(comparisons)))}"
        else:
            every = "all" if len(beaten) == len(comparisons) else f"{len(beaten)} of" if beaten else "any of"
            on = f"on {every} {len(comparisons)} criteria"
        verdict = (
            "agrees with people less than a baseline" if lost else "is not significantly better than the baselines"
        )
        verdict = "agrees with people better than every baseline" if beaten else verdict
        yield f"{one_line(best)} {verdict} {on}"
        for against in [against for against in comparisons.values() if not against.beats_all][:_MAX_NAMED]:
            yield f"{one_line(against.criterion)}: {against.sentence}"
    pairs = [
        (rated, versus)
        for rated in judged
        for versus in rated.versus
        if versus.level == _usable(rated, level) and best in (versus.judge, versus.other)
    ]
    rivals = list(dict.fromkeys(_rival(versus, best) for _, versus in pairs))
    for rival in rivals[:_MAX_NAMED]:
        won = {rated.criterion: _lead(versus, best) for rated, versus in pairs if _rival(versus, best) == rival}
        better = [one_line(name) for name, e in won.items() if _above_zero(e)]
        if better:
            yield f"It agrees with people better than {one_line(rival)} on {_names(better)}."
        else:
            known = any(e.low is not None for e in won.values())
            yield f"No significant difference from {one_line(rival)}{'' if known else ': too few items in common'}."
    yield from alt_test_finding(judged, best)


def _best_judge(criteria: Sequence[Rated], level: Level) -> str:
    values: dict[str, list[float]] = {}
    for rated in criteria:
        for row in rated.judges:
            estimate = _spearman(row, _usable(rated, level))
            values.setdefault(row.name, []).append(-1.0 if estimate is None else estimate.value)
    if panel := next((name for name in values if name in _PANELS), None):
        return panel
    return max(values, key=lambda name: fmean(values[name]))


def _rival(versus: Versus, judge: str) -> str:
    return versus.other if versus.judge == judge else versus.judge


def _overview(criteria: Sequence[Rated], level: Level) -> Table:
    """Tabulate Spearman's correlation with people: a row per criterion and judge."""
    baselines = dict.fromkeys(
        _short_name(row.name) for rated in criteria for row in rated.baselines if _counts(row, _usable(rated, level))
    )
    has_rater = any(rated.rater for rated in criteria)
    single = len({row.name for rated in criteria for row in rated.judges}) < 2
    any_failed = any(row.failed for rated in criteria for row in rated.judges)
    units = {f"{UNITS[_usable(rated, level)]}s" for rated in criteria}
    unit = units.pop() if len(units) == 1 else "n"
    heads = ["judge", *["one rater"] * has_rater, *baselines, *["failed"] * any_failed, unit]
    rows: list[tuple[str | Cell, ...]] = []
    starred = False
    for rated in criteria:
        usable = _usable(rated, level)
        rater = [estimate_cell(_spearman(rated.rater, usable) if rated.rater else None, _SHORT)] * has_rater
        others = []
        for name in baselines:
            same = [row for row in rated.baselines if _short_name(row.name) == name and _counts(row, usable)]
            known = [(e.value, row.name, e) for row in same if (e := _spearman(row, usable))]
            _, full_name, estimate = max(known, default=(0.0, "", None))
            others.append(estimate_cell(estimate, _SHORT, title=full_name))
        for judge in rated.judges or (None,):
            name = one_line(rated.criterion if single or judge is None else f"{rated.criterion} · {judge.name}")
            against = _against_baselines(rated, judge.name, usable) if judge else None
            best = against is not None and against.beats_all
            starred |= best
            e = _spearman(judge, usable) if judge else None
            own = estimate_cell(e, _SHORT, mark="*" * best, tone="good" if best else "strong")
            failed = [_failed_cell(judge)] * any_failed
            rows.append((name, own, *rater, *others, *failed, Cell(f"{e.n:,}", value=e.n) if e else Cell("–")))
    used = list(dict.fromkeys(OVER[_usable(rated, level)] for rated in criteria))
    key = f"Spearman's correlation with people, {'; or '.join(used)}."
    if starred:
        key += " * significantly above every baseline."
    if "ROUGE" in baselines:
        key += " ROUGE: the highest of ROUGE-1, -2 and -L."
    if has_rater:
        key += " One rater: compared with the mean of the others."
    if any_failed:
        key += " Failed: judgments of rated texts without a score."
    columns = (Column(head, better="" if head in ("failed", unit) else "higher") for head in heads)
    return table(("", *columns), rows, key=key, name="agreement", caption="Agreement with people.")


def _failed_cell(row: Row | None) -> Cell:
    if row is None:
        return Cell("–")
    share = row.failed.n / row.failed.of if row.failed else 0.0
    return Cell(percent(share), value=share)


def _failure_notes(rated: Rated, level: Level) -> Iterator[str]:
    """Warn of judges with many failed judgments, or with failures on texts that people rate differently."""
    for row in rated.judges:
        failed = row.failed
        if failed is None or (failed.n / failed.of < _MANY_FAILED and (failed.p is None or failed.p >= ALPHA)):
            continue
        subject = f"{plural(failed.of, 'judgment')} by {one_line(row.name)}"
        note = f"{one_line(rated.criterion)}: {failed.n:,} of {subject} failed."
        if failed.scored_ratings is not None:
            ratings, scored = number(failed.ratings, _SHORT), number(failed.scored_ratings, _SHORT)
            note += f" People's mean rating of these texts is {ratings}, of the scored ones {scored}"
            tested = "" if failed.p is None else f" ({format_p(failed.p)})"
            note += f"{tested}." if failed.p is None or failed.p >= ALPHA else f"{tested}: the failures are not random."
        if ends := failed.bounds.get(_usable(rated, level)):
            low, high = (number(end, _SHORT) for end in ends)
            note += f" With scores for all, Spearman would be between {low} and {high}."
        yield note


def _counts(row: Row, level: Level) -> bool:
    """Return whether a baseline has values for enough items."""
    return level not in row.few and _spearman(row, level) is not None


def _short_name(baseline: str) -> str:
    return "ROUGE" if baseline in _ROUGE else baseline


# Each criterion in detail


def people_blocks(result: Result) -> tuple[Block, ...]:
    """Make the section on human ratings in the report of a run; empty if people rated no criterion of its judges."""
    if not result.rated:
        return ()
    finding = Paragraph(f"{next(_finding(result.rated, 'document'))}.", "strong")
    notes = (Notice(note) for rated in result.rated for note in _failure_notes(rated, "document"))
    best = _best_judge([rated for rated in result.rated if rated.judges], "document")
    gaps = disagreements.blocks(disagreements.of_result(result), best, "document", linked=True)
    return (finding, *notes, *gaps, *_criteria_blocks(result.rated, "document"))


def _criteria_blocks(criteria: Sequence[Rated], level: Level) -> Iterator[Block]:
    for rated in criteria:
        yield Heading(f"{one_line(rated.criterion)}: {plural(rated.texts, 'rated text')}")
        yield from _criterion_blocks(rated, level)
    if not criteria:
        return
    texts = [*_HELP, *(HELP if any(rated.raters for rated in criteria) else ())]
    for reason in dict.fromkeys(rated.no_rater for rated in criteria if rated.no_rater):
        names = _names(rated.criterion for rated in criteria if rated.no_rater == reason)
        texts.append(f"No value for one rater on {names}: {reason}.")
    known = [e for rated in criteria for row in rated.rows if (e := _spearman(row, _usable(rated, level)))]
    methods = dict.fromkeys(e.method.rpartition("; ")[2] for e in known if e.low is not None)
    shared = "a difference uses the texts with both values, and the same resamples."
    texts += [f"[low, high]: {method}; {shared}" for method in methods]
    yield Details("How to read these tables", (Bullets(tuple(texts)),))


def _criterion_blocks(rated: Rated, level: Level) -> Iterator[Block]:
    usable, name = _usable(rated, level), one_line(rated.criterion)
    units = dict.fromkeys((f"{UNITS[usable]}s", "texts"))
    any_failed = any(row.failed for row in rated.rows)
    bounded = any(usable in row.failed.bounds for row in rated.judges if row.failed)
    rows: list[tuple[str | Cell, ...]] = []
    for row in rated.rows:
        estimates = [row.correlation.estimates.get((usable, coefficient)) for coefficient in COEFFICIENTS]
        n = next((f"{e.n:,}" for e in estimates if e is not None), "–")
        counts = [n, f"{row.correlation.texts:,}"][: len(units)]
        tone: Tone = "" if row.kind == "judge" else "muted"
        label = {"judge": one_line(row.name), "baseline": f"{one_line(row.name)} (baseline)", "rater": "one rater"}
        cells = [estimate_cell(estimate, _PLACES, tone=tone) for estimate in estimates]
        ends = row.failed.bounds.get(usable) if row.failed else None
        bounds = "–" if ends is None else f"{number(ends[0], _SHORT)} to {number(ends[1], _SHORT)}"
        failed = [_failed_cell(row if row.kind != "rater" else None)] * any_failed
        rows.append((Cell(label[row.kind], tone=tone), *cells, *[bounds] * bounded, *failed, *counts))
    yield table(
        (
            "",
            *(Column(head, better="higher") for head in _HEADS),
            *["if scored"] * bounded,
            *["failed"] * any_failed,
            *units,
        ),
        rows,
        key="If scored: about the lowest and the highest Spearman if the failed judgments had scores."
        if bounded
        else "",
        caption=f"{name}: correlation with people {OVER[usable]}.",
        name=f"people-{name}",
    )
    if sentences := tuple(_sentences(rated, usable)):
        yield Bullets(sentences)
    if rated.judges and (facts := tuple(_facts(rated, usable))):
        yield agreement_chart(facts)
    if (agreement := _agreement_table(rated)) is not None:
        yield agreement
    for row in rated.judges:
        if row.calibration:
            yield from calibration_curve(row.name, name, row.calibration)
    yield from rater_blocks(rated)
    for note in _notes(rated, level):
        yield Notice(note)


def _other_level(rated: Rated, level: Level) -> str:
    """Say why a level has no values, and which one is shown; "" if it has."""
    # A row that has texts gives the better reason.
    rows = sorted((row.correlation for row in rated.rows), key=lambda correlation: not correlation.texts)
    reason = next((correlation.lacking[level] for correlation in rows if level in correlation.lacking), "")
    usable = _usable(rated, level)
    return "" if usable == level else f"No values at level {level}: {reason}. The table is {OVER[usable]}."


def _notes(rated: Rated, level: Level) -> Iterator[str]:
    usable = _usable(rated, level)
    yield from filter(None, [_other_level(rated, level)])
    missing: dict[str, list[str]] = {}
    few: dict[str, list[str]] = {}
    for row in rated.rows:
        if usable in row.correlation.lacking:
            missing.setdefault(row.correlation.lacking[usable], []).append(row.name)
        elif usable in row.few:
            few.setdefault(row.few[usable], []).append(row.name)
    yield from (f"No value for {_names(names)}: {reason}." for reason, names in missing.items())
    yield from (f"Not compared with the judges: {_names(names)}: {reason}." for reason, names in few.items())
    for row in rated.judges:
        if row.no_calibration and row.correlation.texts:
            yield f"No agreement and calibration for {one_line(row.name)}: {row.no_calibration}."


def _usable(rated: Rated, level: Level) -> Level:
    """Return the level, or "item" if only that has values."""
    candidates: tuple[Level, ...] = (level, "item")
    for candidate in candidates:
        if any((candidate, "spearman") in row.correlation.estimates for row in rated.rows):
            return candidate
    return level


def _spearman(row: Row, level: Level) -> Estimate | None:
    return row.correlation.estimates.get((level, "spearman"))


def _sentences(rated: Rated, level: Level) -> Iterator[str]:
    """Compare each judge with the baselines and the raters, then the best judge with each other one."""
    if not rated.judges:
        yield f"No judge scored {one_line(rated.criterion)}; only baselines are shown."
    if few := _too_few_systems(rated, level):
        yield f"{few}."
        return
    for judge in rated.judges:
        if level in judge.correlation.lacking:
            continue
        name = one_line(judge.name)
        against = _against_baselines(rated, judge.name, level)
        if against:
            yield f"{name} is {against.sentence}" if against.beats_all else f"{name}: {against.sentence}"
        else:
            yield f"{name} could not be compared with a baseline."
        estimate = _spearman(judge, level)
        rater = _spearman(rated.rater, level) if rated.rater else None
        if estimate and rater and round(estimate.value, _PLACES) > round(rater.value, _PLACES):
            yield (  # else it would seem that the judge is better than people
                f"{name} correlates with the raters' mean more than one rater does with the mean of the others "
                f"({number(estimate.value, _PLACES)} and {number(rater.value, _PLACES)}). One rater is noisier than "
                "the mean, so this does not make the judge better than people."
            )
    for baseline in rated.baselines if rated.judges else ():
        estimate = None if level in baseline.few else _spearman(baseline, level)
        if estimate is not None and estimate.high is not None and round(estimate.high, _PLACES) < 0:
            opposite = number(-estimate.value, _PLACES)
            yield f"{baseline.name} correlates negatively, {_size(estimate)}; reversed, it is a baseline of {opposite}."
    values = {row.name: e.value for row in rated.judges if (e := _spearman(row, level))}
    if len(values) > 1:
        best = max(values, key=lambda name: values[name])
        for versus in rated.versus:
            if versus.level == level and best in (versus.judge, versus.other):
                yield _versus_sentence(rated, versus, best)


def _too_few_systems(rated: Rated, level: Level) -> str:
    """Return why correlations between the systems' means cannot be compared, or ""."""
    n = max((e.n for row in rated.rows if (e := _spearman(row, level))), default=CONCLUSIVE)
    if level != "system" or n >= CONCLUSIVE:
        return ""
    return f"{plural(n, 'system')} are too few to compare correlations of means; {CONCLUSIVE} are needed"


@dataclass(frozen=True, slots=True)
class _AgainstBaselines:
    """A judge's Spearman less that of each baseline that has enough values, and a sentence about them."""

    criterion: str
    beats_all: bool
    sentence: str
    loses: bool


def _against_baselines(rated: Rated, judge: str, level: Level) -> _AgainstBaselines | None:
    """Compare a judge with the baselines; None if there are no differences."""
    if _too_few_systems(rated, level):
        return None
    differences = {row.name: e for row in rated.baselines if (e := rated.differences.get((judge, row.name, level)))}
    if not differences:
        return None
    # Compare the ends as they are shown: +0.072 [0.000, 0.147] is not significant.
    better = {name: e for name, e in differences.items() if _above_zero(e)}
    if len(better) == len(differences):
        name, nearest = min(differences.items(), key=lambda pair: pair[1].value)
        every = "every baseline" if len(differences) == len(rated.baselines) else "every baseline that has values"
        sentence = f"significantly better than {every}; the nearest is {name} ({_size(nearest)} in Spearman)."
        return _AgainstBaselines(rated.criterion, True, sentence, loses=False)
    worse = {name: e for name, e in differences.items() if e.high is not None and round(e.high, _PLACES) < 0}
    equal = {name: e for name, e in differences.items() if name not in better and name not in worse}
    parts = [f"significantly worse than {_sizes(worse)}"] if worse else []
    parts += [f"no significant difference from {_sizes(equal)}"] if equal else []
    parts += [f"significantly better than {', '.join(better)}"] if better else []
    return _AgainstBaselines(rated.criterion, False, f"{'; '.join(parts)}.", loses=bool(worse))


def _above_zero(estimate: Estimate) -> bool:
    return estimate.low is not None and round(estimate.low, _PLACES) > 0


def _sizes(differences: Mapping[str, Estimate]) -> str:
    return ", ".join(f"{name} ({_size(estimate)})" for name, estimate in differences.items())


def _size(estimate: Estimate) -> str:
    interval = format_interval(estimate.low, estimate.high, _PLACES)
    return f"{signed(estimate.value, _PLACES)} {interval or '(no interval)'}"


def _lead(versus: Versus, judge: str) -> Estimate:
    """Return the Spearman of `judge` less that of the other judge."""
    e = versus.spearman
    if versus.judge == judge:
        return e
    low, high = (None if end is None else -end for end in (e.high, e.low))
    return Estimate(e.name, -e.value, low, high, e.n, e.method)


def _versus_sentence(rated: Rated, versus: Versus, best: str) -> str:
    rival, lead = _rival(versus, best), _lead(versus, best)
    # There is no Williams' test at level document: quote the one over all texts.
    level = "item" if versus.level == "document" else versus.level
    tested = ""
    for other in rated.versus:
        same_pair = (other.judge, other.other, other.level) == (versus.judge, versus.other, level)
        if same_pair and other.pearson is not None and other.pearson.p is not None:
            tested = f"; Williams' test of Pearson {OVER[level]}: {format_p(other.pearson.p)}"
    if _above_zero(lead):
        return f"{one_line(best)} agrees with people better than {one_line(rival)}: {_size(lead)} in Spearman{tested}."
    return f"No significant difference between {one_line(best)} and {one_line(rival)}: {_size(lead)}{tested}."


def _agreement_table(rated: Rated) -> Table | None:
    """Tabulate the agreement of the judges with people's mean, and of the raters with one another."""
    rows = [(one_line(row.name), row.agreement) for row in rated.judges]
    rows += [(rated.rater.signature, rated.rater.agreement)] if rated.rater else []
    rows = [(name, agreement) for name, agreement in rows if agreement.estimates]
    measures = [measure for measure in MEASURES if any(measure in agreement.estimates for _, agreement in rows)]
    if not measures:
        return None
    return table(
        ("", *(Column(TITLES[measure], better="higher") for measure in measures)),
        [(name, *(estimate_cell(agreement.estimates.get(m), _PLACES) for m in measures)) for name, agreement in rows],
        caption=f"{one_line(rated.criterion)}: agreement with people's mean, and of the raters with one another.",
        name=f"raters-{one_line(rated.criterion)}",
    )


_HELP = (
    "Baselines need no judge. A judge that does not beat them adds nothing.",
    "One rater: each rater is compared with the mean of the others; the value is the mean over the raters.",
    "Within items, only those whose values and ratings both differ between texts are counted.",
    "Agreement: Krippendorff's alpha (interval distance) and Cohen's kappa (quadratic weights; the judge's score and "
    "people's mean are rounded to the scale). ICC(2,1) is for one rater, ICC(2,k) for the mean of all raters.",
    "Calibration: texts are binned by the judge's score. The error is the mean distance between the judge's mean and "
    "people's mean in a bin. The bias is the judge's mean minus people's.",
    "The best judge is compared with each other judge; p-values are not corrected for their number.",
)


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(one_line, names))


# Numbers for the page of a run


@dataclass(frozen=True, slots=True)
class AgreementFact:
    """Spearman's correlation with people of a judge, one human rater or a baseline on a criterion."""

    criterion: str
    name: str
    value: float
    low: float | None
    high: float | None
    kind: Literal["judge", "rater", "baseline"]
    n: int


def agreement_facts(result: Result) -> tuple[AgreementFact, ...]:
    """Return the correlations for the chart "Judge against people": judges first, then one rater, then baselines.

    They are means over items of the correlation between the systems of an item, or over all texts if an item has too
    few systems. A criterion that no judge scored has none.
    """
    judged = [rated for rated in result.rated if rated.judges]
    return tuple(fact for rated in judged for fact in _facts(rated, _usable(rated, "document")))


def _facts(rated: Rated, level: Level) -> Iterator[AgreementFact]:
    for row in (*rated.judges, *([rated.rater] if rated.rater else []), *rated.baselines):
        if (e := _spearman(row, level)) and level not in row.few:
            name = "one rater" if row.kind == "rater" else one_line(row.name)
            yield AgreementFact(one_line(rated.criterion), name, e.value, e.low, e.high, row.kind, e.n)


def agreement_chart(facts: Sequence[AgreementFact]) -> Chart:
    """Draw the correlations on one criterion: the judges, one rater and the baselines."""
    criterion = facts[0].criterion
    bars = [
        charts.Bar(
            fact.value, fact.low, fact.high, number(fact.value, _SHORT), tone="best" if fact.kind == "judge" else ""
        )
        for fact in facts
    ]
    name, title = f"people-{criterion}", f"Judge against people: {criterion}"
    caption = "Spearman's correlation with people's ratings, with 95% intervals."
    return replace(charts.bars(name, title, [fact.name for fact in facts], bars, caption=caption), tabled=True)


def agreement_tile(result: Result) -> Tile | None:
    """Return the tile for the first criterion that people rated and a judge scored, or None."""
    fact = next((fact for fact in agreement_facts(result) if fact.kind == "judge"), None)
    if fact is None:
        return None
    rater = next(rated.rater for rated in result.rated if one_line(rated.criterion) == fact.criterion)
    raters = f"your {rater.signature.partition(' ')[0]} raters" if rater else "people"
    return Tile(f"ρ {number(fact.value, 2)}", f"agreement of the judge with {raters} ({fact.criterion})", link="people")
