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

_MAX_FAILURES = 20
"""Failed prompts of a criterion after which judge stops asking, if all failed for one reason."""


class CircuitBreaker:
    """Starts the first 20 judgments of a criterion; their results decide about the others.

    The others start as soon as one has a score, or two have failed for different reasons. If all 20
    fail for one reason, `stopped` is the explanation, and "" until then. `error` is the name of
    that error. Failures of the same prompt count once. With `waits=False` no judgment waits: the
    engine gathers all requests before it sends any.
    """

    def __init__(self, *, waits: bool = True) -> None:
        self.error = ""
        self.stopped = ""
        self._waits = waits
        self._may_continue = False
        self._running = 0
        self._failed_prompts: set[tuple[str, ...]] = set()
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
        """Whether the judgments that run and those that failed are already the first 20."""
        n_started = self._running + len(self._failed_prompts)
        return not self._is_decided and n_started >= _MAX_FAILURES

    @property
    def _is_decided(self) -> bool:
        return self._may_continue or bool(self.stopped)

    def note(self, prompt: Prompt, error: JudgeError | None) -> None:
        """Note that a judgment has a score, or the error that it failed with."""
        if self._is_decided:
            return
        # These were not sent to a model, so they say nothing about it.
        if isinstance(error, NotAsked | NotSent | Unrecorded):
            return
        if error is None:
            self._may_continue = True
            return
        error_name = _reason(error)
        if self.error and self.error != error_name:
            self._may_continue = True
            return
        self.error = error_name
        texts = tuple(message["content"] for message in prompt.messages)
        self._failed_prompts.add(texts)
        if len(self._failed_prompts) >= _MAX_FAILURES:
            self.stopped = self._explanation(error)

    def _explanation(self, error: JudgeError) -> str:
        """Return why judge stopped asking, and what to do; `error` is the last failure."""
        if isinstance(error, ParseError):
            reply = one_line(_first_reply(error.raw), 120)
            example = repr(reply)
            settings = ("max_tokens", "reply", "structured")
            options = ", ".join(map(option, settings))
            return (
                f"judge stopped asking, because none of the model's first {_MAX_FAILURES} replies "
                f"has a score, such as {example}: {error}. Change {options} or the model; "
                f"with {option('retry_failed', True)} judge asks again"
            )
        return (
            f"judge stopped asking, because the first {_MAX_FAILURES} requests failed alike, "
            f"with {self.error}: {error}. Once that is mended, the same command asks again"
        )


def _reason(error: JudgeError) -> str:
    """Return the name of an error's class; one for all ParseErrors, as no reply has a score."""
    if isinstance(error, ParseError):
        return ParseError.__name__
    return type(error).__name__


def _first_reply(raw_reply: str) -> str:
    """Return the first reply of an error: several draws are stored as one JSON list."""
    if not raw_reply.startswith('["'):
        return raw_reply
    try:
        return split_replies(raw_reply)[0].text
    except (ValueError, TypeError):  # a single reply that only begins like a list
        return raw_reply
