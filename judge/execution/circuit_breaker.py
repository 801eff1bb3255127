"""Stop asking about a criterion whose first judgments all fail for one reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from judge.core.errors import JudgeError, NotAsked, NotSent, ParseError, Unrecorded
from judge.core.format import one_line
from judge.core.messages import option
from judge.core.records import Prompt
from judge.scoring.parse import split_replies

FIRST = 20
"""Judgments of a criterion after which judge stops asking if all failed for one reason."""


class CircuitBreaker:
    """Starts the first 20 judgments of a criterion; their results decide about the others.

    The others start as soon as one has a score, or two have failed for different reasons. If all 20
    fail for one reason, `stopped` is the explanation, and "" until then. `error` is the name of
    that error. Judgments of one prompt count once. With `waits` False none waits, because all
    requests are gathered before any is sent.
    """

    def __init__(self, *, waits: bool = True) -> None:
        self.error = ""
        self.stopped = ""
        self._waits = waits
        self._decided = False
        self._running = 0
        self._failed: set[tuple[str, ...]] = set()
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until a judgment may start. It is running until this context ends."""
        while self._waits and self._is_full:
            self._changed.clear()
            await self._changed.wait()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._changed.set()

    @property
    def _is_full(self) -> bool:
        is_undecided = not (self._decided or self.stopped)
        return is_undecided and self._running + len(self._failed) >= FIRST

    def note(self, prompt: Prompt, error: JudgeError | None) -> None:
        """Note that a judgment has a score, or the error that it failed with."""
        if self._decided or self.stopped:
            return
        # These were not sent to a model, so they say nothing about it.
        if isinstance(error, NotAsked | NotSent | Unrecorded):
            return
        # The subclasses of ParseError are one reason: no score in the reply.
        error_name = ParseError.__name__ if isinstance(error, ParseError) else type(error).__name__
        if error is None or self.error not in ("", error_name):
            self._decided = True
            self._failed.clear()
            return
        self.error = error_name
        self._failed.add(tuple(message["content"] for message in prompt.messages))
        if len(self._failed) >= FIRST:
            self.stopped = self._explanation(error)

    def _explanation(self, error: JudgeError) -> str:
        if isinstance(error, ParseError):
            first_reply = one_line(_first_reply(error.raw), 120)
            example = repr(first_reply)
            options = ", ".join([option("max_tokens"), option("reply"), option("structured")])
            return (
                f"judge stopped asking, because none of the model's first {FIRST} replies has a "
                f"score, such as {example}: {error}. Change {options} or the model; "
                f"with {option('retry_failed', True)} judge asks again"
            )
        return (
            f"judge stopped asking, because the first {FIRST} requests failed alike, with "
            f"{self.error}: {error}. Once that is mended, the same command asks again"
        )


def _first_reply(raw_reply: str) -> str:
    """Return the first reply of an error: several draws are stored as one JSON list."""
    if not raw_reply.startswith('["'):
        return raw_reply
    try:
        return split_replies(raw_reply)[0].text
    except (ValueError, TypeError):  # a single reply that only begins like a list
        return raw_reply
