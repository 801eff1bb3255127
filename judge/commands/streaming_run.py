"""Data larger than memory: samples are read, judged, measured and written part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice, tee
from math import sqrt
from statistics import NormalDist
from typing import Any

from judge.commands.metric_setup import checked, finite
from judge.commands.preparation import Prepared, refuse_twins
from judge.core.records import Column, Estimate, Failure, Sample, Score
from judge.execution.pending import Row
from judge.metrics import MetricResult, parallel
from judge.stats.analyze import Findings
from judge.table import Table, Writer

SHOWN = 2_000
"""Texts that the reports show; all of them are in the files."""
_WINDOW = 20_000
"""Texts that are judged at once."""
_NOTE = (
    "{texts:,} texts were {done} as they were read: means are over all, the first {shown:,} are shown, and differences "
    "between systems are not tested (of fewer texts they are: --limit)."
)
_Z = NormalDist().inv_cdf(0.975)


@dataclass(slots=True)
class _Moments:
    """Count, mean and sum of squared distances from it, kept up to date (Welford 1962)."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        self.n += 1
        away = value - self.mean
        self.mean += away / self.n
        self.squares += away * (value - self.mean)

    def estimate(self) -> Estimate:
        if self.n < 2:
            return Estimate("mean", self.mean, None, None, self.n, "one item: too few for an interval")
        half = _Z * sqrt(self.squares / (self.n - 1) / self.n)
        return Estimate("mean", self.mean, self.mean - half, self.mean + half, self.n, "95% normal interval over items")


@dataclass(slots=True)
class _Seen:
    """What is kept of all texts: the first ones with their rows, and counts and moments of all.

    `texts` counts by system; `failed` by stage and error, then by system and column, with an example of each kind.
    """

    samples: list[Sample] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    moments: dict[tuple[str, str], _Moments] = field(default_factory=dict)
    texts: Counter[str] = field(default_factory=Counter)
    failed: dict[tuple[str, str], Counter[tuple[str, str]]] = field(default_factory=dict)
    examples: dict[tuple[str, str], Failure] = field(default_factory=dict)

    def add(self, samples: Sequence[Sample], rows: Sequence[Row]) -> None:
        room = min(len(samples), SHOWN - len(self.samples))
        self.samples += samples[:room]
        self.rows += rows[: room * (len(rows) // len(samples))]
        self.texts.update(sample.system for sample in samples)
        for row in rows:
            if isinstance(row, Score):
                self.moments.setdefault((row.system, row.column), _Moments()).add(row.value)
            else:
                kind = row.stage, row.error
                self.examples.setdefault(kind, row)
                self.failed.setdefault(kind, Counter())[row.system, row.column] += 1


Judge = Callable[[Sequence[Sample]], MetricResult]
"""Judges texts: a row for each of them and each criterion, in their order. Called in a thread."""


def measure(prepared: Prepared, judge: Judge | None = None) -> tuple[Findings, dict[str, Any]]:
    """Judge and measure `prepared.samples` and then `prepared.rest`, and write the table's files into `plan.out`.

    Returns the table of the first texts with the means of all of them, and what the reports have to know: `streamed`.
    Intervals are normal ones, which at this size are a bootstrap's. What is kept in memory does not grow with the data
    but for what guards against two rows of one item and system. An error leaves no files.
    """
    seen = _Seen()
    names = ["the judge"] * bool(judge) + list(prepared.metrics)
    found: list[list[MetricResult]] = [[] for _ in names]
    writer = Writer(prepared.plan.out) if prepared.plan.out is not None else None
    try:
        for samples, results in _measured(prepared, judge):
            for name, result in zip(names, results, strict=True):
                checked(name, result, samples)
            rows = list(_rows(samples, results))
            seen.add(samples, rows)
            for so_far, result in zip(found, results, strict=True):
                so_far.append(replace(result, rows=()))
            if writer:
                writer.add(samples, rows)
            prepared.measured(seen.texts.total(), 0)
        whole = [parallel.merged(results) for results in found]
        columns = [column for result in whole for column in result.columns]
        refuse_twins([column.name for column in columns])
        if writer:
            writer.close(columns)
    except BaseException:
        if writer:
            writer.abandon()
        raise
    prepared.notes.extend(str(note) for result in whole for note in result.notes)
    prepared.notes.append(
        _NOTE.format(texts=seen.texts.total(), shown=len(seen.samples), done="judged" if judge else "measured")
    )
    prepared.data["rows"] = seen.texts.total()
    return _concluded(seen, columns), _streamed(seen)


def _measured(prepared: Prepared, judge: Judge | None) -> Iterator[tuple[Sequence[Sample], Sequence[MetricResult]]]:
    """Parts of the samples, each with the judge's result, if there is one, and every metric's."""
    samples = chain(prepared.samples, prepared.rest or ())
    each, copy = tee(_judged(samples, judge))
    with parallel.scoring(list(prepared.metrics.values()), prepared.plan.workers) as scored:
        for (part, judged), measured in zip(each, scored(part for part, _ in copy), strict=True):
            yield part, [*judged, *measured]


def _judged(samples: Iterator[Sample], judge: Judge | None) -> Iterator[tuple[Sequence[Sample], list[MetricResult]]]:
    """Parts of the samples, each with the judge's result. Many parts are judged at once: a judge takes them so."""
    for window in iter(lambda: list(islice(samples, _WINDOW if judge else parallel.PART)), []):
        whole = judge(window) if judge else None
        for first in range(0, len(window), parallel.PART):
            part = window[first : first + parallel.PART]
            if whole is None:
                yield part, []
                continue
            size = len(whole.columns)
            yield part, [replace(whole, rows=whole.rows[first * size : (first + len(part)) * size])]


def _rows(samples: Sequence[Sample], results: Sequence[MetricResult]) -> Iterator[Row]:
    """The rows of all metrics in table order: those of the first sample, then those of the second."""
    for place in range(len(samples)):
        for result in results:
            size = len(result.columns)
            yield from map(finite, result.rows[place * size : (place + 1) * size])


def _concluded(seen: _Seen, columns: Sequence[Column]) -> Findings:
    scores = tuple(row for row in seen.rows if isinstance(row, Score))
    failures = tuple(row for row in seen.rows if isinstance(row, Failure))
    table = Table(tuple(seen.samples), tuple(columns), scores, failures)
    return Findings(table, {key: moments.estimate() for key, moments in seen.moments.items()})


def _streamed(seen: _Seen) -> dict[str, Any]:
    """Counts of all texts, for the reports, which have the rows of the first ones only."""
    failures = [
        {"stage": stage, "error": error, "example": asdict(seen.examples[stage, error]), "counts": [
            [system, column, n] for (system, column), n in counts.items()
        ]}
        for (stage, error), counts in seen.failed.items()
    ]  # fmt: skip
    return {"shown": len(seen.samples), "texts": dict(seen.texts), "failures": failures}
