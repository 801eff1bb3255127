"""`judge audit`: a judge tried on controlled changes to a user's own texts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli.options import (
    BaseUrl,
    Budget,
    CacheFolder,
    Deadline,
    Draws,
    KeyEnv,
    Language,
    Map,
    MaxConcurrency,
    MaxTokens,
    MinMass,
    NoCache,
    Out,
    Quiet,
    Record,
    Replay,
    Reply,
    Retries,
    Rpm,
    Seed,
    Structured,
    Systems,
    Temperature,
    Timeout,
    Tpm,
    Weighting,
    option,
    planned,
)

if TYPE_CHECKING:
    from judge.api import Prepared
    from judge.api.probing import Ready
    from judge.audits.card import Card


def audit_command(
    ctx: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="DATA|RUN.YAML", help="Texts of yours, or a plan that names them.")],
    *,
    model: Annotated[
        list[str] | None,
        option(
            "The judge, one: gpt-5.4-mini, anthropic/..., ollama/...; heuristic for a baseline offline.",
            metavar="[VENDOR/]NAME",
        ),
    ] = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    criteria: Annotated[
        list[str] | None, option("Built-in names or .jinja files (default: all four).", metavar="NAME,...")
    ] = None,
    items: Annotated[int, typer.Option(help="Items to take, one text of each.", metavar="N")] = 100,
    probes: Annotated[
        str | None, option("What to try: sensitivity,bias,injection (default: all).", metavar="NAME,...")
    ] = None,
    map_: Map = None,
    systems: Systems = None,
    language: Language = None,
    weighting: Weighting = None,
    draws: Draws = None,
    min_mass: MinMass = None,
    reply: Reply = None,
    structured: Structured = None,
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    max_concurrency: MaxConcurrency = None,
    timeout: Timeout = None,
    retries: Retries = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    deadline: Deadline = None,
    budget: Budget = None,
    seed: Seed = None,
    replay: Replay = None,
    record: Record = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    out: Out = None,
    format: Annotated[str, typer.Option(help="console, markdown, html or json.")] = "console",
    quiet: Quiet = False,
) -> None:
    """Try a judge on controlled changes to your texts: what it notices, what it leans to, what it falls for."""
    from judge.api.probing import ready
    from judge.audits.card import PROBES, check
    from judge.config import plan

    check(format)
    for name in ("items", "probes"):
        ctx.params.pop(name)
    made, folder = planned(ctx, data, plan)
    card = _carried_out(ready(made, items=items, probes=PROBES if probes is None else probes), quiet=quiet)
    if not quiet:
        typer.echo(card.report(format, colour=sys.stdout.isatty()).rstrip("\n"))
    _leave(card, folder)


def _carried_out(found: Ready, *, quiet: bool) -> Card:
    """Ask all that there is to ask, watched; on Ctrl-C say how to go on."""
    import asyncio

    from judge.api.auditing import forecast, run
    from judge.cli.running import say, until_stopped
    from judge.cli.watch import watch
    from judge.progress import Progress

    progress = Progress()

    @contextmanager
    def shown(name: str, prepared: Prepared) -> Iterator[None]:
        if not quiet and prepared.judges:
            say(f"{name}:")
        with watch(prepared, progress, quiet=quiet):
            yield

    if not quiet:
        say(forecast(found))
    try:
        return asyncio.run(until_stopped(run(found, progress, shown), progress))
    except (KeyboardInterrupt, asyncio.CancelledError):
        kept = " What is in the cache is not asked or paid again." if found.plan.cache is not False else ""
        say(f"interrupted: start the same command again to go on.{kept}")
        raise typer.Exit(130) from None


def _leave(card: Card, folder: Path) -> None:
    """Say what failed and where the card is, and leave with 1 where a judgment failed."""
    from judge.cli.running import say

    if card.failures:
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in card.failures.items())
        say(f"{card.info['failed']:,} of {card.info['judgments']:,} judgments have no score: {kinds}")
    say(f"card: {folder / 'card.html'}")
    raise typer.Exit(1 if card.failures else 0)
