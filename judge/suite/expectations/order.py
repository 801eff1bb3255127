"""Expect one system's texts to be better than another's, by their scores or by pairwise comparison."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.records import Column, Criterion, Estimate, Sample
from judge.stats.pairwise import verdict
from judge.suite.evidence import NEAR, MeanTest, Undecidable, format_change, mean
from judge.suite.expectations.case import (
    STATUS,
    Case,
    CaseContext,
    Decision,
    Number,
    Side,
    display_name,
    joined,
    missing,
    percentage,
    places,
    quoted,
    short,
)

_EVEN = 0.5


class Order(Case):
    """Texts of a system, or a text, score higher than those of another one.

    With a pairwise criterion, `better` wins more than half of the comparisons.
    """

    kind: ClassVar[str] = "order"
    compares_texts: ClassVar[bool] = True

    better: Side = Field(description="A system of the data, or the columns of a text.")
    worse: Side = Field(description="The system or text that must score lower.")
    margin: Number = Field(
        default=0.0,
        description="Least lead: points of the scale, or share of the comparisons above one half. "
        "With a negative one, `better` is not worse by that much (non-inferiority).",
    )

    def check_keys(self) -> None:
        if isinstance(self.better, dict) != isinstance(self.worse, dict):
            self.mistake("better and worse are two systems of the data, or two texts such as {output: ...}", "better")
        if isinstance(self.better, dict):
            if "output" in self.text:
                self.mistake("output is in better and worse; leave it out of text", "text", "output")
        elif self.better == self.worse:
            self.mistake(f"better and worse are both {self.better}", "worse")
        elif self.text:
            self.mistake("better names a system of the data; beside text, write better: {output: ...}")
        elif self.system:
            self.mistake("better and worse name the systems; leave system out", "system")

    def inline(self) -> Mapping[str, Mapping[str, Any]]:
        sides = (("better", self.better), ("worse", self.worse))
        return {name: self.text | columns for name, columns in sides if isinstance(columns, dict)}

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems of the two sides; texts inside the case are called `better` and `worse`."""
        sides = (("better", self.better), ("worse", self.worse))
        return tuple(side if isinstance(side, str) else name for name, side in sides)

    def select(self, by_item: Mapping[str, Sequence[Sample]], systems: Collection[str]) -> list[Sample]:
        """Return the texts of items that have both."""
        better, worse = self.systems
        matching = self.matching(by_item, systems)
        there = {(sample.item, sample.system) for sample in matching}
        if lone := next((item for item in self.item for system in self.systems if (item, system) not in there), ""):
            raise ConfigError(f"item {lone!r} does not have texts of both {better!r} and {worse!r}")
        matching = [sample for sample in matching if {(sample.item, better), (sample.item, worse)} <= there]
        if not matching:
            raise ConfigError(f"none of these items has a text of both {better!r} and {worse!r}")
        return matching

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        most = _EVEN if criterion.pairwise else criterion.scale.high - criterion.scale.low
        if not -most < self.margin < most:
            quantity = "share of wins above one half" if criterion.pairwise else f"difference on {criterion.name}"
            never = "cannot be" if self.margin > 0 else "is always"
            raise ConfigError(f"margin: {self.margin:g} {never} exceeded; the largest {quantity} is {most:g}")

    def describe(self) -> str:
        sides = [quoted(text.output) for text in self.texts] or self.systems
        return f"{self.stem()}: {sides[0]} above {sides[1]}{f' ({self.which()})' if self.item else ''}"

    def expected(self, context: CaseContext) -> str:
        better, worse = map(display_name, self.systems)
        if context.pairwise:
            return f"{better} wins > {percentage(_EVEN + self.margin)} against {worse}"
        lead = f" {'−' if self.margin < 0 else '+'} {short(abs(self.margin))}" if self.margin else ""
        return f"{better} > {worse}{lead}"

    def decide(self, context: CaseContext) -> Decision:
        scored, pairwise = context.scored(), context.pairwise
        better, worse = self.systems
        both = [item for item, systems in context.by_item.items() if {better, worse} <= {*systems}]
        if not both:
            raise Undecidable(f"no item has texts of both {display_name(better)} and {display_name(worse)}")
        parts_of_item = scored.preference if pairwise else scored.difference
        parts_by_item = {item: parts_of_item(item, better, worse) for item in both}
        items = [parts for parts in parts_by_item.values() if parts]
        rows = [(better, worse), (worse, better)] if pairwise else [(better, ""), (worse, "")]
        without_parts = [item for item, parts in parts_by_item.items() if not parts]
        lost = [(item, *row) for item in without_parts for row in rows if scored.score(item, *row) is None]
        lacking, detail = missing(scored, lost, items)
        even = _EVEN if pairwise else 0.0
        margin, zero = mean(items, even + self.margin, even, seed=context.seed)
        estimate = margin.moved(even + self.margin)
        flips = ""
        if pairwise:
            answered = (item for item, parts in parts_by_item.items() if parts)
            answers = [verdict(*(scored.score(item, *row) for row in rows)) for item in answered]
            if n_flips := sum(answer.flipped is True for answer in answers):
                flips = f"the order shown changed {n_flips:,} of {plural(len(answers), 'answer')}"
        side = _side(margin)
        return Decision(
            STATUS[side],
            joined(
                self._describe_margin(margin, zero),
                "one reply each" if margin.single and side < 0 else "",
                margin.alike,
                flips,
                lacking,
            ),
            _format_estimate(estimate, scored.column, pairwise),
            estimate=estimate,
            detail=detail,
        )

    def _describe_margin(self, margin: MeanTest, zero: MeanTest) -> str:
        side = _side(margin)
        if side > 0:
            ahead, better = ("not behind", "not worse") if self.margin < 0 else ("ahead", "better")
            by = f" by {short(-self.margin)}" if self.margin < 0 else ""
            return f"{ahead}{by}, one reply each" if margin.single else f"{better}{by}{margin.tested}"
        if margin.too_few_reason:
            return margin.too_few_reason
        if side == 0 and margin.significant_direction > 0:
            return margin.untested_reason
        if side == 0:
            lead = (
                f" from a {'loss' if self.margin < 0 else 'lead'} of {short(abs(self.margin))}" if self.margin else ""
            )
            if margin.estimate.low == margin.estimate.high:
                return f"no difference{lead}"
            return f"no significant difference{lead}{margin.items_needed}"
        if zero.significant_direction < 0:
            return f"worse{zero.tested}"
        return f"not better by {short(self.margin)}{margin.tested}" if self.margin > 0 else "not better"


def _side(test: MeanTest) -> int:
    """Return 1 if above the limit, −1 if not above it, 0 if undecided.

    A single reply decides by its value, and so does a difference that is the same everywhere. Texts that all score the
    same are undecided. Two to five items with one reply each decide nothing, and without draws they show no lead.
    """
    e = test.estimate
    if test.too_few_reason or (e.low == e.high and abs(e.value) <= NEAR and not test.single):
        return 0
    if test.single or (e.low == e.high and e.value <= NEAR):
        return 1 if e.value > NEAR else -1
    return 0 if test.significant_direction > 0 and test.untested_reason else test.significant_direction


def _format_estimate(e: Estimate, column: Column, pairwise: bool) -> str:
    """Write `+1.30 [1.00, 1.60]`, or the share of comparisons won."""
    if pairwise:
        low, high = e.low, e.high
        ends = ""
        if low is not None and high is not None and low != high:
            ends = f" [{percentage(max(0, low))}, {percentage(min(1, high))}]"
        return f"{percentage(e.value)}{ends}"
    return format_change(e, places(column))
