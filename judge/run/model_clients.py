"""The client of each model of a run: how it is opened, with which limits, and closed again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from judge.config import RunConfig
from judge.execution import engines
from judge.execution.budget import BudgetLedger
from judge.execution.layers import Layer
from judge.execution.layers.cached import ReplyStore
from judge.execution.layers.retried import Policy
from judge.execution.layers.sending import Complete
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter
from judge.execution.reply_client import ReplyClient, SendingOptions, sending_layers
from judge.providers import Provider
from judge.run.preparation import engine_context


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """The limits that all models of a run share: the budget and the deadline.

    The deadline is a time of the event loop's clock.
    """

    ledger: BudgetLedger
    deadline: float | None


@dataclass(frozen=True, slots=True)
class ModelClient:
    """The open client of a model.

    If its engine `gathers`, callers must send all requests before they wait for an answer.
    """

    client: ReplyClient
    provider: Provider
    counts: JudgeProgress
    gathers: bool


def deadline_of(config: RunConfig) -> float | None:
    """Return the time of the event loop's clock at which a run that starts now has to stop."""
    if config.deadline is None:
        return None
    return asyncio.get_running_loop().time() + config.deadline


@asynccontextmanager
async def open_client(
    config: RunConfig,
    model_config: RunConfig,
    provider: Provider,
    *,
    counts: JudgeProgress,
    store: ReplyStore,
    limits: SharedLimits,
) -> AsyncIterator[ModelClient]:
    """Open the client of one model, and close its engine and provider at the end.

    `model_config` has the model's own limits. Raises ConfigError, and StorageError at the end if
    replies could not be stored.
    """
    # A recording, for example, costs nothing, so its requests must not wait for the budget.
    ledger = limits.ledger if limits.ledger.covers(provider) else None
    rates = RateLimiter(
        model_config.max_concurrency, model_config.rpm, model_config.tpm
    )
    policy = Policy(attempts=model_config.retries + 1)
    options = SendingOptions(rates, policy, ledger, limits.deadline)
    context = replace(
        engine_context(config, provider),
        counts=counts,
        ledger=ledger,
        deadline=limits.deadline,
        store=store.put,
    )
    engine = engines.create_engine(config.engine, context)

    def sending(complete: Complete) -> Layer:
        return sending_layers(complete, options, store, counts)

    client = ReplyClient(engine.layer(sending), store, counts)
    try:
        yield ModelClient(client, provider, counts, engine.gathers)
    finally:
        # The engine may still send through the provider, so it is closed first.
        await engine.aclose()
        await provider.aclose()
