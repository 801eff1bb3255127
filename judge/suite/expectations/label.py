"""Expect the likeliest label of a text, or of a share of several texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from judge.core.errors import ConfigError
from judge.core.format import one_line, percent
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample
from judge.stats.bootstrap import wilson_interval
from judge.suite.evidence import NEAR, CaseScores, Text, Undecidable, likeliest, mean
from judge.suite.expectations.case import (
    STATUS,
    Case,
    CaseContext,
    Decision,
    Keys,
    Name,
    Share,
    display_name,
    flaky,
    joined,
    missing_texts,
    most,
    percentage,
)


class LikeliestLabel(Keys):
    """A label, and the share of the texts that have it."""

    label: Name = Field(description="The likeliest label.")
    share: Annotated[Share, Field(gt=0)] = Field(
        default=1.0, description="Share of several texts that must have the label (default: 1)."
    )


class Label(Case):
    """The likeliest label of a text, or of a share of several texts, is this one."""

    kind: ClassVar[str] = "label"

    expect: LikeliestLabel

    @classmethod
    def matches(cls, keys: Mapping[str, Any]) -> bool:
        expect = keys.get("expect")
        return isinstance(expect, dict) and expect.get("label") is not None

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        label, labels = self.expect.label, criterion.scale.labels
        if label not in labels:
            raise ConfigError(f"label: {unknown_name_message(f'label of {criterion.name}', label, list(labels))}")
        if self.expect.share < 1 and len(texts) == 1:
            raise ConfigError("share is for several texts, and this case has one: leave it out")

    def describe(self) -> str:
        share = self.expect.share
        return f"{self.about()}: {self.expect.label}" + (f" for {share:.0%}" if share < 1 else "")

    def expected(self, context: CaseContext) -> str:
        share = self.expect.share
        many = "" if len(context.texts) == 1 else " for all" if share >= 1 else f" for ≥ {percentage(share)}"
        return f"label {display_name(self.expect.label)}{many}"

    def decide(self, context: CaseContext) -> Decision:
        scored = context.scored()
        shares_by_text = {text: scored.shares(*text) for text in context.texts}
        lacking, detail = missing_texts(scored, context.texts)
        if not any(shares_by_text.values()):
            raise Undecidable(f"scores of {display_name(scored.column.name)} are not made of labels: expect min or max")
        if len(shares_by_text) == 1:
            ((text, shares),) = shares_by_text.items()
            return self._decide_single(scored, text, shares)
        # Counted over all texts: one without a score does not have the label.
        tops = {text: likeliest(shares) for text, shares in shares_by_text.items()}
        others = {text: top for text, top in tops.items() if top != self.expect.label}
        hits, n = len(tops) - len(others), len(tops)
        met = hits >= self.expect.share * n - NEAR
        named = most(
            f"{one_line(item, 40)} {one_line(system, 30)}: {display_name(top)}"
            for (item, system), top in others.items()
            if top
        )
        return Decision(
            "passed" if met else "failed",
            joined("" if met else named, lacking),
            f"{hits:,} of {n:,} ({percent(hits / n)})",
            estimate=wilson_interval(hits, n),
            detail=detail,
        )

    def _decide_single(self, scored: CaseScores, text: Text, shares: Mapping[str, float]) -> Decision:
        """Decide by the label's lead over the likeliest other one, within the uncertainty of the replies."""
        label = self.expect.label
        rivals = {name: shares.get(name, 0.0) for name in (*scored.column.labels, *shares) if name != label}
        rival = max(rivals, key=rivals.__getitem__)
        (lead,) = mean([scored.leads(*text, label, rival)], 0.0)
        top = likeliest(shares)
        side = (1 if top == label else -1) if lead.single else lead.significant_direction
        doubt = "" if side else f"no significant difference from {display_name(rival)}{lead.items_needed}"
        odds, flakiness = None, ""
        turned = 1 - shares.get(label, 0.0) if top == label else shares.get(label, 0.0)
        if not lead.single and flaky(turned):
            others = [display_name(name) for name, p in shares.items() if name != label and p > 0]
            answer = display_name(label) if top != label else others[0] if len(others) == 1 else "another label"
            odds, flakiness = turned, f"flaky: {turned:.0%} of single replies say {answer}"
        measured = display_name(top) if lead.single else f"{display_name(top)} ({percent(shares[top])})"
        reason = joined(doubt, "one reply" if lead.single else "", flakiness)
        return Decision(STATUS[side], reason, measured, odds, lead.estimate)
