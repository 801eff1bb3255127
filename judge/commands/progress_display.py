"""Show the progress of a run that a program started: a bar in a notebook, a line in a terminal."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from html import escape
from typing import Any

from judge.core.errors import ConfigError
from judge.execution.progress import GENERATING, Progress

Watch = Progress | Callable[[Progress], object] | bool | None
"""True shows it here. A Progress is kept up to date. A function is called with one regularly and at the end."""
_REFRESH_SECONDS, _LINE_SECONDS = 0.25, 10.0
"""Seconds between updates, and between lines if they cannot be overwritten."""


@asynccontextmanager
async def displayed(watch: Watch) -> AsyncIterator[Progress]:
    """Give the Progress of what runs in this block and show it. Raises ConfigError for an unsuitable `watch`."""
    if isinstance(watch, Progress) or watch is None or watch is False:
        yield watch if isinstance(watch, Progress) else Progress()
        return
    if watch is not True and not callable(watch):
        raise ConfigError("progress is True, a Progress, or a function that is called with one")
    progress = Progress()
    show: Callable[[Progress], object]
    if watch is not True:
        show = watch
    else:
        ipython = sys.modules.get("IPython")
        in_notebook = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
        show = _Cell() if in_notebook else _Line()

    async def refresh() -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            show(progress)

    task = asyncio.create_task(refresh())
    try:
        yield progress
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        show(progress)
        if isinstance(show, _Line):
            show.end()


class _Clock:
    """Describes the progress and the time left since it was created."""

    def __init__(self) -> None:
        self._start, self._generating = time.monotonic(), False

    def status(self, progress: Progress) -> _Status:
        """Return the progress until now."""
        measuring = progress.measuring
        if self._generating and progress.stage != GENERATING:  # the time left is that of judging
            self._start = time.monotonic()
        self._generating = progress.stage == GENERATING
        counts = progress.measured if measuring else progress
        done, total = counts.done, counts.total
        seconds = max(time.monotonic() - self._start, 1e-9)
        parts = [f"{done:,} of {total:,} {'text' if measuring else progress.unit}s"]
        parts += [f"{progress.failed:,} failed"] if progress.failed else []
        parts += [f"{progress.cached:,} from the cache"] if progress.cached else []
        parts += [progress.rate_limit] if progress.rate_limit else []
        if progress.stage == "done" or (done == total and not measuring):
            parts.append(f"{seconds:.0f} s")
        elif done and not measuring:
            parts.append(f"about {seconds / done * (total - done):.0f} s left")
        return _Status(done, total, f"{progress.stage}: {', '.join(parts)}")


@dataclass(frozen=True, repr=False, slots=True)
class _Status:
    """How many are done, and a line that says so; a progress bar in a notebook."""

    done: int
    total: int
    line: str

    def __repr__(self) -> str:
        return self.line

    def _repr_html_(self) -> str:
        value = f' value="{self.done}" max="{self.total}"' if self.total else ""
        return f"<progress{value}></progress> {escape(self.line)}"


class _Line:
    """One line on standard error that is overwritten; if that is no terminal, a new line every ten seconds."""

    def __init__(self) -> None:
        self._clock, self._overwrites = _Clock(), sys.stderr.isatty()
        self._line, self._last_written = "", time.monotonic()

    def __call__(self, progress: Progress) -> None:
        previous, self._line = self._line, self._clock.status(progress).line
        if self._overwrites:
            sys.stderr.write(f"\r{self._line.ljust(len(previous))}")
            sys.stderr.flush()
        elif time.monotonic() - self._last_written >= _LINE_SECONDS:
            self._last_written = time.monotonic()
            sys.stderr.write(f"{self._line}\n")

    def end(self) -> None:
        sys.stderr.write("\n" if self._overwrites else f"{self._line}\n")


class _Cell:
    """A bar in the output of a notebook cell."""

    def __init__(self) -> None:
        from IPython.display import display

        self._clock = _Clock()
        self._handle: Any = display(_Status(0, 0, "judging"), display_id=True)  # type: ignore[no-untyped-call]

    def __call__(self, progress: Progress) -> None:
        self._handle.update(self._clock.status(progress))
