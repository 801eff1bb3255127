"""What a colleague would look at first: versions, extras, keys, cache, and whether a model can be asked.

A model tried with a few tiny requests: whether it answers, and what it accepts. No reply is kept.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Literal

from judge import criteria, text
from judge.cache import cache_location, local_dir, open_for_admin
from judge.commands.cost_estimate import dollars
from judge.commands.judge_models import HEURISTIC, open_judge
from judge.commands.preparation import criterion_for
from judge.config import Judge, Plan
from judge.core.errors import JudgeError, ParseError, ProviderError, Refused, Transient
from judge.core.records import Criterion, Request, Response, Sample, Usage
from judge.core.redis_url import RedisUrl
from judge.core.version import __version__
from judge.criteria.render import Renderer
from judge.providers import Provider, pricing
from judge.providers.vendors import VENDORS
from judge.scoring import strategies
from judge.scoring.strategies import SamplingOptions, Strategy, UnusableReply

State = Literal["ok", "lacking", "wrong"]
"""`lacking` is what is not there and need not be."""

_DISTRIBUTION = "textjudge"
_NO_EXTRA = ("all", "dev")
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
_LANGUAGES = {"ja": "ja", "ko": "ko", "zh": "zh", "zh, by words": "zh-words"}
"""Tokenizers by what they are for."""
_VARIABLES = (
    "JUDGE_CACHE", "XDG_CACHE_HOME", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "RAY_ADDRESS", "HTTP_PROXY",
    "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "HF_HOME", "HF_HUB_OFFLINE", "NO_COLOR",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, among others of its `part`; `mend` says what to do where there is something."""

    part: str
    name: str
    state: State
    said: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that was found."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return all(one.state != "wrong" for one in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"ok": self.ok, "findings": [asdict(one) for one in self.findings]}


def check_environment(made: Plan) -> list[Finding]:
    """What there is here. Opens no connection, except to a shared cache where a model is named, and sends nothing."""
    return [*_versions(), *_packages(), *_keys(), *_cache(made), *_variables(), *_tokenizers()]


def _versions() -> Iterator[Finding]:
    yield Finding("this machine", "judge", "ok", f"{__version__} in {Path(__file__).parents[1]}")
    yield Finding("this machine", "Python", "ok", platform.python_version())
    yield Finding("this machine", "platform", "ok", platform.platform())


def _packages() -> Iterator[Finding]:
    """The packages that are always needed, and those of each extra."""
    listed: dict[str, list[str]] = {"": []}
    try:
        for line in requires(_DISTRIBUTION) or ():
            name, extra = _REQUIREMENT.match(line).groups("")  # type: ignore[union-attr]
            listed.setdefault(extra, []).append(name)
    except PackageNotFoundError:
        mend = "pip install -e . in the checkout, or pip install textjudge"
        yield Finding("packages", _DISTRIBUTION, "wrong", "not installed: judge runs from its folder", mend)
        return
    for name in listed.pop(""):
        has = _version(name)
        yield Finding("packages", name, "ok" if has else "wrong", has or "not installed", "" if has else _pip(name))
    for extra, names in listed.items():
        if extra not in _NO_EXTRA:
            yield _extra(extra, names)


def _extra(extra: str, names: Sequence[str]) -> Finding:
    found = {name: _version(name) for name in names}
    if lacks := [name for name, has in found.items() if not has]:
        return Finding("extras", extra, "lacking", f"lacks {', '.join(lacks)}", _pip(f"{_DISTRIBUTION}[{extra}]"))
    return Finding("extras", extra, "ok", ", ".join(f"{name} {has}" for name, has in found.items()))


