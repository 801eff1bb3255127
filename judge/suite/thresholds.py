"""Expectations that scores reach a limit: a range of the scale, `pass_at`, and a pass rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from judge.core.errors import ConfigError
from judge.core.format import first_names, one_line, percent
from judge.core.records import Column, Criterion, Estimate, Sample
from judge.stats.bootstrap import mean_estimate, wilson_interval
from judge.suite.case import (
    AnyOf,
    Case,
    CaseContext,
    Decision,
    Flakiness,
    Keys,
    Number,
    decide_limit,
    describe_flaky,
    joined,
    percentage,
    short,
    worst,
)
from judge.suite.case_scores import CaseScores, places
from judge.suite.evidence import (
    NEAR,
    Parts,
    flip_probability,
    item_means,
    item_values,
    label_values,
)
from judge.suite.judged_texts import TextSource
from judge.suite.mean_tests import MeanTest, format_estimate, mean, mean_on_scale
from judge.table import Text

_DECIMALS_OF_LIMIT = 3
_FEWEST_OF_SHARE = 2
"""The fewest items of a pass rate: Student's t needs two."""


class Range(AnyOf):
    """Scale points from `min` to `max`; None leaves an end open."""

    hint = "write min, max or both; or label; or expect: pass"

    min: Number | None = Field(
        default=None,
        description="The score, or the mean over the texts, is at least this.",
    )
    max: Number | None = Field(
        default=None,
        description="The score, or the mean over the texts, is at most this.",
    )

    @model_validator(mode="after")
    def _check_ends(self) -> Range:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min:g} is above max {self.max:g}")
        return self

    def __str__(self) -> str:
        if self.min is None:
            return f"≤ {short(self.max or 0.0)}"
        if self.max is None:
            return f"≥ {short(self.min)}"
        if self.min == self.max:
            return f"= {short(self.min)}"
        return f"{short(self.min)} to {short(self.max)}"

    def __contains__(self, value: float) -> bool:
        # A mean of shares may miss an end by a rounding error.
        return self.distance(value) <= NEAR

    def distance(self, value: float) -> float:
        """Return how far a value is outside the range, in points; below 0 if it is inside."""
        return max(sign * (end - value) for end, sign in self.ends)

    @property
    def ends(self) -> list[tuple[float, int]]:
        """The limits, each with the side on which scores must be: 1 above, −1 below."""
        ends: list[tuple[float, int]] = []
        if self.min is not None:
            ends.append((self.min, 1))
        if self.max is not None:
            ends.append((self.max, -1))
        return ends


