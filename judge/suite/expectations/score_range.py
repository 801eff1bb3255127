"""Expect a text's score, or the mean over texts, to lie in a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judge.core.errors import ConfigError
from judge.core.records import Criterion, Estimate, Sample
from judge.suite.evidence import (
    NEAR,
    CaseScores,
    MeanTest,
    Text,
    counts,
    flip_probability,
    format_estimate,
    mean,
    within,
)
from judge.suite.expectations.context import (
    CaseContext,
    CaseOutcome,
    Decision,
    about,
    flaky,
    joined,
    of_items,
    places,
    short,
)
from judge.suite.records import Band, Case, Policy

UNDECIDED: Policy = "fail"


def sentence(case: Case, band: Band) -> str:
    subject = about(case)
    if band.low is None or band.high is None:
        return f"{subject} ≥ {band.low:g}" if band.low is not None else f"{subject} ≤ {band.high:g}"
    return f"{subject}: {band.low:g} to {band.high:g}"


def check(band: Band, criterion: Criterion, texts: Sequence[Sample]) -> None:
    scale = criterion.scale
    for name, end in (("min", band.low), ("max", band.high)):
        if end is not None and not scale.low <= end <= scale.high:
            raise ConfigError(
                f"{name}: {end:g} is not on the scale of {criterion.name}, from {scale.low:g} to {scale.high:g}"
            )


def expected(context: CaseContext, band: Band) -> str:
    return _format_band(band)


def _format_band(band: Band) -> str:
    if band.low is None or band.high is None:
        return f"≥ {short(band.low)}" if band.low is not None else f"≤ {short(band.high or 0.0)}"
    return f"{short(band.low)} to {short(band.high)}" if band.low < band.high else f"= {short(band.low)}"


def decide(context: CaseContext, band: Band) -> CaseOutcome:
    scored = context.scored()
    items, lacking, detail = of_items(scored, context.by_item)
    lone = context.texts[0] if len(context.texts) == 1 else None
    ends = [end for end in (band.low, band.high) if end is not None]
    means = mean(items, *ends, seed=context.seed)
    estimate, column = means[0].moved(ends[0]), scored.column
    if estimate.low is not None and estimate.high is not None and column.low is not None and column.high is not None:
        # An interval does not leave the scale.
        estimate = replace(estimate, low=max(estimate.low, column.low), high=min(estimate.high, column.high))
    decision = _decide_band(means, band)
    odds = _share_turned(scored, lone, band, estimate) if lone else None
    return CaseOutcome(
        decision.status,
        format_estimate(estimate, places(column)),
        joined(
            decision.remark,
            "" if not means[0].single else "one reply" if lone else "one reply each",
            means[0].alike,
            _describe_flakiness(odds, band, estimate),
            lacking,
        ),
        odds,
        estimate,
        detail=detail,
    )


def _decide_band(means: Sequence[MeanTest], band: Band) -> Decision:
    """Inside where every end holds; what is said is of the end that does not, or not for certain."""
    ends = [(end, sign) for end, sign in ((band.low, 1), (band.high, -1)) if end is not None]
    doubt = ""
    for test, (end, sign) in zip(means, ends, strict=True):
        e = test.estimate
        least = min(sign * (e.value if x is None else x) for x in (e.low, e.high))
        if test.significant_direction == -sign:
            return Decision("failed", f"{'below' if sign > 0 else 'above'} {short(end)}{test.tested}")
        if least < -NEAR:
            doubt = doubt or f"not told apart from {short(end)}{test.items_needed}"
    return Decision("undecided", doubt) if doubt else Decision("passed")


def _share_turned(scored: CaseScores, text: Text, band: Band, estimate: Estimate) -> float | None:
    """The share of single replies that would have turned the verdict, if it is neither few nor nearly all."""
    each = [flip_probability(score, band, counts(column, scored.result.info)) for score, column in scored.each(*text)]
    known = [p for p in each if p is not None]
    if not known or len(known) < len(each):
        return None
    outside = sum(known) / len(known)
    turned = outside if within(estimate.value, band) else 1 - outside
    return turned if flaky(turned) else None


def _describe_flakiness(odds: float | None, band: Band, estimate: Estimate) -> str:
    if odds is None:
        return ""
    inside = within(estimate.value, band)
    if band.high is None and band.low is not None:
        where = f"{'fall below' if inside else 'reach'} {short(band.low)}"
    elif band.low is None and band.high is not None:
        where = f"{'go above' if inside else 'keep to'} {short(band.high)}"
    else:
        where = f"fall {'outside' if inside else 'inside'} of {_format_band(band).removeprefix('= ')}"
    return f"flaky: {odds:.0%} of single replies {where}"
