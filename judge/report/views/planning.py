"""What is known before a run, as documents: the forecast of `judge plan`, the power of `judge power`, the setup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial

from judge.core.format import dollars, duration, format_p, minus, one_line, plural
from judge.core.messages import option
from judge.report.document import Block, Bullets, Cell, Column, Document, Facts, Paragraph, Section, Table, Tone
from judge.results.planning import Diagnosis, Forecast, JudgeForecast, PairPower, Price, RunPower, SdPower, price_text

_PREFIX = "prefix: share of input tokens the provider can serve from its prompt cache."
_RESUME = "the run then stops, and the same command resumes it"


def view(forecast: Forecast) -> Document:
    """Lay out a forecast."""
    units = Counter[str]()
    for judge in forecast.judges:
        units[judge.estimate.unit] += judge.estimate.total.judgments
    if units["question"]:  # of another judge, a checklist may be one judgment
        units["question"] += units.pop("judgment", 0)
    judgments = " and ".join(plural(n, unit) for unit, n in units.items() if n)
    sections = [
        Section(f"judge-{k}", one_line(f"{each.estimate.judge} · {each.endpoint}").rstrip(" ·"), partial(_blocks, each))
        for k, each in enumerate(forecast.judges)
    ]
    if forecast.notes:
        sections.append(Section("notes", "Notes", lambda: [Bullets(forecast.notes)]))
    return Document(
        title=f"Estimate for {', '.join(one_line(judge.estimate.judge) for judge in forecast.judges) or 'a run'}",
        finding=(_headline(forecast, judgments),),
        scope=judgments,
        notices=tuple(_limits(forecast)) if forecast.requests else (),
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


def _headline(forecast: Forecast, judgments: str) -> str:
    if not forecast.judges:
        return "No requests: no judge scores anything."
    if not forecast.requests:
        cached = sum(judge.estimate.total.cached for judge in forecast.judges)
        return f"No requests: the cache answers all {judgments}." if cached else "No requests."
    exact = all(judge.estimate.exact for judge in forecast.judges)
    parts = [f"{'' if exact else 'About '}{plural(forecast.requests, 'request')}", price_text(forecast.price)]
    parts += [f"about {duration(forecast.seconds)}"] if forecast.seconds is not None else []
    return ", ".join(parts)


def _blocks(judge: JudgeForecast) -> Iterator[Block]:
    estimate = judge.estimate
    lines = [*estimate.lines, estimate.total] if len(estimate.lines) > 1 else estimate.lines
    heads = (
        ("", f"{estimate.unit}s"), ("", "duplicates"), ("", "cached"), ("", "requests"), ("tokens", "input"),
        ("tokens", "output"), ("tokens", "prefix"),
    )  # fmt: skip
    rows = []
    for line in lines:
        tone: Tone = "strong" if line.criterion == "all" and len(lines) > 1 else ""
        counts = (line.judgments, line.equal, line.cached, line.requests, line.read, line.written)
        numbers = (Cell(f"{n:,.0f}", value=n, tone=tone) for n in counts)
        share = f"{line.shared / line.read:.0%}" if line.read else "–"
        rows.append((Cell(line.criterion, tone=tone), *numbers, Cell(share)))
    yield Table(
        columns=(Column("criterion", numeric=False), *(Column(head, group) for group, head in heads)),
        rows=tuple(rows),
        key=_PREFIX if estimate.total.requests else "",
        name=f"plan-{estimate.judge}",
    )
    facts = [*_facts(judge), ("basis", judge.basis)] if estimate.total.requests else [*_facts(judge)]
    yield Facts(tuple(facts))


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


_TWO_SYSTEMS = (
    "Two-sided sign-flip test of two systems at level .05, if no differences are equal. More systems need more items, "
    "because the run corrects for the number of pairs. So do scales with few labels: use the power of a run."
)


def view_of_sd(power: SdPower) -> Document:
    """Lay out the power for a standard deviation."""
    share, sentences = _percent(power.power), []
    if power.items_needed is not None:
        needed = _items(power.items_needed, power.power)
        sentences.append(f"Detecting a difference of {power.difference:g} needs {needed}.")
    if power.detectable is not None:
        sentences.append(f"{power.items:,} items detect a difference of {power.detectable:.3g} ({share} power).")
    if power.achieved_power is not None:
        achieved = _percent(power.achieved_power)
        sentences.append(f"{power.items:,} items detect {power.difference:g} with {achieved} power.")
    return Document(
        title=f"Power for a standard deviation of {power.sd:g}",
        finding=_headlined(sentences),
        sections=(Section("method", "Method", lambda: [Paragraph(_TWO_SYSTEMS)]),),
        data=power,
        records=({name: getattr(power, name) for name in power.__slots__},),
    )


def view_of_power(power: RunPower) -> Document:
    """Lay out the power of a run."""
    pairs = [pair for column in power.columns for pair in column.pairs]
    table = _power_table(power)
    return Document(
        title=f"Power of {one_line(power.run)}",
        finding=_headlined(_power_sentences(power)),
        scope=plural(max(pair.items for pair in pairs), "item") if pairs else "",
        notices=power.notes,
        summary=(table,),
        sections=(Section("method", "Method", lambda: [Bullets(tuple(_method(power)))]),),
        data=power,
        records=tuple(
            {
                "column": column.column, "place": pair.place, "system_a": pair.systems[0], "system_b": pair.systems[1],
                "items": pair.items, "difference": pair.difference, "sd": pair.sd, "detectable": pair.detectable,
                "items_for_observed": pair.items_for_observed, "items_needed": pair.items_needed, "p": pair.p,
            }
            for column in power.columns
            for pair in column.pairs
        ),
    )  # fmt: skip


def _power_sentences(power: RunPower) -> Iterator[str]:
    """Yield the answer for the overall score, or else for the first column with pairs."""
    columns = {column.column: column for column in power.columns if column.pairs}
    if not columns:
        yield "No pair of systems has differences to compute the power from."
        return
    column = columns.get("overall") or next(iter(columns.values()))
    pair, name = column.pairs[-1], f"in {one_line(column.column)}"
    subject = ""
    if power.pair is not None:
        subject = f"{one_line(power.pair[0])} and {one_line(power.pair[1])}: "
        if pair.significant:
            yield (
                f"{subject}their difference of {abs(pair.difference):.3g} {name} is already significant "
                f"({format_p(pair.p or 0.0)}, {plural(pair.items, 'item')})."
            )
        elif pair.items_for_observed is not None and power.difference is None:
            yield (
                f"{subject}detecting their difference of {abs(pair.difference):.3g} {name} needs "
                f"{_items(pair.items_for_observed, power.power)}."
            )
    elif column.systems > 2:
        name += (
            f" between {one_line(power.against)} and another system" if power.against else " between any two systems"
        )
    if power.difference is not None and pair.items_needed is not None:
        verb = "detecting" if subject else "Detecting"
        needed = _items(pair.items_needed, power.power)
        yield f"{subject}{verb} a difference of {power.difference:g} {name} needs {needed}."
    elif pair.detectable is not None:
        found = f"{pair.items:,} items detect a difference of {pair.detectable:.3g} {name}"
        yield f"{found} ({_percent(power.power)} power)."
    else:
        few = f"{plural(pair.items, 'item')} are too few to detect any difference {name}"
        yield f"{few} ({_percent(power.power)} power)."


def _power_table(power: RunPower) -> Table:
    """Return a row per column with the requested pair, or the median and the worst one."""
    several = any(len(column.pairs) > 1 for column in power.columns)
    heads = ["difference"] if power.pair is not None else []
    heads += ["SD", "detectable"]
    heads += ["items for it"] if power.pair is not None else []
    heads += [f"items for {power.difference:g}"] if power.difference is not None else []
    groups = ("median", "worst") if several else ("",)
    columns = [Column(head, group=group) for group in groups for head in heads]
    rows = []
    for column in power.columns:
        pairs = column.pairs[:1] * (len(groups) - len(column.pairs)) + column.pairs if column.pairs else ()
        numbers = [cell for pair in pairs for cell in _numbers(pair, power)] or [Cell("–")] * len(columns)
        items = Cell(f"{pairs[-1].items:,}", value=pairs[-1].items) if pairs else Cell("–")
        rows.append((Cell(one_line(column.column)), items, *numbers))
    key = "SD: standard deviation of the differences between two systems, item by item."
    if several:
        key += " Median and worst: the pairs with the median and the largest SD."
    return Table((Column("column", numeric=False), Column("items"), *columns), tuple(rows), key=key, name="power")


def _numbers(pair: PairPower, power: RunPower) -> Iterator[Cell]:
    title = " – ".join(map(one_line, pair.systems))
    if power.pair is not None:
        yield Cell(minus(f"{pair.difference:+.3g}"), value=pair.difference)
    yield Cell(f"{pair.sd:.3g}", value=pair.sd, title=title)
    few = pair.detectable is None
    yield Cell("too few items" if few else f"{pair.detectable:.3g}", value=pair.detectable, title=title)
    if power.pair is not None and pair.significant:
        yield Cell("significant", value=pair.items_for_observed, title=title)
    numbers = [pair.items_for_observed] if power.pair is not None and not pair.significant else []
    numbers += [pair.items_needed] if power.difference is not None else []
    for number in numbers:
        yield Cell("–" if number is None else f"{number:,}", value=number, title=title)


def _method(power: RunPower) -> Iterator[str]:
    """Yield the level of the tests, by the number of systems."""
    yield "Power of two-sided sign-flip tests, with each pair's share of equal scores and the step of its scale."
    for systems, column in sorted({column.systems: column for column in power.columns if column.pairs}.items()):
        correction = "p must be below .05"
        if column.tests > 1:
            pairs = "comparisons with one" if column.tests == systems - 1 > 1 else "pairs"
            correction = (
                f"{systems} systems are {column.tests:,} {pairs}, so p must be below .05 / {column.tests:,} = "
                f"{column.level:.2g} (Holm's first step)"
            )
        yield f"{correction}. A sign-flip test needs at least {column.min_items} items for that."


def _headlined(sentences: Iterable[str]) -> tuple[str, ...]:
    """Drop the full stop of the first sentence, which becomes a headline."""
    first, *more = sentences
    return (first.rstrip("."), *more)


def _items(number: int, power: float) -> str:
    return f"about {number:,} items ({_percent(power)} power)"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


_MARKS = {"ok": "✓", "missing": "–", "error": "✗"}


def view_of_setup(diagnosis: Diagnosis) -> Document:
    """Lay out a diagnosis."""
    errors = [finding for finding in diagnosis.findings if finding.state == "error"]
    names = ", ".join(f"{one_line(finding.part)} ({finding.name})" for finding in errors)
    finding = f"{plural(len(errors), 'problem')}: {names}" if errors else "No problems"
    return Document(
        title="Setup",
        finding=(finding,),
        scope=plural(len(diagnosis.findings), "check"),
        sections=tuple(
            Section(f"part-{place}", one_line(part), partial(tuple, [Facts(facts)]))
            for place, (part, findings) in enumerate(diagnosis.parts())
            for facts in [
                tuple((f"{_MARKS[f.state]} {f.name}", f"{f.text} → {f.fix}" if f.fix else f.text) for f in findings)
            ]
        ),
        data={"ok": diagnosis.ok, "findings": diagnosis.findings},
        records=tuple(asdict(finding) for finding in diagnosis.findings),
    )
