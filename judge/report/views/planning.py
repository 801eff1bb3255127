"""What is known before a run, as documents: the forecast or the power of `judge plan`, the setup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial

from judge.core.format import dollars, duration, format_p, minus, plural
from judge.core.messages import option
from judge.report.document import (
    Block,
    Bullets,
    Column,
    Content,
    Document,
    Facts,
    Section,
    Table,
    table,
)
from judge.results.planning import Diagnosis, Forecast, JudgeForecast, RunPower, price_text
from judge.stats.power import POWER

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


def view_of_power(power: RunPower) -> Document:
    """Lay out the power of a run."""
    pairs = [(column.column, pair) for column in power.columns for pair in column.pairs]
    sentences = list(_power_sentences(power))
    method = [
        "Power of two-sided sign-flip tests, with each pair's share of equal scores and the step of its scale."
    ]
    method += [
        f"{plural(systems, 'system')}: p must be below {column.level:.2g} (.05 / {column.tests:,} comparisons, "
        f"Holm's first step), which takes at least {column.min_items} items."
        for systems, column in sorted(
            {column.systems: column for column in power.columns if column.pairs}.items()
        )
    ]
    return Document(
        title=f"Power of {power.run or 'the run'}",
        finding=(sentences[0].rstrip("."), *sentences[1:]),
        scope=plural(max(pair.items for _, pair in pairs), "item") if pairs else "",
        notices=power.notes,
        summary=(_power_table(power),) if pairs else (),
        sections=(Section("method", "Method", lambda: [Bullets(tuple(method))]),),
        data=power,
        records=tuple(
            {
                "column": column, "place": pair.place, "system_a": pair.systems[0], "system_b": pair.systems[1],
                "items": pair.items, "difference": pair.difference, "sd": pair.sd, "detectable": pair.detectable,
                "items_for_observed": pair.items_for_observed, "items_needed": pair.items_needed, "p": pair.p,
            }
            for column, pair in pairs
        ),
    )  # fmt: skip


def _power_sentences(power: RunPower) -> Iterator[str]:
    """Yield the answer for the overall score, or else for the first column with pairs."""
    columns = {column.column: column for column in power.columns if column.pairs}
    if not columns:
        yield "No pair of systems has differences to compute the power from."
        return
    column = columns.get("overall") or next(iter(columns.values()))
    pair, name, subject, detecting = column.pairs[-1], f"in {column.column}", "", "Detecting"
    if power.pair is not None:
        subject, detecting = f"{power.pair[0]} and {power.pair[1]}: ", "detecting"
        size = f"their difference of {abs(pair.difference):.3g} {name}"
        if pair.significant:
            tested = f"{format_p(pair.p or 0.0)}, {plural(pair.items, 'item')}"
            yield f"{subject}{size} is already significant ({tested})."
        elif pair.items_for_observed is not None and power.difference is None:
            yield f"{subject}detecting {size} needs {_items(pair.items_for_observed)}."
    elif column.systems > 2:
        name += (
            f" between {power.against} and another system"
            if power.against
            else " between any two systems"
        )
    if power.difference is not None and pair.items_needed is not None:
        needed = _items(pair.items_needed)
        yield f"{subject}{detecting} a difference of {power.difference:g} {name} needs {needed}."
    else:
        few = f"{plural(pair.items, 'item')} are too few to detect any difference {name}"
        enough = f"{pair.items:,} items detect a difference of {pair.detectable or 0.0:.3g} {name}"
        yield f"{few if pair.detectable is None else enough} ({POWER:.0%} power)."


def _power_table(power: RunPower) -> Table:
    """Return a row per column with the requested pair, or one for the median pair and one for the worst."""
    rows: list[tuple[Content, ...]] = [
        (
            column.column,
            None if power.pair else " – ".join(pair.systems),
            pair.items,
            minus(f"{pair.difference:+.3g}"),
            f"{pair.sd:.3g}",
            "too few items" if pair.detectable is None else f"{pair.detectable:.3g}",
            None
            if not power.pair
            else "significant"
            if pair.significant
            else pair.items_for_observed,
            pair.items_needed,
        )
        for column in power.columns
        for pair in column.pairs
    ]
    heads = (
        "column",
        Column(
            "pair",
            numeric=False,
            optional=True,
            about="Pairs: the one with the median SD, and the one that needs most items.",
        ),
        "items",
        "difference",
        Column("SD", about="SD: of the differences between the two systems, item by item."),
        "detectable",
        Column("items for it", optional=True),
        Column(f"items for {power.difference or 0:g}", optional=True),
    )
    return table(heads, rows, name="power")


def _items(number: int) -> str:
    return f"about {number:,} items ({POWER:.0%} power)"


_MARKS = {"ok": "✓", "missing": "–", "error": "✗"}


def view_of_setup(diagnosis: Diagnosis) -> Document:
    """Lay out a diagnosis."""
    errors = [finding for finding in diagnosis.findings if finding.state == "error"]
    names = ", ".join(f"{finding.part} ({finding.name})" for finding in errors)
    finding = f"{plural(len(errors), 'problem')}: {names}" if errors else "No problems"
    return Document(
        title="Setup",
        finding=(finding,),
        scope=plural(len(diagnosis.findings), "check"),
        sections=tuple(
            Section(f"part-{place}", part, partial(tuple, [Facts(facts)]))
            for place, (part, findings) in enumerate(diagnosis.parts())
            for facts in [
                tuple(
                    (f"{_MARKS[f.state]} {f.name}", f"{f.text} → {f.fix}" if f.fix else f.text)
                    for f in findings
                )
            ]
        ),
        data={"ok": diagnosis.ok, "findings": diagnosis.findings},
        records=tuple(asdict(finding) for finding in diagnosis.findings),
    )
