"""Count the requests of a run before it starts: prompts are rendered and looked up in the cache, nothing is sent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Any

from judge.cache import Cache, open_cache
from judge.commands.preparation import PreparedRun, criterion_for, is_wanted
from judge.config import Budget
from judge.core.errors import ConfigError, CriterionError, ParseError
from judge.core.records import Criterion, Message, Prompt, Request, Response, Sample, Usage
from judge.execution import budget
from judge.execution.budget import BudgetLedger
from judge.execution.pending import Judgment
from judge.providers import Capabilities, Provider
from judge.scoring import strategies
from judge.scoring.multi_criteria import PromptRenderer, make_renderers
from judge.scoring.strategies import MERGED, ModelTraits, SamplingOptions, Strategy, UnusableReply


@dataclass(slots=True)
class CriterionEstimate:
    """The requests that one judge gets about one criterion.

    `broken` judgments have no prompt, `cached` ones are answered from the cache, and `equal` ones by an equal request
    of this run. The others take `requests`: usually one each; one for all criteria of a text if they are typed
    questions or merged; several if the server does not return all draws at once. `read` and `written` are the input
    and output tokens of these requests. A provider's prompt cache can serve `shared` of the tokens read, because an
    earlier request of the same item began with them; `stored` are the tokens it has to store for that.
    """

    criterion: str
    judgments: int = 0
    broken: int = 0
    equal: int = 0
    cached: int = 0
    requests: int = 0
    read: float = 0.0
    written: float = 0.0
    shared: float = 0.0
    stored: float = 0.0

    def times(self, factor: float) -> CriterionEstimate:
        """Multiply all numbers by a factor and round them."""
        scaled = {name: round(getattr(self, name) * factor) for name in self.__slots__ if name != "criterion"}
        return CriterionEstimate(self.criterion, **scaled)


@dataclass(frozen=True, slots=True)
class EstimateAccuracy:
    """How well input tokens are estimated, measured on `replies` from the cache.

    The estimated sum is too high by the share `bias` (too low if negative; .03 is 3 %) and is corrected by it. `error`
    is the median absolute error of one request after the correction, as a share.
    """

    replies: int
    bias: float
    error: float


@dataclass(slots=True)
class JudgeEstimate:
    """The requests that one judge gets, by criterion; `checked` is set if the cache holds replies with usage.

    `rungs` are the strategies used, the most frequent first. If the model turns out to give no token probabilities,
    weighting `auto` draws `draws` more replies for each request, which takes `each` requests. `room` is the maximum
    cost of one request in the budget's unit. `learned` is True if all reply lengths are means of cached replies rather
    than guesses. `exact` is False if only some judgments were counted.
    """

    judge: str
    lines: list[CriterionEstimate]
    checked: EstimateAccuracy | None
    rungs: tuple[Strategy, ...]
    draws: int
    each: int
    room: float
    learned: bool
    exact: bool

    @property
    def total(self) -> CriterionEstimate:
        """The sum over the criteria."""
        names = [name for name in CriterionEstimate.__slots__ if name != "criterion"]
        return CriterionEstimate("all", **{name: sum(getattr(line, name) for line in self.lines) for name in names})


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars, None if the price is unknown; `why` gives the reason, or else the source of the prices.

    `price` is without the provider's prompt cache, `cached` with all that it can serve. `more` is what weighting `auto`
    adds if the first reply shows that the model gives no token probabilities: draws instead of the other requests.
    `rate` is the price of a million input tokens and of a million output tokens.
    """

    price: float | None
    cached: float | None
    more: float | None
    why: str
    rate: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class SingleReplyPrice:
    """What weighting `single` would take: requests, and US dollars if the price is known."""

    requests: int
    price: float | None


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds at the rate limits, None for a batch or without a model; `why` names the limit that decides.

    `in_time` is about how many requests fit before the deadline; None if there is none, or the time is unknown.
    """

    seconds: float | None
    why: str
    in_time: int | None = None


@dataclass(frozen=True, slots=True)
class JudgeForecast:
    """One judge: its requests, their strategy (`way`), cost and time, and how the numbers were obtained (`rests`).

    `single` is None if no draws are requested.
    """

    ahead: JudgeEstimate
    model: str
    endpoint: str
    money: Price
    time: Duration
    rests: str
    way: str = ""
    single: SingleReplyPrice | None = None

    @property
    def usage(self) -> Usage:
        """Input and output tokens, without a provider's prompt cache."""
        total = self.ahead.total
        return Usage(int(total.read), int(total.written))


