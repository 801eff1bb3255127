"""Ask the judges of a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from judge.core.errors import ProviderError, Unrecorded
from judge.core.format import first_names, judgment_name, one_line, plural
from judge.core.records import Column, Criterion, Failure
from judge.execution.judging import Judging
from judge.execution.judgments import Judgment, Row, by_question
from judge.execution.progress import Progress
from judge.execution.questions import QuestionClient, ThreadClient
from judge.execution.reply_client import gather
from judge.results.result import Result
from judge.run.model_clients import ModelClient, SharedLimits, open_client
from judge.run.preparation import PreparedRun, criterion_for, is_wanted
from judge.run.reply_cache import open_replies
from judge.run.run_metadata import column_suffix, signed_column
from judge.scoring import checklist
from judge.stats.panels import panel_column


def columns(prepared: PreparedRun, progress: Progress) -> list[Column]:
    """Return the columns of the judgments, those that the data contain last.

    For a panel, they are each criterion's combined value and then its judges.
    """
    columns_of_run: list[Column] = []
    for criterion in prepared.criteria:
        of_judges = []
        for judge_name, provider in prepared.judges.items():
            counts = progress.judges[judge_name]
            column = signed_column(criterion, judge_name, provider, prepared, counts)
            of_judges.append(column)
        if len(of_judges) > 1:
            columns_of_run.append(panel_column(of_judges))
        columns_of_run += of_judges
    return [*columns_of_run, *prepared.given_scores.columns]


def unwritten_rows(prepared: PreparedRun, progress: Progress) -> list[Row]:
    """Return the failures of the texts that could not be generated, in every column."""
    names = [column.name for column in columns(prepared, progress)]
    rows: list[Row] = []
    for failure in prepared.unwritten:
        rows += [replace(failure, column=column_name) for column_name in names]
    return rows


@asynccontextmanager
async def open_judges(
    prepared: PreparedRun,
    progress: Progress,
    limits: SharedLimits,
) -> AsyncIterator[dict[str, ModelClient]]:
    """Open the client of each judge by its name. Raises ConfigError and StorageError."""
    if not prepared.judges:
        yield {}
        return
    async with AsyncExitStack() as stack:
        replies = open_replies(prepared.config, prepared.recording, progress)
        store = stack.enter_context(replies)
        clients = {}
        for judge_name, provider in prepared.judges.items():
            client = open_client(
                prepared.config,
                prepared.opened[judge_name].config,
                provider,
                counts=progress.judges[judge_name],
                store=store,
                limits=limits,
            )
            clients[judge_name] = await stack.enter_async_context(client)
        yield clients


async def run_judges(
    prepared: PreparedRun,
    clients: Mapping[str, ModelClient],
    progress: Progress,
    rows: list[Row],
) -> None:
    """Run all judges concurrently on every judgment, and add to `rows`."""
    if not prepared.judges or not prepared.criteria:
        return
    if prepared.pairs is not None:
        rows += _ties(prepared, progress)
    await gather(
        _run_judge(prepared, judge_name, client, rows)
        for judge_name, client in clients.items()
    )


def _ties(prepared: PreparedRun, progress: Progress) -> list[Row]:
    """Return the rows of the pairs of equal texts, which no judge is asked about."""
    if prepared.pairs is None:
        return []
    # The combined column of a panel has no rows of its own.
    criterion_of_column = {}
    for column in columns(prepared, progress):
        if column.judge or len(prepared.judges) == 1:
            criterion_of_column[column.name] = column.criterion
    ties = list(prepared.pairs.ties([*criterion_of_column]))
    wanted_texts = prepared.wanted_texts
    if wanted_texts is None:
        return list(ties)
    wanted_ties: list[Row] = []
    for tie in ties:
        criterion = criterion_of_column[tie.column]
        if tie.key in wanted_texts.get(criterion, ()):
            wanted_ties.append(tie)
    return wanted_ties


async def _run_judge(
    prepared: PreparedRun,
    judge_name: str,
    model: ModelClient,
    rows: list[Row],
) -> None:
    """Let one judge make all its judgments."""
    suffix = column_suffix(prepared, judge_name)
    own_judgments = judgments(prepared, judge_name)
    texts = ((judgment.criterion, judgment.sample) for judgment in own_judgments)
    judge_criteria = _criteria_of_judge(prepared, judge_name)
    emit = checklist.collect(texts, suffix, rows.append)
    judging = Judging(
        model.client,
        model.provider,
        prepared.opened[judge_name].settings,
        judge_criteria,
        emit=emit,
        counts=model.counts,
        suffix=suffix,
        retry_failed=prepared.config.retry_failed,
        gathers=model.gathers,
    )
    try:
        await judging.judge_all(own_judgments)
    except ProviderError as error:
        if len(prepared.judges) > 1:
            error.add_note(f"The judge of the panel with this problem: {judge_name}.")
        raise


def _criteria_of_judge(prepared: PreparedRun, judge: str) -> list[Criterion]:
    provider = prepared.judges[judge]
    return [criterion_for(criterion, provider) for criterion in prepared.criteria]


def count_judgments(runs: Iterable[PreparedRun]) -> int:
    """Count what all judges of these runs are asked."""
    n_judgments = 0
    for run in runs:
        for judge_name in run.judges:
            n_judgments += len(judgments(run, judge_name))
    return n_judgments


def judgments(prepared: PreparedRun, judge: str) -> Sequence[Judgment]:
    """Return the judgments of one judge: of the wanted texts, or of the wanted pairs."""
    criteria = _criteria_of_judge(prepared, judge)
    if prepared.pairs is not None:
        all_judgments = prepared.pairs.judgments(criteria)
        return [
            judgment
            for judgment in all_judgments
            if is_wanted(prepared, judgment.sample, judgment.criterion)
        ]
    single_judgments: list[Judgment] = []
    for sample in prepared.samples:
        single_judgments += [
            Judgment(sample, criterion)
            for criterion in criteria
            if is_wanted(prepared, sample, criterion)
        ]
    return list(by_question(single_judgments))


def question_client(
    prepared: PreparedRun, clients: Mapping[str, ModelClient]
) -> QuestionClient:
    """Return the client that asks the first judge free questions."""
    name, model = next(iter(clients.items()))
    return QuestionClient(
        model.client,
        model.provider,
        model.counts,
        prepared.opened[name].settings,
        retry_failed=prepared.config.retry_failed,
        gathers=model.gathers,
    )


@asynccontextmanager
async def let_metrics_ask(
    prepared: PreparedRun, clients: Mapping[str, ModelClient]
) -> AsyncIterator[None]:
    """Let metrics ask the first judge, from their own thread, while this context is open."""
    any_metric_asks = any(metric.asks for metric in prepared.metrics.values())
    if prepared.ask is None or not any_metric_asks:
        yield
        return
    async with question_client(prepared, clients) as client:
        prepared.ask.to = ThreadClient(client, asyncio.get_running_loop())
        try:
            yield
        except asyncio.CancelledError:
            # The metrics run in a thread, which cannot be cancelled, only told to stop.
            prepared.measured.stopped = True
            raise


CasesOf = Callable[[str, tuple[str, str]], Sequence[str]]
"""Returns the cases of a suite that need the score of a text by a criterion."""


def require_all_recorded(
    *results: Result | None, cases_of: CasesOf = lambda *_: ()
) -> None:
    """Raise Unrecorded if a recording lacks replies.

    Such judgments must not count as failed ones.
    """
    missing: list[Failure] = []
    cases: dict[str, None] = {}
    n_texts = 0
    for result in results:
        if result is None:
            continue
        n_texts += len(result.table.samples)
        criterion_of_column = {
            column.name: column.criterion for column in result.table.columns
        }
        for failure in result.failures:
            if failure.error == Unrecorded.__name__:
                missing.append(failure)
                criterion = criterion_of_column[failure.column]
                text = (failure.item, failure.system)
                cases |= dict.fromkeys(cases_of(criterion, text))
    if not missing:
        return
    n_changed = len({(failure.item, failure.system) for failure in missing})
    names = [
        judgment_name(failure.item, failure.system, failure.column)
        for failure in missing
    ]
    texts = plural(n_texts, "text")
    message = f"The recording lacks {n_changed} of {texts}: {first_names(names)}."
    if cases:
        message += f"\nCases that need them: {first_names(map(one_line, cases))}."
    if len(missing) > 1:
        message += f"\nThe first, {names[0]}:"
    raise Unrecorded(f"{message}\n{missing[0].message}")
