"""Expect the likeliest label of a text, or of a share of several texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge.core.errors import ConfigError
from judge.core.format import one_line, percent
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample
from judge.stats.bootstrap import wilson_interval
from judge.suite.evidence import NEAR, CaseScores, Text, Undecidable, mean
from judge.suite.expectations.context import (
    STATUS,
    CaseContext,
    CaseOutcome,
    about,
    display_name,
    flaky,
    joined,
    missing,
    most,
    share,
)
from judge.suite.records import Case, Label, Policy

Shares = Mapping[str, float]
"""By label, in the scale's order."""
UNDECIDED: Policy = "fail"


def sentence(case: Case, label: Label) -> str:
    return f"{about(case)}: {label.label}" + (f" for {label.share:.0%}" if label.share < 1 else "")


def check(label: Label, criterion: Criterion, texts: Sequence[Sample]) -> None:
    if label.label not in criterion.scale.labels:
        raise ConfigError(
            f"label: {unknown_name_message(f'label of {criterion.name}', label.label, list(criterion.scale.labels))}"
        )
    if label.share < 1 and len(texts) == 1:
        raise ConfigError("share: it is for several texts, and this case has one: leave it out")


def expected(context: CaseContext, label: Label) -> str:
    many = "" if len(context.texts) == 1 else " for all" if label.share >= 1 else f" for ≥ {share(label.share)}"
    return f"label {display_name(label.label)}{many}"


def decide(context: CaseContext, label: Label) -> CaseOutcome:
    scored = context.scored()
    shares_by_text = {text: scored.shares(*text) for text in context.texts}
    lost = [(*text, "") for text in context.texts if scored.score(*text) is None]
    lacking, detail = missing(scored, lost, [text for text in shares_by_text if scored.score(*text)])
    if not any(shares_by_text.values()):
        raise Undecidable(
            f"scores of {display_name(scored.column.name)} are made of no labels: expect a band of values"
        )
    if len(shares_by_text) == 1:
        ((text, shares),) = shares_by_text.items()
        return _decide_one(scored, text, label.label, shares)
    # Counted over all texts: one without a score has not that label.
    others = {text: _likeliest(shares) for text, shares in shares_by_text.items() if _likeliest(shares) != label.label}
    hits, n = len(shares_by_text) - len(others), len(shares_by_text)
    met = hits >= label.share * n - NEAR
    named = most(
        f"{one_line(item, 40)} {one_line(system, 30)}: {display_name(top)}"
        for (item, system), top in others.items()
        if top
    )
    remark = joined("" if met else named, lacking)
    measured = f"{hits:,} of {n:,} ({percent(hits / n)})"
    return CaseOutcome("passed" if met else "failed", measured, remark, None, wilson_interval(hits, n), detail=detail)


def _likeliest(shares: Shares) -> str:
    """The first in the scale's order of several; none of a text without a score."""
    return max(shares, key=shares.__getitem__) if shares else ""


def _decide_one(scored: CaseScores, text: Text, label: str, shares: Shares) -> CaseOutcome:
    """By the label's lead over the likeliest other one, over the draws or whatever was not seen."""
    rivals = {
        candidate: shares.get(candidate, 0.0) for candidate in (*scored.column.labels, *shares) if candidate != label
    }
    rival = max(rivals, key=rivals.__getitem__)
    (lead,) = mean([scored.leads(*text, label, rival)], 0.0)
    top = _likeliest(shares)
    side = (1 if top == label else -1) if lead.single else lead.significant_direction
    doubt = "" if side else f"not told apart from {display_name(rival)}{lead.items_needed}"
    odds, flakiness = None, ""
    turned = 1 - shares.get(label, 0.0) if top == label else shares.get(label, 0.0)
    if not lead.single and flaky(turned):
        others = [display_name(name) for name, p in shares.items() if name != label and p > 0]
        answer = display_name(label) if top != label else others[0] if len(others) == 1 else "another label"
        odds, flakiness = turned, f"flaky: {turned:.0%} of single replies say {answer}"
    measured = f"{display_name(top)} ({percent(shares[top])})" if not lead.single else display_name(top)
    return CaseOutcome(
        STATUS[side], measured, joined(doubt, "one reply" if lead.single else "", flakiness), odds, lead.estimate
    )
