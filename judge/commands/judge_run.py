"""Ask the judges of a run: all samples at once, or in windows if the data exceeds memory."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from judge.cache import Cache, open_cache
from judge.commands.metric_setup import reject_non_finite, validate_result
from judge.commands.preparation import PreparedRun, criterion_for, engine_context, is_wanted, reject_duplicate_columns
from judge.commands.run_metadata import column_suffix, signed_column
from judge.config import RunConfig
from judge.core.errors import ProviderError, Unrecorded
from judge.core.format import one_line, plural
from judge.core.records import Column, Criterion, Estimate, Failure, Sample, Score
from judge.execution import engines
from judge.execution.budget import BudgetLedger
from judge.execution.engines import ClosableEngine, Engine
from judge.execution.metric_client import MetricClient, ThreadClient
from judge.execution.pending import Judgment, Row, by_question
from judge.execution.progress import JudgeProgress, Progress
from judge.execution.rate_limit import RateLimiter
from judge.execution.retry import Policy, Retrier
from judge.execution.scheduler import JudgeRun
from judge.metrics import MetricResult, asks_judge, parallel
from judge.providers import Provider
from judge.results.result import Result
from judge.scoring import checklist
from judge.scoring.strategies import ModelTraits
from judge.stats import analyze
from judge.stats.analyze import Analysis, pass_columns
from judge.stats.bootstrap import mean_interval
from judge.table import StreamingWriter, Table, split_rows

SHOWN = 2_000
"""Most texts that the reports of a streamed run show; the files have all of them."""
_WINDOW = 20_000
"""Texts that are judged at once in a streamed run."""
_NOTE = (
    "{texts:,} texts were {done} as they were read: means are over all, the first {shown:,} are shown, and differences "
    "between systems are not tested (of fewer texts they are: --limit)."
)
T = TypeVar("T")


# Data larger than memory


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

    def estimate(self, column: Column) -> Estimate:
        ends = mean_interval(self.mean, self.squares / max(1, self.n - 1), self.n, column.low, column.high)
        return Estimate("mean", self.mean, ends.low, ends.high, self.n, ends.method)


@dataclass(slots=True)
class Seen:
    """What a streamed run keeps in memory: the first texts with their rows, and counts and moments of all.

    `texts` counts by system, `failed` by stage and error, then by system and column. `examples` has the first failure
    of each kind.
    """

    samples: list[Sample] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    moments: dict[tuple[str, str], _Moments] = field(default_factory=dict)
    texts: Counter[str] = field(default_factory=Counter)
    failed: dict[tuple[str, str], Counter[tuple[str, str]]] = field(default_factory=dict)
    examples: dict[tuple[str, str], Failure] = field(default_factory=dict)

    def add(self, samples: Sequence[Sample], rows: Sequence[Row], columns: Iterable[Column]) -> None:
        """Count these samples and keep the first ones, with their rows."""
        by_name = {column.name: column for column in columns}
        rates = pass_columns(by_name.values())
        room = min(len(samples), SHOWN - len(self.samples))
        self.samples += samples[:room]
        self.rows += rows[: room * (len(rows) // len(samples))]
        self.texts.update(sample.system for sample in samples)
        for row in rows:
            if isinstance(row, Score):
                self.moments.setdefault((row.system, row.column), _Moments()).add(row.value)
                if rate := rates.get(row.column):
                    passed = float(by_name[row.column].passes(row.value) or 0)
                    self.moments.setdefault((row.system, rate.name), _Moments()).add(passed)
            else:
                kind = row.stage, row.error
                self.examples.setdefault(kind, row)
                self.failed.setdefault(kind, Counter())[row.system, row.column] += 1

    def analysis(self, columns: Sequence[Column]) -> Analysis:
        """Return the table of the first texts with the means of all."""
        table = Table(tuple(self.samples), tuple(columns), *split_rows(self.rows))
        by_name = {column.name: column for column in (*columns, *pass_columns(columns).values())}
        return Analysis(table, {key: moments.estimate(by_name[key[1]]) for key, moments in self.moments.items()})

    def counts(self) -> dict[str, Any]:
        """Return counts of all texts for the reports, which have only the rows of the first ones."""
        failures = [
            {"stage": stage, "error": error, "example": asdict(self.examples[stage, error]), "counts": [
                [system, column, n] for (system, column), n in counts.items()
            ]}
            for (stage, error), counts in self.failed.items()
        ]  # fmt: skip
        return {"shown": len(self.samples), "texts": dict(self.texts), "failures": failures}


async def run_streamed(
    prepared: PreparedRun, retriers: Mapping[str, Retrier], progress: Progress
) -> tuple[Analysis, dict[str, Any]]:
    """Judge and measure `prepared.samples` and then `prepared.rest`, and write the table's files into `plan.out`.

    Return the table of the first texts with the means of all, and the counts of all (`streamed` in run.json).
    Intervals are normal ones; at this size they equal a bootstrap's. Memory does not grow with the data, except for
    the check that no item and system come twice. An error leaves no files.
    """
    seen = Seen()
    judged = bool(prepared.judges and prepared.criteria)
    names = ["the judge"] * judged + list(prepared.metrics)
    results_by_metric: list[list[MetricResult]] = [[] for _ in names]
    writer = StreamingWriter(prepared.config.out) if prepared.config.out is not None else None
    texts, rows = list[Sample](), list[Row]()
    try:
        async with aclosing(_scored_parts(prepared, retriers, progress)) as scored:
            async for part, results in scored:
                for so_far, name, result in zip(results_by_metric, names, results, strict=True):
                    validate_result(name, result, part)
                    so_far.append(replace(result, rows=()))
                part_rows = [
                    reject_non_finite(row)
                    for place in range(len(part))  # table order: all rows of a sample stand together
                    for result in results
                    for row in result.rows[place * len(result.columns) : (place + 1) * len(result.columns)]
                ]
                seen.add(part, part_rows, [column for result in results for column in result.columns])
                prepared.measured(seen.texts.total(), 0)
                if writer:
                    texts += part
                    rows += part_rows
                    if len(texts) >= _WINDOW:
                        writer.add(texts, rows)
                        texts, rows = [], []
        merged = [parallel.merge_results(results) for results in results_by_metric]
        merged_columns = [column for result in merged for column in result.columns]
        reject_duplicate_columns([column.name for column in merged_columns])
        if writer:
            writer.add(texts, rows)
            writer.close(merged_columns)
    except BaseException:
        if writer:
            writer.discard()
        raise
    prepared.notes.extend(str(note) for result in merged for note in result.notes)
    prepared.notes.append(
        _NOTE.format(texts=seen.texts.total(), shown=len(seen.samples), done="judged" if judged else "measured")
    )
    prepared.data["rows"] = seen.texts.total()
    return seen.analysis(merged_columns), seen.counts()


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run in a daemon thread, so that Ctrl-C does not wait for a slow metric."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(settle: Callable[[Any], None], outcome: Any) -> None:
        if not future.cancelled():
            settle(outcome)

    def in_thread() -> None:
        try:
            settling: tuple[Callable[[Any], None], Any] = future.set_result, work()
        except BaseException as error:  # noqa: BLE001  (raised again where it is awaited)
            settling = future.set_exception, error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, *settling)

    threading.Thread(target=copy_context().run, args=(in_thread,), name="judge-metric", daemon=True).start()
    return await future


async def _scored_parts(
    prepared: PreparedRun, retriers: Mapping[str, Retrier], progress: Progress
) -> AsyncGenerator[tuple[list[Sample], list[MetricResult]], None]:
    """Yield parts of the samples, each with the results of the judge, if any, and of every metric.

    A window of many parts is judged at once.
    """
    samples = chain(prepared.samples, prepared.rest or ())
    with parallel.worker_pool(list(prepared.metrics.values()), prepared.config.workers) as scored:
        async with open_judges(prepared, retriers) as ask:
            while window := await run_in_thread(lambda: list(islice(samples, _WINDOW))):
                rows: list[Row] = []
                if prepared.criteria:
                    await ask(replace(prepared, samples=window), rows.append)
                if progress.stopping:
                    raise asyncio.CancelledError
                of_judge, found = tuple(columns(prepared, progress)), {(row.key, row.column): row for row in rows}
                parts = [window[first : first + parallel.PART] for first in range(0, len(window), parallel.PART)]
                results = scored(parts)
                for part in parts:
                    measured = await run_in_thread(partial(next, results))
                    judged = tuple(found[sample.key, column.name] for sample in part for column in of_judge)
                    yield part, [*([MetricResult(of_judge, judged)] if of_judge else []), *measured]


# Asking the judges


def make_retriers(prepared: PreparedRun, progress: Progress, ledger: BudgetLedger) -> dict[str, Retrier]:
    """Give each judge a rate limiter of its own; budget and deadline are shared. Raises ConfigError."""
    deadline = deadline_of(prepared.config)
    return {
        name: make_retrier(prepared.config, provider, progress.judges[name], ledger, deadline)
        for name, provider in prepared.judges.items()
    }


def deadline_of(config: RunConfig) -> float | None:
    """Return the time of the running event loop's clock at which a run that starts now has to stop."""
    return None if config.deadline is None else asyncio.get_running_loop().time() + config.deadline


