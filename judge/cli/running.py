"""A whole command: run a plan, show what is going on and what came of it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from judge.cli.options import planned
from judge.errors import StorageError

if TYPE_CHECKING:
    from judge.config import Plan
    from judge.progress import Progress
    from judge.report import Result


def run(ctx: typer.Context, make: Callable[..., Plan]) -> None:
    """A whole command: plan with its options, run, watch and show; on Ctrl-C say how to go on."""
    import asyncio

    from judge import api, registry
    from judge.cli.watch import watch
    from judge.progress import Progress

    data, quiet, format = (ctx.params[name] for name in ("data", "quiet", "format"))
    registry.load("formats", format)  # a name nobody knows is said before anything is paid
    made, folder = planned(ctx, data, make)
    prepared = api.prepare(made)
    if not quiet and (said := api.forecast(prepared)):
        say(said)
    progress = Progress()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # a cancelled CI job ends cleanly too
    try:
        with watch(prepared, progress, quiet=quiet):
            result = asyncio.run(api.run(prepared, progress))
    except KeyboardInterrupt:
        say(_how_to_go_on(progress, folder, made.cache is not False))
        raise typer.Exit(130) from None
    if not quiet:
        show(result, format)
    if progress.failed:
        say(f"{progress.failed:,} of {progress.total:,} judgments failed; the report shows each with its reply")
    if measured := sum(failure.stage == "metric" for failure in result.failures) if progress.total else result.failed:
        say(f"{measured:,} values could not be measured; the report says why")
    say(f"report: {folder / 'report.html'}")
    raise typer.Exit(1 if result.failed else 0)


def show_working(ctx: typer.Context, make: Callable[..., Plan]) -> None:
    """Measure one item with QAGS and print what was asked and answered."""
    import asyncio

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from judge import api
    from judge.report.working import HEADS, workings

    made, _ = planned(ctx, ctx.params["data"], make)
    rows = api.of_item(made, ctx.params["item"])
    result = asyncio.run(api.run(api.prepare(made.model_copy(update={"out": None}), rows)))
    console = Console(highlight=False, markup=False, emoji=False)
    for title, lines in workings(result):
        console.print(Text(title, "bold"))
        if lines:
            table = Table(*HEADS, box=None, padding=(0, 2, 0, 0))
            for line in lines:
                table.add_row(*map(Text, line.cells))
            console.print(table)
        console.print()
    raise typer.Exit(1 if result.failed else 0)


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"--output {path}: {error.strerror}") from error
    typer.echo(str(path))


def show(result: Result, format: str) -> None:
    """Print a result; on a terminal in colour."""
    from judge.report.console import render

    if format == "console":
        typer.echo(render(result, colour=sys.stdout.isatty()))
    else:
        typer.echo(result.report(format).rstrip("\n"))


def _how_to_go_on(progress: Progress, folder: Path, cached: bool) -> str:
    if not progress.judges:
        return "interrupted: what was measured is not kept; start the same command again"
    kept = f" and are kept in {folder}" if progress.done else ""
    said = f"interrupted: {progress.done:,} of {progress.total:,} judgments were made{kept}"
    if not cached:
        return said
    return f"{said}\nStart the same command again to go on: what is in the cache is not asked or paid again."


def say(message: str) -> None:
    typer.echo(message, err=True)
