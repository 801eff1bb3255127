"""`judge plan`: what a run is going to ask, cost and take, before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.options import planned
from judge.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from judge.api.planning import Asked, Foreseen
    from judge.config import Budget

_WITHOUT = ("out", "record", "quiet", "retry_failed", "format", "calibrate")
_Rank = Annotated[bool, typer.Option("--rank", help="Plan for judge rank: texts are compared two by two.")]
_Format = Annotated[str, typer.Option(help="console or json.")]
_HEADS = ("judgments", "equal", "cached", "requests", "tokens in", "out", "prefix")
_GO_ON = "the run then stops, and goes on from there with the same command"
_PREFIX = "prefix: of the tokens in, what a provider's cache can serve, as the same text was begun with before"


def command(run: Callable[..., None], rank: Callable[..., None]) -> Callable[..., None]:
    """The command `judge plan`, with the options of those two that say what is asked and how."""

    def plan_command(ctx: typer.Context, **_: Any) -> None:
        """Say what a run would ask, cost and take. Sends nothing, and needs no key."""
        _plan(ctx)

    known = {p.name: p for one in (rank, run) for p in signature(one, eval_str=True).parameters.values()}
    kept = [parameter for name, parameter in known.items() if name not in _WITHOUT]
    own = [_keyword("rank", _Rank, False), _keyword("format", _Format, "console")]
    whole = Signature([*kept, *own])
    plan_command.__signature__ = whole  # type: ignore[attr-defined]
    plan_command.__annotations__ = {name: parameter.annotation for name, parameter in whole.parameters.items()}
    return plan_command


def _keyword(name: str, kind: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _plan(ctx: typer.Context) -> None:
    from judge import api
    from judge.api.judges import unasked
    from judge.config import plan, rank_plan

    format, pairwise = ctx.params["format"], ctx.params.pop("rank")
    if format not in ("console", "json"):
        raise ConfigError(f"--format {format}: a plan is shown on the console or as json")
    made, _ = planned(ctx, ctx.params["data"], rank_plan if pairwise else plan)
    made = made.model_copy(update={"out": None, "record": None, "retry_failed": False})
    found = api.foresee(api.prepare(made, providers=unasked(made)))
    if format == "json":
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        _show(found)


def _show(found: Foreseen) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    for one in found.judges:
        console.print(Text.assemble((one.ahead.judge, "bold"), (f"  {one.endpoint}", "dim")))
        console.print(_table(one))
        _facts(console, one)
        console.print()
    if not found.judges:
        console.print("No judge is asked to score anything.")
    if len(found.judges) > 1:
        console.print(Text(f"all judges  {found.requests:,} requests, {_price(found.price)}", "bold"))
    for said in _limits(found) if found.requests else ():
        console.print(Text(said, "bold"))
    for note in [*([_PREFIX] if found.requests else []), *found.notes]:
        console.print(Text(note, "dim"))


def _table(one: Asked) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("", overflow="fold")
    for head in _HEADS:
        table.add_column(head, justify="right", no_wrap=True)
    lines = one.ahead.lines
    for line in [*lines, one.ahead.total] if len(lines) > 1 else lines:
        counts = (line.judgments, line.equal, line.cached, line.requests, line.read, line.written)
        share = f"{line.shared / line.read:.0%}" if line.read else "–"
        style = "bold" if line.criterion == "all" and len(lines) > 1 else ""
        table.add_row(line.criterion, *(f"{number:,.0f}" for number in counts), share, style=style)
    return table


def _facts(console: Console, one: Asked) -> None:
    """Price, time and what they rest on, each on lines of its own under a word."""
    from rich.table import Table

    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("price", _money(one))
    facts.add_row("time", _time(one))
    if one.ahead.total.requests:
        facts.add_row("rests on", one.rests)
    console.print(facts)


def _money(one: Asked) -> str:
    from judge.api.planning import dollars

    money = one.money
    if money.price is None:
        return f"unknown ({money.why})"
    if not money.why or one.ahead.total.requests == 0:
        return "nothing: no request is sent"
    if money.price == 0:
        return f"nothing: {money.why}"
    said = f"{dollars(money.price)} ({money.why})"
    if money.cached is not None and round(money.cached, 6) < round(money.price, 6):
        said += f"; {dollars(money.cached)} where the provider's cache serves every shared prefix"
    return said


def _time(one: Asked) -> str:
    from judge.api.planning import duration

    seconds = one.time.seconds
    return one.time.why if seconds is None else f"about {duration(seconds)} ({one.time.why})"


def _price(price: float | None) -> str:
    from judge.api.planning import dollars

    return "price unknown" if price is None else dollars(price)


def _limits(found: Foreseen) -> Iterator[str]:
    """What a budget is enough for, and what a deadline leaves time for."""
    if found.budget is not None:
        yield f"--budget {found.budget}: {_budget(found, found.budget)}"
    if found.deadline is not None:
        yield f"--deadline {found.deadline:g} s: {_in_time(found)}"


def _budget(found: Foreseen, budget: Budget) -> str:
    if found.fits is None:
        return "the price is not known, so a run stops at once; give tokens: 200000tokens"
    if found.fits >= found.requests:
        return f"all {found.requests:,} requests fit"
    if not found.fits:
        return f"no request fits, as one goes only when the most it can cost is left; {budget.lacking(found.room)}"
    return f"about {found.fits:,} of {found.requests:,} requests fit; {_GO_ON}"


def _in_time(found: Foreseen) -> str:
    if found.in_time is None:
        return "a batch that is under way then goes on without the run, and the same command fetches what it brings"
    if found.in_time >= found.requests:
        return f"all {found.requests:,} requests are in time"
    return f"about {found.in_time:,} of {found.requests:,} requests are in time; {_GO_ON}"
