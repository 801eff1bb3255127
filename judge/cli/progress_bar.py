"""Show the progress of a run: a bar on a terminal, a plain line every ten seconds elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from judge.cli.terminal import no_ansi
from judge.core.records import Usage
from judge.execution.progress import Progress as Done
from judge.providers import Provider
from judge.providers.pricing import cost_usd
from judge.results.planning import sum_prices

_PLAIN_SECONDS = 10.0
_QUICK = 2.0
"""Seconds without a bar if there is nothing but measuring: most measuring takes less."""


class Asked(Protocol):
    """The models whose counts are shown, by the counts' names: those of a prepared run, or of systems that generate."""

    @property
    def judges(self) -> Mapping[str, Provider]: ...


@contextmanager
def watch(asked: Asked, counts: Done, *, quiet: bool, label: str = "") -> Iterator[None]:
    """Show the counts on standard error while the block runs; `label` names the run among several.

    A bar if control codes may be written, else lines. The run itself is not touched.
    """
    console = Console(stderr=True, force_terminal=False if no_ansi() else None)
    head = f"{label}: " if label else ""
    if quiet:
        yield
    elif console.is_terminal:
        with _bar(asked, counts, console, head):
            yield
    else:
        with _plain_lines(asked, counts, console, head):
            yield


@contextmanager
def _bar(asked: Asked, counts: Done, console: Console, head: str) -> Iterator[None]:
    columns = (
        TextColumn("{task.fields[stage]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    bar = Progress(*columns, console=console)
    task = bar.add_task("", total=None, stage=f"{head}{counts.stage}")
    start = time.monotonic()

    def picture() -> RenderableType:
        if not asked.judges and time.monotonic() - start < _QUICK:
            return ""
        done, total, _ = _stage_counts(counts)
        state = _state_line(asked, counts, start) if asked.judges else ""
        bar.update(task, total=total or None, completed=done, description=state, stage=f"{head}{counts.stage}")
        return bar

    with Live(get_renderable=picture, console=console, refresh_per_second=4, transient=not asked.judges):
        yield


@contextmanager
def _plain_lines(asked: Asked, counts: Done, console: Console, head: str) -> Iterator[None]:
    start, stop = time.monotonic(), threading.Event()

    def say() -> None:
        done, total, unit = _stage_counts(counts)
        state = f", {_state_line(asked, counts, start)}" if asked.judges else ""
        total_note = f"/{total:,}" if total else ""  # unknown while a file is still being read
        console.print(f"{head}{counts.stage}: {done:,}{total_note} {unit}{state}", highlight=False, soft_wrap=True)

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


def _stage_counts(counts: Done) -> tuple[int, int, str]:
    """Done, total and unit: outputs, judgments or questions, or texts while a metric runs."""
    if counts.measuring:
        return counts.measured.done, counts.measured.total, "texts"
    return counts.done, counts.total, f"{counts.unit}s"


def _state_line(asked: Asked, counts: Done, start: float) -> str:
    """Rate, cache, tokens, cost and failures in one line, as far as they are known."""
    seconds = max(time.monotonic() - start, 1e-9)
    usage = counts.usage
    parts = [f"{counts.done / seconds:,.0f}/s"]
    if counts.cached:
        parts.append(f"{counts.cached:,} from cache")
    if usage != Usage():
        prompt_cache = ((usage.cached_tokens, "cached"), (usage.cache_write_tokens, "written to the cache"))
        notes = ", ".join(f"{number:,} {kind}" for number, kind in prompt_cache if number)
        parts.append(f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens" + (f" ({notes})" if notes else ""))
        judges = [(asked.judges[name], judge_counts) for name, judge_counts in counts.judges.items()]
        price = sum_prices(
            cost_usd(
                judge.model, judge.endpoint, judge_counts.usage, decides=judge.decides, batched=judge_counts.batched
            )
            for judge, judge_counts in judges
        )
        if price is None:
            parts.append("price unknown")
        elif price:  # no price if nothing that costs was sent
            parts.append(f"${price:,.4f}")
    if retried := sum(judge_counts.retried for judge_counts in counts.judges.values()):
        parts.append(f"{retried:,} retried")
    if counts.failed:
        parts.append(f"{counts.failed:,} failed")
    if rate_limit := counts.rate_limit:
        parts.append(rate_limit)
    return ", ".join([*parts, *filter(None, [counts.awaited])])
