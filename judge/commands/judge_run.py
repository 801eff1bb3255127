"""Data larger than memory: samples are read, judged, measured and written part by part.

`--retry-failed`: the scores of an earlier run stand, and only what it lacks is asked.

What a run asks its judges, and how.

A recording that lacks a reply is no failed judgment: nothing is held against what came of such a run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice, tee
from math import sqrt
from statistics import NormalDist
from typing import Any

from judge.cache import Cache, open_cache
from judge.commands.metric_setup import reject_non_finite, validate_result
from judge.commands.preparation import PreparedRun, criterion_for, engine_context, is_wanted, reject_duplicate_columns
from judge.commands.run_metadata import column_suffix, signed_column
from judge.core.errors import ConfigError, ProviderError, StorageError, Unrecorded
from judge.core.messages import one_line, option, plural
from judge.core.records import IDENTICAL, Column, Criterion, Estimate, Failure, Sample, Score, whole
from judge.execution import engines
from judge.execution.budget import BudgetLedger
from judge.execution.engines import Engine
from judge.execution.metric_client import MetricClient, from_thread
from judge.execution.pending import Judgment, Row
from judge.execution.progress import Progress
from judge.execution.rate_limit import RateLimiter
from judge.execution.retry import Policy, Retrier
from judge.execution.scheduler import JudgeRun
from judge.metrics import MetricResult, asks_judge, parallel
from judge.providers import Capabilities
from judge.results.result import Result, load
from judge.stats import analyze
from judge.stats.analyze import Analysis
from judge.table import JOURNAL, RUN, Journal, StreamingWriter, Table

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


def run_streamed(prepared: PreparedRun, judge: Judge | None = None) -> tuple[Analysis, dict[str, Any]]:
    """Judge and measure `prepared.samples` and then `prepared.rest`, and write the table's files into `plan.out`.

    Returns the table of the first texts with the means of all of them, and what the reports have to know: `streamed`.
    Intervals are normal ones, which at this size are a bootstrap's. What is kept in memory does not grow with the data
    but for what guards against two rows of one item and system. An error leaves no files.
    """
    seen = _Seen()
    names = ["the judge"] * bool(judge) + list(prepared.metrics)
    found: list[list[MetricResult]] = [[] for _ in names]
    writer = StreamingWriter(prepared.plan.out) if prepared.plan.out is not None else None
    try:
        for samples, results in _measured(prepared, judge):
            for name, result in zip(names, results, strict=True):
                validate_result(name, result, samples)
            rows = list(_rows(samples, results))
            seen.add(samples, rows)
            for so_far, result in zip(found, results, strict=True):
                so_far.append(replace(result, rows=()))
            if writer:
                writer.add(samples, rows)
            prepared.measured(seen.texts.total(), 0)
        whole = [parallel.merge_results(results) for results in found]
        columns = [column for result in whole for column in result.columns]
        reject_duplicate_columns([column.name for column in columns])
        if writer:
            writer.close(columns)
    except BaseException:
        if writer:
            writer.discard()
        raise
    prepared.notes.extend(str(note) for result in whole for note in result.notes)
    prepared.notes.append(
        _NOTE.format(texts=seen.texts.total(), shown=len(seen.samples), done="judged" if judge else "measured")
    )
    prepared.data["rows"] = seen.texts.total()
    return _concluded(seen, columns), _streamed(seen)


def _measured(prepared: PreparedRun, judge: Judge | None) -> Iterator[tuple[Sequence[Sample], Sequence[MetricResult]]]:
    """Parts of the samples, each with the judge's result, if there is one, and every metric's."""
    samples = chain(prepared.samples, prepared.rest or ())
    each, copy = tee(_judged(samples, judge))
    with parallel.worker_pool(list(prepared.metrics.values()), prepared.plan.workers) as scored:
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
            yield from map(reject_non_finite, result.rows[place * size : (place + 1) * size])


def _concluded(seen: _Seen, columns: Sequence[Column]) -> Analysis:
    scores = tuple(row for row in seen.rows if isinstance(row, Score))
    failures = tuple(row for row in seen.rows if isinstance(row, Failure))
    table = Table(tuple(seen.samples), tuple(columns), scores, failures)
    return Analysis(table, {key: moments.estimate() for key, moments in seen.moments.items()})


def _streamed(seen: _Seen) -> dict[str, Any]:
    """Counts of all texts, for the reports, which have the rows of the first ones only."""
    failures = [
        {"stage": stage, "error": error, "example": asdict(seen.examples[stage, error]), "counts": [
            [system, column, n] for (system, column), n in counts.items()
        ]}
        for (stage, error), counts in seen.failed.items()
    ]  # fmt: skip
    return {"shown": len(seen.samples), "texts": dict(seen.texts), "failures": failures}


_OPTION = "retry_failed"


def load_previous(prepared: PreparedRun) -> Result:
    """The run in the plan's folder. Raises ConfigError where there is none, StorageError where it cannot be read."""
    out = prepared.plan.out
    if out is None:
        raise ConfigError(f"{option(_OPTION)}: name the folder of the run to go on with: {option('out', 'DIR')}")
    if not any((out / name).exists() for name in (RUN, JOURNAL)):
        raise ConfigError(
            f"{option(_OPTION)}: {out} holds no run; {option('out')} names the folder of the one to go on with"
        )
    if not (prepared.judges and prepared.criteria):
        raise ConfigError(f"{option(_OPTION)}: this run asks no judge, so there is nothing to ask again")
    return load(out)


