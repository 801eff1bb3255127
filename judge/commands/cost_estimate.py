"""What a suite's runs take: requests now, and with nothing in the cache the longest prompt and the price.

Plan before paying: what a run is going to cost and take, and on what that estimate rests. Sends nothing.
"""

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
from judge.config import Budget, Judge, Plan, RankPlan
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

_LOOKED_AT = 400


def longest_prompt_tokens(runs: Iterable[PreparedRun]) -> int:
    """About the tokens that the longest prompt of any judgment has; 0 where no judge is asked."""
    return max((size for prepared in runs for size in _sizes(prepared)), default=0)


def uncached_price(runs: Iterable[PreparedRun]) -> tuple[float | None, str]:
    """US dollars for all judgments, None where a price is not known; and why then.

    Of a recording it is what its model costs where the plan would ask it.
    """
    total = 0.0
    for prepared in runs:
        try:
            found = estimate_cost(_afresh(prepared))
        except ConfigError as error:
            return None, str(error)
        if found.price is None:
            return None, next(one.money.why for one in found.judges if one.money.price is None)
        total += found.price
    return total, ""


def cost_summary(runs: Iterable[PreparedRun]) -> str:
    """About how many requests, and for how much, told from some of the judgments; nothing where no model is asked."""
    found = [estimate_cost(one, _LOOKED_AT) for one in runs if not all(judge.notice for judge in one.judges.values())]
    if not (requests := sum(one.requests for one in found)):
        return "answered from the cache" if found else ""
    known = [one.price for one in found if one.price is not None]
    return f"about {requests:,} requests, {dollars(sum(known)) if len(known) == len(found) else 'price unknown'}"


def _sizes(prepared: PreparedRun) -> Iterator[int]:
    for name, provider in prepared.judges.items():
        made = make_renderers([criterion_for(criterion, provider) for criterion in prepared.criteria])
        first = strategies.strategies_for(prepared.settings, provider.decides)[0]
        for one in judgments(prepared, name):
            try:
                prompt = made[one.criterion.name].render(one.sample, one.rival)
            except CriterionError:
                continue
            asked = strategies.requests_by_key(prompt, one.criterion, first, prepared.settings, provider)
            yield budget.estimate_request(next(iter(asked.values())))


def _afresh(prepared: PreparedRun) -> PreparedRun:
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


_LATENCY, _PER_SECOND = 1.0, 60.0
"""Guessed: seconds until a reply begins, and tokens that a model writes in a second."""
_MILLION = 1e6
_OUTSIDE = (
    "Not counted: tries after a failed one, what a model thinks before it writes, and limits of the server that are "
    "not in --rpm or --tpm."
)


def estimate_cost(prepared: PreparedRun, most: int | None = None, items: int | None = None) -> RunForecast:
    """What a run is going to ask, cost and take: of all its judgments, or told from about `most` for each judge.

    Or of so many `items` like these, none of which is in the cache. Raises ConfigError.
    """
    made = prepared.plan
    _check(made, items)
    judges = tuple(
        _asked_of_cost_estimate(made, prepared.judges[one.judge], one) for one in count_requests(prepared, most, items)
    )
    if most is None:
        judges = tuple(_beside(prepared, judges, items))
    prices_of = [one.money.price for one in judges]
    known = [price for price in prices_of if price is not None]
    price = sum(known) if len(known) == len(prices_of) else None
    times = [one.time.seconds for one in judges if one.time.seconds is not None]
    usage = sum((one.usage for one in judges), Usage())
    requests = sum(one.ahead.total.requests for one in judges)
    in_usd = made.budget is not None and made.budget.unit == "usd"
    whole = price if in_usd else usage.prompt_tokens + usage.completion_tokens
    room = max((one.ahead.room * (_share(made, one.endpoint) if in_usd else 1) for one in judges), default=0.0)
    late = [one.time.in_time for one in judges]
    in_time = [many for many in late if many is not None]
    return RunForecast(
        judges, price, max(times, default=None), made.budget, _fits(made.budget, requests, whole, room), room,
        made.deadline, sum(in_time) if made.deadline and len(in_time) == len(late) else None,
        tuple([*_scaled(prepared, items), *_notes(prepared, judges, items)]),
    )  # fmt: skip


