"""Send the first request about a long source ahead, so that the provider caches the common prefix.

A prefix is in a provider's cache only after the first request with it was answered.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from functools import lru_cache

from judge.core.records import Example, Message, Request, Response
from judge.execution import token_estimates
from judge.execution.layers import Layer

SHORTEST = 1_024
"""Tokens of the shortest prefix that providers cache."""
# How long a provider caches a prefix at least after its last use (OpenAI: 5 to 10 minutes).
_WARM_SECONDS = 300.0
_ID_LENGTH = 32
_estimate = lru_cache(4_096)(token_estimates.estimate_tokens)


def prefix(
    messages: tuple[Message, ...],
    source: str | None,
    examples: Sequence[Example] = (),
) -> tuple[str, int]:
    """Return the group of a prompt, and the length of the prefix that its prompts share.

    The prefix ends with the source or, if that is short, with the criterion's examples. ("", 0) if
    it is too short for a provider's cache.
    """
    text = messages[0]["content"]
    source_text = (source or "").strip()
    prefix_end = 0
    for example in examples:
        position = text.find(example.output, prefix_end)
        if position >= 0:
            prefix_end = position + len(example.output)
    tokens_of_source = 0
    before_source = prefix_end
    position = -1
    if len(source_text) >= SHORTEST // 2:
        position = text.find(source_text, prefix_end)
    if position >= 0:
        before_source = position
        prefix_end = position + len(source_text)
        # Cached, because many prompts have the same source.
        tokens_of_source = _estimate(source_text)
    # A token has at least one character, so a shorter text needs no estimate.
    if prefix_end < SHORTEST:
        return "", 0
    if tokens_of_source + _estimate(text[:before_source]) < SHORTEST:
        return "", 0
    shared_text = text[:prefix_end].encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(shared_text).hexdigest()
    return digest[:_ID_LENGTH], prefix_end


class Leading:
    """Holds requests with a common prefix until the first of them is answered, or abandoned."""

    def __init__(self, following: Layer) -> None:
        self._following = following
        self._leaders: dict[str, asyncio.Event] = {}
        self._answered_at: dict[str, float] = {}

    async def ask(self, request: Request) -> Response:
        prefix_group, _ = request.prefix
        if not prefix_group:
            return await self._following.ask(request)
        while (leader := self._leaders.get(prefix_group)) is not None:
            await leader.wait()
        if self._is_warm(prefix_group):
            return await self._answered(request, prefix_group)
        leader = asyncio.Event()
        self._leaders[prefix_group] = leader
        try:
            return await self._answered(request, prefix_group)
        finally:
            del self._leaders[prefix_group]
            leader.set()

    async def _answered(self, request: Request, prefix_group: str) -> Response:
        response = await self._following.ask(request)
        self._answered_at[prefix_group] = asyncio.get_running_loop().time()
        return response

    def _is_warm(self, prefix_group: str) -> bool:
        answered_at = self._answered_at.get(prefix_group)
        now = asyncio.get_running_loop().time()
        return answered_at is not None and now - answered_at < _WARM_SECONDS
