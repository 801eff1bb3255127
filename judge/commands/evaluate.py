"""`judge.evaluate` and `judge.rank`, and how Python arguments become a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from judge import criteria
from judge.commands.options import RankOptions, RunOptions
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import blocking, public_api
from judge.config import Command, RankConfig, RunConfig, run_options
from judge.core.errors import ConfigError
from judge.core.records import Criterion, Sample
from judge.core.request_options import Judge
from judge.execution.budget import BudgetLedger
from judge.providers import Provider
from judge.providers.scripted import Function, FunctionProvider
from judge.results.result import Result
from judge.run.generate import hand_over, require_criteria, with_outputs
from judge.run.pipeline import run_pipeline
from judge.run.preparation import prepare

if TYPE_CHECKING:
    import pandas as pd

    Data = str | Path | pd.DataFrame | Iterable[Mapping[str, Any] | Sample]

_PROVIDER_ATTRIBUTES = (
    "name",
    "model",
    "endpoint",
    "notice",
    "decides",
    "learned",
    "complete",
    "aclose",
)
_UNUSED_SETTINGS = ("criteria", "metrics", "set", "workers", "out", "title")
"""Settings of a run configuration that other commands ignore."""

SingleModel = str | Provider | Mapping[str, Any] | Function
Model = SingleModel | Sequence[SingleModel]
"""A model's name, a mapping with `name` and its own options, a Provider or a function; several are
a panel.
"""
Criteria = (
    str
    | Path
    | Mapping[str, Any]
    | Criterion
    | Sequence[str | Path | Mapping[str, Any] | Criterion]
)


@public_api("run")
async def evaluate_async(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    progress: Watch = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Score every output on every criterion and metric, and compare the systems.

    - `data`: a file (JSONL, JSON, CSV, TSV, Parquet), a DataFrame, or an iterable of dicts or
      Samples, with one row per item and system, or one column per system (`systems=["a", "b"]`).
    - `criteria`: built-in names, files, sentences ("polite: Is the reply polite?"), dicts of header
      keys, or Criterion objects; `[]` means metrics only.
    - `model`: a model's name, a dict with `name`, `base_url` and `key_env`, a Provider, or a
      function of the prompt that returns a reply (a text or a number) or a dict of probabilities by
      label. A list of models is a panel.
    - `progress`: True shows a bar.

    Works in scripts, in notebooks, and inside a running event loop. A failed judgment is a row of
    `result.failures`. Raises JudgeError for wrong arguments or data and for a failing endpoint.
    """
    return await _run(
        RunConfig, data, criteria, model=model, progress=progress, options=options
    )


evaluate = blocking(evaluate_async)


@public_api("rank", RankConfig)
async def rank_async(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    progress: Watch = None,
    **options: Unpack[RankOptions],
) -> Result:
    """Compare the systems' texts in pairs and rank the systems, by criterion: `result.rankings`.

    `criteria` are names of comparisons (default: overall), paths, sentences such as `clearer: Which
    answer is clearer?`, or Criterion objects. Each pair of texts of an item is shown in both orders
    (`orders=1`: in one); `pairs` compares a sample. Equal texts are a tie without a request.

    Raises JudgeError for wrong arguments or data and for a failing endpoint.
    """
    return await _run(
        RankConfig, data, criteria, model=model, progress=progress, options=options
    )


rank = blocking(rank_async)


async def _run(
    config_type: type[RunConfig],
    data: Data,
    criteria: Criteria | None,
    *,
    model: Model | None,
    progress: Watch,
    options: Mapping[str, Any],
) -> Result:
    config, providers, custom_criteria = to_config(
        config_type, data, criteria, model, options
    )
    require_criteria(config)
    async with displayed(progress) as counts:
        ledger = BudgetLedger(config.budget)
        load = partial(prepare, providers=providers, loaded_criteria=custom_criteria)
        config, data, outputs = await with_outputs(
            config, data, counts, ledger, check=load
        )
        prepared = hand_over(outputs, load(config, data))
        return await run_pipeline(prepared, counts, ledger)


class ParsedArguments(NamedTuple):
    """A configuration and the arguments that it cannot hold.

    `providers` are all judges in order, or None if the configuration names them all.
    `custom_criteria` are Criterion objects by name.
    """

    config: RunConfig
    providers: list[Judge | Provider] | None
    custom_criteria: dict[str, Criterion]


