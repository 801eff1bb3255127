"""The client through which metrics ask the judge model.

It does for metrics what `scheduler` does for judgments, with the same provider, cache, retries and counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import CancelledError, wait
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field
from inspect import CORO_CREATED, getcoroutinestate
from typing import Self

from judge.cache import Cache, NoCache
from judge.core import plugins
from judge.core.errors import ConfigError, ParseError, ProviderError
from judge.core.records import Request, Response
from judge.execution import engines
from judge.execution.engines import Answer, Engine
from judge.execution.group_commit import GroupCommit
from judge.execution.progress import JudgeProgress
from judge.execution.retry import Retrier
from judge.metrics.common import Ask, ModelError, ModelQuestion
from judge.providers import Provider
from judge.providers.recording import Recorder
from judge.providers.vendors import signed
from judge.scoring import parse
from judge.scoring.strategies import SamplingOptions

_CHUNK = 64
_POLL_SECONDS = 0.5
_TEMPERATURE = "temperature"
_DEFAULTS = SamplingOptions()

MetricReply = str | ModelError


def to_request(question: ModelQuestion, provider: Provider, settings: SamplingOptions) -> Request:
    """Return the request of a question, by whose key its reply is stored."""
    message = {"role": "user", "content": question.prompt}
    params = {
        _TEMPERATURE: question.temperature,
        "max_tokens": max(settings.max_tokens or 0, question.max_tokens),
    }
    return settings.request(
        provider.model, (message,), params, draw=question.draw, endpoint=provider.endpoint
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


@dataclass(eq=False)
class MetricClient:
    """Asks one judge model, at temperature 0, whatever metrics want to know.

    Of `counts`, which may be a run's own, requests are counted, and `cached` and `shared` prompts; judgments are not.
    With `retry_failed`, a stored reply that no question can read is asked for again, unless it is `fresh`.
    `engine` runs the requests (default: in this process); one with state of its own answers one call at a time.
    The `max_tokens` of `settings` is the least limit of a reply: one that was meant for scores does not cut a list off.
    Raises ConfigError for a decision endpoint.
    """

    provider: Provider
    _: KW_ONLY
    cache: Cache
    retrier: Retrier
    counts: JudgeProgress = field(default_factory=JudgeProgress)
    concurrency: int = 64
    settings: SamplingOptions = _DEFAULTS
    recording: Recorder | None = None
    retry_failed: bool = False
    engine: Engine | None = None

    def __post_init__(self) -> None:
        if self.provider.decides:
            raise ConfigError(
                f"--model {self.provider.model}: a decision endpoint writes no text; name a chat model"
            )
        self.fresh = set[str]()
        self.in_flight: dict[str, asyncio.Event] = {}
        self._asking: set[asyncio.Task[object]] = set()
        self._closed = False
        local: Engine = plugins.load("engines", "local")
        self._engine = self.engine or local
        self._turn = nullcontext() if self._engine is local else asyncio.Lock()
        self._complete: engines.Ask = getattr(self.engine, "complete", self.provider.complete)
        self.server_decides = False
        self._commit = GroupCommit(self.cache.flush)

    @property
    def signature(self) -> str:
        """Who is asked and how, as far as it is known yet: `openai/gpt-5.4-mini@127.0.0.1:8000,t=0`."""
        parts = [
            signed(self.provider),
            f"t={'server' if self.server_decides else 0}",
            *self.settings.signature,
        ]
        parts += [f"max_tokens>={self.settings.max_tokens}"] if self.settings.max_tokens else []
        return ",".join(parts)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel what is being asked, ask nothing any more, and let go of connections."""
        self._closed = True
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        await self.provider.aclose()

    async def ask(
        self, questions: Sequence[ModelQuestion], tell: Callable[[int], None] = lambda done: None
    ) -> list[MetricReply]:
        """For each prompt in turn what its `read` made of the reply, or why there is nothing.

        Equal prompts are asked once, and none whose reply is kept. `tell` is called with the number of prompts that
        have an answer. Raises ProviderError where going on is pointless and StorageError where replies can no longer
        be kept, and CancelledError once this is closed; what was paid for until then is in the cache.
        """
        task = asyncio.current_task()
        if self._closed or task is None:
            raise asyncio.CancelledError
        call = _Call(self, questions, tell)

        async def send(request: Request) -> Response:
            async def once() -> Response:
                self.counts.sent += 1
                return await self._complete(request)

            return await self.retrier(once, request)

        def done(request: Request, answer: Answer) -> Awaitable[None]:
            """The reply is on disk before another request takes its place."""
            call.answered(request, answer)
            return self._commit.committed()

        self._asking.add(task)
        try:
            async with self._turn:
                await self._engine(call.requests(), send, done, concurrency=self.concurrency)
        finally:
            try:
                self._commit.flush()
            finally:
                self._asking.discard(task)
                call.end(call.asked)
        return [call.replies[place] for place in range(len(questions))]


