"""Run what was prepared; what was scored is kept however it ends.

Several runs that are one: asked one after the other, from one budget and within one deadline.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from judge.commands import judge_run, metric_setup, run_metadata
from judge.commands.preparation import PreparedRun, reject_duplicate_columns
from judge.commands.run_metadata import column_suffix, metadata_factory
from judge.config import Plan, RankPlan
from judge.core.errors import JudgeError, ProviderError, Reached, StorageError
from judge.core.messages import in_python, option
from judge.core.records import Column, Score
from judge.execution.budget import BudgetLedger
from judge.execution.pending import Row
from judge.execution.progress import JudgeProgress, Progress
from judge.metrics import MetricResult, parallel
from judge.report.views import items
from judge.results.result import Result
from judge.stats import human_agreement
from judge.stats.analyze import analyze
from judge.stats.score_drivers import looks as looks_of
from judge.table import SCORES, delete_journal

T = TypeVar("T")


async def run_pipeline(
    prepared: PreparedRun, progress: Progress | None = None, ledger: BudgetLedger | None = None
) -> Result:
    """Carry out a prepared run. What was scored is saved (with `out`) however the run ends.

    One cut short does not replace an earlier one that had more: its rows then stay in the journal beside that. `ledger`
    pays for several runs that have one budget.

    Raises what `runner.Run` raises, and CancelledError when it is interrupted.
    """
    progress = progress if progress is not None else Progress()
    progress.judges = {name: JudgeProgress() for name in prepared.judges}
    progress.measured = prepared.measured
    ledger = ledger if ledger is not None else BudgetLedger(prepared.plan.budget)
    return await (_held if prepared.rest is None else _stream)(prepared, progress, ledger)


async def _held(prepared: PreparedRun, progress: Progress, ledger: BudgetLedger) -> Result:
    """A run over samples that are all in memory."""
    retriers = judge_run.make_retriers(prepared, progress, ledger)
    about = metadata_factory(prepared, progress, ledger)
    rows: list[Row] = []
    measured: list[Column] = []
    kept: list[Score] = []
    if prepared.plan.retry_failed:
        earlier = judge_run.load_previous(prepared)
        judge_run.restore_counters(earlier, progress)
        kept = judge_run.reusable_scores(prepared, earlier, judge_run.columns(prepared, progress))

    def finish(status: str) -> Result:
        result = _result(prepared, progress, rows, measured, about(status))
        if prepared.plan.out is not None:
            _store(result, prepared.plan.out, whole=status == "complete", empty=not rows)
        return result

    status = "stopped"
    with _ending(prepared, progress):
        try:
            await judge_run.run_judges(prepared, retriers, progress, rows.append, about("partial"), kept=kept)
            if progress.stopping:
                raise asyncio.CancelledError
            async with judge_run.open_metric_client(prepared, progress, retriers):
                async for found in _measured(prepared, progress):
                    reject_duplicate_columns(
                        [c.name for c in [*judge_run.columns(prepared, progress), *measured, *found.columns]]
                    )
                    measured.extend(found.columns)
                    rows.extend(map(metric_setup.reject_non_finite, found.rows))
                    prepared.notes.extend(map(str, found.notes))
            progress.stage = "done"
            status = "complete"
        except asyncio.CancelledError:
            status = "interrupted"
            raise
        finally:
            result = finish(status)
    return result


@contextmanager
def _ending(prepared: PreparedRun, progress: Progress) -> Iterator[None]:
    """However this ends, metrics end too, the recording is closed, and what stopped it says how to go on."""
    try:
        yield
    except (asyncio.CancelledError, CancelledError):  # the latter from the thread of a run that is streamed
        prepared.measured.stopped = True
        raise asyncio.CancelledError from None
    except (Reached, ProviderError, StorageError) as error:
        _tell(error, prepared, progress)
        raise
    finally:
        if prepared.recording is not None:
            prepared.recording.close()


def _tell(error: JudgeError, prepared: PreparedRun, progress: Progress) -> None:
    """Add to what stopped a run what it has, and how to go on. Where it made nothing there is nothing to add."""
    if not progress.done and not isinstance(error, Reached):
        return
    out, streamed = prepared.plan.out, prepared.rest is not None
    said = (
        f"{progress.done:,} judgments are made"
        if streamed
        else f"{progress.done:,} of {progress.total:,} judgments are made"
    )
    said += f" and kept in {out}." if out is not None and progress.done and not streamed else "."
    said += f" A run this large writes {out} when it is done." if out is not None and streamed else ""
    if prepared.plan.cache is False:
        error.add_note(f"{said} Without a cache ({option('cache', False)}) a new run pays for all of them again.")
    else:
        again = "Make the same call again" if in_python() else "Start the same command again"
        error.add_note(f"{said} {again} to go on: what is in the cache is not asked or paid again.")


async def _measured(prepared: PreparedRun, progress: Progress) -> AsyncIterator[MetricResult]:
    """One metric after the other."""
    for name, metric in prepared.metrics.items():
        progress.stage = name
        prepared.measured(0, len(prepared.samples))
        score = partial(parallel.score_in_parallel, metric, prepared.samples)
        found = await _beside(partial(score, workers=prepared.plan.workers, tell=prepared.measured))
        yield metric_setup.validate_result(name, found, prepared.samples)


async def _stream(prepared: PreparedRun, progress: Progress, ledger: BudgetLedger) -> Result:
    """A run over data that is not held in memory."""
    retriers = judge_run.make_retriers(prepared, progress, ledger)
    about = metadata_factory(prepared, progress, ledger)
    if not retriers:
        progress.stage = ", ".join(prepared.metrics)
    with _ending(prepared, progress):
        async with judge_run.windowed_judge(prepared, retriers, progress) as judge:
            found, counts = await _beside(partial(judge_run.run_streamed, prepared, judge))
    result = Result(
        found.table, found.estimates, _about(prepared, about("complete"), found.table.columns, streamed=counts)
    )
    if prepared.plan.out is not None:
        result.save(prepared.plan.out, overwrite=True)
    return result


def _about(prepared: PreparedRun, info: dict[str, Any], columns: Sequence[Column], **more: Any) -> dict[str, Any]:
    """What there is to know of a run, with the prompts of a finished one."""
    info = info | {"signatures": {c.name: c.signature for c in columns}} | more
    if info["status"] == "complete" and prepared.criteria:
        asked = {column_suffix(prepared, name): judge_run.judgments(prepared, name) for name in prepared.judges}
        info |= {"prompts": run_metadata.prompt_skeletons(asked, items.first(prepared.samples))}
    return info


def _result(
    prepared: PreparedRun, progress: Progress, rows: list[Row], measured: list[Column], info: dict[str, Any]
) -> Result:
    """All rows, and what they support."""
    columns = [*judge_run.columns(prepared, progress), *measured]
    plan = prepared.plan
    orders = plan.orders if isinstance(plan, RankPlan) else None
    judged = orders is None and bool(prepared.criteria)
    looks = looks_of(prepared.samples) if judged and info["status"] == "complete" else None
    found = analyze(prepared.samples, columns, rows, orders=orders, seed=plan.seed, looks=looks, people=plan.calibrate)
    rated = human_agreement.of_run(found.table, info["model"], plan.seed) if looks is not None else ()
    return Result.of(found, _about(prepared, info, columns), rated)


def _store(result: Result, out: Path, *, whole: bool, empty: bool) -> None:
    """Save what is whole or has more rows than an earlier run left there; of an `empty` one no journal stays."""
    if whole or len(result.table.scores) + len(result.failures) > _stored_rows(out):
        result.save(out, overwrite=True)
    elif empty:
        delete_journal(out)


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

    threading.Thread(target=copy_context().run, args=(in_thread,), name="judge-metric", daemon=True).start()
    return await done


Showing = Callable[[str, PreparedRun], AbstractContextManager[Any]]
"""What shows one of the runs, by its name, while it goes."""


async def run_sequentially(
    runs: Mapping[str, PreparedRun], plan: Plan, progress: Progress | None, shown: Showing
) -> dict[str, Result]:
    """What each run brings; budget and deadline are those of the plan. Raises what `stages.run` raises."""
    progress = progress if progress is not None else Progress()
    ledger, results = BudgetLedger(plan.budget), dict[str, Result]()
    now = asyncio.get_running_loop().time
    until = None if plan.deadline is None else now() + plan.deadline
    for name, one in runs.items():
        if until is not None:
            one.plan = one.plan.model_copy(update={"deadline": until - now()})
        progress.stage = "judging"
        with shown(name, one):
            results[name] = await run_pipeline(one, progress, ledger)
    return results
