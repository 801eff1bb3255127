"""Run one judge over its judgments until each has a score or a failure."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence

from judge.cache import Cache
from judge.core import plugins
from judge.core.errors import CriterionError, JudgeError, ParseError, ProviderError
from judge.core.records import Criterion, Failure, Request, Response, Score
from judge.execution.engines import Ask, Engine, GatheringEngine, RemoteEngine
from judge.execution.leases import GroupCommit, Part, RequestLeases
from judge.execution.pending import (
    Judgment,
    PendingJudgment,
    RequestBatcher,
    Row,
    Subscribers,
    by_document,
    chunks,
    firsts,
)
from judge.execution.prefix_queue import ROOM, PrefixAwareQueue, prefix
from judge.execution.progress import InFlight, JudgeProgress
from judge.execution.retry import Retrier
from judge.providers import Capabilities, Provider
from judge.providers.recording import Recorder
from judge.scoring import strategies
from judge.scoring.multi_criteria import make_renderers
from judge.scoring.strategies import Answer, ModelTraits, SamplingOptions, UnusableReply

_CHUNK = 64
_LOOK_AHEAD = 4
"""Requests for each place that are looked at for leaders, so that something is there to send while those are out."""
_TEMPERATURE = "temperature"


class JudgeRun:
    """One pass of a judge over judgments.

    Rows go to `emit` as they are made, in the column of the criterion's name and `suffix`, each once the replies it
    was made from are in the cache for good; `flush` is called after that. `engine` runs the requests, in this process
    where none is named. `criteria` are all those that are merged in a prompt, where the judgments are not of all.

    A call finishes although judgments fail, and early once `counts.stopping`. It raises ProviderError if going on is
    pointless (wrong key, unknown model, unreachable endpoint) and StorageError if replies can no longer be stored.
    Every row emitted until then stands, and every reply that was paid for is in the cache.
    """

    def __init__(
        self,
        judgments: Sequence[Judgment],
        provider: Provider,
        settings: SamplingOptions,
        *,
        cache: Cache,
        retrier: Retrier,
        emit: Callable[[Row], None],
        flush: Callable[[], None] = lambda: None,
        counts: JudgeProgress | None = None,
        concurrency: int = 64,
        suffix: str = "",
        recording: Recorder | None = None,
        engine: Engine | None = None,
        criteria: Sequence[Criterion] = (),
    ) -> None:
        self.counts = counts if counts is not None else JudgeProgress()
        self.counts.total += len(judgments)
        self._judgments = judgments
        self._provider, self._settings = provider, settings
        self._cache, self._retrier, self._emit, self._flush = cache, retrier, emit, flush
        self._concurrency, self._suffix = concurrency, suffix
        self._record: Callable[[Request, Response], None] = recording.add if recording else lambda *_: None
        self._engine: Engine = engine or plugins.load("engines", "local")
        self._complete: Ask = engine.complete if isinstance(engine, RemoteEngine) else provider.complete
        traits = Capabilities.of(provider)
        gathers = isinstance(engine, GatheringEngine) and engine.gathers
        self._grouped = not provider.decides and not gathers
        self._strategies = strategies.strategies_for(settings, provider.decides)
        self._first_judgments = firsts(judgments)
        self._renderers = make_renderers(criteria or [first.criterion for first in self._first_judgments.values()])
        self._first_chunk = len(self._first_judgments) if provider.decides else 1
        self._batcher = RequestBatcher(
            decides=provider.decides, draws=settings.draws, apart=traits.splits_merged_criteria
        )
        self._queue = PrefixAwareQueue(paced=bool(traits.caching), led=not traits.full_distribution)
        self._news, self._subscribers = asyncio.Event(), Subscribers(self._resolve)
        self._leftover_parts: list[Part] = []
        self._repeated: deque[PendingJudgment] = deque()
        self._next_round: list[PendingJudgment] = []
        self._next_round_bytes = 0
        self._traits = ModelTraits()
        self._unreadable: set[str] = set()
        self._rows: deque[Row] = deque()
        self._commit = GroupCommit(self._write)
        on = bool(provider.endpoint) and not gathers
        self._leases = RequestLeases(cache, self._take_cached, self.counts, deadline=retrier.deadline, on=on)

    async def __call__(self) -> None:
        for name, first in self._first_judgments.items():  # a template that cannot be rendered stops the run unpaid
            self._renderers[name].render(first.sample, first.rival)
        try:
            await self._rounds()
        finally:
            try:
                self._commit.flush()
            finally:
                self._leases.close()
                await self._provider.aclose()

    def _write(self) -> None:
        """Replies first, then the rows that were made from them: where the former cannot be kept, the latter are."""
        try:
            self._cache.flush()
            self._leases.release()
        finally:
            while self._rows:
                row = self._rows.popleft()
                self.counts.done += 1
                self.counts.failed += isinstance(row, Failure)
                self._emit(row)
            self._flush()

    # Rounds of requests.

    async def _rounds(self) -> None:
        """Ask until every judgment has its row: one round, and another for what stepped down or came incomplete.

        A round ends early when a strategy turns out to be lacking, so that the next one starts with a single request
        of the next strategy: what that one teaches is learned once. It also ends when the postponed prompts
        take as much memory as may wait.
        """
        rest = self._cases()
        while True:
            self._repeated.extendleft(reversed(self._next_round))
            self._next_round, self._next_round_bytes = [], 0
            if (first := next(rest, None)) is not None:
                self._repeated.append(first)
            work_left = self._repeated or self._leftover_parts or self._queue or self._leases.waiting
            if self.counts.stopping or not work_left:
                return
            await self._engine(self._requests(rest), self._ask, self._answered, concurrency=self._concurrency)

    def _cases(self) -> Iterator[PendingJudgment]:
        for judgment in by_document(self._judgments) if self._grouped else self._judgments:
            try:
                prompt = self._renderers[judgment.criterion.name].render(judgment.sample, judgment.rival)
            except CriterionError as error:
                self._fail(judgment, "render", error)
                continue
            group = prefix(prompt.messages, judgment.sample.source) if self._grouped else ("", 0)
            yield PendingJudgment(judgment, prompt, list(self._strategies), group)

    def _upcoming(self, rest: Iterator[PendingJudgment]) -> Iterator[PendingJudgment]:
        """What is to be asked again, or was put back, goes first."""
        while True:
            if self._repeated:
                yield self._repeated.popleft()
            elif (case := next(rest, None)) is not None:
                yield case
            else:
                return

    async def _requests(self, rest: Iterator[PendingJudgment]) -> AsyncIterator[Request]:
        """The requests that have to be sent. What the cache can answer is scored on the way."""
        known_lacking, queue, now = len(self._traits.lacking), self._queue, asyncio.get_running_loop().time
        leftovers, self._leftover_parts = self._leftover_parts, []
        queue.add(self._batcher.requests_for(leftovers), now())
        more, cases = True, chunks(self._upcoming(rest), self._first_chunk, _CHUNK, self._repeated.appendleft)
        while self._next_round_bytes < ROOM and not self.counts.stopping:
            room = more and not queue.full
            ahead = room and queue.grouped and len(queue) < _LOOK_AHEAD * self._concurrency
            if self._leases.should_poll():
                # What another process was asking for, and gave up.
                queue.add(
                    self._batcher.requests_for([part for part in self._leases.poll() if not self._cancel([part])]),
                    now(),
                )
            elif not ahead and (request := queue.take(now(), last=not room)) is not None:
                yield request
            elif room:
                chunk = next(cases, [])
                more = bool(chunk)
                queue.add(self._batcher.requests_for(self._unanswered(chunk)), now())
                await asyncio.sleep(0)
            elif queue or (self._leases.waiting and not (self._leftover_parts or self._repeated or self._next_round)):
                self._news.clear()
                await self._leases.wait(self._news)
            else:
                return
            if len(self._traits.lacking) > known_lacking:
                self._recall(now())
                return

    def _recall(self, now: float) -> None:
        """Take back requests of a strategy that is lacking."""
        others = []
        for request in self._queue.drain():
            if self._cancel(self._batcher.parts(request)):
                self._batcher.pop(request)
            else:
                others.append(request)
        self._queue.add(others, now)

    def _cancel(self, parts: Sequence[Part]) -> bool:
        """Return whether these belong to a strategy that is lacking; if so, their judgments try the next one."""
        keys = [key for key, _ in parts]
        cases = self._subscribers.waiting_for(keys)
        if not all(case.strategies[0] in self._traits.lacking for case in cases):
            return False
        self._subscribers.remove(keys)
        self._leases.abandon(keys)
        for case in cases:
            self._postpone(case)
        return True

    def _unanswered(self, cases: Sequence[PendingJudgment]) -> list[Part]:
        """One part for each reply that neither the cache nor a request under way brings, here or elsewhere.

        Looked up and noted in one step, before any of them is sent: so no answer can come in between unseen. A
        strategy that is known to be lacking still serves cached replies; all else tries the next strategy at once.
        """
        new: list[Part] = []
        while cases:
            cases_and_requests = [(case, self._requests_of(case)) for case in cases]
            keys = [key for _, requests in cases_and_requests for key in requests if key not in self._unreadable]
            stored = self._cache.get_many(keys) if self._provider.endpoint else {}
            cases = []
            for case, requests in cases_and_requests:
                case.requests = requests
                case.answers = {key: self._accept_cached(request, stored.get(key)) for key, request in requests.items()}
                missing = [key for key, answer in case.answers.items() if answer is None]
                if missing and (why := self._traits.lacking.get(case.strategies[0])):
                    cases += self._try_next_strategy(case, why)
                else:
                    new += self._subscribers.add(case, requests, missing)
        return self._leases.acquire(new)

    def _try_next_strategy(self, case: PendingJudgment, why: str) -> list[PendingJudgment]:
        """The case with its next strategy; empty if there is none, and the case fails without a request."""
        if len(case.strategies) == 1:
            self._fail(case.judgment, "request", ParseError(f"not asked: {why}; --weighting auto does without"))
            return []
        case.notes.append(why)
        case.strategies.pop(0)
        return [case]

    def _requests_of(self, case: PendingJudgment) -> dict[str, Request]:
        strategy, criterion = case.strategies[0], case.judgment.criterion
        return strategies.requests_by_key(
            case.prompt, criterion, strategy, self._settings, self._provider, prefix=case.prefix
        )

    def _accept_cached(self, request: Request, response: Response | None) -> Response | None:
        """A stored reply, unless it lacks the very thing that was asked for with it."""
        if response is None or not strategies.satisfies(response, self._settings):
            return None
        self._note_server(response)
        self._record(request, response)
        return response

    def _take_cached(self, key: str, request: Request, response: Response) -> bool:
        """Hand on a reply that another process has kept; whether it is of use to those who wait for it."""
        if key in self._unreadable or self._accept_cached(request, response) is None:
            return False
        self._subscribers.deliver(key, response)
        return True

    async def _ask(self, request: Request) -> Response:
        async def send() -> Response:
            self.counts.sent += 1
            flight.leave()
            return await self._complete(request)

        with InFlight(self.counts, lambda: self._describe(request)) as flight:
            return await self._retrier(send, request)

    def _describe(self, request: Request) -> tuple[str, str, str]:
        """What a request under way is for: item, system and criterion of the first judgment that waits for it."""
        key, _ = self._batcher.parts(request)[0]
        judgment = self._subscribers.waiting_for([key])[0].judgment
        return judgment.sample.item, judgment.sample.system, judgment.criterion.name

    def _answered(self, request: Request, answer: Answer) -> Awaitable[None]:
        """Take an answer; what is returned is done once it is on disk, and its rows are out."""
        parts = self._batcher.pop(request)
        if isinstance(answer, Response):
            self._received(parts, answer)
        elif self._batcher.refused(parts):
            self._leftover_parts += parts
        else:
            self.counts.refused += 1
            for key, _ in parts:
                self._subscribers.answered(key, answer)
        self._queue.answered(request, asyncio.get_running_loop().time())
        self._news.set()
        return self._commit.committed()

    def _received(self, parts: Sequence[Part], answer: Response) -> None:
        """Give each part of a reply to those who wait for it; what is missing from it is asked for again."""
        self.counts.answered += 1
        self.counts.usage += answer.usage
        self._note_server(answer)
        self._leftover_parts += self._batcher.missing_parts(parts, answer)
        settled: list[PendingJudgment] = []
        for (key, request), part in zip(parts, self._batcher.split(parts, answer), strict=False):
            self._record(request, part)
            settled += self._subscribers.answered(key, part)
        for case in dict.fromkeys(settled):
            if case.missing:  # a draw with a score stands, whatever becomes of the others
                has_score = [
                    key for key in case.uncached if strategies.label(case.answers[key], case.judgment.criterion)
                ]
                self._keep(case, has_score)

    def _resolve(self, case: PendingJudgment) -> None:
        """Score a case whose answers are complete, try its next strategy, or fail it."""
        self._leases.complete(case.requests)
        judgment = case.judgment
        answers = [answer for answer in case.answers.values() if answer is not None]
        try:
            value, provenance = strategies.score_reply(
                case.strategies[0], answers, judgment.criterion, self._settings, case.notes
            )
        except UnusableReply as error:
            if len(case.strategies) > 1:
                self._fall_back(case, error, answers)
                return
            self._traits.learn(case.strategies[0], error)
            self._fail(judgment, "parse", ParseError(str(error), error.raw))
        except ParseError as error:
            if not case.waited:  # a run keeps no such reply: it was imported
                self._unreadable.update(case.requests)
                self._repeated.append(case)
                return
            self._fail(judgment, "parse", error)
        except ProviderError as error:
            if case.fallback is not None and len(case.strategies) > 1:
                self._fall_back(case, UnusableReply(f"the draws were not answered: {error}"), answers)
                return
            self._fail(judgment, "request", error)
        else:
            self._traits.proven.add(case.strategies[0])
            drawn = [answer for answer in answers if isinstance(answer, Response)]
            self.counts.unmet.update(
                {_TEMPERATURE: 1} if any(_TEMPERATURE in response.unmet for response in drawn) else ()
            )
            self._keep(case, case.uncached)
            sample, rival = judgment.sample, judgment.rival.system if judgment.rival else ""
            column = judgment.criterion.name + self._suffix
            self._finish(Score(sample.item, sample.system, column, value, provenance, rival))
        self.counts.cached += not case.waited
        self.counts.shared += case.waited and not case.requested_here

    def _fall_back(self, case: PendingJudgment, error: UnusableReply, answers: Sequence[Answer]) -> None:
        self._traits.learn(case.strategies[0], error)
        strategy = case.strategies.pop(0)
        if strategy == "logprobs":
            self._keep(case, case.uncached)
            case.fallback = strategies.fallback_reply(answers)
        case.notes.append(str(error))
        case.answers, case.uncached = {}, set()
        if case.strategies[0] == "single" and case.fallback is not None:
            case.answers = {"": case.fallback}
            self._resolve(case)
        else:
            self._postpone(case)

    def _postpone(self, case: PendingJudgment) -> None:
        self._next_round.append(case)
        self._next_round_bytes += case.size

    def _keep(self, case: PendingJudgment, keys: Iterable[str]) -> None:
        """Put these of a case's fresh replies into the cache."""
        for key in list(keys):
            answer = case.answers[key]
            if self._provider.endpoint and isinstance(answer, Response):
                self._cache.put(key, answer, case.requests[key])
                self._unreadable.discard(key)
            case.uncached.discard(key)
            self._leases.complete([key])

    def _note_server(self, response: Response) -> None:
        """Take down what a reply tells of its server; its temperature only counts if the reply does."""
        self.counts.unmet.update(name for name in response.unmet if name != _TEMPERATURE)
        self.counts.served_by.add(response.served_by)

    def _fail(self, judgment: Judgment, stage: str, error: JudgeError) -> None:
        raw = error.raw if isinstance(error, ParseError) else ""
        sample, rival = judgment.sample, judgment.rival.system if judgment.rival else ""
        column, kind = judgment.criterion.name + self._suffix, type(error).__name__
        self._finish(Failure(sample.item, sample.system, column, stage, kind, str(error), raw, rival))

    def _finish(self, row: Row) -> None:
        self._rows.append(row)
        self._commit.schedule()
