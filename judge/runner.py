"""Samples × criteria → prompts → requests → cache → engine → scores: the front half of every run."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from judge import parse, registry, weigh
from judge.cache import Cache
from judge.criteria import bodies
from judge.errors import CriterionError, JudgeError, ParseError, ProviderError
from judge.providers import Provider
from judge.records import Choice, Criterion, Failure, Provenance, Request, Response, Sample, Score, Usage
from judge.render import Renderer
from judge.retry import Retrier

Weighting = Literal["auto", "logprobs", "single"]
Row = Score | Failure
_CHUNK = 64
_FLUSH_SECONDS = 0.05
_TOP_LOGPROBS = 20
_TOKEN_LIMIT = {"score": 64, "score_then_reason": 1024, "reason_then_score": 1024}


@dataclass(frozen=True, slots=True)
class Settings:
    """How the judge is asked. `max_tokens` None leaves the limit to the reply kind."""

    weighting: Weighting = "auto"
    min_mass: float = 0.5
    temperature: float = 0.0
    max_tokens: int | None = None
    concurrency: int = 64


@dataclass(slots=True)
class Progress:
    """What a run has done so far. Written by the run, read by whoever shows it.

    Judgments: `total`, `done` (scored or failed), `failed`, `cached` (answered from the cache), `shared`
    (answered by an equal request of this run). Requests: `sent` (every try), `answered`, `refused` (given up).
    `usage` sums the answers'; `unmet` counts, by name, the answers for which a parameter was not honoured.
    `stage` is what the run is busy with.
    """

    total: int = 0
    done: int = 0
    failed: int = 0
    cached: int = 0
    shared: int = 0
    sent: int = 0
    answered: int = 0
    refused: int = 0
    usage: Usage = field(default_factory=Usage)
    stage: str = "judging"
    unmet: Counter[str] = field(default_factory=Counter)
    served_by: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Judgment:
    sample: Sample
    criterion: Criterion


class Run:
    """One pass of a judge over samples and criteria.

    Rows go to `emit` as they are made; `flush` is called many times a second, when the cache is written too.

    `Run(...)()` finishes although judgments fail. It raises ProviderError where going on is pointless (wrong
    key, unknown model, unreachable endpoint) and StorageError where replies can no longer be kept; every row
    emitted until then stands, and what was paid for is in the cache.
    """

    def __init__(
        self,
        samples: Sequence[Sample],
        criteria: Sequence[Criterion],
        provider: Provider,
        settings: Settings,
        *,
        cache: Cache,
        retrier: Retrier,
        emit: Callable[[Row], None],
        flush: Callable[[], None] = lambda: None,
        progress: Progress | None = None,
    ) -> None:
        self.progress = progress if progress is not None else Progress()
        self.progress.total = len(samples) * len(criteria)
        self._samples, self._criteria = samples, criteria
        self._provider, self._settings = provider, settings
        self._cache, self._retrier, self._emit, self._flush = cache, retrier, emit, flush
        self._renderers = {c.name: Renderer(c, bodies(c)) for c in criteria}
        self._waiting: dict[str, list[_Judgment]] = {}

    async def __call__(self) -> None:
        for renderer in self._renderers.values():
            renderer.render(self._samples[0])  # a template that cannot be rendered at all stops the run unpaid
        engine = registry.load("engines", "local")
        asking = engine(self._requests(), self._ask, self._answered, concurrency=self._settings.concurrency)
        work, flusher = asyncio.create_task(asking), asyncio.create_task(self._flush_often())
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

    async def _requests(self) -> AsyncIterator[Request]:
        """The requests that have to be sent. What the cache can answer is scored on the way."""
        judgments = (_Judgment(s, c) for s in self._samples for c in self._criteria)
        for chunk in _chunks(judgments, _CHUNK):
            for request in self._unanswered(chunk):
                yield request
            await asyncio.sleep(0)

    def _unanswered(self, chunk: Sequence[_Judgment]) -> list[Request]:
        """One request for each prompt that neither the cache nor a request under way answers.

        Looked up and noted in one step, before any of them is sent: so no answer can come in between unseen.
        """
        asked = [(j, r, r.key()) for j in chunk if (r := self._request(j)) is not None]
        stored = self._cache.get_many([key for _, _, key in asked]) if self._provider.endpoint else {}
        new = []
        for judgment, request, key in asked:
            response = stored.get(key)
            if response is not None and self._usable(response):
                self.progress.cached += 1
                self._note(response)
                self._finish(self._row(judgment, response))
            elif key in self._waiting:
                self._waiting[key].append(judgment)
            else:
                self._waiting[key] = [judgment]
                new.append(request)
        return new

    def _request(self, judgment: _Judgment) -> Request | None:
        try:
            prompt = self._renderers[judgment.criterion.name].render(judgment.sample)
        except CriterionError as error:
            self._finish(_failure(judgment, "render", error))
            return None
        settings = self._settings
        params: dict[str, Any] = {
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens or _TOKEN_LIMIT[judgment.criterion.reply],
        }
        if settings.weighting != "single":
            params["top_logprobs"] = _TOP_LOGPROBS
        return Request(self._provider.model, prompt.messages, params, endpoint=self._provider.endpoint)

    def _usable(self, response: Response) -> bool:
        return self._settings.weighting != "logprobs" or all(c.tokens is not None for c in response.choices)

    async def _ask(self, request: Request) -> Response:
        async def send() -> Response:
            self.progress.sent += 1
            return await self._provider.complete(request)

        return await self._retrier(send)

    def _answered(self, request: Request, answer: Response | ProviderError) -> None:
        """Score an answer for all who wait for it; keep it first, if it could be scored."""
        key = request.key()
        judgments = self._waiting.pop(key)
        if isinstance(answer, ProviderError):
            self.progress.refused += 1
            rows: list[Row] = [_failure(judgment, "request", answer) for judgment in judgments]
        else:
            self.progress.answered += 1
            self.progress.shared += len(judgments) - 1
            self.progress.usage += answer.usage
            self._note(answer)
            rows = [self._row(judgment, answer) for judgment in judgments]
            if self._provider.endpoint and any(isinstance(row, Score) for row in rows):
                self._cache.put(key, answer)
        for row in rows:
            self._finish(row)

    def _note(self, response: Response) -> None:
        self.progress.unmet.update(response.unmet)
        self.progress.served_by.add(response.served_by)

    def _row(self, judgment: _Judgment, response: Response) -> Row:
        sample, criterion = judgment.sample, judgment.criterion
        try:
            value, provenance = ladder(response, criterion, self._settings)
        except ParseError as error:
            return _failure(judgment, "parse", error)
        return Score(sample.item, sample.system, criterion.name, value, provenance)

    def _finish(self, row: Row) -> None:
        self.progress.done += 1
        self.progress.failed += isinstance(row, Failure)
        self._emit(row)


def _failure(judgment: _Judgment, stage: str, error: JudgeError) -> Failure:
    raw = error.raw if isinstance(error, ParseError) else ""
    sample, kind = judgment.sample, type(error).__name__
    return Failure(sample.item, sample.system, judgment.criterion.name, stage, kind, str(error), raw)


def ladder(response: Response, criterion: Criterion, settings: Settings) -> tuple[float, Provenance]:
    """The value of a reply by the highest rung that holds: token probabilities, else the score as written.

    Raises ParseError where the reply has no score, or where `weighting` is `logprobs` and that rung fails.
    """
    if not response.choices:
        raise ParseError("the response holds no reply")
    choice = response.choices[0]
    found = parse.read(choice, criterion.reply, criterion.scale, criterion.title)
    note = None
    if settings.weighting != "single":
        try:
            return _by_logprobs(choice, criterion, settings.min_mass, found.reason)
        except ParseError as error:
            if settings.weighting == "logprobs":
                raise ParseError(str(error), choice.text) from error
            note = str(error)
    value = criterion.scale.value(found.label)
    return value, Provenance("single", argmax=found.label, reason=found.reason, raw=choice.text, note=note)


def _by_logprobs(choice: Choice, criterion: Criterion, min_mass: float, reason: str | None) -> tuple[float, Provenance]:
    if choice.tokens is None:
        raise ParseError("the reply came without token probabilities")
    text = "".join(token.text for token in choice.tokens)
    place = parse.find(text, criterion.reply, criterion.scale, criterion.title)
    w = weigh.weigh(choice.tokens, place.start, place.label, criterion.scale)
    if w.mass < min_mass:
        raise ParseError(f"only {w.mass:.2g} of the probability is on the scale, less than {min_mass:g}")
    return w.value, Provenance(
        "logprobs", w.mass, w.distribution, w.entropy, w.argmax, w.low, w.high, reason=reason, raw=choice.text
    )


def _chunks(things: Iterable[_Judgment], size: int) -> Iterator[list[_Judgment]]:
    stream = iter(things)
    while chunk := list(islice(stream, size)):
        yield chunk
