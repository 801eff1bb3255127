"""Show a run's progress: a bar on a terminal or in a notebook, else a line every ten seconds."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from judge.core.errors import ConfigError
from judge.core.format import no_ansi
from judge.core.records import Usage
from judge.execution.progress import STOPPED, Progress
from judge.providers import Provider
from judge.providers.pricing import cost_of
from judge.run.request_estimates import sum_prices

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Watch = Progress | Callable[[Progress], object] | bool | None
"""True shows it here. A Progress is kept up to date. A function is called with one regularly and at
the end.
"""
_REFRESH_SECONDS = 0.25
"""Seconds between the calls of a function."""
_PLAIN_SECONDS = 10.0
"""Seconds between the lines if no bar can be shown."""
_QUICK = 2.0
"""Seconds without a bar if there is nothing but measuring: most measuring takes less."""


@asynccontextmanager
async def displayed(watch: Watch) -> AsyncIterator[Progress]:
    """Give the Progress of what runs in this block and show it.

    Raises ConfigError for an unsuitable `watch`.
    """
    if not (isinstance(watch, Progress | bool) or watch is None or callable(watch)):
        choices = "True, a Progress, or a function that is called with one"
        raise ConfigError(f"progress is {choices}")
    progress = watch if isinstance(watch, Progress) else Progress()
    async with _shown(watch, progress):
        with _stopped_by_errors(progress):
            yield progress


@contextmanager
def _stopped_by_errors(progress: Progress) -> Iterator[None]:
    """Set the stage to `STOPPED` if the block raises, so that no display goes on."""
    try:
        yield
    except BaseException:
        progress.stage = STOPPED
        raise


@asynccontextmanager
async def _shown(watch: Watch, progress: Progress) -> AsyncIterator[None]:
    if watch is True and not _in_notebook():
        with show(progress, {}):
            yield
        return
    update: Callable[[Progress], object] | None = None
    if watch is True:
        update = _cell()
    elif callable(watch):
        update = watch
    if update is None:
        yield
        return

    async def refresh() -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            update(progress)

    task = asyncio.create_task(refresh())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        update(progress)


def _in_notebook() -> bool:
    # IPython is there only if it was imported already. A terminal's shell has no kernel.
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _cell() -> Callable[[Progress], object]:
    """Return a function that keeps a bar in the output of a notebook cell up to date."""
    from IPython.display import display

    start_time = time.monotonic()

    def picture(counts: Progress) -> dict[str, str]:
        stage = _stage_counts(counts)
        value = f' value="{stage.done}" max="{stage.total}"' if stage.total else ""
        if counts.stage == STOPPED and not stage.total:
            # Without a value, the bar would move for ever.
            value = ' value="0"'
        line = _line(counts, {}, start_time)
        bar = f"<progress{value}></progress>"
        return {"text/plain": line, "text/html": f"{bar} {escape(line)}"}

    first_picture = picture(Progress())
    handle = display(first_picture, raw=True, display_id=True)  # type: ignore[no-untyped-call]
    return lambda counts: handle.update(picture(counts), raw=True)


@contextmanager
def show(
    counts: Progress,
    providers: Mapping[str, Provider],
    label: str = "",
) -> Iterator[None]:
    """Show the counts on standard error while the block runs; `label` names the run among several.

    A bar if control codes may be written, else lines. `providers` have the prices of the models, by
    the counts' names.
    """
    from rich.console import Console

    console = Console(stderr=True, force_terminal=False if no_ansi() else None)
    head = f"{label}: " if label else ""
    shown_as = _bar if console.is_terminal else _plain_lines
    with shown_as(counts, providers, console, head), _stopped_by_errors(counts):
        yield


@contextmanager
def _bar(
    counts: Progress,
    providers: Mapping[str, Provider],
    console: Console,
    head: str,
) -> Iterator[None]:
    from rich.live import Live
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.fields[stage]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    bar = Bar(*columns, console=console)
    task = bar.add_task("", total=None, stage=f"{head}{counts.stage}")
    start_time = time.monotonic()

    def picture() -> RenderableType:
        if not counts.judges and time.monotonic() - start_time < _QUICK:
            return ""
        stage = _stage_counts(counts)
        state = escape(_state(counts, providers, start_time)) if counts.judges else ""
        bar.update(
            task,
            total=stage.total or None,
            completed=stage.done,
            description=state,
            stage=f"{head}{counts.stage}",
        )
        return bar

    with Live(get_renderable=picture, console=console, refresh_per_second=4) as live:
        try:
            yield
        finally:
            # The last line of a run with judges stays, with its cost and its failures.
            live.transient = not counts.judges


@contextmanager
def _plain_lines(
    counts: Progress,
    providers: Mapping[str, Provider],
    console: Console,
    head: str,
) -> Iterator[None]:
    start_time = time.monotonic()
    stop = threading.Event()

    def print_line() -> None:
        # A log on a full disk, or a pipe that nobody reads, is no reason to stop a paid run. Rich
        # would end the process.
        with suppress(OSError):
            line = _line(counts, providers, start_time)
            console.file.write(f"{head}{line}\n")
            console.file.flush()

    def run() -> None:
        while not stop.wait(_PLAIN_SECONDS):
            print_line()

    thread = threading.Thread(target=run, name="judge-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        if counts.done:
            print_line()


@dataclass(frozen=True, slots=True)
class _StageCounts:
    """Outputs, judgments or questions, or texts while a metric runs; a total of 0 is unknown."""

    done: int
    total: int
    unit: str


def _stage_counts(counts: Progress) -> _StageCounts:
    if counts.measuring:
        return _StageCounts(counts.measured.done, counts.measured.total, "texts")
    return _StageCounts(counts.done, counts.total, f"{counts.unit}s")


def _line(
    counts: Progress, providers: Mapping[str, Provider], start_time: float
) -> str:
    """Return all that is known in one line."""
    stage = _stage_counts(counts)
    # The total is unknown while a file is still being read.
    total = f"/{stage.total:,}" if stage.total else ""
    state = f", {_state(counts, providers, start_time)}" if counts.judges else ""
    return f"{counts.stage}: {stage.done:,}{total} {stage.unit}{state}"


def _state(
    counts: Progress, providers: Mapping[str, Provider], start_time: float
) -> str:
    """Return the rate, cache, tokens, cost and failures, as far as they are known."""
    # A coarse clock may not have moved yet.
    seconds = max(time.monotonic() - start_time, 1e-9)
    phrases = [f"{counts.done / seconds:,.0f}/s"]
    if counts.cached:
        phrases.append(f"{counts.cached:,} from cache")
    if counts.usage != Usage():
        phrases += _cost_parts(counts, providers)
    retried = sum(judge.retried for judge in counts.judges.values())
    if retried:
        phrases.append(f"{retried:,} retried")
    if counts.failed:
        phrases.append(f"{counts.failed:,} failed")
    phrases += [phrase for phrase in (counts.rate_limit, counts.awaited) if phrase]
    return ", ".join(phrases)


def _cost_parts(counts: Progress, providers: Mapping[str, Provider]) -> Iterator[str]:
    """Yield the tokens and their price."""
    usage = counts.usage
    prompt_cache = []
    if usage.cached_tokens:
        prompt_cache.append(f"{usage.cached_tokens:,} cached")
    if usage.cache_write_tokens:
        prompt_cache.append(f"{usage.cache_write_tokens:,} written to the cache")
    notes = f" ({', '.join(prompt_cache)})" if prompt_cache else ""
    yield f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens{notes}"
    prices = []
    for judge_name, judge in counts.judges.items():
        provider = providers.get(judge_name)
        if provider is not None:
            prices.append(cost_of(provider, judge.usage, batched=judge.batched))
    price = sum_prices(prices)
    if price is None:
        yield "price unknown"
    elif price:  # no price if nothing that costs was sent
        yield f"${price:,.4f}"
