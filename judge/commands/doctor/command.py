"""`judge doctor`: test a model with tiny requests.

Replies of these tests are not cached.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from judge import criteria
from judge.commands.doctor.record import Finding, finding_of
from judge.config import RunConfig
from judge.core.errors import JudgeError, ParseError, ProviderError, Refused, Transient
from judge.core.format import dollars, plural
from judge.core.records import Criterion, Request, Response, Sample, Usage
from judge.core.request_options import Judge
from judge.criteria.render import Renderer
from judge.providers import Provider, pricing
from judge.providers.vendors import VENDORS
from judge.report.views.servers import refusals
from judge.results.run_info import JudgeInfo
from judge.run.judge_models import open_judge, sampling_options
from judge.run.preparation import criterion_for
from judge.scoring import strategies
from judge.scoring.strategies import SamplingOptions, Strategy, UnusableReply

_CRITERION = "fluency"
"""A short built-in criterion. The test judges its own description by it."""
_MAX_TOKENS = 16
_DRAWS = 3
# The prompt and the number of judgments that the printed price is for.
_PRICED_TOKENS = 1000
_PRICED_JUDGMENTS = 1000
_UNAUTHORIZED = (401, 403)
_TOO_MANY_REQUESTS = 429
_SHOW_REPLIES = "see its replies with judge run DATA --limit 3"
_STRATEGIES: Mapping[Strategy, str] = {
    "logprobs": "the probabilities of one reply's tokens",
    "decisions": "the probabilities of a typed question's answers",
    "samples": "the mean of {draws} draws",
    "single": "one reply",
}


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """A judge to test: its provider, or the error on opening it."""

    judge: Judge
    provider: Provider | None = None
    error: JudgeError | None = None

    @property
    def asks(self) -> int:
        """The number of requests that the test sends."""
        if self.provider is None or self.provider.notice:
            return 0
        # A chat model is also asked for several draws and for a reply in a JSON schema.
        return 1 if self.provider.decides else 3


def open_checks(config: RunConfig) -> list[ModelCheck]:
    """Open the judges of the configuration. Sends nothing."""
    checks = []
    for judge in config.model:
        try:
            checks.append(ModelCheck(judge, open_judge(config, judge)))
        except JudgeError as error:
            checks.append(ModelCheck(judge, error=error))
    return checks


def announce(checks: Sequence[ModelCheck]) -> str:
    """Say which requests the checks will send; "" if none."""
    requests = []
    for check in checks:
        if check.asks:
            small_requests = plural(check.asks, "small request")
            requests.append(f"{small_requests} to {check.judge.name}")
    if not requests:
        return ""
    all_requests = " and ".join(requests)
    return (
        f"{all_requests}, with replies of at most {_MAX_TOKENS} tokens, which are not cached "
        "(reasoning models may write more)"
    )


async def check_model(config: RunConfig, checks: Sequence[ModelCheck]) -> list[Finding]:
    """Test the models one after the other."""
    findings: list[Finding] = []
    for check in checks:
        part = check.judge.label or check.judge.name
        provider = check.provider
        if provider is None:
            message = str(check.error)
            findings.append(Finding(part, "model", "error", message))
        elif provider.notice:
            text = "replies come from a file; there is no server to test"
            findings.append(Finding(part, "model", "ok", text))
        else:
            try:
                findings += await _test_provider(config, check.judge, provider)
            finally:
                await provider.aclose()
    return findings


async def _test_provider(
    config: RunConfig,
    judge: Judge,
    provider: Provider,
) -> list[Finding]:
    """Send the first request; if it is answered, test what else the model supports."""
    options_of_judge = sampling_options(config.of_judge(judge))
    settings = replace(options_of_judge, max_tokens=_MAX_TOKENS)
    # Without steps, the request is short.
    criterion = replace(criteria.load(_CRITERION), steps=())
    test = _ModelTest(
        judge.label or judge.name,
        provider,
        criterion_for(criterion, provider),
        settings,
    )
    best: Strategy = "decisions" if provider.decides else "logprobs"
    known_before = provider.learned
    start_time = time.perf_counter()
    try:
        first_response = await provider.complete(test.request(best))
    except JudgeError as error:
        return _describe_refusal(test.part, provider, error)
    seconds = time.perf_counter() - start_time
    # A run takes fewer draws from a model that reasons, so the price is estimated for that number.
    if first_response.reasoned:
        n_draws = settings.draws_if_reasoning or settings.draws
        test = replace(test, settings=replace(settings, draws=n_draws))
    answered = f"{provider.endpoint} answered in {seconds:.1f} s"
    findings = [Finding(test.part, "address", "ok", answered)]
    # A provider that is no server has no key.
    if provider.endpoint.startswith("http"):
        findings.append(_describe_key(test.part, config, judge, provider))
    drawn: Response | None = None
    if not provider.decides:
        findings += _check_parameters(test.part, first_response)
        draws_finding, drawn = await test.draws()
        findings.append(draws_finding)
        findings.append(await test.json_schema())
    findings += _known_limits(test.part, provider, known_before)
    strategy, finding = test.auto_weighting(best, first_response, drawn)
    findings.append(finding)
    if strategy:
        n_draws = test.settings.draws if strategy == "samples" else 1
        findings.append(_price(test.part, provider, first_response, drawn, n_draws))
    return findings


@dataclass(frozen=True, slots=True)
class _ModelTest:
    """The test of one model: its part of the report, and the criterion and settings of requests."""

    part: str
    provider: Provider
    criterion: Criterion
    settings: SamplingOptions

    def request(self, strategy: Strategy) -> Request:
        """Return a strategy's first request about a short text: the criterion's own description."""
        sample = Sample("doctor", "doctor", self.criterion.description)
        renderer = Renderer(self.criterion, criteria.template_bodies(self.criterion))
        prompt = renderer.render(sample)
        settings = self.settings
        requests = strategies.requests(prompt, self.criterion, strategy, settings)
        model = self.provider.model
        return replace(requests[0], model=model, endpoint=self.provider.endpoint)

    async def draws(self) -> tuple[Finding, Response | None]:
        """Test whether one request returns several replies."""
        request = self.request("samples")
        request = replace(request, params={**request.params, "n": _DRAWS})
        try:
            drawn = await self.provider.complete(request)
        except JudgeError as error:
            problem = f"could not be tested: {error}"
            return Finding(self.part, "draws", "missing", problem), None
        n_replies = len(drawn.choices)
        in_one = f"{n_replies} in one request"
        # Some servers ignore `n` and return a single reply without an error.
        n_draws = self.settings.draws
        separate = f"{in_one}: {n_draws} draws need {n_draws} requests"
        is_enough = n_replies >= _DRAWS
        return finding_of(self.part, "draws", is_enough, in_one, separate), drawn

    async def json_schema(self) -> Finding:
        """Test whether `--structured` works."""
        check_name = "JSON schema"
        json_test = replace(self, criterion=replace(self.criterion, form="json"))
        request = json_test.request("single")
        try:
            reply = await self.provider.complete(request)
        except JudgeError as error:
            problem = f"could not be tested: {error}"
            return Finding(self.part, check_name, "missing", problem)
        if "response_format" in reply.unmet:
            return Finding(
                self.part,
                check_name,
                "missing",
                "refused: --structured only asks in the prompt",
            )
        is_followed = False
        # A server may accept the schema and ignore it.
        with suppress(ValueError, LookupError):
            json_reply = json.loads(reply.choices[0].text)
            is_followed = isinstance(json_reply, dict)
        return finding_of(
            self.part,
            check_name,
            is_followed,
            "accepted and followed",
            "accepted, but not followed",
        )

    def auto_weighting(
        self,
        best: Strategy,
        first_response: Response,
        drawn: Response | None,
    ) -> tuple[Strategy | None, Finding]:
        """Return the strategy that `--weighting auto` would use, if there is one."""
        check_name = "--weighting auto"
        candidates: list[tuple[Strategy, Sequence[Response]]] = []
        candidates.append((best, [first_response]))
        if drawn is not None and drawn.choices:
            draws = [replace(drawn, choices=(choice,)) for choice in drawn.choices]
            candidates.append(("samples", draws))
        if best == "logprobs":
            candidates.append(("single", [first_response]))
        reason = ""
        for strategy, answers in candidates:
            try:
                _, provenance = strategies.score_reply(
                    strategy,
                    answers,
                    self.criterion,
                    self.settings,
                )
            except UnusableReply as error:
                # The first strategy that does not work explains why another one is used.
                reason = reason or f", as {error}"
            except ParseError as error:
                problem = f"the reply has no score: {error}"
                advice = _SHOW_REPLIES
                return None, Finding(self.part, check_name, "error", problem, advice)
            else:
                mass = ""
                if provenance.mass is not None and strategy == best:
                    mass = f", of which {provenance.mass:.2f} is on the scale"
                method = _STRATEGIES[strategy].format(draws=self.settings.draws)
                outcome = f"takes {strategy}: {method}{mass}{reason}"
                return strategy, Finding(self.part, check_name, "ok", outcome)
        problem = f"no method gives a score{reason}"
        return None, Finding(self.part, check_name, "error", problem, _SHOW_REPLIES)


def _describe_refusal(
    part: str, provider: Provider, error: JudgeError
) -> list[Finding]:
    """Say whether the address, the key or the model is at fault."""
    if not isinstance(error, ProviderError):
        return [Finding(part, "model", "error", str(error))]
    status = error.status if isinstance(error, Refused | Transient) else None
    has_moved = status is not None and 300 <= status < 400
    # A server whose reply is of no use can be reached.
    has_answered = status is not None or isinstance(error, Refused)
    if has_moved or not has_answered:
        return [Finding(part, "address", "error", str(error))]
    is_about_model = isinstance(error, Refused) and error.param == "model"
    at_fault = "key" if status in _UNAUTHORIZED and not is_about_model else "model"
    fix = ""
    if status == _TOO_MANY_REQUESTS:
        fix = "the server is busy or the account's limit is reached; try again in a minute"
    address = Finding(part, "address", "ok", f"{provider.endpoint} answers")
    return [address, Finding(part, at_fault, "error", str(error), fix)]


def _describe_key(
    part: str,
    config: RunConfig,
    judge: Judge,
    provider: Provider,
) -> Finding:
    """Say which key the server accepted."""
    if config.of_judge(judge).key_command:
        return Finding(part, "key", "ok", "key_command's key is accepted")
    variable = judge.key_env
    if not variable and "key_env" in config.model_fields_set:
        # The user has named one variable for all judges.
        variable = config.key_env
    if not variable:
        vendor = VENDORS.get(provider.name)
        variable = vendor.key_env if vendor else config.key_env
    if os.environ.get(variable, "").strip():
        return Finding(part, "key", "ok", f"${variable} is accepted")
    return Finding(part, "key", "ok", f"not needed (${variable} is not set)")


def _check_parameters(part: str, first_response: Response) -> Iterator[Finding]:
    """Say which parameters of the first request the server accepted."""
    unmet = first_response.unmet
    reasoning_tokens = first_response.usage.reasoning_tokens
    choices = first_response.choices
    is_given = bool(choices) and choices[0].tokens is not None
    yield finding_of(part, "token probabilities", is_given, "given", "not given")
    if "reasoning" in unmet:
        text = "reasoning is off, because token probabilities need that"
        yield Finding(part, "thinking", "ok", text)
    elif reasoning_tokens:
        text = f"{reasoning_tokens:,} paid reasoning tokens for this reply"
        yield Finding(part, "thinking", "ok", text)
    refused = "refused: the model uses its own temperature"
    yield finding_of(part, "temperature", "temperature" not in unmet, "taken", refused)
    unlimited = "no length limit is accepted, so the cost of a reply is unbounded"
    yield finding_of(
        part,
        "length",
        "max_tokens" not in unmet,
        "a length limit is accepted",
        unlimited,
    )


def _known_limits(
    part: str,
    provider: Provider,
    known_before: Mapping[str, Any],
) -> Iterator[Finding]:
    """Report the limits of the server: those known before the first request, and those learned."""
    known_after = dict(provider.learned)
    dropped_before = known_before.get("dropped", ())
    dropped_after = known_after.pop("dropped", ())
    learned = {
        trait: value
        for trait, value in known_after.items()
        if known_before.get(trait) != value
    }
    learned["dropped"] = [
        parameter_name
        for parameter_name in dropped_after
        if parameter_name not in dropped_before
    ]
    known_limits = refusals(JudgeInfo(learned=known_before))
    if known_limits:
        yield Finding(part, f"known of {provider.name}", "ok", "; ".join(known_limits))
    learned_limits = refusals(JudgeInfo(learned=learned))
    if learned_limits:
        yield Finding(part, "learned by trying", "ok", "; ".join(learned_limits))


def _price(
    part: str,
    provider: Provider,
    first_response: Response,
    drawn: Response | None,
    n_draws: int,
) -> Finding:
    """Estimate the price of judgments whose replies are as long as the first reply."""
    per_token = pricing.prices_of(provider)
    if per_token is None:
        return Finding(part, "price", "missing", pricing.why_unknown(provider))
    n_requests = 1
    # A server that returns one reply per request is sent the prompt again for every draw.
    if drawn is None or len(drawn.choices) < _DRAWS:
        n_requests = n_draws
    tokens_read = _PRICED_TOKENS * n_requests
    tokens_written = first_response.usage.completion_tokens * n_draws
    usage = Usage(_PRICED_JUDGMENTS * tokens_read, _PRICED_JUDGMENTS * tokens_written)
    price = dollars(pricing.cost(usage, per_token))
    times = f" {n_requests} times" if n_requests > 1 else ""
    source = pricing.price_source(provider)
    estimate = (
        f"about {price} for {_PRICED_JUDGMENTS:,} judgments that each read {_PRICED_TOKENS:,} "
        f"tokens{times} and write {tokens_written:,} ({source}); judge plan DATA estimates yours"
    )
    return Finding(part, "price", "ok", estimate)
