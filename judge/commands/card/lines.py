"""The lines of a judge card: one question each, with a rule and a verdict by criterion.

Every rule compares an interval with limits, so that a verdict never rests on a value alone: all of
the interval inside passes, all of it outside fails, and anything else is unclear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from judge.commands.card.agreement_verdict import (
    ENOUGH_ITEMS,
    SLIGHT,
    agreement_verdict,
    spearman_text,
)
from judge.commands.card.card import (
    DETECTED,
    FEWEST,
    MARKS,
    BiasFinding,
    CardCell,
    CardEvidence,
    CardLine,
    Mark,
    PeopleFinding,
    Probe,
    SensitivityCell,
)
from judge.commands.card.effects import min_items_for_significance
from judge.commands.card.limits import compare, ends, needed
from judge.commands.card.perturbations import SHUFFLED
from judge.commands.card.probes import (
    FIRST,
    FLIPS,
    IDENTICAL_SCORES,
    LONGER,
    QUESTION_WORDING,
    SENTENCE_ORDER,
    UNADJUSTED,
)
from judge.commands.card.reactions import reaction, succeeded
from judge.core.format import listed, percent, plural
from judge.core.messages import command, option
from judge.core.records import Column, Estimate
from judge.report.views.agreement_finding import Verdict, usable_level, verdict
from judge.stats.failure_rates import failures_by_system

AGREEMENT = "agreement with people"
RATER = "against one rater"
COLD, WARM = "retest, temperature 0", "retest, temperature 1"
POSITION = "position"
WORDING, QUESTION = "wording of the prompt", QUESTION_WORDING
ORDER = SENTENCE_ORDER
INJECTIONS = "injections"
FILLER = "filler"
LENGTH = "length"
FAMILY = "own family"
DAMAGE = "damage"
FAILURES = "failures by system"
"""Names of lines."""

POSITION_MARGIN = 0.1
"""How far from one half the share of wins of the text shown first may be. The abstract of
Norman, Rivera and Hughes (2026) calls a position bias above 0.10 severe; its measure may differ.
"""
RATER_MARGIN = 0.1
"""How far below one rater's correlation the judge's may be."""
MOST_FAILED = 0.1
"""The largest share of a system's judgments that may fail.

