"""Run what was prepared; what was scored is kept however it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from judge.api import drivers, measures, people, prompts, streaming
from judge.api.describe import column, describe, suffix
from judge.api.prepare import Prepared, for_provider, refuse_twins
from judge.asking import Asker, beside
from judge.cache import Cache, DiskCache, NoCache, default_folder
from judge.config import RankPlan
from judge.metrics import MetricResult, parts
from judge.progress import Counts, Progress
from judge.records import Column
from judge.report import Result, items
from judge.retry import Policy, Retrier
from judge.runner import Judgment, Row, Run
from judge.stats import panel
from judge.stats.conclude import conclude
from judge.table import SCORES, Journal, Table, forget

T = TypeVar("T")


async def run(prepared: Prepared, progress: Progress | None = None) -> Result:
    """Carry out a prepared run. What was scored is saved (with `out`) however the run ends.

    One cut short does not replace an earlier one that had more: its rows then stay in the journal beside that.

    Raises what `runner.Run` raises, and CancelledError when it is interrupted.
    """
    progress = progress if progress is not None else Progress()
    progress.judges = {name: Counts() for name in prepared.judges}
    progress.measured = prepared.measured
    return await (_held if prepared.rest is None else _stream)(prepared, progress)


async def _held(prepared: Prepared, progress: Progress) -> Result:
    """A run over samples that are all in memory."""
    retriers = {name: Retrier(Policy(attempts=prepared.plan.retries + 1)) for name in prepared.judges}
    about = describe(prepared, progress, retriers)
    rows: list[Row] = []
    measured: list[Column] = []

    def finish(status: str) -> Result:
        result = _result(prepared, progress, rows, measured, about(status))
        out, size = prepared.plan.out, len(result.table.scores) + len(result.failures)
        if out is not None and (status == "complete" or size > _stored_rows(out)):
            result.save(out)
        elif out is not None and not rows:
            forget(out)
        return result

    status = "stopped"
    try:
        await _judge(prepared, retriers, progress, rows.append, about("partial"))
        async with _asking(prepared, progress, retriers):
            async for found in _measured(prepared, progress):
                refuse_twins([c.name for c in [*_columns(prepared, progress), *measured, *found.columns]])
                measured.extend(found.columns)
                rows.extend(map(measures.finite, found.rows))
                prepared.notes.extend(map(str, found.notes))
        progress.stage = "done"
        status = "complete"
    except asyncio.CancelledError:
        status = "interrupted"
        prepared.measured.stopped = True
        raise
    finally:
        result = finish(status)
        if prepared.recording is not None and prepared.plan.record is not None:
            prepared.recording.add_to(prepared.plan.record)
    return result


@asynccontextmanager
async def _asking(prepared: Prepared, progress: Progress, retriers: Mapping[str, Retrier]) -> AsyncIterator[None]:
    """While this lasts, metrics can ask the first of the judges."""
    if prepared.ask is None or not any(getattr(metric, "asks", False) for metric in prepared.metrics.values()):
        yield
        return
    made, (name, provider) = prepared.plan, next(iter(prepared.judges.items()))
    with ExitStack() as stack:
        cache: Cache = NoCache() if made.cache is False else DiskCache(made.cache or default_folder())
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


async def _measured(prepared: Prepared, progress: Progress) -> AsyncIterator[MetricResult]:
    """One metric after the other."""
    for name, metric in prepared.metrics.items():
        progress.stage = name
        prepared.measured(0, len(prepared.samples))
        score = partial(parts.score, metric, prepared.samples)
        found = await _beside(partial(score, workers=prepared.plan.workers, tell=prepared.measured))
        yield measures.checked(name, found, prepared.samples)


async def _stream(prepared: Prepared, progress: Progress) -> Result:
    """Metrics alone, over data that is not held in memory."""
    about = describe(prepared, progress, {})
    progress.stage = ", ".join(prepared.metrics)
    try:
        found, counts = await _beside(partial(streaming.measure, prepared))
    except asyncio.CancelledError:
        prepared.measured.stopped = True
        raise
    signatures = {column.name: column.signature for column in found.table.columns}
    result = Result(found.table, found.estimates, about("complete") | {"signatures": signatures, "streamed": counts})
    if prepared.plan.out is not None:
        result.save(prepared.plan.out)
    return result


def _result(
    prepared: Prepared, progress: Progress, rows: list[Row], measured: list[Column], info: dict[str, Any]
) -> Result:
    """All rows, and what they support."""
    columns = [*_columns(prepared, progress), *measured]
    plan = prepared.plan
    orders = plan.orders if isinstance(plan, RankPlan) else None
    judged = orders is None and bool(prepared.criteria)
    looks = drivers.looks(prepared.samples) if judged and info["status"] == "complete" else None
    found = conclude(prepared.samples, columns, rows, orders=orders, seed=plan.seed, looks=looks, people=plan.calibrate)
    info = info | {"signatures": {c.name: c.signature for c in columns}}
    if info["status"] == "complete" and prepared.criteria:
        asked = {suffix(prepared, name): _judgments(prepared, name) for name in prepared.judges}
        info |= {"prompts": prompts.sheets(asked, items.first(prepared.samples))}
    return Result(
        found.table,
        found.estimates,
        info,
        found.agreement,
        found.rankings,
        found.drivers,
        comparisons=found.comparisons,
        overall=found.overall,
        repeats=found.repeats,
        calibrated=found.calibrated,
        matrices=found.matrices,
        rated=people.of_run(found.table, info["model"], plan.seed) if looks is not None else (),
    )


def _columns(prepared: Prepared, progress: Progress) -> list[Column]:
    """The columns of the judgments: of a panel, each criterion's mean, then its judges'."""
    found: list[Column] = []
    for criterion in prepared.criteria:
        of_judges = [
            column(criterion, name, provider, prepared, progress.judges[name])
            for name, provider in prepared.judges.items()
        ]
        found += [panel.mean_column(of_judges), *of_judges] if len(of_judges) > 1 else of_judges
    return found


async def _judge(
    prepared: Prepared,
    retriers: Mapping[str, Retrier],
    progress: Progress,
    emit: Callable[[Row], None],
    info: dict[str, Any],
) -> None:
    """Every judge on every judgment, all judges at once."""
    made = prepared.plan
    if not prepared.judges or not prepared.criteria:
        return
    with ExitStack() as closing:
        cache: Cache = NoCache() if made.cache is False else DiskCache(made.cache or default_folder())
        closing.callback(cache.close)
        columns = _columns(prepared, progress)
        keep, flush = emit, lambda: None
        if made.out is not None:
            journal = Journal(made.out, Table(tuple(prepared.samples), tuple(columns), ()), info)
            closing.callback(journal.close)
            keep, flush = _both(emit, journal.add), journal.flush
        if prepared.pairs is not None:
            for tie in prepared.pairs.ties([c.name for c in columns if c.judge or len(prepared.judges) == 1]):
                keep(tie)
        runs = [
            Run(
                _judgments(prepared, name), provider, prepared.settings,
                cache=cache, retrier=retriers[name], emit=keep, flush=flush, counts=progress.judges[name],
                concurrency=made.max_concurrency, suffix=suffix(prepared, name), recording=prepared.recording,
            )
            for name, provider in prepared.judges.items()
        ]  # fmt: skip
        try:
            async with asyncio.TaskGroup() as group:
                for one in runs:
                    group.create_task(one())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None


def _both(emit: Callable[[Row], None], add: Callable[[Row], None]) -> Callable[[Row], None]:
    def keep(row: Row) -> None:
        emit(row)
        add(row)

    return keep


def _judgments(prepared: Prepared, judge: str) -> Sequence[Judgment]:
    criteria = [for_provider(criterion, prepared.judges[judge]) for criterion in prepared.criteria]
    if prepared.pairs is not None:
        return prepared.pairs.judgments(criteria)
    return [Judgment(sample, criterion) for sample in prepared.samples for criterion in criteria]


def _stored_rows(out: Path) -> int:
    """How many rows an earlier run left in this folder."""
    from pyarrow import ArrowException, parquet

    try:
        return int(parquet.read_metadata(out / SCORES).num_rows)
    except (OSError, ArrowException):
        return 0


async def _beside(work: Callable[[], T]) -> T:
    """Run in a thread that nobody waits for once this is cancelled: Ctrl-C does not sit out a slow metric."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(say: Callable[[Any], None], what: Any) -> None:
        if not done.cancelled():
            say(what)

    def in_thread() -> None:
        try:
            told: tuple[Callable[[Any], None], Any] = done.set_result, work()
        except BaseException as error:  # noqa: BLE001  (raised again where it is awaited)
            told = done.set_exception, error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, *told)

    threading.Thread(target=in_thread, name="judge-metric", daemon=True).start()
    return await done
