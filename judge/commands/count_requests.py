"""What a run is going to ask, cost and take, in numbers.

What a run is going to ask: its prompts are rendered, keyed and looked up in the cache, and nothing is sent.
"""

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
    """What one judge is to be asked about one criterion.

    Of the `judgments`, `broken` have no prompt, `cached` are answered from the cache, `equal` by an equal request of
    this run, and the others by `requests`: one for each, one for all criteria of a text where they are typed questions
    or merged, and several where replies are drawn that a server does not give at once. `read` and `written` are these
    requests' tokens in and out. Of `read` a provider's cache of prefixes can serve `shared`, as an earlier request of
    the same item began with them, and has to take in `stored` first.
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
        """All of it so many times, in whole numbers."""
        given = {name: round(getattr(self, name) * factor) for name in self.__slots__ if name != "criterion"}
        return CriterionEstimate(self.criterion, **given)


@dataclass(frozen=True, slots=True)
class EstimateAccuracy:
    """What the usage of `replies` in the cache says of the estimate of what is read.

    The sum was estimated `bias` too high (below 0: too low; .03 is 3 %), by which it is corrected; what is then left is
    the median absolute error of one request, `error`.
    """

    replies: int
    bias: float
    error: float


@dataclass(slots=True)
class JudgeEstimate:
    """What one judge is to be asked, by criterion, and `checked`, where the cache holds replies that were counted.

    `rungs` are the ways in which it is asked, the likeliest first; `draws` are further replies that weighting `auto`
    would have drawn for each request, `each` the requests that this takes, if the model turns out to give no token
    probabilities. `room` is the most that one request can cost, in the budget's unit. `learned` says that the length
    of all replies is the mean of those in the cache, and no guess. `exact` is False where not all was looked at.
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
        """The sum of the lines."""
        names = [name for name in CriterionEstimate.__slots__ if name != "criterion"]
        return CriterionEstimate("all", **{name: sum(getattr(line, name) for line in self.lines) for name in names})


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars, None where there is no known price; `why` then says so, and else where the prices are from.

    `price` is without a provider's cache of prefixes and `cached` with all that it can serve. `more` is what weighting
    `auto` would add, if the first reply shows that the model gives no token probabilities: draws in place of the rest.
    `rate` is what a million tokens in and a million out cost.
    """

    price: float | None
    cached: float | None
    more: float | None
    why: str
    rate: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class SingleReplyPrice:
    """What weighting `single` would take: about so many requests, and US dollars where the price is known."""

    requests: int
    price: float | None


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds at the limits, None where a batch or no model answers, and in words what limits the rate.

    `in_time` is about how many requests a deadline leaves time for, None without one, or where that is not known.
    """

    seconds: float | None
    why: str
    in_time: int | None = None


@dataclass(frozen=True, slots=True)
class JudgeForecast:
    """One judge: what it is asked, in which `way`, what that costs and takes, and on what the numbers rest.

    `single` is None where no draws are asked for.
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
        """The tokens, without a provider's cache."""
        total = self.ahead.total
        return Usage(int(total.read), int(total.written))


@dataclass(frozen=True, slots=True)
class RunForecast:
    """All judges of a run. `price` is of all of them, None where one is not known; `notes` say what is not counted.

    `fits` is about how many of the requests a budget is enough for, None without one, or where prices are not known:
    the last of them only goes when the most it can cost is left, `room` in the budget's unit for any of them. `in_time`
    is about how many a deadline leaves time for, None without one, or where that is not known.
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
        """Those of all judges."""
        return sum(one.ahead.total.requests for one in self.judges)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        shown = asdict(self) | {"requests": self.requests, "budget": str(self.budget) if self.budget else None}
        for said, one in zip(shown["judges"], self.judges, strict=True):
            said |= {"judge": one.ahead.judge, **said.pop("ahead"), "total": asdict(one.ahead.total)}
            for name in ("draws", "each", "room"):
                said.pop(name)
        return shown


_LEAST, _STEP = 1024, 128
"""Tokens that a prefix has to have before OpenAI's cache serves it, and the steps in which it does (facts of 2026)."""
_SCORE, _REASON = 4, 60
"""Tokens guessed for a reply that is a score, and for the reason beside it; recorded GPT-3.5 reasons have 25."""


def count_requests(prepared: PreparedRun, most: int | None = None, items: int | None = None) -> list[JudgeEstimate]:
    """What each judge is to be asked: by all judgments, or by about `most` for each judge, all of some items.

    Or by those of so many `items` like these, for which the cache has no reply, but tells how long one is.
    """
    if not prepared.criteria:
        return []
    cache = open_cache(prepared.plan.cache, prepared.notes, must=True, make=False)
    try:
        return [_look(prepared, name, cache, most, items) for name in prepared.judges]
    finally:
        cache.close()