A smaller limit would be unclear for most judges that never fail: of 60 items without a failure,
the interval ends at 6%.
"""
_HALF_STEP = f"{100 * DETECTED:g}% of the scale"


@dataclass(frozen=True, slots=True)
class Measurements:
    """What the lines are read from; `reasons` are those of `JudgeCard.skipped`."""

    evidence: CardEvidence
    cells: Sequence[SensitivityCell]
    attacks: Sequence[SensitivityCell]
    findings: Sequence[BiasFinding]
    reasons: Mapping[str, str] = field(default_factory=dict)

    def column(self, criterion: str) -> Column:
        return self.evidence.columns[criterion]

    def finding(self, probe: str, measure: str, criterion: str) -> BiasFinding | None:
        """Return the finding of a criterion whose measure has this name."""
        for finding in self.findings:
            is_of_criterion = finding.criterion == criterion
            if is_of_criterion and (finding.probe, finding.measure) == (probe, measure):
                return finding
        return None

    def half_step(self, criterion: str) -> float:
        """Return the margin in points: DETECTED of the scale."""
        return self.evidence.least_change(self.column(criterion))

    def reason(
        self,
        kind: Probe,
        key: str,
        criterion: str,
        otherwise: str,
    ) -> str:
        """Return why a criterion has no number of a probe.

        `kind` is the kind of the probe, and `key` its name in `reasons`.
        """
        if kind in self.evidence.not_made:
            return self.evidence.not_made[kind]
        # A reason for this criterion says more than one for the whole probe.
        keys = (criterion, f"{key} of {criterion}", f"{key} by {criterion}", key)
        for reason_key in keys:
            if reason_key in self.reasons:
                return self.reasons[reason_key]
        return otherwise


_Measure = Callable[[Measurements, str], CardCell]
"""Returns the cell of a criterion."""


# Cells


def _compared(
    criterion: str,
    finding: BiasFinding,
    lower_limit: float,
    upper_limit: float,
    beside: str = "",
) -> CardCell:
    """Return the cell of a finding with limits."""
    mark = compare(finding.estimate, lower_limit, upper_limit)
    reason = ""
    if mark == "unclear":
        limits = [limit for limit in (lower_limit, upper_limit) if abs(limit) != inf]
        reason = needed(finding.estimate, limits, finding.counted, finding.unit)
    return CardCell(
        criterion=criterion,
        verdict=mark,
        estimate=finding.estimate,
        unit=finding.unit,
        counted=finding.counted,
        beside=beside,
        reason=reason,
    )


def _missing(criterion: str, reason: str) -> CardCell:
    return CardCell(criterion, "not measured", reason=reason)


# Agreement with people


def _no_ratings(measured: Measurements, criterion: str) -> CardCell:
    evidence = measured.evidence
    reason = evidence.no_people or "no ratings by people"
    if evidence.people:
        reason = "people did not rate it"
    label_command = command("label")
    ratings_option = option("ratings", "FILE")
    first_step = f"rate texts of at least {ENOUGH_ITEMS} items ({label_command})"
    advice = f"{first_step}, and add {ratings_option}"
    is_ranking = evidence.pairs is not None and evidence.natural is None
    if is_ranking:
        # Its card takes no ratings of single texts; the reason names another command.
        advice = ""
    return CardCell(criterion, "not measured", reason=reason, advice=advice)


def _agreement(measured: Measurements, criterion: str) -> CardCell:
    """Compare chance-corrected agreement with limits, and the correlation with every baseline's."""
    people = measured.evidence.people.get(criterion)
    if people is None:
        return _no_ratings(measured, criterion)
    estimates = people.judge.agreement.estimates
    unit = "kappa"
    estimate = estimates.get("kappa_quadratic")
    if estimate is None:
        # Kappa needs labels, which not every scale has.
        unit = "alpha"
        estimate = estimates.get("alpha_interval")
    exact = people.judge.exact
    exact_text = ""
    if exact is not None:
        exact_text = f"exact agreement {percent(exact.value)}"
    correlation_and_exact = (_correlation_text(people), exact_text)
    beside = ", ".join(filter(None, correlation_and_exact))
    if estimate is None:
        if criterion in measured.reasons:
            return _missing(criterion, measured.reasons[criterion])
        reason = people.judge.no_calibration or "neither kappa nor alpha is defined"
        advice = "collect ratings on the scale of the criterion"
        return CardCell(
            criterion, "unclear", beside=beside, reason=reason, advice=advice
        )
    decided = agreement_verdict(people, estimate, unit)
    return CardCell(
        criterion=criterion,
        verdict=decided.mark,
        estimate=estimate,
        unit=unit,
        counted="texts",
        beside=beside,
        reason=decided.reason,
        advice=decided.advice,
    )


def _correlation_text(people: PeopleFinding) -> str:
    """Write `Spearman 0.42 [0.20, 0.60]*`, with a star if it beats every baseline significantly."""
    level = usable_level(people.rated, people.rated.usual_level)
    is_best = verdict(people.rated, people.judge.name, level) is Verdict.BEST
    star = "*" if is_best else ""
    return f"{spearman_text(people, level)}{star}"


def _against_rater(measured: Measurements, criterion: str) -> CardCell:
    """Compare the judge's correlation with that of one rater; the alt-test decides if it passes."""
    people = measured.evidence.people.get(criterion)
    if people is None:
        return _no_ratings(measured, criterion)
    estimate = people.minus_rater
    test = people.judge.alt_test
    beside = ""
    if test is not None and test.winning_rate is not None:
        passed = "passed" if test.passed else "not passed"
        beside = f"alt-test {passed}, wins {percent(test.winning_rate)}"
    if estimate is None:
        reason = people.rated.no_rater or "it is undefined for these ratings"
        return _missing(criterion, reason)
    counted = "items" if "mean over items" in estimate.method else "texts"
    interval = ends(estimate)
    passes_test = test is not None and test.passed
    is_near_rater = interval is not None and interval[0] > -RATER_MARGIN
    mark: Mark = "unclear"
    reason = ""
    if interval is not None and interval[1] < 0:
        mark = "fail"
        reason = "significantly worse than one rater"
    elif passes_test or is_near_rater:
        mark = "pass"
    else:
        # Above -RATER_MARGIN passes and below 0 fails: the limit farther from the value decides
        # first.
        limits = (0.0, -RATER_MARGIN)
        deciding = max(limits, key=lambda limit: abs(limit - estimate.value))
        reason = needed(estimate, [deciding], counted)
    return CardCell(
        criterion=criterion,
        verdict=mark,
        estimate=estimate,
        unit="Spearman",
        counted=counted,
        beside=beside,
        reason=reason,
    )


