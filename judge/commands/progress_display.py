"""Show the progress of a run: a bar on a terminal or in a notebook, else a plain line every ten seconds."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from html import escape
from typing import TYPE_CHECKING

from judge.core.errors import ConfigError
from judge.core.format import no_ansi
from judge.core.records import Usage
from judge.execution.progress import Progress
from judge.providers import Provider
from judge.providers.pricing import cost_of
from judge.run.request_estimates import sum_prices

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Watch = Progress | Callable[[Progress], object] | bool | None
"""True shows it here. A Progress is kept up to date. A function is called with one regularly and at the end."""
_REFRESH_SECONDS = 0.25
"""Seconds between the calls of a function."""
_PLAIN_SECONDS = 10.0
_QUICK = 2.0
"""Seconds without a bar if there is nothing but measuring: most measuring takes less."""


@asynccontextmanager
async def displayed(watch: Watch) -> AsyncIterator[Progress]:
    """Give the Progress of what runs in this block and show it. Raises ConfigError for an unsuitable `watch`."""
    if not (isinstance(watch, Progress | bool) or watch is None or callable(watch)):
        raise ConfigError("progress is True, a Progress, or a function that is called with one")
    progress = watch if isinstance(watch, Progress) else Progress()
    ipython = sys.modules.get("IPython")
    in_notebook = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
    if watch is True and not in_notebook:
        with show(progress, {}):
            yield progress
        return
    update = _cell() if watch is True else watch if callable(watch) else None
    if update is None:
        yield progress
        return

    async def refresh() -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            update(progress)

    task = asyncio.create_task(refresh())
    try:
        yield progress
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        update(progress)


def _cell() -> Callable[[Progress], object]:
    """Return a function that keeps a bar in the output of a notebook cell up to date."""
    from IPython.display import display

    start = time.monotonic()

    def picture(counts: Progress) -> dict[str, str]:
        done, total, _ = _stage_counts(counts)
        value = f' value="{done}" max="{total}"' if total else ""
        line = _line(counts, {}, start)
        return {"text/plain": line, "text/html": f"<progress{value}></progress> {escape(line)}"}

    handle = display(picture(Progress()), raw=True, display_id=True)  # type: ignore[no-untyped-call]
    return lambda counts: handle.update(picture(counts), raw=True)


@contextmanager
def show(counts: Progress, providers: Mapping[str, Provider], label: str = "") -> Iterator[None]:
    """Show the counts on standard error while the block runs; `label` names the run among several.

    A bar if control codes may be written, else lines. `providers` have the prices of the models, by the counts' names.
    """
    from rich.console import Console

    console = Console(stderr=True, force_terminal=False if no_ansi() else None)
    head = f"{label}: " if label else ""
    with (_bar if console.is_terminal else _plain_lines)(counts, providers, console, head):
        yield


@contextmanager
def _bar(
    counts: Progress, providers: Mapping[str, Provider], console: Console, head: str
) -> Iterator[None]:
    from rich.live import Live
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
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
    start = time.monotonic()

    def picture() -> RenderableType:
        if not counts.judges and time.monotonic() - start < _QUICK:
            return ""
        done, total, _ = _stage_counts(counts)
        state = escape(_state(counts, providers, start)) if counts.judges else ""
        bar.update(
            task,
            total=total or None,
            completed=done,
            description=state,
            stage=f"{head}{counts.stage}",
        )
        return bar

    with Live(get_renderable=picture, console=console, refresh_per_second=4) as live:
        try:
            yield
        finally:
            live.transient = not counts.judges


@contextmanager
def _plain_lines(
    counts: Progress, providers: Mapping[str, Provider], console: Console, head: str
) -> Iterator[None]:
    start, stop = time.monotonic(), threading.Event()

    def say() -> None:
        line = f"{head}{_line(counts, providers, start)}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    def run() -> None:
        while not stop.wait(_PLAIN_SECONDS):
            say()

    thread = threading.Thread(target=run, name="judge-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        if counts.done:
            say()


def _stage_counts(counts: Progress) -> tuple[int, int, str]:
    """Done, total and unit: outputs, judgments or questions, or texts while a metric runs."""
    if counts.measuring:
        return counts.measured.done, counts.measured.total, "texts"
    return counts.done, counts.total, f"{counts.unit}s"


def _line(counts: Progress, providers: Mapping[str, Provider], start: float) -> str:
    """All that is known in one line."""
    done, total, unit = _stage_counts(counts)
    state = f", {_state(counts, providers, start)}" if counts.judges else ""
    total_note = f"/{total:,}" if total else ""  # unknown while a file is still being read
    return f"{counts.stage}: {done:,}{total_note} {unit}{state}"


def _state(counts: Progress, providers: Mapping[str, Provider], start: float) -> str:
    """Rate, cache, tokens, cost and failures, as far as they are known."""
    seconds = max(time.monotonic() - start, 1e-9)
    usage = counts.usage
    parts = [f"{counts.done / seconds:,.0f}/s"]
    if counts.cached:
        parts.append(f"{counts.cached:,} from cache")
    if usage != Usage():
        prompt_cache = (
            (usage.cached_tokens, "cached"),
            (usage.cache_write_tokens, "written to the cache"),
        )
        notes = ", ".join(f"{number:,} {kind}" for number, kind in prompt_cache if number)
        parts.append(
            f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens"
            + (f" ({notes})" if notes else "")
        )
        price = sum_prices(
            cost_of(judge, each.usage, batched=each.batched)
            for name, each in counts.judges.items()
            if (judge := providers.get(name)) is not None
        )
        if price is None:
            parts.append("price unknown")
        elif price:  # no price if nothing that costs was sent
            parts.append(f"${price:,.4f}")
    if retried := sum(each.retried for each in counts.judges.values()):
        parts.append(f"{retried:,} retried")
    if counts.failed:
        parts.append(f"{counts.failed:,} failed")
    if rate_limit := counts.rate_limit:
        parts.append(rate_limit)
    return ", ".join([*parts, *filter(None, [counts.awaited])])
