"""Judgments → prompts → requests → cache → engine → scores: the front half of every run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from judge import ladder, registry
from judge.cache import Cache
from judge.criteria import bodies
from judge.errors import CriterionError, JudgeError, ParseError, ProviderError, Refused
from judge.ladder import Answer, Rung, Settings, Untrusted
from judge.progress import Counts
from judge.providers import Provider
from judge.recording import Recording
from judge.records import Criterion, Failure, Prompt, Request, Response, Sample, Score, Usage
from judge.render import Renderer
from judge.retry import Retrier

Row = Score | Failure
_CHUNK = 64
_MOST_QUESTIONS = 100
_FLUSH_SECONDS = 0.05
_TEMPERATURE = "temperature"
_Part = tuple[str, Request]
"""A reply to be had, by its key, and what would ask for it alone."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """One thing to be judged: a sample by a criterion, or a sample, shown first, against a rival."""

    sample: Sample
    criterion: Criterion
    rival: Sample | None = None


@dataclass(slots=True, eq=False)
class _Case:
    """A judgment on its way down the ladder: `rungs[0]` is being tried, and `missing` of its replies are to come.

    `requests` are those of this rung by their keys, `answers` what they brought; `fresh` are the keys of what the cache
    does not hold yet. `spare` is a reply from a higher rung that `single` can be read from. `asked` says that it waited
    for requests, `own` that some of them were sent for it and not for an equal one.
    """

    judgment: Judgment
    prompt: Prompt
    rungs: list[Rung]
    notes: list[str] = field(default_factory=list)
    answers: dict[str, Answer | None] = field(default_factory=dict)
    requests: dict[str, Request] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    missing: int = 0
    spare: Response | None = None
    asked: bool = False
    own: bool = False


class Run:
    """One pass of a judge over judgments.

    Rows go to `emit` as they are made, in the column of the criterion's name and `suffix`; `flush` is called many times
    a second, when the cache is written too.

    `Run(...)()` finishes although judgments fail. It raises ProviderError where going on is pointless (wrong
    key, unknown model, unreachable endpoint) and StorageError where replies can no longer be kept; every row
    emitted until then stands, and what was paid for is in the cache.
    """

    def __init__(
        self,
        judgments: Sequence[Judgment],
        provider: Provider,
        settings: Settings,
        *,
        cache: Cache,
        retrier: Retrier,
        emit: Callable[[Row], None],
        flush: Callable[[], None] = lambda: None,
        counts: Counts | None = None,
        concurrency: int = 64,
        suffix: str = "",
        recording: Recording | None = None,
    ) -> None:
        self.counts = counts if counts is not None else Counts()
        self.counts.total = len(judgments)
        self._judgments = judgments
        self._provider, self._settings = provider, settings
        self._cache, self._retrier, self._emit, self._flush = cache, retrier, emit, flush
        self._concurrency, self._suffix = concurrency, suffix
        self._take_down: Callable[[Request, Response], None] = recording.add if recording else lambda *_: None
        self._rungs = ladder.rungs(settings, provider.decides)
        criteria = {j.criterion.name: j.criterion for j in judgments}
        self._renderers = {name: Renderer(c, bodies(c)) for name, c in criteria.items()}
        self._leaders = len(criteria) if provider.decides else 1
        self._waiting: dict[str, list[_Case]] = {}
        self._bundles: dict[str, tuple[_Part, ...]] = {}
        self._most_draws = settings.draws
        self._left: list[_Part] = []
        self._alone: set[str] = set()
        self._stepped: list[_Case] = []
        self._lacking: dict[Rung, str] = {}
        self._proven: set[Rung] = set()

    async def __call__(self) -> None:
        for name, renderer in self._renderers.items():
            first = next(j for j in self._judgments if j.criterion.name == name)
            renderer.render(first.sample, first.rival)  # a template that cannot be rendered stops the run unpaid
        work, flusher = asyncio.create_task(self._rounds()), asyncio.create_task(self._flush_often())
        try:
            await asyncio.wait([work, flusher], return_when=asyncio.FIRST_COMPLETED)
            (work if work.done() else flusher).result()
        finally:
            work.cancel()
            flusher.cancel()
            await asyncio.gather(work, flusher, return_exceptions=True)
            try:
                self._write()
            finally:
                await self._provider.aclose()

    async def _flush_often(self) -> None:
        """Writes block the loop, so a slow disk is written to less often: a tenth of the time at most."""
        took = 0.0
        while True:
            await asyncio.sleep(max(_FLUSH_SECONDS, 9 * took))
            start = time.perf_counter()
            self._write()
            took = time.perf_counter() - start

    def _write(self) -> None:
        self._cache.flush()
        self._flush()

    # Rounds of requests.

    async def _rounds(self) -> None:
        """Ask until every judgment has its row: one round, and another for what stepped down or came incomplete.

        A round ends early when a rung turns out to be lacking, so that the next one starts with a single request on
        the rung below: what that one teaches is learned once.
        """
        engine = registry.load("engines", "local")
        rest = self._cases()
        while True:
            stepped, left, self._stepped, self._left = self._stepped, self._left, [], []
            first = next(rest, None)
            if first is None and not stepped and not left:
                return
            rest = rest if first is None else chain([first], rest)
            cases = chain(stepped, rest)
            await engine(self._requests(left, cases), self._ask, self._answered, concurrency=self._concurrency)
            rest = cases

    def _cases(self) -> Iterator[_Case]:
        for judgment in self._judgments:
            try:
                prompt = self._renderers[judgment.criterion.name].render(judgment.sample, judgment.rival)
            except CriterionError as error:
                self._fail(judgment, "render", error)
                continue
            yield _Case(judgment, prompt, list(self._rungs))

    async def _requests(self, left: Sequence[_Part], cases: Iterator[_Case]) -> AsyncIterator[Request]:
        """The requests that have to be sent. What the cache can answer is scored on the way."""
        lacking = len(self._lacking)
        for request in self._bundled(left):
            yield request
        for chunk in _chunks(cases, self._leaders, _CHUNK):
            for request in self._bundled(self._unanswered(chunk)):
                yield request
            await asyncio.sleep(0)
            if len(self._lacking) > lacking:
                return

    def _unanswered(self, cases: Sequence[_Case]) -> list[_Part]:
        """One part for each reply that neither the cache nor a request under way brings.

        Looked up and noted in one step, before any of them is sent: so no answer can come in between unseen. A rung
        that is known to be lacking still serves what the cache holds of it; all else goes to the rung below at once.
        """
        new: list[_Part] = []
        while cases:
            asked = [(case, {r.key(): r for r in self._requests_of(case)}) for case in cases]
            keys = [key for _, requests in asked for key in requests]
            stored = self._cache.get_many(keys) if self._provider.endpoint else {}
            cases = []
            for case, requests in asked:
                case.requests = requests
                case.answers = {key: self._usable(request, stored.get(key)) for key, request in requests.items()}
                missing = [key for key, answer in case.answers.items() if answer is None]
                if missing and (why := self._lacking.get(case.rungs[0])):
                    cases += self._lower(case, why)
                else:
                    new += self._await(case, requests, missing)
        return new

    def _lower(self, case: _Case, why: str) -> list[_Case]:
        """The case, sent a rung down; none, once it is failed unpaid where there is no rung below."""
        if len(case.rungs) == 1:
            self._fail(case.judgment, "request", ParseError(f"not asked: {why}; --weighting auto does without"))
            return []
        case.notes.append(why)
        case.rungs.pop(0)
        return [case]

    def _await(self, case: _Case, requests: Mapping[str, Request], missing: Sequence[str]) -> list[_Part]:
        """Have a case wait for what is missing; the parts of it that nobody has asked for yet."""
        own = [(key, requests[key]) for key in missing if key not in self._waiting]
        case.missing = len(missing)
        case.asked, case.own = case.asked or bool(missing), case.own or bool(own)
        for key in missing:
            self._waiting.setdefault(key, []).append(case)
        if not missing:
            self._resolve(case)
        return own

    def _requests_of(self, case: _Case) -> tuple[Request, ...]:
        provider = self._provider
        found = ladder.requests(case.prompt, case.judgment.criterion, case.rungs[0], self._settings)
        return tuple(replace(r, model=provider.model, endpoint=provider.endpoint) for r in found)

    def _usable(self, request: Request, response: Response | None) -> Response | None:
        """A stored reply, unless it lacks the very thing that was asked for with it."""
        if response is None:
            return None
        bare = self._settings.weighting == "logprobs" and any(c.tokens is None for c in response.choices)
        if bare:
            return None
        self._note(response)
        self._take_down(request, response)
        return response

    def _bundled(self, parts: Sequence[_Part]) -> Iterator[Request]:
        """As few requests as these can be asked in: several draws of one prompt, several questions on one text."""
        alike: dict[tuple[object, ...], list[_Part]] = {}
        asks = self._provider.decides
        for key, request in parts:
            kind = "" if asks else str(sorted(request.params.items()))
            kind = key if key in self._alone else kind
            alike.setdefault((kind, *(tuple(m.items()) for m in request.messages)), []).append((key, request))
        for group in alike.values():
            size = _MOST_QUESTIONS if asks else self._most_draws
            for first in range(0, len(group), size):
                together = tuple(group[first : first + size])
                bundle = _questions(together) if asks else _draws(together)
                self._bundles[together[0][0] if len(together) == 1 else bundle.key()] = together
                yield bundle

    async def _ask(self, request: Request) -> Response:
        async def send() -> Response:
            self.counts.sent += 1
            return await self._provider.complete(request)

        return await self._retrier(send)

    def _answered(self, request: Request, answer: Answer) -> None:
        """Give each part of an answer to those who wait for it; what is missing from it is asked for again."""
        parts = self._bundles.pop(request.key())
        if isinstance(answer, Refused) and len(parts) > 1 and self._provider.decides:
            self._alone.update(key for key, _ in parts)  # one question may be what all were refused for
            self._left += parts
            return
        if isinstance(answer, ProviderError):
            self.counts.refused += 1
            for key, _ in parts:
                self._settle(key, answer)
            return
        self.counts.answered += 1
        self.counts.usage += answer.usage
        self._note(answer)
        got = len(answer.choices)
        if 0 < got < len(parts):
            self._most_draws = min(self._most_draws, got)
            self._left += parts[got:]
        settled: list[_Case] = []
        for (key, _), part in zip(parts, _split(answer, len(parts)), strict=False):
            settled += self._settle(key, part)
        for case in dict.fromkeys(settled):
            if case.missing:  # a draw with a score stands, whatever becomes of the others
                has_score = [key for key in case.fresh if ladder.label(case.answers[key], case.judgment.criterion)]
                self._keep(case, has_score)

    def _settle(self, key: str, answer: Answer) -> list[_Case]:
        """Hand a reply to the cases that wait for it, and resolve those that waited for nothing else."""
        cases = self._waiting.pop(key)
        if isinstance(answer, Response):
            self._take_down(cases[0].requests[key], answer)
        for case in cases:
            case.answers[key] = answer
            if isinstance(answer, Response):
                case.fresh.add(key)
            case.missing -= 1
            if not case.missing:
                self._resolve(case)
        return cases

    def _resolve(self, case: _Case) -> None:
        """Score a case whose answers are complete, send it a rung down, or fail it."""
        judgment = case.judgment
        answers = [answer for answer in case.answers.values() if answer is not None]
        try:
            value, provenance = ladder.read(case.rungs[0], answers, judgment.criterion, self._settings, case.notes)
        except Untrusted as error:
            if len(case.rungs) > 1:
                self._step_down(case, error, answers)
                return
            self._learn(case, error)
            self._fail(judgment, "parse", ParseError(str(error), error.raw))
        except ParseError as error:
            self._fail(judgment, "parse", error)
        except ProviderError as error:
            if case.spare is not None and len(case.rungs) > 1:
                self._step_down(case, Untrusted(f"the draws were not answered: {error}"), answers)
                return
            self._fail(judgment, "request", error)
        else:
            self._proven.add(case.rungs[0])
            drawn = [answer for answer in answers if isinstance(answer, Response)]
            self.counts.unmet.update({_TEMPERATURE: 1} if any(_TEMPERATURE in one.unmet for one in drawn) else ())
            self._keep(case, case.fresh)
            sample, rival = judgment.sample, judgment.rival.system if judgment.rival else ""
            column = judgment.criterion.name + self._suffix
            self._finish(Score(sample.item, sample.system, column, value, provenance, rival))
        self.counts.cached += not case.asked
        self.counts.shared += case.asked and not case.own

    def _step_down(self, case: _Case, error: Untrusted, answers: Sequence[Answer]) -> None:
        self._learn(case, error)
        rung = case.rungs.pop(0)
        if rung == "logprobs":
            self._keep(case, case.fresh)
            case.spare = next((answer for answer in answers if isinstance(answer, Response)), None)
        case.notes.append(str(error))
        case.answers, case.fresh = {}, set()
        if case.rungs[0] == "single" and case.spare is not None:
            case.answers = {"": case.spare}
            self._resolve(case)
        else:
            self._stepped.append(case)

    def _learn(self, case: _Case, error: Untrusted) -> None:
        if error.lasting and case.rungs[0] not in self._proven:
            self._lacking[case.rungs[0]] = str(error)

    def _keep(self, case: _Case, keys: Iterable[str]) -> None:
        """Put these of a case's fresh replies into the cache."""
        for key in list(keys):
            answer = case.answers[key]
            if self._provider.endpoint and isinstance(answer, Response):
                self._cache.put(key, answer)
            case.fresh.discard(key)

    def _note(self, response: Response) -> None:
        """Take down what a reply tells of its server; its temperature only counts if the reply does."""
        self.counts.unmet.update(name for name in response.unmet if name != _TEMPERATURE)
        self.counts.served_by.add(response.served_by)

    def _fail(self, judgment: Judgment, stage: str, error: JudgeError) -> None:
        raw = error.raw if isinstance(error, ParseError) else ""
        sample, rival = judgment.sample, judgment.rival.system if judgment.rival else ""
        column, kind = judgment.criterion.name + self._suffix, type(error).__name__
        self._finish(Failure(sample.item, sample.system, column, stage, kind, str(error), raw, rival))

    def _finish(self, row: Row) -> None:
        self.counts.done += 1
        self.counts.failed += isinstance(row, Failure)
        self._emit(row)


def _split(answer: Response, count: int) -> list[Response]:
    """An answer's replies, each by itself; the usage stays with the first. Without any, it is what each part gets."""
    if count == 1 or not answer.choices:
        return [answer] * count
    bare = replace(answer, usage=Usage(), unmet=tuple(name for name in answer.unmet if name != "n"))
    first, *others = (replace(bare, choices=(choice,)) for choice in answer.choices)
    return [replace(first, usage=answer.usage), *others]


def _draws(parts: Sequence[_Part]) -> Request:
    first = parts[0][1]
    return first if len(parts) == 1 else replace(first, params={**first.params, "n": len(parts)})


def _questions(parts: Sequence[_Part]) -> Request:
    questions = [question for _, part in parts for question in part.params["questions"]]
    return replace(parts[0][1], params={"questions": questions})


def _chunks(things: Iterator[_Case], first: int, size: int) -> Iterator[list[_Case]]:
    """The things in lists: one of `first` of them, then `size` at a time."""
    while chunk := list(islice(things, first)):
        yield chunk
        first = size
