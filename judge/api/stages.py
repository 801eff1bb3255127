"""Run what was prepared; what was scored is kept however it ends."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from judge.api import panel
from judge.api.describe import column, describe
from judge.api.prepare import Prepared, asked, refuse_twins
from judge.cache import Cache, DiskCache, NoCache, default_folder
from judge.config import RankPlan
from judge.metrics import MetricResult
from judge.progress import Counts, Progress
from judge.records import Column, Estimate, Failure, Score
from judge.report import Result
from judge.retry import Policy, Retrier
from judge.runner import Judgment, Row, Run
from judge.stats.agreement import alpha
from judge.stats.rank import rankings
from judge.stats.resample import means
from judge.table import SCORES, Journal, Table, forget


async def run(prepared: Prepared, progress: Progress | None = None) -> Result:
    """Carry out a prepared run. What was scored is saved (with `out`) however the run ends.

    One cut short does not replace an earlier one that had more: its rows then stay in the journal beside that.

    Raises what `runner.Run` raises, and CancelledError when it is interrupted.
    """
    progress = progress if progress is not None else Progress()
    progress.judges = {name: Counts() for name in prepared.judges}
    retriers = {name: Retrier(Policy(attempts=prepared.plan.retries + 1)) for name in prepared.judges}
    about = describe(prepared, progress, retriers)
    rows: list[Row] = []
    measured: list[Column] = []

    def finish(status: str) -> Result:
        result = _result(prepared, progress, rows, measured, about(status))
        out = prepared.plan.out
        if out is not None and (status == "complete" or len(rows) > _stored_rows(out)):
            result.save(out)
        elif out is not None and not rows:
            forget(out)
        return result

    status = "stopped"
    try:
        await _judge(prepared, retriers, progress, rows.append, about("partial"))
        for name, metric in prepared.metrics.items():
            progress.stage = name
            found = await _beside(partial(metric.score, prepared.samples))
            refuse_twins([*_names(prepared), *(c.name for c in [*measured, *found.columns])])
            measured.extend(found.columns)
            rows.extend(map(_finite, found.rows))
        progress.stage = "done"
        status = "complete"
    except asyncio.CancelledError:
        status = "interrupted"
        raise
    finally:
        result = finish(status)
    return result


def _result(
    prepared: Prepared, progress: Progress, rows: list[Row], measured: list[Column], info: dict[str, Any]
) -> Result:
    """The table of all rows and what it supports: means, or the rankings of comparisons."""
    judged = _columns(prepared, progress)
    if len(prepared.judges) > 1:
        for criterion in prepared.criteria:
            rows = rows + panel.means(criterion.name, _by_judge(prepared, criterion.name), rows)
    columns = [*judged, *measured]
    scores = tuple(row for row in rows if isinstance(row, Score))
    failures = tuple(row for row in rows if isinstance(row, Failure))
    table = Table(tuple(prepared.samples), tuple(columns), scores, failures)
    info = info | {"signatures": {c.name: c.signature for c in columns}}
    plan = prepared.plan
    if isinstance(plan, RankPlan):
        names = [c.name for c in columns]
        ranked = rankings(scores, failures, table.systems, names, orders=plan.orders, seed=plan.seed)
        return Result(table, {}, info, rankings=ranked)
    return Result(table, means(table, seed=plan.seed), info, agreement=_agreement(prepared, table))


def _agreement(prepared: Prepared, table: Table) -> dict[str, Estimate]:
    """How far the judges of a panel agree, by criterion."""
    if len(prepared.judges) < 2:
        return {}
    found = {
        c.name: alpha(table, list(_by_judge(prepared, c.name)), seed=prepared.plan.seed) for c in prepared.criteria
    }
    return {name: estimate for name, estimate in found.items() if estimate is not None}


def _columns(prepared: Prepared, progress: Progress) -> list[Column]:
    """The columns of the judgments: each criterion's panel mean, where there is a panel, then its judges'."""
    suffixes = panel.suffixes(list(prepared.judges))
    found: list[Column] = []
    for criterion in prepared.criteria:
        by_judge = [
            column(criterion, provider, prepared, progress.judges[name], suffixes[name])
            for name, provider in prepared.judges.items()
        ]
        found += [panel.mean_column(criterion, by_judge), *by_judge] if len(by_judge) > 1 else by_judge
    return found


def _by_judge(prepared: Prepared, criterion: str) -> dict[str, str]:
    """The judges of a criterion by the names of their columns."""
    return {criterion + suffix: name for name, suffix in panel.suffixes(list(prepared.judges)).items()}


def _names(prepared: Prepared) -> list[str]:
    of_judges = [name for c in prepared.criteria for name in _by_judge(prepared, c.name)]
    return list(dict.fromkeys([*(c.name for c in prepared.criteria), *of_judges]))


async def _judge(
    prepared: Prepared,
    retriers: Mapping[str, Retrier],
    progress: Progress,
    emit: Callable[[Row], None],
    info: dict[str, Any],
) -> None:
    """Every judge on every judgment, all judges at once."""
    made = prepared.plan
    if not prepared.judges:
        return
    suffixes = panel.suffixes(list(prepared.judges))
    with ExitStack() as closing:
        cache: Cache = NoCache() if made.cache is False else DiskCache(made.cache or default_folder())
        closing.callback(cache.close)
        keep, flush = emit, lambda: None
        if made.out is not None:
            start = Table(tuple(prepared.samples), tuple(_columns(prepared, progress)), ())
            journal = Journal(made.out, start, info)
            closing.callback(journal.close)
            flush = journal.flush

            def keep(row: Row) -> None:
                emit(row)
                journal.add(row)

        if prepared.pairs is not None:
            for tie in prepared.pairs.ties(
                [c.name + suffix for c in prepared.criteria for suffix in suffixes.values()]
            ):
                keep(tie)
        runs = [
            Run(
                _judgments(prepared, name), provider, prepared.settings,
                cache=cache, retrier=retriers[name], emit=keep, flush=flush, counts=progress.judges[name],
                concurrency=made.max_concurrency, suffix=suffixes[name],
            )
            for name, provider in prepared.judges.items()
        ]  # fmt: skip
        try:
            async with asyncio.TaskGroup() as group:
                for one in runs:
                    group.create_task(one())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None


def _judgments(prepared: Prepared, judge: str) -> Sequence[Judgment]:
    criteria = [asked(criterion, prepared.judges[judge]) for criterion in prepared.criteria]
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


def _finite(row: Row) -> Row:
    """The row; a plug-in's NaN or infinity is not a number but a failure."""
    if isinstance(row, Failure) or math.isfinite(row.value):
        return row
    message = f"the metric returned {row.value}"
    return Failure(row.item, row.system, row.column, "metric", "NotANumber", message)


async def _beside(work: Callable[[], MetricResult]) -> MetricResult:
    """Run in a thread that nobody waits for once this is cancelled: Ctrl-C does not sit out a slow metric."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[MetricResult] = loop.create_future()

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
