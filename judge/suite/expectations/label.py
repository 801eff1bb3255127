"""The likeliest label of a text, or of how many texts it is this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge.core.errors import ConfigError
from judge.core.messages import one_line, percent
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample
from judge.stats import bootstrap as of
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


def expected(asked: CaseContext, label: Label) -> str:
    many = "" if len(asked.texts) == 1 else " for all" if label.share >= 1 else f" for ≥ {share(label.share)}"
    return f"label {display_name(label.label)}{many}"


def decide(asked: CaseContext, label: Label) -> CaseOutcome:
    scored = asked.scored()
    given = {text: scored.shares(*text) for text in asked.texts}
    lost = [(*text, "") for text in asked.texts if scored.score(*text) is None]
    lacking, detail = missing(scored, lost, [text for text in given if scored.score(*text)])
    if not any(given.values()):
        raise Undecidable(
            f"scores of {display_name(scored.column.name)} are made of no labels: expect a band of values"
        )
    if len(given) == 1:
        ((text, shares),) = given.items()
        return _of_one(scored, text, label.label, shares)
    return _of_many(given, label, lacking, detail)


def _of_many(given: Mapping[Text, Shares], label: Label, lacking: str, detail: str) -> CaseOutcome:
    """Counted over all texts: one without a score has not that label."""
    others = {text: _likeliest(shares) for text, shares in given.items() if _likeliest(shares) != label.label}
    hits, n = len(given) - len(others), len(given)
    met = hits >= label.share * n - NEAR
    named = most(
        f"{one_line(item, 40)} {one_line(system, 30)}: {display_name(top)}"
        for (item, system), top in others.items()
        if top
    )
    said = joined("" if met else named, lacking)
    found = f"{hits:,} of {n:,} ({percent(hits / n)})"
    return CaseOutcome("passed" if met else "failed", found, said, None, of.wilson_interval(hits, n), detail=detail)


def _likeliest(shares: Shares) -> str:
    """The first in the scale's order of several; none of a text without a score."""
    return max(shares, key=shares.__getitem__) if shares else ""


def _of_one(scored: CaseScores, text: Text, label: str, shares: Shares) -> CaseOutcome:
    """By the label's lead over the likeliest other one, over the draws or whatever was not seen."""
    rivals = {other: shares.get(other, 0.0) for other in (*scored.column.labels, *shares) if other != label}
    rival = max(rivals, key=rivals.__getitem__)
    (lead,) = mean([scored.leads(*text, label, rival)], 0.0)
    top = _likeliest(shares)
    side = (1 if top == label else -1) if lead.single else lead.significant_direction
    said = "" if side else f"not told apart from {display_name(rival)}{lead.items_needed}"
    odds = None if lead.single else _turned(shares, label, top)
    told = "" if odds is None else f"flaky: {odds:.0%} of single replies say {_other(shares, label, top)}"
    found = f"{display_name(top)} ({percent(shares[top])})" if not lead.single else display_name(top)
    return CaseOutcome(STATUS[side], found, joined(said, "one reply" if lead.single else "", told), odds, lead.estimate)


def _turned(shares: Shares, label: str, top: str) -> float | None:
    """The share of single replies that would have turned the verdict, if it is neither few nor nearly all."""
    odds = shares.get(label, 0.0)
    turned = 1 - odds if top == label else odds
    return turned if flaky(turned) else None


def _other(shares: Shares, label: str, top: str) -> str:
    """What those replies say: the other label, or, where several are left, another one."""
    if top != label:
        return display_name(label)
    others = [one for one, odds in shares.items() if one != label and odds > 0]
    return display_name(others[0]) if len(others) == 1 else "another label"
