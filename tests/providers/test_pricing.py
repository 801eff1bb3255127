"""Prices: judge uses published prices and never guesses."""

from __future__ import annotations

import pytest

from judge.core.records import Usage
from judge.providers.decisions import DecisionsProvider
from judge.providers.pricing import DEFAULT_URL, cost_of, is_own, why_unknown
from judge.providers.scripted import ScriptedProvider
from tests.factories import cost_usd


def typed(model: str, url: str) -> DecisionsProvider:
    return DecisionsProvider(model, base_url=url, needs_key=False)


def test_a_published_price() -> None:
    """gpt-5.4-mini, November 2026, per million tokens: $0.75 input, $0.075 cached input, $4.50 output."""
    usage = Usage(1_000_000, 100_000, 400_000, 0)
    assert cost_usd("gpt-5.4-mini", "https://api.openai.com/v1", usage) == pytest.approx(
        0.6 * 0.75 + 0.4 * 0.075 + 0.45
    )


@pytest.mark.parametrize(
    ("model", "url"),
    [("gpt-5.4-mini", "http://127.0.0.1:8000/v1"), ("no-such-model", "https://api.openai.com/v1")],
)
def test_unknown_price_is_none_and_not_zero(model: str, url: str) -> None:
    assert cost_usd(model, url, Usage(10, 10)) is None


def test_written_cache_tokens_cost_more_if_the_vendor_charges_more() -> None:
    """gpt-6-luna, November 2026, per million tokens: $0.10 input, $0.125 cache writes."""
    url = "https://api.openai.com/v1"
    assert cost_usd(
        "gpt-6-luna", url, Usage(1_000_000, cache_write_tokens=1_000_000)
    ) == pytest.approx(0.125)


def test_nothing_used_costs_nothing() -> None:
    assert cost_usd("anything", "", Usage()) == 0.0


def test_typed_questions_cost_their_own_price() -> None:
    """gpt-6-luna at /decisions, November 2026: $0.10 per million input tokens, cached or not; output is free."""
    usage = Usage(1_000_000, 1_000, 400_000)
    assert cost_of(typed("gpt-6-luna", DEFAULT_URL), usage) == pytest.approx(0.10)
    for unpriced in (
        typed("gpt-6-luna", "http://127.0.0.1:8000/v1"),
        typed("gpt-5.4-mini", DEFAULT_URL),
    ):
        assert cost_of(unpriced, usage) is None
    assert "LiteLLM" in why_unknown(unpriced)


def test_a_model_without_a_price_suggests_the_nearest() -> None:
    misspelt = ScriptedProvider(str, model="gpt-5.4-mni", endpoint=DEFAULT_URL)
    assert "did you mean gpt-5.4-mini?" in why_unknown(misspelt)
    other = ScriptedProvider(str, model="something-else", endpoint=DEFAULT_URL)
    assert "did you mean" not in why_unknown(other)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://192.168.1.7/v1", True),
        ("http://gpu-box:8000/v1", True),
        ("http://models.local/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://8.8.8.8/v1", False),
        ("", False),
    ],
)
def test_detects_a_local_server(url: str, expected: bool) -> None:
    assert is_own(url) is expected
    assert ("of your own" in why_unknown(ScriptedProvider(str, endpoint=url))) is expected
