"""What a suite's runs take: requests now, and with nothing in the cache the longest prompt and the price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from judge.commands.cost_estimate import dollars, foresee
from judge.commands.judge_models import open_judge
from judge.commands.judge_run import judgments
from judge.commands.preparation import Prepared, for_provider
from judge.config import Judge, Plan
from judge.core.errors import ConfigError, CriterionError
from judge.execution import token_estimate
from judge.providers import Provider
from judge.providers.replay import ReplayProvider
from judge.scoring import strategies
from judge.scoring.multi_criteria import renderers

_LOOKED_AT = 400


def longest(runs: Iterable[Prepared]) -> int:
    """About the tokens that the longest prompt of any judgment has; 0 where no judge is asked."""
    return max((size for prepared in runs for size in _sizes(prepared)), default=0)


def price(runs: Iterable[Prepared]) -> tuple[float | None, str]:
    """US dollars for all judgments, None where a price is not known; and why then.

    Of a recording it is what its model costs where the plan would ask it.
    """
    total = 0.0
    for prepared in runs:
        try:
            found = foresee(_afresh(prepared))
        except ConfigError as error:
            return None, str(error)
        if found.price is None:
            return None, next(one.money.why for one in found.judges if one.money.price is None)
        total += found.price
    return total, ""


def ahead(runs: Iterable[Prepared]) -> str:
    """About how many requests, and for how much, told from some of the judgments; nothing where no model is asked."""
    found = [foresee(one, _LOOKED_AT) for one in runs if not all(judge.notice for judge in one.judges.values())]
    if not (requests := sum(one.requests for one in found)):
        return "answered from the cache" if found else ""
    known = [one.price for one in found if one.price is not None]
    return f"about {requests:,} requests, {dollars(sum(known)) if len(known) == len(found) else 'price unknown'}"


def _sizes(prepared: Prepared) -> Iterator[int]:
    for name, provider in prepared.judges.items():
        made = renderers([for_provider(criterion, provider) for criterion in prepared.criteria])
        first = strategies.rungs(prepared.settings, provider.decides)[0]
        for one in judgments(prepared, name):
            try:
                prompt = made[one.criterion.name].render(one.sample, one.rival)
            except CriterionError:
                continue
            asked = strategies.asked(prompt, one.criterion, first, prepared.settings, provider)
            yield token_estimate.of(next(iter(asked.values())))


def _afresh(prepared: Prepared) -> Prepared:
    """The same run by the models themselves, with an empty cache. Sends nothing and needs no key."""
    plan = prepared.plan.model_copy(update={"cache": False, "replay": None})
    judges = {name: _asked(plan, provider) for name, provider in prepared.judges.items()}
    return replace(prepared, plan=plan, judges=judges, notes=[])


def _asked(plan: Plan, provider: Provider) -> Provider:
    """In the place of a recording its model, at the address that the plan says."""
    if not isinstance(provider, ReplayProvider):
        return provider
    meant = [one for one in plan.model if one.name == provider.model or one.name.endswith(f"/{provider.model}")]
    name = f"decisions/{provider.model}" if provider.decides else provider.model
    return open_judge(plan, meant[0] if meant else Judge(name=name), sends=False)
