"""What tokens cost, from the prices that the genai-prices package carries (no network)."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import version
from ipaddress import ip_address
from urllib.parse import urlsplit

from judge.core.records import Usage
from judge.providers import Capabilities, Provider

DEFAULT_URL = "https://api.openai.com/v1"
BATCH = 0.5
"""What a request costs in a batch, as a share of its price online (OpenAI, Anthropic and Google, 2026)."""
_NO_USAGE = Usage()
_MILLION = 1e6
TokenPrices = tuple[float, float, float, float]
"""US dollars for a token that is read afresh, read from the provider's cache, written to it, and put out."""
_SAMPLE_TOKENS = 1000


def cost_usd(
    model: str, endpoint: str, usage: Usage, *, batched: Usage = _NO_USAGE
) -> float | None:
    """US dollars for the tokens of many requests, or None where the endpoint's prices are not known: never a guess.

    Nothing used costs 0. A server of one's own has no known price. `batched` is the part of the usage that was
    answered in batches.
    Priced as requests of ordinary length: some models charge more for one of several hundred thousand tokens, and a
    sum must not be taken for such a one.
    """
    if usage == Usage():
        return 0.0
    return _discounted(usage, batched, per_token(model, endpoint))


def cost_of(provider: Provider, usage: Usage, *, batched: Usage = _NO_USAGE) -> float | None:
    """US dollars for the tokens of many requests to a provider, at the user's price or else the published one.

    None if neither is known.
    """
    if usage == Usage():
        return 0.0
    return _discounted(usage, batched, prices_of(provider))


def prices_of(provider: Provider) -> TokenPrices | None:
    """The price of a provider's token: the user's, else the published one, else None."""
    capabilities = Capabilities.of(provider)
    price = capabilities.price or capabilities.published_price
    if price is not None:
        read, written = price.input / _MILLION, price.output / _MILLION
        return read, read, read, written
    if capabilities.price_list or provider.decides:  # genai-prices has the prices of chats
        return None
    return per_token(provider.model, provider.endpoint)


def _discounted(usage: Usage, batched: Usage, prices: TokenPrices | None) -> float | None:
    if prices is None:
        return None
    return cost(usage, prices) - (1 - BATCH) * cost(batched, prices)


def cost(usage: Usage, prices: TokenPrices) -> float:
    """US dollars for tokens at the prices that `per_token` gives."""
    fresh = usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens
    counts = (fresh, usage.cached_tokens, usage.cache_write_tokens, usage.completion_tokens)
    return sum(count * price for count, price in zip(counts, prices, strict=True))


@lru_cache
def per_token(model: str, endpoint: str) -> TokenPrices | None:
    """The price of a token in genai-prices, None if there is none."""
    import genai_prices

    def price(**tokens: int) -> float:
        calculation = genai_prices.calc_price(
            genai_prices.Usage(**tokens), model, provider_api_url=endpoint
        )
        return float(calculation.total_price) / _SAMPLE_TOKENS

    n = _SAMPLE_TOKENS
    try:
        cached, stored = (
            price(input_tokens=n, cache_read_tokens=n),
            price(input_tokens=n, cache_write_tokens=n),
        )
        return price(input_tokens=n), cached, stored, price(output_tokens=n)
    except (LookupError, ValueError):
        return None


def price_source(provider: Provider) -> str:
    """Where the prices of a provider are from, with the source's version."""
    if Capabilities.of(provider).price is not None:
        return "the price given for this model"
    return _price_list(provider)


def _price_list(provider: Provider) -> str:
    return Capabilities.of(provider).price_list or f"genai-prices {version('genai-prices')}"


def why_unknown(provider: Provider) -> str:
    """Why there is no price, in a few words."""
    endpoint = provider.endpoint
    if endpoint.startswith("local:"):
        return "computed here: no known price"
    if is_own(endpoint):
        return "a server of your own: no known price"
    place = urlsplit(endpoint).netloc or "this provider"
    return f"{_price_list(provider)} has no price for {provider.model} at {place}"


def is_own(endpoint: str) -> bool:
    """Whether an address is on this machine or in a network of one's own."""
    host = urlsplit(endpoint).hostname or ""
    try:
        return not ip_address(host).is_global
    except ValueError:
        return bool(host) and (
            "." not in host or host.endswith((".local", ".internal", ".lan", ".localhost"))
        )
