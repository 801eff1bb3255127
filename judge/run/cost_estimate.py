"""Estimate the price of a run and the time it takes, from the requests that a dry run counts.

`one_line_estimate` puts the estimate into the line that is printed before a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from judge.config import RankConfig, RunConfig
from judge.core.errors import ConfigError
from judge.core.format import plural, rough_duration
from judge.core.messages import option
from judge.core.records import Usage
from judge.criteria.checklist import has_questions, questions_of
from judge.execution.engines.batch_jobs import under_way
from judge.providers import Provider, pricing
from judge.providers.vendors import VENDORS
from judge.run.dry_run import count_requests
from judge.run.preparation import PreparedRun, engine_context
from judge.run.request_estimates import (
    CostEstimate,
    Duration,
    JudgeEstimate,
    JudgePlan,
    LineEstimate,
    Price,
    price_text,
    sum_prices,
)

SAMPLED_JUDGMENTS = 400
"""The most judgments of each judge that an estimate before a run counts."""
_LATENCY = 1.0
"""Guessed seconds until a reply begins."""
_TOKENS_PER_SECOND = 60.0
"""Guessed speed at which a model writes."""
_MILLION = 1e6
_ORDERS = {1: "one order", 2: "both orders"}
_HALF_PRICED = (pricing.DEFAULT_URL, VENDORS["anthropic"].url, VENDORS["gemini"].url)
"""The addresses whose batches are known to cost `pricing.BATCH` of the price."""


def estimate_cost(
    prepared: PreparedRun,
    most: int | None = None,
    items: int | None = None,
) -> CostEstimate:
    """Estimate a run's requests, price and time. `most` and `items` are as in `count_requests`.

    Raises ConfigError.
    """
    config = prepared.config
    if items is not None and items < 1:
        raise ConfigError(f"{option('items', items)}: must be 1 or more")
    has_fixed_pairs = isinstance(config, RankConfig) and config.pairs is not None
    if items is not None and has_fixed_pairs:
        items_option = option("items")
        pairs_option = option("pairs")
        raise ConfigError(
            f"{items_option} with {pairs_option}: the number of pairs is fixed; leave one out"
        )
    estimates = count_requests(prepared, most, items)
    judging = _judge_plans(prepared, estimates)
    # Systems write one after the other, then all judges score at the same time.
    steps = _known_seconds(prepared.writing)
    judging_seconds = _known_seconds(judging)
    if judging_seconds:
        steps.append(max(judging_seconds))
    judges = (*prepared.writing, *judging)
    price = sum_prices(judge.money.price for judge in judges)
    fits = requests_in_budget(config, judges, price)
    return CostEstimate(
        judges=judges,
        price=price,
        seconds=sum(steps) if steps else None,
        budget=config.budget,
        fits=fits,
    )


def _judge_plans(
    prepared: PreparedRun, estimates: Iterable[JudgeEstimate]
) -> list[JudgePlan]:
    """Return the price and the time of each judge's requests."""
    plans: list[JudgePlan] = []
    for estimate in estimates:
        judge = estimate.judge
        config = prepared.opened[judge].config
        provider = prepared.judges[judge]
        plans.append(judge_plan(config, provider, estimate))
    return plans


def _known_seconds(judges: Iterable[JudgePlan]) -> list[float]:
    """Return the times of the judges whose time is known."""
    times = [judge.time for judge in judges]
    return [time.seconds for time in times if time.seconds is not None]


def requests_in_budget(
    config: RunConfig,
    judges: Sequence[JudgePlan],
    price: float | None,
) -> int | None:
    """Return about how many requests fit.

    None without a budget, if the price is unknown, or for batches: a batch reserves the maximum
    cost of all its requests at once, of which the price says little.
    """
    if config.budget is None or config.engine == "batch":
        return None
    if config.budget.unit == "usd":
        needed = price
    else:
        usage = sum((judge.usage for judge in judges), Usage())
        needed = usage.prompt_tokens + usage.completion_tokens
    if needed is None:
        return None
    requests = sum(judge.estimate.total.requests for judge in judges)
    if not needed:
        return requests
    share = config.budget.amount / needed
    return int(requests * min(1.0, share))


