"""What tokens cost, from the prices that the genai-prices package carries (no network)."""

from __future__ import annotations

from judge.records import Usage


def usd(model: str, endpoint: str, usage: Usage) -> float | None:
    """US dollars for these tokens at this endpoint, or None where its prices are not known: never a guess.

    Nothing used costs 0. A server of one's own has no known price.
    """
    if usage == Usage():
        return 0.0
    import genai_prices

    spent = genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        cache_read_tokens=usage.cached_tokens,
        output_tokens=usage.completion_tokens,
    )
    try:
        return float(genai_prices.calc_price(spent, model, provider_api_url=endpoint).total_price)
    except (LookupError, ValueError):
        return None