def to_config(
    config_type: type[RunConfig],
    data: Data | None,
    chosen: Criteria | None,
    model: Model | None,
    options: Mapping[str, Any],
) -> ParsedArguments:
    """Turn arguments into a configuration. Raises ConfigError and CriterionError."""
    settings = dict(options)
    custom_criteria: dict[str, Criterion] = {}
    if chosen is not None:
        settings["criteria"] = _criterion_names(
            chosen,
            custom_criteria,
            pairwise=issubclass(config_type, RankConfig),
        )
    if isinstance(data, str | Path):
        settings["data"] = Path(data)
    models: list[Any] = []
    if model is not None:
        models = list(model) if isinstance(model, list | tuple) else [model]
    has_only_functions = bool(models) and all(map(_is_function, models))
    if has_only_functions and settings.get("temperature") is None:
        # A function gives the same reply again: one draw is enough.
        settings["temperature"] = 0
    # A configuration holds names and mappings only; `_all_judges` adds the Python objects.
    settings["model"] = [entry for entry in models if is_named(entry)]
    rating_rows = _pop_rating_rows(settings)
    config = config_type.load(options=settings)
    if rating_rows is not None:
        config = config.with_rating_rows(rating_rows)
    providers = _all_judges(models, config) if models else None
    return ParsedArguments(config, providers, custom_criteria)


def _pop_rating_rows(settings: dict[str, Any]) -> Any:
    """Remove the ratings from the settings and return them if they are rows and not a file."""
    if isinstance(settings.get("ratings"), str | Path | None):
        return None
    rows = settings.pop("ratings")
    # An iterator can be read only once, but several readers need it.
    return list(rows) if isinstance(rows, Iterator) else rows


def _criterion_names(
    chosen: Criteria,
    custom_criteria: dict[str, Criterion],
    *,
    pairwise: bool,
) -> str | list[Any]:
    """Return the names of criteria; Criterion objects are added to `custom_criteria`.

    With `pairwise`, a question without a template compares two texts.
    """
    if isinstance(chosen, str):
        return criteria.validate_name(chosen)
    is_entry = isinstance(chosen, Path | Criterion | Mapping)
    if is_entry or not isinstance(chosen, Iterable):
        entries: Any = [chosen]
    else:
        entries = chosen
    names: list[Any] = []
    for entry in entries:
        if isinstance(entry, Criterion):
            custom_criteria[entry.name] = criteria.finalize(entry, pairwise=pairwise)
            names.append(entry.name)
        else:
            names.append(criteria.validate_name(entry))
    return names


def _all_judges(models: Sequence[Any], config: RunConfig) -> list[Judge | Provider]:
    """Return the judges in the order of the argument. Raises ConfigError."""
    named_judges = iter(config.model)
    judges: list[Judge | Provider] = []
    for model in models:
        if is_named(model):
            judges.append(next(named_judges))
        elif _is_function(model):
            judges.append(FunctionProvider(model))
        else:
            _require_provider(model)
            judges.append(model)
    return judges


def _require_provider(model: object) -> None:
    """Raise ConfigError if a model lacks an attribute of a Provider."""
    missing = [
        attribute for attribute in _PROVIDER_ATTRIBUTES if not hasattr(model, attribute)
    ]
    if not missing:
        return
    described = f"this {type(model).__name__}"
    if isinstance(model, type):
        described = f"the class {model.__name__}"
    missing_names = ", ".join(missing)
    raise ConfigError(
        "model is a name, a Provider, or a function that is given a prompt and returns a "
        f"reply; {described} has no {missing_names}"
    )


def reject_unsupported(
    options: Mapping[str, Any] | RunConfig,
    command: Command,
    caller: str,
) -> None:
    """Raise ConfigError for an option of `judge run` that another command does not take.

    `caller` names the command. A run configuration may be used for other commands, so its settings
    for metrics and results are ignored.
    """
    for option_name in run_options("run").keys() - run_options(command).keys():
        if isinstance(options, RunConfig):
            default = RunConfig.model_fields[option_name].default
            is_changed = getattr(options, option_name) != default
            is_set = is_changed and option_name not in _UNUSED_SETTINGS
        else:
            is_set = options.get(option_name) is not None
        if is_set:
            problem = f"{caller} has no such option"
            raise ConfigError(f"{option_name}: {problem}; judge run has")


def is_named(model: object) -> bool:
    """Return whether a configuration can hold a model: it is a name, a mapping or a Judge."""
    return isinstance(model, str | Mapping | Judge)


def _is_function(model: object) -> bool:
    if isinstance(model, type) or hasattr(model, "complete"):
        return False
    return callable(model)