def cost_summary(runs: Iterable[PreparedRun]) -> str:
    """Return the approximate number of requests of the runs and their price.

    Both are estimated from a sample of the judgments. "" if no model is called.
    """
    estimates = []
    for prepared in runs:
        # A judge with a notice calls no model: it is scripted or a recording.
        judges = prepared.judges.values()
        calls_model = not all(judge.notice for judge in judges)
        if calls_model:
            estimates.append(estimate_cost(prepared, SAMPLED_JUDGMENTS))
    if not estimates:
        return ""
    requests = sum(estimate.requests for estimate in estimates)
    # Some model would be asked, but has answered all of it before.
    if not requests:
        return "answered from the cache"
    price = sum_prices(estimate.price for estimate in estimates)
    number_of_requests = plural(requests, "request")
    return f"about {number_of_requests}, {price_text(price)}"


def judge_plan(
    config: RunConfig,
    provider: Provider,
    estimate: JudgeEstimate,
) -> JudgePlan:
    """Return the price and the time of one judge's requests."""
    price = _price(config, provider, estimate)
    duration_of_requests = _duration(config, provider, estimate.total)
    return JudgePlan(
        estimate=estimate,
        model=provider.model,
        endpoint=provider.endpoint,
        money=price,
        time=duration_of_requests,
    )


def _price(config: RunConfig, provider: Provider, estimate: JudgeEstimate) -> Price:
    if provider.notice:
        return Price(0.0, 0.0, 0.0, "no model is called")
    total = estimate.total
    in_batches = config.engine == "batch"
    # Another server may have a Batch API too, but nobody knows what it charges.
    discounted = in_batches and provider.endpoint in _HALF_PRICED

    def cost(usage: Usage) -> float | None:
        batched = usage if discounted else Usage()
        return pricing.cost_of(provider, usage, batched=batched)

    usage = Usage(int(total.read), int(total.written))
    price = cost(usage)
    if price is None:
        return Price(None, None, None, pricing.why_unknown(provider))
    with_prompt_cache = replace(
        usage,
        cached_tokens=int(total.shared),
        cache_write_tokens=int(total.stored),
    )
    source = pricing.price_source(provider)
    if discounted:
        source += ", half price in a batch"
    elif in_batches:
        source += "; half of it if it has a Batch API"
    rate = None
    token_prices = pricing.prices_of(provider)
    if token_prices is not None:
        input_price = token_prices.uncached * _MILLION
        output_price = token_prices.output * _MILLION
        rate = (input_price, output_price)
    price_of_draws: float | None = 0.0
    if estimate.fallback_draws:
        price_of_draws = cost(_usage_of_draws(estimate))
    return Price(
        price,
        cached=cost(with_prompt_cache),
        more=price_of_draws,
        why=source,
        rate=rate,
    )


def _usage_of_draws(estimate: JudgeEstimate) -> Usage:
    """Return the additional tokens if the model turns out to give no token probabilities.

    Draws then replace all requests except the first, which shows that they are needed.
    """
    total = estimate.total
    first = 1 / max(1, total.requests)
    read = round(total.read * (estimate.fallback_requests - 1 + first))
    written = round(total.written * (estimate.fallback_draws - 1 + first))
    return Usage(read, written)


def _duration(config: RunConfig, provider: Provider, total: LineEstimate) -> Duration:
    if provider.notice:
        return Duration(None, "no model is called")
    if not total.requests:
        return Duration(None, "nothing to ask")
    if config.engine == "batch":
        return Duration(None, "a batch takes up to 24 hours")
    # The slowest of these limits decides.
    tokens_per_reply = total.written / total.requests
    seconds_per_reply = _LATENCY + tokens_per_reply / _TOKENS_PER_SECOND
    at_once = min(config.max_concurrency, total.requests)
    rounds = total.requests / at_once
    limits = [(rounds * seconds_per_reply, f"{config.max_concurrency} at once")]
    if config.rpm:
        minutes = total.requests / config.rpm
        limits.append((minutes * 60, option("rpm", config.rpm)))
    if config.tpm:
        tokens = total.read + total.written
        minutes = tokens / config.tpm
        limits.append((minutes * 60, option("tpm", config.tpm)))
    seconds, limit = max(limits)
    # The first request is sent alone, before the others.
    seconds += seconds_per_reply
    return Duration(seconds, f"{limit}, assuming {seconds_per_reply:.1f} s per reply")


