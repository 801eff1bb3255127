"""A forecast as it is shown: on a terminal, in a notebook, to a program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Unpack

from markupsafe import escape
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge import config
from judge.commands.cost_estimate import dollars, duration, estimate_cost
from judge.commands.count_requests import JudgeForecast, RunForecast
from judge.commands.evaluate import Criteria, Model, RankOptions, to_config
from judge.commands.judge_models import open_offline
from judge.commands.preparation import prepare
from judge.commands.public import public_api
from judge.config import Budget, Judge, RankPlan
from judge.core.errors import ConfigError
from judge.core.messages import option, speaking_to, to_json
from judge.core.plugins import unknown_name_message
from judge.report.renderers.console import recording_console

if TYPE_CHECKING:
    from judge.commands.evaluate import Data

FORMATS = ("console", "json")
_HEADS = ("judgments", "equal", "cached", "requests", "tokens in", "out", "prefix")
_GO_ON = "the run then stops, and goes on from there with the same command"
_PREFIX = "prefix: of the tokens in, what a provider's cache can serve, as the same text was begun with before"


@dataclass(frozen=True, repr=False)
class Forecast(RunForecast):
    """What `judge.plan` gives: what a run would ask, cost and take. Nothing was sent."""

    def __repr__(self) -> str:
        return f"<Forecast: {self.requests:,} requests, {_price(self.price)}>"

    def report(self, format: str = "console") -> str:
        """As console or json. Raises ConfigError for another."""
        if format not in FORMATS:
            raise ConfigError(unknown_name_message("format", format, list(FORMATS)))
        if format == "json":
            return json.dumps(to_json(self.to_dict()), ensure_ascii=False, indent=1) + "\n"
        console, text = recording_console(colour=False)
        with speaking_to("python"):
            show(console, self)
        return "\n".join(row.rstrip() for row in text.getvalue().split("\n"))

    def _repr_html_(self) -> str:
        """What each judge is asked, for notebooks."""
        with speaking_to("python"):
            return "".join(_html(self))


@public_api(RankOptions, RankPlan)
def plan(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    rank: bool = False,
    items: int | None = None,
    **options: Unpack[RankOptions],
) -> Forecast:
    """What a run would ask, cost and take, of `judge.evaluate` with the same arguments, or, with `rank`, `judge.rank`.

    Or, with `items`, of so many items like these. Sends nothing, and needs no key. What the cache holds already is not
    counted. Raises JudgeError.
    """
    given: Mapping[str, Any] = {name: value for name, value in options.items() if name not in ("out", "record")}
    made, judges, own = to_config(config.rank_plan if rank else config.plan, data, criteria, model, given)
    made = made.model_copy(update={"retry_failed": False})
    opened = judges if judges is None else _opened(made, judges)
    ready = prepare(made, data, providers=open_offline(made) if opened is None else opened, own=own)
    found = estimate_cost(ready, items=items)
    return Forecast(**{one.name: getattr(found, one.name) for one in fields(found)})


def _opened(made: config.Plan, judges: list[Any]) -> list[Any]:
    """The judges in their order; those of the plan as ones that send nothing."""
    named = iter(open_offline(made))
    return [next(named) if isinstance(one, Judge) else one for one in judges]


def _html(found: RunForecast) -> Iterator[str]:
    for one in found.judges:
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in _rows(one))
        heads = "".join(f"<th>{head}</th>" for head in ("", *_HEADS))
        yield f"<p><b>{escape(one.ahead.judge)}</b> {escape(one.endpoint)}</p>"
        yield f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        yield f"<p>{'<br>'.join(f'{name}: {escape(fact)}' for name, fact in _told(one))}</p>"
    if not found.judges:
        yield "<p>No judge is asked to score anything.</p>"
    said = [*(_limits(found) if found.requests else ()), *found.notes]
    notes = "".join(f"<p>{escape(note)}</p>" for note in said)
    yield f"<details><summary>On what this rests</summary>{notes}</details>"


def _rows(one: JudgeForecast) -> Iterator[list[str]]:
    lines = one.ahead.lines
    for line in [*lines, one.ahead.total] if len(lines) > 1 else lines:
        counts = (line.judgments, line.equal, line.cached, line.requests, line.read, line.written)
        share = f"{line.shared / line.read:.0%}" if line.read else "–"
        yield [line.criterion, *(f"{number:,.0f}" for number in counts), share]


def show(screen: Console, found: RunForecast) -> None:
    """Print a forecast."""
    for one in found.judges:
        screen.print(Text.assemble((one.ahead.judge, "bold"), (f"  {one.endpoint}", "dim")))
        screen.print(_table(one))
        _facts(screen, one)
        screen.print()
    if not found.judges:
        screen.print("No judge is asked to score anything.")
    if len(found.judges) > 1:
        screen.print(Text(f"all judges  {found.requests:,} requests, {_price(found.price)}", "bold"))
    for said in _limits(found) if found.requests else ():
        screen.print(Text(said, "bold"))
    for note in [*([_PREFIX] if found.requests else []), *found.notes]:
        screen.print(Text(note, "dim"))


def _table(one: JudgeForecast) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("", overflow="fold")
    for head in _HEADS:
        table.add_column(head, justify="right", no_wrap=True)
    for row in _rows(one):
        table.add_row(*row, style="bold" if row[0] == "all" and len(one.ahead.lines) > 1 else "")
    return table


def _facts(screen: Console, one: JudgeForecast) -> None:
    """Price, time and what they rest on, each on lines of its own under a word."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, fact in _told(one):
        facts.add_row(name, fact)
    if one.ahead.total.requests:
        facts.add_row("rests on", one.rests)
    screen.print(facts)