@dataclass(frozen=True, slots=True)
class RunForecast:
    """All judges of a run. `price` is their sum, None if one is unknown; `notes` say what is not counted.

    `fits` is about how many requests the budget pays for; None if there is none, or a price is unknown. A request is
    sent only if its maximum cost is left: `room`, in the budget's unit, is the largest of these. `in_time` is about how
    many requests fit before the deadline; None if there is none, or the time is unknown.
    """

    judges: tuple[JudgeForecast, ...]
    price: float | None
    seconds: float | None
    budget: Budget | None
    fits: int | None
    room: float
    deadline: float | None
    in_time: int | None
    notes: tuple[str, ...]

    @property
    def requests(self) -> int:
        """The requests of all judges."""
        return sum(judge.ahead.total.requests for judge in self.judges)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        fields = asdict(self) | {"requests": self.requests, "budget": str(self.budget) if self.budget else None}
        for judge_fields, judge in zip(fields["judges"], self.judges, strict=True):
            estimate = judge_fields.pop("ahead")
            judge_fields |= {"judge": judge.ahead.judge, **estimate, "total": asdict(judge.ahead.total)}
            for name in ("draws", "each", "room"):
                judge_fields.pop(name)
        return fields


_LEAST, _STEP = 1024, 128
"""OpenAI's prompt cache serves prefixes of at least `_LEAST` tokens, in steps of `_STEP` (2026)."""
_SCORE, _REASON = 4, 60
"""Guessed output tokens of a score, and of the reason beside it; recorded GPT-3.5 reasons have 25."""


def count_requests(prepared: PreparedRun, most: int | None = None, items: int | None = None) -> list[JudgeEstimate]:
    """Estimate each judge's requests, from all judgments or a sample of about `most` for each judge (whole items).

    With `items`, scale to that many similar items, as if the cache had no reply to them; cached replies still show how
    long replies are.
    """
    if not prepared.criteria:
        return []
    cache = open_cache(prepared.config.cache, prepared.notes, must=True, make=False)
    try:
        return [_estimate_judge(prepared, name, cache, most, items) for name in prepared.judges]
    finally:
        cache.close()


