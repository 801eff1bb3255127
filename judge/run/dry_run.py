"""Count the requests of a run without sending any.

It is the run itself, with a last layer that sends nothing and a cache that is only read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from judge.cache import Cache, NoCache
from judge.core.errors import NotAsked, NotSent, ParseError
from judge.core.format import text_name
from judge.core.records import Choice, Criterion, Failure, Request, Response, Sample
from judge.core.run_sync import run_sync
from judge.execution import token_estimates
from judge.execution.judging import Attempt, Judging
from judge.execution.judgments import Judgment, Row, by_question
from judge.execution.layers.cached import ReplyStore
from judge.execution.progress import JudgeProgress
from judge.execution.reply_client import ReplyClient
from judge.providers import Provider
from judge.run.preparation import PreparedRun, criterion_for, is_wanted
from judge.run.reply_cache import open_reply_cache
from judge.run.request_estimates import JudgeEstimate, LineEstimate
from judge.scoring import checklist
from judge.scoring.strategies import Question, SamplingOptions, Strategy, UnusableReply

_LEAST, _STEP = 1024, 128
"""OpenAI's prompt cache serves prefixes of at least `_LEAST` tokens, in steps of `_STEP` (2026)."""
_SCORE, _REASON = 4, 60
"""Guessed output tokens of a score, and of the reason beside it; recorded GPT-3.5 reasons have
25.
"""

_Texts = tuple[Sample, Sample | None]
"""A text and, if two are compared, its opponent."""


class _Asked(NamedTuple):
    """The first judgment that asks a request, how it asks, and the number of scores in a reply."""

    judgment: Judgment
    strategy: Strategy
    scores: int


