"""Estimate the price of a run and the time it takes, from the requests that a dry run counts.

`one_line_estimate` puts the estimate into the line that is printed before a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from judge.config import RankConfig, RunConfig
from judge.core.errors import ConfigError
from judge.core.format import duration, plural
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
    CriterionEstimate,
    Duration,
    JudgeEstimate,
    JudgeForecast,
    Price,
    price_text,
    sum_prices,
)

SAMPLED_JUDGMENTS = 400
"""Judgments of each judge that an estimate before a run looks at."""
_LATENCY, _PER_SECOND = 1.0, 60.0
"""Guessed seconds until a reply begins, and tokens written per second."""
_MILLION = 1e6
_ORDERS = {1: "one order", 2: "both orders"}
_HALF_PRICED = (pricing.DEFAULT_URL, VENDORS["anthropic"].url, VENDORS["gemini"].url)
"""The addresses whose batches are known to cost `pricing.BATCH` of the price."""


def estimate_cost(
    prepared: PreparedRun, most: int | None = None, items: int | None = None
) -> CostEstimate:
    """Estimate a run's requests, price and time. `most` and `items` are as in `count_requests`.

    Raises ConfigError.
    """
    config = prepared.config
    if items is not None and items < 1:
        raise ConfigError(f"{option('items', items)}: must be 1 or more")
    if items is not None and isinstance(config, RankConfig) and config.pairs is not None:
        raise ConfigError(
            f"{option('items')} with {option('pairs')}: the number of pairs is fixed; leave one out"
        )
    judging = [
        judge_forecast(prepared.plans[estimate.judge], prepared.judges[estimate.judge], estimate)
        for estimate in count_requests(prepared, most, items)
    ]
    # Systems write one after the other, then all judges score at the same time.
    steps = [judge.time.seconds for judge in prepared.writing if judge.time.seconds is not None]
    judging_times = [judge.time.seconds for judge in judging if judge.time.seconds is not None]
    if judging_times:
        steps.append(max(judging_times))
    judges = (*prepared.writing, *judging)
    price = sum_prices(judge.money.price for judge in judges)
    return CostEstimate(
        judges=judges,
        price=price,
        seconds=sum(steps) if steps else None,
        budget=config.budget,
        fits=_requests_in_budget(config, judges, price),
    )


def _requests_in_budget(
    config: RunConfig, judges: Sequence[JudgeForecast], price: float | None
) -> int | None:
    """Return about how many requests fit; None without a budget or if the price is unknown."""
    if config.budget is None:
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
    return int(requests * min(1.0, config.budget.amount / needed))


def cost_summary(runs: Iterable[PreparedRun]) -> str:
    """Return about how many requests the runs take and their price, from a sample.

    "" if no model is called.
    """
    estimates = []
    for prepared in runs:
        # A judge with a notice calls no model: it is scripted or a recording.
        calls_model = not all(judge.notice for judge in prepared.judges.values())
        if calls_model:
            estimates.append(estimate_cost(prepared, SAMPLED_JUDGMENTS))
    if not estimates:
        return ""
    requests = sum(estimate.requests for estimate in estimates)
    if not requests:
        return "answered from the cache"
    price = sum_prices(estimate.price for estimate in estimates)
    return f"about {requests:,} requests, {price_text(price)}"


def judge_forecast(config: RunConfig, provider: Provider, estimate: JudgeEstimate) -> JudgeForecast:
    """Return the price and the time of one judge's requests."""
    return JudgeForecast(
        estimate=estimate,
        model=provider.model,
        endpoint=provider.endpoint,
        money=_price(config, provider, estimate),
        time=_duration(config, provider, estimate.total),
    )


def _price(config: RunConfig, provider: Provider, estimate: JudgeEstimate) -> Price:
    if provider.notice:
        return Price(0.0, 0.0, 0.0, "no model is called")
    total = estimate.total
    discounted = config.engine == "batch" and provider.endpoint in _HALF_PRICED

    def cost(usage: Usage) -> float | None:
        batched = usage if discounted else Usage()
        return pricing.cost_of(provider, usage, batched=batched)

    read = int(total.read)
    written = int(total.written)
    price = cost(Usage(read, written))
    if price is None:
        return Price(None, None, None, pricing.why_unknown(provider))
    cached = cost(
        Usage(read, written, cached_tokens=int(total.shared), cache_write_tokens=int(total.stored))
    )
    more: float | None = 0.0
    if estimate.draws:
        # Draws replace the other requests, except the first, which shows that they are needed.
        first = 1 / max(1, total.requests)
        extra_read = round(total.read * (estimate.each - 1 + first))
        extra_written = round(total.written * (estimate.draws - 1 + first))
        more = cost(Usage(extra_read, extra_written))
    source = pricing.price_source(provider)
    if config.engine == "batch":
        source += ", half price in a batch" if discounted else "; half of it if it has a Batch API"
    rate = None
    rates = pricing.prices_of(provider)
    if rates:
        rate = (rates[0] * _MILLION, rates[3] * _MILLION)
    return Price(price, cached, more, source, rate)


