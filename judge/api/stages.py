"""Prepare, then run: everything is checked before the first request, and what was scored is kept however it ends."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from judge import criteria as criteria_module
from judge import registry, samples, text
from judge.api.describe import column, describe
from judge.cache import Cache, DiskCache, NoCache, default_folder
from judge.config import Plan, plan
from judge.errors import ConfigError, StorageError
from judge.metrics import Metric, MetricResult
from judge.providers import Provider
from judge.records import Column, Criterion, Failure, Prompt, Sample, Score
from judge.render import Renderer
from judge.report import Result
from judge.retry import Policy, Retrier
from judge.runner import Progress, Row, Run, Settings
from judge.stats.resample import means
from judge.table import SCORES, Journal, Table, forget

_DEFAULT_METRICS = ("rouge", "bleu", "chrf")
_HOW_TO_JUDGE = (
    "no judge model is named. Name one: --model gpt-5.4-mini (with its key in the environment), "
    "or --model NAME --base-url URL for a server of your own, or --model scripted/REPLIES.yaml for a dry run; "
    "or ask for metrics alone with --criteria none"
)


@dataclass(slots=True)
class Prepared:
    """Everything a run needs, checked; nothing has been sent or paid yet."""

    plan: Plan
    samples: list[Sample]
    criteria: list[Criterion]
    metrics: dict[str, Metric]
    provider: Provider | None
    language: dict[str, str]
    data: dict[str, Any]
    notes: list[str] = field(default_factory=list)


def prepare(
    made: Plan, data: Any = None, *, provider: Provider | None = None, own: Mapping[str, Criterion] | None = None
) -> Prepared:
    """Read and check everything that can be checked before the first request. Raises JudgeError."""
    source = data if data is not None else made.data
    if source is None:
        raise ConfigError("no data: name a file, for example judge run summaries.jsonl")
    _check_out(made.out)
    rows = samples.load(source, mapping=made.mapping, systems=made.systems)[: made.limit]
    language, how = made.language, "chosen"
    if language is None:
        language, how = text.language(t for s in rows for t in (s.output, s.source or "")), "detected"
    chosen = [(own or {}).get(name) or criteria_module.load(name, language=language) for name in made.criteria]
    for criterion in chosen:
        criteria_module.check(criterion, rows)
    _refuse_twins([c.name for c in chosen])
    metrics, notes = _metrics(made, rows)
    if not chosen and not metrics:
        raise ConfigError("nothing to do: neither criteria nor metrics; name some with --criteria or --metrics")
    provider = (provider or _provider(made)) if chosen else None
    if provider is not None and provider.notice:
        notes.append(provider.notice)
    about = {"path": str(made.data), "sha256": samples.digest(made.data)} if made.data is not None else {}
    named = {"name": language, "how": how}
    return Prepared(made, rows, chosen, metrics, provider, named, {**about, "rows": len(rows)}, notes)


def prompt(criterion: str, data: Any, *, item: str | None = None, system: str | None = None, **options: Any) -> Prompt:
    """The prompt for one sample, as a run would send it. Asks no model. Raises JudgeError."""
    made = plan(given=options)
    rows = samples.load(data, mapping=made.mapping, systems=made.systems)
    language = made.language or text.language(t for s in rows for t in (s.output, s.source or ""))
    chosen = criteria_module.load(criterion, language=language)
    criteria_module.check(chosen, rows)
    for sample in rows:
        if item in (None, sample.item) and system in (None, sample.system):
            return Renderer(chosen, criteria_module.bodies(chosen)).render(sample)
    names = sorted({s.item for s in rows} if item else {s.system for s in rows})
    raise ConfigError(registry.unknown("item" if item else "system", item or system or "", names[:20]))


async def run(prepared: Prepared, progress: Progress | None = None) -> Result:
    """Carry out a prepared run. What was scored is saved (with `out`) however the run ends.

    One cut short does not replace an earlier one that had more: its rows then stay in the journal beside that.

    Raises what `runner.Run` raises, and CancelledError when it is interrupted.
    """
    progress = progress if progress is not None else Progress()
    retrier = Retrier(Policy(attempts=prepared.plan.retries + 1))
    about = describe(prepared, progress, retrier)
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
        await _judge(prepared, retrier, progress, rows.append, about("partial"))
        for name, metric in prepared.metrics.items():
            progress.stage = name
            found = await _beside(partial(metric.score, prepared.samples))
            known = [c.name for c in prepared.criteria]
            _refuse_twins([*known, *(c.name for c in [*measured, *found.columns])])
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
    columns = [*(column(c, prepared, progress) for c in prepared.criteria), *measured]
    scores = tuple(row for row in rows if isinstance(row, Score))
    failures = tuple(row for row in rows if isinstance(row, Failure))
    table = Table(tuple(prepared.samples), tuple(columns), scores, failures)
    info = info | {"signatures": {c.name: c.signature for c in columns}}
    return Result(table, means(table, seed=prepared.plan.seed), info)


async def _judge(
    prepared: Prepared,
    retrier: Retrier,
    progress: Progress,
    emit: Callable[[Row], None],
    info: dict[str, Any],
) -> None:
    made, provider = prepared.plan, prepared.provider
    if provider is None:
        return
    settings = Settings(
        made.weighting, made.min_mass, made.temperature, made.max_tokens, concurrency=made.max_concurrency
    )
    with ExitStack() as closing:
        cache: Cache = NoCache() if made.cache is False else DiskCache(made.cache or default_folder())
        closing.callback(cache.close)
        keep, flush = emit, lambda: None
        if made.out is not None:
            columns = tuple(column(c, prepared, progress) for c in prepared.criteria)
            journal = Journal(made.out, Table(tuple(prepared.samples), columns, ()), info)
            closing.callback(journal.close)
            flush = journal.flush

            def keep(row: Row) -> None:
                emit(row)
                journal.add(row)

        await Run(
            prepared.samples, prepared.criteria, provider, settings,
            cache=cache, retrier=retrier, emit=keep, flush=flush, progress=progress,
        )()  # fmt: skip


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


def _check_out(out: Path | None) -> None:
    """Refuses a folder that cannot be one, or whose report is somebody else's."""
    if out is None:
        return
    if out.exists() and not out.is_dir():
        raise StorageError(f"--out {out}: a file stands there; name a folder")
    if not (out / "run.json").exists() and any((out / name).exists() for name in ("report.html", "report.md")):
        raise StorageError(f"--out {out}: holds a report that is not from judge; name another folder")


