"""Limit the change of scores from a baseline run."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from pydantic import Field, model_validator

from judge.core.format import number, percent
from judge.core.records import Estimate
from judge.stats.bootstrap import wilson_interval
from judge.suite.evidence import NEAR, MeanTest, Undecidable, format_change, mean, pair_runs
from judge.suite.expectations.case import (
    Case,
    CaseContext,
    Decision,
    Keys,
    Points,
    Policy,
    Share,
    Status,
    at_least_one_of,
    display_name,
    joined,
    missing_texts,
    most,
    percentage,
    places,
    short,
)

_WORST: tuple[Status, ...] = ("failed", "undecided", "passed")


class Moves(Keys):
    """Limits of the change from the baseline."""

    model_config = at_least_one_of("max_shift", "max_drop", "max_flips")

    max_shift: Points | None = Field(
        default=None, description="Change of the mean, up or down, in points of the scale."
    )
    max_drop: Points | None = Field(default=None, description="Worsening of the mean, in points of the scale.")
    max_flips: Share | None = Field(default=None, description="Share of the texts whose likeliest label changes.")

    @model_validator(mode="after")
    def _check_limits(self) -> Moves:
        if self.max_shift is None and self.max_drop is None and self.max_flips is None:
            raise ValueError("write max_shift, max_drop or max_flips")
        return self


class _Limit(NamedTuple):
    """A limit on a change: `sign` is 1 for a fall and −1 for a rise, `verb` names a larger change."""

    sign: int
    most: float
    verb: str


class Drift(Case):
    """The scores stay near the baseline; flipped labels are counted, not estimated."""

    kind: ClassVar[str] = "drift"
    undecided_is: ClassVar[Policy] = "pass"
    needs_baseline: ClassVar[bool] = True

    drift: Moves

    @property
    def bounds_mean(self) -> bool:
        limits_mean = self.drift.max_shift is not None or self.drift.max_drop is not None
        return limits_mean and not (self.item or self.system or self.texts)

    def describe(self) -> str:
        return f"{self.about()} stays the same"

    def expected(self, context: CaseContext) -> str:
        limits = (
            ("shift", self.drift.max_shift, short),
            ("drop", self.drift.max_drop, short),
            ("flips", self.drift.max_flips, percentage),
        )
        return ", ".join(f"{name} ≤ {write(limit)}" for name, limit, write in limits if limit is not None)

    def decide(self, context: CaseContext) -> Decision:
        if context.baseline is None:
            raise Undecidable("no baseline: name one with --baseline, or make one with --update-baseline")
        scored = context.scored()
        lacking, detail = missing_texts(scored, context.texts)
        runs = pair_runs(context.baseline, scored, self.criterion, context.texts)
        limits: list[_Limit] = []
        if (shift := self.drift.max_shift) is not None:
            limits += [_Limit(1, shift, "changed"), _Limit(-1, shift, "changed")]
        if (drop := self.drift.max_drop) is not None:
            limits.append(_Limit(-1 if scored.column.better == "lower" else 1, drop, "fell"))
        still, *means = mean(runs.items(), 0.0, *(-limit.sign * limit.most for limit in limits), seed=context.seed)
        decisions = [_check_limit(test, limit) for test, limit in zip(means, limits, strict=True)]
        decimals, n, measured, remarks = places(scored.column), len(runs.texts), [], []
        if limits:
            measured.append(format_change(still.estimate, decimals))
            remarks = ["one reply each" if still.single and not still.too_few_reason else "", still.alike]
        estimate: Estimate | None = still.estimate
        if (max_flips := self.drift.max_flips) is not None:
            flips = runs.flips()
            measured.append(f"{len(flips):,} of {n:,} flipped ({percent(len(flips) / n)})")
            if len(flips) <= max_flips * n + NEAR:
                decisions.append(Decision("passed"))
            else:
                flipped = most(f"{display_name(item)} ({display_name(system)})" for item, system in flips)
                decisions.append(Decision("failed", f"more than {percentage(max_flips)} flipped: {flipped}"))
            estimate = still.estimate if limits else wilson_interval(len(flips), n)
        reason = dict.fromkeys(decision.reason for decision in decisions)
        return Decision(
            min((decision.status for decision in decisions), key=_WORST.index),
            joined(*reason, *remarks, runs.some, lacking),
            ", ".join(measured),
            estimate=estimate,
            before=number(runs.mean_before(), decimals),
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
            "undecided",
            f"no significant difference from a change of {short(-limit.sign * limit.most)}{test.items_needed}",
        )
    return Decision("passed")