def reusable_scores(prepared: PreparedRun, earlier: Result, columns: Sequence[Column]) -> list[Score]:
    """The judges' scores of an earlier run. Raises ConfigError where it is not one of the same texts and `columns`."""
    where = str(prepared.plan.out)
    _check_columns(earlier.table.columns, columns, where)
    _check_texts(earlier.table.samples, prepared.samples, where)
    asked = {one.name for one in columns if one.judge or len(prepared.judges) == 1}
    kept = [s for s in earlier.table.scores if s.column in asked and s.provenance.method != IDENTICAL]
    gone = sum(failure.column in asked for failure in earlier.failures)
    prepared.notes.append(
        f"{len(kept):,} scores are those of an earlier run in this folder; its {gone:,} failed judgments were asked "
        "again. Requests, tokens and cost are of the last run alone."
    )
    return kept


def restore_counters(earlier: Result, progress: Progress) -> None:
    """Have the counts know what an earlier run found that servers would not do: it is in the signatures."""
    told = earlier.info.get("judges") or {}
    for name, counts in progress.judges.items():
        counts.unmet.update(dict.fromkeys(told.get(name, {}).get("unmet") or (), 0))


def remaining_judgments(judgments: Iterable[Judgment], kept: Iterable[Score], suffix: str) -> list[Judgment]:
    """The judgments of one judge, in whose columns' names `suffix` is, that have no score yet."""
    have = {(score.item, score.system, score.rival, score.column) for score in kept}
    return [
        one
        for one in judgments
        if (one.sample.item, one.sample.system, one.rival.system if one.rival else "", one.criterion.name + suffix)
        not in have
    ]


def _check_columns(earlier: Iterable[Column], now: Iterable[Column], where: str) -> None:
    signatures = {column.name: column.signature for column in now}
    for column in earlier:
        if column.kind != "criterion":
            continue
        if not column.signature:
            raise StorageError(f"{_OPTION}: of the run in {where} it is not known how it was asked; run without")
        if column.name not in signatures:
            raise ConfigError(f"{_OPTION}: the run in {where} has a column {column.name!r}, and this one would not")
        if signatures[column.name] != column.signature:
            raise ConfigError(
                f"{_OPTION}: {column.name} was asked in another way in {where}: "
                f"{_differences(column.signature, signatures[column.name])}. Name another folder, or run without"
            )


def _differences(was: str, now: str) -> str:
    before, after = was.split("|"), now.split("|")
    gone = [part for part in before if part not in after]
    new = [part for part in after if part not in before]
    return f"{', '.join(gone) or 'nothing'} then, {', '.join(new) or 'nothing'} now"


def _check_texts(earlier: Sequence[Sample], now: Sequence[Sample], where: str) -> None:
    texts: Mapping[tuple[str, str], Sample] = {(whole(one.item), whole(one.system)): one for one in now}
    for one in earlier:
        there = texts.get((one.item, one.system))
        name = f"item {one.item}, system {one.system}"
        if there is None:
            raise ConfigError(f"{_OPTION}: the run in {where} is of other data: {name} is not in this run's")
        if _text(one) != _text(there):
            raise ConfigError(f"{_OPTION}: the run in {where} is of other data: the text of {name} has changed")


def _text(sample: Sample) -> tuple[str | None, ...]:
    source = None if sample.source is None else whole(sample.source)
    return (whole(sample.output), source, *map(whole, sample.references))