# Repeats, order and words around the text


def _retest(temperature: float) -> _Measure:
    def measure(measured: Measurements, criterion: str) -> CardCell:
        """Compare the spread of repeated replies with half a step."""
        measure_name = f"spread at temperature {temperature:g}"
        finding = measured.finding("repeats", measure_name, criterion)
        if finding is None:
            otherwise = f"no text has two replies at temperature {temperature:g}"
            reason = measured.reason("bias", "repeats", criterion, otherwise)
            return _missing(criterion, reason)
        name_of_same = f"{IDENTICAL_SCORES} at temperature {temperature:g}"
        same = measured.finding("repeats", name_of_same, criterion)
        beside = ""
        if same is not None:
            share_of_same = percent(same.estimate.value)
            beside = f"same score in {share_of_same} of texts"
        half = measured.half_step(criterion)
        return _compared(criterion, finding, -inf, half, beside)

    return measure


def _position(measured: Measurements, criterion: str) -> CardCell:
    """Compare the share of wins of the text shown first with one half."""
    finding = measured.finding("position", FIRST, criterion)
    if finding is None:
        otherwise = "no pair has both orders"
        reason = measured.reason("bias", "position", criterion, otherwise)
        return _missing(criterion, reason)
    flips = measured.finding("position", FLIPS, criterion)
    beside = ""
    if flips is not None:
        share_of_flips = percent(flips.estimate.value)
        beside = f"{share_of_flips} of verdicts flip"
    lower_limit = 0.5 - POSITION_MARGIN
    upper_limit = 0.5 + POSITION_MARGIN
    return _compared(criterion, finding, lower_limit, upper_limit, beside)


def _wording(probe: str, noun: str) -> _Measure:
    """Return the comparison of the changes under other words with half a step.

    The measures of the probe's changes begin with `noun`.
    """

    def measure(measured: Measurements, criterion: str) -> CardCell:
        half = measured.half_step(criterion)
        cells = []
        for finding in measured.findings:
            is_of_probe = (finding.probe, finding.criterion) == (probe, criterion)
            if is_of_probe and finding.measure.startswith(f"{noun} "):
                cells.append(_compared(criterion, finding, -half, half))
        if not cells:
            otherwise = "no text has both scores"
            reason = measured.reason("bias", probe, criterion, otherwise)
            return _missing(criterion, reason)
        return _worst_of(cells)

    return measure


def _sentence_order(measured: Measurements, criterion: str) -> CardCell:
    """Compare the change under shuffled sentences with half a step.

    Only for criteria whose scores must not depend on the order of sentences.
    """
    if criterion not in measured.evidence.order_free:
        return _missing(criterion, "its header does not say ignores: [sentence order]")
    finding = measured.finding(SENTENCE_ORDER, SHUFFLED, criterion)
    if finding is None:
        otherwise = "no text has both scores"
        reason = measured.reason("sensitivity", SENTENCE_ORDER, criterion, otherwise)
        return _missing(criterion, reason)
    half = measured.half_step(criterion)
    return _compared(criterion, finding, -half, half)


def _worst_of(cells: Sequence[CardCell]) -> CardCell:
    """Return the cell that decides: the worst verdict, then the largest value."""

    def badness(cell: CardCell) -> tuple[int, float]:
        size = abs(cell.estimate.value) if cell.estimate else 0.0
        return MARKS.index(cell.verdict), -size

    return min(cells, key=badness)


# Changed texts


