"""The judges of a plan: who is meant by `--model`, and what there is to say about them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.cache import local_dir, metrics_folder
from judge.config import Judge, Plan, RankPlan, plan
from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.messages import command, in_python, option
from judge.metrics import Metric, asks_judge
from judge.providers import Provider
from judge.providers.replay import ReplayProvider, replayed
from judge.providers.vendors import VENDORS, Vendor, host_of_another

HEURISTIC = "heuristic"
_HOW_TO_JUDGE = (
    "no judge is named. Ways to go on:\n"
    "  --model gpt-5.4-mini           with its key in the environment (OPENAI_API_KEY, or --key-env NAME)\n"
    "  --model VENDOR/NAME            anthropic, gemini, openrouter, ollama, ...: with that vendor's key\n"
    "  --model NAME --base-url URL    a model on a server of your own: llama.cpp, vLLM, Ollama, ...\n"
    "  --model local/FOLDER           a model that this process computes itself, of transformers' form\n"
    "  --replay CALLS.jsonl           replies recorded by an earlier run with --record\n"
    "  --model scripted/REPLIES.yaml  a dry run on replies that you write{more}"
)
_METRICS = "\n  --criteria none                metrics alone"
_HEURISTIC = (
    "\n  --model heuristic              a baseline of surface features: no language model, and no judge to publish"
)
_ALIKE = 0.8
_KEYED = ("openai", "decisions")
"""Providers that insist on a key, unless they are told not to."""
UNKNOWN = "https://AZURE_OPENAI_ENDPOINT.openai.azure.com"
"""In the place of an address at Azure that is not set: enough to find a price, and nobody's."""
_OF_THE_ADDRESS = ("base_url", "key_env")
_OF_ASKING = (
    *_OF_THE_ADDRESS, "weighting", "draws", "min_mass", "reply", "structured", "merge_criteria", "temperature",
    "max_tokens", "max_concurrency", "timeout", "retries", "rpm", "tpm", "deadline", "budget", "engine",
    "ray_workers",
)  # fmt: skip


def requested_judges(
    made: Plan, given: Sequence[Judge | Provider]
) -> tuple[list[Judge | Provider], dict[str, Any] | None]:
    """The judges that are asked, and the heuristic's options where it is among those given.

    As the only judge it stands in the criteria's places; beside a judge it is a metric. Raises ConfigError.
    """
    others = [one for one in given if not (isinstance(one, Judge) and one.name == HEURISTIC)]
    if len(others) == len(given):
        return others, None
    if isinstance(made, RankPlan):
        raise ConfigError(
            f"{option('model', HEURISTIC)}: it scores texts one by one and compares none; {command('run')} takes it"
        )
    if any(isinstance(one, Judge) and one.name == HEURISTIC and (one.base_url or one.key_env) for one in given):
        raise ConfigError(f"{option('model', HEURISTIC)}: it asks no server, and has neither base_url nor key_env")
    alone = not others and made.replay is None
    return others, {"criteria": list(made.criteria), "prefix": ""} if alone else {}


def unused_setting_notes(made: Plan, given: Sequence[Judge | Provider], *, alone: bool) -> list[str]:
    """What was said of asking where nobody is asked: of the heuristic, `alone` in a judge's place, or a recording."""
    if not alone and made.replay is None:
        return []
    said = made.model_fields_set | {
        name for one in given if isinstance(one, Judge) for name in _OF_THE_ADDRESS if getattr(one, name)
    }
    names = [option(name) for name in (_OF_ASKING if alone else _OF_THE_ADDRESS) if name in said]
    who = "The heuristic asks no model" if alone else "Recorded replies come from no server"
    return [f"{who}: {', '.join(names)} had no effect."] if names else []


def open_providers(made: Plan, given: Sequence[Judge | Provider]) -> dict[str, Provider]:
    """The providers of a plan's judges, by the names that a panel's columns have. Raises ConfigError and DataError."""
    if not given and made.replay is None:
        more = ("" if made.metrics == () else _METRICS) + _HEURISTIC  # a suite has no metrics
        raise ConfigError(_HOW_TO_JUDGE.format(more="" if isinstance(made, RankPlan) else more))
    found: list[Provider]
    if made.replay is None:
        found = [open_judge(made, one) if isinstance(one, Judge) else one for one in given]
    else:
        found = [*_replayed(made, made.replay, given)]
    # By the model alone; where that is not enough, with its provider, then with its address.
    names = [one.model for one in found]
    if len(set(names)) < len(names):
        names = [f"{one.name}/{one.model}" for one in found]
    if len(set(names)) < len(names):
        names = [f"{name}@{one.endpoint.partition('//')[2]}" for name, one in zip(names, found, strict=True)]
    if len(set(names)) < len(names):
        twin = max(names, key=names.count)
        raise ConfigError(
            f"two judges are both {twin!r}: a panel's judges differ in their model or address; "
            "a ScriptedProvider takes its name as model="
        )
    return dict(zip(names, found, strict=True))


def open_offline(made: Plan) -> list[Judge | Provider]:
    """The judges of a plan that sends nothing, to be prepared: opened though keys are not set. Raises ConfigError."""
    if made.replay is not None:
        return [*made.model]
    return [one if one.name == HEURISTIC else open_judge(made, one, sends=False) for one in made.model]


