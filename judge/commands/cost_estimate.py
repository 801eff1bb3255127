"""Estimate what a run will ask, cost and take before it starts. Sends nothing: prompts are rendered and looked up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from judge.cache import Cache
from judge.commands.preparation import PreparedRun, criterion_for, is_wanted
from judge.commands.reply_cache import open_reply_cache
from judge.config import RankConfig, RunConfig
from judge.core.errors import ConfigError, CriterionError, ParseError
from judge.core.messages import option
from judge.core.records import Criterion, Prompt, Request, Response, Sample, Usage
from judge.execution import budget
from judge.execution.pending import Bundles, Judgment, PendingRequest, by_question
from judge.providers import Capabilities, Provider, pricing
from judge.providers.vendors import VENDORS
from judge.results.planning import (
    CriterionEstimate,
    Duration,
    Forecast,
    JudgeEstimate,
    JudgeForecast,
    Price,
    price_text,
    sum_prices,
)
from judge.scoring import checklist, strategies
from judge.scoring.multi_criteria import PromptRenderer, make_renderers
from judge.scoring.strategies import ModelTraits, SamplingOptions, Strategy, UnusableReply

SAMPLED_JUDGMENTS = 400
"""Judgments of each judge that an estimate before a run looks at."""
_LATENCY, _PER_SECOND = 1.0, 60.0
"""Guessed seconds until a reply begins, and tokens written per second."""
_LEAST, _STEP = 1024, 128
"""OpenAI's prompt cache serves prefixes of at least `_LEAST` tokens, in steps of `_STEP` (2026)."""
_SCORE, _REASON = 4, 60
"""Guessed output tokens of a score, and of the reason beside it; recorded GPT-3.5 reasons have 25."""
_MILLION = 1e6
_HALF_PRICED = (pricing.DEFAULT_URL, VENDORS["anthropic"].url, VENDORS["gemini"].url)
"""The addresses whose batches are known to cost `pricing.BATCH` of the price."""


def estimate_cost(
    prepared: PreparedRun, most: int | None = None, items: int | None = None
) -> Forecast:
    """Estimate a run's requests, price and time. `most` and `items` are as in `count_requests`. Raises ConfigError."""
    config = prepared.config
    if items is not None and items < 1:
        raise ConfigError(f"{option('items', items)}: must be 1 or more")
    if items is not None and isinstance(config, RankConfig) and config.pairs is not None:
        raise ConfigError(
            f"{option('items')} with {option('pairs')}: the number of pairs is fixed; leave one out"
        )
    judges = [
        judge_forecast(prepared.plans[estimate.judge], prepared.judges[estimate.judge], estimate)
        for estimate in count_requests(prepared, most, items)
    ]
    known = [judge.time.seconds for judge in judges if judge.time.seconds is not None]
    steps = [
        judge.time.seconds for judge in prepared.writing if judge.time.seconds is not None
    ]  # one after the other
    steps += [max(known)] if known else []
    judges = [*prepared.writing, *judges]
    price = sum_prices(judge.money.price for judge in judges)
    usage = sum((judge.usage for judge in judges), Usage())
    requests = sum(judge.estimate.total.requests for judge in judges)
    fits = None
    if config.budget is not None:
        whole = (
            price if config.budget.unit == "usd" else usage.prompt_tokens + usage.completion_tokens
        )
        fits = (
            None
            if whole is None
            else int(requests * min(1.0, config.budget.amount / whole))
            if whole
            else requests
        )
    return Forecast(
        judges=tuple(judges),
        price=price,
        seconds=sum(steps) if steps else None,
        budget=config.budget,
        fits=fits,
    )


def cost_summary(runs: Iterable[PreparedRun]) -> str:
    """Return about how many requests the runs take and their price, from a sample; "" if no model is called."""
    forecasts = [
        estimate_cost(prepared, SAMPLED_JUDGMENTS)
        for prepared in runs
        if not all(judge.notice for judge in prepared.judges.values())
    ]
    if not (requests := sum(forecast.requests for forecast in forecasts)):
        return "answered from the cache" if forecasts else ""
    return f"about {requests:,} requests, {price_text(sum_prices(forecast.price for forecast in forecasts))}"