def make_retriers(prepared: PreparedRun, progress: Progress, ledger: BudgetLedger) -> dict[str, Retrier]:
    """Give each judge a rate limiter of its own; budget and deadline are shared. Raises ConfigError."""
    made = prepared.plan
    until = None if made.deadline is None else asyncio.get_running_loop().time() + made.deadline
    return {
        name: Retrier(
            Policy(attempts=made.retries + 1),
            RateLimiter(made.max_concurrency, made.rpm, made.tpm, steady=Capabilities.of(provider).full_distribution),
            ledger if ledger.covers(provider) else None, counts=progress.judges[name], deadline=until,
        )
        for name, provider in prepared.judges.items()
    }  # fmt: skip


def columns(prepared: PreparedRun, progress: Progress) -> list[Column]:
    """The columns of the judgments: of a panel, each criterion's mean, then its judges'."""
    found: list[Column] = []
    for criterion in prepared.criteria:
        of_judges = [
            signed_column(criterion, name, provider, prepared, progress.judges[name])
            for name, provider in prepared.judges.items()
        ]
        found += [analyze.mean_column(of_judges), *of_judges] if len(of_judges) > 1 else of_judges
    return found


async def run_judges(
    prepared: PreparedRun,
    retriers: Mapping[str, Retrier],
    progress: Progress,
    emit: Callable[[Row], None],
    info: dict[str, Any],
    *,
    kept: Sequence[Score],
) -> None:
    """Every judge on every judgment but those whose scores are `kept`, all judges at once."""
    made = prepared.plan
    if not prepared.judges or not prepared.criteria:
        return
    async with AsyncExitStack() as closing:
        cache: Cache = _cache(prepared)
        closing.callback(cache.close)
        found = columns(prepared, progress)
        keep, flush = emit, prepared.recording.flush if prepared.recording else lambda: None
        if made.out is not None:
            journal = Journal(made.out, Table(tuple(prepared.samples), tuple(found), ()), info)
            closing.callback(journal.close)
            keep, flush = _both(emit, journal.add), _both_of(journal.flush, flush)
        for score in kept:
            keep(score)
        if prepared.pairs is not None:
            for tie in prepared.pairs.ties([c.name for c in found if c.judge or len(prepared.judges) == 1]):
                if _wanted(prepared, tie, found):
                    keep(tie)
        runs = []
        for name, retrier in retriers.items():
            left = remaining_judgments(judgments(prepared, name), kept, column_suffix(prepared, name))
            engine = await closing.enter_async_context(_engine(prepared, name, retrier))
            runs.append(_run(prepared, name, left, retrier, engine, cache=cache, emit=keep, flush=flush))
        try:
            async with asyncio.TaskGroup() as group:
                for name, one in zip(retriers, runs, strict=True):
                    group.create_task(_named(name, one) if len(runs) > 1 else one())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None


async def _named(judge: str, run: JudgeRun) -> None:
    """The run of one judge of a panel, which is named where it ends all of them."""
    try:
        await run()
    except ProviderError as error:
        error.add_note(f"It is {judge} of the panel that cannot be asked.")
        raise


@asynccontextmanager
async def windowed_judge(
    prepared: PreparedRun, retriers: Mapping[str, Retrier], progress: Progress
) -> AsyncIterator[Judge | None]:
    """What judges some texts at a time, called in a thread while this loop runs; None where nothing is judged."""
    if not prepared.judges or not prepared.criteria:
        yield None
        return
    loop, under_way = asyncio.get_running_loop(), set[asyncio.Task[Any]]()
    ((name, retrier),) = retriers.items()
    flush = prepared.recording.flush if prepared.recording else lambda: None
    async with AsyncExitStack() as closing:
        cache = _cache(prepared)
        closing.callback(cache.close)
        engine = await closing.enter_async_context(_engine(prepared, name, retrier))

        async def judged(samples: Sequence[Sample]) -> MetricResult:
            """Every criterion's row for each of these texts, in their order."""
            rows: dict[tuple[str, str, str], Row] = {}
            asked = [Judgment(sample, criterion) for sample in samples for criterion in _asked_by(prepared, name)]

            def emit(row: Row) -> None:
                rows[row.item, row.system, row.column] = row

            run = _run(prepared, name, asked, retrier, engine, cache=cache, emit=emit, flush=flush)
            under_way.add(task := asyncio.ensure_future(run()))
            try:
                await task
            finally:
                under_way.discard(task)
            if progress.stopping:
                raise asyncio.CancelledError
            found = columns(prepared, progress)
            return MetricResult(tuple(found), tuple(rows[s.item, s.system, c.name] for s in samples for c in found))

        try:
            yield lambda samples: asyncio.run_coroutine_threadsafe(judged(samples), loop).result()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)


