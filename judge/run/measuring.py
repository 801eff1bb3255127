"""Measure the metrics of a run.

Metrics that ask no judge are measured while the judges are asked, the others afterwards.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from judge.core.records import Column
from judge.execution.judgments import Row
from judge.execution.progress import Progress
from judge.metrics import Metric, MetricResult, parallel
from judge.metrics.base import Note
from judge.run import metric_setup
from judge.run.preparation import PreparedRun, reject_duplicate_columns

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run in a daemon thread, so that Ctrl-C does not wait for a slow metric."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(setter: Callable[[Any], None], outcome: Any) -> None:
        if not future.cancelled():
            setter(outcome)

    def in_thread() -> None:
        try:
            outcome: Any = work()
            setter: Callable[[Any], None] = future.set_result
        except KeyboardInterrupt:
            # The run is stopping.
            outcome = asyncio.CancelledError()
            setter = future.set_exception
        except BaseException as error:  # noqa: BLE001  (awaiting the future raises it again)
            outcome = error
            setter = future.set_exception
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, setter, outcome)

    # The thread sees the caller's context: messages are in Python's terms for Python users.
    context = copy_context()
    thread = threading.Thread(
        target=context.run,
        args=(in_thread,),
        name="judge-metric",
        daemon=True,
    )
    thread.start()
    return await future


class Measuring:
    """Measures the metrics of a run, one after the other.

    They share the processes and the progress. Those that ask no judge are measured from `start` on.
    `columns` and `rows` are what has been measured.
    """

    def __init__(self, prepared: PreparedRun, progress: Progress) -> None:
        self.columns: list[Column] = []
        self.rows: list[Row] = []
        self._prepared = prepared
        self._progress = progress
        self._turn = asyncio.Lock()
        self._early: dict[str, asyncio.Task[MetricResult]] = {}

    def start(self) -> None:
        """Begin with the metrics that ask no judge."""
        for metric_name, metric in self._prepared.metrics.items():
            if not metric.asks:
                self._early[metric_name] = asyncio.create_task(self._measure(metric))

    async def finish(self, other_columns: list[Column]) -> None:
        """Wait for these metrics, and measure the others.

        Raises ConfigError if a metric has one of the other columns.
        """
        notes: list[str | Note] = []
        try:
            for metric_name, metric in self._prepared.metrics.items():
                self._progress.stage = metric_name
                early = self._early.get(metric_name)
                result = await (self._measure(metric) if early is None else early)
                metric_setup.check_result(metric_name, result, self._prepared.samples)
                columns = [*other_columns, *self.columns, *result.columns]
                reject_duplicate_columns([column.name for column in columns])
                self.columns.extend(result.columns)
                self.rows.extend(map(metric_setup.finite_row, result.rows))
                notes.extend(result.notes)
        finally:
            # A run that is stopped shows the notes of what it measured, too.
            self._add_notes(notes)

    def _add_notes(self, notes: list[str | Note]) -> None:
        """Add the metrics' notes to those of the run, unless it has the same."""
        for note in parallel.share_notes(notes):
            if note not in (*self._prepared.notes, *self._progress.notes):
                self._progress.notes.append(note)

    async def stop(self, *, complete: bool) -> None:
        """End what is under way."""
        for task in self._early.values():
            task.cancel()
        # A metric's thread cannot be cancelled, but its next report of progress ends it.
        self._prepared.measured.stopped = not complete
        await asyncio.gather(*self._early.values(), return_exceptions=True)

    async def _measure(self, metric: Metric) -> MetricResult:
        samples = self._prepared.samples
        progress = self._prepared.measured
        score = partial(
            parallel.score_in_parallel,
            metric,
            samples,
            tell=progress,
            workers=self._prepared.config.workers,
        )
        async with self._turn:
            progress(0, len(samples))
            return await run_in_thread(score)
