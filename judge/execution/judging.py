"""How a text gets its score: one judgment is one coroutine, `Judging.judge`.

Read it from there downwards. Requests go to a `ReplyClient`, which knows about caches, limits and
retries. See docs/decisions/0094-one-judgment-is-one-coroutine.md.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from judge.core.errors import (
    CriterionError,
    JudgeError,
    NotAsked,
    ParseError,
    ProviderError,
    Unrecorded,
)
from judge.core.format import judgment_name
from judge.core.messages import option
from judge.core.records import (
    Criterion,
    Failure,
    Prompt,
    Provenance,
    Request,
    Response,
)
from judge.criteria.render import MissingInput, UnequalInput, render_repair_question
from judge.execution.circuit_breaker import CircuitBreaker
from judge.execution.judgments import Judgment, Row, by_document, by_prompt
from judge.execution.layers import RunStopped
from judge.execution.layers.leading import prefix
from judge.execution.model_traits import ModelTraits
from judge.execution.outcomes import (
    RepairFailed,
    UnusableAtLast,
    fails_one_judgment,
    failure_row,
    first_error,
    score_row,
)
from judge.execution.progress import TEMPERATURE, JudgeProgress
from judge.execution.reply_client import Answer, ReplyClient
from judge.providers import Provider
from judge.providers.recorded_call import call_of, digest
from judge.providers.recording import ReplayProvider
from judge.scoring import checklist, strategies
from judge.scoring.multi_criteria import PromptRenderer, make_renderers
from judge.scoring.repair import Repair, repair_draws, repair_reply
from judge.scoring.strategies import (
    Question,
    SamplingOptions,
    Strategy,
    UnusableReply,
)

Outcome = tuple[float, Provenance] | JudgeError
"""The value of a judgment and its provenance, or the error."""
WINDOW = 256
"""Judgments in progress at the same time, several for each request in flight.

