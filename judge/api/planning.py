"""Plan before paying: what a run is going to cost and take, and on what that estimate rests. Sends nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from judge.api.forecast import Ahead, Line, look
from judge.api.judges import UNKNOWN
from judge.api.prepare import Prepared, engine_place
from judge.config import Budget, Plan, RankPlan
from judge.engines.parts import under_way
from judge.providers import Provider, prices
from judge.records import Usage

_LATENCY, _PER_SECOND = 1.0, 60.0
"""Guessed: seconds until a reply begins, and tokens that a model writes in a second."""
_LOOKED_AT = 400
_OUTSIDE = (
    "Not counted: tries after a failed one, what a model thinks before it writes, and limits of the server that are "
    "not in --rpm or --tpm."
)


@dataclass(frozen=True, slots=True)
class Money:
    """US dollars, None where there is no known price; `why` then says so, and else where the prices are from.

    `price` is without a provider's cache of prefixes and `cached` with all that it can serve. `more` is what the draws
    of weighting `auto` would add, if the model gives no token probabilities.
    """

    price: float | None
    cached: float | None
    more: float | None
    why: str


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds at the limits, None where a batch or no model answers, and in words what sets the pace.

    `in_time` is about how many requests a deadline leaves time for, None without one, or where that is not known.
    """

    seconds: float | None
    why: str
    in_time: int | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One judge: what it is asked, what that costs and takes, and on what the numbers rest."""

    ahead: Ahead
    model: str
    endpoint: str
    money: Money
    time: Time
    rests: str

    @property
    def usage(self) -> Usage:
        """The tokens, without a provider's cache."""
        total = self.ahead.total
        return Usage(int(total.read), int(total.written))


@dataclass(frozen=True, slots=True)
class Foreseen:
    """All judges of a run. `price` is of all of them, None where one is not known; `notes` say what is not counted.

    `fits` is about how many of the requests a budget is enough for, None without one, or where prices are not known:
    the last of them only goes when the most it can cost is left, `room` in the budget's unit for any of them. `in_time`
    is about how many a deadline leaves time for, None without one, or where that is not known.
    """

    judges: tuple[Asked, ...]
    price: float | None
    seconds: float | None
    budget: Budget | None
    fits: int | None
    room: float
    deadline: float | None
    in_time: int | None
    notes: tuple[str, ...]

    @property
    def requests(self) -> int:
        """Those of all judges."""
        return sum(one.ahead.total.requests for one in self.judges)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        shown = asdict(self) | {"requests": self.requests, "budget": str(self.budget) if self.budget else None}
        for said, one in zip(shown["judges"], self.judges, strict=True):
            said |= {"judge": one.ahead.judge, **said.pop("ahead"), "total": asdict(one.ahead.total)}
            for name in ("draws", "each", "room"):
                said.pop(name)
        return shown


def foresee(prepared: Prepared, most: int | None = None) -> Foreseen:
    """What a run is going to ask, cost and take: of all its judgments, or told from about `most` for each judge."""
    made = prepared.plan
    judges = tuple(_asked(made, prepared.judges[one.judge], one) for one in look(prepared, most))
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
    return Foreseen(
        judges, price, max(times, default=None), made.budget, _fits(made.budget, requests, whole, room), room,
        made.deadline, sum(in_time) if made.deadline and len(in_time) == len(late) else None,
        tuple(_notes(prepared, judges)),
    )  # fmt: skip


def forecast(prepared: Prepared) -> str:
    """One line before a run: judgments and, from a few hundred of them, about the requests, tokens, price and time.

    Of a ranking also its n·(k choose 2) pairs. Nothing where no judge is asked to score.
    """
    judges = look(prepared, _LOOKED_AT)
    if not judges:
        return ""
    return "\n".join([f"{_pairs(prepared)}{_line(prepared, judges)}", *_under_way(prepared)])


def _under_way(prepared: Prepared) -> list[str]:
    """What an earlier run has left at a Batch API, which this one would not wait for."""
    if prepared.plan.engine == "batch":
        return []
    places = [engine_place(prepared.plan, provider) for provider in prepared.judges.values()]
    found = [(under_way(one.folder, one.provider.endpoint), one) for one in places if one.folder is not None]
    return [
        f"{number:,} requests of an earlier run are under way in batches at {place.provider.endpoint}: with "
        "--engine batch this run waits for them, without it what it asks of them is paid again."
        for number, place in found
        if number
    ]


