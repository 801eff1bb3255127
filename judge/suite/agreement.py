"""Agreement with human ratings: the expectation of a minimal correlation, and its change from a baseline."""

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
    CorrelationWithRatings,
    change_in_agreement,
    usual_level,
)
from judge.stats.power import ALPHA, items_needed
from judge.stats.power import MIN_ITEMS as FEWEST
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
from judge.suite.evidence import NEAR, CaseScores, Undecidable, format_estimate, needs
from judge.table import matrix

PLACES = 2
_OVER: Mapping[Level, str] = {
    "document": "within items",
    "item": "over all texts",
    "system": "between systems' means",
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
        description="document: within items (default if most items have three rated texts or more); item: over all "
        "texts (otherwise the default); system: between the systems' means.",
    )

    @property
    def minima(self) -> dict[Coefficient, float]:
        minima = ((name, getattr(self, name)) for name in get_args(Coefficient))
        return {name: minimum.min for name, minimum in minima if minimum is not None}


class Agreement(Case):
    """The scores correlate with human ratings of the criterion."""

    kind = "agreement"
    needs_ratings = True

    human: Coefficients

    def check_keys(self) -> None:
        if self.text:
            self.mistake("human ratings are in the data; leave text out", "text")

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        rated = {name: None for sample in texts for name in sample.human}
        if criterion.name not in rated:
            if excluded := ledger.excluded(texts, criterion.name):
                raise ConfigError(
                    f"human: no human rating {criterion.name!r} is left ({excluded}); rate other texts"
                )
            has = f"rated: {', '.join(rated)}" if rated else "the data has no ratings"
            raise ConfigError(
                f"human: no text has a human rating {criterion.name!r} ({has}); name its column with "
                f"map: {{rating.{criterion.name}: COLUMN}}"
            )

    def describe(self) -> str:
        return f"{self.about()} agrees with human ratings"

    def expected(self, context: CaseContext) -> str:
        return ", ".join(
            f"{name} ≥ {short(minimum)}" for name, minimum in self.human.minima.items()
        )

    def decide(self, context: CaseContext) -> Decision:
        scored, criterion = context.scored(), self.stem()
        texts = {*context.texts}
        samples = scored.result.table.samples
        rated = [s for s in samples if s.key in texts and criterion in s.human]
        if not rated:
            raise Undecidable(f"none of the texts has a human rating for {display_name(criterion)}")
        lacking, detail = scored.describe_missing(
            [(*s.key, "") for s in rated if scored.score(*s.key) is None]
        )
        level = self.human.level or usual_level(rated)
        ratings = matrix(rated, {s.key: s.human[criterion] for s in rated})
        correlation = CorrelationWithRatings(ratings, Bootstrap(seed=context.seed)).correlate(
            matrix(rated, scored.values(rated))
        )
        excluded = ledger.excluded((s for s in samples if s.key in texts), criterion)
        if level in correlation.lacking:
            raise Undecidable(joined(correlation.lacking[level], excluded), detail)
        minima = self.human.minima
        estimates = {name: e for name in minima if (e := correlation.estimates.get((level, name)))}
        if len(estimates) < len(minima):
            raise Undecidable("a coefficient is undefined on these texts", detail)
        items = len({sample.item for sample in rated})
        decisions = [
            _decide_coefficient(e, minima[name], level, items) for name, e in estimates.items()
        ]
        first = next(iter(estimates.values()))
        over = f"{_OVER[level]}, of {first.n:,} {UNITS[level]}{'s' if first.n != 1 else ''}"
        return Decision(
            worst(decisions).status,
            joined(
                *dict.fromkeys(decision.reason for decision in decisions), over, lacking, excluded
            ),
            ", ".join(f"{name} {format_estimate(e, PLACES)}" for name, e in estimates.items()),
            estimate=first,
            detail=detail,
        )


def _decide_coefficient(e: Estimate, least: float, level: Level, items: int) -> Decision:
    if e.n < FEWEST:
        return Decision("undecided", f"too few {UNITS[level]}s: at least {FEWEST} needed")
    if e.low is None or e.high is None:
        fewest = INTERVAL_ITEMS.get(level)
        reason = f"too few items: at least {fewest} needed" if fewest else NO_SYSTEM_INTERVAL
        return Decision("undecided", reason)
    if e.low >= least - NEAR:
        return Decision("passed")
    if e.high < least - NEAR:
        return Decision("failed", f"{e.name} below {short(least)}")
    n, unit = (
        (items, "item") if level == "system" else (e.n, UNITS[level])
    )  # resampling is over items
    margin = replace(e, value=e.value - least, low=e.low - least, high=e.high - least, n=n)
    return Decision(
        "undecided",
        f"no significant difference from {e.name} {short(least)}{needs(items_needed(margin), n, unit)}",
    )


# Two runs


@dataclass(frozen=True, slots=True)
class AgreementChange:
    """Spearman with people before and after, and the difference with its interval, at one level."""

    before: float
    after: float
    estimate: Estimate
    level: Level


def agreement_change(
    result: Result, baseline: Result, criterion: str, *, criteria: int, seed: int
) -> AgreementChange | None:
    """Return the change; None if too few rated texts have both scores, or a coefficient is undefined.

    The interval has a confidence of 1 − .05 / `criteria` (Bonferroni), because it decides if there is no p. Raises
    DataError for a rating that either run's criterion has seen.
    """
    ledger.check(result.table.samples, ledger.seen_by(baseline.table.columns))
    rated = [sample for sample in result.table.samples if criterion in sample.human]
    if len(rated) < MIN_CORRELATION_ITEMS:
        return None
    try:
        scores = [
            CaseScores.for_criterion(run, criterion, {s.item for s in rated})
            for run in (baseline, result)
        ]
    except Undecidable:
        return None
    old, new = (side.values(rated) for side in scores)
    level = usual_level(rated)
    shifts, _ = change_in_agreement(
        rated, criterion, old, new, levels=(level,), seed=seed, confidence=1 - ALPHA / criteria
    )
    shift = shifts.get(level)
    if shift is None or shift.change is None:
        return None
    return AgreementChange(shift.before.value, shift.after.value, shift.change, level)


def decide_agreement(agreement: AgreementChange, p: float | None, moved: str) -> Decision:
    """Fail only if the scores correlate significantly worse with people; `moved` describes how the scores moved.

    `p` is after Holm. Without a test, as over all texts, the interval decides.
    """
    e, unit = agreement.estimate, UNITS[agreement.level]
    ends = None if e.low is None or e.high is None else (e.low, e.high)
    significant = p < ALPHA if p is not None else ends is not None and not ends[0] <= 0 <= ends[1]
    if significant:
        status: Status = "failed" if e.value < 0 else "passed"
        tested = f" ({format_p(p)})" if p is not None else ""
        reason = f"agrees {'better' if e.value > 0 else 'worse'} with people{tested}"
    elif e.n < FEWEST or (ends is None and p is None):
        status, reason = "undecided", f"too few {unit}s: at least {FEWEST} needed"
    else:
        status, reason = (
            "passed",
            f"no significant change in agreement{needs(items_needed(e), e.n, unit)}",
        )
    change = f"{signed(e.value, PLACES)} {format_interval(e.low, e.high, PLACES)}"
    return Decision(
        status,
        f"{reason}; scores {moved}",
        f"spearman {number(agreement.after, PLACES)}, {change}".rstrip(),
        estimate=e,
        before=f"spearman {number(agreement.before, PLACES)}",
    )
