"""Expect a minimal correlation of the judge with people's ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from judge.core.errors import ConfigError
from judge.core.records import Criterion, Estimate, Sample
from judge.stats.bootstrap import Bootstrap
from judge.stats.correlation import MIN_CORRELATION_ITEMS, UNITS, CorrelationWithRatings, Level, matrix, usual_level
from judge.stats.power import MIN_ITEMS as FEWEST
from judge.stats.power import items_needed
from judge.suite.evidence import NEAR, Undecidable, criterion_name, format_estimate, would_take
from judge.suite.expectations.context import CaseContext, CaseOutcome, Decision, about, display_name, joined, short
from judge.suite.records import Agreement, Case, Policy, Status

PLACES = 2
UNDECIDED: Policy = "fail"
_OVER: Mapping[Level, str] = {"document": "within items", "item": "over all texts", "system": "between systems' means"}


def sentence(case: Case, agreement: Agreement) -> str:
    return f"{about(case)} goes with people's ratings"


def check(agreement: Agreement, criterion: Criterion, texts: Sequence[Sample]) -> None:
    rated = {name: None for sample in texts for name in sample.human}
    if criterion.name not in rated:
        has = f"they rated {', '.join(rated)}" if rated else "the data has no ratings"
        raise ConfigError(
            f"human: no text has people's rating {criterion.name!r} ({has}); name its column with "
            f"map: {{human.{criterion.name}: COLUMN}}"
        )


def expected(context: CaseContext, agreement: Agreement) -> str:
    return ", ".join(f"{coefficient} ≥ {short(least)}" for coefficient, least in agreement.least.items())


def decide(context: CaseContext, agreement: Agreement) -> CaseOutcome:
    scored, by = context.scored(), criterion_name(context.case.criterion)
    texts = {*context.texts}
    rated = [s for s in scored.result.table.samples if (s.item, s.system) in texts and by in s.human]
    if not rated:
        raise Undecidable(f"none of the texts has a rating by people for {display_name(by)}")
    lost = [(s.item, s.system, "") for s in rated if scored.score(s.item, s.system) is None]
    lacking, detail = scored.lacking(lost) if lost else ("", "")
    level = agreement.level or usual_level(rated)
    values = {(s.item, s.system): score.value for s in rated if (score := scored.score(s.item, s.system))}
    human_ratings = CorrelationWithRatings(
        matrix(rated, {(s.item, s.system): s.human[by] for s in rated}), Bootstrap(seed=context.seed)
    )
    correlation = human_ratings.correlate(matrix(rated, values))
    if level in correlation.lacking:
        raise Undecidable(correlation.lacking[level], detail)
    estimates = {name: correlation.estimates.get((level, name)) for name in agreement.least}
    items = len({sample.item for sample in rated})
    decisions = [_decide_coefficient(e, agreement.least[name], level, items) for name, e in estimates.items() if e]
    if len(decisions) < len(estimates):
        raise Undecidable("a coefficient is undefined on these texts", detail)
    status: Status = next(
        (s for s in ("failed", "undecided") if s in {decision.status for decision in decisions}), "passed"
    )
    first = next(e for e in estimates.values() if e)
    parts = [f"{name} {format_estimate(e, PLACES)}" for name, e in estimates.items() if e]
    over = f"of {first.n:,} {UNITS[level]}{'s' if first.n != 1 else ''}"
    remark = joined(*dict.fromkeys(decision.remark for decision in decisions), f"{_OVER[level]}, {over}", lacking)
    return CaseOutcome(status, ", ".join(parts), remark, None, first, detail=detail)


def _decide_coefficient(e: Estimate, least: float, level: Level, items: int) -> Decision:
    if e.n < FEWEST:
        return Decision("undecided", f"too few {UNITS[level]}s to tell: {FEWEST} or more")
    if (
        e.low is None or e.high is None or items < MIN_CORRELATION_ITEMS
    ):  # of two, drawn anew, there are three different resamples
        return Decision("undecided", f"too few items to tell: {MIN_CORRELATION_ITEMS} or more")
    if e.low >= least - NEAR:
        return Decision("passed")
    if e.high < least - NEAR:
        return Decision("failed", f"{e.name} below {short(least)}")
    n, unit = (items, "item") if level == "system" else (e.n, UNITS[level])  # what is drawn anew are items
    margin = replace(e, value=e.value - least, low=e.low - least, high=e.high - least, n=n)
    return Decision(
        "undecided", f"{e.name} not told apart from {short(least)}{would_take(items_needed(margin), n, unit)}"
    )