def _check(made: Plan, items: int | None) -> None:
    """Raises ConfigError for a number of items that cannot be planned for."""
    if items is not None and items < 1:
        raise ConfigError(f"{option('items', items)}: has to be 1 or more")
    if items is not None and isinstance(made, RankPlan) and made.pairs is not None:
        raise ConfigError(f"{option('items')} with {option('pairs')}: the pairs are what is asked; leave one out")


def _scaled(prepared: PreparedRun, items: int | None) -> list[str]:
    """That the numbers are of other items than those looked at."""
    if items is None:
        return []
    known = len({sample.item for sample in prepared.samples})
    return [
        f"Scaled from {known:,} item{'s' * (known != 1)} to {items:,} like them, as if the cache had no reply to "
        "them; what it knows of the model still counts."
    ]


def _beside(prepared: PreparedRun, judges: Sequence[JudgeForecast], items: int | None) -> Iterator[JudgeForecast]:
    """The judges, and what each that is asked for draws would take with one reply instead, told from some of them."""
    alone = replace(prepared, settings=replace(prepared.settings, weighting="single"))
    drawn = {one.ahead.judge for one in judges if one.ahead.total.requests and one.ahead.rungs[:1] == ("samples",)}
    asked = {name: one for name, one in prepared.judges.items() if name in drawn and not one.notice}
    found = {one.judge: one for one in count_requests(replace(alone, judges=asked), _LOOKED_AT, items)}
    for one in judges:
        if (ahead := found.get(one.ahead.judge)) is not None:
            price = _money(prepared.plan, asked[ahead.judge], ahead).price
            one = replace(one, single=SingleReplyPrice(ahead.total.requests, price))
        yield replace(one, way=_way(prepared, one.ahead))


def _way(prepared: PreparedRun, ahead: JudgeEstimate) -> str:
    """How the judge is asked, and why so."""
    provider, settings = prepared.judges[ahead.judge], prepared.settings
    if provider.notice or not ahead.rungs:
        return ""
    way = ahead.rungs[0]
    if way == "decisions":
        return "decisions: typed questions, whose answers come with probabilities"
    if way == "logprobs":
        return f"logprobs: token probabilities of one reply{', if the model gives them' * bool(ahead.draws)}"
    if way == "single":
        return "single: one reply, as it is written"
    each = ", a request for each" if provider.learned.get("n") == 1 else ""
    said = f"samples: the mean of {settings.draws} draws of each reply{each}"
    if settings.weighting == "samples":
        return said
    probe = "; one request more tries for them first" if "logprobs" in ahead.rungs else ""
    who = "vendor" if "logprobs" in provider.learned.get("dropped", ()) else "model"
    return f"{said}, as the {who} gives no token probabilities{probe}"


def one_line_estimate(prepared: PreparedRun) -> str:
    """One line before a run: judgments and, from a few hundred of them, about the requests, tokens, price and time.

    Of a ranking also its n·(k choose 2) pairs. Nothing where no judge is asked to score.
    """
    judges = count_requests(prepared, _LOOKED_AT)
    if not judges:
        return ""
    return "\n".join([f"{_pairs(prepared)}{_line(prepared, judges)}", *_under_way(prepared)])


def _under_way(prepared: PreparedRun) -> list[str]:
    """What an earlier run has left at a Batch API, which this one would not wait for."""
    if prepared.plan.engine == "batch":
        return []
    places = [engine_context(prepared.plan, provider) for provider in prepared.judges.values()]
    found = [(under_way(one.folder, one.provider.endpoint), one) for one in places if one.folder is not None]
    return [
        f"{number:,} requests of an earlier run are under way in batches at {place.provider.endpoint}: with "
        "--engine batch this run waits for them, without it what it asks of them is paid again."
        for number, place in found
        if number
    ]


def _line(prepared: PreparedRun, judges: Sequence[JudgeEstimate]) -> str:
    made = prepared.plan
    totals = [one.total for one in judges]
    size = len(prepared.pairs.compared) if prepared.pairs else len(prepared.samples)
    judgments = size * len(prepared.criteria) * len(prepared.judges)
    said = f"{judgments:,} judgments to make{f' of the first {size:,} texts' if prepared.rest is not None else ''}"
    requests = sum(total.requests for total in totals)
    if not requests:
        return f"{said}, {'' if all(one.exact for one in judges) else 'about '}all of them answered from the cache"
    asked = [_asked_of_cost_estimate(made, prepared.judges[one.judge], one) for one in judges]
    usage = sum((one.usage for one in asked), Usage())
    if all(prepared.judges[one.judge].notice for one in judges):
        return f"{said}, and no model is asked"
    about = f"{said}: about {requests:,} requests"
    known = [one.money.price for one in asked if one.money.price is not None]
    price = dollars(sum(known)) if len(known) == len(asked) else "price unknown"
    seconds = [one.time.seconds for one in asked if one.time.seconds is not None]
    parts = [f"{_short(usage.prompt_tokens)} tokens to read, {_short(usage.completion_tokens)} to write", price]
    parts += [f"about {duration(max(seconds))}"] if seconds else []
    return ", ".join([about, *parts])