def make_retrier(
    config: RunConfig, provider: Provider, counts: JudgeProgress, ledger: BudgetLedger, deadline: float | None
) -> Retrier:
    """Return the retrier for one model, which has its own rate limiter. Raises ConfigError."""
    return Retrier(
        Policy(attempts=config.retries + 1),
        RateLimiter(config.max_concurrency, config.rpm, config.tpm),
        ledger if ledger.covers(provider) else None,
        counts=counts,
        deadline=deadline,
    )


def columns(prepared: PreparedRun, progress: Progress) -> list[Column]:
    """Return the columns of the judgments; for a panel, each criterion's combined value and then its judges."""
    columns_of_run: list[Column] = []
    for criterion in prepared.criteria:
        of_judges = [
            signed_column(criterion, name, provider, prepared, progress.judges[name])
            for name, provider in prepared.judges.items()
        ]
        columns_of_run += [analyze.panel_column(of_judges), *of_judges] if len(of_judges) > 1 else of_judges
    return columns_of_run


def unwritten_rows(prepared: PreparedRun, progress: Progress) -> list[Row]:
    """Return the failures of the texts that could not be generated, in every column."""
    return [replace(row, column=c.name) for row in prepared.unwritten for c in columns(prepared, progress)]


Ask = Callable[[PreparedRun, Callable[[Row], None]], Coroutine[Any, Any, None]]
"""Ask all judges about a part of the run, and give each row to a function."""


