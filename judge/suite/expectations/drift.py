"""Limit how far the scores may move from those of a baseline run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge.core.format import number, percent
from judge.core.records import Criterion, Sample
from judge.stats.bootstrap import wilson_interval as wilson
from judge.suite.evidence import NEAR, MeanTest, Undecidable, mean
from judge.suite.expectations.baseline import format_change, pair_runs
from judge.suite.expectations.context import (
    CaseContext,
    CaseOutcome,
    Decision,
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


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit on a move: `sign` is 1 for a move down and −1 for one up, `verb` names a larger one."""

    sign: int
    most: float
    verb: str


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
    limits: list[_Limit] = []
    if drift.max_shift is not None:
        limits += [_Limit(1, drift.max_shift, "moved"), _Limit(-1, drift.max_shift, "moved")]
    if drift.max_drop is not None:
        limits.append(_Limit(-1 if scored.column.better == "lower" else 1, drift.max_drop, "fell"))
    decimals = places(scored.column)
    still, *means = mean(both.items(), 0.0, *(-limit.sign * limit.most for limit in limits), seed=context.seed)
    decisions = [_check_limit(test, limit) for test, limit in zip(means, limits, strict=True)]
    n = len(both.texts)
    flips = None if drift.max_flips is None else both.flips()
    if flips is not None:
        most_flips = drift.max_flips or 0.0
        if len(flips) <= most_flips * n + NEAR:
            decisions.append(Decision("passed"))
        else:
            flipped = most(f"{display_name(item)} ({display_name(system)})" for item, system in flips)
            decisions.append(Decision("failed", f"more than {share(most_flips)} flipped: {flipped}"))
    single = "one reply each" if still.single and not still.too_few_reason else ""
    remark = [*dict.fromkeys(decision.remark for decision in decisions), *([single, still.alike] if limits else [])]
    move = still.estimate if limits else None
    parts = [] if move is None else [format_change(move, decimals)]
    parts += [] if flips is None else [f"{len(flips):,} of {n:,} flipped ({percent(len(flips) / n)})"]
    return CaseOutcome(
        min((decision.status for decision in decisions), key=_WORST.index),
        ", ".join(parts),
        joined(*remark, both.some, lacking),
        estimate=still.estimate if limits else wilson(len(flips or ()), n),
        before=number(both.mean_before(), decimals),
        detail=detail,
    )


def _check_limit(test: MeanTest, limit: _Limit) -> Decision:
    if test.too_few_reason:
        return Decision("undecided", test.too_few_reason)
    if test.significant_direction == -limit.sign:
        return Decision("failed", f"{limit.verb} by more than {short(limit.most)}{test.tested}")
    e = test.estimate
    if min(limit.sign * (e.value if x is None else x) for x in (e.low, e.high)) < -NEAR:
        return Decision(
            "undecided", f"not told apart from a move by {short(-limit.sign * limit.most)}{test.items_needed}"
        )
    return Decision("passed")
