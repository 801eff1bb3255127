"""Run one judge over its judgments until each has a score or a failure."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace

from judge.cache import Cache
from judge.core import plugins
from judge.core.errors import (
    CriterionError,
    JudgeError,
    NotAsked,
    ParseError,
    ProviderError,
    StorageError,
    Unrecorded,
)
from judge.core.format import one_line
from judge.core.messages import option
from judge.core.records import Criterion, Failure, Provenance, Reading, Request, Response, Score
from judge.criteria.render import MissingInput, UnequalInput, render_repair_question
from judge.execution.engines import Ask, Engine
from judge.execution.group_commit import GroupCommit
from judge.execution.pending import (
    Bundles,
    Judgment,
    PendingJudgment,
    PendingRequest,
    Row,
    State,
    by_document,
    by_prompt,
)
from judge.execution.prefix_queue import ROOM, PrefixAwareQueue, prefix
from judge.execution.progress import FIRST, JudgeProgress
from judge.execution.retry import Retrier
from judge.providers import Capabilities, Provider
from judge.providers.recording import Recorder, ReplayProvider
from judge.scoring import quotes, strategies
from judge.scoring.multi_criteria import make_renderers
from judge.scoring.strategies import Answer, ModelTraits, Repair, SamplingOptions, UnusableReply

_CHUNK = 64
_LOOK_AHEAD = 4
"""Requests for each place that are looked at for leaders, so that something is there to send while those are out."""
_TEMPERATURE = "temperature"


@dataclass(eq=False)
class JudgeRun:
    """One pass of a judge over judgments.

    Rows go to `emit` as they are made, in the column of the criterion's name and `suffix`, each once the replies it
    was made from are in the cache for good; `flush` is called after that. `engine` runs the requests, in this process
    where none is named. `criteria` are all those of the run, where the judgments are not of all.
    `model_traits` is what earlier passes learned about the model.

    Every reply is stored as it arrives, and a stored reply without a score fails its judgment again. With
    `retry_failed`, a judgment that fails on stored replies alone is asked again, and the new replies replace those.
    Once the first 20 judgments of a criterion have failed for one reason, its others fail unless the cache has replies.

    A call finishes although judgments fail, and early once `counts.stopping`. It raises ProviderError if going on is
    pointless (wrong key, unknown model, unreachable endpoint) and StorageError if replies can no longer be stored.
    Every row emitted until then stands, and every reply that was paid for is in the cache.
    """

    judgments: Sequence[Judgment]
    provider: Provider
    settings: SamplingOptions
    _: KW_ONLY
    cache: Cache
    retrier: Retrier
    emit: Callable[[Row], None]
    flush: Callable[[], None] = lambda: None
    counts: JudgeProgress = field(default_factory=JudgeProgress)
    concurrency: int = 64
    suffix: str = ""
    recording: Recorder | None = None
    engine: Engine | None = None
    criteria: Sequence[Criterion] = ()
    retry_failed: bool = False
    model_traits: ModelTraits = field(default_factory=ModelTraits)

    def __post_init__(self) -> None:
        self.counts.total += len(self.judgments)
        if any(judgment.criterion.part for judgment in self.judgments):
            self.counts.unit = "question"
        provider, settings, traits = self.provider, self.settings, Capabilities.of(self.provider)
        self._complete: Ask = getattr(self.engine, "complete", provider.complete)
        self._gathers = bool(getattr(self.engine, "gathers", False))
        self._grouped = not self._gathers
        self._strategies = strategies.strategies_for(settings, provider.decides)
        self._first_judgments: dict[str, Judgment] = {}
        for judgment in self.judgments:
            self._first_judgments.setdefault(judgment.criterion.name, judgment)
        criteria = [first.criterion for first in self._first_judgments.values()]
        self._renderers = make_renderers(self.criteria or criteria)
        asks = criteria if settings.repair else []
        self._questions = {criterion.name: render_repair_question(criterion) for criterion in asks}
        self._groups = by_prompt(self._cases())
        self._all_taken = False
        self._retried: deque[list[PendingJudgment]] = deque()
        self._next_round: list[PendingJudgment] = []
        self._next_round_bytes = 0
        self._pending: dict[str, PendingRequest] = {}
        self._bundles = Bundles(draws=settings.draws, apart=traits.splits_merged_criteria)
        self._queue = PrefixAwareQueue(paced=bool(traits.caching))
        self._outdated: dict[str, Answer | None] = {}
        """Stored replies that are asked for again, by key; None once there is a new one."""
        self._repairs: dict[PendingJudgment, Repair] = {}
        self._rows: deque[Row] = deque()
        self._news = asyncio.Event()
        self._commit = GroupCommit(self._write)

    async def __call__(self) -> None:
        engine: Engine = self.engine or plugins.load("engines", "local")
        self._check_templates()
        try:
            while not self.counts.stopping and (
                self._pending or self._retried or self._next_round or not self._all_taken
            ):
                await engine(self._round(), self._ask, self._answered, concurrency=self.concurrency)
        finally:
            for case, repair in self._repairs.items():  # the run ended before the answer
                with suppress(StorageError):  # of an earlier write; the flush tries again
                    self._fail(case.judgment, repair.trouble, repair.strategy)
            try:
                self._commit.flush()
            finally:
                await self.provider.aclose()

    def _check_templates(self) -> None:
        """Render each template once: one that cannot be rendered stops the run unpaid. Raises CriterionError.

        A text that lacks something fails alone, and so does a pair that does not share it; another one shows whether
        the template works. If no pair shares what a criterion reads, the run stops with the first one's reason.
        """
        unchecked = set(self._first_judgments)
        unequal: dict[str, UnequalInput] = {}
        for judgment in self.judgments:
            if not unchecked:
                return
            name = judgment.criterion.name
            if name in unchecked:
                try:
                    self._renderers[name].render(judgment.sample, judgment.rival)
                except MissingInput:
                    continue
                except UnequalInput as error:
                    unequal.setdefault(name, error)
                else:
                    unchecked.remove(name)
        for name in unchecked & unequal.keys():
            raise unequal[name]

    def _write(self) -> None:
        """Replies first, then the rows that were made from them: where the former cannot be kept, the latter are."""
        try:
            self.cache.flush()
        finally:
            while self._rows:
                row = self._rows.popleft()
                self.counts.done += 1
                self.counts.failed += isinstance(row, Failure)
                self.emit(row)
            self.flush()

    # From judgments to requests.

    def _cases(self) -> Iterator[PendingJudgment]:
        for judgment in by_document(self.judgments) if self._grouped else self.judgments:
            try:
                prompt = self._renderers[judgment.criterion.name].render(
                    judgment.sample, judgment.rival
                )
            except CriterionError as error:
                self._fail(judgment, error)
                continue
            sample, examples = judgment.sample, judgment.criterion.examples
            group = prefix(prompt.messages, sample.source, examples) if self._grouped else ("", 0)
            yield PendingJudgment(judgment, prompt, list(self._strategies), group)

    async def _round(self) -> AsyncIterator[Request]:
        """Yield the requests of one round. Judgments that the cache answers are scored on the way.

        A round ends early when a strategy turns out to be lacking, so that the next one starts with a single request
        of the next strategy: what that one teaches is learned once. It also ends when the postponed prompts
        take as much memory as may wait.
        """
        queue, now = self._queue, asyncio.get_running_loop().time
        queue.clear()
        self._bundles.clear()
        self._enqueue(
            [pending for pending in self._pending.values() if pending.state is State.QUEUED]
        )
        self._retried.extendleft(reversed(list(by_prompt(self._next_round))))
        self._next_round, self._next_round_bytes = [], 0
        lacking = self.model_traits.lacking
        known = len(lacking)
        size = 1
        while len(lacking) == known and not self.counts.stopping and self._next_round_bytes < ROOM:
            room = not queue.full and self._may_start()
            look_ahead = room and queue.grouped and len(queue) < _LOOK_AHEAD * self.concurrency
            if not look_ahead and (request := queue.take(now(), last=not room)) is not None:
                for pending in self._bundles[request]:
                    pending.state = State.IN_FLIGHT
                yield request
            elif room:
                # About `size` judgments, those of one prompt together; judgments to be retried come first.
                cases: list[PendingJudgment] = []
                while len(cases) < size and self._may_start():
                    group = self._retried.popleft() if self._retried else next(self._groups, None)
                    self._all_taken = self._all_taken or group is None
                    cases += group or ()
                    for case in group or ():
                        if not (trial := self.counts.trials[case.judgment.criterion.name]).over:
                            trial.started.add(case.first or case)
                self._look_up(cases)
                size = _CHUNK
                await asyncio.sleep(0)
            elif queue or self._waits():
                self._news.clear()
                await self._news.wait()
            else:
                return

    def _may_start(self) -> bool:
        """Whether there are judgments to start, and no criterion waits for its first replies."""
        full = not self._gathers and any(trial.full for trial in self.counts.trials.values())
        return bool(self._retried) or not (self._all_taken or full)

    def _waits(self) -> bool:
        """Whether the round goes on once a criterion has its first replies."""
        return not self._all_taken and any(
            pending.state is State.IN_FLIGHT for pending in self._pending.values()
        )

    def _look_up(self, cases: Sequence[PendingJudgment]) -> None:
        """Score the judgments that the cache answers, and request what is missing for the others.

        Looked up and noted in one step, before any of them is sent: so no answer can come in between unseen. A
        strategy that is known to be lacking still serves cached replies; all else tries the next strategy at once.
        """
        new = list[PendingRequest]()
        while cases:
            if any(case.strategies[0] == "samples" for case in cases):
                if (
                    not self.counts.draws
                ):  # settled for all judgments, by what the first replies showed
                    fewer = self.settings.draws_if_reasoning if self.counts.reasons else None
                    self.counts.draws = fewer or self.settings.draws
                self.settings = replace(self.settings, draws=self.counts.draws)
            for case in cases:
                wanted = self._requests_of(case)
                case.answers, case.requests = {}, {request.key(): request for request in wanted}
            keys = {key for case in cases for key in case.requests} - self._pending.keys()
            stored = self.cache.get_many(list(keys)) if self.provider.endpoint else {}
            without_strategy: list[PendingJudgment] = []
            for case in cases:
                for key, request in case.requests.items():
                    if (
                        pending := self._pending.get(key)
                    ) is not None and pending.answer is not None:
                        case.answers[key] = pending.answer
                    elif (response := stored.get(key)) is not None:
                        if case.asked_again:
                            self._outdated.setdefault(key, response)
                        if self._accept_cached(key, request, response):
                            case.answers[key] = response
                trial = self.counts.trials[case.judgment.criterion.name]
                if len(case.answers) == len(case.requests):
                    self._score(case)
                elif case.repair:
                    new += self._subscribe(case)
                elif (why := self.model_traits.lacking.get(case.strategies[0])) and len(
                    case.strategies
                ) > 1:
                    case.notes.append(why)
                    case.strategies.pop(0)
                    without_strategy.append(case)
                elif why or (
                    not isinstance(self.provider, ReplayProvider)
                    and all(self.counts.trials[name].stopped for name in case.criteria)
                ):
                    why = (
                        f"not asked: {why}; {option('weighting', 'auto')} does without"
                        if why
                        else trial.stopped
                    )
                    trial.unasked = True
                    trial.started.discard(case)
                    self._leave(case)
                    self._fail(case.judgment, NotAsked(why))
                else:
                    new += self._subscribe(case)
            cases = without_strategy
        self._enqueue(new)

    def _requests_of(self, case: PendingJudgment) -> tuple[Request, ...]:
        model, endpoint = self.provider.model, self.provider.endpoint
        if case.repair:
            return case.repair.requests(model, endpoint, case.prefix, case.strategies[0])
        return strategies.requests(
            case.prompt, case.judgment.criterion, case.strategies[0], self.settings,
            model=model, endpoint=endpoint, prefix=case.prefix,
        )  # fmt: skip

    def _subscribe(self, case: PendingJudgment) -> Iterator[PendingRequest]:
        """Have a judgment wait for its requests; yield those that nobody waited for yet."""
        for key, request in case.requests.items():
            if (pending := self._pending.get(key)) is None and key not in case.answers:
                pending = self._pending[key] = PendingRequest(key, request)
                yield pending
            if pending is not None:
                pending.subscribers[case] = None

    def _enqueue(self, requests: Iterable[PendingRequest]) -> None:
        """Queue requests. Judgments whose strategy is lacking try the next one instead."""
        ready = []
        for pending in requests:
            pending.state = State.QUEUED
            if all(
                not case.repair and case.strategies[0] in self.model_traits.lacking
                for case in pending.subscribers
            ):
                del self._pending[pending.key]
                for case in pending.subscribers:
                    self._postpone(case)
            else:
                ready.append(pending)
        self._queue.add(self._bundles.make(ready), asyncio.get_running_loop().time())

    # From requests to answers.

    async def _ask(self, request: Request) -> Response:
        async def send() -> Response:
            self.counts.sent += 1
            first_try()
            return await self._complete(request)

        with self.counts.request() as first_try:
            return await self.retrier(send, request)

    def _answered(self, bundle: Request, answer: Answer) -> Awaitable[None]:
        """Take an answer; what is returned is done once it is on disk, and its rows are out."""
        members = self._bundles.pop(bundle)
        if isinstance(answer, Response):
            self.counts.answered += 1
            self.counts.usage += answer.usage
            self._note_server(answer)
            parts: list[tuple[PendingRequest, Response]] = []
            for pending, part in self._bundles.split(members, answer):
                if part is None:
                    pending.state = State.QUEUED
                    continue
                self._record(pending.request, part)
                if self.provider.endpoint:
                    self.cache.put(pending.key, part, pending.request)
                parts.append((pending, part))
            self._settle(parts)
        else:
            self.counts.refused += 1
            self._settle([(pending, answer) for pending in members])
        self._queue.answered(bundle, asyncio.get_running_loop().time())
        self._news.set()
        return self._commit.committed()

    def _accept_cached(self, key: str, request: Request, response: Response) -> bool:
        """Note and record a stored reply; False if it is asked for again."""
        if accepted := response != self._outdated.get(key):
            self._note_server(response)
            self._record(request, response)
        return accepted

    def _settle(self, answers: Sequence[tuple[PendingRequest, Answer]]) -> None:
        """Give answers to the judgments that wait for them, and score those that have all they wait for."""
        cases: dict[PendingJudgment, None] = {}
        for pending, answer in answers:
            pending.answer, pending.state = answer, State.ANSWERED
            if self.retry_failed:
                self._outdated[pending.key] = None
            for place, case in enumerate(pending.subscribers):
                case.answers[pending.key] = answer
                case.waited = True
                case.requested_here = case.requested_here or place == 0
            cases |= pending.subscribers
        for case in cases:
            if len(case.answers) == len(case.requests):
                self._score(case)

    # From answers to rows.

    def _score(self, case: PendingJudgment) -> None:
        """Score a judgment whose answers are complete, try its next strategy, or fail it."""
        judgment = case.judgment
        answers = [case.answers[key] for key in case.requests]
        if not answers and case.fallback is not None:
            answers = [case.fallback]
        try:
            judged = judgment.judged(self.settings)
            if case.strategies[0] == "samples" and self._repair_draws(case, answers, judged):
                return
            value, provenance = self._value_of(case, answers, judged)
        except ParseError as error:
            last = not isinstance(error, UnusableReply) or len(case.strategies) == 1
            # Of the unusable replies, only draws are so because none has a score.
            unread = not isinstance(error, UnusableReply) or (
                last and case.strategies[0] == "samples"
            )
            trouble = ParseError(str(error), error.raw)
            if unread and self._repair(case, answers, trouble):
                return
            if last and self.retry_failed and not case.waited and not case.asked_again:
                for key, answer in case.answers.items():
                    self._outdated.setdefault(key, answer)
                self._leave(case)
                self._repairs.pop(case, None)
                case = case.first or case
                case.asked_again, case.strategies, case.notes = True, list(self._strategies), []
                case.fallback = None
                self._retried.append([case])
                return
            if isinstance(error, UnusableReply):
                self.model_traits.learn(case.strategies[0], error)
            if not last:
                self._fall_back(case, error, answers)
                return
            self.counts.failed_cached += not case.waited
            self._give_up(case, answers, trouble)
        except ProviderError as error:
            if case.fallback is not None and len(case.strategies) > 1:
                self._fall_back(
                    case, UnusableReply(f"the draws were not answered: {error}"), answers
                )
                return
            self._give_up(case, answers, error)
            if case.first and isinstance(error, Unrecorded):  # as if it had not been asked
                self._leave(case)
                case = case.first
                self.counts.failed_cached += not case.waited
        else:
            self._note_outcome(case, None)
            self.model_traits.proven.add(case.strategies[0])
            if any(
                isinstance(answer, Response) and _TEMPERATURE in answer.unmet for answer in answers
            ):
                self.counts.unmet[_TEMPERATURE] += 1
            sample, rival = judgment.sample, judgment.rival.system if judgment.rival else ""
            column = judgment.criterion.name + self.suffix
            if provenance.quote:
                provenance = replace(
                    provenance, quote=quotes.find_quote(provenance.quote, sample.texts)
                )
            self._finish(Score(sample.item, sample.system, column, value, provenance, rival))
        self._leave(case)
        self.counts.cached += not case.waited
        self.counts.shared += case.waited and not case.requested_here

    def _value_of(
        self, case: PendingJudgment, answers: Sequence[Answer], judged: str | None
    ) -> tuple[float, Provenance]:
        strategy = case.strategies[0]
        if case.repair:
            return case.repair.score(strategy, answers, self.settings, case.notes, judged=judged)
        return strategies.score_reply(
            strategy, answers, case.judgment.criterion, self.settings, case.notes, judged=judged
        )

    def _repair(
        self, case: PendingJudgment, answers: Sequence[Answer], trouble: ParseError
    ) -> bool:
        """Have the judge asked for the score alone, after a reply without one; return False if it cannot be asked."""
        repair = None
        if (question := self._repair_question(case)) is not None:
            repair = strategies.repair(
                answers, case.prompt, case.judgment.criterion, case.strategies[0],
                settings=self.settings, trouble=trouble, question=question,
            )  # fmt: skip
        return self._ask_again(case, repair)

    def _repair_draws(
        self, case: PendingJudgment, answers: Sequence[Answer], judged: str | None
    ) -> bool:
        """Have the judge asked again after the draws that have no score; return False if all have one."""
        repair = None
        if (question := self._repair_question(case)) is not None:
            repair = strategies.repair_draws(
                answers, case.prompt, case.judgment.criterion,
                settings=self.settings, judged=judged, question=question,
            )  # fmt: skip
        return self._ask_again(case, repair)

    def _repair_question(self, case: PendingJudgment) -> str | None:
        """Return the question for the score alone, None if this judgment may not be asked again."""
        name = case.judgment.criterion.name
        return (
            None if case.repair or self.counts.trials[name].stopped else self._questions.get(name)
        )

    def _ask_again(self, case: PendingJudgment, repair: Repair | None) -> bool:
        if repair is None:
            return False
        self._leave(case)
        second = replace(
            case, judgment=replace(case.judgment, criterion=repair.criterion), prompt=repair.prompt,
            notes=[*case.notes], strategies=[*repair.strategies], requests={}, answers={}, fallback=None,
            repair=repair, first=case,
        )  # fmt: skip
        self._repairs[second] = repair
        self._retried.append([second])
        return True

    def _give_up(self, case: PendingJudgment, answers: Sequence[Answer], error: JudgeError) -> None:
        """Fail a judgment that has no score."""
        trial = self.counts.trials[case.judgment.criterion.name]
        if trial.stopped and isinstance(
            error, Unrecorded
        ):  # the recorded run did not ask it either
            trial.unasked, error = True, NotAsked(trial.stopped)
        self._note_outcome(case, error)
        if case.repair:
            replies = [answer for answer in answers if isinstance(answer, Response)]
            error = case.repair.failure(replies, error)
            self._fail(case.judgment, error, case.repair.strategy, "repaired" if replies else None)
        else:
            self._fail(
                case.judgment, error, case.strategies[0] if isinstance(error, ParseError) else None
            )

    def _note_outcome(self, case: PendingJudgment, error: JudgeError | None) -> None:
        """Count a repair, and stop asking about a criterion once its first judgments failed for one reason."""
        trial = self.counts.trials[case.judgment.criterion.name]
        if case.repair:
            del self._repairs[case]
            self.counts.unread += 1
            self.counts.repaired += error is None
            error = error and case.repair.trouble
        case = case.first or case
        trial.started.discard(case)
        if isinstance(error, Unrecorded | NotAsked):
            return
        reason = type(error).__name__
        if error is None or trial.reason not in ("", reason):
            trial.over, trial.stopped = True, ""
            trial.started.clear()
        if trial.over or trial.stopped:
            return
        trial.reason = reason
        trial.failed.add(tuple(message["content"] for message in case.prompt.messages))
        if len(trial.failed) < FIRST:
            return
        if isinstance(error, ParseError):
            trial.stopped = (
                f"judge stopped asking, because none of the first {FIRST} replies has a score, such as "
                f"{one_line(error.raw, 120)!r}: {error}. Change {option('max_tokens')}, {option('reply')}, "
                f"{option('structured')} or the model; with {option('retry_failed', True)} judge asks again"
            )
        else:
            trial.stopped = (
                f"judge stopped asking, because the first {FIRST} requests failed alike, with {reason}: {error}. "
                "Once that is mended, the same command asks again"
            )

    def _fall_back(
        self, case: PendingJudgment, error: ParseError, answers: Sequence[Answer]
    ) -> None:
        if case.strategies.pop(0) == "logprobs":
            case.fallback = strategies.fallback_reply(answers)
        self._leave(case)
        case.notes.append(str(error))
        if case.strategies[0] == "single" and case.fallback is not None:
            self._score(case)
        else:
            self._postpone(case)

    def _postpone(self, case: PendingJudgment) -> None:
        self._next_round.append(case)
        self._next_round_bytes += case.size

    def _leave(self, case: PendingJudgment) -> None:
        """End a judgment's requests; one ends with the last judgment that waited for it."""
        for key in case.requests:
            if (pending := self._pending.get(key)) is not None:  # else the cache had it
                pending.subscribers.pop(case, None)
                if not pending.subscribers:
                    del self._pending[key]
        case.requests, case.answers = {}, {}

    def _record(self, request: Request, response: Response) -> None:
        if self.recording:
            self.recording.add(request, response)

    def _note_server(self, response: Response) -> None:
        """Take down what a reply tells of its server; its temperature only counts if the reply does."""
        if response.unmet:
            self.counts.unmet.update(name for name in response.unmet if name != _TEMPERATURE)
        self.counts.served_by.add(response.served_by)
        self.counts.reasons = self.counts.reasons or response.reasoned

    def _fail(
        self,
        judgment: Judgment,
        error: JudgeError,
        method: str | None = None,
        reading: Reading | None = None,
    ) -> None:
        stage = "parse" if method else "render" if isinstance(error, CriterionError) else "request"
        raw = error.raw if isinstance(error, ParseError) else ""
        sample, rival = judgment.sample, judgment.rival.system if judgment.rival else ""
        column, kind = judgment.criterion.name + self.suffix, type(error).__name__
        self._finish(
            Failure(
                sample.item,
                sample.system,
                column,
                stage,
                kind,
                str(error),
                raw,
                rival,
                method,
                reading,
            )
        )

    def _finish(self, row: Row) -> None:
        self._rows.append(row)
        self._commit.schedule()
