"""Carry out prepared runs, alone or several in turn. Scores are saved however a run ends."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from judge.config import RunConfig
from judge.core.errors import BudgetReached, ProviderError, Reached, StorageError
from judge.core.files import run_folder, unused_path
from judge.core.format import plural
from judge.core.messages import in_python, option
from judge.data.ratings import without_repeats
from judge.execution.budget import BudgetLedger
from judge.execution.judgments import Row
from judge.execution.progress import JudgeProgress, Progress
from judge.metrics.base import ModelError, ModelQuestion
from judge.results.result import Result, analyzed
from judge.results.run_info import RunInfo, Status
from judge.run import judge_run
from judge.run.measuring import Measuring
from judge.run.model_clients import SharedLimits, deadline_of
from judge.run.preparation import PreparedRun
from judge.run.reply_cache import answered_again
from judge.run.run_metadata import first_prompts, metadata_factory
from judge.table import SCORES


async def run_pipeline(
    prepared: PreparedRun,
    progress: Progress | None = None,
    ledger: BudgetLedger | None = None,
) -> Result:
    """Carry out a prepared run. With `out`, what was scored is saved however the run ends.

    A run cut short does not replace an earlier one that had more rows. Pass a `ledger` if runs
    share a budget.

    Raises StorageError if another run is writing to `out`, what `Judging` raises, and
    CancelledError when it is interrupted.
    """
    out = prepared.config.out
    with nullcontext() if out is None else run_folder(out):
        return await _carry_out(prepared, progress, ledger)


async def _carry_out(
    prepared: PreparedRun,
    progress: Progress | None,
    ledger: BudgetLedger | None,
) -> Result:
    progress = progress if progress is not None else Progress()
    progress.judges = {judge_name: JudgeProgress() for judge_name in prepared.judges}
    progress.measured = prepared.measured
    progress.notes = []
    progress.unstored = None
    ledger = ledger if ledger is not None else BudgetLedger(prepared.config.budget)
    limits = SharedLimits(ledger, deadline_of(prepared.config))
    about = metadata_factory(prepared, progress, ledger)
    unwritten = judge_run.unwritten_rows(prepared, progress)
    rows: list[Row] = [*unwritten, *prepared.given_scores.rows]
    measuring = Measuring(prepared, progress)
    # Metrics that ask no judge run in a thread while the judges wait for replies.
    measuring.start()
    status: Status = "stopped"
    with _closing_run(prepared, progress, ledger):
        try:
            async with judge_run.open_judges(prepared, progress, limits) as clients:
                await judge_run.run_judges(prepared, clients, progress, rows)
                # After the first Ctrl-C, the judges return once no reply is in flight.
                if progress.stopping:
                    raise asyncio.CancelledError
                async with judge_run.let_metrics_ask(prepared, clients):
                    await measuring.finish(judge_run.columns(prepared, progress))
            progress.stage = "done"
            status = "complete"
        except asyncio.CancelledError:
            status = "interrupted"
            raise
        except Reached:
            status = "limit"
            raise
        finally:
            await measuring.stop(complete=status == "complete")
            judged = judge_run.columns(prepared, progress)
            columns = [*judged, *measuring.columns]
            info = _complete_info(prepared, about(status))
            all_rows = [*rows, *measuring.rows]
            result = analyzed(prepared.samples, columns, all_rows, info)
            if prepared.config.out is not None:
                complete = status == "complete"
                progress.saved = _save_result(
                    result, prepared.config, complete=complete
                )
    return result


def _save_result(result: Result, config: RunConfig, *, complete: bool) -> Path | None:
    """Save a result, unless a run cut short would replace an earlier one that has more rows.

    Return the folder that holds it, None if it was not saved. Raises StorageError if the output
    folder cannot be written.
    """
    from pyarrow import ArrowException, parquet

    out = config.out
    if out is None:
        return None
    if not complete:
        saved_rows = 0
        # Without a readable table there is nothing to lose.
        with suppress(OSError, ArrowException):
            saved_rows = parquet.read_metadata(out / SCORES).num_rows
        if len(result.table.scores) + len(result.failures) <= saved_rows:
            return None
    try:
        result.save(out, overwrite=True)
    except StorageError as error:
        rescued = _rescue(result, out, paid_again=not config.replies_kept_in)
        raise _NotSaved(str(error), rescued) from error
    return out


class _NotSaved(StorageError):
    """The output folder of a run cannot be written.

    `rescued` is the folder that has the data instead, None if no folder can.
    """

    def __init__(self, message: str, rescued: Path | None) -> None:
        super().__init__(message)
        self.rescued = rescued


def _rescue(result: Result, out: Path, *, paid_again: bool) -> Path | None:
    """Write the data of a result into the first folder that takes them.

    Its pages, which are larger, are left out. Other folders than `out` are only tried for what
    would have to be paid again.
    """
    folders: list[Path] = [out]
    if paid_again:
        beside = out.with_name(f"{out.name}.rescued")
        folders.append(unused_path(beside))
        in_temporary_folder = Path(gettempdir()) / f"{out.absolute().name}.rescued"
        folders.append(unused_path(in_temporary_folder))
    for folder in folders:
        existed = folder.exists()
        try:
            result.save(folder, pages=False, overwrite=folder == out)
        except StorageError:
            if not existed:
                shutil.rmtree(folder, ignore_errors=True)
        else:
            return folder
    return None


@contextmanager
def _closing_run(
    prepared: PreparedRun,
    progress: Progress,
    ledger: BudgetLedger,
) -> Iterator[None]:
    """Stop the metrics and close the recording however the run ends.

    An error says how to resume.
    """
    recording = prepared.recording if prepared.recording is not None else nullcontext()
    try:
        # Closed before the notes are added: its own error needs them, too.
        with recording:
            yield
    except asyncio.CancelledError:
        prepared.measured.stopped = True
        raise
    except (Reached, ProviderError, StorageError) as error:
        if isinstance(error, _NotSaved):
            progress.saved = error.rescued
        nothing_paid = not progress.done and progress.unstored is None
        if nothing_paid and not isinstance(error, Reached):
            # Nothing was paid for, so there is nothing to resume.
            raise
        share = f"{progress.done:,} of {progress.total:,}"
        done = f"{share} {progress.unit}s are done"
        if progress.done and progress.saved is not None:
            done += f" and kept in {progress.saved}"
        elif isinstance(error, _NotSaved):
            done += f", but {prepared.config.out} does not hold them"
        add_resume_note(error, f"{done}.", prepared.config, progress, ledger)
        raise


def add_resume_note(
    error: Exception,
    done: str,
    config: RunConfig,
    progress: Progress,
    ledger: BudgetLedger,
) -> None:
    """Add to an error what is `done`, how to resume, and a budget that should be enough."""
    if config.replay is not None:
        # The same recording would stop the run again.
        error.add_note(done)
    elif not config.replies_kept_in:
        no_cache = option("cache", False)
        error.add_note(
            f"{done} Without a cache ({no_cache}), a new run pays for all of them again."
        )
    else:
        again = "Run the same command again"
        if in_python():
            again = "Make the same call again"
        advice = answered_again(config, progress.unstored)
        error.add_note(f"{done} {again} to resume. {advice}")
    if isinstance(error, BudgetReached):
        # Without a cache, a new run pays for all of them.
        remaining = progress.total
        if config.replies_kept_in:
            remaining -= progress.done
        if not remaining:
            return
        enough = ledger.enough_for(remaining, progress.done - progress.cached)
        budget = option("budget", enough.as_option)
        remaining_work = plural(remaining, progress.unit)
        error.add_note(f"{budget} should be enough for {remaining_work}.")


def _complete_info(prepared: PreparedRun, info: RunInfo) -> RunInfo:
    """Add people's preferences to what is known of a run, and the first prompt of each column."""
    if prepared.pairs is not None:
        info = replace(info, preferences=without_repeats(prepared.preferences))
    if not prepared.criteria:
        return info
    judgments_by_judge = {}
    for judge_name in prepared.judges:
        judgments_by_judge[judge_name] = judge_run.judgments(prepared, judge_name)
    return replace(info, prompts=first_prompts(prepared, judgments_by_judge))


