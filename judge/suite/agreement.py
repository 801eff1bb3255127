"""Agreement with human ratings: a minimal correlation, and its change from a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, get_args

from pydantic import Field

from judge.core.errors import ConfigError
from judge.core.format import format_interval, format_p, number, signed
from judge.core.records import Criterion, Estimate, Sample
from judge.data import ledger
from judge.results.result import Result
from judge.stats.bootstrap import Bootstrap
from judge.stats.coefficients import Coefficient, Level
from judge.stats.correlation import (
    INTERVAL_ITEMS,
    MIN_CORRELATION_ITEMS,
    NO_SYSTEM_INTERVAL,
    UNITS,
    Correlation,
    CorrelationWithRatings,
    change_in_agreement,
    usual_level_of,
)
from judge.stats.power import ALPHA, MIN_ITEMS, items_needed
from judge.suite.case import (
    AnyOf,
    Case,
    CaseContext,
    Decision,
    Keys,
    Number,
    Status,
    display_name,
    joined,
    short,
    worst,
)
from judge.suite.case_scores import CaseScores
from judge.suite.evidence import NEAR, Undecidable
from judge.suite.mean_tests import format_estimate, needs
from judge.table import matrix

DECIMALS = 2
"""Decimals of a coefficient."""
_FEWER_RESAMPLES = 10
"""How many times fewer resamples an interval of a coefficient needs than a test."""
_OVER: Mapping[Level, str] = {
    "within-items": "within items",
    "all-texts": "over all texts",
    "systems": "between systems' means",
}


class Minimum(Keys):
    """The minimum of a coefficient."""

    min: Annotated[Number, Field(ge=-1, le=1)]


class Coefficients(AnyOf):
    """Minimal correlations of the scores with human ratings of that name."""

    hint = "write spearman, kendall or pearson, such as {spearman: {min: 0.4}}"

    spearman: Minimum | None = None
    kendall: Minimum | None = None
    pearson: Minimum | None = None
    level: Level | None = Field(
        default=None,
        description="within-items (default if most items have three rated texts or more), "
        "all-texts (otherwise the default) or systems: between the systems' means.",
    )

    @property
    def minima(self) -> dict[Coefficient, float]:
        """The minimum of each coefficient that has one."""
        minima: dict[Coefficient, float] = {}
        for coefficient_name in get_args(Coefficient):
            minimum = getattr(self, coefficient_name)
            if minimum is not None:
                minima[coefficient_name] = minimum.min
        return minima


class Agreement(Case):
    """The scores correlate with human ratings of the criterion."""

    kind = "agreement"
    needs_ratings = True

    human: Coefficients

    def check_keys(self) -> None:
        if self.text:
            self.mistake("human ratings are in the data; leave text out", "text")

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        rating_names = dict.fromkeys(name for sample in texts for name in sample.human)
        if criterion.name in rating_names:
            return
        excluded = ledger.excluded(texts, criterion.name)
        # A rating that an example of the prompt shows must not test that prompt (decision 75).
        if excluded:
            raise ConfigError(
                f"human: no human rating {criterion.name!r} is left ({excluded}); rate other texts"
            )
        available = "the data has no ratings"
        if rating_names:
            available = f"rated: {', '.join(rating_names)}"
        raise ConfigError(
            f"human: no text has a human rating {criterion.name!r} ({available}); name its column "
            f"with map: {{rating.{criterion.name}: COLUMN}}"
        )

    def describe(self) -> str:
        return f"{self.about()} agrees with human ratings"

    def expected(self, context: CaseContext) -> str:
        minima = self.human.minima.items()
        return ", ".join(
            f"{coefficient} ≥ {short(minimum)}" for coefficient, minimum in minima
        )

    def decide(self, context: CaseContext) -> Decision:
        case_scores = context.scored()
        criterion = self.stem()
        case_texts = frozenset(context.texts)
        all_samples = case_scores.result.table.samples
        # The run has the texts of all cases of the suite.
        samples = [sample for sample in all_samples if sample.key in case_texts]
        rated_samples = [sample for sample in samples if criterion in sample.human]
        if not rated_samples:
            name = display_name(criterion)
            raise Undecidable(f"none of the texts has a human rating for {name}")
        values = case_scores.values(rated_samples)
        without_score = [sample for sample in rated_samples if sample.key not in values]
        rows_without_score = [
            (sample.item, sample.system, "") for sample in without_score
        ]
        lacking, detail = case_scores.describe_missing(rows_without_score)
        excluded = ledger.excluded(samples, criterion)
        level = self.human.level or usual_level_of([values], rated_samples)
        correlation = _correlate(rated_samples, criterion, case_scores, context)
        # It has too few items or systems, or all of its ratings are equal.
        if level in correlation.lacking:
            raise Undecidable(joined(correlation.lacking[level], excluded), detail)
        estimates = self._estimates(correlation, level, detail)
        n_items = len({sample.item for sample in rated_samples})
        decision = self._decide_minima(estimates, level, n_items)
        reason = joined(decision.reason, lacking, excluded)
        return replace(decision, reason=reason, detail=detail)

    def _estimates(
        self,
        correlation: Correlation,
        level: Level,
        detail: str,
    ) -> dict[Coefficient, Estimate]:
        """Return the estimates of the coefficients that have a minimum. Raises Undecidable."""
        estimates: dict[Coefficient, Estimate] = {}
        for coefficient in self.human.minima:
            estimate = correlation.estimates.get((level, coefficient))
            if estimate is None:
                raise Undecidable("a coefficient is undefined on these texts", detail)
            estimates[coefficient] = estimate
        return estimates

    def _decide_minima(
        self,
        estimates: Mapping[Coefficient, Estimate],
        level: Level,
        n_items: int,
    ) -> Decision:
        """Decide each coefficient; the worst of these decisions counts."""
        decisions: list[Decision] = []
        measured: list[str] = []
        for coefficient, minimum in self.human.minima.items():
            estimate = estimates[coefficient]
            decisions.append(_decide_coefficient(estimate, minimum, level, n_items))
            measured.append(f"{coefficient} {format_estimate(estimate, DECIMALS)}")
        reasons = dict.fromkeys(decision.reason for decision in decisions)
        # All coefficients are over the same units.
        first_estimate = next(iter(estimates.values()))
        over = _describe_units(level, first_estimate.n)
        return Decision(
            worst(decisions).status,
            joined(*reasons, over),
            ", ".join(measured),
            estimate=first_estimate,
        )


def _describe_units(level: Level, n_units: int) -> str:
    """Write over what a coefficient is: `within items, of 12 items`."""
    unit = UNITS[level] if n_units == 1 else f"{UNITS[level]}s"
    return f"{_OVER[level]}, of {n_units:,} {unit}"


def _correlate(
    rated_samples: Sequence[Sample],
    criterion: str,
    case_scores: CaseScores,
    context: CaseContext,
) -> Correlation:
    """Correlate the scores of rated texts with their ratings, at all levels."""
    rating_by_text = {sample.key: sample.human[criterion] for sample in rated_samples}
    ratings = matrix(rated_samples, rating_by_text)
    scores = matrix(rated_samples, case_scores.values(rated_samples))
    bootstrap = Bootstrap(context.n_resamples // _FEWER_RESAMPLES, context.seed)
    return CorrelationWithRatings(ratings, bootstrap).correlate(scores)


def _decide_coefficient(
    estimate: Estimate, minimum: float, level: Level, n_items: int
) -> Decision:
    """Decide whether a coefficient reaches its minimum.

    `estimate.n` counts the units of the level; `n_items` are the items behind a coefficient between
    systems.
    """
    if estimate.n < MIN_ITEMS:
        unit = UNITS[level]
        reason = f"too few {unit}s: at least {MIN_ITEMS} needed"
        return Decision("undecided", reason)
    if estimate.low is None or estimate.high is None:
        reason = NO_SYSTEM_INTERVAL
        if level in INTERVAL_ITEMS:
            reason = f"too few items: at least {INTERVAL_ITEMS[level]} needed"
        return Decision("undecided", reason)
    if estimate.low >= minimum - NEAR:
        return Decision("passed")
    if estimate.high < minimum - NEAR:
        return Decision("failed", f"{estimate.name} below {short(minimum)}")
    n_units = estimate.n
    unit = UNITS[level]
    if level == "systems":
        # The interval between systems' means is resampled over items, so more items narrow it.
        n_units = n_items
        unit = "item"
    # With enough units, a coefficient like this one would differ from its minimum significantly.
    margin = replace(
        estimate,
        value=estimate.value - minimum,
        low=estimate.low - minimum,
        high=estimate.high - minimum,
        n=n_units,
    )
    limit = f"{estimate.name} {short(minimum)}"
    needed = needs(items_needed(margin), n_units, unit)
    doubt = f"no significant difference from {limit}"
    if margin.value > -NEAR:
        # The value alone would pass.
        doubt = f"the interval reaches below {limit}"
    return Decision("undecided", f"{doubt}{needed}")


@dataclass(frozen=True, slots=True)
class AgreementChange:
    """Spearman with people before and after, and the difference with its interval, at one level."""

    before: float
    after: float
    estimate: Estimate
    level: Level


def agreement_change(
    result: Result,
    baseline: Result,
    criterion: str,
    *,
    criteria: int,
    seed: int,
) -> AgreementChange | None:
    """Return the change in agreement with people from the baseline to this run.

    Return None if too few rated texts have both scores, or a coefficient is undefined. The interval
    has a confidence of 1 − .05 / `criteria` (Bonferroni over that number of criteria), because it
    decides if there is no p. Raises DataError for a rating that either run's criterion has seen.
    """
    ledger.check(result.table.samples, ledger.seen_by(baseline.table.columns))
    rated_samples = [
        sample for sample in result.table.samples if criterion in sample.human
    ]
    if len(rated_samples) < MIN_CORRELATION_ITEMS:
        return None
    items = {sample.item for sample in rated_samples}
    try:
        scores_before = CaseScores.for_criterion(baseline, criterion, items)
        scores_after = CaseScores.for_criterion(result, criterion, items)
    except Undecidable:
        return None
    old_values = scores_before.values(rated_samples)
    new_values = scores_after.values(rated_samples)
    level = usual_level_of([old_values, new_values], rated_samples)
    shifts, _ = change_in_agreement(
        rated_samples,
        criterion,
        old_values,
        new_values,
        levels=(level,),
        seed=seed,
        confidence=1 - ALPHA / criteria,
    )
    shift = shifts.get(level)
    if shift is None or shift.change is None:
        return None
    return AgreementChange(shift.before.value, shift.after.value, shift.change, level)


def decide_agreement(
    agreement: AgreementChange, p_value: float | None, moved: str
) -> Decision:
    """Fail only if the scores correlate significantly worse with people.

    `p_value` is after Holm. Without a test, as over all texts, the interval decides. `moved`
    describes how the scores moved.
    """
    estimate = agreement.estimate
    unit = UNITS[agreement.level]
    status: Status = "passed"
    if _is_significant(estimate, p_value):
        direction = "better"
        if estimate.value < 0:
            status = "failed"
            direction = "worse"
        tested = f" ({format_p(p_value)})" if p_value is not None else ""
        reason = f"agrees {direction} with people{tested}"
    elif estimate.n < MIN_ITEMS or (p_value is None and not _has_interval(estimate)):
        status = "undecided"
        reason = f"too few {unit}s: at least {MIN_ITEMS} needed"
    else:
        needed = needs(items_needed(estimate), estimate.n, unit)
        reason = f"no significant change in agreement{needed}"
    interval = format_interval(estimate.low, estimate.high, DECIMALS)
    change = f"{signed(estimate.value, DECIMALS)} {interval}".rstrip()
    spearman_before = number(agreement.before, DECIMALS)
    spearman_after = number(agreement.after, DECIMALS)
    return Decision(
        status,
        f"{reason}; scores {moved}",
        f"spearman {spearman_after}, {change}",
        estimate=estimate,
        before=f"spearman {spearman_before}",
    )


def _has_interval(estimate: Estimate) -> bool:
    return estimate.low is not None and estimate.high is not None


def _is_significant(estimate: Estimate, p_value: float | None) -> bool:
    """Return whether the test shows a change or, without a test, the interval."""
    if p_value is not None:
        return p_value < ALPHA
    if estimate.low is None or estimate.high is None:
        return False
    return not estimate.low <= 0 <= estimate.high
