"""The stages of a run in their order, and the only place where sync meets async."""

from __future__ import annotations

import asyncio
import platform
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack

from judge import __version__, config, registry, samples, text
from judge import criteria as criteria_module
from judge.cache import Cache, DiskCache, NoCache, default_folder
from judge.config import Plan
from judge.errors import ConfigError, JudgeError
from judge.metrics import Metric
from judge.providers import Provider
from judge.providers.prices import usd
from judge.records import Column, Criterion, Failure, Prompt, Sample, Score, Usage
from judge.render import Renderer
from judge.report import Result
from judge.retry import Policy, Retrier
from judge.runner import Progress, Run, Settings
from judge.stats.resample import means
from judge.table import Journal, Table, forget

if TYPE_CHECKING:
    import pandas as pd

    Data = str | Path | pd.DataFrame | Iterable[Mapping[str, Any] | Sample]

T = TypeVar("T")
_DEFAULT_METRICS = ("rouge", "bleu", "chrf")
_PACKAGES = ("openai", "jinja2", "numpy", "rouge-score", "sacrebleu")
_HOW_TO_JUDGE = (
    "no judge model is named. Name one: --model gpt-5.4-mini (with its key in the environment), "
    "or --model NAME --base-url URL for a server of your own, or --model scripted/REPLIES.yaml for a dry run; "
    "or ask for metrics alone with --criteria none"
)


class Options(TypedDict, total=False):
    """What `evaluate` takes beside data, criteria, model and progress: the keys of `config.Plan`."""

    mapping: Mapping[str, str]
    systems: Sequence[str]
    limit: int
    metrics: Sequence[str]
    language: str
    base_url: str
    key_env: str
    weighting: str
    min_mass: float
    temperature: float
    max_tokens: int
    max_concurrency: int
    timeout: float
    retries: int
    cache: str | Path | Literal[False]
    out: str | Path
    seed: int


