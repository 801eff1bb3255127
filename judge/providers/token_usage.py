"""Read the token counts that a server states in a reply."""

from __future__ import annotations

from typing import Any

from judge.core.records import Usage

# Tokens of one reply. No model reads or writes more, so a larger count is a server's mistake.
_MAX_TOKENS = 10_000_000


def usage(data: Any, read: str, written: str) -> Usage:
    """Return the tokens used, from the counts `{read}_tokens` and `{written}_tokens`.

    OpenAI's chat API calls them `prompt_tokens` and `completion_tokens`, others `input_tokens` and
    `output_tokens`. Counts that are missing or wrong are 0.
    """
    prompt_tokens = _count(data, f"{read}_tokens")
    prompt_details = _details(data, f"{read}_tokens_details")
    cache_reads = _count(prompt_details, "cached_tokens")
    cache_writes = _count(prompt_details, "cache_write_tokens")
    # Some servers count cached tokens besides the prompt's tokens, and not among them.
    if cache_reads + cache_writes > prompt_tokens:
        prompt_tokens += cache_reads + cache_writes
    reply_details = _details(data, f"{written}_tokens_details")
    return Usage(
        prompt_tokens=prompt_tokens,
        completion_tokens=_count(data, f"{written}_tokens"),
        cached_tokens=cache_reads,
        reasoning_tokens=_count(reply_details, "reasoning_tokens"),
        cache_write_tokens=cache_writes,
    )


def _details(data: Any, field_name: str) -> Any:
    """Return the object that splits a count of tokens by kind, if the server sends one."""
    return data.get(field_name) if isinstance(data, dict) else None


def _count(counts: Any, field_name: str) -> int:
    """Return a count of tokens; 0 if the server does not count them, or states no whole number."""
    value = counts.get(field_name) if isinstance(counts, dict) else None
    # Not isinstance: JSON's true would be the count 1.
    if type(value) is int and 0 <= value <= _MAX_TOKENS:
        return value
    return 0