def _duration(config: RunConfig, provider: Provider, total: CriterionEstimate) -> Duration:
    if provider.notice:
        return Duration(None, "no model is called")
    if not total.requests:
        return Duration(None, "nothing to ask")
    if config.engine == "batch":
        return Duration(None, "a batch takes up to 24 hours")
    seconds_per_reply = _LATENCY + total.written / total.requests / _PER_SECOND
    rounds = total.requests / min(config.max_concurrency, total.requests)
    limits = [(rounds * seconds_per_reply, f"{config.max_concurrency} at once")]
    if config.rpm:
        limits.append((total.requests / config.rpm * 60, f"--rpm {config.rpm:,}"))
    if config.tpm:
        tokens = total.read + total.written
        limits.append((tokens / config.tpm * 60, f"--tpm {config.tpm:,}"))
    seconds, limit = max(limits)
    # The first request is sent alone, before the others.
    seconds += seconds_per_reply
    return Duration(seconds, f"{limit}, assuming {seconds_per_reply:.1f} s per reply")


def pending_batches(prepared: PreparedRun) -> list[str]:
    """Warn of batches of an earlier run that are still in progress, if this run would not wait for
    them.
    """
    if prepared.config.engine == "batch":
        return []
    warnings = []
    for provider in prepared.judges.values():
        context = engine_context(prepared.config, provider)
        if context.folder is None:
            continue
        endpoint = context.provider.endpoint
        pending = under_way(context.folder, endpoint)
        if pending:
            warnings.append(
                f"{plural(pending, 'request')} of an earlier run are in progress in batches at "
                f"{endpoint}. Use {option('engine', 'batch')} to wait for them; otherwise this "
                "run pays for the same requests again."
            )
    return warnings


def one_line_estimate(prepared: PreparedRun, notes: list[str] | None = None) -> str:
    """Return one line to print before a run: judgments and, from a sample, about the requests,
    tokens, price and time.

    Batches in progress get lines of their own. "" without a judge. What the run should say of its
    cache, such as that a damaged one was replaced, is added to `notes`.
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
        line += f", {about}all of them answered from the cache"
    elif all(prepared.judges[estimate.judge].notice for estimate in estimates):
        line += "; no model is called"
    else:
        line += f": {_cost_line(prepared, estimates)}"
    return "\n".join([line, *pending_batches(prepared)])


def _size_of_run(prepared: PreparedRun) -> str:
    """Write `120 judgments to make`; for a ranking, the pairs of texts before."""
    pairs = prepared.pairs
    size = len(pairs.compared) if pairs else len(prepared.samples)
    checklists = [criterion for criterion in prepared.criteria if criterion.is_checklist]
    more_questions = 0
    for criterion in checklists:
        for sample in prepared.samples:
            if has_questions(criterion, sample):
                more_questions += len(questions_of(criterion, sample)) - 1
    count = (size * len(prepared.criteria) + more_questions) * len(prepared.judges)
    line = (
        f"{plural(count, 'question')} to ask"
        if checklists
        else f"{plural(count, 'judgment')} to make"
    )
    if pairs is not None and isinstance(prepared.config, RankConfig):
        orders = _ORDERS[prepared.config.orders]
        return f"{plural(pairs.chosen, 'pair')} of texts in {orders}: {line}"
    return line


def _cost_line(prepared: PreparedRun, estimates: Sequence[JudgeEstimate]) -> str:
    """Write about the requests, the tokens, the price and the time."""
    judges = [
        judge_forecast(prepared.plans[estimate.judge], prepared.judges[estimate.judge], estimate)
        for estimate in estimates
    ]
    requests = sum(estimate.total.requests for estimate in estimates)
    usage = sum((judge.usage for judge in judges), Usage())
    parts = [
        f"about {requests:,} requests",
        f"{_short(usage.prompt_tokens)} tokens to read, {_short(usage.completion_tokens)} to write",
        price_text(sum_prices(judge.money.price for judge in judges)),
    ]
    seconds = [judge.time.seconds for judge in judges if judge.time.seconds is not None]
    if seconds:
        parts.append(f"about {duration(max(seconds))}")
    return ", ".join(parts)


def _short(number: int) -> str:
    """`840`, `12k`, `4.2M`."""
    if number < 10_000:
        return f"{number:,}"
    return f"{number / 1e3:.0f}k" if number < 1e6 else f"{number / 1e6:.1f}M"
