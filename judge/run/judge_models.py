"""Open the judges of a run: find the provider that `--model` names, and check its settings.

`judge_notes` has what every report must say about the judges.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from judge.config import RankConfig, RunConfig, load_config
from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.messages import in_python, option
from judge.core.request_options import Judge, public_headers
from judge.metrics import Metric
from judge.providers import Capabilities, Provider
from judge.providers.recording import replayed
from judge.providers.vendors import VENDORS, host_of_another
from judge.scoring.strategies import EFFORT, HEADERS, REASONING_DRAWS, SamplingOptions

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
    """A judge of a run: its provider, and the configuration with the judge's own settings.

    `settings` say how it is asked, and how its replies are read. `entry` is the judge as the user
    named it, or None for a provider object.
    """

    provider: Provider
    config: RunConfig
    settings: SamplingOptions
    entry: Judge | None = None

    @classmethod
    def of(
        cls,
        provider: Provider,
        config: RunConfig,
        entry: Judge | None = None,
    ) -> OpenedJudge:
        """Return the judge with its own settings, the run's and those its provider needs."""
        if entry is not None:
            config = config.of_judge(entry)
        settings = sampling_options(config)
        if Capabilities.of(provider).reasons and settings.draws_if_reasoning:
            settings = replace(settings, draws=settings.draws_if_reasoning)
        return cls(provider, config, settings, entry)

    @property
    def label(self) -> str:
        """The name that the user gave it in a panel; "" for none."""
        return self.entry.label if self.entry is not None else ""

    @property
    def names(self) -> _ModelNames:
        """The model's names, from the shortest to the most specific."""
        provider = self.provider
        with_provider = f"{provider.name}/{provider.model}"
        # `https://api.openai.com/v1` without its scheme
        address = provider.endpoint.partition("//")[2]
        return _ModelNames(provider.model, with_provider, f"{with_provider}@{address}")


AnyJudge = Judge | Provider | OpenedJudge
"""A judge of a run: named by the user, a provider object, or opened by another run."""


class _ModelNames(NamedTuple):
    """A model's name alone, with its provider, and with the address too."""

    model: str
    with_provider: str
    with_address: str


def open_judges(
    config: RunConfig, judges: Sequence[AnyJudge]
) -> dict[str, OpenedJudge]:
    """Open the judges of a run, by the names they have in a panel's columns.

    A judge that another run has opened keeps its provider and its own settings; the rest is
    taken from this configuration. Raises ConfigError and DataError.
    """
    if not judges and config.replay is None:
        # A suite has no metrics.
        has_metrics = config.metrics != ()
        may_measure = has_metrics and not isinstance(config, RankConfig)
        raise ConfigError(_how_to_judge(may_measure=may_measure))
    for judge in judges:
        if isinstance(judge, Judge):
            _check_settings(config.of_judge(judge), judge)
        elif not isinstance(judge, OpenedJudge):
            # A provider object has its own address and key.
            kind = "decisions" if judge.decides else judge.name
            lacking = _LACKING.get(kind, ())
            unsupported = [setting for setting in lacking if setting in _ADDED_KEYS]
            _refuse(config, judge.model, unsupported)
    providers: list[Provider] = []
    if config.replay is not None:
        providers += _open_recording(config, config.replay, judges)
    else:
        for judge in judges:
            providers.append(_provider(config, judge))
    opened: list[OpenedJudge] = []
    # Without names, a recording may have more judges than there are here.
    for provider, judge in zip_longest(providers, judges):
        entry = judge.entry if isinstance(judge, OpenedJudge) else judge
        if not isinstance(entry, Judge):
            entry = None
        opened.append(OpenedJudge.of(provider, config, entry))
    names = _names(opened)
    if len(set(names)) < len(names):
        twin = max(names, key=names.count)
        raise ConfigError(
            f"two judges are both {twin!r}: a panel's judges differ in their model, address or "
            "settings (temperature, system_message, reasoning_effort, extra_body, headers without "
            "a secret), and not in their label alone; a function has the name of its def, and a "
            "ScriptedProvider takes its name as model="
        )
    return dict(zip(names, opened, strict=True))


