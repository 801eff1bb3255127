"""Whether a judge agrees with people well enough: the line of a card that decides its verdict."""

from __future__ import annotations

from judge.commands.card.card import Mark, PeopleFinding
from judge.commands.card.limits import ends, needed
from judge.core.format import plural
from judge.core.records import Estimate
from judge.report.views.agreement_finding import (
    Verdict,
    not_compared,
    spearman,
    usable_level,
    verdict,
)

SLIGHT = 0.2
"""Agreement beyond chance up to here is slight (Landis and Koch 1977), too little to trust a judge."""
ENOUGH_ITEMS = 30
"""Items from which agreement not significantly above chance fails: they detect a kappa of 0.4."""


def agreement_mark(people: PeopleFinding, agreement: Estimate) -> tuple[Mark, str]:
    """Return the verdict on agreement, and the reason for it."""
    rated = people.rated
    level = usable_level(rated, rated.usual_level)
    against_baselines = verdict(rated, people.judge.name, level)
    interval = ends(agreement)
    if interval is None:
        return "unclear", needed(agreement, [0.0], "items")
    if against_baselines is Verdict.WORSE:
        return "fail", "a baseline agrees with people significantly better"
    if interval[1] <= 0 or against_baselines is Verdict.AGAINST:
        return "fail", "it ranks against people"
    if interval[0] <= 0:
        items = people.items
        if items >= ENOUGH_ITEMS:
            return "fail", f"it is not significantly above chance on {plural(items, 'item')}"
        return "unclear", f"at least {ENOUGH_ITEMS} rated items are needed"
    if interval[1] <= SLIGHT:
        return "fail", f"its agreement is slight: at most {SLIGHT:g}"
    if interval[0] <= SLIGHT:
        return "unclear", f"its agreement may be slight: {needed(agreement, [SLIGHT], 'items')}"
    if against_baselines is Verdict.BEST:
        return "pass", ""
    correlation = spearman(people.judge, level)
    if correlation is None or against_baselines is Verdict.UNKNOWN:
        return "unclear", "no correlation could be compared with the baselines; rate more texts"
    if against_baselines is Verdict.ALONE:
        if not_compared(rated, level):
            return "unclear", "no baseline could be compared; rate more items"
        return "unclear", "no baseline has a correlation to compare with"
    return "unclear", "it is not significantly better than every baseline; rate more items"