def judge_forecast(config: RunConfig, provider: Provider, estimate: JudgeEstimate) -> JudgeForecast:
    """Return the price and the time of one judge's requests."""
    return JudgeForecast(
        estimate=estimate,
        model=provider.model,
        endpoint=provider.endpoint,
        money=_price(config, provider, estimate),
        time=_duration(config, provider, estimate.total),
    )


def _price(config: RunConfig, provider: Provider, estimate: JudgeEstimate) -> Price:
    if provider.notice:
        return Price(0.0, 0.0, 0.0, "no model is called")
    total, discounted = (
        estimate.total,
        config.engine == "batch" and provider.endpoint in _HALF_PRICED,
    )

    def cost(usage: Usage) -> float | None:
        batched = usage if discounted else Usage()
        return pricing.cost_of(provider, usage, batched=batched)

    read, written = int(total.read), int(total.written)
    price = cost(Usage(read, written))
    if price is None:
        return Price(
            None,
            None,
            None,
            pricing.why_unknown(provider.model, provider.endpoint, decides=provider.decides),
        )
    cached = cost(
        Usage(read, written, cached_tokens=int(total.shared), cache_write_tokens=int(total.stored))
    )
    more: float | None = 0.0
    if estimate.draws:
        # draws replace the other requests, except the first, which shows that they are needed
        first = 1 / max(1, total.requests)
        extra_read = round(total.read * (estimate.each - 1 + first))
        more = cost(Usage(extra_read, round(total.written * (estimate.draws - 1 + first))))
    batch = ", half price in a batch" if discounted else "; half of it if it has a Batch API"
    why = pricing.price_source(provider) + (batch if config.engine == "batch" else "")
    rates = pricing.prices_of(provider)
    return Price(price, cached, more, why, rates and (rates[0] * _MILLION, rates[3] * _MILLION))


def _duration(config: RunConfig, provider: Provider, total: CriterionEstimate) -> Duration:
    if provider.notice or not total.requests:
        return Duration(None, "no model is called" if provider.notice else "nothing to ask")
    if config.engine == "batch":
        return Duration(None, "a batch takes up to 24 hours")
    each = _LATENCY + total.written / total.requests / _PER_SECOND
    limits = [
        (
            total.requests / min(config.max_concurrency, total.requests) * each,
            f"{config.max_concurrency} at once",
        )
    ]
    if config.rpm:
        limits.append((total.requests / config.rpm * 60, f"--rpm {config.rpm:,}"))
    if config.tpm:
        limits.append(((total.read + total.written) / config.tpm * 60, f"--tpm {config.tpm:,}"))
    seconds, limit = max(limits)
    # the first request goes alone
    return Duration(seconds + each, f"{limit}, assuming {each:.1f} s per reply")