def open_judge(made: Plan, judge: Judge, *, sends: bool = True) -> Provider:
    """The provider of one judge of a plan; one that sends nothing needs no key. Raises ConfigError."""
    made = _own(made, judge)
    name, model = _provider_of(made, judge)
    if "," in model and (name in _KEYED or name not in plugins.names("providers")):
        names = [part.strip() for part in judge.name.split(",") if part.strip()]
        each = option("model", names) if in_python() else " ".join(option("model", one) for one in names)
        raise ConfigError(f"{option('model', judge.name)}: this would be one model of that name; for several: {each}")
    if name == "openai" and not (made.base_url or os.environ.get("OPENAI_BASE_URL")):
        _refuse_strange(model)
    if name not in plugins.names("providers"):
        vendor = VENDORS[name]
        # With an address, and no variable named for it, a vendor insists on no key.
        return vendor.open(model, made if sends else plan(given={"base_url": made.base_url or _address(vendor)}))
    kind = plugins.load("providers", name)
    keyless = name in _KEYED and not sends
    kept = {"keep": _kept(made)} if getattr(kind, "keeps", False) else {}
    provider: Provider = (
        kind(model, base_url=made.base_url, needs_key=False) if keyless else kind.open(model, made, **kept)
    )
    return provider


def _kept(made: Plan) -> Path | None:
    """Where a provider may keep what took it time to find out."""
    return None if made.cache is False else metrics_folder(local_dir(made.cache))


def _address(vendor: Vendor) -> str:
    """The vendor's address, or what stands in its place where its variable is not set."""
    try:
        return vendor.address
    except ConfigError:
        return f"{UNKNOWN}{vendor.url}"


def judge_notes(made: Plan, metrics: Mapping[str, Metric], judges: Mapping[str, Provider]) -> list[str]:
    """What every report must say of these judges."""
    told = list(dict.fromkeys(provider.notice for provider in judges.values() if provider.notice))
    if made.merge_criteria and judges and all(provider.decides for provider in judges.values()):
        told.append(f"Typed questions on one text go together in any case: {option('merge_criteria')} had no effect.")
    if made.ray_workers is not None and judges and made.engine != "ray":
        told.append(
            f"There are no workers with {option('engine', made.engine)}: {option('ray_workers')} had no effect."
        )
    return [*told, *_about_asking(metrics, list(judges)), *_about_draws(made, judges.values())]


def _own(made: Plan, judge: Judge) -> Plan:
    """The plan with the judge's own address and key's variable in the place of the run's."""
    own = {name: value for name in _OF_THE_ADDRESS if (value := getattr(judge, name))}
    return made.model_copy(update=own)


def _provider_of(made: Plan, judge: Judge) -> tuple[str, str]:
    """The provider's or the vendor's name, and the model's."""
    prefix, slash, rest = judge.name.partition("/")
    if slash and prefix in plugins.names("providers"):
        whole = prefix == "openai" and made.base_url is not None  # to other servers, the model's name is openai/gpt-4o
    else:
        whole = not slash or prefix not in VENDORS or host_of_another(prefix, made.base_url)
    return ("openai", judge.name) if whole else (prefix, rest)


def _refuse_strange(model: str) -> None:
    """Refuses a name that OpenAI's models do not have, before it is asked for a key."""
    prefix, slash, _ = model.partition("/")
    if slash:
        known = [*VENDORS, *plugins.names("providers")]
        raise ConfigError(
            f"{option('model', model)}: {plugins.unknown_name_message('vendor', prefix, known)}; "
            f"the address of any other server is named with {option('base_url')}"
        )
    if model == HEURISTIC:
        raise ConfigError(f"{option('model', HEURISTIC)}: it scores texts and writes none; name a model that does")
    if difflib.get_close_matches(model.lower(), [HEURISTIC], cutoff=_ALIKE):
        raise ConfigError(
            f"{option('model', model)}: the baseline of surface features is called {HEURISTIC!r}; "
            f"a model of that name on a server of your own takes {option('base_url')}"
        )


def _replayed(made: Plan, path: Path, given: Sequence[Judge | Provider]) -> list[ReplayProvider]:
    """The providers of recorded replies, of which the models are called as they were recorded."""
    if not all(isinstance(one, Judge) for one in given):
        raise ConfigError(
            f"{option('replay')} answers in the place of models named in text; leave out the provider object"
        )
    meant = [one for one in given if isinstance(one, Judge)]
    names = [_provider_of(_own(made, one), one)[1] for one in meant]
    whole = [one.name for one in meant]
    try:
        return replayed(path, names)
    except ConfigError:
        if names == whole:
            raise
        return replayed(path, whole)  # recorded from a gateway, where the vendor is part of the name


def _about_draws(made: Plan, judges: Collection[Provider]) -> list[str]:
    told = []
    if judges and made.weighting == "samples" and made.temperature == 0:
        told.append(
            "Replies were drawn at temperature 0: where they differ, it is because the server does not repeat itself."
        )
    held = max((judge.draws for judge in judges if isinstance(judge, ReplayProvider)), default=0)
    if 1 < held < made.draws and made.weighting in ("auto", "samples"):
        wanted = f"not the {made.draws} asked for"
        told.append(f"The recording holds {held} draws of a prompt, {wanted}: scores are of {held}.")
    return told


def _about_asking(metrics: Mapping[str, Metric], judges: Sequence[str]) -> list[str]:
    asking = [name for name, metric in metrics.items() if asks_judge(metric)]
    return [f"Of the panel {', '.join(asking)} asks {judges[0]} alone."] if asking and len(judges) > 1 else []
