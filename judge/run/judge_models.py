"""The judges of a plan: find the provider that `--model` names, open it, and note what reports must say about it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from judge.config import RankConfig, RunConfig, load_config
from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.messages import in_python, option
from judge.core.request_options import Judge, public_headers
from judge.metrics import Metric
from judge.providers import Capabilities, Provider
from judge.providers.recording import ReplayProvider, replayed
from judge.providers.vendors import VENDORS, host_of_another
from judge.scoring.strategies import EFFORT, HEADERS, REASONING_DRAWS, SamplingOptions

_HOW_TO_JUDGE = (
    "no judge is named. Ways to go on:\n"
    "  --model gpt-5.4-mini           with its key in the environment (OPENAI_API_KEY, or --key-env NAME)\n"
    "  --model VENDOR/NAME            anthropic, gemini, openrouter, ollama, ...: with that vendor's key\n"
    "  --model NAME --base-url URL    a model on a server of your own: llama.cpp, vLLM, Ollama, ...\n"
    "  --replay CALLS.jsonl           replies recorded by an earlier run with --record\n"
    "  --model scripted/REPLIES.yaml  a dry run on replies that you write{more}"
)
_METRICS = "\n  --criteria none                metrics alone"
_KEY_REQUIRED = ("openai", "decisions")
"""Providers that insist on a key unless `needs_key` is False."""
UNKNOWN = "https://AZURE_OPENAI_ENDPOINT.openai.azure.com"
"""Placeholder for an Azure address that is not set: enough to find a price."""
_ADDED_KEYS = ("system_message", "reasoning_effort", "extra_body")
_LACKING: Mapping[str, Collection[str]] = {
    "decisions": _ADDED_KEYS,
    "scripted": ("key_command", "headers"),
}
"""Settings that a judge of this kind cannot use. It refuses them if they are set."""


@dataclass(frozen=True, slots=True)
class OpenedJudge:
    """A judge of a run: its provider, and the plan with the judge's own settings."""

    provider: Provider
    plan: RunConfig
    label: str = ""

    @property
    def settings(self) -> SamplingOptions:
        """How it is asked, and how its replies are read."""
        settings = sampling_options(self.plan)
        fewer = settings.draws_if_reasoning if Capabilities.of(self.provider).reasons else None
        return replace(settings, draws=fewer or settings.draws)

    @property
    def base(self) -> tuple[str, ...]:
        """The model, and its names with the provider and with the address."""
        provider = self.provider
        name = f"{provider.name}/{provider.model}"
        return provider.model, name, f"{name}@{provider.endpoint.partition('//')[2]}"


def open_judges(config: RunConfig, judges: Sequence[Judge | Provider]) -> dict[str, OpenedJudge]:
    """Open the judges of a plan, by the names they have in a panel's columns. Raises ConfigError and DataError."""
    if not judges and config.replay is None:
        metrics_alone = config.metrics != () and not isinstance(
            config, RankConfig
        )  # a suite has no metrics
        raise ConfigError(_HOW_TO_JUDGE.format(more=_METRICS if metrics_alone else ""))
    named = [judge for judge in judges if isinstance(judge, Judge)]
    for judge in judges:
        if isinstance(judge, Judge):
            _check_settings(config.of_judge(judge), judge)
        else:  # it has its own address
            lacking = _LACKING.get("decisions" if judge.decides else judge.name, ())
            _refuse(config, judge.model, [name for name in lacking if name in _ADDED_KEYS])
    providers: Sequence[Provider]
    if config.replay is None:
        providers = [
            open_judge(config, judge) if isinstance(judge, Judge) else judge for judge in judges
        ]
    else:
        if len(named) < len(judges):
            raise ConfigError(
                f"{option('replay')} replaces models given by name; leave out the provider object"
            )
        whole = [judge.name for judge in named]
        # a scripted model is recorded by the name of its file
        recorded = [
            Path(name).name if vendor == "scripted" else name
            for vendor, name in (_provider_of(config.of_judge(judge), judge) for judge in named)
        ]
        try:
            providers = replayed(config.replay, recorded)
        except ConfigError:
            if recorded == whole:
                raise
            # recorded from a gateway, where the vendor is part of the name
            providers = replayed(config.replay, whole)
    opened = [
        OpenedJudge(provider, config.of_judge(judge), judge.label)
        if isinstance(judge, Judge)
        else OpenedJudge(provider, config)
        for provider, judge in zip_longest(providers, judges)
    ]
    names = _names(opened)
    if len(set(names)) < len(names):
        twin = max(names, key=names.count)
        raise ConfigError(
            f"two judges are both {twin!r}: a panel's judges differ in their model, address or settings (temperature, "
            "system_message, reasoning_effort, extra_body, headers without a secret), and not in their label alone; a "
            "ScriptedProvider takes its name as model="
        )
    return dict(zip(names, opened, strict=True))


