"""How far a run is, shown where a program wants it: in a notebook one output that changes, in a terminal a line."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from html import escape
from typing import Any

from judge.core.errors import ConfigError
from judge.execution.progress import Progress

Watch = Progress | Callable[[Progress], object] | bool | None
"""True: shown here. A Progress is kept up to date; a function is called with one, now and then and at the end."""
_TICK, _PLAIN = 0.25, 10.0
"""Seconds from one look to the next, and between two lines where they stay."""


@asynccontextmanager
async def displayed(watch: Watch) -> AsyncIterator[Progress]:
    """The Progress of what runs in this block, shown as is wanted. Raises ConfigError for what cannot show it."""
    if isinstance(watch, Progress) or watch is None or watch is False:
        yield watch if isinstance(watch, Progress) else Progress()
        return
    if watch is not True and not callable(watch):
        raise ConfigError("progress is True, a Progress, or a function that is called with one")
    progress = Progress()
    show: Callable[[Progress], object] = _shown() if watch is True else watch
    task = asyncio.create_task(_look(progress, show))
    try:
        yield progress
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        show(progress)
        end = getattr(show, "end", None)
        if end is not None:
            end()


async def _look(progress: Progress, show: Callable[[Progress], object]) -> None:
    while True:
        await asyncio.sleep(_TICK)
        show(progress)


def _shown() -> Callable[[Progress], object]:
    """What shows a run here."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return _Cell() if hasattr(shell, "kernel") else _Line()


class _Clock:
    """The words for how far a run is, by when it began."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def words(self, progress: Progress) -> tuple[int, int, str]:
        """How many are done of how many, and that in a line."""
        measuring = progress.stage not in ("judging", "done")
        counts = progress.measured if measuring else progress
        done, total = counts.done, counts.total
        seconds = max(time.monotonic() - self._start, 1e-9)
        parts = [f"{done:,} of {total:,} {'texts' if measuring else 'judgments'}"]
        parts += [f"{progress.failed:,} failed"] if progress.failed else []
        parts += [f"{progress.cached:,} from the cache"] if progress.cached else []
        if progress.stage == "done" or (done == total and not measuring):
            parts.append(f"{seconds:.0f} s")
        elif done and not measuring:
            parts.append(f"about {seconds / done * (total - done):.0f} s left")
        return done, total, f"{progress.stage}: {', '.join(parts)}"


class _Line:
    """One line on standard error that is written over; where that is no terminal, a line now and then."""

    def __init__(self) -> None:
        self._clock, self._over, self._last, self._width = _Clock(), sys.stderr.isatty(), time.monotonic(), 0
        self._said = ""

    def __call__(self, progress: Progress) -> None:
        _, _, said = self._clock.words(progress)
        self._said = said
        if self._over:
            sys.stderr.write(f"\r{said.ljust(self._width)}")
            sys.stderr.flush()
            self._width = len(said)
        elif time.monotonic() - self._last >= _PLAIN:
            self._last = time.monotonic()
            sys.stderr.write(f"{said}\n")

    def end(self) -> None:
        sys.stderr.write("\n" if self._over else f"{self._said}\n")


class _Cell:
    """A bar in the output of a notebook's cell."""

    def __init__(self) -> None:
        from IPython.display import display

        self._clock = _Clock()
        self._handle: Any = display(_Bar(0, 0, "judging"), display_id=True)  # type: ignore[no-untyped-call]

    def __call__(self, progress: Progress) -> None:
        self._handle.update(_Bar(*self._clock.words(progress)))


class _Bar:
    def __init__(self, done: int, total: int, said: str) -> None:
        self._done, self._total, self._said = done, total, said

    def __repr__(self) -> str:
        return self._said

    def _repr_html_(self) -> str:
        value = f' value="{self._done}" max="{self._total}"' if self._total else ""
        return f"<progress{value}></progress> {escape(self._said)}"