def _pairs(prepared: PreparedRun) -> str:
    plan, pairs = prepared.plan, prepared.pairs
    if pairs is None or not isinstance(plan, RankPlan):
        return ""
    parts = [f"{pairs.chosen:,} pair{'s' * (pairs.chosen != 1)} of texts in {_ORDERS[plan.orders]}"]
    for many, what in ((len(prepared.criteria), "criteria"), (len(prepared.judges), "judges")):
        parts += [f"{many} {what}"] if many > 1 else []
    equal = len(pairs.equal) // plan.orders
    ties = f" (equal texts, {equal:,} pair{'s' * (equal != 1)}, are ties for nothing)" if equal else ""
    return f"{' × '.join(parts)}{ties}: "


_ORDERS = {1: "one order", 2: "both orders"}


def _asked_of_cost_estimate(made: Plan, provider: Provider, ahead: JudgeEstimate) -> JudgeForecast:
    return JudgeForecast(
        ahead, provider.model, provider.endpoint, _money(made, provider, ahead), _time(made, provider, ahead.total),
        _rests(ahead),
    )  # fmt: skip


def _share(made: Plan, endpoint: str) -> float:
    """What requests cost, as a share of their price: less than all of it in a batch, where that is known."""
    return pricing.BATCH if made.engine == "batch" and endpoint == pricing.DEFAULT_URL else 1.0


def _money(made: Plan, provider: Provider, ahead: JudgeEstimate) -> Price:
    if provider.notice:
        return Price(0.0, 0.0, 0.0, "no model is asked")
    total, half = ahead.total, _share(made, provider.endpoint) < 1

    def price(usage: Usage) -> float | None:
        batched = usage if half else Usage()
        return pricing.cost_usd(provider.model, provider.endpoint, usage, batched=batched, decides=provider.decides)

    read, written = int(total.read), int(total.written)
    plain = price(Usage(read, written))
    if plain is None:
        return Price(None, None, None, pricing.why_unknown(provider.model, provider.endpoint, decides=provider.decides))
    cached = price(Usage(read, written, cached_tokens=int(total.shared), cache_write_tokens=int(total.stored)))
    more = 0.0 if not ahead.draws else price(_in_place(total, ahead))
    batch = ", half price in a batch" if half else "; half of it if it has a Batch API"
    why = pricing.price_source(decides=provider.decides) + (batch if made.engine == "batch" else "")
    each = pricing.per_token(provider.model, provider.endpoint, decides=provider.decides)
    return Price(plain, cached, more, why, each and (each[0] * _MILLION, each[3] * _MILLION))


def _in_place(total: CriterionEstimate, ahead: JudgeEstimate) -> Usage:
    """What draws read and write beyond the requests that they take the place of: all but the first."""
    first = 1 / max(1, total.requests)
    return Usage(round(total.read * (ahead.each - 1 + first)), round(total.written * (ahead.draws - 1 + first)))


def _time(made: Plan, provider: Provider, total: CriterionEstimate) -> Duration:
    if provider.notice or not total.requests:
        return Duration(None, "no model is asked" if provider.notice else "nothing to ask", total.requests)
    if made.engine == "batch":
        return Duration(None, "a batch: within 24 hours")
    if Capabilities.of(provider).gpu:
        return Duration(None, "as this machine computes; a run with --limit says how fast that is")
    each = _LATENCY + total.written / total.requests / _PER_SECOND
    paces = [(total.requests / min(made.max_concurrency, total.requests) * each, f"{made.max_concurrency} at once")]
    if made.rpm:
        paces.append((total.requests / made.rpm * 60, f"--rpm {made.rpm:,}"))
    if made.tpm:
        paces.append(((total.read + total.written) / made.tpm * 60, f"--tpm {made.tpm:,}"))
    seconds, what = max(paces)
    in_time = None
    if made.deadline is not None:
        in_time = min(total.requests, max(0, 1 + math.floor((made.deadline - each) * total.requests / seconds)))
    # the first request goes alone
    return Duration(seconds + each, f"{what}, guessing {each:.1f} s for a reply", in_time)