def _line(prepared: Prepared, judges: Sequence[Ahead]) -> str:
    made = prepared.plan
    totals = [one.total for one in judges]
    size = len(prepared.pairs.compared) if prepared.pairs else len(prepared.samples)
    judgments = size * len(prepared.criteria) * len(prepared.judges)
    said = f"{judgments:,} judgments to make{f' of the first {size:,} texts' if prepared.rest is not None else ''}"
    requests = sum(total.requests for total in totals)
    if not requests:
        return f"{said}, {'' if all(one.exact for one in judges) else 'about '}all of them answered from the cache"
    asked = [_asked(made, prepared.judges[one.judge], one) for one in judges]
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


def _pairs(prepared: Prepared) -> str:
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


def _asked(made: Plan, provider: Provider, ahead: Ahead) -> Asked:
    return Asked(
        ahead, provider.model, provider.endpoint, _money(made, provider, ahead), _time(made, provider, ahead.total),
        _rests(ahead),
    )  # fmt: skip


def _share(made: Plan, endpoint: str) -> float:
    """What requests cost, as a share of their price: less than all of it in a batch, where that is known."""
    return prices.BATCH if made.engine == "batch" and endpoint == prices.DEFAULT_URL else 1.0


def _money(made: Plan, provider: Provider, ahead: Ahead) -> Money:
    if provider.notice:
        return Money(0.0, 0.0, 0.0, "no model is asked")
    total, half = ahead.total, _share(made, provider.endpoint) < 1

    def price(usage: Usage) -> float | None:
        batched = usage if half else Usage()
        return prices.usd(provider.model, provider.endpoint, usage, batched=batched, decides=provider.decides)

    read, written = int(total.read), int(total.written)
    plain = price(Usage(read, written))
    if plain is None:
        return Money(None, None, None, prices.lacking(provider.model, provider.endpoint, decides=provider.decides))
    cached = price(Usage(read, written, cached_tokens=int(total.shared), cache_write_tokens=int(total.stored)))
    more = price(Usage(read * ahead.each, written * ahead.draws)) if ahead.draws else 0.0
    batch = ", half price in a batch" if half else "; half of it if it has a Batch API"
    return Money(
        plain, cached, more, prices.source(decides=provider.decides) + (batch if made.engine == "batch" else "")
    )


def _time(made: Plan, provider: Provider, total: Line) -> Time:
    if provider.notice or not total.requests:
        return Time(None, "no model is asked" if provider.notice else "nothing to ask", total.requests)
    if made.engine == "batch":
        return Time(None, "a batch: within 24 hours")
    if getattr(provider, "gpu", False):
        return Time(None, "as this machine computes; a run with --limit says how fast that is")
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
    return Time(seconds + each, f"{what}, guessing {each:.1f} s for a reply", in_time)


def _rests(ahead: Ahead) -> str:
    """On what the tokens rest."""
    if ahead.checked is None:
        read = (
            "tokens read are estimated from characters (English: 4.5 for one), often 10 % off; the cache holds no "
            "counted reply to correct that by"
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


def _notes(prepared: Prepared, judges: Sequence[Asked]) -> list[str]:
    """What is not in the numbers."""
    notes = []
    if any(one.ahead.draws for one in judges):
        draws = next(one.ahead.draws for one in judges if one.ahead.draws)
        each = max(one.ahead.each for one in judges)
        alone = f" in {each} requests" if each > 1 else ""
        more = [one.money.more for one in judges if one.ahead.draws]
        known = [price for price in more if price is not None]
        cost = f", about {dollars(sum(known))} more" if len(known) == len(more) else ""
        notes.append(
            f"A model that gives no token probabilities is asked a second time, for {draws} draws of each reply"
            f"{alone}{cost} (--weighting single does without)."
        )
    notes += _under_way(prepared)
    if prepared.rest is not None:
        notes.append(f"All this is of the first {len(prepared.samples):,} texts; the data has more.")
    asking = [name for name, metric in prepared.metrics.items() if getattr(metric, "asks", False)]
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
