"""`judge.plan`, and its forecast on a terminal, in a notebook or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Unpack

from markupsafe import escape
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.commands.cost_estimate import dollars, duration, estimate_cost
from judge.commands.count_requests import JudgeForecast, RunForecast
from judge.commands.evaluate import Criteria, Model, to_config
from judge.commands.judge_models import open_offline
from judge.commands.options import RankOptions
from judge.commands.preparation import prepare
from judge.commands.public import public_api
from judge.config import Budget, Judge, RankConfig, RunConfig
from judge.core.errors import ConfigError
from judge.core.format import to_json
from judge.core.messages import option, speaking_to
from judge.core.plugins import unknown_name_message
from judge.report.renderers.console import recording_console

if TYPE_CHECKING:
    from judge.commands.evaluate import Data

FORMATS = ("console", "json")
_HEADINGS = ("judgments", "equal", "cached", "requests", "tokens in", "out", "prefix")
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


@public_api("plan", RankConfig)
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
    run_options: Mapping[str, Any] = {name: value for name, value in options.items() if name not in ("out", "record")}
    config, judges, loaded_criteria = to_config(RankConfig if rank else RunConfig, data, criteria, model, run_options)
    config = config.model_copy(update={"retry_failed": False})
    providers = open_offline(config)
    if judges is not None:  # providers that the caller made keep their places between those of the plan
        named = iter(providers)
        providers = [next(named) if isinstance(judge, Judge) else judge for judge in judges]
    prepared = prepare(config, data, providers=providers, loaded_criteria=loaded_criteria)
    estimate = estimate_cost(prepared, items=items)
    return Forecast(**{field.name: getattr(estimate, field.name) for field in fields(estimate)})


def _html(forecast: RunForecast) -> Iterator[str]:
    for judge in forecast.judges:
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in _rows(judge))
        heads = "".join(f"<th>{head}</th>" for head in ("", *_HEADINGS))
        yield f"<p><b>{escape(judge.ahead.judge)}</b> {escape(judge.endpoint)}</p>"
        yield f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        yield f"<p>{'<br>'.join(f'{name}: {escape(fact)}' for name, fact in _judge_facts(judge))}</p>"
    if not forecast.judges:
        yield "<p>No judge is asked to score anything.</p>"
    remarks = [*(_limits(forecast) if forecast.requests else ()), *forecast.notes]
    notes = "".join(f"<p>{escape(note)}</p>" for note in remarks)
    yield f"<details><summary>On what this rests</summary>{notes}</details>"


def _rows(judge: JudgeForecast) -> Iterator[list[str]]:
    lines = judge.ahead.lines
    for line in [*lines, judge.ahead.total] if len(lines) > 1 else lines:
        counts = (line.judgments, line.equal, line.cached, line.requests, line.read, line.written)
        share = f"{line.shared / line.read:.0%}" if line.read else "–"
        yield [line.criterion, *(f"{number:,.0f}" for number in counts), share]


def show(screen: Console, forecast: RunForecast) -> None:
    """Print a forecast."""
    for judge in forecast.judges:
        screen.print(Text.assemble((judge.ahead.judge, "bold"), (f"  {judge.endpoint}", "dim")))
        table = Table(box=None, padding=(0, 1), pad_edge=False)
        table.add_column("", overflow="fold")
        for head in _HEADINGS:
            table.add_column(head, justify="right", no_wrap=True)
        for row in _rows(judge):
            table.add_row(*row, style="bold" if row[0] == "all" and len(judge.ahead.lines) > 1 else "")
        screen.print(table)
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="bold", no_wrap=True)
        facts.add_column(overflow="fold")
        for name, fact in _judge_facts(judge):
            facts.add_row(name, fact)
        if judge.ahead.total.requests:
            facts.add_row("rests on", judge.rests)
        screen.print(facts)
        screen.print()
    if not forecast.judges:
        screen.print("No judge is asked to score anything.")
    if len(forecast.judges) > 1:
        screen.print(Text(f"all judges  {forecast.requests:,} requests, {_price(forecast.price)}", "bold"))
    for remark in _limits(forecast) if forecast.requests else ():
        screen.print(Text(remark, "bold"))
    for note in [*([_PREFIX] if forecast.requests else []), *forecast.notes]:
        screen.print(Text(note, "dim"))


def _judge_facts(judge: JudgeForecast) -> Iterator[tuple[str, str]]:
    """Yield name and text: how the judge is asked, the price, the price of single replies, and the time."""
    if judge.way:
        yield "way", judge.way
    yield "price", _describe_cost(judge)
    if judge.single is not None:
        price = "" if judge.single.price is None else f"{dollars(judge.single.price)}, "
        many = f"{judge.single.requests:,} request{'s' * (judge.single.requests != 1)}"
        yield "single", f"{price}{many} with {option('weighting', 'single')}: one reply for each judgment"
    seconds = judge.time.seconds
    yield "time", judge.time.why if seconds is None else f"about {duration(seconds)} ({judge.time.why})"


def _describe_cost(judge: JudgeForecast) -> str:
    money = judge.money
    if money.price is None:
        return f"unknown ({money.why})"
    if not money.why or judge.ahead.total.requests == 0:
        return "nothing: no request is sent"
    if money.price == 0:
        return f"nothing: {money.why}"
    rate = "" if money.rate is None else f": {_rate(money.rate[0])} in, {_rate(money.rate[1])} out for a million tokens"
    words = f"{dollars(money.price)} ({money.why}{rate})"
    if money.cached is not None and round(money.cached, 6) < round(money.price, 6):
        words += f"; {dollars(money.cached)} where the provider's cache serves every shared prefix"
    return words


def _rate(amount: float) -> str:
    """Format a price per million tokens: `$0.75`; below a cent with two significant digits."""
    return f"${amount:,.2f}" if amount >= 0.01 or not amount else dollars(amount)


def _price(price: float | None) -> str:
    return "price unknown" if price is None else dollars(price)


def _limits(forecast: RunForecast) -> Iterator[str]:
    """Yield how far the budget and the deadline reach."""
    if forecast.budget is not None:
        yield f"{option('budget', str(forecast.budget))}: {_describe_budget(forecast, forecast.budget)}"
    if forecast.deadline is not None:
        yield f"{option('deadline')} {forecast.deadline:g} s: {_describe_deadline(forecast)}"


def _describe_budget(forecast: RunForecast, budget: Budget) -> str:
    if forecast.fits is None:
        return "the price is not known, so a run stops at once; give tokens: 200000tokens"
    if forecast.fits >= forecast.requests:
        return f"all {forecast.requests:,} requests fit"
    if not forecast.fits:
        return f"no request fits, as one goes only when the most it can cost is left; {budget.lacking(forecast.room)}"
    return f"about {forecast.fits:,} of {forecast.requests:,} requests fit; {_GO_ON}"


def _describe_deadline(forecast: RunForecast) -> str:
    if forecast.in_time is None:
        return "a batch that is under way then goes on without the run, and the same command fetches what it brings"
    if forecast.in_time >= forecast.requests:
        return f"all {forecast.requests:,} requests are in time"
    return f"about {forecast.in_time:,} of {forecast.requests:,} requests are in time; {_GO_ON}"
