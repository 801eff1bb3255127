"""Estimate what a run will cost and take before it starts, and how sure that estimate is. Sends nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from judge.commands.count_requests import (
    CriterionEstimate,
    Duration,
    JudgeEstimate,
    JudgeForecast,
    Price,
    RunForecast,
    SingleReplyPrice,
    count_requests,
)
from judge.commands.judge_models import UNKNOWN, open_judge
from judge.commands.judge_run import judgments
from judge.commands.preparation import PreparedRun, criterion_for, engine_context
from judge.config import Budget, Judge, RankConfig, RunConfig
from judge.core.errors import ConfigError, CriterionError
from judge.core.messages import option
from judge.core.records import Usage
from judge.execution import budget
from judge.execution.engines.batch_jobs import under_way
from judge.metrics import asks_judge
from judge.providers import Capabilities, Provider, pricing
from judge.providers.replay import ReplayProvider
from judge.scoring import strategies
from judge.scoring.multi_criteria import make_renderers

_SAMPLED_JUDGMENTS = 400
_LATENCY, _PER_SECOND = 1.0, 60.0
"""Guesses: seconds until a reply begins, and tokens that a model writes per second."""
_MILLION = 1e6
_NOT_INCLUDED = (
    "Not counted: tries after a failed one, what a model thinks before it writes, and limits of the server that are "
    "not in --rpm or --tpm."
)
_ORDERS = {1: "one order", 2: "both orders"}


def longest_prompt_tokens(runs: Iterable[PreparedRun]) -> int:
    """Estimate the tokens of the longest prompt of any judgment; 0 without a judge."""
    longest = 0
    for prepared in runs:
        for name, provider in prepared.judges.items():
            renderers = make_renderers([criterion_for(criterion, provider) for criterion in prepared.criteria])
            strategy = strategies.strategies_for(prepared.settings, provider.decides)[0]
            for judgment in judgments(prepared, name):
                criterion = judgment.criterion
                try:
                    prompt = renderers[criterion.name].render(judgment.sample, judgment.rival)
                except CriterionError:
                    continue
                request = strategies.requests(prompt, criterion, strategy, prepared.settings)[0]
                longest = max(longest, budget.estimate_request(request))
    return longest


def uncached_price(runs: Iterable[PreparedRun]) -> tuple[float | None, str]:
    """Return the price of all judgments in US dollars without a cache; None if it is unknown, and the reason.

    For a recording, this is the price at its model, as the plan would reach it.
    """
    total = 0.0
    for prepared in runs:
        config = prepared.config.model_copy(update={"cache": False, "replay": None})
        try:
            judges = {name: _recorded_model(config, provider) for name, provider in prepared.judges.items()}
            forecast = estimate_cost(replace(prepared, config=config, judges=judges, notes=[]))
        except ConfigError as error:
            return None, str(error)
        if forecast.price is None:
            return None, next(judge.money.why for judge in forecast.judges if judge.money.price is None)
        total += forecast.price
    return total, ""


def _recorded_model(config: RunConfig, provider: Provider) -> Provider:
    """Replace a recording by its model, at the address that the plan names. Needs no key."""
    if not isinstance(provider, ReplayProvider):
        return provider
    named = [
        judge for judge in config.model if judge.name == provider.model or judge.name.endswith(f"/{provider.model}")
    ]
    name = f"decisions/{provider.model}" if provider.decides else provider.model
    return open_judge(config, named[0] if named else Judge(name=name), sends=False)


def cost_summary(runs: Iterable[PreparedRun]) -> str:
    """Return about how many requests the runs take and their price, from a sample; "" if no model is asked."""
    forecasts = [
        estimate_cost(prepared, _SAMPLED_JUDGMENTS)
        for prepared in runs
        if not all(judge.notice for judge in prepared.judges.values())
    ]
    if not (requests := sum(forecast.requests for forecast in forecasts)):
        return "answered from the cache" if forecasts else ""
    known = [forecast.price for forecast in forecasts if forecast.price is not None]
    return f"about {requests:,} requests, {dollars(sum(known)) if len(known) == len(forecasts) else 'price unknown'}"


def estimate_cost(prepared: PreparedRun, most: int | None = None, items: int | None = None) -> RunForecast:
    """Estimate a run's requests, price and time, from all judgments or a sample of about `most` for each judge.

    With `items`, scale to that many similar items, none of which is cached. Raises ConfigError.
    """
    config = prepared.config
    notes = []
    if items is not None:
        if items < 1:
            raise ConfigError(f"{option('items', items)}: has to be 1 or more")
        if isinstance(config, RankConfig) and config.pairs is not None:
            raise ConfigError(f"{option('items')} with {option('pairs')}: the pairs are what is asked; leave one out")
        known = len({sample.item for sample in prepared.samples})
        notes.append(
            f"Scaled from {known:,} item{'s' * (known != 1)} to {items:,} like them, as if the cache had no reply to "
            "them; what it knows of the model still counts."
        )
    judges = tuple(
        _judge_forecast(config, prepared.judges[estimate.judge], estimate)
        for estimate in count_requests(prepared, most, items)
    )
    if most is None:
        judges = tuple(_with_strategies(prepared, judges, items))
    prices = [judge.money.price for judge in judges]
    known_prices = [price for price in prices if price is not None]
    price = sum(known_prices) if len(known_prices) == len(prices) else None
    times = [judge.time.seconds for judge in judges if judge.time.seconds is not None]
    usage = sum((judge.usage for judge in judges), Usage())
    requests = sum(judge.ahead.total.requests for judge in judges)
    in_usd = config.budget is not None and config.budget.unit == "usd"
    whole = price if in_usd else usage.prompt_tokens + usage.completion_tokens
    room = max(
        (judge.ahead.room * (_price_share(config, judge.endpoint) if in_usd else 1) for judge in judges), default=0.0
    )
    in_time = [judge.time.in_time for judge in judges if judge.time.in_time is not None]
    return RunForecast(
        judges=judges,
        price=price,
        seconds=max(times, default=None),
        budget=config.budget,
        fits=_affordable_requests(config.budget, requests, whole, room),
        room=room,
        deadline=config.deadline,
        in_time=sum(in_time) if config.deadline and len(in_time) == len(judges) else None,
        notes=(*notes, *_notes(prepared, judges, items)),
    )


def _affordable_requests(budget: Budget | None, requests: int, whole: float | None, room: float) -> int | None:
    """Estimate how many requests fit into the budget. A request is sent only if its maximum cost still fits."""
    if budget is None or whole is None:
        return None
    spendable = budget.amount - room
    if spendable < 0:
        return 0
    return requests if spendable * requests >= whole * (requests - 1) else 1 + int(spendable * requests / whole)


def _judge_forecast(config: RunConfig, provider: Provider, estimate: JudgeEstimate) -> JudgeForecast:
    return JudgeForecast(
        ahead=estimate,
        model=provider.model,
        endpoint=provider.endpoint,
        money=_price(config, provider, estimate),
        time=_duration(config, provider, estimate.total),
        rests=_explain_tokens(estimate),
    )


def _with_strategies(
    prepared: PreparedRun, judges: Sequence[JudgeForecast], items: int | None
) -> Iterator[JudgeForecast]:
    """Add each judge's strategy in words and, if it draws several replies, the cost of one reply, from a sample."""
    drawing = {
        judge.ahead.judge for judge in judges if judge.ahead.total.requests and judge.ahead.rungs[:1] == ("samples",)
    }
    providers = {
        name: provider for name, provider in prepared.judges.items() if name in drawing and not provider.notice
    }
    single = replace(prepared, settings=replace(prepared.settings, weighting="single"), judges=providers)
    single_estimates = {estimate.judge: estimate for estimate in count_requests(single, _SAMPLED_JUDGMENTS, items)}
    for judge in judges:
        forecast = replace(judge, way=_describe_strategy(prepared, judge.ahead))
        if (estimate := single_estimates.get(judge.ahead.judge)) is not None:
            price = _price(prepared.config, providers[estimate.judge], estimate).price
            forecast = replace(forecast, single=SingleReplyPrice(estimate.total.requests, price))
        yield forecast


