"""What a program calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack

from judge import config
from judge.api.stages import prepare, run
from judge.errors import ConfigError
from judge.providers import Provider
from judge.records import Criterion, Sample
from judge.report import Result
from judge.runner import Progress

if TYPE_CHECKING:
    import pandas as pd

    Data = str | Path | pd.DataFrame | Iterable[Mapping[str, Any] | Sample]

T = TypeVar("T")


class Options(TypedDict, total=False):
    """What `evaluate` takes beside data, criteria, model and progress: the keys of `config.Plan`."""

    mapping: Mapping[str, str]
    systems: str | Sequence[str]
    limit: int
    metrics: str | Sequence[str]
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
    criteria: str | Sequence[str | Criterion] | None = None,
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
    return _run(lambda: evaluate_async(data, criteria, model=model, progress=progress, **options))


async def evaluate_async(
    data: Data,
    criteria: str | Sequence[str | Criterion] | None = None,
    *,
    model: str | Provider | None = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Result:
    """`evaluate` for callers with an event loop of their own."""
    given: dict[str, Any] = dict(options)
    if "mapping" in given:
        given["map"] = given.pop("mapping")
    own = {c.name: c for c in criteria or () if isinstance(c, Criterion)}
    if criteria is not None:
        given["criteria"] = criteria if isinstance(criteria, str) else [getattr(c, "name", c) for c in criteria]
    if isinstance(model, str):
        given["model"] = model
    elif not isinstance(model, Provider | None):
        lacking = [
            name for name in ("name", "model", "endpoint", "notice", "complete", "aclose") if not hasattr(model, name)
        ]
        raise ConfigError(f"model is a name or a Provider; this {type(model).__name__} has no {', '.join(lacking)}")
    if isinstance(data, str | Path):
        given["data"] = Path(data)
    provider = None if isinstance(model, str) else model
    return await run(prepare(config.plan(given=given), data, provider=provider, own=own), progress)


def _run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run in a loop of its own: here, or in a thread where this thread's loop is running already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def noted() -> T:
        task = asyncio.ensure_future(work())
        started.append((asyncio.get_running_loop(), task))
        return await task

    interrupted = False
    with ThreadPoolExecutor(1, "judge") as thread:
        future = thread.submit(lambda: asyncio.run(noted()))
        while not future.done():
            try:
                wait([future])
            except KeyboardInterrupt:
                interrupted = True
                for loop, task in started:
                    loop.call_soon_threadsafe(task.cancel)
    if interrupted:
        raise KeyboardInterrupt
    return future.result()