@asynccontextmanager
async def open_judges(prepared: PreparedRun, retriers: Mapping[str, Retrier]) -> AsyncIterator[Ask]:
    """Open the cache and each judge's engine. What a judge is found to be is remembered from part to part."""
    async with AsyncExitStack() as opened:
        cache: Cache = open_cache(prepared.config.cache, prepared.notes)
        opened.callback(cache.close)
        judges = {
            name: (
                await opened.enter_async_context(open_engine(prepared.config, provider, retriers[name])),
                ModelTraits(),
            )
            for name, provider in prepared.judges.items()
        }
        flush = prepared.recording.flush if prepared.recording else lambda: None

        async def ask_judge(name: str, part: PreparedRun, emit: Callable[[Row], None]) -> None:
            engine, traits = judges[name]
            suffix, asked = column_suffix(prepared, name), judgments(part, name)
            run = JudgeRun(
                asked, prepared.judges[name], prepared.settings[name],
                cache=cache, retrier=retriers[name],
                emit=checklist.collect(((one.criterion, one.sample) for one in asked), suffix, emit),
                flush=flush, counts=retriers[name].counts, concurrency=prepared.config.max_concurrency, suffix=suffix,
                recording=prepared.recording, engine=engine, criteria=_criteria_of_judge(prepared, name),
                retry_failed=prepared.config.retry_failed, model_traits=traits,
            )  # fmt: skip
            try:
                await run()
            except ProviderError as error:
                if len(judges) > 1:
                    error.add_note(f"It is {name} of the panel that cannot be asked.")
                raise

        async def ask(part: PreparedRun, emit: Callable[[Row], None]) -> None:
            try:
                async with asyncio.TaskGroup() as group:
                    for name in judges:
                        group.create_task(ask_judge(name, part, emit))
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None

        yield ask


