"""The report of `judge choose`: which judge, prompt or panel agrees best with people, and what each costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from judge.core.format import dollars, format_interval, number, percent, plural
from judge.report.document import (
    Block,
    Bullets,
    Cell,
    Column,
    Content,
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
    notices = list(choices.notes)
    for choice in made:
        near = [candidate.name for candidate in choice.not_worse if candidate.kind == "baseline"]
        if near and choice.by_name[choice.chosen].kind != "baseline":
            notices.append(
                f"{choice.criterion}: the best judge is not significantly better than a baseline ({near[0]})."
            )
        if choice.excluded:
            excluded = plural(choice.excluded, "text")
            notices.append(f"{choice.criterion}: {excluded} excluded, which were used to make the prompt.")
    return Document(
        title=choices.title,
        finding=(first.rstrip("."), *rest),
        scope=plural(max(choice.items for choice in made), "rated item"),
        notices=tuple(notices),
        summary=(_table(made, most=_MAX_ROWS if len(made) < 2 else 3),),
        sections=tuple(
            Section(f"choice-{place}", choice.criterion, partial(_blocks, choice)) for place, choice in enumerate(made)
        ),
        data={
            "title": choices.title,
            "notes": choices.notes,
            "criteria": [asdict(each) | {"optimism": each.optimism, "sentence": _sentence(each)} for each in made],
        },
        records=tuple(_record(choice, candidate) for choice in made for candidate in choice.candidates),
    )


def _record(choice: Choice, candidate: Candidate) -> dict[str, Any]:
    is_chosen = candidate.name == choice.chosen
    honest, behind = (
        {key: getattr(e, key, None) for key in ("value", "low", "high")}
        for e in (choice.honest if is_chosen else None, candidate.behind)
    )
    return {
        "criterion": choice.criterion,
        "name": candidate.name,
        "kind": candidate.kind,
        "level": choice.level,
        "spearman": candidate.value,
        "chosen": is_chosen,
        "recommended": candidate.name == choice.recommended,
        "honest": honest["value"],
        "low": honest["low"],
        "high": honest["high"],
        "behind": behind["value"],
        "behind_low": behind["low"],
        "behind_high": behind["high"],
        "share": candidate.share,
        "price_per_1000": candidate.price,
        "seconds": candidate.seconds,
        "judged": candidate.judged,
        "failed": candidate.failed,
        "items": choice.items,
        "texts": choice.texts,
    }


def _sentence(choice: Choice) -> str:
    """Say which candidate is best, how well it will agree, which cheaper one to take, and what would settle it."""
    e = choice.honest
    if e is None or choice.naive is None:
        return f"{choice.criterion}: no choice, because {choice.lacking}."
    best, by_name = choice.chosen, choice.by_name
    leader, cheaper, rival = by_name[choice.chosen], by_name[choice.recommended], choice.runner_up
    numbers = f"{number(e.value, _PLACES)} {format_interval(e.low, e.high, _PLACES)}".rstrip()
    verdict = f"{best} agrees best with people"
    if leader.kind == "baseline":
        verdict = f"no judge agrees better with people than the baseline {best}"
    parts = [f"{choice.criterion}: {verdict} ({numbers} on new items, {number(choice.naive, _PLACES)} on these)"]
    if cheaper is not leader:
        price = "is one of its judges"
        if leader.price and cheaper.price is not None:
            price = f"costs {number(100 * (1 - cheaper.price / leader.price), 0)}% less"
        name = cheaper.name
        parts.append(f"{name} is not significantly worse ({_lead(cheaper)}) and {price}: choose it")
    elif rival and (not choice.not_worse or choice.more_items == 0):
        parts.append(f"{rival} is significantly worse")
    elif rival:
        items = f"more than {MOST_ITEMS:,}" if choice.more_items is None else f"about {choice.more_items:,}"
        parts.append(f"{items} more rated items would settle it against {rival}")
    return f"{'; '.join(parts)}."


def _lead(candidate: Candidate) -> str:
    """Write how much better than the best a candidate is: a negative number."""
    return change_text(candidate.behind.times(-1), _PLACES) if candidate.behind else "–"


def _table(choices: Sequence[Choice], most: int = 0) -> Table:
    """Tabulate the candidates; the summary has the `most` best ones of each criterion and its best baseline."""
    rows: list[tuple[Content, ...]] = []
    for choice in choices:
        shown = choice.candidates
        if most:
            best = sorted(shown, key=lambda c: (c.kind == "baseline", c.name != choice.recommended, -(c.value or 0.0)))
            baseline = next((c for c in shown if c.kind == "baseline"), None)
            shown = tuple(c for c in shown if c in best[: most - 1] or c is baseline)
        for c in shown:
            chosen, name = c.name == choice.chosen, c.name
            mark = "*" if chosen else "~" * (c in choice.not_worse)
            value = None
            if c.value is not None:
                value = Cell(number(c.value, _PLACES), tone="good" if chosen else "", mark=mark, value=c.value)
            price = "free" if c.kind == "baseline" else "–" if c.price is None else dollars(c.price)
            rows.append(
                (
                    f"{choice.criterion} · {name}" if len(choices) > 1 else name,
                    value,
                    _lead(c),
                    Cell(f"{100 * c.share:.0f}%", value=c.share),
                    Cell(price, value=c.price),
                    None if c.seconds is None else Cell(number(c.seconds, 1), value=c.seconds),
                    Cell(percent(c.readable), value=c.readable),
                )
            )
    return table(
        ("", Column("Spearman", better="higher"), "to the best", "chosen", "$", "s", "readable"),
        rows,
        f"Spearman {OVER[choices[0].level]}: * best, ~ not significantly worse. $: for 1,000 texts.",
        name=f"candidates-{choices[0].criterion}",
        short=bool(most),
    )


def _blocks(choice: Choice) -> Iterator[Block]:
    """Show all candidates of a criterion."""
    if choice.honest is None:
        yield Notice(f"No choice, because {choice.lacking}.")
        return
    yield Heading(f"{plural(choice.items, 'rated item')}, {plural(choice.texts, 'text')}")
    yield _table([choice])
    yield Details("How to read this table", (Bullets((*_HELP, choice.honest.method)),))
