"""A whole command: run a plan, show what is going on and what came of it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from judge.cli.options import planned
from judge.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from judge.config import Plan
    from judge.progress import Progress
    from judge.records import Sample
    from judge.report import Result


T = TypeVar("T")
_PATIENCE = 10.0
"""Seconds that a stopped run waits for replies."""


def run(ctx: typer.Context, make: Callable[..., Plan]) -> None:
    """A whole command: plan with its options, run, watch and show; on Ctrl-C say how to go on."""
    from judge import registry

    data, quiet, format = (ctx.params[name] for name in ("data", "quiet", "format"))
    registry.load("formats", format)  # a name nobody knows is said before anything is paid
    made, folder = planned(ctx, data, make)
    result, progress = _carried_out(made, folder, quiet=quiet)
    if not quiet:
        show(result, format)
    _leave(result, progress, folder)


def validate(ctx: typer.Context, make: Callable[..., Plan]) -> None:
    """Hold a finished run against people's ratings, or a run that is made first."""
    from judge import samples
    from judge.api.validate import check_rated, check_run
    from judge.report.validation import check

    data, quiet, format, level = (ctx.params[name] for name in ("data", "quiet", "format", "level"))
    others = tuple(ctx.params.pop("others") or ())
    check(format, level)
    for other in others:
        if not other.is_dir():
            raise ConfigError(f"{other}: no folder of a run to set beside {data}")
        check_run(other)
    if not samples.is_data(data):
        refuse_options(ctx, data, besides=("level", "format", "quiet", "seed", "calibrate"))
        runs = (data, *others)
        _show_validation(runs, ctx.params["seed"] or 0, format, level, calibrate=bool(ctx.params["calibrate"]))
        raise typer.Exit
    made, folder = planned(ctx, data, make)
    result, progress = _carried_out(made, folder, quiet=quiet, check=check_rated)
    _show_validation((result, *others), made.seed, format, level)
    _leave(result, progress, folder)


def refuse_options(ctx: typer.Context, folder: Path, *, besides: Sequence[str]) -> None:
    """Options of a run, `besides` these, mean nothing to one that is finished."""
    for name in sorted(ctx.params.keys() - {"data", *besides}):
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = name.rstrip("_").replace("_", "-")
            raise ConfigError(f"--{option}: the run in {folder} is taken as it is; give its data in order to run again")


def _show_validation(
    runs: Sequence[Result | Path], seed: int, format: str, level: str, *, calibrate: bool = False
) -> None:
    from judge.api import validate

    found = validate(*runs, seed=seed, calibrate=calibrate)
    typer.echo(found.report(format, level, colour=sys.stdout.isatty()).rstrip("\n"))


def _carried_out(
    made: Plan, folder: Path, *, quiet: bool, check: Callable[[Sequence[Sample]], None] | None = None
) -> tuple[Result, Progress]:
    """Run a plan; `check` may refuse its samples before anything is paid."""
    from judge import api
    from judge.cli.watch import watch
    from judge.progress import Progress

    prepared = api.prepare(made)
    if check is not None:
        check(prepared.samples)
    if not quiet and (said := api.forecast(prepared)):
        say(said)
    progress = Progress()

    async def work() -> Result:
        with watch(prepared, progress, quiet=quiet):
            return await api.run(prepared, progress)

    return carried_out(work(), progress, lambda: _how_to_go_on(progress, folder, made.cache is not False)), progress


def carried_out(work: Coroutine[Any, Any, T], progress: Progress, stopped: Callable[[], str]) -> T:
    """What comes of it; where Ctrl-C stops it, say so as `stopped` does and leave with 130."""
    import asyncio

    try:
        return asyncio.run(until_stopped(work, progress))
    except (KeyboardInterrupt, asyncio.CancelledError):
        say(stopped())
        raise typer.Exit(130) from None


def interrupted(*, cached: bool) -> str:
    """How to go on with what keeps nothing but its replies in the cache."""
    if not cached:
        return "interrupted: without a cache the same command asks and pays for all of it again"
    return "interrupted: start the same command again to go on. What is in the cache is not asked or paid again."


async def until_stopped(run: Coroutine[Any, Any, T], progress: Progress) -> T:
    """Have Ctrl-C, and a CI job that is cancelled, wait for the replies under way, which are paid for.

    A second one does not wait. Raises CancelledError where the run was stopped, and KeyboardInterrupt for a third one.
    """
    import asyncio

    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(run)
    cancelled = False

    def cancel() -> None:
        nonlocal cancelled
        cancelled = True
        loop.call_soon_threadsafe(task.cancel)

    def stop(*_: object) -> None:
        """Let what is under way come back, then stop; at once where there is nothing to wait for."""
        if cancelled:
            raise KeyboardInterrupt
        if progress.stopping or not progress.flying:
            cancel()
            return
        progress.stop()
        say(f"stopping: {progress.flying:,} replies are under way and waited for; Ctrl-C stops at once")
        loop.call_soon_threadsafe(loop.call_later, _PATIENCE, cancel)

    for which in (signal.SIGINT, signal.SIGTERM):  # a shell's `&` has the first one ignored
        signal.signal(which, stop)
    try:
        return await task
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(result: Result, progress: Progress, folder: Path) -> None:
    """Say what failed and where the report is, and leave with 1 where something failed."""
    from judge.report.words import count

    if progress.failed:
        say(f"{progress.failed:,} of {progress.total:,} judgments failed; the report shows each with its reply")
    lost = result.failed
    if progress.total:
        lost = sum(failure.stage == "metric" for failure in result.failures) - result.abstained
    if lost:
        say(f"{count(lost, 'value')} could not be measured; the report says why")
    if result.abstained:
        say(f"{count(result.abstained, 'abstention')}: texts outside what the metric can tell of")
    say(f"report: {folder / 'report.html'}")
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
    if progress.awaited:
        said += f"\nStill under way at the provider: {progress.awaited}. The same command fetches what they bring."
    return f"{said}\nStart the same command again to go on: what is in the cache is not asked or paid again."


def say(message: str) -> None:
    typer.echo(message, err=True)