def _look(prepared: PreparedRun, name: str, cache: Cache, most: int | None, wanted: int | None) -> JudgeEstimate:
    provider = prepared.judges[name]
    criteria = [criterion_for(criterion, provider) for criterion in prepared.criteria]
    shown = prepared.pairs.compared if prepared.pairs else ((sample, None) for sample in prepared.samples)
    by_item: dict[str, list[tuple[Sample, Sample | None]]] = {}
    for first, second in shown:
        by_item.setdefault(first.item, []).append((first, second))
    items = list(by_item.values())
    total = sum(map(len, items))
    step = max(1, total * len(criteria) // most) if most else 1
    looked = items[::step]
    cost = _most(BudgetLedger(prepared.plan.budget), provider)

    def walked(blind: bool, size: int) -> _RequestCounter:
        walk = _RequestCounter(provider, prepared.settings, criteria, cache, cost, blind, size, wanted is not None)
        for texts in looked:
            walk.item(
                [
                    Judgment(first, criterion, second)
                    for first, second in texts
                    for criterion in criteria
                    if is_wanted(prepared, first, criterion)
                ]
            )
        return walk

    told, draws = provider.learned, prepared.settings.draws
    known = "logprobs" in told.get("dropped", ()), min(told.get("n") or draws, draws)
    walk = walked(*known)
    if (found := (known[0] or "logprobs" in walk.learned.lacking, walk.size)) != known:
        walk = walked(*found)  # what only the last reply in the cache tells is true of the first request
    factor = total / max(1, sum(map(len, looked))) * (wanted / max(1, len(items)) if wanted else 1)
    return walk.ahead(name, factor, exact=step == 1 and not wanted)


def _most(ledger: BudgetLedger, provider: Provider) -> Callable[[Request], float] | None:
    """What says the most that a request can cost; None where no budget has to hold it, or no price is known."""
    try:
        return ledger.max_cost if ledger.covers(provider) else None
    except ConfigError:
        return None


_Known = dict[tuple[str, ...], tuple[int, int]]
"""The estimated and the real tokens of an item's requests, by their texts."""


@dataclass(slots=True)
class _Replies:
    """Replies in the cache on one rung: how many, each draw for itself, and the tokens that were written in them."""

    number: int = 0
    written: int = 0


@dataclass(slots=True, eq=False)
class _RequestCounter:
    """One judge's judgments, item by item.

    `most` says the most that a request can cost. `blind` is a model that gives no token probabilities: a run finds that
    out by its first request. `size` are the draws that a request brings. `afresh` has replies in the cache tell of the
    model, and answer nothing. `seen` are the keys of what was looked up and
    found, `due` of what is to be asked, `texts` the requests of criteria that are asked together, `found` what the
    cache holds for an item's first rung, and `counted` the estimated and the real tokens of a text's requests.
    """

    provider: Provider
    settings: SamplingOptions
    criteria: Sequence[Criterion]
    cache: Cache
    most: Callable[[Request], float] | None
    blind: bool
    size: int
    afresh: bool
    lines: dict[str, CriterionEstimate] = field(init=False)
    seen: set[str] = field(default_factory=set)
    due: set[str] = field(default_factory=set)
    texts: dict[tuple[object, ...], Request] = field(default_factory=dict)
    room: float = 0.0
    learned: ModelTraits = field(default_factory=ModelTraits)
    asked: Counter[tuple[str, Strategy]] = field(default_factory=Counter)
    replies: dict[tuple[str, Strategy], _Replies] = field(default_factory=dict)
    counted: list[tuple[int, int]] = field(default_factory=list)
    renderers: dict[str, PromptRenderer] = field(init=False)
    found: dict[str, Response | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lines = {criterion.name: CriterionEstimate(criterion.name) for criterion in self.criteria}
        self.renderers = make_renderers(self.criteria)

    def item(self, judgments: Sequence[Judgment]) -> None:
        """Count the judgments of one item, and what their requests have in common."""
        fresh: list[tuple[str, str]] = []
        known: _Known = {}
        first = strategies.strategies_for(self.settings, self.provider.decides)[0]
        asked: list[tuple[Criterion, Prompt, dict[str, Request]]] = []
        for judgment in judgments:
            criterion, line = judgment.criterion, self.lines[judgment.criterion.name]
            line.judgments += 1
            try:
                prompt = self.renderers[criterion.name].render(judgment.sample, judgment.rival)
            except CriterionError:
                line.broken += 1
                continue
            asked.append((criterion, prompt, self._requests(prompt, criterion, first)))
        self.found = self._looked_up([key for _, _, requests in asked for key in requests])
        for criterion, prompt, requests in asked:
            for request, rung in self._missing(criterion, prompt, requests, known):
                if self._count(self.lines[criterion.name], request, rung) and not self.provider.decides:
                    fresh.append((request.messages[0]["content"], criterion.name))
        self.counted += [pair for pair in known.values() if all(pair)]
        self._prefixes(sorted(fresh))

    def _missing(
        self, criterion: Criterion, prompt: Prompt, requests: dict[str, Request], known: _Known
    ) -> Iterator[tuple[Request, Strategy]]:
        """The requests that a judgment still takes, if any, and their rung: the ladder, as `runner` goes down it.

        Those of its first rung are given.
        """
        line = self.lines[criterion.name]
        rungs = strategies.strategies_for(self.settings, self.provider.decides)
        spare = False
        for rung in rungs:
            requests = requests if rung == rungs[0] else self._requests(prompt, criterion, rung)
            stored = self._stored(requests, (criterion.name, rung), known)
            last = rung == rungs[-1]
            read = None if len(stored) < len(requests) else self._reads(rung, list(stored.values()), criterion, last)
            if (rung == "single" and spare) or (read and not self.afresh):
                line.cached += not self.afresh
                return
            missing = [key for key in requests if self.afresh or key not in stored or read is None]
            if missing and self.due.issuperset(missing):
                line.equal += 1
                return
            if not last and (read is False or rung in self.learned.lacking):
                if self.afresh and rung not in self.learned.lacking:
                    yield from self._fresh(requests, missing, rung)
                spare = spare or (
                    read is False and rung == "logprobs" and strategies.fallback_reply(stored.values()) is not None
                )
                continue
            yield from self._fresh(requests, missing, rung)
            if not (self.blind and rung == "logprobs"):
                return
            self.learned.lacking.setdefault(rung, "")
            if "samples" not in rungs:
                return  # that one reply is read as it is written

    def _fresh(
        self, requests: Mapping[str, Request], missing: Sequence[str], rung: Strategy
    ) -> Iterator[tuple[Request, Strategy]]:
        """Those of a rung that are missing and not due already."""
        fresh = [requests[key] for key in missing if key not in self.due]
        self.due.update(missing)
        yield from ((one, rung) for one in self._bundled(fresh))

    def _stored(
        self, requests: Mapping[str, Request], kind: tuple[str, Strategy], known: _Known
    ) -> dict[str, Response]:
        """What the cache holds of a rung, which is learned from."""
        held = self.found if self.found.keys() >= requests.keys() else self._looked_up(list(requests))
        kept = ((key, held[key]) for key in requests)
        stored = {key: reply for key, reply in kept if reply is not None and strategies.satisfies(reply, self.settings)}
        for key, response in stored.items():
            self._learn(requests[key], key, response, kind, known)
        sent = sum(response.usage.prompt_tokens > 0 for response in stored.values())
        if sent and kind[1] == "samples" and len(stored) == len(requests):
            self.size = min(self.size, math.ceil(len(stored) / sent))
        return stored

    def _looked_up(self, keys: Sequence[str]) -> dict[str, Response | None]:
        stored = self.cache.get_many(keys) if self.provider.endpoint else {}
        return {key: stored.get(key) for key in keys}

    def _bundled(self, draws: Sequence[Request]) -> Iterator[Request]:
        """As many draws in one request as the server gives at once."""
        for first in range(0, len(draws), self.size):
            n = len(draws[first : first + self.size])
            one = draws[first]
            yield replace(one, params={**one.params, "n": n}) if n > 1 else one

    def _requests(self, prompt: Prompt, criterion: Criterion, rung: Strategy) -> dict[str, Request]:
        return strategies.requests_by_key(prompt, criterion, rung, self.settings, self.provider)

    def _reads(self, rung: Strategy, answers: Sequence[Response], criterion: Criterion, last: bool) -> bool | None:
        """Whether a rung's stored replies settle a judgment; None where they are asked for anew."""
        try:
            strategies.score_reply(rung, answers, criterion, self.settings)
        except UnusableReply as error:
            self.learned.learn(rung, error)
            return last  # it fails without a request
        except ParseError:
            return None
        self.learned.proven.add(rung)
        return True

    def _learn(self, request: Request, key: str, response: Response, kind: tuple[str, Strategy], known: _Known) -> None:
        """Take down the usage of a stored reply; that of several draws or questions at once is with the first."""
        if key in self.seen:
            return
        self.seen.add(key)
        text = (kind[1], *_text(request.messages))
        estimated, real = known.get(text, (0, 0))
        if request.draw == 0:
            estimated += _tokens(request, whole=not estimated)
            real += response.usage.prompt_tokens
            known[text] = estimated, real
        if real or response.usage.prompt_tokens:
            replies = self.replies.setdefault(kind, _Replies())
            replies.number += 1
            replies.written += response.usage.completion_tokens

    def _count(self, line: CriterionEstimate, request: Request, rung: Strategy) -> bool:
        """Add a request that is to be sent; whether it is one by itself."""
        text = (rung, request.draw, *_text(request.messages))
        before = self.texts.get(text)
        if self.provider.decides and before:
            questions = [*before.params["questions"], *request.params["questions"]]
            self.texts[text] = replace(request, params={"questions": questions})
        elif self.provider.decides or (
            MERGED in request.params and not Capabilities.of(self.provider).splits_merged_criteria
        ):
            self.texts[text] = request
        line.requests += before is None
        line.read += _tokens(request, whole=before is None)
        self.asked[line.criterion, rung] += request.params.get("n", 1)
        if self.most:
            self.room = max(self.room, self.most(self.texts.get(text, request)))
        return before is None

    def _prefixes(self, prompts: Sequence[tuple[str, str]]) -> None:
        """Of the sorted prompts of one item, the tokens that follow an equal beginning, and those that begin it."""
        before = 0
        for (one, first), (other, second) in pairwise(prompts):
            common = budget.estimate_tokens(one[: _common(one, other)])
            common = common // _STEP * _STEP if common >= _LEAST else 0
            self.lines[second].shared += common
            self.lines[first].stored += common if not before else 0
            before = common

    def ahead(self, name: str, factor: float, *, exact: bool) -> JudgeEstimate:
        """What all of this comes to, `factor` times."""
        checked, correction = _check(self.counted)
        learned = True
        for (criterion, rung), number in self.asked.items():
            replies = self.replies.get((criterion, rung)) or self._alike(rung)
            learned = learned and replies is not None
            mean = replies.written / replies.number if replies else self._guess(criterion, rung)
            self.lines[criterion].written += number * mean
        for line in self.lines.values():
            line.read, line.shared, line.stored = (n * correction for n in (line.read, line.shared, line.stored))
        rungs = tuple(dict.fromkeys(rung for (_, rung), _ in self.asked.most_common()))
        known = {*self.learned.proven, *self.learned.lacking}
        known |= {"logprobs"} if Capabilities.of(self.provider).full_distribution else set()
        hoping = "logprobs" in rungs and "logprobs" not in known
        drawn = self.settings.weighting == "auto" and self.settings.temperature != 0
        draws = self.settings.draws if hoping and drawn else 0
        each = math.ceil(draws / self.size)
        lines = [line.times(factor) for line in self.lines.values()]
        return JudgeEstimate(name, lines, checked, rungs, draws, each, self.room, learned and bool(self.asked), exact)

    def _alike(self, rung: Strategy) -> _Replies | None:
        """The replies to the other criteria that were asked in the same way, where all answer in the same way."""
        if len({criterion.reply for criterion in self.criteria}) > 1:
            return None
        found = [replies for (_, other), replies in self.replies.items() if other == rung]
        return _Replies(sum(r.number for r in found), sum(r.written for r in found)) if found else None

    def _guess(self, name: str, rung: Strategy) -> float:
        if rung == "decisions":
            return 0.0
        reply = next(criterion.reply for criterion in self.criteria if criterion.name == name)
        return _SCORE + (0 if reply == "score" else _REASON)


def _check(counted: Sequence[tuple[int, int]]) -> tuple[EstimateAccuracy | None, float]:
    """What counted requests say of the estimate, and the factor that corrects it."""
    if not counted:
        return None, 1.0
    estimated, real = (sum(pair[side] for pair in counted) for side in (0, 1))
    correction = real / estimated
    error = median(abs(one * correction / other - 1) for one, other in counted)
    return EstimateAccuracy(len(counted), estimated / real - 1, error), correction


def _tokens(request: Request, *, whole: bool) -> int:
    """About the tokens of a request, or of its questions alone, which join one about the same text."""
    if whole:
        return budget.estimate_request(request)
    asked = {name: value for name, value in request.params.items() if name == "questions"}
    return budget.estimate_request(replace(request, messages=(), params=asked)) - budget.estimate_request(
        replace(request, messages=(), params={})
    )


def _text(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(message["content"] for message in messages)


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