def _describe_strategy(prepared: PreparedRun, estimate: JudgeEstimate) -> str:
    """Say how the judge is asked, and why."""
    provider, settings = prepared.judges[estimate.judge], prepared.settings
    if provider.notice or not estimate.rungs:
        return ""
    strategy = estimate.rungs[0]
    if strategy == "decisions":
        return "decisions: typed questions, whose answers come with probabilities"
    if strategy == "logprobs":
        return f"logprobs: token probabilities of one reply{', if the model gives them' * bool(estimate.draws)}"
    if strategy == "single":
        return "single: one reply, as it is written"
    each = ", a request for each" if provider.learned.get("n") == 1 else ""
    description = f"samples: the mean of {settings.draws} draws of each reply{each}"
    if settings.weighting == "samples":
        return description
    probe = "; one request more tries for them first" if "logprobs" in estimate.rungs else ""
    who = "vendor" if "logprobs" in provider.learned.get("dropped", ()) else "model"
    return f"{description}, as the {who} gives no token probabilities{probe}"


def _price_share(config: RunConfig, endpoint: str) -> float:
    """Return the share of the list price that requests cost: below 1 in a batch, if the discount is known."""
    return pricing.BATCH if config.engine == "batch" and endpoint == pricing.DEFAULT_URL else 1.0