def pending_batches(prepared: PreparedRun) -> list[str]:
    """Return a note for each judge whose requests an earlier run left in unfinished batches.

    A run in batches collects their replies. Any other run would pay for them again.
    """
    notes = []
    for provider in prepared.judges.values():
        context = engine_context(prepared.config, provider)
        if context.folder is None:
            continue
        endpoint = context.provider.endpoint
        pending = under_way(context.folder, endpoint)
        if pending:
            requests = plural(pending, "request")
            in_progress = f"{requests} of an earlier run are in progress in batches at {endpoint}."
            if prepared.config.engine == "batch":
                advice = (
                    "This run collects their replies and does not pay for the same requests again; "
                    "the estimate includes them."
                )
            else:
                advice = (
                    f"Use {option('engine', 'batch')} to wait for them; otherwise this run pays "
                    "for the same requests again."
                )
            notes.append(f"{in_progress} {advice}")
    return notes


def one_line_estimate(prepared: PreparedRun, notes: list[str] | None = None) -> str:
    """Return one line to print before a run: its judgments, requests, tokens, price and time.

    All but the judgments are estimated from a sample. Batches in progress get lines of their own.
    "" without a judge. Warnings about the cache, such as that a damaged one was replaced, are added
    to `notes`.
    """
    estimates = count_requests(prepared, SAMPLED_JUDGMENTS, notes=notes)
    if not estimates:
        return ""
    line = _size_of_run(prepared)
    requests = sum(estimate.total.requests for estimate in estimates)
    if not requests and any(estimate.total.broken for estimate in estimates):
        line += ", and no prompt can be rendered"
    elif not requests:
        about = "" if all(estimate.exact for estimate in estimates) else "about "
        # The other judgments are not asked, because the first replies had no score.
        line += f"; the cache answers {about}all requests"
    elif all(prepared.judges[estimate.judge].notice for estimate in estimates):
        line += "; no model is called"
    else:
        line += f": {_cost_line(prepared, estimates)}"
    return "\n".join([line, *pending_batches(prepared)])


def _size_of_run(prepared: PreparedRun) -> str:
    """Return `120 judgments to make`, for a ranking `60 pairs of texts in both orders: …`."""
    pairs = prepared.pairs
    size = len(pairs.compared) if pairs else len(prepared.samples)
    checklists = [
        criterion for criterion in prepared.criteria if criterion.is_checklist
    ]
    # A checklist asks one question per item of the list, and so more than one per text.
    more_questions = 0
    for criterion in checklists:
        for sample in prepared.samples:
            if has_questions(criterion, sample):
                more_questions += len(questions_of(criterion, sample)) - 1
    per_judge = size * len(prepared.criteria) + more_questions
    count = per_judge * len(prepared.judges)
    line = f"{plural(count, 'judgment')} to make"
    if checklists:
        line = f"{plural(count, 'question')} to ask"
    if pairs is not None and isinstance(prepared.config, RankConfig):
        orders = _ORDERS[prepared.config.orders]
        chosen_pairs = plural(pairs.chosen, "pair")
        return f"{chosen_pairs} of texts in {orders}: {line}"
    return line


def _cost_line(prepared: PreparedRun, estimates: Sequence[JudgeEstimate]) -> str:
    """Return `about 120 requests, 84k tokens to read, 2,400 to write, $0.02, about 10 s`."""
    judges = _judge_plans(prepared, estimates)
    requests = sum(estimate.total.requests for estimate in estimates)
    usage = sum((judge.usage for judge in judges), Usage())
    price = sum_prices(judge.money.price for judge in judges)
    tokens_read = f"{_short(usage.prompt_tokens)} tokens to read"
    tokens_written = f"{_short(usage.completion_tokens)} to write"
    parts = [
        f"about {plural(requests, 'request')}",
        f"{tokens_read}, {tokens_written}",
        price_text(price),
    ]
    seconds = _known_seconds(judges)
    if seconds:
        longest = rough_duration(max(seconds))
        parts.append(f"about {longest}")
    return ", ".join(parts)


def _short(number: int) -> str:
    """Return `8,400`, `12k` or `4.2M`."""
    if number < 10_000:
        return f"{number:,}"
    if number < _MILLION:
        return f"{number / 1e3:.0f}k"
    return f"{number / _MILLION:.1f}M"
