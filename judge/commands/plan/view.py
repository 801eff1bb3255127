"""The report of `judge plan`: the requests, the price and the time of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from judge.commands.plan.record import Forecast
from judge.core.format import dollars, plural, rough_duration
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
    judgments = _judgments(forecast)
    sections = []
    for number, judge in enumerate(forecast.judges):
        judge_title = f"{judge.estimate.judge} · {judge.endpoint}".rstrip(" ·")
        blocks = partial(_blocks, judge, forecast.by)
        sections.append(Section(f"judge-{number}", judge_title, blocks))
    if forecast.notes:
        notes = Bullets(forecast.notes)
        sections.append(Section("notes", "Notes", lambda: [notes]))
    judge_names = (
        ", ".join(judge.estimate.judge for judge in forecast.judges) or "a run"
    )
    subject = f"a card of {judge_names}" if forecast.by == "run" else judge_names
    return Document(
        title=f"Estimate for {subject}",
        finding=(_headline(forecast, judgments),),
        scope=judgments,
        notices=tuple(_budget_notice(forecast)),
        sections=tuple(sections),
        data=forecast.to_dict(),
        records=tuple(_records(forecast)),
    )


def _judgments(forecast: Forecast) -> str:
    """Return what the judges are asked, by unit: `12 judgments and 40 questions`."""
    count_by_unit: Counter[str] = Counter()
    for judge in forecast.judges:
        count_by_unit[judge.estimate.unit] += judge.estimate.total.judgments
    if count_by_unit["question"]:
        # Another judge may answer a whole checklist in one judgment.
        count_by_unit["question"] += count_by_unit.pop("judgment", 0)
    counts = [plural(count, unit) for unit, count in count_by_unit.items() if count]
    return " and ".join(counts)


def _headline(forecast: Forecast, judgments: str) -> str:
    """Return the requests, price and time, or why no request is sent."""
    if forecast.requests:
        is_exact = all(judge.estimate.exact for judge in forecast.judges)
        requests = plural(forecast.requests, "request")
        headline_parts = [requests if is_exact else f"About {requests}"]
        headline_parts.append(price_text(forecast.price))
        if forecast.seconds is not None:
            headline_parts.append(f"about {rough_duration(forecast.seconds)}")
        return ", ".join(headline_parts)
    if forecast.uncounted:
        metric_names = ", ".join(forecast.uncounted)
        return f"Only metrics send requests, which are not counted: {metric_names}."
    if any(judge.estimate.total.cached for judge in forecast.judges):
        return f"No requests: the cache answers all {judgments}."
    return "No requests: no judge scores anything."


def _budget_notice(forecast: Forecast) -> Iterator[str]:
    """Yield how far the budget reaches, if there is one."""
    if forecast.budget is None or not forecast.requests:
        return
    is_comparable = forecast.price is not None or forecast.budget.unit == "tokens"
    # `requests_in_budget` gives no number for a batch, whose maximum cost is reserved at once.
    if forecast.fits is None and is_comparable:
        budget_reach = (
            "a batch reserves the maximum cost of all its requests, one token per byte and the "
            "longest reply; the run stops if that does not fit, and the same command resumes it"
        )
    elif forecast.fits is None:
        budget_reach = "the price is unknown, so the run stops at once; give tokens, such as 200000tokens"
    elif forecast.fits >= forecast.requests:
        budget_reach = f"all {forecast.requests:,} requests fit"
    else:
        budget_reach = (
            f"about {forecast.fits:,} of {forecast.requests:,} requests fit; the run then stops, "
            "and the same command resumes it"
        )
    yield f"{option('budget', str(forecast.budget))}: {budget_reach}"


def _records(forecast: Forecast) -> Iterator[dict[str, Any]]:
    """Yield a record per judge and criterion."""
    for judge in forecast.judges:
        for estimate_line in judge.estimate.lines:
            yield {
                "judge": judge.estimate.judge,
                forecast.by: estimate_line.name,
                "judgments": estimate_line.judgments,
                "duplicates": estimate_line.equal,
                "cached": estimate_line.cached,
                "failed": estimate_line.broken,
                "requests": estimate_line.requests,
                "input_tokens": estimate_line.read,
                "output_tokens": estimate_line.written,
                "prefix_tokens": estimate_line.shared,
            }


def _blocks(judge: JudgeForecast, by: str) -> Iterator[Block]:
    """Yield the table of a judge's requests, and the facts that explain it."""
    estimate = judge.estimate
    total = estimate.total
    lines = list(estimate.lines)
    # The total of a single line is that line.
    if len(lines) > 1:
        lines.append(total)
    rows = []
    for estimate_line in lines:
        prefix_share = None
        if total.shared and estimate_line.read:
            prefix_share = f"{estimate_line.shared / estimate_line.read:.0%}"
        counts = (
            estimate_line.judgments,
            # Columns of nothing but 0 are left out, so that the others fit in a narrow terminal.
            estimate_line.equal if total.equal else None,
            estimate_line.cached if total.cached else None,
            estimate_line.requests,
        )
        tokens_of_line = (
            round(estimate_line.read),
            round(estimate_line.written),
            prefix_share,
        )
        rows.append((estimate_line.name, *counts, *tokens_of_line))
    columns = (
        by,
        f"{estimate.unit}s",
        Column("duplicates", optional=True),
        Column("cached", optional=True),
        "requests",
        Column("input", group="tokens"),
        Column("output", group="tokens"),
        Column("prefix", group="tokens", optional=True, about=(_PREFIX,)),
    )
    yield table(columns, rows, name=f"plan-{estimate.judge}")
    facts = {"method": judge.method, "price": _price_fact(judge)}
    seconds = judge.time.seconds
    if seconds is None:
        facts["time"] = judge.time.why
    else:
        duration = rough_duration(seconds)
        facts["time"] = f"about {duration} ({judge.time.why})"
    known_facts = [(fact_name, fact) for fact_name, fact in facts.items() if fact]
    yield Facts(tuple(known_facts))


def _price_fact(judge: JudgeForecast) -> str:
    """Return the price of a judge's requests with its source, or why it is unknown or nothing."""
    money = judge.money
    if money.price is None:
        return f"unknown ({money.why})"
    if not money.price:
        n_requests = judge.estimate.total.requests
        reason = money.why if money.why and n_requests else "no request is sent"
        return f"nothing: {reason}"
    rate = ""
    if money.rate is not None:
        input_rate, output_rate = map(_rate_text, money.rate)
        rate = f": {input_rate} per million input tokens, {output_rate} per million output tokens"
    amount = dollars(money.price)
    price = f"{amount} ({money.why}{rate})"
    # Equal sums may differ by rounding.
    if money.cached is not None and round(money.cached, 6) < round(money.price, 6):
        price += f"; {dollars(money.cached)} if the provider's prompt cache serves every prefix"
    return price


def _rate_text(amount: float) -> str:
    """Write US dollars with two decimals; below a cent, with two significant digits."""
    return f"${amount:,.2f}" if amount >= 0.01 else dollars(amount)
