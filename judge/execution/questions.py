"""The client with which metrics ask the judge model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, wait
from dataclasses import dataclass
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, Self

from judge.core.errors import ParseError, ProviderError
from judge.core.messages import option
from judge.core.records import Request, Response
from judge.execution.layers import RunStopped
from judge.execution.progress import TEMPERATURE, JudgeProgress
from judge.execution.reply_client import Answer, ReplyClient, gather
from judge.metrics.base import Ask, ModelError, ModelQuestion
from judge.providers import Provider, require_text
from judge.providers.vendors import signed
from judge.scoring import parse
from judge.scoring.strategies import SamplingOptions

# Questions that wait for their answers at the same time.
_WINDOW = 256
_POLL_SECONDS = 0.5
_DEFAULTS = SamplingOptions()

MetricReply = str | ModelError


def to_request(
    question: ModelQuestion,
    provider: Provider,
    settings: SamplingOptions,
) -> Request:
    """Return the request of a question. Its reply is stored by the request's key."""
    message = {"role": "user", "content": question.prompt}
    params = {
        TEMPERATURE: question.temperature,
        "max_tokens": max(settings.max_tokens or 0, question.max_tokens),
    }
    return settings.request(
        provider.model,
        (message,),
        params,
        draw=question.draw,
        endpoint=provider.endpoint,
    )


def read_reply(question: ModelQuestion, answer: Answer) -> MetricReply:
    """Read an answer by its question; return the value or why there is none."""
    if isinstance(answer, ProviderError):
        return ModelError(type(answer).__name__, str(answer), failed=True)
    try:
        if not answer.choices:
            raise ParseError("the response holds no reply")
        return question.read(parse.reply_text(answer.choices[0]))
    except ParseError as error:
        return ModelError(type(error).__name__, str(error), failed=True, raw=error.raw)