def _provider(config: RunConfig, judge: AnyJudge) -> Provider:
    """Return the provider of a judge; one given by name is opened. Raises ConfigError."""
    if isinstance(judge, Judge):
        return open_judge(config, judge)
    return judge.provider if isinstance(judge, OpenedJudge) else judge


def _open_recording(
    config: RunConfig,
    recording: Path,
    judges: Sequence[AnyJudge],
) -> Sequence[Provider]:
    """Return the recorded judges of these names. Raises ConfigError and DataError."""
    named = [judge for judge in judges if isinstance(judge, Judge)]
    if len(named) < len(judges):
        raise ConfigError(
            f"{option('replay')} replaces models given by name; leave out the provider object"
        )
    full_names = [judge.name for judge in named]
    recorded_names = []
    for judge in named:
        vendor, model_name = _provider_of(config.of_judge(judge), judge)
        if vendor == "scripted":
            # A scripted model is recorded by the name of its file.
            model_name = Path(model_name).name
        recorded_names.append(model_name)
    try:
        return replayed(recording, recorded_names)
    except ConfigError:
        if recorded_names == full_names:
            raise
        # Recorded from a gateway, where the vendor is part of the model's name.
        return replayed(recording, full_names)


def _names(judges: Sequence[OpenedJudge]) -> list[str]:
    """Name judges by their labels, or by their models.

    If that is ambiguous, provider, address and settings are added. Two judges that differ
    only in their label keep one name.
    """
    addresses = [judge.names.with_address for judge in judges]
    settings: list[tuple[str, ...]] = []
    settings_by_address: dict[str, list[tuple[str, ...]]] = {}
    for judge, address in zip(judges, addresses, strict=True):
        parts = (signed_temperature(judge.config), *judge.settings.signature)
        settings.append(parts)
        settings_by_address.setdefault(address, []).append(parts)
    distinct = set(zip(addresses, settings, strict=True))
    some_are_equal = len(distinct) < len(judges)
    shortest_names = _shortest_distinct_names(judges)
    names: list[str] = []
    for index, judge in enumerate(judges):
        if judge.label and not some_are_equal:
            names.append(judge.label)
            continue
        # A setting that all judges of an address share does not distinguish them.
        twins = settings_by_address[addresses[index]]
        shared = set(settings[index]).intersection(*twins)
        differing = [part for part in settings[index] if part not in shared]
        names.append(" ".join([shortest_names[index], *differing]))
    return names


def _shortest_distinct_names(judges: Sequence[OpenedJudge]) -> list[str]:
    """Return the shortest of the models' names that differ between all addresses."""
    addresses = {judge.names.with_address for judge in judges}
    models = [judge.names.model for judge in judges]
    with_provider = [judge.names.with_provider for judge in judges]
    for names in (models, with_provider):
        if len(set(names)) == len(addresses):
            return names
    return [judge.names.with_address for judge in judges]


def open_offline(config: RunConfig, judge: Judge) -> OpenedJudge:
    """Open a judge for a run that sends nothing, even if its key is not set.

    Raises ConfigError.
    """
    provider = open_judge(config, judge, sends=False)
    return OpenedJudge.of(provider, config, judge)


def open_judge(config: RunConfig, judge: Judge, *, sends: bool = True) -> Provider:
    """Open the provider of one judge of a run. If it `sends` nothing, it needs no key.

    Raises ConfigError.
    """
    config = config.of_judge(judge)
    provider_name, model = _check_settings(config, judge)
    is_vendor = provider_name not in plugins.names("providers")
    if "," in model and (provider_name in _KEY_REQUIRED or is_vendor):
        raise _several_models(judge)
    has_address = config.base_url or os.environ.get("OPENAI_BASE_URL")
    if provider_name == "openai" and not has_address:
        _check_vendor(model)
    if is_vendor:
        vendor = _open_vendor(config, provider_name, model, sends=sends)
        return _with_price(vendor, judge)
    provider_class = plugins.load("providers", provider_name)
    if provider_name in _KEY_REQUIRED and not sends:
        provider: Provider = provider_class(
            model, base_url=config.base_url, needs_key=False
        )
    else:
        provider = provider_class.open(model, config)
    return _with_price(provider, judge)