class ScoreRange(Case):
    """The score of a text, or the mean over the texts, lies in a range."""

    kind = "score_range"
    generalizes = True

    expect: Range

    @classmethod
    def matches(cls, keys: Mapping[str, Any]) -> bool:
        expect = keys.get("expect")
        # `expect: pass` and `expect: {label: …}` select other classes.
        has_label = isinstance(expect, dict) and expect.get("label") is not None
        return expect is not None and expect != "pass" and not has_label

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        low = criterion.scale.low
        high = criterion.scale.high
        for end, sign in self.expect.ends:
            if not low <= end <= high:
                key = "min" if sign > 0 else "max"
                scale = f"the scale of {criterion.name}, from {low:g} to {high:g}"
                raise ConfigError(f"{key}: {end:g} is not on {scale}")

    def describe(self) -> str:
        # "coherence of a1 ≥ 4", but "coherence of a1: 2 to 4"
        colon = ":" if " to " in str(self.expect) else ""
        return f"{self.about()}{colon} {self.expect}"

    def expected(self, context: CaseContext) -> str:
        return str(self.expect)

    def shortfall(self, source: TextSource, text: Text) -> float | None:
        score = source.scores.score(*text)
        if score is None:
            return None
        return self.expect.distance(score.value)

    def decide(self, context: CaseContext) -> Decision:
        case_scores = context.scored()
        lacking, detail = case_scores.missing_texts(context.texts)
        items = item_means(context.texts, case_scores.parts, case_scores.source_items)
        column = case_scores.column
        tests = self._tests(items, column, context)
        estimate = self._estimate(items, tests, column)
        decision = self._decide_ends(tests, column)
        flakiness = Flakiness()
        one_value = "one reply each"
        if len(context.texts) == 1:
            # Over several texts, no single reply decides.
            flakiness = self._flakiness(case_scores, context.texts[0], estimate)
            one_value = case_scores.one_value
        # The evidence is the same for both ends.
        first_test = tests[0]
        replies = one_value if first_test.single else ""
        reason = joined(
            decision.reason, replies, first_test.alike, flakiness.description, lacking
        )
        return Decision(
            decision.status,
            reason,
            format_estimate(estimate, places(column)),
            flaky=flakiness.share,
            estimate=estimate,
            detail=detail,
        )

    def _decide_ends(self, tests: Sequence[MeanTest], column: Column) -> Decision:
        """Return the worst of the decisions about the ends of the range, each with its test."""
        decisions: list[Decision] = []
        sides_reached: list[str] = []
        for mean_test, (end, sign) in zip(tests, self.expect.ends, strict=True):
            end_of_scale = column.low if sign > 0 else column.high
            if end == end_of_scale:
                # No score is beyond the end of the scale.
                decisions.append(Decision("passed"))
                continue
            side = "below" if sign > 0 else "above"
            limit = short(end)
            decisions.append(decide_limit(mean_test, sign, f"{side} {limit}", limit))
            if min(sign * distance for distance in mean_test.ends) < -NEAR:
                sides_reached.append(side)
        decision = worst(decisions)
        has_evidence = not any(
            test.too_few_reason or test.rare_scores for test in tests
        )
        if decision.status == "undecided" and self._is_exact and has_evidence:
            # An interval around an exact value is never inside the range.
            sides = " and ".join(sides_reached)
            value = short(self.expect.min or 0.0)
            reason = (
                f"the interval reaches {sides} {value}: allow a range with min and max"
            )
            return replace(decision, reason=reason)
        return decision

    @property
    def _is_exact(self) -> bool:
        return self.expect.min == self.expect.max

    def loosened(self, share: float, column: Column) -> ScoreRange | None:
        if column.low is None or column.high is None:
            return None
        step = share * (column.high - column.low)
        least = None
        most = None
        if self.expect.min is not None:
            least = max(column.low, _rounded(self.expect.min - step))
        if self.expect.max is not None:
            most = min(column.high, _rounded(self.expect.max + step))
        return self.model_copy(update={"expect": Range(min=least, max=most)})

    def limit_text(self) -> str:
        end_by_key = {"min": self.expect.min, "max": self.expect.max}
        written = [
            f"{key}: {short(end)}" for key, end in end_by_key.items() if end is not None
        ]
        return ", ".join(written)

    def _tests(
        self,
        items: Sequence[Parts],
        column: Column,
        context: CaseContext,
    ) -> list[MeanTest]:
        """Return a test of the mean for each end of the range."""
        limits = [end for end, _ in self.expect.ends]
        if len(items) == 1:
            return mean(items, *limits, seed=context.seed)
        return mean_on_scale(
            items,
            *limits,
            low=column.low,
            high=column.high,
            n_resamples=context.n_resamples,
            seed=context.seed,
        )

    def _estimate(
        self,
        items: Sequence[Parts],
        tests: Sequence[MeanTest],
        column: Column,
    ) -> Estimate:
        """Return the mean with its interval, which does not leave the scale."""
        estimate = mean_estimate(item_values(items), column.low, column.high)
        if len(items) == 1:
            # About this text alone: the interval over its draws, with the limit added again.
            first_limit, _ = self.expect.ends[0]
            estimate = tests[0].moved(first_limit)
        lower_bound = estimate.low
        upper_bound = estimate.high
        if lower_bound is None or upper_bound is None:
            return estimate
        if column.low is not None:
            lower_bound = max(lower_bound, column.low)
        if column.high is not None:
            upper_bound = min(upper_bound, column.high)
        return replace(estimate, low=lower_bound, high=upper_bound)

    def _flakiness(
        self, case_scores: CaseScores, text: Text, estimate: Estimate
    ) -> Flakiness:
        """Return the share of single replies that would turn the verdict."""
        outside_shares: list[float] = []
        for score, column in case_scores.each(*text):
            share = flip_probability(
                score, self.expect.__contains__, label_values(column)
            )
            if share is None:
                return Flakiness()
            outside_shares.append(share)
        if not outside_shares:
            return Flakiness()
        # Each judge of a panel has its own replies.
        share_outside = sum(outside_shares) / len(outside_shares)
        if estimate.value in self.expect:
            return describe_flaky(share_outside, self._outside())
        return describe_flaky(1 - share_outside, self._inside())

    def _outside(self) -> str:
        """Say what a score outside the range does."""
        if self.expect.max is None and self.expect.min is not None:
            return f"fall below {short(self.expect.min)}"
        if self.expect.min is None and self.expect.max is not None:
            return f"go above {short(self.expect.max)}"
        return f"fall outside of {self._range_or_value}"

    def _inside(self) -> str:
        """Say what a score inside the range does."""
        if self.expect.max is None and self.expect.min is not None:
            return f"reach {short(self.expect.min)}"
        if self.expect.min is None and self.expect.max is not None:
            return f"stay within {short(self.expect.max)}"
        return f"fall inside of {self._range_or_value}"

    @property
    def _range_or_value(self) -> str:
        """`2 to 4`, or `3` if the range is one value."""
        return str(self.expect).removeprefix("= ")