def _names(judges: Sequence[OpenedJudge]) -> list[str]:
    """Name judges by their labels, or by their models; if that is ambiguous, add provider, address and settings.

    Two judges that differ in nothing but their label keep one name.
    """
    keys = [judge.base[2] for judge in judges]
    settings = [(signed_temperature(judge.plan), *judge.settings.signature) for judge in judges]
    same = len({*zip(keys, settings, strict=True)}) < len(judges)
    distinct = {judge.base[2]: judge.base for judge in judges}
    place = next(
        (n for n in (0, 1) if len({base[n] for base in distinct.values()}) == len(distinct)), 2
    )
    names = []
    for judge, key, own in zip(judges, keys, settings, strict=True):
        twins = [other for other_key, other in zip(keys, settings, strict=True) if other_key == key]
        differing = [part for part in own if not all(part in twin for twin in twins)]
        name = " ".join([judge.base[place], *differing])
        names.append(judge.label if judge.label and not same else name)
    return names


def open_offline(config: RunConfig) -> list[Judge | Provider]:
    """Open the judges of a plan that sends nothing, even if keys are not set. Raises ConfigError."""
    if config.replay is not None:
        return [*config.model]
    return [open_judge(config, judge, sends=False) for judge in config.model]


def open_judge(config: RunConfig, judge: Judge, *, sends: bool = True) -> Provider:
    """Open the provider of one judge of a plan. If it `sends` nothing, it needs no key. Raises ConfigError."""
    config = config.of_judge(judge)
    name, model = _check_settings(config, judge)
    if "," in model and (name in _KEY_REQUIRED or name not in plugins.names("providers")):
        names = [part.strip() for part in judge.name.split(",") if part.strip()]
        each = (
            option("model", names)
            if in_python()
            else " ".join(option("model", part) for part in names)
        )
        raise ConfigError(
            f"{option('model', judge.name)}: this would be one model of that name; for several: {each}"
        )
    if name == "openai" and not (config.base_url or os.environ.get("OPENAI_BASE_URL")):
        # no OpenAI model has such a name: said before a key is asked for
        prefix, slash, _ = model.partition("/")
        if slash:
            known = [*VENDORS, *plugins.names("providers")]
            raise ConfigError(
                f"{option('model', model)}: {plugins.unknown_name_message('vendor', prefix, known)}; "
                f"the address of any other server is named with {option('base_url')}"
            )
    if name not in plugins.names("providers"):
        vendor = VENDORS[name]
        if not sends:
            # With an address and the default key variable, a vendor needs no key.
            try:
                address = config.base_url or vendor.address
            except ConfigError:
                address = f"{UNKNOWN}{vendor.url}"
            config = load_config(given={"base_url": address})
        opened: Provider = plugins.load("providers", "openai").open(model, config, vendor)
        return _with_price(opened, judge)
    provider_class = plugins.load("providers", name)
    keyless = name in _KEY_REQUIRED and not sends
    provider: Provider = (
        provider_class(model, base_url=config.base_url, needs_key=False)
        if keyless
        else provider_class.open(model, config)
    )
    return _with_price(provider, judge)


def _with_price(provider: Provider, judge: Judge) -> Provider:
    """Tell a provider what the user says that its tokens cost. Raises ConfigError for one that costs nothing."""
    if judge.price is None:
        return provider
    if not hasattr(provider, "price"):
        raise ConfigError(
            f"price: {judge.name} sends nothing that is priced by tokens; leave it out"
        )
    provider.price = judge.price
    return provider


