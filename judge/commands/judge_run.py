"""Ask the judges of a run: all samples at once, in windows if the data exceeds memory, or only what failed before."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice, tee
from typing import Any, ParamSpec

from judge.cache import Cache, open_cache
from judge.commands import until_decided
from judge.commands.metric_setup import reject_non_finite, validate_result
from judge.commands.preparation import PreparedRun, criterion_for, engine_context, is_wanted, reject_duplicate_columns
from judge.commands.run_metadata import column_suffix, signed_column
from judge.config import RunConfig
from judge.core.errors import ConfigError, ProviderError, StorageError, Unrecorded
from judge.core.format import one_line, plural
from judge.core.messages import option
from judge.core.records import IDENTICAL, Column, Criterion, Estimate, Failure, Sample, Score, whole
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
from judge.results.result import Result, load
from judge.scoring import checklist
from judge.scoring.strategies import ModelTraits
from judge.stats import analyze
from judge.stats.analyze import Analysis, pass_columns
from judge.stats.bootstrap import mean_interval
from judge.table import JOURNAL, RUN, Journal, StreamingWriter, Table, split_rows

SHOWN = 2_000
"""Most texts that the reports of a streamed run show; the files have all of them."""
_WINDOW = 20_000
"""Texts that are judged at once in a streamed run."""
_NOTE = (
    "{texts:,} texts were {done} as they were read: means are over all, the first {shown:,} are shown, and differences "
    "between systems are not tested (of fewer texts they are: --limit)."
)
P = ParamSpec("P")


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


Judge = Callable[[Sequence[Sample]], MetricResult]
"""Judge texts: return a row for each text and criterion, in their order. Called in a thread."""


def run_streamed(prepared: PreparedRun, judge: Judge | None = None) -> tuple[Analysis, dict[str, Any]]:
    """Judge and measure `prepared.samples` and then `prepared.rest`, and write the table's files into `plan.out`.

    Return the table of the first texts with the means of all, and the counts of all (`streamed` in run.json).
    Intervals are normal ones; at this size they equal a bootstrap's. Memory does not grow with the data, except for
    the check that no item and system come twice. An error leaves no files.
    """
    seen = Seen()
    names = ["the judge"] * bool(judge) + list(prepared.metrics)
    results_by_metric: list[list[MetricResult]] = [[] for _ in names]
    writer = StreamingWriter(prepared.config.out) if prepared.config.out is not None else None
    try:
        for samples, results in _score_parts(prepared, judge):
            for name, result in zip(names, results, strict=True):
                validate_result(name, result, samples)
            rows = [
                reject_non_finite(row)
                for place in range(len(samples))  # table order: all rows of a sample stand together
                for result in results
                for row in result.rows[place * len(result.columns) : (place + 1) * len(result.columns)]
            ]
            seen.add(samples, rows, [column for result in results for column in result.columns])
            for parts_of_metric, result in zip(results_by_metric, results, strict=True):
                parts_of_metric.append(replace(result, rows=()))
            if writer:
                writer.add(samples, rows)
            prepared.measured(seen.texts.total(), 0)
        merged = [parallel.merge_results(results) for results in results_by_metric]
        columns = [column for result in merged for column in result.columns]
        reject_duplicate_columns([column.name for column in columns])
        if writer:
            writer.close(columns)
    except BaseException:
        if writer:
            writer.discard()
        raise
    prepared.notes.extend(str(note) for result in merged for note in result.notes)
    prepared.notes.append(
        _NOTE.format(texts=seen.texts.total(), shown=len(seen.samples), done="judged" if judge else "measured")
    )
    prepared.data["rows"] = seen.texts.total()
    return seen.analysis(columns), seen.counts()


def _score_parts(
    prepared: PreparedRun, judge: Judge | None
) -> Iterator[tuple[Sequence[Sample], Sequence[MetricResult]]]:
    """Yield parts of the samples, each with the result of the judge, if any, and of every metric."""
    samples = chain(prepared.samples, prepared.rest or ())
    each, copy = tee(_judge_in_windows(samples, judge))
    with parallel.worker_pool(list(prepared.metrics.values()), prepared.config.workers) as scored:
        for (part, judged), measured in zip(each, scored(part for part, _ in copy), strict=True):
            yield part, [*judged, *measured]


def _judge_in_windows(
    samples: Iterator[Sample], judge: Judge | None
) -> Iterator[tuple[Sequence[Sample], list[MetricResult]]]:
    """Yield parts of the samples, each with the judge's result. A window of many parts is judged at once."""
    for window in iter(lambda: list(islice(samples, _WINDOW if judge else parallel.PART)), []):
        whole = judge(window) if judge else None
        for first in range(0, len(window), parallel.PART):
            part = window[first : first + parallel.PART]
            if whole is None:
                yield part, []
                continue
            size = len(whole.columns)
            yield part, [replace(whole, rows=whole.rows[first * size : (first + len(part)) * size])]