def _run(
    prepared: PreparedRun,
    judge: str,
    asked: Sequence[Judgment],
    retrier: Retrier,
    engine: Engine,
    *,
    cache: Cache,
    emit: Callable[[Row], None],
    flush: Callable[[], None],
) -> JudgeRun:
    return JudgeRun(
        asked, prepared.judges[judge], prepared.settings,
        cache=cache, retrier=retrier, emit=emit, flush=flush, counts=retrier.counts,
        concurrency=prepared.plan.max_concurrency, suffix=column_suffix(prepared, judge), recording=prepared.recording,
        engine=engine, criteria=_asked_by(prepared, judge),
    )  # fmt: skip


@asynccontextmanager
async def _engine(prepared: PreparedRun, judge: str, retrier: Retrier) -> AsyncIterator[Engine]:
    """The engine of one judge, for all its rounds and windows. Raises ConfigError."""
    context = engine_context(prepared.plan, prepared.judges[judge])
    context = replace(context, counts=retrier.counts, ledger=retrier.ledger, deadline=retrier.deadline)
    engine = engines.create_engine(prepared.plan.engine, context)
    try:
        yield engine
    finally:
        if (close := getattr(engine, "aclose", None)) is not None:
            await close()


def _both(emit: Callable[[Row], None], add: Callable[[Row], None]) -> Callable[[Row], None]:
    def keep(row: Row) -> None:
        emit(row)
        add(row)

    return keep


def _both_of(one: Callable[[], None], other: Callable[[], None]) -> Callable[[], None]:
    def do() -> None:
        one()
        other()

    return do


def _asked_by(prepared: PreparedRun, judge: str) -> list[Criterion]:
    return [criterion_for(criterion, prepared.judges[judge]) for criterion in prepared.criteria]


def _wanted(prepared: PreparedRun, tie: Score, columns: Sequence[Column]) -> bool:
    if prepared.wanted is None:
        return True
    criterion = next(column.criterion for column in columns if column.name == tie.column)
    return (tie.item, tie.system) in prepared.wanted.get(criterion, ())


def judgments(prepared: PreparedRun, judge: str) -> Sequence[Judgment]:
    """What one judge is asked: of texts or pairs, those that are wanted."""
    criteria = _asked_by(prepared, judge)
    if prepared.pairs is not None:
        every = prepared.pairs.judgments(criteria)
        return [one for one in every if is_wanted(prepared, one.sample, one.criterion)]
    return [
        Judgment(sample, criterion)
        for sample in prepared.samples
        for criterion in criteria
        if is_wanted(prepared, sample, criterion)
    ]


@asynccontextmanager
async def open_metric_client(
    prepared: PreparedRun, progress: Progress, retriers: Mapping[str, Retrier]
) -> AsyncIterator[None]:
    """While this lasts, metrics can ask the first of the judges."""
    if prepared.ask is None or not any(asks_judge(metric) for metric in prepared.metrics.values()):
        yield
        return
    made, (name, provider) = prepared.plan, next(iter(prepared.judges.items()))
    with ExitStack() as stack:
        cache: Cache = _cache(prepared)
        stack.callback(cache.close)
        asker = MetricClient(
            provider, cache=cache, retrier=retriers[name], counts=progress.judges[name],
            concurrency=made.max_concurrency, max_tokens=made.max_tokens, recording=prepared.recording,
        )  # fmt: skip
        async with asker:
            prepared.ask.to = from_thread(asker, asyncio.get_running_loop())
            try:
                yield
            except asyncio.CancelledError:
                prepared.measured.stopped = True
                raise


def _cache(prepared: PreparedRun) -> Cache:
    """The plan's cache, with what there is to say of it in the notes."""
    return open_cache(prepared.plan.cache, prepared.notes)


def require_all_recorded(*results: Result | None) -> None:
    """Raises Unrecorded where judgments failed for that, with their number and the first one."""
    found = [row for one in results if one for row in one.failures if row.error == Unrecorded.__name__]
    if found:
        first = found[0]
        where = f"{one_line(first.item, 60)} ({one_line(first.system, 60)}), {one_line(first.column, 60)}"
        raise Unrecorded(
            f"{plural(len(found), 'judgment')} not in the recording; the first is {where}: {first.message}"
        )