async def run_judges(
    prepared: PreparedRun, retriers: Mapping[str, Retrier], progress: Progress, rows: list[Row]
) -> None:
    """Run all judges concurrently on every judgment, and add to `rows`."""
    if not prepared.judges or not prepared.criteria:
        return
    if prepared.pairs is not None:
        judge_columns = {
            c.name: c.criterion for c in columns(prepared, progress) if c.judge or len(prepared.judges) == 1
        }
        wanted, ties = prepared.wanted_texts, prepared.pairs.ties([*judge_columns])
        rows += [tie for tie in ties if wanted is None or tie.key in wanted.get(judge_columns[tie.column], ())]
    async with open_judges(prepared, retriers) as ask:
        await ask(prepared, rows.append)


@asynccontextmanager
async def open_engine(config: RunConfig, provider: Provider, retrier: Retrier) -> AsyncIterator[Engine]:
    """Open the run's engine for one model. Raises ConfigError."""
    context = engine_context(config, provider)
    context = replace(context, counts=retrier.counts, ledger=retrier.ledger, deadline=retrier.deadline)
    engine = engines.create_engine(config.engine, context)
    try:
        yield engine
    finally:
        if isinstance(engine, ClosableEngine):
            await engine.aclose()


def _criteria_of_judge(prepared: PreparedRun, judge: str) -> list[Criterion]:
    return [criterion_for(criterion, prepared.judges[judge]) for criterion in prepared.criteria]


def count_judgments(runs: Iterable[PreparedRun]) -> int:
    """Count what all judges of these runs are asked."""
    return sum(len(judgments(run, name)) for run in runs for name in run.judges)


def judgments(prepared: PreparedRun, judge: str) -> Sequence[Judgment]:
    """Return what one judge is asked: the wanted texts, or the wanted pairs."""
    criteria = _criteria_of_judge(prepared, judge)
    if prepared.pairs is not None:
        all_judgments = prepared.pairs.judgments(criteria)
        return [judgment for judgment in all_judgments if is_wanted(prepared, judgment.sample, judgment.criterion)]
    wanted = (
        Judgment(sample, criterion)
        for sample in prepared.samples
        for criterion in criteria
        if is_wanted(prepared, sample, criterion)
    )
    return list(by_question(wanted))


@asynccontextmanager
async def open_metric_client(
    prepared: PreparedRun, progress: Progress, retriers: Mapping[str, Retrier]
) -> AsyncIterator[None]:
    """Let metrics ask the first judge while this context is open."""
    if prepared.ask is None or not any(asks_judge(metric) for metric in prepared.metrics.values()):
        yield
        return
    async with metric_client(prepared, progress, retriers) as asker:
        prepared.ask.to = ThreadClient(asker, asyncio.get_running_loop())
        try:
            yield
        except asyncio.CancelledError:
            prepared.measured.stopped = True
            raise


@asynccontextmanager
async def metric_client(
    prepared: PreparedRun, progress: Progress, retriers: Mapping[str, Retrier]
) -> AsyncIterator[MetricClient]:
    """Open the client that asks the first judge free questions."""
    config, (name, provider) = prepared.config, next(iter(prepared.judges.items()))
    async with AsyncExitStack() as opened:
        cache: Cache = open_cache(config.cache, prepared.notes)
        opened.callback(cache.close)
        engine = await opened.enter_async_context(open_engine(config, provider, retriers[name]))
        asker = MetricClient(
            provider, cache=cache, retrier=retriers[name], counts=progress.judges[name],
            concurrency=config.max_concurrency, settings=prepared.settings[name], recording=prepared.recording,
            retry_failed=config.retry_failed, engine=engine,
        )  # fmt: skip
        yield await opened.enter_async_context(asker)


def require_all_recorded(*results: Result | None) -> None:
    """Raise Unrecorded if a recording lacks replies: such judgments must not count as failed ones."""
    unrecorded = [row for result in results if result for row in result.failures if row.error == Unrecorded.__name__]
    if unrecorded:
        first = unrecorded[0]
        where = f"{one_line(first.item, 60)} ({one_line(first.system, 60)}), {one_line(first.column, 60)}"
        raise Unrecorded(
            f"{plural(len(unrecorded), 'judgment')} not in the recording; the first is {where}: {first.message}"
        )