# Going on with an earlier run: --retry-failed

_OPTION = "retry_failed"


def load_previous(prepared: PreparedRun) -> Result | None:
    """Load the run in the plan's folder; without a folder, return None, because the cache has the earlier replies.

    Raises ConfigError if the folder has no run, StorageError if it cannot be read.
    """
    out = prepared.config.out
    if out is None and prepared.config.cache is not False:
        return None
    if out is None:
        raise ConfigError(
            f"{option(_OPTION)}: without a cache, name the folder of the run to go on with: {option('out', 'DIR')}"
        )
    if not any((out / name).exists() for name in (RUN, JOURNAL)):
        raise ConfigError(
            f"{option(_OPTION)}: {out} holds no run; {option('out')} names the folder of the one to go on with"
        )
    if not (prepared.judges and prepared.criteria):
        raise ConfigError(f"{option(_OPTION)}: this run has no judge, so no judgment can be repeated")
    return load(out)


def reusable_scores(prepared: PreparedRun, earlier: Result, columns: Sequence[Column]) -> list[Score]:
    """Return the judges' scores of an earlier run. Raises ConfigError if its texts or columns differ."""
    where = str(prepared.config.out)
    signatures = {column.name: column.signature for column in columns}
    for column in earlier.table.columns:
        if column.kind != "criterion":
            continue
        if not column.signature:
            raise StorageError(f"{_OPTION}: the settings of the run in {where} are unknown; run without this option")
        if column.name not in signatures:
            raise ConfigError(f"{_OPTION}: the run in {where} has a column {column.name!r}, and this one would not")
        if signatures[column.name] != column.signature:
            before, after = column.signature.split("|"), signatures[column.name].split("|")
            removed = [part for part in before if part not in after]
            added = [part for part in after if part not in before]
            raise ConfigError(
                f"{_OPTION}: {column.name} had other settings in {where}: "
                f"{', '.join(removed) or 'nothing'} then, {', '.join(added) or 'nothing'} now. "
                "Name another folder, or run without"
            )
    current_samples: Mapping[tuple[str, str], Sample] = {
        (whole(sample.item), whole(sample.system)): sample for sample in prepared.samples
    }
    for earlier_sample in earlier.table.samples:
        current = current_samples.get(earlier_sample.key)
        name = f"item {earlier_sample.item}, system {earlier_sample.system}"
        if current is None:
            raise ConfigError(f"{_OPTION}: the run in {where} is of other data: {name} is not in this run's")
        if _text(earlier_sample) != _text(current):
            raise ConfigError(f"{_OPTION}: the run in {where} is of other data: the text of {name} has changed")
    judge_columns = {column.name for column in columns if column.judge or len(prepared.judges) == 1}
    scores = [s for s in earlier.table.scores if s.column in judge_columns and s.provenance.method != IDENTICAL]
    failed = sum(failure.column in judge_columns for failure in earlier.failures)
    prepared.notes.append(
        f"{len(scores):,} scores are those of an earlier run in this folder; its {failed:,} failed judgments were "
        "asked again. Requests, tokens and cost are of the last run alone."
    )
    return scores


