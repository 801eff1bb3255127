"""The cost of tokens, at the prices in the package genai-prices (no network)."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from importlib.metadata import version
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from judge.core.records import Usage
from judge.providers import Capabilities, Provider

DEFAULT_URL = "https://api.openai.com/v1"
BATCH = 0.5
"""Price of a request in a batch, as a share of the usual one (OpenAI, Anthropic, Google; 2026)."""
_NO_USAGE = Usage()
_PER_MILLION = 1e6
# genai-prices only prices whole requests. The price of one token would lose digits; this many
# tokens keep them.
_SAMPLE_TOKENS = 1000


class TokenPrices(NamedTuple):
    """US dollars for a token.

    An input token is uncached, read from the provider's cache, or written to it.
    """

    uncached: float
    cached: float
    cache_written: float
    output: float


def cost_of(
    provider: Provider,
    usage: Usage,
    *,
    batched: Usage = _NO_USAGE,
) -> float | None:
    """Return US dollars for the tokens of many requests to a provider.

    The price is the user's, or else the published one. None if neither is known, as for a server
    of the user's own; nothing used costs 0. `batched` is the part of the usage that was answered
    in batches.

    The price is that of requests of ordinary length. Some models charge more for a single request
    of several hundred thousand tokens; the total of many short requests does not cost more.
    """
    if usage == Usage():
        return 0.0
    return _discounted(usage, batched, prices_of(provider))


def prices_of(provider: Provider) -> TokenPrices | None:
    """Return the prices of a provider's tokens: the user's, else the published ones, else None."""
    capabilities = Capabilities.of(provider)
    price = capabilities.price or capabilities.published_price
    if price is not None:
        input_price = price.input / _PER_MILLION
        return TokenPrices(
            uncached=input_price,
            cached=input_price,
            cache_written=input_price,
            output=price.output / _PER_MILLION,
        )
    # genai-prices has prices for chats, but none for typed questions.
    if capabilities.price_list or provider.decides:
        return None
    return per_token(provider.model, provider.endpoint)


def _discounted(
    token_usage: Usage,
    batched: Usage,
    prices: TokenPrices | None,
) -> float | None:
    if prices is None:
        return None
    return cost(token_usage, prices) - (1 - BATCH) * cost(batched, prices)


def cost(token_usage: Usage, prices: TokenPrices) -> float:
    """Return US dollars for tokens at these prices."""
    uncached = (
        token_usage.prompt_tokens
        - token_usage.cached_tokens
        - token_usage.cache_write_tokens
    )
    counts = (
        uncached,
        token_usage.cached_tokens,
        token_usage.cache_write_tokens,
        token_usage.completion_tokens,
    )
    return sum(count * price for count, price in zip(counts, prices, strict=True))


@lru_cache
def per_token(model: str, endpoint: str) -> TokenPrices | None:
    """Return the prices of a token in genai-prices, None if it has none."""
    import genai_prices

    def price(**tokens: int) -> float:
        usage = genai_prices.Usage(**tokens)
        calculation = genai_prices.calc_price(usage, model, provider_api_url=endpoint)
        return float(calculation.total_price) / _SAMPLE_TOKENS

    tokens = _SAMPLE_TOKENS
    try:
        return TokenPrices(
            uncached=price(input_tokens=tokens),
            cached=price(input_tokens=tokens, cache_read_tokens=tokens),
            cache_written=price(input_tokens=tokens, cache_write_tokens=tokens),
            output=price(output_tokens=tokens),
        )
    except (LookupError, ValueError):
        return None


def price_source(provider: Provider) -> str:
    """Return where the prices of a provider are from, with the source's version."""
    if Capabilities.of(provider).price is not None:
        return "the price given for this model"
    return _price_list(provider)


def _price_list(provider: Provider) -> str:
    price_list = Capabilities.of(provider).price_list
    if price_list:
        return price_list
    number = version("genai-prices")
    return f"genai-prices {number}"


def why_unknown(provider: Provider) -> str:
    """Return why there is no price, in a few words."""
    endpoint = provider.endpoint
    if endpoint.startswith("local:"):
        return "computed here: no known price"
    if is_own(endpoint):
        return "a server of your own: no known price"
    host = urlsplit(endpoint).netloc or "this provider"
    hint = ""
    if not Capabilities.of(provider).price_list:
        priced_models = _priced_models(endpoint)
        similar = difflib.get_close_matches(provider.model, priced_models, n=1)
        hint = f"; did you mean {similar[0]}?" if similar else ""
    price_list = _price_list(provider)
    return f"{price_list} has no price for {provider.model} at {host}{hint}"


@lru_cache
def _priced_models(endpoint: str) -> tuple[str, ...]:
    """Return the models at an address that genai-prices has prices for."""
    from genai_prices.data import providers

    models: list[str] = []
    for provider in providers:
        if re.match(provider.api_pattern, endpoint):
            models += [model.id for model in provider.models]
    return tuple(models)


# A domain ending that is only resolved inside a network.
_PRIVATE_DOMAINS = (".local", ".internal", ".lan", ".localhost")


def is_own(endpoint: str) -> bool:
    """Return whether an address is on this machine or in a private network."""
    host = urlsplit(endpoint).hostname or ""
    try:
        return not ip_address(host).is_global
    except ValueError:
        # A name without a dot, such as `localhost` or `gpu-server`, is in the own network.
        return bool(host) and ("." not in host or host.endswith(_PRIVATE_DOMAINS))
