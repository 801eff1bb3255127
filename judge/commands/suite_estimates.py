"""Estimate the two values that a suite may limit: its longest prompt, and its uncached price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from judge.config import RunConfig
from judge.core.errors import ConfigError, CriterionError
from judge.core.request_options import Judge
from judge.execution import token_estimates
from judge.providers import Provider
from judge.providers.recording import ReplayProvider
from judge.run.cost_estimate import estimate_cost
from judge.run.judge_models import open_judge
from judge.run.judge_run import judgments
from judge.run.preparation import PreparedRun, criterion_for
from judge.scoring import strategies
from judge.scoring.multi_criteria import make_renderers


def longest_prompt_tokens(runs: Iterable[PreparedRun]) -> int:
    """Estimate the tokens of the longest prompt of any judgment; 0 without a judge."""
    longest = 0
    for prepared in runs:
        for judge_name in prepared.judges:
            tokens_of_prompts = _prompt_tokens(prepared, judge_name)
            longest_of_judge = max(tokens_of_prompts, default=0)
            longest = max(longest, longest_of_judge)
    return longest


def _prompt_tokens(prepared: PreparedRun, judge_name: str) -> Iterator[int]:
    """Yield the estimated tokens of the first request of each judgment of a judge."""
    opened = prepared.opened[judge_name]
    settings = opened.settings
    provider = prepared.judges[judge_name]
    criteria = [criterion_for(criterion, provider) for criterion in prepared.criteria]
    renderers = make_renderers(criteria)
    preferred_strategy, *_ = strategies.strategies_for(settings, provider.decides)
    for judgment in judgments(prepared, judge_name):
        criterion = judgment.criterion
        try:
            renderer = renderers[criterion.name]
            prompt = renderer.render(judgment.sample, judgment.opponent)
        except CriterionError:
            # It will be a failed judgment, which sends no prompt.
            continue
        requests = strategies.requests(prompt, criterion, preferred_strategy, settings)
        yield token_estimates.estimate_request(requests[0])


def uncached_price(runs: Iterable[PreparedRun]) -> tuple[float | None, str]:
    """Return the price of all judgments in US dollars without a cache, and "".

    If it is unknown, return None and the reason. For a recording, this is the price of its model at
    the configured or the recorded address.
    """
    total = 0.0
    for prepared in runs:
        try:
            estimate = estimate_cost(_without_replies(prepared))
        except ConfigError as error:
            return None, str(error)
        if estimate.price is None:
            unpriced = [judge for judge in estimate.judges if judge.money.price is None]
            return None, unpriced[0].money.why
        total += estimate.price
    return total, ""


def _without_replies(prepared: PreparedRun) -> PreparedRun:
    """Return the run without cache and recording, so that its models would answer.

    Raises ConfigError if the model of a recording cannot be opened.
    """
    # After a run, its recording answers every request, as a cache would.
    without_replies = {"cache": False, "replay": None, "record": None}
    config = prepared.config.model_copy(update=without_replies)
    opened = dict(prepared.opened)
    for judge_name, judge in prepared.opened.items():
        replayed = judge.provider
        # Scripted replies cost nothing, neither when recorded nor when replayed.
        if isinstance(replayed, ReplayProvider) and not replayed.asked_no_model:
            provider = _recorded_judge(config, replayed)
            opened[judge_name] = replace(judge, provider=provider)
    return replace(prepared, config=config, opened=opened, notes=())


def _recorded_judge(config: RunConfig, provider: ReplayProvider) -> Provider:
    """Open the model of a recording for its price, at the configured or the recorded address."""
    model = provider.model
    for judge in config.model:
        # A recording has the model's name as the request had it, mostly without the vendor.
        if judge.name == model or judge.name.endswith(f"/{model}"):
            return open_judge(config, judge, sends=False)
    judge_name = f"decisions/{model}" if provider.decides else model
    base_url = config.base_url
    if base_url is None and provider.servers:
        if len(provider.servers) > 1:
            servers = " and ".join(provider.servers)
            recorded = f"{model} was recorded at {servers}"
            raise ConfigError(f"{recorded}, whose prices may differ")
        base_url = provider.servers[0]
    recorded_judge = Judge(name=judge_name, base_url=base_url)
    return open_judge(config, recorded_judge, sends=False)
