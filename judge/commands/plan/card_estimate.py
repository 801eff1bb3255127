"""`judge plan --card`: estimate a judge card, which is several runs of one judge."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.commands.card.card import PROBES
from judge.commands.card.card_plan import TEXTS, CardPlan, plan_card, writing_requests
from judge.commands.card.finished import ITEMS, is_run
from judge.commands.plan.explanations import estimate_notes, with_method
from judge.commands.plan.record import Plan
from judge.config import RunConfig
from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.messages import option
from judge.core.records import Criterion
from judge.run.cost_estimate import estimate_cost, requests_in_budget
from judge.run.judge_models import AnyJudge
from judge.run.request_estimates import Duration, JudgePlan, sum_prices


def estimate_card(
    config: RunConfig,
    data: Any = None,
    *,
    providers: Sequence[AnyJudge],
    loaded_criteria: Mapping[str, Criterion] | None = None,
    items: int | None = None,
    probes: str | Sequence[str] | None = None,
) -> Plan:
    """Estimate the card of one judge. Each line of the estimate is one of its runs.

    `config` writes nothing, and `providers` send nothing. Raises JudgeError.
    """
    source = config.data if data is None else data
    if isinstance(source, str | Path) and is_run(source):
        problem = "the card of a finished run sends nothing"
        raise ConfigError(f"{source}: {problem}; name its data")
    if items is None:
        items = ITEMS
    if probes is None:
        probes = PROBES
    card_plan = plan_card(
        config,
        data,
        items=items,
        probes=probes,
        providers=providers,
        custom_criteria=loaded_criteria,
    )
    judge = _sum_of_runs(card_plan)
    price = judge.money.price
    # `plan_card` names the default criteria, so only the given configuration lacks them.
    main_run = replace(card_plan.runs[TEXTS], default_criteria=config.criteria is None)
    notes = [*_notes(card_plan), *estimate_notes(main_run, [judge])]
    return Plan(
        judges=(judge,),
        price=price,
        seconds=judge.time.seconds,
        budget=config.budget,
        fits=requests_in_budget(config, [judge], price),
        notes=tuple(notes),
        by="run",
    )


def _sum_of_runs(card_plan: CardPlan) -> JudgePlan:
    """Return the plan of the card's judge, with a line for each run."""
    plans: dict[str, JudgePlan] = {}
    for run_name, prepared in card_plan.runs.items():
        (plan,) = estimate_cost(prepared).judges
        plans[run_name] = plan
    # The method is that of the run on the unchanged texts, the main one of a card.
    main_plan = with_method(plans[TEXTS], card_plan.runs[TEXTS])
    lines = []
    for run_name, plan in plans.items():
        total = plan.estimate.total
        lines.append(replace(total, name=run_name))
    estimates = [plan.estimate for plan in plans.values()]
    longest_estimate = max(estimates, key=lambda estimate: estimate.longest)
    estimate = replace(
        main_plan.estimate,
        lines=lines,
        longest=longest_estimate.longest,
        longest_text=longest_estimate.longest_text,
    )
    money_of_runs = [plan.money for plan in plans.values()]
    money = replace(
        main_plan.money,
        price=sum_prices(run.price for run in money_of_runs),
        cached=sum_prices(run.cached for run in money_of_runs),
        more=sum_prices(run.more for run in money_of_runs),
    )
    time = _sum_of_times(plans.values())
    return replace(main_plan, estimate=estimate, money=money, time=time)


def _sum_of_times(plans: Collection[JudgePlan]) -> Duration:
    """Add up the times of runs that follow each other; None if none of them is known."""
    known_times = [plan.time for plan in plans if plan.time.seconds is not None]
    if not known_times:
        return next(plan.time for plan in plans)
    seconds = sum(time_of_run.seconds or 0.0 for time_of_run in known_times)
    runs = plural(len(known_times), "run")
    return Duration(seconds, f"{runs} one after the other, {known_times[0].why}")


def _notes(card_plan: CardPlan) -> Iterator[str]:
    """Say how many items the card takes, which lines it cannot have, and what is asked besides."""
    originals = card_plan.texts.originals
    items = plural(len(originals), "item")
    yield f"The card takes {items}. Choose their number with {option('items')}."
    for card_line, reason in card_plan.unavailable.items():
        yield f"The card cannot show {card_line}: {reason.rstrip('.')}."
    if card_plan.unwritten:
        requests = plural(writing_requests(card_plan), "request")
        yield f"Not included: at most {requests} for other wordings of the criteria."
