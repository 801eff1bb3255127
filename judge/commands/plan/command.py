"""`judge.plan`: estimate a run before it starts, and explain the estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from judge.commands.evaluate import Criteria, Model, reject_unsupported, to_config
from judge.commands.options import RankOptions
from judge.commands.plan.card_estimate import estimate_card
from judge.commands.plan.explanations import estimate_notes, with_method
from judge.commands.plan.record import Plan
from judge.commands.public import public_api
from judge.config import RankConfig, RunConfig
from judge.core.errors import ConfigError
from judge.core.messages import option
from judge.core.records import Criterion
from judge.core.request_options import Judge
from judge.providers import Provider
from judge.run.cost_estimate import estimate_cost
from judge.run.generate import OUTPUTS_NOTE, plan_outputs, require_criteria
from judge.run.judge_models import AnyJudge, open_offline
from judge.run.preparation import PreparedRun, prepare

if TYPE_CHECKING:
    from judge.commands.evaluate import Data


@public_api("plan", RankConfig)
def plan(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    rank: bool = False,
    card: bool = False,
    items: int | None = None,
    probes: str | Sequence[str] | None = None,
    **options: Unpack[RankOptions],
) -> Plan:
    """Estimate the requests, cost and time of `judge.evaluate` with the same arguments.

    Sends nothing and needs no key. Requests that the cache answers are not counted.

    - `rank`: estimate `judge.rank` instead.
    - `card`: estimate `judge.card`, with its arguments `items` and `probes`.
    - `items`: without `card`, a number of similar items to estimate for.

    Raises JudgeError.
    """
    if card and rank:
        rank_option = option("rank", True)
        card_option = option("card", True)
        raise ConfigError(f"{rank_option}: cannot be combined with {card_option}")
    if card:
        reject_unsupported(options, "card", "a judge card")
    if probes is not None and not card:
        card_option = option("card", True)
        raise ConfigError(f"{option('probes')}: is for {card_option}")
    config_class = RankConfig if rank else RunConfig
    config, judges, loaded_criteria = to_config(
        config_class,
        data,
        criteria,
        model,
        options,
    )
    if card:
        return plan_judge_card(
            config, data, judges, loaded_criteria, items=items, probes=probes
        )
    return plan_run(config, data, judges, loaded_criteria, items)


def plan_judge_card(
    config: RunConfig,
    data: Any = None,
    judges: Sequence[Judge | Provider] | None = None,
    loaded_criteria: Mapping[str, Criterion] | None = None,
    *,
    items: int | None = None,
    probes: str | Sequence[str] | None = None,
) -> Plan:
    """Estimate the card of a configuration's judge. Raises JudgeError."""
    config = _that_writes_nothing(config)
    return estimate_card(
        config,
        data,
        providers=_offline_judges(config, judges),
        loaded_criteria=loaded_criteria,
        items=items,
        probes=probes,
    )


def plan_run(
    config: RunConfig,
    data: Any = None,
    judges: Sequence[Judge | Provider] | None = None,
    loaded_criteria: Mapping[str, Criterion] | None = None,
    items: int | None = None,
) -> Plan:
    """Estimate a run of a configuration. The other arguments are documented at `prepare`.

    Raises JudgeError.
    """
    require_criteria(config)
    config = _that_writes_nothing(config)
    providers = _offline_judges(config, judges)
    config, data, writing = plan_outputs(config, data)
    prepared = prepare(
        config, data, providers=providers, loaded_criteria=loaded_criteria
    )
    return make_plan(replace(prepared, writing=writing), items)


def _that_writes_nothing(config: RunConfig) -> RunConfig:
    """Return the configuration of an estimate: no file is written, and no reply is asked again."""
    return config.model_copy(
        update={"out": None, "record": None, "retry_failed": False}
    )


def _offline_judges(
    config: RunConfig, judges: Sequence[Judge | Provider] | None
) -> list[AnyJudge]:
    """Open the judges that have a name, so that they send nothing and need no key.

    A recording needs no key either, and is opened with the run.
    """
    offline: list[AnyJudge] = []
    for judge in config.model if judges is None else judges:
        if isinstance(judge, Judge) and config.replay is None:
            offline.append(open_offline(config, judge))
        else:
            offline.append(judge)
    return offline


def make_plan(prepared: PreparedRun, items: int | None = None) -> Plan:
    """Estimate a run and explain the estimate. Raises ConfigError."""
    if prepared.writing and items is not None:
        items_option = option("items", items)
        raise ConfigError(f"{items_option}: is for data with outputs; leave it out")
    estimate = estimate_cost(prepared, items=items)
    # The estimate begins with the systems that write, which give no scores.
    scoring_judges = estimate.judges[len(prepared.writing) :]
    judges = tuple(with_method(judge, prepared) for judge in scoring_judges)
    notes = [OUTPUTS_NOTE] if prepared.writing else []
    notes += estimate_notes(prepared, judges, items)
    return Plan(
        judges=(*prepared.writing, *judges),
        price=estimate.price,
        seconds=estimate.seconds,
        budget=estimate.budget,
        fits=estimate.fits,
        notes=tuple(notes),
        uncounted=tuple(
            name for name, metric in prepared.metrics.items() if metric.asks
        ),
    )
