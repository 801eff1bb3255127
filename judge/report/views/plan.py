"""The forecast of `judge plan` as a document: requests, tokens, cost and time of each judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from judge.core.format import dollars, duration, one_line, plural
from judge.core.messages import option
from judge.report.document import Block, Bullets, Cell, Column, Document, Facts, Section, Table
from judge.results.planning import CriterionEstimate, Forecast, JudgeForecast, Price, price_text

_PREFIX = "prefix: share of input tokens the provider can serve from its prompt cache."
_RESUME = "the run then stops, and the same command resumes it"


def view(forecast: Forecast) -> Document:
    """Lay out a forecast."""
    judgments = sum(judge.estimate.total.judgments for judge in forecast.judges)
    sections = [
        Section(f"judge-{k}", one_line(f"{each.estimate.judge} · {each.endpoint}").rstrip(" ·"), partial(_blocks, each))
        for k, each in enumerate(forecast.judges)
    ]
    if forecast.notes:
        sections.append(Section("notes", "Notes", lambda: [Bullets(forecast.notes)]))
    return Document(
        title=f"Estimate for {', '.join(one_line(judge.estimate.judge) for judge in forecast.judges) or 'a run'}",
        finding=(_headline(forecast, judgments),),
        scope=plural(judgments, "judgment") if judgments else "",
        notices=tuple(_limits(forecast)) if forecast.requests else (),
        sections=tuple(sections),
        data=forecast.to_dict(),
        records=tuple(
            _record(judge.estimate.judge, line) for judge in forecast.judges for line in judge.estimate.lines
        ),
    )


def _headline(forecast: Forecast, judgments: int) -> str:
    if not forecast.judges:
        return "No requests: no judge scores anything."
    if not forecast.requests:
        cached = sum(judge.estimate.total.cached for judge in forecast.judges)
        return f"No requests: the cache answers all {judgments:,} judgments." if cached else "No requests."
    exact = all(judge.estimate.exact for judge in forecast.judges)
    parts = [f"{'' if exact else 'About '}{plural(forecast.requests, 'request')}", price_text(forecast.price)]
    parts += [f"about {duration(forecast.seconds)}"] if forecast.seconds is not None else []
    return ", ".join(parts)


def _blocks(judge: JudgeForecast) -> Iterator[Block]:
    estimate = judge.estimate
    lines = [*estimate.lines, estimate.total] if len(estimate.lines) > 1 else estimate.lines
    heads = (
        ("", "judgments"), ("", "duplicates"), ("", "cached"), ("", "requests"), ("tokens", "input"),
        ("tokens", "output"), ("tokens", "prefix"),
    )  # fmt: skip
    yield Table(
        columns=(Column("criterion", numeric=False), *(Column(head, group) for group, head in heads)),
        rows=tuple(_row(line, "strong" if line.criterion == "all" and len(lines) > 1 else "") for line in lines),
        key=_PREFIX if estimate.total.requests else "",
        name=f"plan-{estimate.judge}",
    )
    facts = [*_facts(judge), ("basis", judge.basis)] if estimate.total.requests else [*_facts(judge)]
    yield Facts(tuple(facts))


def _row(line: CriterionEstimate, tone: Any) -> tuple[Cell, ...]:
    counts = (line.judgments, line.equal, line.cached, line.requests, line.read, line.written)
    share = Cell(f"{line.shared / line.read:.0%}" if line.read else "–")
    return Cell(line.criterion, tone=tone), *(Cell(f"{n:,.0f}", value=n, tone=tone) for n in counts), share


def _facts(judge: JudgeForecast) -> Iterator[tuple[str, str]]:
    """Yield how the judge is asked, the price, the price of single replies, and the time."""
    if judge.method:
        yield "method", judge.method
    yield "price", _price(judge.money, judge.estimate.total.requests)
    if judge.single is not None:
        price = "" if judge.single.price is None else f"{dollars(judge.single.price)}, "
        requests = plural(judge.single.requests, "request")
        yield "cheaper", f"{price}{requests} with {option('weighting', 'single')}: one reply per judgment"
    seconds = judge.time.seconds
    yield "time", judge.time.why if seconds is None else f"about {duration(seconds)} ({judge.time.why})"


def _price(money: Price, requests: int) -> str:
    if money.price is None:
        return f"unknown ({money.why})"
    if not money.why or not requests:
        return "nothing: no request is sent"
    if not money.price:
        return f"nothing: {money.why}"
    rate = ""
    if money.rate is not None:
        rate = f": {_rate(money.rate[0])} per million input tokens, {_rate(money.rate[1])} per million output tokens"
    cost = f"{dollars(money.price)} ({money.why}{rate})"
    if money.cached is not None and round(money.cached, 6) < round(money.price, 6):
        cost += f"; {dollars(money.cached)} if the provider's prompt cache serves every prefix"
    return cost


def _rate(amount: float) -> str:
    """Format a price per million tokens: `$0.75`; below a cent with two significant digits."""
    return f"${amount:,.2f}" if amount >= 0.01 or not amount else dollars(amount)


def _limits(forecast: Forecast) -> Iterator[str]:
    """Yield how far the budget and the deadline reach."""
    requests, fits, in_time = forecast.requests, forecast.fits, forecast.in_time
    if forecast.budget is not None:
        if fits is None:
            reach = "the price is unknown, so the run stops at once; give tokens, such as 200000tokens"
        elif fits >= requests:
            reach = f"all {requests:,} requests fit"
        elif fits:
            reach = f"about {fits:,} of {requests:,} requests fit; {_RESUME}"
        else:
            reach = f"no request fits, because its maximum cost is higher; {forecast.budget.lacking(forecast.room)}"
        yield f"{option('budget', str(forecast.budget))}: {reach}"
    if forecast.deadline is not None:
        if in_time is None:
            reach = "batches continue after the deadline, and the same command fetches their replies"
        elif in_time >= requests:
            reach = f"all {requests:,} requests are in time"
        else:
            reach = f"about {in_time:,} of {requests:,} requests are in time; {_RESUME}"
        yield f"{option('deadline')} {forecast.deadline:g} s: {reach}"


def _record(judge: str, line: CriterionEstimate) -> Mapping[str, Any]:
    return {
        "judge": judge, "criterion": line.criterion, "judgments": line.judgments, "duplicates": line.equal,
        "cached": line.cached, "failed": line.broken, "requests": line.requests, "input_tokens": line.read,
        "output_tokens": line.written, "prefix_tokens": line.shared,
    }  # fmt: skip
