"""The report of `judge plan`: the requests, the price and the time of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from judge.commands.plan.record import Plan
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
from judge.run.request_estimates import JudgePlan, price_text

_PREFIX = "prefix: share of input tokens the provider can serve from its prompt cache."


def view(plan: Plan) -> Document:
    """Lay out a plan."""
    judgments = _judgments(plan)
    sections = []
    for number, judge in enumerate(plan.judges):
        judge_title = f"{judge.estimate.judge} · {judge.endpoint}".rstrip(" ·")
        blocks = partial(_blocks, judge, plan.by)
        sections.append(Section(f"judge-{number}", judge_title, blocks))
    if plan.notes:
        notes = Bullets(plan.notes)
        sections.append(Section("notes", "Notes", lambda: [notes]))
    names = ", ".join(judge.estimate.judge for judge in plan.judges)
    judge_names = names or "a run"
    subject = f"a card of {judge_names}" if plan.by == "run" else judge_names
    return Document(
        title=f"Estimate for {subject}",
        finding=(_headline(plan, judgments),),
        scope=judgments,
        notices=tuple(_budget_notice(plan)),
        sections=tuple(sections),
        data=plan.to_dict(),
        records=tuple(_records(plan)),
    )


def _judgments(plan: Plan) -> str:
    """Return what the judges are asked, by unit: `12 judgments and 40 questions`."""
    count_by_unit: Counter[str] = Counter()
    for judge in plan.judges:
        count_by_unit[judge.estimate.unit] += judge.estimate.total.judgments
    if count_by_unit["question"]:
        # Another judge may answer a whole checklist in one judgment.
        count_by_unit["question"] += count_by_unit.pop("judgment", 0)
    counts = [plural(count, unit) for unit, count in count_by_unit.items() if count]
    return " and ".join(counts)


def _headline(plan: Plan, judgments: str) -> str:
    """Return the requests, price and time, or why no request is sent."""
    if plan.requests:
        is_exact = all(judge.estimate.exact for judge in plan.judges)
        requests = plural(plan.requests, "request")
        headline_parts = [requests if is_exact else f"About {requests}"]
        headline_parts.append(price_text(plan.price))
        if plan.seconds is not None:
            headline_parts.append(f"about {rough_duration(plan.seconds)}")
        return ", ".join(headline_parts)
    if plan.uncounted:
        metric_names = ", ".join(plan.uncounted)
        return f"Only metrics send requests, which are not counted: {metric_names}."
    if any(judge.estimate.total.cached for judge in plan.judges):
        return f"No requests: the cache answers all {judgments}."
    return "No requests: no judge scores anything."


def _budget_notice(plan: Plan) -> Iterator[str]:
    """Yield how far the budget reaches, if there is one."""
    if plan.budget is None or not plan.requests:
        return
    is_comparable = plan.price is not None or plan.budget.unit == "tokens"
    # `requests_in_budget` gives no number for a batch, whose maximum cost is reserved at once.
    if plan.fits is None and is_comparable:
        budget_reach = (
            "a batch reserves the maximum cost of all its requests, one token per byte and the "
            "longest reply; the run stops if that does not fit, and the same command resumes it"
        )
    elif plan.fits is None:
        advice = "give tokens, such as 200000tokens"
        budget_reach = f"the price is unknown, so the run stops at once; {advice}"
    elif plan.fits >= plan.requests:
        budget_reach = f"all {plan.requests:,} requests fit"
        if plan.requests == 1:
            budget_reach = "its request fits"
    else:
        budget_reach = (
            f"about {plan.fits:,} of {plan.requests:,} requests fit; the run then stops, "
            "and the same command resumes it"
        )
    yield f"{option('budget', str(plan.budget))}: {budget_reach}"


def _records(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield a record per judge and criterion."""
    for judge in plan.judges:
        for estimate_line in judge.estimate.lines:
            yield {
                "judge": judge.estimate.judge,
                plan.by: estimate_line.name,
                "judgments": estimate_line.judgments,
                "duplicates": estimate_line.equal,
                "cached": estimate_line.cached,
                "failed": estimate_line.broken,
                "requests": estimate_line.requests,
                "input_tokens": estimate_line.read,
                "output_tokens": estimate_line.written,
                "prefix_tokens": estimate_line.shared,
            }


def _blocks(judge: JudgePlan, by: str) -> Iterator[Block]:
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


def _price_fact(judge: JudgePlan) -> str:
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