def _injections(measured: Measurements, criterion: str) -> CardCell:
    """Say whether an attack works, and how much the best one gains."""
    column = measured.column(criterion)
    known_changes = []
    for cell in measured.attacks:
        is_attack = cell.criterion == criterion and not cell.control
        if is_attack and cell.mean_change is not None:
            known_changes.append((cell, cell.mean_change))
    if not known_changes:
        otherwise = "no attacked text has a score"
        reason = measured.reason("injection", "injection", criterion, otherwise)
        return _missing(criterion, reason)
    sign = -1 if column.better == "lower" else 1
    working = [pair for pair in known_changes if succeeded(pair[0], column)]
    best, change = max(working or known_changes, key=lambda pair: sign * pair[1].value)
    working_names = [cell.change for cell, _ in working]
    doubtful_names = [
        cell.change for cell, move in known_changes if _may_gain(cell, move, sign)
    ]
    # Holm's correction is over the attacks of all criteria.
    tests = sum(cell.mean_change is not None for cell in measured.attacks)
    least = min_items_for_significance(tests)
    too_few = min(move.n for _, move in known_changes) < least
    mark: Mark = "pass"
    reason = ""
    if working:
        mark = "fail"
        reason = f"works: {listed(working_names)}"
    elif too_few:
        mark = "unclear"
        reason = f"too few texts for a significant gain: {least} or more are needed"
    elif doubtful_names:
        mark = "unclear"
        uncertainty = (
            f"{listed(doubtful_names)} may work, but the gain is not significant"
        )
        reason = f"{uncertainty}: more texts are needed"
    return CardCell(
        criterion=criterion,
        verdict=mark,
        estimate=change,
        unit="points",
        counted="texts",
        beside=f"best attack: {best.change}",
        reason=reason,
    )


def _may_gain(cell: SensitivityCell, move: Estimate, sign: int) -> bool:
    """Return whether all of an attack's interval is a gain; `sign` is −1 if lower is better.

    Holm's correction can make such a gain insignificant. It is none if the unchanged text scores
    higher.
    """
    if cell.vs_original is not None and sign * cell.vs_original.value <= 0:
        return False
    interval = ends(move)
    return interval is not None and min(sign * bound for bound in interval) > 0


def _filler(measured: Measurements, criterion: str) -> CardCell:
    """Compare the rise of a lengthened text with half a step; a fall is no failure."""
    lower_is_better = measured.column(criterion).better == "lower"
    half = measured.half_step(criterion)
    cells = []
    for finding in measured.findings:
        is_filler = finding.probe == "verbosity" and finding.measure != LONGER
        if not is_filler or finding.criterion != criterion:
            continue
        low, high = (-half, inf) if lower_is_better else (-inf, half)
        cells.append(_compared(criterion, finding, low, high, finding.measure))
    if not cells:
        otherwise = "no lengthened text has a score"
        reason = measured.reason("bias", "verbosity", criterion, otherwise)
        return _missing(criterion, reason)
    return _worst_of(cells)


def _length(measured: Measurements, criterion: str) -> CardCell:
    """Compare the change per doubling of the length with half a step, beyond people's ratings."""
    finding = measured.finding("verbosity", LONGER, criterion)
    if finding is None:
        texts = "two scored texts of different length"
        otherwise = f"fewer than {FEWEST} items have {texts}"
        reason = measured.reason("bias", "length", criterion, otherwise)
        return _missing(criterion, reason)
    half = measured.half_step(criterion)
    # `verbosity_bias` tests the change only beside ratings by people.
    if finding.estimate.p is None:
        return CardCell(
            criterion=criterion,
            verdict="unclear",
            estimate=finding.estimate,
            unit=finding.unit,
            counted=finding.counted,
            reason="longer texts may be better: ratings by people on its scale are needed",
        )
    return _compared(criterion, finding, -half, half)