def _told(one: JudgeForecast) -> Iterator[tuple[str, str]]:
    """How the judge is asked, what that costs and would cost otherwise, and how long it takes."""
    if one.way:
        yield "way", one.way
    yield "price", _money(one)
    if one.single is not None:
        price = "" if one.single.price is None else f"{dollars(one.single.price)}, "
        many = f"{one.single.requests:,} request{'s' * (one.single.requests != 1)}"
        yield "single", f"{price}{many} with {option('weighting', 'single')}: one reply for each judgment"
    yield "time", _time(one)


def _money(one: JudgeForecast) -> str:
    money = one.money
    if money.price is None:
        return f"unknown ({money.why})"
    if not money.why or one.ahead.total.requests == 0:
        return "nothing: no request is sent"
    if money.price == 0:
        return f"nothing: {money.why}"
    rate = "" if money.rate is None else f": {_rate(money.rate[0])} in, {_rate(money.rate[1])} out for a million tokens"
    said = f"{dollars(money.price)} ({money.why}{rate})"
    if money.cached is not None and round(money.cached, 6) < round(money.price, 6):
        said += f"; {dollars(money.cached)} where the provider's cache serves every shared prefix"
    return said


def _rate(amount: float) -> str:
    """`$0.75`, `$15.00`; below a cent two digits that count."""
    return f"${amount:,.2f}" if amount >= 0.01 or not amount else dollars(amount)


def _time(one: JudgeForecast) -> str:
    seconds = one.time.seconds
    return one.time.why if seconds is None else f"about {duration(seconds)} ({one.time.why})"


def _price(price: float | None) -> str:
    return "price unknown" if price is None else dollars(price)


def _limits(found: RunForecast) -> Iterator[str]:
    """What a budget is enough for, and what a deadline leaves time for."""
    if found.budget is not None:
        yield f"{option('budget', str(found.budget))}: {_budget(found, found.budget)}"
    if found.deadline is not None:
        yield f"{option('deadline')} {found.deadline:g} s: {_in_time(found)}"


def _budget(found: RunForecast, budget: Budget) -> str:
    if found.fits is None:
        return "the price is not known, so a run stops at once; give tokens: 200000tokens"
    if found.fits >= found.requests:
        return f"all {found.requests:,} requests fit"
    if not found.fits:
        return f"no request fits, as one goes only when the most it can cost is left; {budget.lacking(found.room)}"
    return f"about {found.fits:,} of {found.requests:,} requests fit; {_GO_ON}"


def _in_time(found: RunForecast) -> str:
    if found.in_time is None:
        return "a batch that is under way then goes on without the run, and the same command fetches what it brings"
    if found.in_time >= found.requests:
        return f"all {found.requests:,} requests are in time"
    return f"about {found.in_time:,} of {found.requests:,} requests are in time; {_GO_ON}"