def _several_models(judge: Judge) -> ConfigError:
    """Return the error for `--model one,two`, which says how to name several."""
    parts = [part.strip() for part in judge.name.split(",")]
    names = [part for part in parts if part]
    several = " ".join(option("model", part) for part in names)
    if in_python():
        several = option("model", names)
    return ConfigError(
        f"{option('model', judge.name)}: this would be one model of that name; for several: "
        f"{several}"
    )


def _check_vendor(model: str) -> None:
    """Raise ConfigError for a model of OpenAI with a slash: the part before it is no vendor.

    No OpenAI model has such a name. This reports it before asking for a key.
    """
    prefix, slash, _ = model.partition("/")
    if slash:
        known_vendors = [*VENDORS, *plugins.names("providers")]
        message = plugins.unknown_name_message("vendor", prefix, known_vendors)
        model_option = option("model", model)
        raise ConfigError(
            f"{model_option}: {message}; the address of any other server is named with "
            f"{option('base_url')}"
        )


def _open_vendor(
    config: RunConfig,
    vendor_name: str,
    model: str,
    *,
    sends: bool,
) -> Provider:
    """Open a model of a vendor whose API is compatible with OpenAI's."""
    vendor = VENDORS[vendor_name]
    if not sends:
        # With an address and the default key variable, a vendor needs no key.
        try:
            address = config.base_url or vendor.address
        except ConfigError:
            address = f"{UNKNOWN}{vendor.url}"
        config = load_config(options={"base_url": address})
    openai = plugins.load("providers", "openai")
    provider: Provider = openai.open(model, config, vendor)
    return provider


def _with_price(provider: Provider, judge: Judge) -> Provider:
    """Set the price of tokens that the user has named.

    Raises ConfigError for a provider that costs nothing.
    """
    if judge.price is None:
        return provider
    if not hasattr(provider, "price"):
        raise ConfigError(
            f"price: {judge.name} sends nothing that is priced by tokens; leave it out"
        )
    provider.price = judge.price
    return provider


def sampling_options(config: RunConfig) -> SamplingOptions:
    """Return how a judge with these settings is asked, and how its replies are read."""
    effort = config.reasoning_effort
    draws_are_set = "draws" in config.model_fields_set
    draws_are_default = config.weighting == "auto" and not draws_are_set
    draws_if_reasoning = config.draws
    if draws_are_default:
        draws_if_reasoning = min(REASONING_DRAWS, config.draws)
    added = {
        EFFORT: effort,
        **config.extra_body,
        HEADERS: public_headers(config.headers),
    }
    params: list[tuple[str, Any]] = []
    for parameter, value in added.items():
        # What the user writes into `extra_body` is sent even if it is 0 or empty.
        if value or parameter in config.extra_body:
            params.append((parameter, value))
    reasoning_is_on = effort and effort != "none"
    return SamplingOptions(
        config.weighting,
        config.min_mass,
        config.temperature,
        config.max_tokens,
        draws_if_reasoning if reasoning_is_on else config.draws,
        strict=config.strict,
        repair=config.repair == "on" and not config.strict,
        system_message=config.system_message or "",
        params=tuple(params),
        draws_if_reasoning=draws_if_reasoning,
    )


def signed_temperature(config: RunConfig) -> str:
    """Return the part of a signature that says at which temperature replies are drawn."""
    if config.temperature is not None:
        return f"t={config.temperature:g}"
    # With `auto` it is 0, and 1 for draws.
    default = {"auto": "0/1", "samples": "1"}.get(config.weighting, "0")
    return f"t={default}"