def _version(package: str) -> str:
    """Which version is installed; "" for none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _pip(what: str) -> str:
    return f"pip install '{what}'"


def _keys() -> Iterator[Finding]:
    """Whose keys are in the environment. Of a key itself nothing is told."""
    keys = {"openai": ("OPENAI_API_KEY", False)}
    keys |= {vendor.name: (vendor.key_env, vendor.local) for vendor in VENDORS.values()}
    for name, (variable, local) in keys.items():
        if os.environ.get(variable, "").strip():
            yield Finding("keys", name, "ok", f"${variable} is set")
        else:
            own = "; a server of your own may need none" if local else ""
            yield Finding("keys", name, "lacking", f"${variable} is not set{own}")


def _cache(made: Plan) -> Iterator[Finding]:
    """The cache that runs use: the folder, and the address above it where machines share one."""
    try:
        place = cache_location(made.cache or None)
    except JudgeError as error:
        yield Finding("cache", "address", "wrong", str(error), "set it again, or name another with --cache")
        return
    if isinstance(place, RedisUrl):
        if made.model:
            yield _replies("address", place)
        else:
            yield Finding("cache", "address", "ok", f"{place}: not asked without --model; judge cache stats asks it")
    folder = local_dir(place)
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        said = f"{folder}: {there} is {'not writable' if there.is_dir() else 'a file'}"
        yield Finding("cache", "folder", "wrong", said, "name another with --cache DIR or $JUDGE_CACHE")
        return
    if (folder / "responses").exists():
        yield _replies("folder", folder)
    else:
        yield Finding("cache", "folder", "ok", f"{folder}: empty, and can be written")
    free = shutil.disk_usage(there).free
    yield Finding("cache", "disk", "ok", f"{free / 1e9:,.1f} GB free")


def _replies(name: str, place: RedisUrl | Path) -> Finding:
    try:
        with open_for_admin(place, beneath=False) as store:
            found = store.stats()
    except JudgeError as error:
        return Finding("cache", name, "wrong", str(error), "name another with --cache, or do without: --no-cache")
    return Finding(
        "cache", name, "ok", f"{place}: replies kept: {found['responses']:,}, {found['bytes'] / 1e6:,.1f} MB"
    )


def _variables() -> Iterator[Finding]:
    """Which variables that change what a run does are set, by name: a value may be somebody's secret."""
    said = {"OPENAI_BASE_URL": "is set: models without a vendor's name are asked there, and not at OpenAI"}
    for name in _VARIABLES:
        if os.environ.get(name) or os.environ.get(name.lower()):
            yield Finding("variables", f"${name}", "ok", said.get(name, "is set"))


def _tokenizers() -> Iterator[Finding]:
    """What cuts Japanese, Korean and Chinese texts into words, for ROUGE and the like."""
    for name, tokenizer in _LANGUAGES.items():
        if text.installed(tokenizer):
            yield Finding("tokenizers", name, "ok", text.signature(tokenizer))
        else:
            yield Finding(
                "tokenizers", name, "lacking", "not installed: metrics count characters", _pip(f"{_DISTRIBUTION}[cjk]")
            )


_CRITERION = "fluency"
"""A short one of the built-in criteria, asked about its own description."""
_SETTINGS = SamplingOptions(max_tokens=16, draws=3)
_USUAL = SamplingOptions()
_PRICED_TOKENS, _PRICED = 1000, 1000
_BARRED = (401, 403)


_BUSY = 429
_LOOK = "judge run DATA --limit 3 shows its replies"
_WAYS: Mapping[Strategy, str] = {
    "logprobs": "the probabilities of one reply's tokens",
    "decisions": "the probabilities of a typed question's answers",
    "samples": f"the mean of {_USUAL.draws} draws",
    "single": "one reply as it is written",
}
Said = tuple[str, State, str] | tuple[str, State, str, str]
"""A finding on a model, without its name."""


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """A judge to be tried: its provider, or why there is none. `asks` is how many requests it takes."""

    judge: Judge
    provider: Provider | None = None
    error: JudgeError | None = None

    @property
    def asks(self) -> int:
        if self.provider is None or self.provider.notice:
            return 0
        return 1 if self.provider.decides or _exact(self.provider) else 3


def open_checks(made: Plan) -> list[ModelCheck]:
    """The judges of a plan, opened; nothing is sent."""
    found = []
    for judge in made.model:
        try:
            found.append(ModelCheck(judge, None if judge.name == HEURISTIC else open_judge(made, judge)))
        except JudgeError as error:
            found.append(ModelCheck(judge, error=error))
    return found