def evaluate(
    data: Data,
    criteria: Sequence[str | Criterion] | None = None,
    *,
    model: str | Provider | None = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Result:
    """Score every output on every criterion and metric, and compare the systems.

    `data` is a file (JSONL, JSON, CSV, TSV, Parquet), a DataFrame, or an iterable of dicts or Samples, in long
    form (one row per item and system) or wide form (`systems=["a", "b"]`). `criteria` are built-in names, paths
    of .jinja files or Criterion objects; none (`[]`) means metrics alone. `model` is a model's name or a Provider.
    `progress` is kept up to date while the run goes. The options mean what they mean in `config.Plan`.

    Works in a script, in a notebook, and inside a running event loop. A judgment that fails is a row of
    `result.failures`; what is wrong with the arguments, the data or the endpoint raises a JudgeError.
    """
    return _run(evaluate_async(data, criteria, model=model, progress=progress, **options))


async def evaluate_async(
    data: Data,
    criteria: Sequence[str | Criterion] | None = None,
    *,
    model: str | Provider | None = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Result:
    """`evaluate` for callers with an event loop of their own."""
    given: dict[str, Any] = dict(options)
    if "mapping" in given:
        given["map"] = given.pop("mapping")
    if criteria is not None:
        given["criteria"] = [c if isinstance(c, str) else c.name for c in criteria]
    if isinstance(model, str):
        given["model"] = model
    if isinstance(data, str | Path):
        given["data"] = Path(data)
    plan = config.plan(given=given)
    provider = model if isinstance(model, Provider) else None
    own = {c.name: c for c in criteria or () if isinstance(c, Criterion)}
    return await run(prepare(plan, data, provider=provider, own=own), progress)


@dataclass(slots=True)
class Prepared:
    """Everything a run needs, checked; nothing has been sent or paid yet."""

    plan: Plan
    samples: list[Sample]
    criteria: list[Criterion]
    metrics: dict[str, Metric]
    provider: Provider | None
    language: dict[str, str]
    notes: list[str] = field(default_factory=list)

    @property
    def model(self) -> str:
        """The model's name without the provider before it; of scripted replies the file's name alone."""
        name, model = _split_model(self.plan.model or "")
        return Path(model).name if name == "scripted" else model


def prepare(
    plan: Plan, data: Any = None, *, provider: Provider | None = None, own: Mapping[str, Criterion] | None = None
) -> Prepared:
    """Read and check everything that can be checked before the first request. Raises JudgeError."""
    source = data if data is not None else plan.data
    if source is None:
        raise ConfigError("no data: name a file, for example judge run summaries.jsonl")
    rows = samples.load(source, mapping=plan.mapping, systems=plan.systems)
    rows = rows[: plan.limit]
    language, how = plan.language, "chosen"
    if language is None:
        language, how = text.language(t for s in rows for t in (s.output, s.source or "")), "detected"
    chosen = [(own or {}).get(name) or criteria_module.load(name, language=language) for name in plan.criteria]
    for criterion in chosen:
        criteria_module.check(criterion, rows)
    _refuse_twins([c.name for c in chosen])
    metrics, notes = _metrics(plan, rows)
    if chosen and provider is None:
        provider = _provider(plan)
    if provider is not None and chosen and provider.notice:
        notes.append(provider.notice)
    named = {"name": language, "how": how}
    return Prepared(plan, rows, chosen, metrics, provider if chosen else None, named, notes)


def prompt(criterion: str, data: Any, *, item: str | None = None, system: str | None = None, **options: Any) -> Prompt:
    """The prompt for one sample, as a run would send it. Asks no model. Raises JudgeError."""
    prepared = prepare(config.plan(given={**options, "criteria": [], "metrics": []}), data)
    chosen = criteria_module.load(criterion, language=prepared.language["name"])
    criteria_module.check(chosen, prepared.samples)
    for sample in prepared.samples:
        if item in (None, sample.item) and system in (None, sample.system):
            return Renderer(chosen, criteria_module.bodies(chosen)).render(sample)
    names = sorted({s.item for s in prepared.samples} if item else {s.system for s in prepared.samples})
    raise ConfigError(registry.unknown("item" if item else "system", item or system or "", names[:20]))


async def run(prepared: Prepared, progress: Progress | None = None) -> Result:
    """Carry out a prepared run. What was scored is saved (with `out`) however the run ends."""
    plan = prepared.plan
    progress = progress if progress is not None else Progress()
    retrier = Retrier(Policy(attempts=plan.retries + 1))
    started, clock = datetime.now(UTC), time.monotonic()
    rows: list[Score | Failure] = []
    columns = [_column(c, prepared) for c in prepared.criteria]

    def finish(status: str) -> Result:
        table = Table(
            tuple(prepared.samples),
            tuple(columns),
            tuple(r for r in rows if isinstance(r, Score)),
            tuple(r for r in rows if isinstance(r, Failure)),
        )
        info: dict[str, Any] = {"status": status, "started": started.isoformat(timespec="seconds")}
        info |= {"seconds": round(time.monotonic() - clock, 3)}
        info |= _describe(prepared, progress, retrier) | {"signatures": {c.name: c.signature for c in columns}}
        result = Result(table, means(table, seed=plan.seed), info)
        if plan.out is not None and (rows or status == "complete"):
            result.save(plan.out)
        elif plan.out is not None:
            forget(plan.out)
        return result

    try:
        await _judge(prepared, retrier, progress, rows.append, Table(tuple(prepared.samples), tuple(columns), ()))
        for name, metric in prepared.metrics.items():
            progress.stage = name
            await asyncio.sleep(0)  # where a Ctrl-C is noticed
            scored = metric.score(prepared.samples)
            columns.extend(scored.columns)
            rows.extend(scored.rows)
    except asyncio.CancelledError:
        finish("interrupted")
        raise
    except JudgeError:
        finish("stopped")
        raise
    return finish("complete")


async def _judge(
    prepared: Prepared, retrier: Retrier, progress: Progress, emit: Callable[[Score | Failure], None], start: Table
) -> None:
    plan, provider = prepared.plan, prepared.provider
    if provider is None:
        return
    settings = Settings(
        prepared.model or provider.name,
        plan.weighting,
        plan.min_mass,
        plan.temperature,
        plan.max_tokens,
        concurrency=plan.max_concurrency,
    )
    cache = _cache(plan)
    journal = Journal(plan.out, start) if plan.out is not None else None

    def keep(row: Score | Failure) -> None:
        emit(row)
        if journal is not None:
            journal.add(row)

    try:
        judging = Run(
            prepared.samples, prepared.criteria, provider, settings,
            cache=cache, retrier=retrier, emit=keep, progress=progress,
        )  # fmt: skip
        await judging()
    finally:
        if journal is not None:
            journal.close()
        cache.close()


def _cache(plan: Plan) -> Cache:
    return NoCache() if plan.cache is False else DiskCache(plan.cache or default_folder())


def _provider(plan: Plan) -> Provider:
    if plan.model is None:
        raise ConfigError(_HOW_TO_JUDGE)
    name, model = _split_model(plan.model)
    make = registry.load("providers", name)
    if name == "scripted":
        scripted: Provider = make.from_file(model)
        return scripted
    provider: Provider = make(
        base_url=plan.base_url, key_env=plan.key_env, timeout=plan.timeout, connections=plan.max_concurrency
    )
    return provider


def _split_model(model: str) -> tuple[str, str]:
    """`scripted/replies.yaml` → provider and model; a prefix that is no provider's name belongs to the model."""
    prefix, slash, rest = model.partition("/")
    return (prefix, rest) if slash and prefix in registry.names("providers") else ("openai", model)


def _metrics(plan: Plan, rows: Sequence[Sample]) -> tuple[dict[str, Metric], list[str]]:
    names = plan.metrics
    if names is None:
        names = _DEFAULT_METRICS if any(s.references for s in rows) else ()
    notes = [] if names or plan.metrics is not None else ["The data has no references: no reference metrics."]
    apart = sum(bool(s.references) and text.language([s.output]) != text.language(s.references) for s in rows)
    if names and apart:
        note = f"{apart:,} of {len(rows):,} outputs are in another script than their references"
        notes.append(f"{note}: what compares the two there (ROUGE, BLEU, chrF) says little.")
    return {name: registry.load("metrics", name)() for name in names}, notes


def _refuse_twins(names: Sequence[str]) -> None:
    twins = sorted({name for name in names if list(names).count(name) > 1})
    if twins:
        raise ConfigError(f"--criteria names {twins[0]!r} twice; criteria are told apart by their file's name")


def _column(criterion: Criterion, prepared: Prepared) -> Column:
    plan, provider = prepared.plan, prepared.provider
    judge_model = f"{provider.name if provider else ''}/{prepared.model}".strip("/")
    signature = "|".join(
        [
            f"{criterion.name}@{criterion.digest[:6]}",
            judge_model,
            f"t={plan.temperature:g}",
            plan.weighting,
            f"judge {__version__}",
        ]
    )
    scale = criterion.scale
    return Column(criterion.name, "criterion", signature, scale.low, scale.high, scale.labels)


def _describe(prepared: Prepared, progress: Progress, retrier: Retrier) -> dict[str, Any]:
    """run.json: all that is needed to understand the run and to do it again. No key is in it."""
    plan, provider = prepared.plan, prepared.provider
    endpoint = provider.endpoint if provider else ""
    return {
        "judge_version": __version__,
        "plan": plan.model_dump(mode="json", by_alias=True, exclude_none=True),
        "data": _describe_data(prepared),
        "model": prepared.model,
        "provider": provider.name if provider else None,
        "base_url": endpoint or None,
        "served_by": sorted(progress.served_by),
        "language": prepared.language,
        "weighting": plan.weighting,
        "criteria": {c.name: _describe_criterion(c) for c in prepared.criteria},
        "usage": _as_dict(progress.usage),
        "requests": {
            "sent": progress.sent,
            "cached": progress.cached,
            "shared": progress.shared,
            "failed": progress.refused,
            "retried": retrier.retried,
            "timeouts": retrier.maybe_billed,
        },
        "cost": _cost(prepared, progress),
        "unmet": sorted(progress.unmet),
        "notes": prepared.notes,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
    }


def _cost(prepared: Prepared, progress: Progress) -> dict[str, Any]:
    """US dollars for what was sent; None, with the reason, where they are not known."""
    if prepared.provider is None or prepared.provider.notice:
        return {}
    if progress.sent and progress.usage == Usage():
        return {"usd": None, "note": "the server does not count tokens"}
    price = usd(prepared.model, prepared.provider.endpoint, progress.usage)
    return {"usd": price, "note": "" if price is not None else "no published price for this model and endpoint"}


def _describe_data(prepared: Prepared) -> dict[str, Any]:
    path = prepared.plan.data
    known = {"path": str(path), "sha256": samples.digest(path)} if path is not None else {}
    return known | {"rows": len(prepared.samples)}


def _describe_criterion(criterion: Criterion) -> dict[str, Any]:
    return {
        "digest": criterion.digest,
        "title": criterion.title,
        "path": criterion.path,
        "scale": list(criterion.scale.labels),
        "reply": criterion.reply,
        "version": criterion.version,
        "steps": list(criterion.steps),
        "needs": sorted(criterion.needs),
        "templates": criteria_module.sources(criterion),
    }


def _as_dict(usage: Usage) -> dict[str, int]:
    return {name: getattr(usage, name) for name in Usage.__slots__}


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run in a loop of its own: here, or in a thread where this thread's loop is running already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    def in_thread() -> None:
        loop.run_until_complete(asyncio.wait([task]))
        loop.run_until_complete(loop.shutdown_asyncgens())

    thread = threading.Thread(target=in_thread, name="judge")
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    finally:
        loop.close()
    return task.result()
