"""What a run asks its judges, and how."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from judge.cache import Cache, opened
from judge.commands import resume, streaming_run
from judge.commands.preparation import Prepared, asked_about, engine_context, for_provider
from judge.commands.run_metadata import column, suffix
from judge.core.errors import ProviderError
from judge.core.records import Column, Criterion, Sample, Score
from judge.execution import engines
from judge.execution.budget import Purse
from judge.execution.engines import Engine
from judge.execution.metric_client import Asker, beside
from judge.execution.pending import Judgment, Row
from judge.execution.progress import Progress
from judge.execution.rate_limit import Pace
from judge.execution.retry import Policy, Retrier
from judge.execution.scheduler import Run
from judge.metrics import MetricResult, asks_judge
from judge.providers import Traits
from judge.stats import panel
from judge.table import Journal, Table


def retriers(prepared: Prepared, progress: Progress, purse: Purse) -> dict[str, Retrier]:
    """How each judge is asked: at a pace of its own, out of one purse, until one deadline. Raises ConfigError."""
    made = prepared.plan
    until = None if made.deadline is None else asyncio.get_running_loop().time() + made.deadline
    return {
        name: Retrier(
            Policy(attempts=made.retries + 1),
            Pace(made.max_concurrency, made.rpm, made.tpm, steady=Traits.of(provider).exact),
            purse if purse.pays_for(provider) else None, counts=progress.judges[name], deadline=until,
        )
        for name, provider in prepared.judges.items()
    }  # fmt: skip


def columns(prepared: Prepared, progress: Progress) -> list[Column]:
    """The columns of the judgments: of a panel, each criterion's mean, then its judges'."""
    found: list[Column] = []
    for criterion in prepared.criteria:
        of_judges = [
            column(criterion, name, provider, prepared, progress.judges[name])
            for name, provider in prepared.judges.items()
        ]
        found += [panel.mean_column(of_judges), *of_judges] if len(of_judges) > 1 else of_judges
    return found


async def judge(
    prepared: Prepared,
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
            left = resume.left(judgments(prepared, name), kept, suffix(prepared, name))
            engine = await closing.enter_async_context(_engine(prepared, name, retrier))
            runs.append(_run(prepared, name, left, retrier, engine, cache=cache, emit=keep, flush=flush))
        try:
            async with asyncio.TaskGroup() as group:
                for name, one in zip(retriers, runs, strict=True):
                    group.create_task(_named(name, one) if len(runs) > 1 else one())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None


async def _named(judge: str, run: Run) -> None:
    """The run of one judge of a panel, which is named where it ends all of them."""
    try:
        await run()
    except ProviderError as error:
        error.add_note(f"It is {judge} of the panel that cannot be asked.")
        raise


@asynccontextmanager
async def in_windows(
    prepared: Prepared, retriers: Mapping[str, Retrier], progress: Progress
) -> AsyncIterator[streaming_run.Judge | None]:
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
    prepared: Prepared,
    judge: str,
    asked: Sequence[Judgment],
    retrier: Retrier,
    engine: Engine,
    *,
    cache: Cache,
    emit: Callable[[Row], None],
    flush: Callable[[], None],
) -> Run:
    return Run(
        asked, prepared.judges[judge], prepared.settings,
        cache=cache, retrier=retrier, emit=emit, flush=flush, counts=retrier.counts,
        concurrency=prepared.plan.max_concurrency, suffix=suffix(prepared, judge), recording=prepared.recording,
        engine=engine, criteria=_asked_by(prepared, judge),
    )  # fmt: skip


@asynccontextmanager
async def _engine(prepared: Prepared, judge: str, retrier: Retrier) -> AsyncIterator[Engine]:
    """The engine of one judge, for all its rounds and windows. Raises ConfigError."""
    context = engine_context(prepared.plan, prepared.judges[judge])
    context = replace(context, counts=retrier.counts, purse=retrier.purse, deadline=retrier.deadline)
    engine = engines.made(prepared.plan.engine, context)
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


def _asked_by(prepared: Prepared, judge: str) -> list[Criterion]:
    return [for_provider(criterion, prepared.judges[judge]) for criterion in prepared.criteria]


def _wanted(prepared: Prepared, tie: Score, columns: Sequence[Column]) -> bool:
    if prepared.wanted is None:
        return True
    criterion = next(column.criterion for column in columns if column.name == tie.column)
    return (tie.item, tie.system) in prepared.wanted.get(criterion, ())


def judgments(prepared: Prepared, judge: str) -> Sequence[Judgment]:
    """What one judge is asked: of texts or pairs, those that are wanted."""
    criteria = _asked_by(prepared, judge)
    if prepared.pairs is not None:
        every = prepared.pairs.judgments(criteria)
        return [one for one in every if asked_about(prepared, one.sample, one.criterion)]
    return [
        Judgment(sample, criterion)
        for sample in prepared.samples
        for criterion in criteria
        if asked_about(prepared, sample, criterion)
    ]


@asynccontextmanager
async def asking(prepared: Prepared, progress: Progress, retriers: Mapping[str, Retrier]) -> AsyncIterator[None]:
    """While this lasts, metrics can ask the first of the judges."""
    if prepared.ask is None or not any(asks_judge(metric) for metric in prepared.metrics.values()):
        yield
        return
    made, (name, provider) = prepared.plan, next(iter(prepared.judges.items()))
    with ExitStack() as stack:
        cache: Cache = _cache(prepared)
        stack.callback(cache.close)
        asker = Asker(
            provider, cache=cache, retrier=retriers[name], counts=progress.judges[name],
            concurrency=made.max_concurrency, max_tokens=made.max_tokens, recording=prepared.recording,
        )  # fmt: skip
        async with asker:
            prepared.ask.to = beside(asker, asyncio.get_running_loop())
            try:
                yield
            except asyncio.CancelledError:
                prepared.measured.stopped = True
                raise


def _cache(prepared: Prepared) -> Cache:
    """The plan's cache, with what there is to say of it in the notes."""
    return opened(prepared.plan.cache, prepared.notes)
