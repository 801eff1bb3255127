"""Whether a judge agrees with people well enough: the line of a card that decides its verdict."""

from __future__ import annotations

from dataclasses import dataclass

from judge.commands.card.card import Mark, PeopleFinding
from judge.commands.card.limits import ends, needed
from judge.commands.card.number_text import interval
from judge.core.format import number, plural
from judge.core.messages import command, in_python
from judge.core.records import Estimate
from judge.report.views.agreement_finding import (
    Side,
    Verdict,
    leads_over_baselines,
    leads_text,
    not_compared,
    places,
    side,
    spearman,
    usable_level,
    verdict,
)
from judge.stats.coefficients import Level

SLIGHT = 0.2
"""Agreement beyond chance up to here is slight (Landis and Koch 1977): too little for a judge."""
ENOUGH_ITEMS = 30
"""Items from which agreement not significantly above chance fails: they detect a kappa of 0.4."""


@dataclass(frozen=True, slots=True)
class AgreementVerdict:
    """The verdict on agreement, the limit that is the reason for it, and what would help."""

    mark: Mark
    reason: str = ""
    advice: str = ""


def agreement_verdict(
    people: PeopleFinding,
    agreement: Estimate,
    unit: str,
) -> AgreementVerdict:
    """Compare `agreement`, a kappa or alpha (`unit`), with its limits, and with the baselines."""
    if not people.ratings_vary:
        return AgreementVerdict(
            "unclear",
            "all texts have the same mean rating",
            "rate texts of different quality",
        )
    bounds = ends(agreement)
    if bounds is None:
        reason = needed(agreement, [0.0], "items")
        return AgreementVerdict("unclear", reason, _rate_items(ENOUGH_ITEMS))
    measured = _coefficient_text(unit, agreement)
    level = usable_level(people.rated, people.rated.usual_level)
    against_baselines = verdict(people.rated, people.judge.name, level)
    if against_baselines is Verdict.AGAINST:
        reason = f"it ranks against people, {spearman_text(people, level)}"
        return AgreementVerdict("fail", reason, _check_the_scale())
    if side(agreement) is Side.BELOW:
        reason = f"it agrees with people less than chance would, {measured}"
        correlation = spearman(people.judge, level)
        is_reversed = correlation is not None and correlation.value < 0
        advice = _check_the_scale() if is_reversed else _improve_or_agree(people, level)
        return AgreementVerdict("fail", reason, advice)
    if against_baselines is Verdict.WORSE:
        leads = leads_over_baselines(people.rated, people.judge.name, level)
        better = [lead for lead in leads if lead.side is Side.BELOW]
        return AgreementVerdict("fail", f"it is {leads_text(better)}", _improve())
    if bounds[0] <= 0:
        items = plural(people.items, "item")
        reason = f"{measured} is not significantly above 0 on {items}"
        if not people.scores_vary:
            reason = f"it gives all texts of {items} the same score"
        if people.items >= ENOUGH_ITEMS:
            return AgreementVerdict("fail", reason, _improve_or_agree(people, level))
        return AgreementVerdict("unclear", reason, _rate_items(ENOUGH_ITEMS))
    if bounds[1] <= SLIGHT:
        reason = f"{measured} is at most slight, {SLIGHT:g}"
        return AgreementVerdict("fail", reason, _improve_or_agree(people, level))
    if bounds[0] <= SLIGHT:
        reason = f"{measured} may be slight, {SLIGHT:g} or less"
        more_items = needed(agreement, [SLIGHT], "items")
        return AgreementVerdict("unclear", reason, f"rate more items: {more_items}")
    if against_baselines is Verdict.BEST:
        return AgreementVerdict("pass")
    return _without_lead(people, level, against_baselines)


def _without_lead(
    people: PeopleFinding,
    level: Level,
    against_baselines: Verdict,
) -> AgreementVerdict:
    """Return the verdict on a judge that agrees with people, but does not beat every baseline."""
    correlation = spearman(people.judge, level)
    if correlation is None or against_baselines is Verdict.UNKNOWN:
        reason = "no correlation could be compared with the baselines"
        return AgreementVerdict("unclear", reason, "rate more texts")
    if against_baselines is Verdict.ALONE:
        if not_compared(people.rated, level):
            reason = "no baseline could be compared"
            return AgreementVerdict("unclear", reason, _MORE_ITEMS)
        reason = "no baseline has a correlation to compare with"
        return AgreementVerdict("unclear", reason, "add a metric")
    if against_baselines in (Verdict.CHANCE, Verdict.UNTESTED):
        reason = f"{spearman_text(people, level)} is not significantly above 0"
        return AgreementVerdict("unclear", reason, _MORE_ITEMS)
    leads = leads_over_baselines(people.rated, people.judge.name, level)
    unbeaten = [lead for lead in leads if lead.side is not Side.ABOVE]
    return AgreementVerdict("unclear", leads_text(unbeaten), _MORE_ITEMS)


_MORE_ITEMS = "rate more items"


def spearman_text(people: PeopleFinding, level: Level) -> str:
    """Write the correlation with people: `Spearman 0.42 [0.20, 0.60]`; "" if it is undefined."""
    correlation = spearman(people.judge, level)
    return "" if correlation is None else _coefficient_text("Spearman", correlation)


def _coefficient_text(measure: str, estimate: Estimate) -> str:
    """Write `kappa 0.42 [0.20, 0.60]`, with a third decimal if an end would seem to be 0."""
    decimals = places(estimate)
    return f"{measure} {number(estimate.value, decimals)} {interval(estimate, decimals)}".rstrip()


def _rate_items(n_items: int) -> str:
    return f"rate texts of at least {n_items} items"


def _check_the_scale() -> str:
    return f"check which end of the scale is better, then {_improve()}"


def _improve() -> str:
    command_name = command("improve") if in_python() else command("criteria improve")
    return f"revise the criterion ({command_name}) or take another model"


def _improve_or_agree(people: PeopleFinding, level: Level) -> str:
    """Advise to improve the judge, or first the criterion if even its raters disagree."""
    one_rater = spearman(people.rated.rater, level)
    raters_agree = True
    if one_rater is not None:
        raters_agree = side(one_rater) not in (Side.HOLDS_ZERO, Side.BELOW)
    if one_rater is None or raters_agree or not people.scores_vary:
        return _improve()
    value = number(one_rater.value, 2)
    return (
        "make the criterion clearer to its raters, who do not agree with each other "
        f"(Spearman {value})"
    )
