"""What the limits of a suite need before it runs: its longest prompt, and its uncached price."""

from __future__ import annotations

from collections.abc import Iterable
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
        for judge_name, provider in prepared.judges.items():
            settings = prepared.opened[judge_name].settings
            criteria = [criterion_for(criterion, provider) for criterion in prepared.criteria]
            renderers = make_renderers(criteria)
            strategy, *_ = strategies.strategies_for(settings, provider.decides)
            for judgment in judgments(prepared, judge_name):
                criterion = judgment.criterion
                try:
                    renderer = renderers[criterion.name]
                    prompt = renderer.render(judgment.sample, judgment.opponent)
                except CriterionError:
                    # It will be a failed judgment, which sends no prompt.
                    continue
                requests = strategies.requests(prompt, criterion, strategy, settings)
                longest = max(longest, token_estimates.estimate_request(requests[0]))
    return longest


def uncached_price(runs: Iterable[PreparedRun]) -> tuple[float | None, str]:
    """Return the price of all judgments in US dollars without a cache.

    None if it is unknown, and the reason. For a recording, this is the price of its model at the
    configured or the recorded address.
    """
    total = 0.0
    for prepared in runs:
        # After a run, its recording answers every request, as a cache would.
        without_replies = {"cache": False, "replay": None, "record": None}
        config = prepared.config.model_copy(update=without_replies)
        try:
            opened = dict(prepared.opened)
            for judge_name, judge in prepared.opened.items():
                replayed = judge.provider
                # Scripted replies cost nothing, neither when recorded nor when replayed.
                if isinstance(replayed, ReplayProvider) and not replayed.asked_no_model:
                    provider = _recorded_judge(config, replayed)
                    opened[judge_name] = replace(judge, provider=provider)
            uncached = replace(prepared, config=config, opened=opened, notes=())
            estimate = estimate_cost(uncached)
        except ConfigError as error:
            return None, str(error)
        if estimate.price is None:
            unpriced = [judge.money for judge in estimate.judges if judge.money.price is None]
            first_unpriced = unpriced[0]
            return None, first_unpriced.why
        total += estimate.price
    return total, ""


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
        base_url, *others = provider.servers
        if others:
            servers = " and ".join(provider.servers)
            raise ConfigError(f"{model} was recorded at {servers}, whose prices may differ")
    return open_judge(config, Judge(name=judge_name, base_url=base_url), sends=False)
