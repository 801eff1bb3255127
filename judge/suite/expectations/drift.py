"""How far the scores have moved from those of a baseline run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.core.messages import number, percent
from judge.core.records import Criterion, Estimate, Sample
from judge.stats.bootstrap import wilson_interval as wilson
from judge.suite.evidence import NEAR, MeanTest, Text, Undecidable, mean
from judge.suite.expectations.baseline import beside, change
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


def expected(asked: CaseContext, drift: Drift) -> str:
    shift, drop, flips = drift.max_shift, drift.max_drop, drift.max_flips
    parts = [f"shift ≤ {short(shift)}"] if shift is not None else []
    parts += [f"drop ≤ {short(drop)}"] if drop is not None else []
    return ", ".join([*parts, f"flips ≤ {share(flips)}"] if flips is not None else parts)


def decide(asked: CaseContext, drift: Drift) -> CaseOutcome:
    if asked.baseline is None:
        raise Undecidable("there is no baseline: name one with --baseline, or make one with --update-baseline")
    scored = asked.scored()
    lost = [(*text, "") for text in asked.texts if scored.score(*text) is None]
    lacking, detail = missing(scored, lost, [text for text in asked.texts if scored.score(*text)])
    both = beside(asked.baseline, scored, asked.case.criterion, asked.texts)
    limits, at = [*_limits(drift, scored.column.better == "lower")], places(scored.column)
    still, *means = mean(both.items(), 0.0, *(-sign * end for sign, end, _ in limits), seed=asked.seed)
    rows = [_kept(one, limit) for one, limit in zip(means, limits, strict=True)]
    flips = None if drift.max_flips is None else both.flips()
    if flips is not None:
        rows.append(_counted(flips, len(both.texts), drift.max_flips or 0.0))
    single = "one reply each" if still.single and not still.too_few_reason else ""
    said = [*dict.fromkeys(said for _, said in rows), *([single, still.alike] if limits else [])]
    return CaseOutcome(
        min((status for status, _ in rows), key=_WORST.index),
        _found(still.estimate if limits else None, flips, len(both.texts), at),
        joined(*said, both.some, lacking),
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


def _kept(one: MeanTest, limit: _Limit) -> tuple[Status, str]:
    sign, end, what = limit
    if one.too_few_reason:
        return "undecided", one.too_few_reason
    if one.significant_direction == -sign:
        return "failed", f"{what} by more than {short(end)}{one.tested}"
    e = one.estimate
    if min(sign * (e.value if x is None else x) for x in (e.low, e.high)) < -NEAR:
        return "undecided", f"not told apart from a move by {short(-sign * end)}{one.items_needed}"
    return "passed", ""


def _counted(flips: Sequence[Text], n: int, limit: float) -> tuple[Status, str]:
    if len(flips) <= limit * n + NEAR:
        return "passed", ""
    named = most(f"{display_name(item)} ({display_name(system)})" for item, system in flips)
    return "failed", f"more than {share(limit)} flipped: {named}"


def _found(move: Estimate | None, flips: Sequence[Text] | None, n: int, places: int) -> str:
    parts = [] if move is None else [change(move, places)]
    parts += [] if flips is None else [f"{len(flips):,} of {n:,} flipped ({percent(len(flips) / n)})"]
    return ", ".join(parts)