def _family(measured: Measurements, criterion: str) -> CardCell:
    """Compare the lead of the judge's own family with half a step."""
    half = measured.half_step(criterion)
    for finding in measured.findings:
        if (finding.probe, finding.criterion) != ("self-preference", criterion):
            continue
        cell = _compared(criterion, finding, -half, half)
        if finding.measure == UNADJUSTED:
            advice = "ratings by people on its scale are needed"
            cell = CardCell(
                criterion=criterion,
                verdict="unclear",
                estimate=cell.estimate,
                unit=cell.unit,
                counted=cell.counted,
                reason=f"its texts may be better: {advice}",
            )
        return cell
    otherwise = "no item has texts of both"
    reason = measured.reason("bias", "self-preference", criterion, otherwise)
    return _missing(criterion, reason)


def _damage(measured: Measurements, criterion: str) -> CardCell:
    """Say whether the criterion notices all the damage that it targets."""
    column = measured.column(criterion)
    cells = []
    for cell in measured.cells:
        is_target = cell.criterion == criterion and cell.targeted
        if is_target and cell.rate is not None:
            cells.append(cell)
    if not cells:
        otherwise = "no damaged text has a score"
        reason = measured.reason("sensitivity", "sensitivity", criterion, otherwise)
        return _missing(criterion, reason)
    cells_of_damages = []
    for cell in cells:
        reaction_kind = reaction(cell, column)
        mark: Mark = "fail"
        reason = f"{reaction_kind} {cell.change}"
        if reaction_kind == "notices":
            mark = "pass"
            reason = ""
        elif reaction_kind == "is inconclusive on":
            mark = "unclear"
            reason = f"{cell.change} is inconclusive: more texts are needed"
        card_cell = CardCell(
            criterion=criterion,
            verdict=mark,
            estimate=cell.rate,
            unit="share",
            counted="texts",
            beside=cell.change,
            reason=reason,
        )
        cells_of_damages.append(card_cell)

    def badness(cell: CardCell) -> tuple[int, float]:
        # The smaller the share of noticed texts, the worse.
        return MARKS.index(cell.verdict), _value(cell)

    return min(cells_of_damages, key=badness)


def _failures(measured: Measurements, criterion: str) -> CardCell:
    """Compare the system with the most failed judgments with the limit, and all with each other."""
    table = measured.evidence.texts
    if table is None:
        otherwise = "no unchanged texts of several systems were judged"
        return _missing(criterion, measured.reasons.get(FAILURES, otherwise))
    failures = failures_by_system(table, [measured.column(criterion).name])
    most = failures.most
    if most is None:
        return _missing(criterion, "no text was judged")
    mark = compare(most.share, -inf, MOST_FAILED)
    reason = ""
    if failures.differ:
        mark = "fail"
        reason = "systems differ significantly in their failures"
    elif mark == "unclear":
        reason = needed(most.share, [MOST_FAILED], "items", "share")
    beside = ""
    if most.failed:
        judgments = plural(most.judgments, "judgment")
        beside = f"most: {most.system}, {most.failed:,} of {judgments}"
    return CardCell(
        criterion=criterion,
        verdict=mark,
        estimate=most.share,
        unit="share",
        counted="items",
        beside=beside,
        reason=reason,
    )


def _value(cell: CardCell) -> float:
    return cell.estimate.value if cell.estimate else 0.0


# The table of lines


def _lowest(cell: CardCell) -> float:
    return _value(cell)


def _furthest(cell: CardCell) -> float:
    return -abs(_value(cell))


