"""A metric over many samples: part by part, in several processes if asked, with the parts' results put together."""

from __future__ import annotations

import re
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context

from judge.metrics import Metric, MetricResult
from judge.records import Column, Sample

PART = 500
"""Samples of one part."""
_COUNT = re.compile(r"(\d+) of (\d+) texts")
Tell = Callable[[int, int], None]
"""Called with how many samples are done of how many; raising from it stops the work."""


def score(
    metric: Metric, samples: Sequence[Sample], *, workers: int = 1, tell: Tell = lambda done, total: None
) -> MetricResult:
    """`metric.score(samples)`; of a metric that scores row by row, in parts and by so many processes."""
    if not getattr(metric, "rowwise", False):
        found = metric.score(samples)
        tell(len(samples), len(samples))
        return found
    parts = (
        [samples] if len(samples) <= PART else [samples[first : first + PART] for first in range(0, len(samples), PART)]
    )
    done: list[MetricResult] = []
    with scoring(metric, workers if len(parts) > 1 else 1) as scored:
        for result in scored(parts):
            done.append(result)
            tell(min(len(samples), len(done) * PART), len(samples))
    return merged(done)


@contextmanager
def scoring(metric: Metric, workers: int) -> Iterator[Callable[[Iterable[Sequence[Sample]]], Iterator[MetricResult]]]:
    """A function from parts to their results in order, by `workers` processes as long as the context is open.

    No more than a few parts are read ahead, so that the parts may come from a file larger than memory.
    """
    if workers == 1:
        yield lambda parts: map(metric.score, parts)
        return
    # Spawned and not forked: the caller has threads.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start, initargs=(metric,))
    try:
        yield lambda parts: _in_order(pool, parts, 2 * workers)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def merged(results: Sequence[MetricResult]) -> MetricResult:
    """The results of the parts of some data as one of all of it.

    Signatures name everything that any part used; notes that count texts (`3 of 20 texts`) are added up.
    """
    columns = [_merged(columns) for columns in zip(*(result.columns for result in results), strict=True)]
    rows = tuple(row for result in results for row in result.rows)
    return MetricResult(tuple(columns), rows, _added(note for result in results for note in result.notes))


def _added(notes: Iterable[str]) -> tuple[str, ...]:
    counts: dict[str, tuple[int, int]] = {}
    for note in notes:
        found = _COUNT.search(note)
        form = _COUNT.sub("{} of {} texts", note, count=1)
        some, of = counts.get(form, (0, 0))
        counts[form] = (some + int(found[1]), of + int(found[2])) if found else (0, 0)
    return tuple(form.replace("{} of {} texts", f"{some} of {of} texts") for form, (some, of) in counts.items())


def _merged(columns: Sequence[Column]) -> Column:
    signatures = dict.fromkeys(column.signature for column in columns)
    if len(signatures) == 1:
        return columns[0]
    parts = zip(*(signature.split("|") for signature in signatures), strict=True)
    return replace(columns[0], signature="|".join(_one(list(dict.fromkeys(part))) for part in parts))


def _one(values: list[str]) -> str:
    """One part of a signature from several: `tok=en+ja` of `tok=en` and `tok=ja`; numbers that differ are `var`."""
    if len(values) == 1:
        return values[0]
    key = values[0].partition("=")[0]
    found = dict.fromkeys(name for value in values for name in value.partition("=")[2].split("+"))
    return f"{key}=var" if any(name == "var" or name.isdigit() for name in found) else f"{key}={'+'.join(found)}"


# In the other processes

_metric: Metric


def _start(metric: Metric) -> None:
    global _metric  # sent once and not with every part
    _metric = metric
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one


def _score(samples: Sequence[Sample]) -> MetricResult:
    return _metric.score(samples)


def _in_order(pool: ProcessPoolExecutor, parts: Iterable[Sequence[Sample]], ahead: int) -> Iterator[MetricResult]:
    waiting: deque[Future[MetricResult]] = deque()
    for part in parts:
        waiting.append(pool.submit(_score, part))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
