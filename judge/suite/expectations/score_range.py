"""Expect a text's score, or the mean over texts, to lie in a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, ClassVar

from pydantic import Field, model_validator

from judge.core.errors import ConfigError
from judge.core.records import Criterion, Estimate, Sample
from judge.suite.evidence import NEAR, CaseScores, MeanTest, Text, counts, flip_probability, format_estimate, mean
from judge.suite.expectations.case import (
    Case,
    CaseContext,
    Decision,
    Keys,
    Number,
    at_least_one_of,
    flaky,
    joined,
    of_items,
    places,
    short,
)


class Range(Keys):
    """Scale points from `min` to `max`; None leaves an end open."""

    model_config = at_least_one_of("min", "max")

    min: Number | None = Field(default=None, description="The score, or the mean over the texts, is at least this.")
    max: Number | None = Field(default=None, description="The score, or the mean over the texts, is at most this.")

    @model_validator(mode="after")
    def _check_ends(self) -> Range:
        if self.min is None and self.max is None:
            raise ValueError("write min, max or both; or label")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min:g} is above max {self.max:g}")
        return self

    def __str__(self) -> str:
        if self.min is None or self.max is None:
            return f"≥ {short(self.min)}" if self.min is not None else f"≤ {short(self.max or 0.0)}"
        return f"{short(self.min)} to {short(self.max)}" if self.min < self.max else f"= {short(self.min)}"

    def __contains__(self, value: float) -> bool:
        above = self.min is None or value >= self.min - NEAR
        return above and (self.max is None or value <= self.max + NEAR)


class ScoreRange(Case):
    """The score of a text, or the mean over the texts, lies in a range."""

    kind: ClassVar[str] = "score_range"

    expect: Range

    @classmethod
    def matches(cls, keys: Mapping[str, Any]) -> bool:
        expect = keys.get("expect")
        return expect is not None and not (isinstance(expect, dict) and expect.get("label") is not None)

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        scale = criterion.scale
        for name, end in (("min", self.expect.min), ("max", self.expect.max)):
            if end is not None and not scale.low <= end <= scale.high:
                raise ConfigError(
                    f"{name}: {end:g} is not on the scale of {criterion.name}, from {scale.low:g} to {scale.high:g}"
                )

    def describe(self) -> str:
        both = self.expect.min is not None and self.expect.max is not None and self.expect.min < self.expect.max
        return f"{self.about()}{':' if both else ''} {self.expect}"

    def expected(self, context: CaseContext) -> str:
        return str(self.expect)

    def decide(self, context: CaseContext) -> Decision:
        scored = context.scored()
        items, lacking, detail = of_items(scored, context.by_item)
        lone = context.texts[0] if len(context.texts) == 1 else None
        ends = [end for end in (self.expect.min, self.expect.max) if end is not None]
        means = mean(items, *ends, seed=context.seed)
        estimate, column = means[0].moved(ends[0]), scored.column
        if estimate.low is not None and estimate.high is not None:
            # An interval does not leave the scale.
            low, high = (-inf if column.low is None else column.low), (inf if column.high is None else column.high)
            estimate = replace(estimate, low=max(estimate.low, low), high=min(estimate.high, high))
        decision = self._decide_ends(means)
        odds, flakiness = self._flakiness(scored, lone, estimate) if lone else (None, "")
        reason = joined(
            decision.reason,
            "" if not means[0].single else "one reply" if lone else "one reply each",
            means[0].alike,
            flakiness,
            lacking,
        )
        return Decision(
            decision.status, reason, format_estimate(estimate, places(column)), odds, estimate, detail=detail
        )

    def _decide_ends(self, means: Sequence[MeanTest]) -> Decision:
        """Pass if every end holds; the reason is about the end that does not, or not for certain."""
        ends = [(end, sign) for end, sign in ((self.expect.min, 1), (self.expect.max, -1)) if end is not None]
        doubt = ""
        for test, (end, sign) in zip(means, ends, strict=True):
            e = test.estimate
            least = min(sign * (e.value if x is None else x) for x in (e.low, e.high))
            if test.significant_direction == -sign:
                return Decision("failed", f"{'below' if sign > 0 else 'above'} {short(end)}{test.tested}")
            if least < -NEAR:
                doubt = doubt or f"no significant difference from {short(end)}{test.items_needed}"
        return Decision("undecided", doubt) if doubt else Decision("passed")

    def _flakiness(self, scored: CaseScores, text: Text, estimate: Estimate) -> tuple[float | None, str]:
        """Return the share of single replies that would turn the verdict, if it is neither small nor nearly all."""
        each = [
            flip_probability(score, self.expect.__contains__, counts(column, scored.result.info))
            for score, column in scored.each(*text)
        ]
        known = [p for p in each if p is not None]
        if not known or len(known) < len(each):
            return None, ""
        outside, inside = sum(known) / len(known), estimate.value in self.expect
        turned = outside if inside else 1 - outside
        if not flaky(turned):
            return None, ""
        low, high = self.expect.min, self.expect.max
        if high is None and low is not None:
            where = f"{'fall below' if inside else 'reach'} {short(low)}"
        elif low is None and high is not None:
            where = f"{'go above' if inside else 'stay within'} {short(high)}"
        else:
            where = f"fall {'outside' if inside else 'inside'} of {str(self.expect).removeprefix('= ')}"
        return turned, f"flaky: {turned:.0%} of single replies {where}"