def restore_counters(earlier: Result, progress: Progress) -> None:
    """Carry over what an earlier run found out about the judges: the signatures depend on it."""
    judges = earlier.info.get("judges") or {}
    for name, counts in progress.judges.items():
        counts.unmet.update(dict.fromkeys(judges.get(name, {}).get("unmet") or (), 0))
        counts.draws = judges.get(name, {}).get("draws", 0)


def remaining_judgments(judgments: Iterable[Judgment], earlier_scores: Iterable[Score], suffix: str) -> list[Judgment]:
    """Return the judgments of one judge that have no score yet; `suffix` ends the names of its columns."""
    scored = {(score.item, score.system, score.rival, score.column) for score in earlier_scores}
    return [
        judgment
        for judgment in judgments
        if (
            judgment.sample.item,
            judgment.sample.system,
            judgment.rival.system if judgment.rival else "",
            checklist.whole(judgment.criterion).name + suffix,
        )
        not in scored
    ]


def _text(sample: Sample) -> tuple[str | None, ...]:
    source = None if sample.source is None else whole(sample.source)
    return (whole(sample.output), source, *map(whole, sample.references))


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


async def run_judges(
    prepared: PreparedRun,
    retriers: Mapping[str, Retrier],
    progress: Progress,
    rows: list[Row],
    info: dict[str, Any],
    *,
    earlier_scores: Sequence[Score],
) -> None:
    """Run all judges concurrently on every judgment that `earlier_scores` lacks, and add to `rows`.

    If items are asked until the systems are decided, `prepared` is left with those that were asked.
    """
    config = prepared.config
    if not prepared.judges or not prepared.criteria:
        return
    async with AsyncExitStack() as closing:
        cache: Cache = _cache(prepared)
        closing.callback(cache.close)
        table_columns = columns(prepared, progress)
        keep, flush = rows.append, prepared.recording.flush if prepared.recording else lambda: None
        if config.out is not None:
            journal = Journal(config.out, Table(tuple(prepared.samples), tuple(table_columns), ()), info)
            closing.callback(journal.close)
            keep, flush = _in_turn(rows.append, journal.add), _in_turn(journal.flush, flush)
        for score in earlier_scores:
            keep(score)
        if prepared.pairs is not None:
            judge_columns = {c.name: c.criterion for c in table_columns if c.judge or len(prepared.judges) == 1}
            texts = prepared.wanted_texts
            for tie in prepared.pairs.ties([*judge_columns]):
                if texts is None or tie.key in texts.get(judge_columns[tie.column], ()):
                    keep(tie)
        asked: dict[str, tuple[Engine, ModelTraits]] = {}
        scored = {score.column for score in earlier_scores}
        for name, retrier in retriers.items():
            for criterion in prepared.criteria:
                over = criterion.name + column_suffix(prepared, name) in scored
                for part in checklist.parts(criterion):
                    retrier.counts.trials[part.name].over = over
            engine = await closing.enter_async_context(open_engine(config, prepared.judges[name], retrier))
            asked[name] = engine, ModelTraits()
        for batch in until_decided.batches(prepared, table_columns, rows):
            runs = {}
            for name, (engine, traits) in asked.items():
                remaining = remaining_judgments(judgments(batch, name), earlier_scores, column_suffix(prepared, name))
                runs[name] = _run(
                    batch, name, remaining, retriers[name], engine, cache=cache, emit=keep, flush=flush, traits=traits
                )
            try:
                async with asyncio.TaskGroup() as group:
                    for name, judge_run in runs.items():
                        group.create_task(_naming_judge(name, judge_run) if len(runs) > 1 else judge_run())
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None
            if progress.stopping:
                break


async def _naming_judge(judge: str, run: JudgeRun) -> None:
    """Run one judge of a panel, and name it in an error that stops all of them."""
    try:
        await run()
    except ProviderError as error:
        error.add_note(f"It is {judge} of the panel that cannot be asked.")
        raise