class QuestionClient:
    """Asks one judge model the questions of metrics, at temperature 0.

    It adds the numbers of requests and of `cached` and `shared` prompts to `counts`, but not the
    numbers of judgments. `counts` may belong to a run. With `retry_failed`, a request is repeated
    if no question can read its stored reply. With `gathers`, all requests are gathered before any
    is sent.

    The `max_tokens` of `settings` is the smallest limit of a reply, so that a limit for scores does
    not cut a list off. Raises ConfigError for a decision endpoint.
    """

    def __init__(
        self,
        client: ReplyClient,
        provider: Provider,
        counts: JudgeProgress,
        settings: SamplingOptions = _DEFAULTS,
        *,
        retry_failed: bool = False,
        gathers: bool = False,
    ) -> None:
        require_text(provider, option("model", provider.model))
        self.client = client
        self.provider = provider
        self.counts = counts
        self.settings = settings
        self.retry_failed = retry_failed
        self.gathers = gathers
        self._asking: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cancel the questions in progress, and refuse new ones."""
        self._closed = True
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)

    @property
    def signature(self) -> str:
        """The model and its settings, as known so far: `openai/gpt-5.4-mini@127.0.0.1:8000,t=0`."""
        # A server that takes no temperature uses its own.
        temperature = "server" if TEMPERATURE in self.counts.unmet else "0"
        signature_parts = [signed(self.provider), f"t={temperature}"]
        signature_parts += self.settings.signature
        if self.settings.max_tokens:
            signature_parts.append(f"max_tokens>={self.settings.max_tokens}")
        return ",".join(signature_parts)

    async def ask(
        self,
        questions: Sequence[ModelQuestion],
        report_progress: Callable[[int], None] = lambda done: None,
    ) -> list[MetricReply]:
        """Return for each question what its `read` returns for the reply, or the error.

        Equal prompts are sent once, and prompts with a stored reply are not sent. `report_progress`
        is called with the number of prompts that have an answer. Raises ProviderError if further
        requests are pointless, StorageError if replies can no longer be stored, and CancelledError
        if the run is stopping; all paid replies are in the cache then.
        """
        task = asyncio.current_task()
        if self._closed or task is None:
            raise asyncio.CancelledError
        self._asking.add(task)
        try:
            return await self._ask_in_window(questions, report_progress)
        finally:
            self._asking.discard(task)

    async def _ask_in_window(
        self,
        questions: Sequence[ModelQuestion],
        report_progress: Callable[[int], None],
    ) -> list[MetricReply]:
        """Ask each different request once, a number of them at the same time."""
        requests = [
            to_request(question, self.provider, self.settings) for question in questions
        ]
        positions_by_key: dict[str, list[int]] = {}
        for position, request in enumerate(requests):
            positions_by_key.setdefault(request.key(), []).append(position)
        self.counts.shared += len(requests) - len(positions_by_key)
        window_size = len(positions_by_key) if self.gathers else _WINDOW
        window = asyncio.Semaphore(window_size)
        replies: dict[int, MetricReply] = {}

        async def ask_once(indices: Sequence[int]) -> RunStopped | None:
            """Ask the questions with these indices, which share a request."""
            sharing_questions = [questions[position] for position in indices]
            request = requests[indices[0]]
            async with window:
                try:
                    own_replies = await self._replies(request, sharing_questions)
                except RunStopped as stopped:
                    # Returned, because the replies in flight to other requests are still needed.
                    return stopped
            replies.update(zip(indices, own_replies, strict=True))
            report_progress(len(replies))
            return None

        stops = await gather(map(ask_once, positions_by_key.values()))
        if any(stops):
            raise asyncio.CancelledError
        return [replies[position] for position in range(len(questions))]

    async def _replies(
        self,
        request: Request,
        questions: Sequence[ModelQuestion],
    ) -> list[MetricReply]:
        """Return what each question reads in the reply to the request that they share."""
        stored = await self.client.stored([request])
        if stored is not None:
            self._note_temperature(stored[0])
            replies = [read_reply(question, stored[0]) for question in questions]
            is_read = any(isinstance(reply, str) for reply in replies)
            if is_read or not self.retry_failed:
                self.counts.cached += 1
                self.counts.failed_cached += not is_read
                return replies
        self.counts.shared += self.client.shares([request])
        client = self.client if stored is None else self.client.asking_again
        (answer,) = await client.ask_all([request])
        self._note_temperature(answer)
        return [read_reply(question, answer) for question in questions]

    def _note_temperature(self, answer: Answer) -> None:
        if isinstance(answer, Response) and TEMPERATURE in answer.unmet:
            self.counts.unmet[TEMPERATURE] += 1


@dataclass(frozen=True, slots=True)
class ThreadClient:
    """`QuestionClient.ask` for a metric in another thread than `loop`, where it blocks.

    If the run is stopping or the loop has ended, it raises KeyboardInterrupt, like the metric's
    progress.
    """

    client: QuestionClient
    loop: asyncio.AbstractEventLoop

    @property
    def signature(self) -> str:
        return self.client.signature

    def __call__(self, questions: Sequence[ModelQuestion]) -> list[MetricReply]:
        asking = self.client.ask(questions)
        try:
            future = asyncio.run_coroutine_threadsafe(asking, self.loop)
            # A loop may end with this still in its queue, and then the future never has a result.
            while not wait([future], _POLL_SECONDS).done:
                if self.loop.is_closed():
                    raise CancelledError
            return future.result()
        except (CancelledError, asyncio.CancelledError):
            raise KeyboardInterrupt from None
        except RuntimeError:
            if self.loop.is_closed():
                raise KeyboardInterrupt from None
            raise
        finally:
            # A coroutine that never started would print a warning.
            if getcoroutinestate(asking) == CORO_CREATED:
                asking.close()


class DeferredClient:
    """An `Ask` for metrics that are made before there is a loop.

    `to` is set to the real client before they run.
    """

    def __init__(self) -> None:
        self.to: Ask | None = None

    @property
    def signature(self) -> str:
        return "" if self.to is None else self.to.signature

    def __call__(self, questions: Sequence[ModelQuestion]) -> list[MetricReply]:
        if self.to is None:
            raise RuntimeError("a metric asked its judge before the run had one")
        return self.to(questions)
