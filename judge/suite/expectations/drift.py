"""How far the scores have moved from those of a baseline run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.core.messages import number, percent
from judge.core.records import Criterion, Sample
from judge.stats.bootstrap import wilson_interval as wilson
from judge.suite.evidence import NEAR, MeanTest, Text, Undecidable, mean
from judge.suite.expectations.baseline import format_change, pair_runs
from judge.suite.expectations.context import (
    CaseContext,
    CaseOutcome,
    about,
    display_name,
    joined,
    missing,
    most,
    places,
    share,
    short,
)
from judge.suite.records import Case, Drift, Policy, Status

UNDECIDED: Policy = "pass"
_WORST: tuple[Status, ...] = ("failed", "undecided", "passed")
_Limit = tuple[int, float, str]
"""1 for a move down and −1 for one up, the most that is allowed, and what a larger one is called."""


def sentence(case: Case, drift: Drift) -> str:
    return f"{about(case)} stays as it was"


def check(drift: Drift, criterion: Criterion, texts: Sequence[Sample]) -> None:
    """Scores may move on any scale."""


def expected(context: CaseContext, drift: Drift) -> str:
    shift, drop, flips = drift.max_shift, drift.max_drop, drift.max_flips
    parts = [f"shift ≤ {short(shift)}"] if shift is not None else []
    parts += [f"drop ≤ {short(drop)}"] if drop is not None else []
    return ", ".join([*parts, f"flips ≤ {share(flips)}"] if flips is not None else parts)


def decide(context: CaseContext, drift: Drift) -> CaseOutcome:
    if context.baseline is None:
        raise Undecidable("there is no baseline: name one with --baseline, or make one with --update-baseline")
    scored = context.scored()
    lost = [(*text, "") for text in context.texts if scored.score(*text) is None]
    lacking, detail = missing(scored, lost, [text for text in context.texts if scored.score(*text)])
    both = pair_runs(context.baseline, scored, context.case.criterion, context.texts)
    limits, at = [*_limits(drift, scored.column.better == "lower")], places(scored.column)
    still, *means = mean(both.items(), 0.0, *(-sign * end for sign, end, _ in limits), seed=context.seed)
    rows = [_check_limit(test, limit) for test, limit in zip(means, limits, strict=True)]
    flips = None if drift.max_flips is None else both.flips()
    if flips is not None:
        rows.append(_check_flips(flips, len(both.texts), drift.max_flips or 0.0))
    single = "one reply each" if still.single and not still.too_few_reason else ""
    remark = [*dict.fromkeys(remark for _, remark in rows), *([single, still.alike] if limits else [])]
    move = still.estimate if limits else None
    n = len(both.texts)
    parts = [] if move is None else [format_change(move, at)]
    parts += [] if flips is None else [f"{len(flips):,} of {n:,} flipped ({percent(len(flips) / n)})"]
    return CaseOutcome(
        min((status for status, _ in rows), key=_WORST.index),
        ", ".join(parts),
        joined(*remark, both.some, lacking),
        estimate=still.estimate if limits else wilson(len(flips or ()), len(both.texts)),
        before=number(both.mean_before(), at),
        detail=detail,
    )


def _limits(drift: Drift, lower: bool) -> Iterator[_Limit]:
    """`lower`: the lower end of the scale is the good one, and a drop goes up."""
    if drift.max_shift is not None:
        yield from ((1, drift.max_shift, "moved"), (-1, drift.max_shift, "moved"))
    if drift.max_drop is not None:
        yield -1 if lower else 1, drift.max_drop, "fell"


def _check_limit(test: MeanTest, limit: _Limit) -> tuple[Status, str]:
    sign, end, verb = limit
    if test.too_few_reason:
        return "undecided", test.too_few_reason
    if test.significant_direction == -sign:
        return "failed", f"{verb} by more than {short(end)}{test.tested}"
    e = test.estimate
    if min(sign * (e.value if x is None else x) for x in (e.low, e.high)) < -NEAR:
        return "undecided", f"not told apart from a move by {short(-sign * end)}{test.items_needed}"
    return "passed", ""


def _check_flips(flips: Sequence[Text], n: int, limit: float) -> tuple[Status, str]:
    if len(flips) <= limit * n + NEAR:
        return "passed", ""
    named = most(f"{display_name(item)} ({display_name(system)})" for item, system in flips)
    return "failed", f"more than {share(limit)} flipped: {named}"
