"""What is known before a run, as documents: the forecast or the power of `judge plan`, the setup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from judge.commands.plan.record import Forecast
from judge.core.format import dollars, duration, plural
from judge.core.messages import option
from judge.report.document import (
    Block,
    Bullets,
    Column,
    Document,
    Facts,
    Section,
    table,
)
from judge.run.request_estimates import JudgeForecast, price_text

_PREFIX = "prefix: share of input tokens the provider can serve from its prompt cache."


def view(forecast: Forecast) -> Document:
    """Lay out a forecast."""
    units = Counter[str]()
    for judge in forecast.judges:
        units[judge.estimate.unit] += judge.estimate.total.judgments
    if units["question"]:  # of another judge, a checklist may be one judgment
        units["question"] += units.pop("judgment", 0)
    judgments = " and ".join(plural(n, unit) for unit, n in units.items() if n)
    if forecast.requests:
        exact = all(judge.estimate.exact for judge in forecast.judges)
        parts = [
            f"{'' if exact else 'About '}{plural(forecast.requests, 'request')}",
            price_text(forecast.price),
        ]
        parts += [f"about {duration(forecast.seconds)}"] if forecast.seconds is not None else []
        headline = ", ".join(parts)
    elif any(judge.estimate.total.cached for judge in forecast.judges):
        headline = f"No requests: the cache answers all {judgments}."
    else:
        headline = "No requests: no judge scores anything."
    sections = [
        Section(
            f"judge-{k}",
            f"{each.estimate.judge} · {each.endpoint}".rstrip(" ·"),
            partial(_blocks, each),
        )
        for k, each in enumerate(forecast.judges)
    ]
    if forecast.notes:
        sections.append(Section("notes", "Notes", lambda: [Bullets(forecast.notes)]))
    notices = []
    if forecast.budget is not None and forecast.requests:
        if forecast.fits is None:
            reach = (
                "the price is unknown, so the run stops at once; give tokens, such as 200000tokens"
            )
        elif forecast.fits >= forecast.requests:
            reach = f"all {forecast.requests:,} requests fit"
        else:
            reach = f"about {forecast.fits:,} of {forecast.requests:,} requests fit; the run then stops, and the same "
            reach += "command resumes it"
        notices.append(f"{option('budget', str(forecast.budget))}: {reach}")
    return Document(
        title=f"Estimate for {', '.join(judge.estimate.judge for judge in forecast.judges) or 'a run'}",
        finding=(headline,),
        scope=judgments,
        notices=tuple(notices),
        sections=tuple(sections),
        data=forecast.to_dict(),
        records=tuple(
            {
                "judge": judge.estimate.judge, "criterion": line.criterion, "judgments": line.judgments,
                "duplicates": line.equal, "cached": line.cached, "failed": line.broken, "requests": line.requests,
                "input_tokens": line.read, "output_tokens": line.written, "prefix_tokens": line.shared,
            }
            for judge in forecast.judges
            for line in judge.estimate.lines
        ),
    )  # fmt: skip


def _blocks(judge: JudgeForecast) -> Iterator[Block]:
    estimate = judge.estimate
    lines = [*estimate.lines, estimate.total] if len(estimate.lines) > 1 else estimate.lines
    rows = [
        (
            line.criterion, line.judgments, line.equal, line.cached, line.requests, round(line.read),
            round(line.written), f"{line.shared / line.read:.0%}" if line.read else None,
        )
        for line in lines
    ]  # fmt: skip
    tokens = (Column(head, group="tokens") for head in ("input", "output", "prefix"))
    yield table(
        ("criterion", f"{estimate.unit}s", "duplicates", "cached", "requests", *tokens),
        rows,
        _PREFIX if estimate.total.requests else "",
        name=f"plan-{estimate.judge}",
    )
    money = judge.money
    if money.price is None:
        price = f"unknown ({money.why})"
    elif not money.price:
        price = f"nothing: {money.why if money.why and estimate.total.requests else 'no request is sent'}"
    else:
        rate = ""
        if money.rate is not None:
            # Below a cent, a price has two significant digits.
            read, written = (
                f"${amount:,.2f}" if amount >= 0.01 else dollars(amount) for amount in money.rate
            )
            rate = f": {read} per million input tokens, {written} per million output tokens"
        price = f"{dollars(money.price)} ({money.why}{rate})"
        if money.cached is not None and round(money.cached, 6) < round(money.price, 6):
            price += f"; {dollars(money.cached)} if the provider's prompt cache serves every prefix"
    facts = {"method": judge.method, "price": price}
    seconds = judge.time.seconds
    facts["time"] = (
        judge.time.why if seconds is None else f"about {duration(seconds)} ({judge.time.why})"
    )
    yield Facts(tuple((name, text) for name, text in facts.items() if text))
