"""What tokens cost, from the prices that the genai-prices package carries (no network)."""

from __future__ import annotations

from functools import lru_cache

from judge.records import Usage

DEFAULT_URL = "https://api.openai.com/v1"
_SOME = 1000


def usd(model: str, endpoint: str, usage: Usage) -> float | None:
    """US dollars for the tokens of many requests, or None where the endpoint's prices are not known: never a guess.

    Nothing used costs 0. A server of one's own has no known price. Priced as requests of ordinary length: some
    models charge more for one of several hundred thousand tokens, and a sum must not be taken for such a one.
    """
    if usage == Usage():
        return 0.0
    prices = _per_token(model, endpoint)
    if prices is None:
        return None
    fresh = usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens
    counts = (fresh, usage.cached_tokens, usage.cache_write_tokens, usage.completion_tokens)
    return sum(count * price for count, price in zip(counts, prices, strict=True))


@lru_cache
def _per_token(model: str, endpoint: str) -> tuple[float, float, float, float] | None:
    """The price of a token: read afresh, read from the provider's cache, written to it, and put out."""
    import genai_prices

    def price(**tokens: int) -> float:
        found = genai_prices.calc_price(genai_prices.Usage(**tokens), model, provider_api_url=endpoint)
        return float(found.total_price) / _SOME

    try:
        return (
            price(input_tokens=_SOME),
            price(input_tokens=_SOME, cache_read_tokens=_SOME),
            price(input_tokens=_SOME, cache_write_tokens=_SOME),
            price(output_tokens=_SOME),
        )
    except (LookupError, ValueError):
        return None