class Passes(Case):
    """The text passes, or every one of several texts with a score."""

    kind = "passes"

    expect: Literal["pass"]

    @classmethod
    def matches(cls, keys: Mapping[str, Any]) -> bool:
        return keys.get("expect") == "pass"

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        hint = ""
        if "pass" in criterion.scale.labels:
            hint = ", or write expect: {label: pass}"
        _require_pass_at(criterion, hint)

    def describe(self) -> str:
        return f"{self.about()}: pass"

    def expected(self, context: CaseContext) -> str:
        return "pass" if len(context.texts) == 1 else "pass for all"

    def shortfall(self, source: TextSource, text: Text) -> float | None:
        return _distance_from_passing(source.scores, text)

    def decide(self, context: CaseContext) -> Decision:
        case_scores = context.scored()
        lacking, detail = case_scores.missing_texts(context.texts)
        n_passed = 0
        failing: list[str] = []
        for item, system in context.texts:
            score = case_scores.score(item, system)
            if score is None:
                continue
            ((_, evidence),) = case_scores.passes(item, system)
            if evidence.value:
                n_passed += 1
            else:
                text_name = f"{one_line(item, 40)} {one_line(system, 30)}"
                failing.append(f"{text_name}: {short(score.value)}")
        if len(context.texts) == 1:
            # One text is decided within the uncertainty of its replies; several are counted.
            passing_range = _passing_range(case_scores.column)
            return ScoreRange(expect=passing_range).decide(context)
        n_scored = n_passed + len(failing)
        share = percent(n_passed / n_scored)
        return Decision(
            "failed" if failing else "passed",
            joined(first_names(failing), lacking),
            f"{n_passed:,} of {n_scored:,} ({share})",
            estimate=wilson_interval(n_passed, n_scored),
            detail=detail,
        )


def _distance_from_passing(scores: CaseScores, text: Text) -> float | None:
    """Return how far a text is from passing, in points; below 0 if it passes."""
    score = scores.score(*text)
    if score is None or scores.column.pass_at is None:
        return None
    return _passing_range(scores.column).distance(score.value)


def _passing_range(column: Column) -> Range:
    """Return the values that pass."""
    if column.better == "lower":
        return Range(max=column.pass_at)
    return Range(min=column.pass_at)


def _require_pass_at(criterion: Criterion, hint: str = "") -> None:
    if criterion.pass_at is None:
        raise ConfigError(
            f"{criterion.name} does not say what passes: add pass_at: or threshold: to its "
            f"header{hint}"
        )


def _rounded(limit: float) -> float:
    """Return a limit that a person would write."""
    return round(limit, _DECIMALS_OF_LIMIT)


class LeastShare(Keys):
    """The least share of the texts that pass."""

    # That all texts pass is `expect: pass`.
    min: Annotated[Number, Field(gt=0, lt=1)] = Field(
        description="Share of the texts that pass, at least."
    )


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

    def shortfall(self, source: TextSource, text: Text) -> float | None:
        return _distance_from_passing(source.scores, text)

    def loosened(self, share: float, column: Column) -> PassRate | None:
        least = _rounded(self.pass_rate.min - share)
        if least <= 0:
            return None
        return self.model_copy(update={"pass_rate": LeastShare(min=least)})

    def limit_text(self) -> str:
        return f"min: {short(self.pass_rate.min)}"

    def decide(self, context: CaseContext) -> Decision:
        """Decide by Wilson's interval over the items.

        From two items on, fewer than for a mean, because a share has two labels only.
        """
        case_scores = context.scored()
        minimum = self.pass_rate.min
        lacking, detail = case_scores.missing_texts(context.texts)
        items = item_means(context.texts, case_scores.passes, case_scores.source_items)
        (mean_test,) = mean_on_scale(
            items,
            minimum,
            low=0.0,
            high=1.0,
            fewest=_FEWEST_OF_SHARE,
            n_resamples=context.n_resamples,
            seed=context.seed,
        )
        estimate = mean_estimate(item_values(items), 0.0, 1.0, fewest=_FEWEST_OF_SHARE)
        limit = percentage(minimum)
        decision = decide_limit(mean_test, 1, f"below {limit}", limit)
        return replace(
            decision,
            reason=joined(decision.reason, lacking),
            found=format_share(estimate),
            estimate=estimate,
            detail=detail,
        )


def format_share(estimate: Estimate) -> str:
    """Write `83.3% [61%, 94%]`."""
    value = percentage(estimate.value)
    if estimate.low is None or estimate.high is None:
        return value
    if estimate.low == estimate.high:
        return value
    lower_bound = percentage(max(0, estimate.low))
    upper_bound = percentage(min(1, estimate.high))
    return f"{value} [{lower_bound}, {upper_bound}]"
