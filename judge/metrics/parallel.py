"""Run a metric over many samples in parts, perhaps in several processes, and merge the results."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from judge.core.errors import ConfigError
from judge.core.messages import option
from judge.core.records import Column, Sample
from judge.core.signature import Signature, merge_signatures
from judge.metrics.base import Metric, MetricResult, Note, Tell, no_progress

if TYPE_CHECKING:
    from concurrent.futures import Future

PART = 500
"""Samples per part."""
_BROKEN = (
    "{workers}: a worker process ended unexpectedly, perhaps for lack of memory. Use fewer "
    "workers. In a script, call judge under `if __name__ == '__main__':`"
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
    # Without samples there is one empty part, because its result has the columns.
    starts = range(0, len(samples), PART) or [0]
    sample_parts = [samples[start : start + PART] for start in starts]
    if len(sample_parts) == 1:
        workers = 1  # other processes would have nothing to do
    results: list[MetricResult] = []
    with worker_pool([metric], workers) as score_parts:
        for (result,) in score_parts(sample_parts):
            results.append(result)
            # The last part may be smaller.
            finished = min(len(samples), len(results) * PART)
            tell(finished, len(samples))
    return merge_results(results)


@contextmanager
def worker_pool(
    metrics: Sequence[Metric],
    workers: int,
) -> Iterator[Callable[[Iterable[Sequence[Sample]]], Iterator[list[MetricResult]]]]:
    """Yield a function from parts to every metric's results, run by `workers` processes.

    The processes live while the context is open. Results come in the parts' order. Only a few parts
    are read ahead, so they may come from a file larger than memory.
    """
    if workers == 1:

        def in_this_process(
            parts: Iterable[Sequence[Sample]],
        ) -> Iterator[list[MetricResult]]:
            for sample_part in parts:
                yield [metric.score(sample_part) for metric in metrics]

        yield in_this_process
        return
    # Imported here, because most runs measure in their own process.
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
    from multiprocessing import get_context

    # Spawn instead of fork, because the caller has threads.
    pool = ProcessPoolExecutor(
        workers,
        get_context("spawn"),
        initializer=_start_worker,
        initargs=(metrics,),
    )

    def in_order(parts: Iterable[Sequence[Sample]]) -> Iterator[list[MetricResult]]:
        waiting: deque[Future[list[MetricResult]]] = deque()
        for sample_part in parts:
            waiting.append(pool.submit(_score, sample_part))
            # Two parts per process, so that none waits for the next part to be read.
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    try:
        yield in_order
    except BrokenProcessPool as error:
        raise ConfigError(_BROKEN.format(workers=option("workers"))) from error
    finally:
        # Parts in flight are of no use after Ctrl-C or an error.
        pool.shutdown(wait=False, cancel_futures=True)


def merge_results(results: Sequence[MetricResult]) -> MetricResult:
    """Merge the results of parts into one result.

    Signatures name everything that any part used; notes that count texts are added up.
    """
    columns = []
    for same_columns in zip(*(result.columns for result in results), strict=True):
        signature = merge_signatures(map(_signature_of, same_columns))
        columns.append(replace(same_columns[0], signature=signature))
    rows = chain.from_iterable(result.rows for result in results)
    notes = chain.from_iterable(result.notes for result in results)
    return MetricResult(tuple(columns), tuple(rows), _merge_notes(notes))


def _merge_notes(notes: Iterable[str | Note]) -> tuple[str | Note, ...]:
    """Return each note once, in order of first appearance. Notes that count texts are added up."""
    merged: dict[tuple[str, str], str | Note] = {}
    for note in notes:
        if not isinstance(note, Note):
            merged["", note] = note
            continue
        key = (note.metric, note.text)
        so_far = merged.get(key)
        if isinstance(so_far, Note):
            some = so_far.some + note.some
            total = so_far.total + note.total
            merged[key] = replace(note, some=some, total=total)
        else:
            merged[key] = note
    # A note about no text is dropped only now, because its total counts in the sum.
    return tuple(note for note in merged.values() if not _is_empty(note))


def _is_empty(note: str | Note) -> bool:
    return isinstance(note, Note) and note.some == 0


def share_notes(notes: Iterable[str | Note]) -> list[str]:
    """Return the notes of several metrics, each text once: `bleu, chrf: 3 of 40 texts are empty`.

    Notes that count as many texts share one, which is where the first of them is.
    """
    metrics_by_note: dict[str | Note, list[str]] = {}
    for note in notes:
        if isinstance(note, Note):
            metrics_by_note.setdefault(replace(note, metric=""), []).append(note.metric)
        else:
            metrics_by_note.setdefault(note, [])
    shared: list[str | Note] = []
    for note, metrics in metrics_by_note.items():
        if isinstance(note, Note):
            distinct_metrics = dict.fromkeys(metrics)
            shared.append(replace(note, metric=", ".join(distinct_metrics)))
        else:
            shared.append(note)
    return [str(note) for note in shared]


def _signature_of(column: Column) -> Signature:
    """Return the signature of a column.

    Raise ConfigError if a metric of another package gives it as text.
    """
    if not isinstance(column.signature, Signature):
        raise ConfigError(
            f"the metric with the column {column.name} is wrong: the signature of a column is a "
            f"judge.Signature, such as Signature({column.name!r}, 'key=value'), not "
            f"{column.signature!r:.60}"
        )
    return column.signature


# In the other processes

_metrics: Sequence[Metric]


def _start_worker(metrics: Sequence[Metric]) -> None:
    global _metrics  # sent once, not with every part
    _metrics = metrics
    # The parent handles Ctrl-C and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:
        from multiprocessing import parent_process
        from multiprocessing.connection import wait

        parent = parent_process()
        if parent:
            wait([parent.sentinel])
            os._exit(1)

    # Without it, workers of a killed run would stay.
    threading.Thread(target=end_with_parent, daemon=True).start()


def _score(samples: Sequence[Sample]) -> list[MetricResult]:
    """Return every metric's result, in a worker process."""
    return [metric.score(samples) for metric in _metrics]