@asynccontextmanager
async def windowed_judge(
    prepared: PreparedRun, retriers: Mapping[str, Retrier], progress: Progress
) -> AsyncIterator[Judge | None]:
    """Give a judge of windows of texts, to be called in a thread while this loop runs; None if nothing is judged."""
    if not prepared.judges or not prepared.criteria:
        yield None
        return
    loop, under_way = asyncio.get_running_loop(), set[asyncio.Task[Any]]()
    ((name, retrier),) = retriers.items()
    flush = prepared.recording.flush if prepared.recording else lambda: None
    criteria = _criteria_of_judge(prepared, name)
    async with AsyncExitStack() as closing:
        cache = _cache(prepared)
        closing.callback(cache.close)
        engine = await closing.enter_async_context(open_engine(prepared.config, prepared.judges[name], retrier))

        async def judged(samples: Sequence[Sample]) -> MetricResult:
            """Return every criterion's row for each of these texts, in their order."""
            rows: dict[tuple[str, str, str], Row] = {}
            wanted = (Judgment(sample, criterion) for sample in samples for criterion in criteria)
            judgments_of_window = list(by_question(wanted))

            def emit(row: Row) -> None:
                rows[row.item, row.system, row.column] = row

            run = _run(prepared, name, judgments_of_window, retrier, engine, cache=cache, emit=emit, flush=flush)
            under_way.add(task := asyncio.ensure_future(run()))
            try:
                await task
            finally:
                under_way.discard(task)
            if progress.stopping:
                raise asyncio.CancelledError
            table_columns = columns(prepared, progress)
            return MetricResult(
                tuple(table_columns), tuple(rows[s.item, s.system, c.name] for s in samples for c in table_columns)
            )

        try:
            yield lambda samples: asyncio.run_coroutine_threadsafe(judged(samples), loop).result()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)


def _run(
    prepared: PreparedRun,
    judge: str,
    judgments_to_make: Sequence[Judgment],
    retrier: Retrier,
    engine: Engine,
    *,
    cache: Cache,
    emit: Callable[[Row], None],
    flush: Callable[[], None],
    traits: ModelTraits | None = None,
) -> JudgeRun:
    asked = ((judgment.criterion, judgment.sample) for judgment in judgments_to_make)
    emit = checklist.collect(asked, column_suffix(prepared, judge), emit)
    return JudgeRun(
        judgments_to_make, prepared.judges[judge], prepared.settings[judge],
        cache=cache, retrier=retrier, emit=emit, flush=flush, counts=retrier.counts,
        concurrency=prepared.config.max_concurrency,
        suffix=column_suffix(prepared, judge), recording=prepared.recording,
        engine=engine, criteria=_criteria_of_judge(prepared, judge), retry_failed=prepared.config.retry_failed,
        model_traits=traits or ModelTraits(),
    )  # fmt: skip


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


def _in_turn(first: Callable[P, None], second: Callable[P, None]) -> Callable[P, None]:
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        first(*args, **kwargs)
        second(*args, **kwargs)

    return call


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
    async with AsyncExitStack() as closing:
        cache: Cache = _cache(prepared)
        closing.callback(cache.close)
        engine = await closing.enter_async_context(open_engine(config, provider, retriers[name]))
        asker = MetricClient(
            provider, cache=cache, retrier=retriers[name], counts=progress.judges[name],
            concurrency=config.max_concurrency, settings=prepared.settings[name], recording=prepared.recording,
            retry_failed=config.retry_failed, engine=engine,
        )  # fmt: skip
        yield await closing.enter_async_context(asker)


def _cache(prepared: PreparedRun) -> Cache:
    """Open the plan's cache; what it reports goes into the notes."""
    return open_cache(prepared.config.cache, prepared.notes)


def require_all_recorded(*results: Result | None) -> None:
    """Raise Unrecorded if a recording lacks replies: such judgments must not count as failed ones."""
    unrecorded = [row for result in results if result for row in result.failures if row.error == Unrecorded.__name__]
    if unrecorded:
        first = unrecorded[0]
        where = f"{one_line(first.item, 60)} ({one_line(first.system, 60)}), {one_line(first.column, 60)}"
        raise Unrecorded(
            f"{plural(len(unrecorded), 'judgment')} not in the recording; the first is {where}: {first.message}"
        )