def announce(found: Sequence[ModelCheck]) -> str:
    """What is going to be sent, or ""."""
    asked = [f"{one.asks} small request{'s' * (one.asks > 1)} to {one.judge.name}" for one in found if one.asks]
    if not asked:
        return ""
    return (
        f"{' and '.join(asked)}, for replies of at most {_SETTINGS.max_tokens} tokens that are kept nowhere (what a "
        "server refuses is asked once more without; a model that thinks first takes as long as it likes)"
    )


async def check_model(made: Plan, found: Sequence[ModelCheck]) -> list[Finding]:
    """What came of it, one model after the other."""
    return [finding for one in found for finding in await _tried(made, one)]


async def _tried(made: Plan, trial: ModelCheck) -> list[Finding]:
    part, provider = trial.judge.name, trial.provider
    if trial.error is not None:
        return [Finding(part, "model", "wrong", str(trial.error))]
    if provider is None:
        return [Finding(part, "model", "ok", "the baseline of surface features: no model is asked")]
    if provider.notice:
        return [Finding(part, "model", "ok", "its replies are read from a file: there is no server to try")]
    try:
        return [Finding(part, *said) for said in await _asked(made, trial.judge, provider)]
    finally:
        await provider.aclose()


async def _asked(made: Plan, judge: Judge, provider: Provider) -> list[Said]:
    """The findings on a model, without its name."""
    top: Strategy = "decisions" if provider.decides else "logprobs"
    criterion = _criterion(provider)
    begun = time.perf_counter()
    try:
        first = await provider.complete(_request(provider, criterion, top))
    except JudgeError as error:
        return list(_failed(provider, error))
    said: list[Said] = [("address", "ok", f"{provider.endpoint} answered in {time.perf_counter() - begun:.1f} s")]
    said += _key(made, judge, provider)
    drawn: Response | None = None
    if not (provider.decides or _exact(provider)):
        drawn, told = await _draws(provider, criterion)
        said += [*_accepted(first), told, await _schema(provider, criterion)]
    way, told = _way(top, criterion, first, drawn)
    said.append(told)
    return [*said, _price(provider, way, first, drawn)] if way else said


def _criterion(provider: Provider) -> Criterion:
    return criterion_for(replace(criteria.load(_CRITERION), steps=()), provider)


def _request(provider: Provider, criterion: Criterion, rung: Strategy) -> Request:
    """What a rung asks first of a short text: the criterion's own description."""
    sample = Sample("doctor", "doctor", criterion.description)
    prompt = Renderer(criterion, criteria.template_bodies(criterion)).render(sample)
    first = strategies.requests(prompt, criterion, rung, _SETTINGS, exact=_exact(provider))[0]
    return replace(first, model=provider.model, endpoint=provider.endpoint)


def _exact(provider: Provider) -> bool:
    return bool(getattr(provider, "exact", False))


def _failed(provider: Provider, error: JudgeError) -> Iterator[Said]:
    """What a first request that was not answered shows."""
    if not isinstance(error, ProviderError):
        yield "model", "wrong", str(error)
        return
    status = error.status if isinstance(error, Refused | Transient) else None
    if status is None:
        yield "address", "wrong", str(error)
        return
    yield "address", "ok", f"{provider.endpoint} answers"
    if status == _BUSY:
        yield "model", "wrong", str(error), "it is busy, or a limit of the account is reached: try again in a minute"
    else:
        yield "key" if status in _BARRED else "model", "wrong", str(error)


def _key(made: Plan, judge: Judge, provider: Provider) -> Iterator[Said]:
    """That the key was taken, where there is a server that may want one."""
    if not provider.endpoint.startswith("http"):
        return
    own = VENDORS[provider.name].key_env if provider.name in VENDORS else made.key_env
    variable = judge.key_env or (made.key_env if "key_env" in made.model_fields_set else own)
    sent = os.environ.get(variable, "").strip()
    yield "key", "ok", f"${variable} is taken" if sent else f"none is asked for (${variable} is not set)"