def sampling_options(plan: RunConfig) -> SamplingOptions:
    """Return how a judge with this plan is asked, and how its replies are read."""
    effort = plan.reasoning_effort
    added = {EFFORT: effort, **plan.extra_body, HEADERS: public_headers(plan.headers)}
    few = plan.weighting == "auto" and "draws" not in plan.model_fields_set
    if_reasoning = min(REASONING_DRAWS, plan.draws) if few else plan.draws
    return SamplingOptions(
        plan.weighting, plan.min_mass, plan.temperature, plan.max_tokens,
        if_reasoning if effort and effort != "none" else plan.draws,
        strict=plan.strict, repair=plan.repair == "on" and not plan.strict,
        system_message=plan.system_message or "",
        params=tuple((name, value) for name, value in added.items() if value or name in plan.extra_body),
        draws_if_reasoning=if_reasoning,
    )  # fmt: skip


def signed_temperature(plan: RunConfig) -> str:
    """Return the part of a signature that says at which temperature replies are drawn."""
    usual = {"auto": "0/1", "samples": "1"}.get(plan.weighting, "0")  # 0, and 1 for draws
    return f"t={usual if plan.temperature is None else f'{plan.temperature:g}'}"


def judge_notes(
    config: RunConfig, metrics: Mapping[str, Metric], opened: Mapping[str, OpenedJudge]
) -> list[str]:
    """Return what every report must say about these judges."""
    judges = {name: judge.provider for name, judge in opened.items()}
    notes = list(dict.fromkeys(provider.notice for provider in judges.values() if provider.notice))
    without_effect = {
        "ray_workers": config.ray_workers is not None and config.engine != "ray",
        "panel": config.panel != "mean" and len(judges) == 1,
    }
    notes += [
        f"{option(name)} had no effect."
        for name, holds in without_effect.items()
        if holds and judges
    ]
    asking_metrics = [name for name, metric in metrics.items() if metric.asks]
    if asking_metrics and len(judges) > 1:
        notes.append(f"Of the panel {', '.join(asking_metrics)} asks {next(iter(judges))} alone.")
    if config.weighting == "samples" and any(
        judge.plan.temperature == 0 for judge in opened.values()
    ):
        notes.append(
            "Replies were drawn at temperature 0. They differ only if the server is not deterministic."
        )
    recorded = max(
        (judge.draws for judge in judges.values() if isinstance(judge, ReplayProvider)), default=0
    )
    draws = max((judge.settings.draws for judge in opened.values()), default=0)
    if 1 < recorded < draws and config.weighting in ("auto", "samples"):
        expected = f"not the {draws} asked for"
        notes.append(
            f"The recording holds {recorded} draws of a prompt, {expected}: scores are of {recorded}."
        )
    return notes


def _check_settings(config: RunConfig, judge: Judge) -> tuple[str, str]:
    """Return the names of a judge's provider and model. Raise ConfigError for settings that it cannot use."""
    name, model = _provider_of(config, judge)
    _refuse(config, judge.name, _LACKING.get(name, ()))
    return name, model


def _refuse(config: RunConfig, judge: str, lacking: Iterable[str]) -> None:
    """Raise ConfigError if one of these settings is set."""
    for key in lacking:
        if getattr(config, key):
            raise ConfigError(
                f"{option(key)}: {judge} cannot use it; in a panel, give it to the other judges alone: "
                f"model: [{{name: ..., {key}: ...}}]"
            )


def _provider_of(config: RunConfig, judge: Judge) -> tuple[str, str]:
    """Return the name of the provider or vendor, and that of the model."""
    prefix, slash, rest = judge.name.partition("/")
    if slash and prefix in plugins.names("providers"):
        whole = (
            prefix == "openai" and config.base_url is not None
        )  # to other servers, the model's name is openai/gpt-4o
    else:
        whole = not slash or prefix not in VENDORS or host_of_another(prefix, config.base_url)
    return ("openai", judge.name) if whole else (prefix, rest)