def _price(config: RunConfig, provider: Provider, estimate: JudgeEstimate) -> Price:
    if provider.notice:
        return Price(0.0, 0.0, 0.0, "no model is asked")
    total, discounted = estimate.total, _price_share(config, provider.endpoint) < 1

    def cost(usage: Usage) -> float | None:
        batched = usage if discounted else Usage()
        return pricing.cost_usd(provider.model, provider.endpoint, usage, batched=batched, decides=provider.decides)

    read, written = int(total.read), int(total.written)
    price = cost(Usage(read, written))
    if price is None:
        return Price(None, None, None, pricing.why_unknown(provider.model, provider.endpoint, decides=provider.decides))
    cached = cost(Usage(read, written, cached_tokens=int(total.shared), cache_write_tokens=int(total.stored)))
    more: float | None = 0.0
    if estimate.draws:
        # draws replace the other requests, except the first, which shows that they are needed
        first = 1 / max(1, total.requests)
        extra_read = round(total.read * (estimate.each - 1 + first))
        more = cost(Usage(extra_read, round(total.written * (estimate.draws - 1 + first))))
    batch = ", half price in a batch" if discounted else "; half of it if it has a Batch API"
    why = pricing.price_source(decides=provider.decides) + (batch if config.engine == "batch" else "")
    rates = pricing.per_token(provider.model, provider.endpoint, decides=provider.decides)
    return Price(price, cached, more, why, rates and (rates[0] * _MILLION, rates[3] * _MILLION))


def _duration(config: RunConfig, provider: Provider, total: CriterionEstimate) -> Duration:
    if provider.notice or not total.requests:
        return Duration(None, "no model is asked" if provider.notice else "nothing to ask", total.requests)
    if config.engine == "batch":
        return Duration(None, "a batch: within 24 hours")
    if Capabilities.of(provider).gpu:
        return Duration(None, "as this machine computes; a run with --limit says how fast that is")
    each = _LATENCY + total.written / total.requests / _PER_SECOND
    limits = [
        (total.requests / min(config.max_concurrency, total.requests) * each, f"{config.max_concurrency} at once")
    ]
    if config.rpm:
        limits.append((total.requests / config.rpm * 60, f"--rpm {config.rpm:,}"))
    if config.tpm:
        limits.append(((total.read + total.written) / config.tpm * 60, f"--tpm {config.tpm:,}"))
    seconds, limit = max(limits)
    in_time = None
    if config.deadline is not None:
        in_time = min(total.requests, max(0, 1 + math.floor((config.deadline - each) * total.requests / seconds)))
    # the first request goes alone
    return Duration(seconds + each, f"{limit}, guessing {each:.1f} s for a reply", in_time)


def _explain_tokens(estimate: JudgeEstimate) -> str:
    """Say how the tokens were estimated."""
    if estimate.checked is None:
        english, kana, han, hangul = (budget.estimate_tokens(letter * 1000) / 1000 for letter in "aあ漢한")
        rates = (
            f"English {1 / english:.1f} for a token; Japanese kana {kana:.2g} tokens each, kanji and Chinese "
            f"{han:.2g}, Korean {hangul:.2g}"
        )
        read = (
            f"tokens read are estimated from characters ({rates}), often 10 % off; the cache holds no counted reply "
            "to correct that by"
        )
    else:
        checked = estimate.checked
        bias = f"{abs(checked.bias):.1%} too {'high' if checked.bias > 0 else 'low'}: corrected"
        read = (
            f"tokens read are estimated from characters; on the {checked.replies:,} prompts whose replies are in the "
            f"cache that was {bias}, which leaves a median error of {checked.error:.1%}"
        )
    if "decisions" in estimate.rungs:
        return f"{read}; answers to typed questions are not written"
    if not estimate.total.requests:
        return read
    return f"{read}; tokens written are {'the mean of those replies' if estimate.learned else 'guessed by reply kind'}"


def _notes(prepared: PreparedRun, judges: Sequence[JudgeForecast], items: int | None) -> list[str]:
    """Say which choices are defaults, and what the numbers do not include."""
    notes = []
    if prepared.criteria and "criteria" not in prepared.config.model_fields_set:
        names = ", ".join(criterion.name for criterion in prepared.criteria)
        notes.append(f"Criteria: {names}, as none were named; {option('criteria')} names others.")
    if hoping := [judge for judge in judges if judge.ahead.draws]:
        draws = hoping[0].ahead.draws
        each = max(judge.ahead.each for judge in judges)
        requests = f", {each} requests for one" if each > 1 else ""
        known = [judge.money.more for judge in hoping if judge.money.more is not None]
        cost = f", which costs about {dollars(sum(known))} more" if len(known) == len(hoping) else ""
        notes.append(
            f"If the first reply shows that the model gives no token probabilities, {draws} draws of each reply are "
            f"asked for instead{requests}{cost} (--weighting single does without)."
        )
    notes += _pending_batches(prepared)
    if prepared.rest is not None and items is None:
        notes.append(f"All this is of the first {len(prepared.samples):,} texts; the data has more.")
    asking = [name for name, metric in prepared.metrics.items() if asks_judge(metric)]
    if asking:
        first = next(iter(prepared.judges), "its judge")
        notes.append(f"Not counted: what {', '.join(asking)} asks {first}, as its later questions depend on replies.")
    if any(judge.endpoint.startswith(UNKNOWN) for judge in judges):
        notes.append("$AZURE_OPENAI_ENDPOINT is not set: what the cache holds of the replies there was not looked up.")
    broken = sum(judge.ahead.total.broken for judge in judges)
    if broken:
        notes.append(f"{broken:,} judgments cannot be asked: their prompt cannot be rendered; the run says why.")
    if any(judge.ahead.total.requests for judge in judges):
        notes.append(_NOT_INCLUDED)
    return notes