def count_requests(
    prepared: PreparedRun,
    most: int | None = None,
    items: int | None = None,
    notes: list[str] | None = None,
) -> list[JudgeEstimate]:
    """Estimate each judge's requests, from all judgments or from a sample of about `most`.

    A sample is of whole items. With `items`, scale to that many similar items that are not cached.
    `notes` gets a note about the cache if there is one.
    """
    if not prepared.criteria:
        return []
    texts_by_item = _texts_by_item(prepared)
    n_texts = sum(map(len, texts_by_item.values()))
    step = 1
    if most:
        step = max(1, n_texts * len(prepared.criteria) // most)
    # Whole items: the texts of an item share its source, and with it the cached prefix.
    sampled = list(texts_by_item.values())[::step]
    n_sampled = sum(map(len, sampled))
    factor = n_texts / max(1, n_sampled)
    if items:
        factor *= items / max(1, len(texts_by_item))
    # The cached replies to these texts say nothing about other items.
    ignore_cache = items is not None
    cache = open_reply_cache(prepared.config, notes, make=False)
    counters: dict[str, _DryJudging] = {}
    try:
        for judge_name, provider in prepared.judges.items():
            counters[judge_name] = _count(
                prepared,
                judge_name,
                provider,
                cache,
                sampled,
                ignore_cache=ignore_cache,
            )
    finally:
        cache.close()
    exact = step == 1 and not items
    return [
        counter.estimate(judge_name, factor, exact=exact)
        for judge_name, counter in counters.items()
    ]


def _texts_by_item(prepared: PreparedRun) -> dict[str, list[_Texts]]:
    """Return what is judged, by item: texts, or the pairs of a ranking."""
    texts: Iterable[_Texts] = ((sample, None) for sample in prepared.samples)
    if prepared.pairs:
        texts = prepared.pairs.compared
    texts_by_item: dict[str, list[_Texts]] = {}
    for sample, opponent in texts:
        texts_of_item = texts_by_item.setdefault(sample.item, [])
        texts_of_item.append((sample, opponent))
    return texts_by_item


def _count(
    prepared: PreparedRun,
    name: str,
    provider: Provider,
    cache: Cache,
    items: Sequence[Sequence[_Texts]],
    *,
    ignore_cache: bool,
) -> _DryJudging:
    """Count one judge's requests about these items.

    The last cached reply may show what is true of the model from the first request on; then they
    are counted again.
    """
    criteria = [criterion_for(criterion, provider) for criterion in prepared.criteria]
    judgments: list[Judgment] = []
    for item in items:
        judgments_of_item: list[Judgment] = []
        for sample, opponent in item:
            judgments_of_item += [
                Judgment(sample, criterion, opponent)
                for criterion in criteria
                if is_wanted(prepared, sample, criterion)
            ]
        judgments += by_question(judgments_of_item)
    settings = prepared.opened[name].settings

    def count(known: _KnownOfModel) -> _DryJudging:
        counting = _DryJudging(
            provider,
            settings,
            criteria,
            cache,
            known,
            ignore_cache=ignore_cache,
            retry_failed=prepared.config.retry_failed,
        )
        run_sync(lambda: counting.judge_all(judgments))
        return counting

    known = _KnownOfModel.told_by(provider, settings)
    counting = count(known)
    return counting if counting.known == known else count(counting.known)


@dataclass(frozen=True, slots=True)
class _KnownOfModel:
    """The known limits of a model before a run.

    They are whether it gives token probabilities, and the draws that one message returns.
    """

    blind: bool
    draws_at_once: int
    reasons: bool = False

    @classmethod
    def told_by(cls, provider: Provider, settings: SamplingOptions) -> _KnownOfModel:
        """Return what its vendor says."""
        blind = "logprobs" in provider.learned.get("dropped", ())
        return cls(blind, provider.learned.get("n") or settings.draws)


class _NothingSent:
    """The last layer of a dry run. `messages` are those that would have been sent."""

    def __init__(self, *, blind: bool) -> None:
        self.messages: list[Request] = []
        self._blind = blind

    async def ask(self, request: Request) -> Response:
        self.messages.append(request)
        # The reply of a model without token probabilities, so that its other requests are counted.
        if self._blind and "top_logprobs" in request.params:
            return Response((Choice(""),), unmet=("logprobs",))
        raise NotSent("a dry run sends nothing")


@dataclass(slots=True)
class _CachedReplies:
    """What cached replies of one kind took: their number and output tokens."""

    number: int = 0
    written: int = 0


@dataclass(slots=True, eq=False)
class _Tokens:
    """Tokens of cached replies, as far as the server counted them.

    `estimated` and `counted` are the input tokens by the estimate and by the server. `replies` are
    the output tokens by kind of reply and strategy.
    """

    estimated: int = 0
    counted: int = 0
    replies: dict[tuple[str, Strategy], _CachedReplies] = field(default_factory=dict)

    def add(
        self,
        kind: tuple[str, Strategy],
        requests: Sequence[Request],
        replies: Sequence[Response],
    ) -> None:
        """Add the replies to the requests of one judgment.

        If one message has several draws, the first one has the usage.
        """
        if not any(reply.usage.prompt_tokens for reply in replies):
            return
        for request, reply in zip(requests, replies, strict=True):
            if reply.usage.prompt_tokens:
                self.estimated += token_estimates.estimate_request(request)
                self.counted += reply.usage.prompt_tokens
        of_kind = self.replies.setdefault(kind, _CachedReplies())
        of_kind.number += len(replies)
        of_kind.written += sum(reply.usage.completion_tokens for reply in replies)

    @property
    def correction(self) -> float:
        """By which factor the estimate of input tokens is too low."""
        return self.counted / self.estimated if self.estimated else 1.0


class _ReadOnly(Cache):
    """A cache that is only read."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        return self._cache.get_many(keys)


class _DryJudging(Judging):
    """Judges without sending anything, and counts by criterion what would have been sent.

    With `ignore_cache`, cached replies show what the model does but answer nothing. `asked` has, by
    request key, the judgment that it was for, its strategy, and how many scores its reply holds.
    """

    def __init__(
        self,
        provider: Provider,
        settings: SamplingOptions,
        criteria: Sequence[Criterion],
        cache: Cache,
        known: _KnownOfModel,
        *,
        ignore_cache: bool,
        retry_failed: bool,
    ) -> None:
        counts = JudgeProgress(reasons=known.reasons)
        self.lines = {}
        self._names = {}
        for criterion in criteria:
            self.lines[criterion.name] = LineEstimate(criterion.name)
            for part in (criterion, *checklist.parts(criterion)):
                self._names[part.name] = criterion.name
        self.tokens = _Tokens()
        self.asked: dict[str, _Asked] = {}
        self._longest = 0
        self._longest_text = ""
        self._nothing_sent = _NothingSent(blind=known.blind)
        self._draws_at_once = known.draws_at_once
        self._ignore_cache = ignore_cache
        read_only = _ReadOnly(cache)
        self._cached = ReplyClient(self._nothing_sent, ReplyStore(read_only), counts)
        cache = NoCache() if ignore_cache else read_only
        client = ReplyClient(
            self._nothing_sent,
            ReplyStore(cache),
            counts,
            most_draws=known.draws_at_once,
        )
        # How many replies need a repair question is not known before the run.
        without_repair = replace(settings, repair=False)
        super().__init__(
            client,
            provider,
            without_repair,
            criteria,
            emit=self._note_row,
            counts=counts,
            retry_failed=retry_failed,
        )

    @property
    def known(self) -> _KnownOfModel:
        """What is known of the model by now."""
        blind = "logprobs" in self.traits.lacking
        return _KnownOfModel(blind, self._draws_at_once, self.counts.reasons)

    def _line(self, criterion: Criterion) -> LineEstimate:
        return self.lines[checklist.whole(criterion).name]

    def _render_once(self, judgments: Sequence[Judgment]) -> None:
        """Check no template: a judgment that has no prompt is counted."""

    def _note_row(self, row: Row) -> None:
        """Count a judgment, and whether it has a prompt."""
        line = self.lines[self._names[row.column]]
        line.judgments += 1
        line.broken += isinstance(row, Failure) and row.stage == "render"

    async def _stored(
        self,
        question: Question,
        attempt: Attempt,
        requests: Sequence[Request],
    ) -> list[Response] | None:
        stored = await self._cached.stored(requests)
        if stored is None:
            return None
        kind = (question.criterion.reply, attempt.strategy)
        self.tokens.add(kind, requests, stored)
        # Of the draws that one message brought, only the first is stored with input tokens.
        messages = sum(reply.usage.prompt_tokens > 0 for reply in stored)
        if messages and attempt.strategy == "samples":
            at_once = math.ceil(len(stored) / messages)
            self._draws_at_once = min(self._draws_at_once, at_once)
        if self._ignore_cache:
            self._learn(question, attempt, stored)
            return None
        if self.retry_failed:
            # A client that asks again ignores stored replies without a score.
            return await attempt.client.stored(requests)
        return stored

    def _learn(
        self,
        question: Question,
        attempt: Attempt,
        stored: Sequence[Response],
    ) -> None:
        """Learn what replies show of the model, though they answer nothing here."""
        answers = question.own_part(stored, attempt.judgment.judged_text)
        try:
            question.score(attempt.strategy, answers, [], attempt.judgment.judged_text)
        except UnusableReply as error:
            self.traits.learn(attempt.strategy, error)
        # A reply without a score says nothing of what the model can do.
        except ParseError:
            return
        else:
            self.traits.proven.add(attempt.strategy)

    async def _ask(
        self,
        question: Question,
        attempt: Attempt,
        requests: Sequence[Request],
    ) -> None:
        new = [request for request in requests if request.key() not in self.asked]
        if not new:
            key = requests[0].key()
            first = self.asked[key].judgment
            line = self._line(attempt.judgment.criterion)
            line.equal += first.sample is not attempt.judgment.sample
            attempt.from_cache = False
            raise NotSent("an equal request would have been sent")
        scores = max(1, len(question.prompt.merged))
        for request in new:
            key = request.key()
            self.asked[key] = _Asked(attempt.judgment, attempt.strategy, scores)
        await super()._ask(question, attempt, new)

    def _count(self, attempt: Attempt, outcome: object) -> None:
        if attempt.from_cache and not isinstance(outcome, NotAsked):
            self._line(attempt.judgment.criterion).cached += 1

    def estimate(self, name: str, factor: float, *, exact: bool) -> JudgeEstimate:
        """Return the judge's estimate, scaled by `factor`. Call it once."""
        self._add_messages()
        counts = self._add_written()
        correction = self.tokens.correction
        for line in self.lines.values():
            line.read *= correction
            line.shared *= correction
            line.stored *= correction
        strategies = tuple(strategy for strategy, _ in counts.most_common())
        settings = self.settings
        drawn = settings.draws
        if self.counts.reasons and settings.draws_if_reasoning:
            drawn = settings.draws_if_reasoning
        # Token probabilities that nobody has seen yet may be refused. Then `auto` draws replies.
        settled = {*self.traits.proven, *self.traits.lacking}
        is_uncertain = "logprobs" in strategies and "logprobs" not in settled
        # All draws at temperature 0 would be the same reply.
        would_draw = settings.weighting == "auto" and settings.temperature != 0
        draws = drawn if is_uncertain and would_draw else 0
        at_once = min(self._draws_at_once, drawn)
        lines = [line.times(factor) for line in self.lines.values()]
        asks_questions = self.counts.unit == "question"
        return JudgeEstimate(
            name,
            lines,
            strategies,
            fallback_draws=draws,
            fallback_requests=math.ceil(draws / at_once),
            exact=exact,
            drawn=drawn,
            size=at_once,
            unit="question" if asks_questions else "judgment",
            longest=round(self._longest * correction),
            longest_text=self._longest_text,
        )

    def _add_messages(self) -> None:
        """Add the messages that would be sent, and their input tokens.

        Also add the tokens that a provider's cache can serve.
        """
        prompts: list[_PromptOfLine] = []
        for message in self._nothing_sent.messages:
            # The key of the first draw: `n` is how many draws a message asks for.
            params = dict(message.params)
            params.pop("n", None)
            first = replace(message, params=params)
            judgment = self.asked[first.key()].judgment
            line = self._line(judgment.criterion)
            line.requests += 1
            tokens_read = token_estimates.estimate_request(first)
            line.read += tokens_read
            if tokens_read > self._longest:
                self._longest = tokens_read
                sample = judgment.sample
                self._longest_text = text_name(sample.item, sample.system)
            contents = [part["content"] for part in message.messages]
            prompts.append(_PromptOfLine("\n".join(contents), line))
        _add_shared_tokens(prompts)

    def _add_written(self) -> Counter[Strategy]:
        """Add the output tokens, as in cached replies of the kind if there are any.

        Return the number of replies by strategy.
        """
        counts: Counter[Strategy] = Counter()
        for asked_judgment in self.asked.values():
            counts[asked_judgment.strategy] += 1
            reply = asked_judgment.judgment.criterion.reply
            cached = self.tokens.replies.get((reply, asked_judgment.strategy))
            if cached is not None:
                written = cached.written / cached.number
            elif asked_judgment.strategy == "decisions":
                # Its answer is not made of tokens.
                written = 0.0
            else:
                written = float(asked_judgment.scores * _SCORE)
                if reply != "score":
                    written += _REASON
            self._line(asked_judgment.judgment.criterion).written += written
        return counts


class _PromptOfLine(NamedTuple):
    """The text of a message that would be sent, and the line of the estimate that counts it."""

    text: str
    line: LineEstimate


def _add_shared_tokens(prompts: list[_PromptOfLine]) -> None:
    """Add the tokens that a provider's cache would store, and those that it would serve."""
    # Sorted, so that prompts with a long common beginning are neighbours.
    prompts.sort(key=lambda prompt: prompt.text)
    common_before = 0
    for earlier, later in pairwise(prompts):
        beginning = earlier.text[: _common_length(earlier.text, later.text)]
        tokens = token_estimates.estimate_tokens(beginning)
        common = 0
        if tokens >= _LEAST:
            common = tokens // _STEP * _STEP
        later.line.shared += common
        if not common_before:
            # The first prompt with this beginning stores it.
            earlier.line.stored += common
        common_before = common


def _common_length(first: str, second: str) -> int:
    """Return the length of the text with which both begin.

    Bisection, because slices compare faster than characters.
    """
    low = 0
    high = min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
