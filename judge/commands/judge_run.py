"""Ask the judges of a run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import replace
from typing import Any, TypeVar

from judge.cache import Cache
from judge.commands.preparation import PreparedRun, criterion_for, engine_context, is_wanted
from judge.commands.reply_cache import open_reply_cache
from judge.commands.run_metadata import column_suffix, signed_column
from judge.config import RunConfig
from judge.core.errors import ProviderError, Unrecorded
from judge.core.format import one_line, plural
from judge.core.records import Column, Criterion
from judge.execution import engines
from judge.execution.budget import BudgetLedger
from judge.execution.engines import ClosableEngine, Engine
from judge.execution.metric_client import MetricClient, ThreadClient
from judge.execution.pending import Judgment, Row, by_question
from judge.execution.progress import JudgeProgress, Progress
from judge.execution.rate_limit import RateLimiter
from judge.execution.retry import Policy, Retrier
from judge.execution.scheduler import JudgeRun
from judge.metrics import asks_judge
from judge.providers import Provider
from judge.results.result import Result
from judge.scoring import checklist
from judge.scoring.strategies import ModelTraits
from judge.stats import analyze

T = TypeVar("T")


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

    threading.Thread(
        target=copy_context().run, args=(in_thread,), name="judge-metric", daemon=True
    ).start()
    return await future


# Asking the judges


def make_retriers(
    prepared: PreparedRun, progress: Progress, ledger: BudgetLedger
) -> dict[str, Retrier]:
    """Give each judge a rate limiter of its own; budget and deadline are shared. Raises ConfigError."""
    deadline = deadline_of(prepared.config)
    return {
        name: make_retrier(prepared.plans[name], provider, progress.judges[name], ledger, deadline)
        for name, provider in prepared.judges.items()
    }


def deadline_of(config: RunConfig) -> float | None:
    """Return the time of the running event loop's clock at which a run that starts now has to stop."""
    return None if config.deadline is None else asyncio.get_running_loop().time() + config.deadline


def make_retrier(
    config: RunConfig,
    provider: Provider,
    counts: JudgeProgress,
    ledger: BudgetLedger,
    deadline: float | None,
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
        columns_of_run += (
            [analyze.panel_column(of_judges), *of_judges] if len(of_judges) > 1 else of_judges
        )
    return columns_of_run


def unwritten_rows(prepared: PreparedRun, progress: Progress) -> list[Row]:
    """Return the failures of the texts that could not be generated, in every column."""
    return [
        replace(row, column=c.name)
        for row in prepared.unwritten
        for c in columns(prepared, progress)
    ]


Ask = Callable[[PreparedRun, Callable[[Row], None]], Coroutine[Any, Any, None]]
"""Ask all judges about a part of the run, and give each row to a function."""


@asynccontextmanager
async def open_judges(prepared: PreparedRun, retriers: Mapping[str, Retrier]) -> AsyncIterator[Ask]:
    """Open the cache and each judge's engine. What a judge is found to be is remembered from part to part."""
    async with AsyncExitStack() as opened:
        cache: Cache = open_reply_cache(prepared.config, prepared.notes)
        opened.callback(cache.close)
        judges = {
            name: (
                await opened.enter_async_context(
                    open_engine(prepared.config, provider, retriers[name])
                ),
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
                flush=flush, counts=retriers[name].counts, suffix=suffix,
                concurrency=prepared.plans[name].max_concurrency,
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
            c.name: c.criterion
            for c in columns(prepared, progress)
            if c.judge or len(prepared.judges) == 1
        }
        wanted, ties = prepared.wanted_texts, prepared.pairs.ties([*judge_columns])
        rows += [
            tie
            for tie in ties
            if wanted is None or tie.key in wanted.get(judge_columns[tie.column], ())
        ]
    async with open_judges(prepared, retriers) as ask:
        await ask(prepared, rows.append)


@asynccontextmanager
async def open_engine(
    config: RunConfig, provider: Provider, retrier: Retrier
) -> AsyncIterator[Engine]:
    """Open the run's engine for one model. Raises ConfigError."""
    context = engine_context(config, provider)
    context = replace(
        context, counts=retrier.counts, ledger=retrier.ledger, deadline=retrier.deadline
    )
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
        return [
            judgment
            for judgment in all_judgments
            if is_wanted(prepared, judgment.sample, judgment.criterion)
        ]
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
        cache: Cache = open_reply_cache(config, prepared.notes)
        opened.callback(cache.close)
        engine = await opened.enter_async_context(open_engine(config, provider, retriers[name]))
        asker = MetricClient(
            provider, cache=cache, retrier=retriers[name], counts=progress.judges[name],
            concurrency=prepared.plans[name].max_concurrency, settings=prepared.settings[name],
            recording=prepared.recording,
            retry_failed=config.retry_failed, engine=engine,
        )  # fmt: skip
        yield await opened.enter_async_context(asker)


def require_all_recorded(*results: Result | None) -> None:
    """Raise Unrecorded if a recording lacks replies: such judgments must not count as failed ones."""
    unrecorded = [
        row
        for result in results
        if result
        for row in result.failures
        if row.error == Unrecorded.__name__
    ]
    if unrecorded:
        first = unrecorded[0]
        where = f"{one_line(first.item, 60)} ({one_line(first.system, 60)}), {one_line(first.column, 60)}"
        raise Unrecorded(
            f"{plural(len(unrecorded), 'judgment')} not in the recording; the first is {where}: {first.message}"
        )