Display = Callable[[str, PreparedRun], AbstractContextManager[Any]]
"""Shows a run, given its name, while the context is open."""


class Runs:
    """Makes runs one after the other, within one budget and one deadline.

    Raises the errors of `run_pipeline`.
    """

    def __init__(
        self,
        config: RunConfig,
        progress: Progress | None,
        display: Display,
    ) -> None:
        self._progress = progress if progress is not None else Progress()
        self._display = display
        self._ledger = BudgetLedger(config.budget)
        self._deadline = deadline_of(config)

    async def run(self, run_name: str, prepared: PreparedRun) -> Result:
        """Make a run inside its display."""
        prepared = self._limited(prepared)
        self._progress.stage = "judging"
        with self._display(run_name, prepared):
            return await run_pipeline(prepared, self._progress, self._ledger)

    async def ask(
        self,
        prepared: PreparedRun,
        questions: Sequence[ModelQuestion],
    ) -> list[str | ModelError]:
        """Ask a run's judge some questions, and return the result of `read` for each reply.

        Nothing is judged.
        """
        prepared = self._limited(prepared)
        self._progress.judges = {
            judge_name: JudgeProgress() for judge_name in prepared.judges
        }
        with _closing_run(prepared, self._progress, self._ledger):
            limits = SharedLimits(self._ledger, deadline_of(prepared.config))
            opened = judge_run.open_judges(prepared, self._progress, limits)
            async with opened as clients:
                client = judge_run.question_client(prepared, clients)
                return await client.ask(questions)

    async def run_all(self, runs: Mapping[str, PreparedRun]) -> dict[str, Result]:
        results: dict[str, Result] = {}
        for run_name, prepared in runs.items():
            results[run_name] = await self.run(run_name, prepared)
        return results

    def _limited(self, prepared: PreparedRun) -> PreparedRun:
        """Return the run with what is left of the time."""
        if self._deadline is None:
            return prepared
        now = asyncio.get_running_loop().time()
        return prepared.with_deadline(self._deadline - now)