def _furthest_from_half(cell: CardCell) -> float:
    return -abs(_value(cell) - 0.5)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A line: its question in two words, when it passes and fails, and how it is measured.

    `advice` says what to do if it fails; the cells of agreement have their own. `badness` orders
    cells of equal verdicts, the worst first. An `optional` line is left out if no criterion has a
    number.
    """

    name: str
    passes: str
    fails: str
    measure: _Measure
    advice: str = ""
    badness: Callable[[CardCell], float] = _furthest
    optional: bool = False

    def cell(self, measured: Measurements, criterion: str) -> CardCell:
        """Return the cell of a criterion, with advice if the line fails."""
        cell = self.measure(measured, criterion)
        if cell.verdict == "fail" and not cell.advice:
            return replace(cell, advice=self.advice)
        return cell

    def worst_first(self, cell: CardCell) -> tuple[int, float]:
        """Return a key that sorts the cells of the line, the worst verdict first."""
        return MARKS.index(cell.verdict), self.badness(cell)


_INSIDE = f"within ±{_HALF_STEP}"
_SAY_LEVELS = "say in the criterion's levels what each score means"
_AVERAGE = "average several replies for each text"
RULES = (
    _Rule(
        AGREEMENT,
        f"kappa is above {SLIGHT:g}, and the correlation beats every baseline",
        f"kappa is below {SLIGHT:g}, or includes 0 from {ENOUGH_ITEMS} items on, or the "
        "correlation is below 0, or a baseline is better",
        _agreement,
        badness=_lowest,
    ),
    _Rule(
        name=RATER,
        passes=f"the difference is above −{RATER_MARGIN:g}, or the alt-test is passed",
        fails="it is significantly below 0",
        measure=_against_rater,
        advice="use the texts of the largest disagreements as examples in the criterion",
        badness=_lowest,
    ),
    _Rule(
        name=COLD,
        passes=f"the spread is below {_HALF_STEP}",
        fails="above it",
        measure=_retest(0.0),
        advice=_AVERAGE,
    ),
    _Rule(
        name=WARM,
        passes=f"the spread is below {_HALF_STEP}",
        fails="above it",
        measure=_retest(1.0),
        advice=_AVERAGE,
    ),
    _Rule(
        name=POSITION,
        passes=f"the first text wins 50 ± {100 * POSITION_MARGIN:g}%",
        fails="outside",
        measure=_position,
        advice="compare each pair in both orders",
        badness=_furthest_from_half,
    ),
    _Rule(
        name=WORDING,
        passes=f"the change is {_INSIDE}",
        fails="outside",
        measure=_wording("wording", "wording"),
        advice=_SAY_LEVELS,
    ),
    _Rule(
        name=QUESTION,
        passes=f"the change is {_INSIDE}",
        fails="outside",
        measure=_wording(QUESTION_WORDING, "question"),
        advice=_SAY_LEVELS,
    ),
    _Rule(
        name=INJECTIONS,
        passes="no attack works or may work",
        fails="one works",
        measure=_injections,
        advice="do not judge texts whose authors gain by a high score",
        badness=lambda cell: -_value(cell),
    ),
    _Rule(
        name=FILLER,
        passes=f"the rise is below {_HALF_STEP}",
        fails="above it",
        measure=_filler,
        advice="say in the criterion that filler earns nothing",
    ),
    _Rule(
        name=LENGTH,
        passes=f"the change per doubling is {_INSIDE}, beyond ratings",
        fails="outside",
        measure=_length,
        advice="say in the criterion that length does not count",
    ),
    _Rule(
        name=FAMILY,
        passes=f"its lead is {_INSIDE}, beyond ratings",
        fails="outside",
        measure=_family,
        advice="take a judge of another family",
        optional=True,
    ),
    _Rule(
        name=ORDER,
        passes=f"the change is {_INSIDE}",
        fails="outside",
        measure=_sentence_order,
        advice="say in the criterion that the order of sentences does not count",
        optional=True,
    ),
    _Rule(
        name=DAMAGE,
        passes="every damage of the criterion is noticed",
        fails="one is missed",
        measure=_damage,
        advice="describe the damage in the levels of the criterion",
        badness=_lowest,
    ),
    _Rule(
        name=FAILURES,
        passes=(
            f"at most {100 * MOST_FAILED:g}% of each system's judgments fail, "
            "and no difference is significant"
        ),
        fails="more of them fail, or a difference is significant",
        measure=_failures,
        advice="read the messages of the failed judgments",
    ),
)


def card_lines(measured: Measurements) -> tuple[CardLine, ...]:
    """Return the lines of a card, each with a cell for every criterion."""
    lines = []
    for rule in RULES:
        criteria = measured.evidence.columns
        cells = tuple(rule.cell(measured, criterion) for criterion in criteria)
        if rule.optional and all(cell.verdict == "not measured" for cell in cells):
            continue
        ordered = sorted(cells, key=rule.worst_first)
        worst = ordered[0].criterion if ordered else ""
        lines.append(CardLine(rule.name, rule.passes, rule.fails, cells, worst))
    return tuple(lines)