So there is always another request to send."""


@dataclass(frozen=True, slots=True)
class _CriterionTools:
    """What the judgments on one criterion share; `repair_question` is None without repairs."""

    renderer: PromptRenderer
    repair_question: str | None
    breaker: CircuitBreaker


@dataclass(slots=True, eq=False)
class Attempt:
    """A judgment in progress: its prompt, the client that answers, and the present strategy.

    `notes` say why earlier strategies gave no score, and `answers` are those to this one.
    `fallback` is a reply without usable probabilities that may have a written score. `from_cache`
    is True until a request is sent, and `shared` as long as other judgments of this run sent all of
    them.
    """

    judgment: Judgment
    prompt: Prompt
    prefix: tuple[str, int]
    client: ReplyClient
    strategy: Strategy
    notes: list[str] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    fallback: Response | None = None
    from_cache: bool = True
    shared: bool = True
    may_ask_again: bool = False

    @property
    def asks_again(self) -> bool:
        """Whether the judgment is repeated if it has no score: all its replies were stored ones."""
        return self.may_ask_again and self.from_cache


class _StrategyUnavailable(Exception):
    """The model is known to lack a strategy."""


class Judging:
    """One judge of a run: it judges until each judgment has a score or a failure.

    `emit` gets each row as soon as its replies are in the cache. The row's column is the
    criterion's name and `suffix`. `criteria` are all criteria of the run.

    Every reply is stored as it arrives, and a stored reply without a score fails its judgment
    again. With `retry_failed`, a judgment that fails on stored replies alone is repeated, and the
    new replies replace the old ones. With `gathers`, all requests are gathered before any is sent,
    so that no judgment may wait for another.
    """

    def __init__(
        self,
        client: ReplyClient,
        provider: Provider,
        settings: SamplingOptions,
        criteria: Iterable[Criterion],
        *,
        emit: Callable[[Row], None],
        counts: JudgeProgress,
        suffix: str = "",
        retry_failed: bool = False,
        gathers: bool = False,
    ) -> None:
        self.client = client
        self.provider = provider
        self.settings = settings
        self.emit = emit
        self.counts = counts
        self.suffix = suffix
        self.retry_failed = retry_failed
        self.gathers = gathers
        self.traits = ModelTraits(waits=not gathers)
        self._tools = self._make_tools(list(criteria))
        self._shared_sources: set[str | None] = set()

    def _make_tools(self, criteria: Sequence[Criterion]) -> dict[str, _CriterionTools]:
        """Return the tools by the name of a criterion, or of a part of a checklist.

        All parts of a checklist share one breaker.
        """
        renderers = make_renderers(criteria)
        tools: dict[str, _CriterionTools] = {}
        for criterion in criteria:
            breaker = CircuitBreaker(waits=not self.gathers)
            question: str | None = None
            if self.settings.repair:
                question = render_repair_question(criterion)
            for part in [criterion, *checklist.parts(criterion)]:
                renderer = renderers[part.name]
                tools[part.name] = _CriterionTools(renderer, question, breaker)
        return tools

    async def judge_all(self, judgments: Sequence[Judgment]) -> None:
        """Judge everything, or until the run is stopping.

        Raises ProviderError if further requests are pointless (wrong key, unknown model,
        unreachable endpoint), Reached at a limit, StorageError if replies can no longer be stored,
        and CriterionError for a template that cannot be rendered. Rows emitted until then are
        valid, and every paid reply is in the cache.
        """
        self._render_once(judgments)
        if isinstance(self.provider, ReplayProvider):
            self.provider.expect(lambda: self._prompts(judgments))
        self.counts.total += len(judgments)
        if any(judgment.criterion.part for judgment in judgments):
            self.counts.unit = "question"
        count_by_source = Counter(judgment.sample.source for judgment in judgments)
        self._shared_sources = {
            source for source, n_judgments in count_by_source.items() if n_judgments > 1
        }
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._start_tasks(judgments, tasks)
        except BaseExceptionGroup as errors:
            # Callers handle single errors and know no groups.
            raise errors.exceptions[0] from None

    async def _start_tasks(
        self, judgments: Sequence[Judgment], tasks: asyncio.TaskGroup
    ) -> None:
        """Start a task for each judgment, as many as may be in progress at the same time."""
        window_size = len(judgments) if self.gathers else WINDOW
        window = asyncio.Semaphore(window_size)
        in_order = judgments if self.gathers else by_document(judgments)
        for group in by_prompt(in_order):
            client = self.client if len(group) == 1 else self.client.for_one_text()
            for judgment in group:
                await window.acquire()
                if self.counts.stopping:
                    return
                tasks.create_task(self._emit_row(judgment, client, window))

    async def _emit_row(
        self,
        judgment: Judgment,
        client: ReplyClient,
        window: asyncio.Semaphore,
    ) -> None:
        try:
            self._finish(await self.judge(judgment, client))
        except RunStopped:
            # It is judged when the run is started again.
            pass
        finally:
            window.release()

    def _finish(self, row: Row) -> None:
        self.counts.done += 1
        self.counts.failed += isinstance(row, Failure)
        self.emit(row)

    async def judge(self, judgment: Judgment, client: ReplyClient) -> Row:
        """Return the score or the failure of one judgment, with the replies of a client."""
        tools = self._tools[judgment.criterion.name]
        try:
            prompt = tools.renderer.render(judgment.sample, judgment.opponent)
        except CriterionError as error:
            return failure_row(judgment, self._column(judgment), error)
        async with tools.breaker.turn():
            attempt, outcome = await self._judge_prompt(judgment, prompt, client)
            tools.breaker.note(prompt, first_error(outcome))
        self._count(attempt, outcome)
        if isinstance(outcome, JudgeError):
            return failure_row(
                judgment, self._column(judgment), outcome, attempt.strategy
            )
        return score_row(judgment, self._column(judgment), *outcome)

    async def _judge_prompt(
        self,
        judgment: Judgment,
        prompt: Prompt,
        client: ReplyClient,
    ) -> tuple[Attempt, Outcome]:
        """Ask; with `retry_failed`, ask again if stored replies alone have no score."""
        attempt = self._attempt(judgment, prompt, client)
        attempt.may_ask_again = self.retry_failed
        outcome = await self._outcome(attempt)
        if attempt.asks_again and isinstance(outcome, ParseError):
            attempt = self._attempt(judgment, prompt, client.asking_again)
            outcome = await self._outcome(attempt)
        return attempt, outcome

    def _column(self, judgment: Judgment) -> str:
        return judgment.criterion.name + self.suffix

    def _attempt(
        self, judgment: Judgment, prompt: Prompt, client: ReplyClient
    ) -> Attempt:
        group = ("", 0)
        if not self.gathers:
            source = judgment.sample.source
            # A provider's cache helps only if the same source is read several times.
            if source not in self._shared_sources:
                source = None
            group = prefix(prompt.messages, source, judgment.criterion.examples)
        first_strategy, *_ = self._strategies
        return Attempt(judgment, prompt, group, client, first_strategy)

    @property
    def _strategies(self) -> tuple[Strategy, ...]:
        return strategies.strategies_for(self.settings, self.provider.decides)

    async def _outcome(self, attempt: Attempt) -> Outcome:
        """Return the value of a judgment and its provenance, or the error of this judgment.

        Raises errors that end the run.
        """
        criterion = attempt.judgment.criterion
        question = Question(attempt.prompt, criterion, self.settings, self._strategies)
        try:
            return await self._try_strategies(question, attempt)
        except (ParseError, NotAsked) as error:
            return error
        except ProviderError as error:
            if error.stops != "never":
                if isinstance(error, Unrecorded):
                    raise _located(error, attempt.judgment) from error
                raise
            breaker = self._tools[criterion.name].breaker
            if isinstance(error, Unrecorded) and breaker.stopped:
                # The recorded run did not ask this either.
                return self._not_asked(breaker, criterion)
            return error

    def _prompts(self, judgments: Iterable[Judgment]) -> frozenset[str]:
        """Return the digests of the prompts of judgments, as a recording has them."""
        prompts: set[str] = set()
        for judgment in judgments:
            try:
                renderer = self._tools[judgment.criterion.name].renderer
                prompt = renderer.render(judgment.sample, judgment.opponent)
            except CriterionError:
                continue
            request = self.settings.request(self.provider.model, prompt.messages, {})
            call = call_of(request)
            prompts.add(digest(call))
        return frozenset(prompts)

    async def _try_strategies(
        self,
        question: Question,
        attempt: Attempt,
    ) -> tuple[float, Provenance]:
        """Try token probabilities, then draws, then one written score, if the question allows them.

        A reply without usable probabilities is read for its written score, so that it is not paid
        for twice.
        """
        *earlier, last = question.strategies
        for strategy in earlier:
            attempt.strategy = strategy
            try:
                return await self._try_strategy(question, attempt, is_last=False)
            except (_StrategyUnavailable, UnusableReply, ProviderError) as error:
                self._note_reason(attempt, error)
        attempt.strategy = last
        if attempt.fallback is not None:
            attempt.answers = [attempt.fallback]
            return await self._read(question, attempt, is_last=True)
        return await self._try_strategy(question, attempt, is_last=True)

    def _note_reason(self, attempt: Attempt, error: Exception) -> None:
        """Note why a strategy gave no score. Raises an error that ends the judgment."""
        reason = str(error)
        if isinstance(error, ProviderError):
            # An earlier reply may still have a written score.
            if attempt.fallback is None or error.stops != "never":
                raise error
            reason = f"the draws were not answered: {error}"
        elif isinstance(error, UnusableReply) and attempt.strategy == "logprobs":
            attempt.fallback = strategies.fallback_reply(attempt.answers)
        attempt.notes.append(reason)

    async def _try_strategy(
        self,
        question: Question,
        attempt: Attempt,
        *,
        is_last: bool,
    ) -> tuple[float, Provenance]:
        """Read the score in the replies to a strategy's requests, if possible from the cache."""
        requests = self._requests(question, attempt)
        stored = await self._stored(question, attempt, requests)
        if stored is not None:
            # This run itself has asked for them.
            if attempt.client.shares(requests):
                attempt.from_cache = False
            attempt.answers = question.own_part(stored, attempt.judgment.judged_text)
            return await self._read(question, attempt, is_last=is_last)
        if isinstance(question, Repair):
            await self._ask(question, attempt, requests)
            return await self._read(question, attempt, is_last=is_last)
        async with self.traits.turn(attempt.strategy):
            self._check_worth_asking(attempt, is_last=is_last)
            await self._ask(question, attempt, requests)
            return await self._read(question, attempt, is_last=is_last)

    async def _stored(
        self,
        question: Question,
        attempt: Attempt,
        requests: Sequence[Request],
    ) -> list[Response] | None:
        return await attempt.client.stored(requests)

    def _requests(self, question: Question, attempt: Attempt) -> tuple[Request, ...]:
        if attempt.strategy == "samples":
            settings = replace(self.settings, draws=self._draws())
            question = replace(question, settings=settings)
        return question.requests(
            attempt.strategy,
            self.provider.model,
            self.provider.endpoint,
            attempt.prefix,
        )

    def _draws(self) -> int:
        """Return how many replies are drawn, the same number for all judgments.

        It depends on whether the replies so far show that the model reasons.
        """
        if not self.counts.draws:
            fewer = self.settings.draws_if_reasoning if self.counts.reasons else None
            self.counts.draws = fewer or self.settings.draws
        return self.counts.draws

    def _check_worth_asking(self, attempt: Attempt, *, is_last: bool) -> None:
        """Raise if the model lacks the strategy, or if the criterion's breaker has stopped."""
        reason = self.traits.lacking.get(attempt.strategy)
        if reason is not None and not is_last:
            raise _StrategyUnavailable(reason)
        if reason is not None:
            alternative = option("weighting", "auto")
            raise NotAsked(f"not asked: {reason}; {alternative} does without")
        criterion = attempt.judgment.criterion
        breaker = self._tools[criterion.name].breaker
        if breaker.stopped and not isinstance(self.provider, ReplayProvider):
            raise self._not_asked(breaker, criterion)

    def _not_asked(self, breaker: CircuitBreaker, criterion: Criterion) -> NotAsked:
        criterion_name = checklist.whole(criterion).name
        self.counts.stopped[criterion_name] = (breaker.error, breaker.stopped)
        return NotAsked(breaker.stopped)

    async def _ask(
        self,
        question: Question,
        attempt: Attempt,
        requests: Sequence[Request],
    ) -> None:
        attempt.shared = attempt.shared and attempt.client.shares(requests)
        attempt.from_cache = False
        answers = await attempt.client.ask_all(requests)
        attempt.answers = question.own_part(answers, attempt.judgment.judged_text)

    async def _read(
        self,
        question: Question,
        attempt: Attempt,
        *,
        is_last: bool,
    ) -> tuple[float, Provenance]:
        """Read the score in the answers; if there is none, ask for the score alone.

        Raises UnusableReply if the next strategy should be tried, and ParseError without a score.
        """
        repair: Repair | None = self._repair_of_draws(question, attempt)
        if repair is None:
            try:
                return self._value(question, attempt, is_last=is_last)
            except ParseError as error:
                repair = self._repair_of_reply(question, attempt, error)
                if repair is None:
                    raise
        return await self._ask_for_the_score_alone(repair, attempt)

    def _value(
        self,
        question: Question,
        attempt: Attempt,
        *,
        is_last: bool,
    ) -> tuple[float, Provenance]:
        """Return the value of the answers, and learn from them what the model can do."""
        judged = attempt.judgment.judged_text
        try:
            scored = question.score(
                attempt.strategy, attempt.answers, attempt.notes, judged
            )
        except UnusableReply as error:
            # Do not learn from stored replies that are about to be replaced: another version of the
            # model may have written them.
            if not (is_last and attempt.asks_again):
                self.traits.learn(attempt.strategy, error)
            if not is_last:
                raise
            raise UnusableAtLast(str(error), error.raw) from error
        self.traits.proven.add(attempt.strategy)
        self._note_temperature(attempt.answers)
        return scored

    def _repair_of_draws(self, question: Question, attempt: Attempt) -> Repair | None:
        """Return the question after draws without a score, None if all have one."""
        repair_question = self._repair_question(question, attempt)
        if attempt.strategy != "samples" or repair_question is None:
            return None
        return repair_draws(
            attempt.answers,
            question.prompt,
            question.criterion,
            settings=self.settings,
            judged=attempt.judgment.judged_text,
            question=repair_question,
        )

    def _repair_of_reply(
        self,
        question: Question,
        attempt: Attempt,
        error: ParseError,
    ) -> Repair | None:
        """Return the question after a reply without a score, None if it cannot be asked."""
        repair_question = self._repair_question(question, attempt)
        if repair_question is None or isinstance(error, UnusableReply | UnusableAtLast):
            return None
        trouble = ParseError(str(error), error.raw)
        return repair_reply(
            attempt.answers,
            question.prompt,
            question.criterion,
            attempt.strategy,
            settings=self.settings,
            trouble=trouble,
            question=repair_question,
        )

    def _repair_question(self, question: Question, attempt: Attempt) -> str | None:
        """Return the question for the score alone, None if this judgment may not be asked again."""
        tools = self._tools[attempt.judgment.criterion.name]
        if isinstance(question, Repair) or tools.breaker.stopped:
            return None
        return tools.repair_question

    async def _ask_for_the_score_alone(
        self,
        repair: Repair,
        attempt: Attempt,
    ) -> tuple[float, Provenance]:
        was_from_cache = attempt.from_cache
        attempt.answers = []
        attempt.fallback = None
        try:
            score = await self._try_strategies(repair, attempt)
        except BaseException as error:
            if isinstance(error, Unrecorded):
                # A recording without the reply counts as if nothing was asked.
                attempt.from_cache = was_from_cache
            if fails_one_judgment(error):
                # A judgment that is repeated is counted then.
                self.counts.unread += not attempt.asks_again
                raise RepairFailed(repair, attempt.answers, error) from error
            # The run ends before the answer, so the judgment has its first error.
            column = self._column(attempt.judgment)
            self._finish(
                failure_row(attempt.judgment, column, repair.trouble, repair.strategy)
            )
            raise
        self.counts.unread += 1
        self.counts.repaired += 1
        return score

    def _note_temperature(self, answers: Sequence[Answer]) -> None:
        """Count a score whose replies do not honour the temperature."""
        responses = [answer for answer in answers if isinstance(answer, Response)]
        if any(TEMPERATURE in response.unmet for response in responses):
            self.counts.unmet[TEMPERATURE] += 1

    def _count(self, attempt: Attempt, outcome: object) -> None:
        """Count a judgment that the cache, or an equal request of this run, has answered."""
        if isinstance(outcome, NotAsked):
            return
        self.counts.cached += attempt.from_cache
        question_number = 0
        if attempt.prompt.merged:
            question_number = attempt.judgment.criterion.part
        # The other questions about a text always share the request of its first one.
        if question_number <= 1:
            self.counts.shared += not attempt.from_cache and attempt.shared
        if isinstance(outcome, ParseError):
            self.counts.failed_cached += attempt.from_cache

    def _render_once(self, judgments: Sequence[Judgment]) -> None:
        """Render each template once, so that a wrong one stops the run before anything is paid.

        Raises CriterionError. A text that lacks something fails alone, and so does a pair that does
        not share it; the next one then shows whether the template works. If no pair shares what a
        criterion reads, the error is that of the first pair.
        """
        unchecked = {judgment.criterion.name for judgment in judgments}
        unequal: dict[str, UnequalInput] = {}
        for judgment in judgments:
            if not unchecked:
                return
            criterion_name = judgment.criterion.name
            if criterion_name not in unchecked:
                continue
            renderer = self._tools[criterion_name].renderer
            try:
                renderer.render(judgment.sample, judgment.opponent)
            except MissingInput:
                continue
            except UnequalInput as error:
                unequal.setdefault(criterion_name, error)
            else:
                unchecked.remove(criterion_name)
        for criterion_name in unchecked & unequal.keys():
            raise unequal[criterion_name]


def _located(error: Unrecorded, judgment: Judgment) -> Unrecorded:
    """Return an error that ends the run, with the judgment that it is about."""
    sample = judgment.sample
    name = judgment_name(sample.item, sample.system, judgment.criterion.name)
    return Unrecorded(f"{name}: {error}", stops=error.stops)