def _pending_batches(prepared: PreparedRun) -> list[str]:
    """Warn of batches of an earlier run that are still in progress, if this run would not wait for them."""
    if prepared.config.engine == "batch":
        return []
    warnings = []
    for provider in prepared.judges.values():
        context = engine_context(prepared.config, provider)
        if context.folder is not None and (number := under_way(context.folder, context.provider.endpoint)):
            warnings.append(
                f"{number:,} requests of an earlier run are under way in batches at {context.provider.endpoint}: with "
                "--engine batch this run waits for them, without it what it asks of them is paid again."
            )
    return warnings


def one_line_estimate(prepared: PreparedRun) -> str:
    """Return one line to print before a run: judgments and, from a sample, about the requests, tokens, price and time.

    A ranking also has its n·(k choose 2) pairs, and batches in progress get lines of their own. "" without a judge.
    """
    estimates = count_requests(prepared, _SAMPLED_JUDGMENTS)
    if not estimates:
        return ""
    return "\n".join(
        [f"{_describe_pairs(prepared)}{_describe_requests(prepared, estimates)}", *_pending_batches(prepared)]
    )


def _describe_requests(prepared: PreparedRun, estimates: Sequence[JudgeEstimate]) -> str:
    size = len(prepared.pairs.compared) if prepared.pairs else len(prepared.samples)
    count = size * len(prepared.criteria) * len(prepared.judges)
    line = f"{count:,} judgments to make{f' of the first {size:,} texts' if prepared.rest is not None else ''}"
    requests = sum(estimate.total.requests for estimate in estimates)
    if not requests:
        about = "" if all(estimate.exact for estimate in estimates) else "about "
        return f"{line}, {about}all of them answered from the cache"
    judges = [_judge_forecast(prepared.config, prepared.judges[estimate.judge], estimate) for estimate in estimates]
    if all(prepared.judges[estimate.judge].notice for estimate in estimates):
        return f"{line}, and no model is asked"
    usage = sum((judge.usage for judge in judges), Usage())
    known = [judge.money.price for judge in judges if judge.money.price is not None]
    parts = [
        f"{line}: about {requests:,} requests",
        f"{_short(usage.prompt_tokens)} tokens to read, {_short(usage.completion_tokens)} to write",
        dollars(sum(known)) if len(known) == len(judges) else "price unknown",
    ]
    seconds = [judge.time.seconds for judge in judges if judge.time.seconds is not None]
    parts += [f"about {duration(max(seconds))}"] if seconds else []
    return ", ".join(parts)


def _describe_pairs(prepared: PreparedRun) -> str:
    config, pairs = prepared.config, prepared.pairs
    if pairs is None or not isinstance(config, RankConfig):
        return ""
    factors = [f"{pairs.chosen:,} pair{'s' * (pairs.chosen != 1)} of texts in {_ORDERS[config.orders]}"]
    for count, noun in ((len(prepared.criteria), "criteria"), (len(prepared.judges), "judges")):
        factors += [f"{count} {noun}"] if count > 1 else []
    equal = len(pairs.equal) // config.orders
    ties = f" (equal texts, {equal:,} pair{'s' * (equal != 1)}, are ties for nothing)" if equal else ""
    return f"{' × '.join(factors)}{ties}: "


def dollars(amount: float) -> str:
    """Format an amount: `$12.30`; below a dollar with two significant digits: `$0.012`."""
    if amount >= 1 or amount == 0:
        return f"${amount:,.2f}"
    return f"${amount:.2g}" if amount >= 1e-4 else "less than $0.0001"


def duration(seconds: float) -> str:
    """Format a duration: `40 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _short(number: int) -> str:
    """`840`, `12k`, `4.2M`."""
    if number < 10_000:
        return f"{number:,}"
    return f"{number / 1e3:.0f}k" if number < 1e6 else f"{number / 1e6:.1f}M"