def _provider(made: Plan) -> Provider:
    if made.model is None:
        raise ConfigError(_HOW_TO_JUDGE)
    prefix, slash, rest = made.model.partition("/")
    known = slash and prefix in registry.names("providers")
    if known and not (prefix == "openai" and made.base_url):  # to other servers, openai/gpt-4o is a model's whole name
        name, model = prefix, rest
    else:
        name, model = "openai", made.model
    provider: Provider = registry.load("providers", name).open(model, made)
    return provider


def _metrics(made: Plan, rows: Sequence[Sample]) -> tuple[dict[str, Metric], list[str]]:
    names = made.metrics
    if names is None:
        names = _DEFAULT_METRICS if any(s.references for s in rows) else ()
    notes = [] if names or made.metrics is not None else ["The data has no references: no reference metrics."]
    apart = sum(bool(s.references) and text.language([s.output]) != text.language(s.references) for s in rows)
    if names and apart:
        note = f"{apart:,} of {len(rows):,} outputs are in another script than their references"
        notes.append(f"{note}: what compares the two there (ROUGE, BLEU, chrF) says little.")
    return {name: registry.load("metrics", name)() for name in names}, notes


def _refuse_twins(names: Sequence[str]) -> None:
    twins = sorted({name for name in names if list(names).count(name) > 1})
    if twins:
        raise ConfigError(
            f"two columns would be called {twins[0]!r}; a criterion is called by its file's name: rename it"
        )
