"""Run a metric over many samples in parts, in several processes if requested, and merge the results."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from judge.core.errors import ConfigError
from judge.core.records import Column, Sample
from judge.core.signature import Signature, merge_signatures
from judge.metrics.base import Metric, MetricResult, Note, Tell, no_progress

if TYPE_CHECKING:
    from concurrent.futures import Future

PART = 500
"""Samples per part."""
_BROKEN = (
    "--workers: a worker process ended unexpectedly, perhaps for lack of memory. Use fewer workers. In a script, call "
    "judge under `if __name__ == '__main__':`"
)


def score_in_parallel(
    metric: Metric,
    samples: Sequence[Sample],
    *,
    workers: int = 1,
    tell: Tell = no_progress,
) -> MetricResult:
    """Return `metric.score(samples)`; a row-by-row metric runs in parts, in several processes."""
    if not metric.rowwise:
        merged = merge_results([metric.score(samples)])
        tell(len(samples), len(samples))
        return merged
    parts = (
        [samples]
        if len(samples) <= PART
        else [samples[first : first + PART] for first in range(0, len(samples), PART)]
    )
    done: list[MetricResult] = []
    with worker_pool([metric], workers if len(parts) > 1 else 1) as scored:
        for (result,) in scored(parts):
            done.append(result)
            tell(min(len(samples), len(done) * PART), len(samples))
    return merge_results(done)


@contextmanager
def worker_pool(
    metrics: Sequence[Metric], workers: int
) -> Iterator[Callable[[Iterable[Sequence[Sample]]], Iterator[list[MetricResult]]]]:
    """Yield a function from parts to every metric's results, run by `workers` processes while the context is open.

    Results come in the parts' order. Only a few parts are read ahead, so they may come from a file larger than memory.
    """
    if workers == 1:
        yield lambda parts: ([metric.score(part) for metric in metrics] for part in parts)
        return
    # Most runs measure in their own process.
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
    from multiprocessing import get_context

    # Spawn instead of fork, because the caller has threads.
    pool = ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=_start_worker, initargs=(metrics,)
    )

    def in_order(parts: Iterable[Sequence[Sample]]) -> Iterator[list[MetricResult]]:
        waiting: deque[Future[list[MetricResult]]] = deque()
        for part in parts:
            waiting.append(pool.submit(_score, part))
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    try:
        yield in_order
    except BrokenProcessPool as error:
        raise ConfigError(_BROKEN) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def merge_results(results: Sequence[MetricResult]) -> MetricResult:
    """Merge the results of parts into one result.

    Signatures name everything that any part used; notes that count texts are added up.
    """
    columns = []
    for same_columns in zip(*(result.columns for result in results), strict=True):
        signature = merge_signatures(map(_signature_of, same_columns))
        columns.append(replace(same_columns[0], signature=signature))
    notes: dict[tuple[str, str], str | Note] = {}
    for note in (note for result in results for note in result.notes):
        if isinstance(note, Note):
            key = note.metric, note.text
            so_far = notes.get(key)
            if isinstance(so_far, Note):
                note = replace(note, some=note.some + so_far.some, total=note.total + so_far.total)
            notes[key] = note
        else:
            notes["", note] = note
    return MetricResult(
        tuple(columns),
        tuple(row for result in results for row in result.rows),
        tuple(str(note) for note in notes.values() if not isinstance(note, Note) or note.some),
    )


def _signature_of(column: Column) -> Signature:
    """Return the signature of a column. Raise ConfigError if a metric of another package gives it as text."""
    if not isinstance(column.signature, Signature):
        raise ConfigError(
            f"the metric with the column {column.name} is wrong: the signature of a column is a judge.Signature, "
            f"such as Signature({column.name!r}, 'key=value'), not {column.signature!r:.60}"
        )
    return column.signature


# In the other processes

_metrics: Sequence[Metric]


def _start_worker(metrics: Sequence[Metric]) -> None:
    global _metrics  # sent once, not with every part
    _metrics = metrics
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process

    def end_with_parent() -> None:
        from multiprocessing import parent_process
        from multiprocessing.connection import wait

        if parent := parent_process():
            wait([parent.sentinel])
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _score(samples: Sequence[Sample]) -> list[MetricResult]:
    return [metric.score(samples) for metric in _metrics]