class _Call:
    """The questions of one call of `ask`, and `replies` by index. `_places` has the indices of each request key.

    `asked` has the keys that this call is asking; other calls wait for these and read the cache.
    """

    def __init__(
        self, client: MetricClient, questions: Sequence[ModelQuestion], tell: Callable[[int], None]
    ) -> None:
        self.replies: dict[int, MetricReply] = {}
        self._client, self._questions, self._counts, self._tell = (
            client,
            questions,
            client.counts,
            tell,
        )
        self._places: dict[str, list[int]] = {}
        self._answers: dict[str, Answer] = {}
        self.asked = set[str]()
        self._awaited: dict[str, Request] = {}
        self._shares = bool(client.provider.endpoint) and not isinstance(client.cache, NoCache)

    async def requests(self) -> AsyncIterator[Request]:
        """Those that have to be sent. What the cache can answer is read on the way."""
        for first in range(0, len(self._questions), _CHUNK):
            for request in self._unanswered(
                range(first, min(first + _CHUNK, len(self._questions)))
            ):
                yield request
            await asyncio.sleep(0)
        for key, request in self._awaited.items():
            while (other := self._client.in_flight.get(key)) is not None:
                await other.wait()
            stored = self._client.cache.get_many([key])
            if key not in stored or not self._read_cached(key, request, stored[key]):
                self._begin(key)
                yield request

    def _unanswered(self, places: range) -> list[Request]:
        """Looked up and noted in one step, so that no answer comes in between unseen."""
        new: dict[str, Request] = {}
        provider = self._client.provider
        for place in places:
            request = to_request(self._questions[place], provider, self._client.settings)
            key = request.key()
            if key not in self._places:
                new[key] = request
            else:
                self._counts.shared += 1
            self._places.setdefault(key, []).append(place)
            if key in self._answers:
                self.replies[place] = read_reply(self._questions[place], self._answers[key])
        stored = self._client.cache.get_many(list(new)) if provider.endpoint else {}
        for key, response in stored.items():
            if self._read_cached(key, new[key], response):
                del new[key]
        if self._shares:
            elsewhere = new.keys() & self._client.in_flight.keys()
            self._awaited |= {key: new.pop(key) for key in elsewhere}
            for key in new:
                self._begin(key)
        return list(new.values())

    def _begin(self, key: str) -> None:
        self.asked.add(key)
        self._client.in_flight[key] = asyncio.Event()

    def end(self, keys: Iterable[str]) -> None:
        """Let the calls go on that wait for these: the cache has the replies, or there are none."""
        for key in self.asked.intersection(keys):
            self.asked.remove(key)
            self._client.in_flight.pop(key).set()

    def _read_cached(self, key: str, request: Request, response: Response) -> bool:
        """Read a stored reply; False if it is asked for again."""
        if not self._settle(key, response):
            if self._client.retry_failed and key not in self._client.fresh:
                del self._answers[key]
                return False
            self._counts.failed_cached += 1
        self._counts.cached += 1
        self._note(request, response)
        return True

    def answered(self, request: Request, answer: Answer) -> None:
        """Give an answer to all who want it, and store it if it is a reply."""
        key = request.key()
        self._settle(key, answer)
        if isinstance(answer, ProviderError):
            self._counts.refused += 1
            self.end([key])
            return
        self._counts.answered += 1
        self._counts.usage += answer.usage
        self._note(request, answer)
        self._client.fresh.add(key)
        if request.endpoint:
            self._client.cache.put(key, answer, request)
        self.end([key])

    def _settle(self, key: str, answer: Answer) -> bool:
        """Read an answer for everyone who waits for it; whether it was of use to any of them."""
        self._answers[key] = answer
        for place in self._places[key]:
            self.replies[place] = read_reply(self._questions[place], answer)
        self._tell(len(self.replies))
        return any(isinstance(self.replies[place], str) for place in self._places[key])

    def _note(self, request: Request, response: Response) -> None:
        self._counts.unmet.update(response.unmet)
        self._counts.served_by.add(response.served_by)
        self._client.server_decides |= _TEMPERATURE in response.unmet
        if self._client.recording:
            self._client.recording.add(request, response)


@dataclass(frozen=True, slots=True)
class ThreadClient:
    """`MetricClient.ask` for a metric that runs in another thread than `loop`, and waits there.

    If the client is closed or the loop has ended, it raises KeyboardInterrupt, like the metric's progress.
    """

    client: MetricClient
    loop: asyncio.AbstractEventLoop

    @property
    def signature(self) -> str:
        return self.client.signature

    def __call__(self, questions: Sequence[ModelQuestion]) -> list[MetricReply]:
        asking = self.client.ask(questions)
        try:
            future = asyncio.run_coroutine_threadsafe(asking, self.loop)
            # A loop may end with this still in its queue, and then nobody would ever answer.
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
            if getcoroutinestate(asking) == CORO_CREATED:
                asking.close()


class DeferredClient:
    """An `Ask` for metrics that are made before there is a loop; `to` is set to the real one before they run."""

    def __init__(self) -> None:
        self.to: Ask | None = None

    @property
    def signature(self) -> str:
        return str(getattr(self.to, "signature", ""))

    def __call__(self, questions: Sequence[ModelQuestion]) -> list[MetricReply]:
        if self.to is None:
            raise RuntimeError("a metric asked its judge before the run had one")
        return self.to(questions)