def _estimate_judge(
    prepared: PreparedRun, name: str, cache: Cache, most: int | None, item_count: int | None
) -> JudgeEstimate:
    provider = prepared.judges[name]
    criteria = [criterion_for(criterion, provider) for criterion in prepared.criteria]
    texts = prepared.pairs.compared if prepared.pairs else ((sample, None) for sample in prepared.samples)
    by_item: dict[str, list[tuple[Sample, Sample | None]]] = {}
    for sample, rival in texts:
        by_item.setdefault(sample.item, []).append((sample, rival))
    items = list(by_item.values())
    total = sum(map(len, items))
    step = max(1, total * len(criteria) // most) if most else 1
    sampled = items[::step]
    ledger = BudgetLedger(prepared.config.budget)
    try:
        max_cost = ledger.max_cost if ledger.covers(provider) else None
    except ConfigError:  # the price is unknown
        max_cost = None

    def count(blind: bool, size: int) -> _RequestCounter:
        counter = _RequestCounter(
            provider, prepared.settings, criteria, cache, max_cost, blind, size, item_count is not None
        )
        for item in sampled:
            counter.add_item(
                [
                    Judgment(sample, criterion, rival)
                    for sample, rival in item
                    for criterion in criteria
                    if is_wanted(prepared, sample, criterion)
                ]
            )
        return counter

    draws = prepared.settings.draws
    blind = "logprobs" in provider.learned.get("dropped", ())
    size = min(provider.learned.get("n") or draws, draws)
    counter = count(blind, size)
    blind_by_cache = blind or "logprobs" in counter.traits.lacking
    if (blind_by_cache, counter.size) != (blind, size):
        # the last cached reply may show what is true of the model from the first request on
        counter = count(blind_by_cache, counter.size)
    factor = total / max(1, sum(map(len, sampled))) * (item_count / max(1, len(items)) if item_count else 1)
    return counter.estimate(name, factor, exact=step == 1 and not item_count)


@dataclass(slots=True)
class _TokenCount:
    """Input tokens of the requests with one text: estimated, and counted by the server."""

    estimated: int = 0
    real: int = 0


@dataclass(slots=True)
class _Replies:
    """Cached replies of one strategy: their number (each draw counts) and their output tokens."""

    number: int = 0
    written: int = 0


@dataclass(slots=True, eq=False)
class _RequestCounter:
    """Counts one judge's requests, item by item.

    `max_cost` returns the maximum cost of a request; None without a budget or a price. `blind` says that the model
    gives no token probabilities, which a run finds out by its first request. `size` is the number of draws in one
    request. With `ignore_cache`, cached replies show what the model does but answer nothing.

    `cached_keys` are the keys found in the cache and `pending_keys` those to request. `by_text` holds requests that
    other criteria may join, `first_replies` the cached replies to an item's first strategy, and `token_counts` the
    input tokens of the cached requests.
    """

    provider: Provider
    settings: SamplingOptions
    criteria: Sequence[Criterion]
    cache: Cache
    max_cost: Callable[[Request], float] | None
    blind: bool
    size: int
    ignore_cache: bool
    lines: dict[str, CriterionEstimate] = field(init=False)
    renderers: dict[str, PromptRenderer] = field(init=False)
    cached_keys: set[str] = field(default_factory=set)
    pending_keys: set[str] = field(default_factory=set)
    by_text: dict[tuple[object, ...], Request] = field(default_factory=dict)
    room: float = 0.0
    traits: ModelTraits = field(default_factory=ModelTraits)
    draws: Counter[tuple[str, Strategy]] = field(default_factory=Counter)
    replies: dict[tuple[str, Strategy], _Replies] = field(default_factory=dict)
    token_counts: list[_TokenCount] = field(default_factory=list)
    first_replies: dict[str, Response | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lines = {criterion.name: CriterionEstimate(criterion.name) for criterion in self.criteria}
        self.renderers = make_renderers(self.criteria)

    def add_item(self, judgments: Sequence[Judgment]) -> None:
        """Count the requests of one item's judgments, and the tokens that their prompts share."""
        prompts: list[tuple[str, str]] = []
        counts: dict[tuple[str, ...], _TokenCount] = {}
        first = strategies.strategies_for(self.settings, self.provider.decides)[0]
        rendered: list[tuple[Criterion, Prompt, dict[str, Request]]] = []
        for judgment in judgments:
            criterion, line = judgment.criterion, self.lines[judgment.criterion.name]
            line.judgments += 1
            try:
                prompt = self.renderers[criterion.name].render(judgment.sample, judgment.rival)
            except CriterionError:
                line.broken += 1
                continue
            rendered.append((criterion, prompt, self._requests(prompt, criterion, first)))
        self.first_replies = self._look_up([key for _, _, requests in rendered for key in requests])
        for criterion, prompt, requests in rendered:
            for request, strategy in self._missing(criterion, prompt, requests, counts):
                if self._count(self.lines[criterion.name], request, strategy) and not self.provider.decides:
                    prompts.append((request.messages[0]["content"], criterion.name))
        self.token_counts += [count for count in counts.values() if count.estimated and count.real]
        self._count_shared_prefixes(sorted(prompts))

    def _missing(
        self,
        criterion: Criterion,
        prompt: Prompt,
        requests: dict[str, Request],
        counts: dict[tuple[str, ...], _TokenCount],
    ) -> Iterator[tuple[Request, Strategy]]:
        """Yield the requests that a judgment still takes, with their strategy.

        Goes through the strategies as a run does; `requests` are those of the first.
        """
        line = self.lines[criterion.name]
        ladder = strategies.strategies_for(self.settings, self.provider.decides)
        has_fallback = False
        for strategy in ladder:
            requests = requests if strategy == ladder[0] else self._requests(prompt, criterion, strategy)
            stored = self._stored(requests, (criterion.name, strategy), counts)
            last = strategy == ladder[-1]
            settled = None
            if len(stored) == len(requests):
                settled = self._settles(strategy, list(stored.values()), criterion, last)
            if (strategy == "single" and has_fallback) or (settled and not self.ignore_cache):
                line.cached += not self.ignore_cache
                return
            missing = [key for key in requests if self.ignore_cache or key not in stored or settled is None]
            if missing and self.pending_keys.issuperset(missing):
                line.equal += 1
                return
            if not last and (settled is False or strategy in self.traits.lacking):
                if self.ignore_cache and strategy not in self.traits.lacking:
                    yield from self._new_requests(requests, missing, strategy)
                has_fallback = has_fallback or (
                    settled is False
                    and strategy == "logprobs"
                    and strategies.fallback_reply(stored.values()) is not None
                )
                continue
            yield from self._new_requests(requests, missing, strategy)
            if not (self.blind and strategy == "logprobs"):
                return
            self.traits.lacking.setdefault(strategy, "")
            if "samples" not in ladder:
                return  # the text of that reply is read instead

    def _requests(self, prompt: Prompt, criterion: Criterion, strategy: Strategy) -> dict[str, Request]:
        provider = self.provider
        exact = Capabilities.of(provider).full_distribution
        requests = strategies.requests(
            prompt, criterion, strategy, self.settings, exact=exact, model=provider.model, endpoint=provider.endpoint
        )
        return {request.key(): request for request in requests}

    def _new_requests(
        self, requests: Mapping[str, Request], missing: Sequence[str], strategy: Strategy
    ) -> Iterator[tuple[Request, Strategy]]:
        """Yield the missing requests that are not pending yet, with as many draws in each as the server returns."""
        new = [requests[key] for key in missing if key not in self.pending_keys]
        self.pending_keys.update(missing)
        for start in range(0, len(new), self.size):
            n = len(new[start : start + self.size])
            request = new[start]
            yield replace(request, params={**request.params, "n": n}) if n > 1 else request, strategy

    def _look_up(self, keys: Sequence[str]) -> dict[str, Response | None]:
        stored = self.cache.get_many(keys) if self.provider.endpoint else {}
        return {key: stored.get(key) for key in keys}

    def _stored(
        self,
        requests: Mapping[str, Request],
        kind: tuple[str, Strategy],
        counts: dict[tuple[str, ...], _TokenCount],
    ) -> dict[str, Response]:
        """Return the usable cached replies to a strategy's requests, and note their lengths and token counts."""
        known = self.first_replies if self.first_replies.keys() >= requests.keys() else self._look_up(list(requests))
        replies = ((key, known[key]) for key in requests)
        stored = {key: reply for key, reply in replies if reply and strategies.satisfies(reply, self.settings)}
        for key, response in stored.items():
            if key in self.cached_keys:
                continue
            self.cached_keys.add(key)
            request = requests[key]
            text = (kind[1], *_contents(request.messages))
            count = counts.get(text) or _TokenCount()
            if request.draw == 0:  # the usage of several draws or questions is with the first
                count.estimated += _tokens(request, whole=not count.estimated)
                count.real += response.usage.prompt_tokens
                counts[text] = count
            if count.real or response.usage.prompt_tokens:
                lengths = self.replies.setdefault(kind, _Replies())
                lengths.number += 1
                lengths.written += response.usage.completion_tokens
        sent = sum(response.usage.prompt_tokens > 0 for response in stored.values())
        if sent and kind[1] == "samples" and len(stored) == len(requests):
            self.size = min(self.size, math.ceil(len(stored) / sent))
        return stored

    def _settles(
        self, strategy: Strategy, answers: Sequence[Response], criterion: Criterion, last: bool
    ) -> bool | None:
        """Return whether cached replies settle a judgment; None if they have to be requested again."""
        try:
            strategies.score_reply(strategy, answers, criterion, self.settings)
        except UnusableReply as error:
            self.traits.learn(strategy, error)
            return last  # then the judgment fails without a request
        except ParseError:
            return None
        self.traits.proven.add(strategy)
        return True

    def _count(self, line: CriterionEstimate, request: Request, strategy: Strategy) -> bool:
        """Count a request that is to be sent; return False if it joins one about the same text."""
        text = (strategy, request.draw, *_contents(request.messages))
        before = self.by_text.get(text)
        if self.provider.decides and before:
            questions = [*before.params["questions"], *request.params["questions"]]
            self.by_text[text] = replace(request, params={"questions": questions})
        elif self.provider.decides or (
            MERGED in request.params and not Capabilities.of(self.provider).splits_merged_criteria
        ):
            self.by_text[text] = request
        line.requests += before is None
        line.read += _tokens(request, whole=before is None)
        self.draws[line.criterion, strategy] += request.params.get("n", 1)
        if self.max_cost:
            self.room = max(self.room, self.max_cost(self.by_text.get(text, request)))
        return before is None

    def _count_shared_prefixes(self, prompts: Sequence[tuple[str, str]]) -> None:
        """Count the tokens that an item's prompts, sorted, have in common with the prompt before."""
        before = 0
        for (earlier, first), (later, second) in pairwise(prompts):
            common = budget.estimate_tokens(earlier[: _common_prefix_length(earlier, later)])
            common = common // _STEP * _STEP if common >= _LEAST else 0
            self.lines[second].shared += common
            self.lines[first].stored += common if not before else 0
            before = common

    def estimate(self, name: str, factor: float, *, exact: bool) -> JudgeEstimate:
        """Return the judge's estimate, scaled by `factor`."""
        checked, correction = None, 1.0
        if self.token_counts:
            estimated = sum(count.estimated for count in self.token_counts)
            real = sum(count.real for count in self.token_counts)
            correction = real / estimated
            error = median(abs(count.estimated * correction / count.real - 1) for count in self.token_counts)
            checked = EstimateAccuracy(len(self.token_counts), estimated / real - 1, error)
        reply_kinds = {criterion.name: criterion.reply for criterion in self.criteria}
        learned = True
        for (criterion, strategy), number in self.draws.items():
            replies = self.replies.get((criterion, strategy))
            if replies is None and len(set(reply_kinds.values())) == 1:  # replies to the other criteria are alike
                alike = [replies for (_, kind), replies in self.replies.items() if kind == strategy]
                if alike:
                    replies = _Replies(sum(r.number for r in alike), sum(r.written for r in alike))
            if replies is not None:
                length = replies.written / replies.number
            elif strategy == "decisions":
                length = 0.0
            else:
                length = _SCORE + (0 if reply_kinds[criterion] == "score" else _REASON)
            learned = learned and replies is not None
            self.lines[criterion].written += number * length
        for line in self.lines.values():
            line.read, line.shared, line.stored = (n * correction for n in (line.read, line.shared, line.stored))
        used = tuple(dict.fromkeys(strategy for (_, strategy), _ in self.draws.most_common()))
        known = {*self.traits.proven, *self.traits.lacking}
        known |= {"logprobs"} if Capabilities.of(self.provider).full_distribution else set()
        hoping = "logprobs" in used and "logprobs" not in known
        would_draw = self.settings.weighting == "auto" and self.settings.temperature != 0
        draws = self.settings.draws if hoping and would_draw else 0
        each = math.ceil(draws / self.size)
        lines = [line.times(factor) for line in self.lines.values()]
        return JudgeEstimate(name, lines, checked, used, draws, each, self.room, learned and bool(self.draws), exact)


def _tokens(request: Request, *, whole: bool) -> int:
    """Estimate the input tokens of a request, or only of its questions if they join another request."""
    if whole:
        return budget.estimate_request(request)
    questions = {name: value for name, value in request.params.items() if name == "questions"}
    return budget.estimate_request(replace(request, messages=(), params=questions)) - budget.estimate_request(
        replace(request, messages=(), params={})
    )


def _contents(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(message["content"] for message in messages)


def _common_prefix_length(first: str, second: str) -> int:
    low, high = 0, min(len(first), len(second))
    while low < high:  # a binary search: slices compare much faster than single characters
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