def count_requests(
    prepared: PreparedRun, most: int | None = None, items: int | None = None
) -> list[JudgeEstimate]:
    """Estimate each judge's requests, from all judgments or a sample of about `most` for each judge (whole items).

    With `items`, scale to that many similar items that are not cached.
    """
    if not prepared.criteria:
        return []
    texts = (
        prepared.pairs.compared
        if prepared.pairs
        else ((sample, None) for sample in prepared.samples)
    )
    by_item: dict[str, list[tuple[Sample, Sample | None]]] = {}
    for sample, rival in texts:
        by_item.setdefault(sample.item, []).append((sample, rival))
    total = sum(map(len, by_item.values()))
    step = max(1, total * len(prepared.criteria) // most) if most else 1
    sampled = list(by_item.values())[::step]
    factor = total / max(1, sum(map(len, sampled))) * (items / max(1, len(by_item)) if items else 1)
    cache = open_reply_cache(prepared.config, prepared.notes, make=False)
    try:
        counters = {
            name: _count(prepared, name, provider, cache, sampled, ignore_cache=items is not None)
            for name, provider in prepared.judges.items()
        }
    finally:
        cache.close()
    return [
        counter.estimate(name, factor, exact=step == 1 and not items)
        for name, counter in counters.items()
    ]


def _count(
    prepared: PreparedRun,
    name: str,
    provider: Provider,
    cache: Cache,
    items: Sequence[Sequence[tuple[Sample, Sample | None]]],
    *,
    ignore_cache: bool,
) -> _RequestCounter:
    """Count one judge's requests about these items."""
    criteria = [criterion_for(criterion, provider) for criterion in prepared.criteria]

    def count(blind: bool, size: int, settings: SamplingOptions) -> _RequestCounter:
        counter = _RequestCounter(provider, settings, criteria, cache, blind, size, ignore_cache)
        for item in items:
            judgments = (
                Judgment(sample, criterion, rival)
                for sample, rival in item
                for criterion in criteria
            )
            wanted = (one for one in judgments if is_wanted(prepared, one.sample, one.criterion))
            counter.add_item(list(by_question(wanted)))
        return counter

    blind, settings = "logprobs" in provider.learned.get("dropped", ()), prepared.settings[name]
    size = min(provider.learned.get("n") or settings.draws, settings.draws)
    counter = count(blind, size, settings)
    # the last cached reply may show what is true of the model from the first request on
    draws = (
        settings.draws_if_reasoning
        if counter.reasons and settings.draws_if_reasoning
        else settings.draws
    )
    known = (
        blind or "logprobs" in counter.traits.lacking,
        min(counter.size, draws),
        replace(settings, draws=draws),
    )
    return counter if known == (blind, size, settings) else count(*known)


@dataclass(slots=True, eq=False)
class _RequestCounter:
    """Counts one judge's requests, item by item.

    `blind` says that the model gives no token probabilities, which a run finds out by its first request. `size` is the
    number of draws in one request. With `ignore_cache`, cached replies show what the model does but answer nothing.

    `cached` are the keys found in the cache; `pending` has the criterion and the strategy of those to request. `draws`
    counts the replies to request by criterion and strategy, and `lengths` has by kind of reply and strategy the number
    of cached replies and their output tokens. `estimated` and `counted` are the input tokens of cached requests,
    estimated and as the server counted. `reasons` is True if a cached reply shows that the model reasons.
    """

    provider: Provider
    settings: SamplingOptions
    criteria: Sequence[Criterion]
    cache: Cache
    blind: bool
    size: int
    ignore_cache: bool
    lines: dict[str, CriterionEstimate] = field(init=False)
    renderers: dict[str, PromptRenderer] = field(init=False)
    cached: set[str] = field(default_factory=set)
    pending: dict[str, tuple[str, Strategy]] = field(default_factory=dict)
    traits: ModelTraits = field(default_factory=ModelTraits)
    draws: Counter[tuple[str, Strategy]] = field(default_factory=Counter)
    lengths: dict[tuple[str, Strategy], tuple[int, int]] = field(default_factory=dict)
    estimated: int = 0
    counted: int = 0
    reasons: bool = False

    def __post_init__(self) -> None:
        self.lines = {
            criterion.name: CriterionEstimate(criterion.name) for criterion in self.criteria
        }
        self.renderers = make_renderers(self.criteria)

    def _line(self, judgment: Judgment) -> CriterionEstimate:
        return self.lines[checklist.whole(judgment.criterion).name]

    def add_item(self, judgments: Sequence[Judgment]) -> None:
        """Count the requests of one item's judgments, and the tokens that their prompts share."""
        strategy = strategies.strategies_for(self.settings, self.provider.decides)[0]
        rendered: list[tuple[Judgment, Prompt, dict[str, Request]]] = []
        for judgment in judgments:
            criterion, line = judgment.criterion, self._line(judgment)
            line.judgments += 1
            try:
                prompt = self.renderers[criterion.name].render(judgment.sample, judgment.rival)
            except CriterionError:
                line.broken += 1
            else:
                rendered.append((judgment, prompt, self._requests(prompt, criterion, strategy)))
        keys = [key for _, _, requests in rendered for key in requests]
        known = self.cache.get_many(keys) if self.provider.endpoint else {}
        counts: dict[tuple[str, ...], tuple[int, int]] = {}
        new: list[PendingRequest] = []
        for judgment, prompt, requests in rendered:
            new += self._missing(judgment, prompt, requests, known, counts)
        for estimated, counted in counts.values():
            if estimated and counted:
                self.estimated, self.counted = self.estimated + estimated, self.counted + counted
        prompts: list[tuple[str, str]] = []
        splits_merged = Capabilities.of(self.provider).splits_merged_criteria
        bundles = Bundles(draws=self.size, apart=splits_merged)
        for bundle in list(bundles.make(new)):
            members = bundles[bundle]
            for place, pending in enumerate(members):
                line = self.lines[self.pending[pending.key][0]]
                if place == 0:
                    line.requests += 1
                    line.read += budget.estimate_request(pending.request)
                self.draws[self.pending[pending.key]] += 1
            prompts.append(
                ("\n".join(m["content"] for m in bundle.messages), self.pending[members[0].key][0])
            )
        before = 0
        for (earlier, first), (later, second) in pairwise(sorted(prompts)):
            low, high = 0, min(len(earlier), len(later))
            while low < high:  # a binary search: slices compare much faster than single characters
                middle = (low + high + 1) // 2
                if earlier[low:middle] == later[low:middle]:
                    low = middle
                else:
                    high = middle - 1
            common = budget.estimate_tokens(earlier[:low])
            common = common // _STEP * _STEP if common >= _LEAST else 0
            self.lines[second].shared += common
            self.lines[first].stored += common if not before else 0
            before = common

    def _missing(
        self,
        judgment: Judgment,
        prompt: Prompt,
        requests: dict[str, Request],
        known: Mapping[str, Response],
        counts: dict[tuple[str, ...], tuple[int, int]],
    ) -> Iterator[PendingRequest]:
        """Yield the requests that a judgment still takes, without a repair question.

        Goes through the strategies as a run does; `requests` are those of the first, `known` the cached replies to it.
        """
        criterion, line = judgment.criterion, self._line(judgment)
        ladder = strategies.strategies_for(self.settings, self.provider.decides)
        has_fallback = False
        for strategy in ladder:
            if strategy != ladder[0]:
                requests = self._requests(prompt, criterion, strategy)
                known = self.cache.get_many(list(requests)) if self.provider.endpoint else {}
            stored = {key: known[key] for key in requests if key in known}
            self._note_cached(requests, stored, (criterion.reply, strategy), counts)
            last = strategy == ladder[-1]
            settled = None
            if len(stored) == len(requests):
                settled = self._settles(strategy, list(stored.values()), judgment, last)
            if (strategy == "single" and has_fallback) or (settled and not self.ignore_cache):
                line.cached += not self.ignore_cache
                return
            missing = [key for key in requests if self.ignore_cache or key not in stored]
            if missing and self.pending.keys() >= set(missing):
                line.equal += 1
                return
            lacking = strategy in self.traits.lacking
            if lacking and last:  # such judgments fail without a request
                return
            steps_down = not last and (settled is False or lacking)
            if not steps_down or (self.ignore_cache and not lacking):
                new = [key for key in missing if key not in self.pending]
                self.pending |= dict.fromkeys(new, (line.criterion, strategy))
                yield from (PendingRequest(key, requests[key]) for key in new)
            if steps_down:
                has_text = strategies.fallback_reply(stored.values()) is not None
                has_fallback = has_fallback or (
                    settled is False and strategy == "logprobs" and has_text
                )
                continue
            if not (self.blind and strategy == "logprobs"):
                return
            self.traits.lacking.setdefault(strategy, "")
            if "samples" not in ladder:
                return  # the text of that reply is read instead

    def _requests(
        self, prompt: Prompt, criterion: Criterion, strategy: Strategy
    ) -> dict[str, Request]:
        provider = self.provider
        requests = strategies.requests(
            prompt,
            criterion,
            strategy,
            self.settings,
            model=provider.model,
            endpoint=provider.endpoint,
        )
        return {request.key(): request for request in requests}

    def _note_cached(
        self,
        requests: Mapping[str, Request],
        stored: Mapping[str, Response],
        kind: tuple[str, Strategy],
        counts: dict[tuple[str, ...], tuple[int, int]],
    ) -> None:
        """Note how long cached replies are, and how many tokens their requests had."""
        for key in [key for key in stored if key not in self.cached]:
            self.cached.add(key)
            self.reasons = self.reasons or stored[key].reasoned
            request, used = requests[key], stored[key].usage
            sent_params = {
                name: value for name, value in request.params.items() if name != strategies.MERGED
            }
            text = (
                kind[1],
                *(message["content"] for message in request.messages),
                repr(sent_params),
            )
            estimated, real = counts.get(text, (0, 0))
            if request.draw == 0:  # the usage of several draws or questions is with the first
                counts[text] = (
                    estimated or budget.estimate_request(request),
                    real + used.prompt_tokens,
                )
            if real or used.prompt_tokens:
                number, written = self.lengths.get(kind, (0, 0))
                self.lengths[kind] = number + 1, written + used.completion_tokens
        sent = sum(response.usage.prompt_tokens > 0 for response in stored.values())
        if sent and kind[1] == "samples" and len(stored) == len(requests):
            self.size = min(self.size, math.ceil(len(stored) / sent))

    def _settles(
        self, strategy: Strategy, answers: Sequence[Response], judgment: Judgment, last: bool
    ) -> bool:
        """Return whether cached replies settle a judgment, by a score or a failure; else the next strategy does."""
        try:
            judged = judgment.judged(self.settings)
            strategies.score_reply(
                strategy, answers, judgment.criterion, self.settings, judged=judged
            )
        except ParseError as error:
            if isinstance(error, UnusableReply):
                self.traits.learn(strategy, error)
                return last
            return True
        self.traits.proven.add(strategy)
        return True

    def estimate(self, name: str, factor: float, *, exact: bool) -> JudgeEstimate:
        """Return the judge's estimate, scaled by `factor`."""
        correction = self.counted / self.estimated if self.estimated else 1.0
        replies_of = {criterion.name: criterion.reply for criterion in self.criteria}
        for (criterion, strategy), number in self.draws.items():
            replies, written = self.lengths.get((replies_of[criterion], strategy), (0, 0))
            guess = (
                0.0
                if strategy == "decisions"
                else _SCORE + (0 if replies_of[criterion] == "score" else _REASON)
            )
            self.lines[criterion].written += number * (written / replies if replies else guess)
        for line in self.lines.values():
            line.read, line.shared, line.stored = (
                n * correction for n in (line.read, line.shared, line.stored)
            )
        used = tuple(dict.fromkeys(strategy for (_, strategy), _ in self.draws.most_common()))
        known = {*self.traits.proven, *self.traits.lacking}
        hoping = "logprobs" in used and "logprobs" not in known
        would_draw = self.settings.weighting == "auto" and self.settings.temperature != 0
        draws = self.settings.draws if hoping and would_draw else 0
        return JudgeEstimate(
            name,
            [line.times(factor) for line in self.lines.values()],
            used,
            draws=draws,
            each=math.ceil(draws / self.size),
            exact=exact,
            drawn=self.settings.draws,
            size=self.size,
            unit="question"
            if any(criterion.is_checklist for criterion in self.criteria)
            else "judgment",
        )
