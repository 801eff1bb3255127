"""What a program calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack

from judge import config, criteria
from judge.commands.pipeline import run_pipeline
from judge.commands.preparation import prepare
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import async_public_api, public_api, run_sync
from judge.config import Judge, Plan, RankPlan
from judge.core.errors import ConfigError
from judge.core.records import Criterion, Sample
from judge.providers import Provider
from judge.providers.scripted import Function, FunctionProvider
from judge.results.result import Result

if TYPE_CHECKING:
    import pandas as pd

    Data = str | Path | pd.DataFrame | Iterable[Mapping[str, Any] | Sample]

_PROVIDER = ("name", "model", "endpoint", "notice", "decides", "learned", "complete", "aclose")
_OF_RUNS = ("merge_criteria", "engine", "ray_workers", "retry_failed", "calibrate")
"""What a file may say of how a judge is asked that is for runs alone."""

One = str | Provider | Mapping[str, str] | Function
Model = One | Sequence[One]
"""A judge by its name, a mapping with `name`, `base_url` and `key_env`, a Provider or a function; several: a panel."""
Criteria = str | Path | Criterion | Sequence[str | Path | Criterion]


class JudgeOptions(TypedDict, total=False):
    """What all that ask a judge take: keys of `config.Plan`."""

    map: Mapping[str, str | Sequence[str]]
    mapping: Mapping[str, str | Sequence[str]]
    systems: str | Sequence[str]
    where: Mapping[str, Any]
    limit: int
    language: str
    base_url: str
    key_env: str
    weighting: str
    draws: int
    min_mass: float
    reply: str
    structured: bool
    temperature: float
    max_tokens: int
    max_concurrency: int
    timeout: float
    retries: int
    rpm: int
    tpm: int
    deadline: float
    budget: str
    cache: str | Path | Literal[False]
    replay: str | Path
    record: str | Path
    seed: int


class Options(JudgeOptions, total=False):
    """What `evaluate` takes beside data, criteria, model and progress: the keys of `config.Plan`."""

    metrics: str | Sequence[str]
    set: Mapping[str, Mapping[str, Any]]
    workers: int
    merge_criteria: bool
    engine: str
    ray_workers: int
    retry_failed: bool
    calibrate: bool
    out: str | Path


class RankOptions(Options, total=False):
    """What `rank` takes besides: the further keys of `config.RankPlan`."""

    orders: int
    pairs: int


@public_api(Options)
def evaluate(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    progress: Watch = None,
    **options: Unpack[Options],
) -> Result:
    """Score every output on every criterion and metric, and compare the systems.

    `data` is a file (JSONL, JSON, CSV, TSV, Parquet), a DataFrame, or an iterable of dicts or Samples, in long
    form (one row per item and system) or wide form (`systems=["a", "b"]`). `criteria` are built-in names, paths
    of .jinja files or Criterion objects (`judge.load_criterion`); none (`[]`) means metrics alone. `model` is a
    model's name, a mapping with `name`, `base_url` and `key_env`, a Provider, or a function of your own, which is
    given a prompt's text and returns a reply (a text or a number) or probabilities by label (a dict); a list of
    these is a panel. `progress=True` shows how far it is, in a notebook too; by default nothing is shown.

    Works in a script, in a notebook, and inside a running event loop. A judgment that fails is a row of
    `result.failures`; what is wrong with the arguments, the data or the endpoint raises a JudgeError.
    """
    return run_sync(lambda: evaluate_async(data, criteria, model=model, progress=progress, **options))


@async_public_api(Options)
async def evaluate_async(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    progress: Watch = None,
    **options: Unpack[Options],
) -> Result:
    """`evaluate` for callers with an event loop of their own."""
    return await _ask(config.plan, data, criteria, model=model, progress=progress, given=dict(options))


@public_api(RankOptions, RankPlan)
def rank(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    progress: Watch = None,
    **options: Unpack[RankOptions],
) -> Result:
    """Compare the systems' texts two by two, and rank the systems by criterion: `result.rankings`.

    `criteria` are names of prompts/pairwise (default: overall), paths or Criterion objects whose templates read `first`
    and `second`. Every pair of texts of an item is shown in both orders (`orders=1`: in one), or only `pairs` pairs;
    equal texts are a tie without a request. Everything else is as in `evaluate`.
    """
    return run_sync(lambda: rank_async(data, criteria, model=model, progress=progress, **options))


@async_public_api(RankOptions, RankPlan)
async def rank_async(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    progress: Watch = None,
    **options: Unpack[RankOptions],
) -> Result:
    """`rank` for callers with an event loop of their own."""
    return await _ask(config.rank_plan, data, criteria, model=model, progress=progress, given=dict(options))


async def _ask(
    make: Callable[..., Plan],
    data: Data,
    criteria: Criteria | None,
    *,
    model: Model | None,
    progress: Watch,
    given: dict[str, Any],
) -> Result:
    made, providers, own = to_config(make, data, criteria, model, given)
    async with displayed(progress) as counts:
        return await run_pipeline(prepare(made, data, providers=providers, own=own), counts)


class ParsedArguments(NamedTuple):
    """A plan, and what it cannot hold: the judges in their order (None: those of the plan), and criteria by name."""

    plan: Plan
    providers: list[Judge | Provider] | None
    own: dict[str, Criterion]


def to_config(
    make: Callable[..., Plan],
    data: Data | None,
    criteria: Criteria | None,
    model: Model | None,
    options: Mapping[str, Any],
) -> ParsedArguments:
    """Arguments as a plan. Raises ConfigError."""
    given = {"map" if name == "mapping" else name: value for name, value in options.items()}
    own: dict[str, Criterion] = {}
    if criteria is not None:
        given["criteria"] = _names(criteria, own)
    if isinstance(data, str | Path):
        given["data"] = Path(data)
    models = _listed(model)
    if models and all(map(_is_function, models)) and given.get("temperature") is None:
        given["temperature"] = 0  # what a function replies once, it is not asked for again in many draws
    given["model"] = [one for one in models if isinstance(one, str | Mapping)]
    made = make(given=given)
    names = iter(made.model)
    providers = [next(names) if isinstance(one, str | Mapping) else _checked(one) for one in models]
    return ParsedArguments(made, providers if models else None, own)


def _names(given: Any, own: dict[str, Criterion]) -> str | list[str]:
    """Criteria by their names; those that are objects are put into `own`. Raises CriterionError."""
    if isinstance(given, str):
        return criteria.validate_name(given)
    listed = [given] if isinstance(given, Path | Criterion | Mapping) or not isinstance(given, Iterable) else given
    names = []
    for one in listed:
        if isinstance(one, Criterion):
            own[one.name] = criteria.finalize(one)
        names.append(one.name if isinstance(one, Criterion) else criteria.validate_name(one))
    return names


def reject_unsupported(options: Mapping[str, Any], takes: type, whose: str) -> None:
    """Raises ConfigError for an option of a run that is none of those that `takes` has."""
    for name in options:
        if options[name] is not None and name in Options.__annotations__ and name not in takes.__annotations__:
            raise _refused(name, whose)


def reject_run_only_settings(made: Plan, whose: str) -> None:
    """Raises ConfigError for what a plan says of how a run asks a judge, which would not be done here.

    What it says of metrics, which ask nobody, may stand in the file of a run.
    """
    for name in _OF_RUNS:
        if getattr(made, name) != Plan.model_fields[name].default:
            raise _refused(name, whose)


def _refused(name: str, whose: str) -> ConfigError:
    return ConfigError(f"{name}: {whose} has no such option; judge run has")


def _listed(model: Model | None) -> list[One]:
    if model is None:
        return []
    return list(model) if isinstance(model, list | tuple) else [model]  # type: ignore[list-item]


def _is_function(model: object) -> bool:
    return callable(model) and not isinstance(model, type) and not hasattr(model, "complete")


def _checked(model: Any) -> Provider:
    """A provider, or a ConfigError that says what it lacks to be one."""
    if _is_function(model):
        return FunctionProvider(model)
    lacking = [name for name in _PROVIDER if not hasattr(model, name)]
    if lacking:
        what = "the class " + model.__name__ if isinstance(model, type) else f"this {type(model).__name__}"
        raise ConfigError(
            "model is a name, a Provider, or a function that is given a prompt and returns a reply; "
            f"{what} has no {', '.join(lacking)}"
        )
    provider: Provider = model
    return provider
