"""Of the requests on one long source the first goes ahead, so that the provider can cache what all begin with.

A prefix is in a provider's cache once a first request with it was answered, not before.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from functools import lru_cache

from judge.core.records import Example, Message, Request, Response
from judge.execution import budget
from judge.execution.layers import Layer

SHORTEST = 1_024
"""Tokens of the shortest prefix that providers cache."""
_WARM_SECONDS = 300.0
"""How long a provider keeps a prefix at least after it was last used."""
_ID_LENGTH = 32
_estimate = lru_cache(4_096)(budget.estimate_tokens)


def prefix(
    messages: tuple[Message, ...], source: str | None, examples: Sequence[Example] = ()
) -> tuple[str, int]:
    """Return the group of a prompt, and the number of characters that all prompts of the group begin with.

    They end with the source or, if that is short, with the criterion's examples. ("", 0) if they are too few to cache.
    """
    text, body = messages[0]["content"], (source or "").strip()
    start = 0
    for example in examples:
        if (place := text.find(example.output, start)) >= 0:
            start = place + len(example.output)
    end, known = start, 0
    if len(body) >= SHORTEST // 2 and (place := text.find(body, start)) >= 0:
        start, end, known = place, place + len(body), _estimate(body)
    if end < SHORTEST or known + _estimate(text[:start]) < SHORTEST:
        return "", 0
    digest = hashlib.sha256(text[:end].encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:_ID_LENGTH], end


class Leading:
    """Holds requests with a common prefix until the first of them is answered, or given up."""

    def __init__(self, following: Layer) -> None:
        self._following = following
        self._leaders: dict[str, asyncio.Event] = {}
        self._answered_at: dict[str, float] = {}

    async def ask(self, request: Request) -> Response:
        group, _ = request.prefix
        if not group:
            return await self._following.ask(request)
        while (leader := self._leaders.get(group)) is not None:
            await leader.wait()
        if self._is_warm(group):
            return await self._answered(request, group)
        leader = self._leaders[group] = asyncio.Event()
        try:
            return await self._answered(request, group)
        finally:
            del self._leaders[group]
            leader.set()

    async def _answered(self, request: Request, group: str) -> Response:
        response = await self._following.ask(request)
        self._answered_at[group] = asyncio.get_running_loop().time()
        return response

    def _is_warm(self, group: str) -> bool:
        answered_at = self._answered_at.get(group)
        now = asyncio.get_running_loop().time()
        return answered_at is not None and now - answered_at < _WARM_SECONDS