def _accepted(first: Response) -> Iterator[Said]:
    """What of the first request was taken, and what it took away."""
    unmet, thought = first.unmet, first.usage.reasoning_tokens
    given = bool(first.choices) and first.choices[0].tokens is not None
    yield "token probabilities", "ok" if given else "lacking", "given" if given else "not given"
    if "reasoning" in unmet:
        yield "thinking", "ok", "told not to think first, as it gives token probabilities only then"
    elif thought:
        yield "thinking", "ok", f"thinks before it writes: {thought:,} tokens for this reply, which are paid for"
    if "temperature" in unmet:
        yield "temperature", "lacking", "not taken: replies are drawn at the model's own"
    else:
        yield "temperature", "ok", "taken"
    if "max_tokens" in unmet:
        yield "length", "lacking", "no limit on a reply's length works: what one can cost is not bounded"
    else:
        yield "length", "ok", "a limit on a reply's length is taken"


async def _draws(provider: Provider, criterion: Criterion) -> tuple[Response | None, Said]:
    """Several draws in one request, as one response for all that came."""
    request = _request(provider, criterion, "samples")
    request = replace(request, params={**request.params, "n": _SETTINGS.draws})
    try:
        drawn = await provider.complete(request)
    except JudgeError as error:
        return None, ("draws", "lacking", f"cannot be tried: {error}")
    got = len(drawn.choices)
    if got < _SETTINGS.draws:
        return drawn, ("draws", "lacking", f"{got} in one request: {_USUAL.draws} draws are as many requests")
    return drawn, ("draws", "ok", f"{got} in one request")


async def _schema(provider: Provider, criterion: Criterion) -> Said:
    """Whether `--structured` works."""
    name = "JSON schema"
    try:
        reply = await provider.complete(_request(provider, replace(criterion, form="json"), "single"))
    except JudgeError as error:
        return name, "lacking", f"cannot be tried: {error}"
    if "response_format" in reply.unmet:
        return name, "lacking", "not taken: --structured asks in words alone"
    try:
        kept = isinstance(json.loads(reply.choices[0].text), dict)
    except (ValueError, LookupError):
        kept = False
    return (name, "ok", "taken, and kept to") if kept else (name, "lacking", "taken, and not kept to")


def _way(top: Strategy, criterion: Criterion, first: Response, drawn: Response | None) -> tuple[Strategy | None, Said]:
    """The way to a score that `--weighting auto` would take, None where there is none."""
    name, why = "--weighting auto", ""
    draws = [replace(drawn, choices=(one,)) for one in drawn.choices] if drawn else []
    tries: list[tuple[Strategy, Sequence[Response]]] = [(top, [first])]
    tries += [("samples", draws)] if draws else []
    tries += [("single", [first])] if top == "logprobs" else []
    for rung, answers in tries:
        try:
            _, how = strategies.score_reply(rung, answers, criterion, _SETTINGS)
        except UnusableReply as error:
            why = why or f", as {error}"
        except ParseError as error:
            return None, (name, "wrong", f"its reply holds no score: {error}", _LOOK)
        else:
            mass = f", of which {how.mass:.2f} is on the scale" if how.mass is not None and rung == top else ""
            return rung, (name, "ok", f"takes {rung}: {_WAYS[rung]}{mass}{why}")
    return None, (name, "wrong", f"no way to a score{why}", _LOOK)


def _price(provider: Provider, way: Strategy, first: Response, drawn: Response | None) -> Said:
    """What judgments cost at published prices, with a reply as long as this one was."""
    per_token = pricing.per_token(provider.model, provider.endpoint, decides=provider.decides)
    if per_token is None:
        return "price", "lacking", pricing.why_unknown(provider.model, provider.endpoint, decides=provider.decides)
    draws = _USUAL.draws if way == "samples" else 1
    asked = draws if drawn is None or len(drawn.choices) < _SETTINGS.draws else 1
    written = first.usage.completion_tokens * draws
    price = pricing.cost(Usage(_PRICED * _PRICED_TOKENS * asked, _PRICED * written), per_token)
    times = f" {asked} times" if asked > 1 else ""
    each = f"read {_PRICED_TOKENS:,} tokens{times} and write {written:,}"
    source = pricing.price_source(decides=provider.decides)
    said = f"about {dollars(price)} for {_PRICED:,} judgments that each {each} ({source})"
    return "price", "ok", f"{said}; judge plan DATA says it for yours"
