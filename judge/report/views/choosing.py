"""The report of `judge choose`: which judge, prompt or panel agrees best with people, and what each costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from statistics import fmean
from typing import Any

from judge.core.format import dollars, format_interval, listed, number, one_line, percent, plural
from judge.report import charts
from judge.report.document import (
    Block,
    Bullets,
    Cell,
    Column,
    Details,
    Document,
    Heading,
    Notice,
    Section,
    Table,
    table,
)
from judge.report.views.columns import change_text
from judge.results.choosing import Candidate, Choice, Choices
from judge.stats.correlation import OVER
from judge.stats.selection import MOST_ITEMS

_PLACES = 2
_MAX_ROWS = 5  # of the summary
_MAX_NAME = 40
_HELP = (
    "Spearman: the agreement with people on these rated items, on which the best candidate looks too good. On new "
    "items: the same choice, made on resampled items and measured on the items left out.",
    "To the best: this Spearman minus the best one, with a 95% interval for all candidates together. A candidate whose "
    "interval includes 0 is not significantly worse.",
    "Chosen: how often this candidate was the best of the resampled items.",
    "A failed judgment counts as the judge's mean score, so that failures do not help. Panels are means of scores.",
    "Price: for 1,000 texts, from the tokens that the run paid for. Seconds: mean time of a request, for a panel that "
    "of its slowest judge. Best value: no candidate agrees better for the same price or less.",
)


def view(choices: Choices) -> Document:
    """Make the report of a choice."""
    made = choices.choices
    first, *rest = map(_sentence, made)
    return Document(
        title=one_line(choices.title),
        finding=(first.rstrip("."), *rest),
        scope=plural(max(choice.items for choice in made), "rated item"),
        notices=(*map(one_line, choices.notes), *_notices(made)),
        summary=(_overview(made),),
        sections=tuple(
            Section(f"choice-{place}", one_line(choice.criterion), partial(_blocks, choice))
            for place, choice in enumerate(made)
        ),
        data={
            "title": choices.title,
            "notes": choices.notes,
            "criteria": [asdict(each) | {"optimism": each.optimism, "sentence": _sentence(each)} for each in made],
        },
        records=tuple(record for choice in made for record in _records(choice)),
    )


def _records(choice: Choice) -> Iterator[dict[str, Any]]:
    """Yield a record per candidate."""
    for candidate in choice.candidates:
        behind, own = candidate.behind, candidate.name == choice.chosen
        yield {
            "criterion": choice.criterion,
            "name": candidate.name,
            "kind": candidate.kind,
            "level": choice.level,
            "spearman": candidate.value,
            "chosen": own,
            "recommended": candidate.name == choice.recommended,
            "honest": choice.honest.value if own and choice.honest else None,
            "low": choice.honest.low if own and choice.honest else None,
            "high": choice.honest.high if own and choice.honest else None,
            "behind": behind.value if behind else None,
            "behind_low": behind.low if behind else None,
            "behind_high": behind.high if behind else None,
            "share": candidate.share,
            "price_per_1000": candidate.price,
            "seconds": candidate.seconds,
            "judged": candidate.judged,
            "failed": candidate.failed,
            "front": candidate.front,
            "items": choice.items,
            "texts": choice.texts,
        }


def _sentence(choice: Choice) -> str:
    """Say which candidate is best, how well it will agree, which cheaper one to take, and what would settle it."""
    name, e = one_line(choice.criterion), choice.honest
    if e is None or choice.naive is None:
        return f"{name}: no choice, because {choice.lacking}."
    by_name, best = choice.by_name, one_line(choice.chosen, _MAX_NAME)
    numbers = f"{_number(e.value)} {format_interval(e.low, e.high, _PLACES)}".rstrip()
    agreement = f"({numbers} on new items, {_number(choice.naive)} on these)"
    if by_name[choice.chosen].kind == "baseline":
        subject = f"{name}: no judge agrees better with people than the baseline {best} {agreement}"
    elif sum(candidate.kind != "baseline" for candidate in choice.candidates) == 1:
        subject = f"{name}: {best} is the only judge {agreement}"
    else:
        subject = f"{name}: {best} agrees best with people {agreement}"
    rival = one_line(choice.runner_up, _MAX_NAME)
    if choice.recommended != choice.chosen:
        leader, cheaper = by_name[choice.chosen], by_name[choice.recommended]
        price = "is one of its judges"
        if leader.price and cheaper.price is not None:
            price = f"costs {number(100 * (1 - cheaper.price / leader.price), 0)}% less"
        behind = f" ({_lead(cheaper)})" if cheaper.behind else ""
        advice = f"{one_line(cheaper.name, _MAX_NAME)} is not significantly worse{behind} and {price}"
        return f"{subject}; {advice}: choose it."
    if not rival:
        return f"{subject}."
    if not choice.not_worse:
        return f"{subject}; every other candidate is significantly worse."
    if choice.more_items == 0:
        return f"{subject}; {rival} is significantly worse."
    if choice.more_items is None:
        return f"{subject}; even {MOST_ITEMS:,} more rated items would not settle it against {rival}."
    return f"{subject}; about {plural(choice.more_items, 'more rated item')} would settle it against {rival}."


def _lead(candidate: Candidate) -> str:
    """Write how much better than the best a candidate is: a negative number."""
    e = candidate.behind
    if e is None or e.low is None or e.high is None:
        return "–"
    return change_text(replace(e, value=-e.value, low=-e.high, high=-e.low), _PLACES)


def _notices(choices: Sequence[Choice]) -> Iterator[str]:
    equal = []
    for choice in choices:
        near = [candidate for candidate in choice.not_worse if candidate.kind == "baseline"]
        if near and choice.by_name[choice.chosen].kind != "baseline":
            equal.append(f"{one_line(choice.criterion)} ({near[0].name})")
    if equal:
        yield f"The best judge is not significantly better than a baseline: {listed(equal)}."
    for choice in choices:
        if choice.excluded:
            excluded = plural(choice.excluded, "text")
            yield f"{one_line(choice.criterion)}: {excluded} excluded, which were used to make the prompt."


def _number(value: float) -> str:
    return number(value, _PLACES)


def _price(candidate: Candidate, mark: str = "") -> Cell:
    if candidate.kind == "baseline":
        return Cell("free", mark=mark, value=0.0)
    return Cell("–") if candidate.price is None else Cell(dollars(candidate.price), mark=mark, value=candidate.price)


def _seconds(candidate: Candidate) -> Cell:
    if candidate.seconds is None:
        return Cell("–")
    return Cell(number(candidate.seconds, 1), value=candidate.seconds)


def _readable(candidate: Candidate) -> Cell:
    return Cell(percent(candidate.readable), value=candidate.readable)


def _overview(choices: Sequence[Choice]) -> Table:
    """Tabulate the best candidates: a column per criterion, then the price, the time and the readable replies."""
    made = [choice for choice in choices if choice.honest]
    together: dict[str, list[Candidate]] = {}
    for choice in made:
        for candidate in choice.candidates:
            together.setdefault(candidate.name, []).append(candidate)
    names = sorted(together, key=lambda name: -fmean(c.value or 0.0 for c in together[name]))
    named = {name for choice in made for name in (choice.chosen, choice.recommended)}
    baselines = [name for name in names if together[name][0].kind == "baseline"]
    named.update(baselines[:1])
    order = sorted(names, key=lambda name: (name not in named, name in baselines))
    shown = order[: max(_MAX_ROWS, len(named))]
    rows: list[tuple[str | Cell, ...]] = []
    for name in sorted(shown, key=names.index):
        entries = together[name]
        prices = [c.price for c in entries if c.price is not None]
        seconds = [c.seconds for c in entries if c.seconds is not None]
        one = replace(
            entries[0],
            price=fmean(prices) if prices else None,
            seconds=fmean(seconds) if seconds else None,
            judged=sum(c.judged for c in entries),
            failed=sum(c.failed for c in entries),
        )
        cells = [_value(choice, choice.by_name.get(name)) for choice in made]
        front = any(c.front for c in entries)
        rows.append((one_line(name, _MAX_NAME), *cells, _price(one, "+" * front), _seconds(one), _readable(one)))
    key = "Spearman on these items: * best, ~ not significantly worse. $: for 1,000 texts; + best value."
    if len(names) > len(rows):
        key += f" {plural(len(names) - len(rows), 'more candidate')} in full."
    heads = [Column(one_line(choice.criterion), better="higher") for choice in made]
    return table(("", *heads, Column("$"), Column("s"), Column("readable")), rows, key=key, name="choice", short=True)


def _value(choice: Choice, candidate: Candidate | None) -> Cell:
    if candidate is None or candidate.value is None:
        return Cell("–")
    if candidate.name == choice.chosen:
        return Cell(_number(candidate.value), tone="good", mark="*", value=candidate.value)
    return Cell(_number(candidate.value), mark="~" * (candidate in choice.not_worse), value=candidate.value)


def _blocks(choice: Choice) -> Iterator[Block]:
    """Show all candidates of a criterion."""
    if choice.honest is None:
        yield Notice(f"No choice, because {choice.lacking}.")
        return
    yield Heading(f"{plural(choice.items, 'rated item')}, {plural(choice.texts, 'text')}")
    rows = [
        (
            one_line(c.name) + " (baseline)" * (c.kind == "baseline"),
            _value(choice, c),
            Cell(_lead(c), value=-c.behind.value) if c.behind else Cell("–"),
            Cell(f"{100 * c.share:.0f}%", value=c.share),
            _price(c, "+" * c.front),
            _seconds(c),
            _readable(c),
            Cell(f"{c.failed:,}", value=c.failed),
        )
        for c in choice.candidates
    ]
    heads = (
        Column("Spearman", better="higher"),
        *map(Column, ("to the best", "chosen", "$", "s", "readable", "failed")),
    )
    key = f"Spearman {OVER[choice.level]}: * best, ~ not significantly worse. $: for 1,000 texts; + best value."
    name = one_line(choice.criterion)
    yield table(("", *heads), rows, key=key, name=f"candidates-{name}", caption=f"{name}: candidates.")
    known = [c for c in choice.candidates if c.value is not None]
    bars = [
        charts.Bar(c.value or 0.0, text=_number(c.value or 0.0), tone="best" if c.name == choice.chosen else "")
        for c in known
    ]
    caption = "Spearman's correlation with people's ratings, on the items that chose."
    title = f"Candidates for {name}"
    labels = [one_line(c.name, _MAX_NAME) for c in known]
    yield replace(charts.bars(f"candidates-{name}", title, labels, bars, caption=caption), tabled=True)
    yield Details("How to read this table", (Bullets((*_HELP, choice.honest.method)),))
