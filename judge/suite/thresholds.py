"""Expectations that scores reach a limit: a range of the scale, `pass_at`, and a share of texts that pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from judge.core.errors import ConfigError
from judge.core.format import first_names, one_line, percent
from judge.core.records import Criterion, Estimate, Sample
from judge.stats.bootstrap import mean_estimate, wilson_interval
from judge.suite.case import (
    AnyOf,
    Case,
    CaseContext,
    Decision,
    Keys,
    Number,
    decide_limit,
    describe_flaky,
    joined,
    percentage,
    places,
    short,
    worst,
)
from judge.suite.evidence import (
    NEAR,
    CaseScores,
    Text,
    flip_probability,
    format_estimate,
    item_means,
    label_values,
    mean,
    mean_on_scale,
    values,
)


class Range(AnyOf):
    """Scale points from `min` to `max`; None leaves an end open."""

    hint = "write min, max or both; or label; or expect: pass"

    min: Number | None = Field(
        default=None, description="The score, or the mean over the texts, is at least this."
    )
    max: Number | None = Field(
        default=None, description="The score, or the mean over the texts, is at most this."
    )

    @model_validator(mode="after")
    def _check_ends(self) -> Range:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min:g} is above max {self.max:g}")
        return self

    def __str__(self) -> str:
        if self.min is None or self.max is None:
            return f"≥ {short(self.min)}" if self.min is not None else f"≤ {short(self.max or 0.0)}"
        return (
            f"{short(self.min)} to {short(self.max)}"
            if self.min < self.max
            else f"= {short(self.min)}"
        )

    def __contains__(self, value: float) -> bool:
        return all(sign * (value - end) >= -NEAR for end, sign in self.ends)

    @property
    def ends(self) -> list[tuple[float, int]]:
        """The limits, each with the side on which scores must be: 1 above, −1 below."""
        return [(end, sign) for end, sign in ((self.min, 1), (self.max, -1)) if end is not None]


class ScoreRange(Case):
    """The score of a text, or the mean over the texts, lies in a range."""

    kind = "score_range"
    generalizes = True

    expect: Range

    @classmethod
    def matches(cls, keys: Mapping[str, Any]) -> bool:
        expect = keys.get("expect")
        labelled = isinstance(expect, dict) and expect.get("label") is not None
        return expect is not None and expect != "pass" and not labelled

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        scale = criterion.scale
        for end, sign in self.expect.ends:
            if not scale.low <= end <= scale.high:
                on = f"not on the scale of {criterion.name}, from {scale.low:g} to {scale.high:g}"
                raise ConfigError(f"{'min' if sign > 0 else 'max'}: {end:g} is {on}")

    def describe(self) -> str:
        return f"{self.about()}{':' if ' to ' in str(self.expect) else ''} {self.expect}"

    def expected(self, context: CaseContext) -> str:
        return str(self.expect)

    def decide(self, context: CaseContext) -> Decision:
        scored = context.scored()
        lacking, detail = scored.missing_texts(context.texts)
        items = item_means(context.texts, scored.parts, scored.source_items)
        lone = context.texts[0] if len(context.texts) == 1 else None
        ends = self.expect.ends
        column, limits = scored.column, [end for end, _ in ends]
        if len(items) == 1:
            means = mean(items, *limits, seed=context.seed)
            estimate = means[0].moved(limits[0])
        else:
            means = mean_on_scale(
                items, *limits, low=column.low, high=column.high, seed=context.seed
            )
            estimate = mean_estimate(values(items), column.low, column.high)
        if estimate.low is not None and estimate.high is not None:
            # An interval does not leave the scale.
            low, high = (
                (-inf if column.low is None else column.low),
                (inf if column.high is None else column.high),
            )
            estimate = replace(estimate, low=max(estimate.low, low), high=min(estimate.high, high))
        decision = worst(
            Decision("passed")
            if end == (column.low if sign > 0 else column.high)  # no score is beyond the scale
            else decide_limit(
                test, sign, f"{'below' if sign > 0 else 'above'} {short(end)}", short(end)
            )
            for test, (end, sign) in zip(means, ends, strict=True)
        )
        odds, flakiness = self._flakiness(scored, lone, estimate) if lone else (None, "")
        reason = joined(
            decision.reason,
            "" if not means[0].single else scored.one_value if lone else "one reply each",
            means[0].alike,
            flakiness,
            lacking,
        )
        return Decision(
            decision.status,
            reason,
            format_estimate(estimate, places(column)),
            odds,
            estimate,
            detail=detail,
        )

    def _flakiness(
        self, scored: CaseScores, text: Text, estimate: Estimate
    ) -> tuple[float | None, str]:
        """Return the share of single replies that would turn the verdict, if it is neither small nor nearly all."""
        each = [
            flip_probability(score, self.expect.__contains__, label_values(column))
            for score, column in scored.each(*text)
        ]
        known = [p for p in each if p is not None]
        if not known or len(known) < len(each):
            return None, ""
        outside, inside = sum(known) / len(known), estimate.value in self.expect
        turned = outside if inside else 1 - outside
        low, high = self.expect.min, self.expect.max
        if high is None and low is not None:
            where = f"{'fall below' if inside else 'reach'} {short(low)}"
        elif low is None and high is not None:
            where = f"{'go above' if inside else 'stay within'} {short(high)}"
        else:
            where = (
                f"fall {'outside' if inside else 'inside'} of {str(self.expect).removeprefix('= ')}"
            )
        return describe_flaky(turned, where)


class Passes(Case):
    """The text passes, or every one of several texts with a score."""

    kind = "passes"

    expect: Literal["pass"]

    @classmethod
    def matches(cls, keys: Mapping[str, Any]) -> bool:
        return keys.get("expect") == "pass"

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        hint = ", or write expect: {label: pass}" if "pass" in criterion.scale.labels else ""
        _require_pass_at(criterion, hint)

    def describe(self) -> str:
        return f"{self.about()}: pass"

    def expected(self, context: CaseContext) -> str:
        return "pass" if len(context.texts) == 1 else "pass for all"

    def decide(self, context: CaseContext) -> Decision:
        scored = context.scored()
        lacking, detail = scored.missing_texts(context.texts)
        scores = [score for text in context.texts if (score := scored.score(*text))]
        below = [score for score in scores if not scored.passes(*score.key)[0][1].value]
        if len(context.texts) == 1:
            return ScoreRange(expect=Range(min=scored.column.pass_at)).decide(context)
        names = (
            f"{one_line(score.item, 40)} {one_line(score.system, 30)}: {short(score.value)}"
            for score in below
        )
        hits, n = len(scores) - len(below), len(scores)
        return Decision(
            "failed" if below else "passed",
            joined(first_names(names), lacking),
            f"{hits:,} of {n:,} ({percent(hits / n)})",
            estimate=wilson_interval(hits, n),
            detail=detail,
        )


def _require_pass_at(criterion: Criterion, hint: str = "") -> None:
    if criterion.pass_at is None:
        raise ConfigError(
            f"{criterion.name} does not say what passes: add pass_at: or threshold: to its header{hint}"
        )


class LeastShare(Keys):
    """The least share of the texts that pass."""

    min: Annotated[Number, Field(gt=0, lt=1)] = Field(
        description="Share of the texts that pass, at least."
    )


_FEWEST_OF_SHARE = 2  # items: Student's t needs two


class PassRate(Case):
    """A share of the texts passes."""

    kind = "pass_rate"
    generalizes = True

    pass_rate: LeastShare

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        _require_pass_at(criterion)

    def describe(self) -> str:
        return f"{self.about()}: ≥ {percentage(self.pass_rate.min)} pass"

    def expected(self, context: CaseContext) -> str:
        return f"≥ {percentage(self.pass_rate.min)} pass"

    def decide(self, context: CaseContext) -> Decision:
        """Decide by Wilson's interval over the items, from two items on: a share has two labels only."""
        scored, least = context.scored(), self.pass_rate.min
        lacking, detail = scored.missing_texts(context.texts)
        items = item_means(context.texts, scored.passes, scored.source_items)
        (test,) = mean_on_scale(
            items, least, low=0.0, high=1.0, fewest=_FEWEST_OF_SHARE, seed=context.seed
        )
        estimate = mean_estimate(values(items), 0.0, 1.0, fewest=_FEWEST_OF_SHARE)
        limit = percentage(least)
        decision = decide_limit(test, 1, f"below {limit}", limit)
        found = format_share(estimate)
        return replace(
            decision,
            reason=joined(decision.reason, lacking),
            found=found,
            estimate=estimate,
            detail=detail,
        )


def format_share(e: Estimate) -> str:
    """Write `83.3% [61%, 94%]`."""
    if e.low is None or e.high is None or e.low == e.high:
        return percentage(e.value)
    return f"{percentage(e.value)} [{percentage(max(0, e.low))}, {percentage(min(1, e.high))}]"