def judge_notes(
    config: RunConfig,
    metrics: Mapping[str, Metric],
    opened: Mapping[str, OpenedJudge],
) -> list[str]:
    """Return what every report must say about these judges."""
    judges = {judge_name: judge.provider for judge_name, judge in opened.items()}
    provider_notices = [provider.notice for provider in judges.values()]
    notes = list(dict.fromkeys(filter(None, provider_notices)))
    if judges and config.ray_workers is not None and config.engine != "ray":
        notes.append(f"{option('ray_workers')} had no effect.")
    if config.panel != "mean" and len(judges) == 1:
        notes.append(f"{option('panel')} had no effect.")
    asking_metrics = [
        metric_name for metric_name, metric in metrics.items() if metric.asks
    ]
    if asking_metrics and len(judges) > 1:
        first_judge = next(iter(judges))
        metric_names = ", ".join(asking_metrics)
        notes.append(f"Only {first_judge} of the panel answers {metric_names}.")
    temperatures = [judge.config.temperature for judge in opened.values()]
    is_deterministic = 0 in temperatures
    if config.weighting == "samples" and is_deterministic:
        notes.append(
            "Replies were drawn at temperature 0. They differ only if the server is not "
            "deterministic."
        )
    return notes


def _check_settings(config: RunConfig, judge: Judge) -> tuple[str, str]:
    """Return the names of a judge's provider and model.

    Raise ConfigError for settings that it cannot use.
    """
    provider_name, model = _provider_of(config, judge)
    _refuse(config, judge.name, _LACKING.get(provider_name, ()))
    return provider_name, model


def _refuse(config: RunConfig, judge: str, unsupported: Iterable[str]) -> None:
    """Raise ConfigError if one of these settings is set."""
    for key in unsupported:
        if getattr(config, key):
            raise ConfigError(
                f"{option(key)}: {judge} cannot use it; in a panel, give it to the other judges "
                f"alone: model: [{{name: ..., {key}: ...}}]"
            )


def _provider_of(config: RunConfig, judge: Judge) -> tuple[str, str]:
    """Return the name of the provider or vendor, and that of the model."""
    prefix, slash, rest = judge.name.partition("/")
    if slash and prefix in plugins.names("providers"):
        # For a server that is not OpenAI's, `openai/gpt-4o` is the whole name of the model.
        is_whole_name = prefix == "openai" and config.base_url is not None
    else:
        is_vendor = slash and prefix in VENDORS
        is_whole_name = not is_vendor or host_of_another(prefix, config.base_url)
    return ("openai", judge.name) if is_whole_name else (prefix, rest)


def _how_to_judge(*, may_measure: bool) -> str:
    """Return the ways to name a judge, a line each, and to do without one if a run may."""
    separator = ", " if in_python() else " "
    model_and_address = [option("model", "NAME"), option("base_url", "URL")]
    model_on_server = separator.join(model_and_address)
    recording = option("replay", "CALLS.jsonl")
    key_option = option("key_env", "NAME")
    record_option = option("record")
    meaning_by_option = {
        option("model", "gpt-5.4-mini"): (
            f"with its key in the environment (OPENAI_API_KEY, or {key_option})"
        ),
        option("model", "VENDOR/NAME"): (
            "anthropic, gemini, openrouter, ollama, ...: with that vendor's key"
        ),
        model_on_server: "a model on a server of your own: llama.cpp, vLLM, Ollama, ...",
        recording: f"replies recorded by an earlier run with {record_option}",
        option("model", "scripted/REPLIES.yaml"): "a dry run on replies that you write",
    }
    if in_python():
        meaning_by_option["model=FUNCTION"] = (
            "a function that gets a prompt and returns a reply"
        )
    if may_measure:
        no_criteria = option("criteria", [] if in_python() else "none")
        meaning_by_option[no_criteria] = "metrics alone"
    width = max(map(len, meaning_by_option))
    lines = ["no judge is named. Choose one of:"]
    for option_text, meaning in meaning_by_option.items():
        lines.append(f"  {option_text:<{width}}  {meaning}")
    return "\n".join(lines)