def _rests(ahead: JudgeEstimate) -> str:
    """On what the tokens rest."""
    if ahead.checked is None:
        read = (
            f"tokens read are estimated from characters ({_rates()}), often 10 % off; the cache holds no counted reply "
            "to correct that by"
        )
    else:
        one = ahead.checked
        way = f"{abs(one.bias):.1%} too {'high' if one.bias > 0 else 'low'}: corrected"
        read = (
            f"tokens read are estimated from characters; on the {one.replies:,} prompts whose replies are in the cache "
            f"that was {way}, which leaves a median error of {one.error:.1%}"
        )
    if "decisions" in ahead.rungs:
        return f"{read}; answers to typed questions are not written"
    if not ahead.total.requests:
        return read
    return f"{read}; tokens written are {'the mean of those replies' if ahead.learned else 'guessed by reply kind'}"


def _rates() -> str:
    """How many tokens the scripts are taken to have."""
    english, kana, han, hangul = (budget.estimate_tokens(one * 1000) / 1000 for one in "aあ漢한")
    return (
        f"English {1 / english:.1f} for a token; Japanese kana {kana:.2g} tokens each, kanji and Chinese {han:.2g}, "
        f"Korean {hangul:.2g}"
    )


def _notes(prepared: PreparedRun, judges: Sequence[JudgeForecast], items: int | None) -> list[str]:
    """What nobody asked for, and what is not in the numbers."""
    notes = []
    if prepared.criteria and "criteria" not in prepared.plan.model_fields_set:
        names = ", ".join(criterion.name for criterion in prepared.criteria)
        notes.append(f"Criteria: {names}, as none were named; {option('criteria')} names others.")
    if any(one.ahead.draws for one in judges):
        draws = next(one.ahead.draws for one in judges if one.ahead.draws)
        each = max(one.ahead.each for one in judges)
        alone = f", {each} requests for one" if each > 1 else ""
        more = [one.money.more for one in judges if one.ahead.draws]
        known = [price for price in more if price is not None]
        cost = f", which costs about {dollars(sum(known))} more" if len(known) == len(more) else ""
        notes.append(
            f"If the first reply shows that the model gives no token probabilities, {draws} draws of each reply are "
            f"asked for instead{alone}{cost} (--weighting single does without)."
        )
    notes += _under_way(prepared)
    if prepared.rest is not None and items is None:
        notes.append(f"All this is of the first {len(prepared.samples):,} texts; the data has more.")
    asking = [name for name, metric in prepared.metrics.items() if asks_judge(metric)]
    if asking:
        first = next(iter(prepared.judges), "its judge")
        notes.append(f"Not counted: what {', '.join(asking)} asks {first}, as its later questions depend on replies.")
    if any(one.endpoint.startswith(UNKNOWN) for one in judges):
        notes.append("$AZURE_OPENAI_ENDPOINT is not set: what the cache holds of the replies there was not looked up.")
    broken = sum(one.ahead.total.broken for one in judges)
    if broken:
        notes.append(f"{broken:,} judgments cannot be asked: their prompt cannot be rendered; the run says why.")
    return [*notes, _OUTSIDE] if any(one.ahead.total.requests for one in judges) else notes


def _fits(budget: Budget | None, requests: int, whole: float | None, room: float) -> int | None:
    """About how many requests go, of which each is let go as long as the most that one can cost is left."""
    if budget is None or whole is None:
        return None
    left = budget.amount - room
    if left < 0:
        return 0
    return requests if left * requests >= whole * (requests - 1) else 1 + int(left * requests / whole)


def dollars(amount: float) -> str:
    """`$12.30`; below a dollar two digits that count: `$0.012`."""
    if amount >= 1 or amount == 0:
        return f"${amount:,.2f}"
    return f"${amount:.2g}" if amount >= 1e-4 else "less than $0.0001"


def duration(seconds: float) -> str:
    """`40 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _short(number: int) -> str:
    """`840`, `12k`, `4.2M`."""
    if number < 10_000:
        return f"{number:,}"
    return f"{number / 1e3:.0f}k" if number < 1e6 else f"{number / 1e6:.1f}M"
