"""`judge.plan`: estimate a run before it starts, and explain the estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from judge.commands.evaluate import Criteria, Model, to_config
from judge.commands.options import RankOptions
from judge.commands.public import public_api
from judge.config import RankConfig, RunConfig
from judge.core.errors import ConfigError
from judge.core.format import dollars, duration, plural
from judge.core.messages import option
from judge.core.records import Criterion, Usage
from judge.core.request_options import Judge
from judge.criteria.checklist import has_questions, questions_of
from judge.execution.engines.batch_jobs import under_way
from judge.providers import Provider
from judge.results.planning import Forecast, JudgeEstimate, JudgeForecast, price_text, sum_prices
from judge.run.cost_estimate import (
    SAMPLED_JUDGMENTS,
    estimate_cost,
    judge_forecast,
)
from judge.run.dry_run import count_requests
from judge.run.generate import OUTPUTS_NOTE, plan_outputs, require_criteria
from judge.run.judge_models import UNKNOWN, open_offline
from judge.run.preparation import PreparedRun, engine_context, prepare

if TYPE_CHECKING:
    from judge.commands.evaluate import Data

_NOT_INCLUDED = (
    "Tokens are estimated from characters and cached replies, often 10% off. Not included: retries, repair questions "
    "(--repair), hidden reasoning tokens, and rate limits of the server that are not set by --rpm or --tpm."
)
_ORDERS = {1: "one order", 2: "both orders"}


@public_api("plan", RankConfig)
def plan(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    rank: bool = False,
    items: int | None = None,
    **options: Unpack[RankOptions],
) -> Forecast:
    """Estimate the requests, cost and time of `judge.evaluate` with the same arguments, or with `rank` of `judge.rank`.

    With `items`, estimate for that many similar items. Sends nothing and needs no key. Requests that the cache answers
    are not counted. Raises JudgeError.
    """
    config, judges, loaded_criteria = to_config(
        RankConfig if rank else RunConfig, data, criteria, model, options
    )
    return plan_run(config, data, judges, loaded_criteria, items)


def plan_run(
    config: RunConfig,
    data: Any = None,
    judges: Sequence[Judge | Provider] | None = None,
    loaded_criteria: Mapping[str, Criterion] | None = None,
    items: int | None = None,
) -> Forecast:
    """Estimate a run of a configuration; the other arguments are those of `prepare`. Raises JudgeError."""
    require_criteria(config)
    config = config.model_copy(update={"out": None, "record": None, "retry_failed": False})
    providers = open_offline(config)
    if (
        judges is not None
    ):  # providers that the caller made keep their places between those of the plan
        named = iter(providers)
        providers = [next(named) if isinstance(judge, Judge) else judge for judge in judges]
    config, data, writing = plan_outputs(config, data)
    prepared = prepare(config, data, providers=providers, loaded_criteria=loaded_criteria)
    return make_forecast(replace(prepared, writing=writing), items)


def make_forecast(prepared: PreparedRun, items: int | None = None) -> Forecast:
    """Estimate a run and explain the estimate. Raises ConfigError."""
    if prepared.writing and items is not None:
        raise ConfigError(f"{option('items', items)}: is for data with outputs; leave it out")
    forecast = estimate_cost(prepared, items=items)
    judges = tuple(
        replace(judge, method=_describe_strategy(prepared, judge.estimate))
        for judge in forecast.judges[len(prepared.writing) :]
    )
    notes = (*([OUTPUTS_NOTE] if prepared.writing else []), *_notes(prepared, judges, items))
    return replace(forecast, judges=(*prepared.writing, *judges), notes=notes)


def _describe_strategy(prepared: PreparedRun, estimate: JudgeEstimate) -> str:
    """Describe how the judge produces a score, and why that way."""
    provider, settings = prepared.judges[estimate.judge], prepared.settings[estimate.judge]
    if provider.notice or not estimate.strategies:
        return ""
    strategy = estimate.strategies[0]
    if strategy == "decisions":
        return "decisions: answers to typed questions come with probabilities"
    if strategy == "logprobs":
        return f"logprobs: token probabilities of one reply{', if the model gives them' * bool(estimate.draws)}"
    if strategy == "single":
        return "single: one reply per judgment"
    each = ", one request per draw" if provider.learned.get("n") == 1 else ""
    description = f"samples: the mean of {estimate.drawn} draws per judgment{each}"
    if settings.weighting == "samples":
        return description
    probe = "; one extra request checks that first" if "logprobs" in estimate.strategies else ""
    who = "vendor" if "logprobs" in provider.learned.get("dropped", ()) else "model"
    return f"{description}, because the {who} gives no token probabilities{probe}"


def _notes(prepared: PreparedRun, judges: Sequence[JudgeForecast], items: int | None) -> list[str]:
    """Name the defaults that were used, and what the numbers do not include."""
    notes = []
    if items is not None:
        known_items = len({sample.item for sample in prepared.samples})
        notes.append(
            f"Scaled from {plural(known_items, 'item')} to {items:,} similar ones. Cached replies answer none of them, "
            "but improve the estimate."
        )
    if prepared.criteria and prepared.default_criteria:
        names = ", ".join(criterion.name for criterion in prepared.criteria)
        notes.append(f"Default criteria: {names}. Choose others with {option('criteria')}.")
    if hoping := [judge for judge in judges if judge.estimate.draws]:
        draws = hoping[0].estimate.draws
        each = max(judge.estimate.each for judge in judges)
        requests = f" in {each} requests" if each > 1 else ""
        more = sum_prices(judge.money.more for judge in hoping)
        cost = "" if more is None else f" and costs about {dollars(more)} more"
        notes.append(
            f"If the model gives no token probabilities, the run takes {draws} draws per judgment{requests}{cost}. "
            f"Use {option('weighting', 'single')} to avoid that."
        )
    notes += _pending_batches(prepared)
    asking = {name: metric for name, metric in prepared.metrics.items() if metric.asks}
    for name, metric in asking.items():
        first = next(iter(prepared.judges), "its judge")
        most = metric.most_requests(prepared.samples) if items is None else None
        if most is not None:
            asked = f"at most {most:,} requests of {name} to {first}; their length depends"
        else:
            asked = f"requests of {name} to {first}, because they depend"
        notes.append(f"Not included: {asked} on replies.")
    if any(judge.endpoint.startswith(UNKNOWN) for judge in judges):
        notes.append(
            "$AZURE_OPENAI_ENDPOINT is not set, so cached replies of that server are not found."
        )
    broken = sum(judge.estimate.total.broken for judge in judges)
    if broken:
        notes.append(
            f"{plural(broken, 'judgment')} will fail because the prompt cannot be rendered."
        )
    if any(judge.estimate.total.requests for judge in judges):
        notes.append(_NOT_INCLUDED)
    return notes


def _pending_batches(prepared: PreparedRun) -> list[str]:
    """Warn of batches of an earlier run that are still in progress, if this run would not wait for them."""
    if prepared.config.engine == "batch":
        return []
    warnings = []
    for provider in prepared.judges.values():
        context = engine_context(prepared.config, provider)
        if context.folder is not None and (
            number := under_way(context.folder, context.provider.endpoint)
        ):
            warnings.append(
                f"{plural(number, 'request')} of an earlier run are in progress in batches at "
                f"{context.provider.endpoint}. Use {option('engine', 'batch')} to wait for them; otherwise this run "
                "pays for the same requests again."
            )
    return warnings


def one_line_estimate(prepared: PreparedRun, notes: list[str] | None = None) -> str:
    """Return one line to print before a run: judgments and, from a sample, about the requests, tokens, price and time.

    Batches in progress get lines of their own. "" without a judge. What the run should say of its cache, such as that a
    damaged one was replaced, is added to `notes`.
    """
    estimates = count_requests(prepared, SAMPLED_JUDGMENTS, notes=notes)
    if not estimates:
        return ""
    pairs, product = prepared.pairs, ""
    if pairs is not None and isinstance(prepared.config, RankConfig):
        product = f"{plural(pairs.chosen, 'pair')} of texts in {_ORDERS[prepared.config.orders]}: "
    size = len(pairs.compared) if pairs else len(prepared.samples)
    lists = [criterion for criterion in prepared.criteria if criterion.is_checklist]
    more = sum(
        len(questions_of(criterion, sample)) - 1
        for criterion in lists
        for sample in prepared.samples
        if has_questions(criterion, sample)
    )
    count = (size * len(prepared.criteria) + more) * len(prepared.judges)
    size_of_run = (
        f"{plural(count, 'question')} to ask" if lists else f"{plural(count, 'judgment')} to make"
    )
    line = f"{product}{size_of_run}"
    requests = sum(estimate.total.requests for estimate in estimates)
    if not requests and any(estimate.total.broken for estimate in estimates):
        line += ", and no prompt can be rendered"
    elif not requests:
        about = "" if all(estimate.exact for estimate in estimates) else "about "
        line += f", {about}all of them answered from the cache"
    elif all(prepared.judges[estimate.judge].notice for estimate in estimates):
        line += "; no model is called"
    else:
        judges = [
            judge_forecast(
                prepared.plans[estimate.judge], prepared.judges[estimate.judge], estimate
            )
            for estimate in estimates
        ]
        usage = sum((judge.usage for judge in judges), Usage())
        parts = [
            f"{line}: about {requests:,} requests",
            f"{_short(usage.prompt_tokens)} tokens to read, {_short(usage.completion_tokens)} to write",
            price_text(sum_prices(judge.money.price for judge in judges)),
        ]
        seconds = [judge.time.seconds for judge in judges if judge.time.seconds is not None]
        parts += [f"about {duration(max(seconds))}"] if seconds else []
        line = ", ".join(parts)
    return "\n".join([line, *_pending_batches(prepared)])


def _short(number: int) -> str:
    """`840`, `12k`, `4.2M`."""
    if number < 10_000:
        return f"{number:,}"
    return f"{number / 1e3:.0f}k" if number < 1e6 else f"{number / 1e6:.1f}M"
