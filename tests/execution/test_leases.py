"""Several runs on one cache at the same time: each reply is paid for once, and nobody waits for what will not come."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.cache import Cache, DiskCache
from judge.core.errors import DeadlineReached, ParseError, Refused, StorageError, Transient
from judge.core.records import Choice, Criterion, Failure, Request, Response, Sample, Score, Usage
from judge.criteria import load
from judge.execution.leases import RequestLeases
from judge.execution.metric_client import MetricClient
from judge.execution.pending import Judgment, Row
from judge.execution.progress import JudgeProgress
from judge.execution.retry import Policy, Retrier
from judge.execution.scheduler import JudgeRun
from judge.metrics.common import ModelError, ModelQuestion
from judge.providers.scripted import Reply, ScriptedProvider
from judge.scoring import strategies
from judge.scoring.multi_criteria import make_renderers
from judge.scoring.strategies import SamplingOptions

LEASE = 60.0
LONG = 20_000.0
THIN = Response((Choice("4"),))


class Store:
    """What processes share: replies, and who is asking for what until when by the event loop's clock."""

    def __init__(self) -> None:
        self.replies: dict[str, Response] = {}
        self.claims: dict[str, tuple[str, float]] = {}
        self.paid: Counter[str] = Counter()

    def holder(self, key: str) -> str:
        name, until = self.claims.get(key, ("", 0.0))
        return name if until > asyncio.get_running_loop().time() else ""


class Shared:
    """The cache of one process. Its claims last for `lease` seconds."""

    def __init__(self, store: Store, name: str, lease: float = LONG) -> None:
        self.store, self.name, self.lease = store, name, lease
        self.pending: dict[str, Response] = {}
        self.claimed = 0

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        known = self.store.replies | self.pending
        return {key: known[key] for key in keys if key in known}

    def put(self, key: str, response: Response, request: Request | None = None) -> None:
        assert request is None or request.key() == key
        assert self.store.holder(key) == self.name, "asked for by one who may"
        self.store.paid[key] += self.pending.get(key) is not response
        self.pending[key] = response

    def flush(self) -> None:
        self.store.replies |= self.pending
        self.pending.clear()

    def claim(self, keys: Sequence[str]) -> set[str]:
        others = {key for key in keys if self.store.holder(key) not in ("", self.name)}
        until = asyncio.get_running_loop().time() + self.lease
        self.store.claims |= {key: (self.name, until) for key in keys if key not in others}
        self.claimed += len(keys)
        return others

    def release(self, keys: Sequence[str]) -> None:
        assert not self.pending.keys() & keys, "after the flush"
        for key in keys:
            if self.store.holder(key) == self.name:
                del self.store.claims[key]

    def close(self) -> None:
        self.flush()


class Slow(ScriptedProvider):
    """Takes its time over every request."""

    takes: Callable[[], float] = staticmethod(lambda: 1.0)

    async def complete(self, request: Request) -> Response:
        await asyncio.sleep(self.takes())
        return await super().complete(request)


class Process:
    """One process's run over samples, and what came of it."""

    def __init__(
        self,
        store: Store,
        name: str,
        script: Callable[[Request], Reply],
        *,
        judged: Iterable[Judgment] | None = None,
        cache: Cache | None = None,
        provider: type[ScriptedProvider] = Slow,
        engine: Any = None,
        deadline: float | None = None,
        concurrency: int = 4,
        endpoint: str = "test",
        decides: bool = False,
        **settings: Any,
    ) -> None:
        self.cache = cache or Shared(store, name)
        self.provider = provider(script, endpoint=endpoint, decides=decides)
        self.counts, self.rows = JudgeProgress(), list[Row]()
        asked = list(judgments() if judged is None else judged)
        by_name = {one.criterion.name: one.criterion for one in asked}
        self.judged, self.criteria = asked, [by_name[name] for name in sorted(by_name)]
        self.settings = SamplingOptions(**settings)
        self.run = JudgeRun(
            asked, self.provider, self.settings, cache=self.cache,
            retrier=Retrier(Policy(), deadline=deadline), emit=self.rows.append, counts=self.counts,
            concurrency=concurrency, engine=engine, criteria=self.criteria,
        )  # fmt: skip

    def requests(self, *texts: str, criterion: str = "coherence") -> list[Request]:
        """What it will ask first about a criterion of these texts."""
        renderers = make_renderers(self.criteria)
        strategy = strategies.strategies_for(self.settings, self.provider.decides)[0]
        return [
            request
            for one in self.judged
            if one.sample.output in texts and one.criterion.name == criterion
            for request in strategies.requests(
                renderers[criterion].render(one.sample), one.criterion, strategy, self.settings,
                model=self.provider.model, endpoint=self.provider.endpoint,
            )
        ]  # fmt: skip

    @property
    def values(self) -> dict[tuple[str, str], float]:
        return {(row.item, row.column): row.value for row in self.rows if isinstance(row, Score)}

    @property
    def failures(self) -> list[Failure]:
        return [row for row in self.rows if isinstance(row, Failure)]

    def stop(self) -> None:
        self.counts.stopping = True


def judgments(count: int = 150, *names: str, source: str = "the source", **how: Any) -> list[Judgment]:
    criteria: list[Criterion] = [replace(load(name), **how) for name in names or ("coherence",)]
    samples = [Sample(str(n), "s", f"text {n}", source) for n in range(count)]
    return [Judgment(sample, one) for sample in samples for one in criteria]


def label(request: Request) -> str:
    """A score that depends on the prompt."""
    return str(1 + sum(map(ord, request.messages[-1]["content"])) % 5)


def certain(request: Request) -> Reply:
    likely = label(request)
    return {likely: 0.75, "1" if likely != "1" else "2": 0.25}


def drawn(request: Request) -> Reply:
    """As many replies as were asked for, without token probabilities."""
    return Response((Choice(label(request)),) * request.params.get("n", 1))


def two_at_most(request: Request) -> Reply:
    return Response((Choice(label(request)),) * min(2, request.params.get("n", 1)))


def together(request: Request) -> Reply:
    """The reply to criteria merged in one prompt."""
    keys = request.params["response_format"]["json_schema"]["schema"]["required"]
    text = ", ".join(f'"{key}": {label(request)}' for key in keys)
    return Response((Choice("{" + text + "}"),))


async def all_of(*processes: Process) -> None:
    """Let them run side by side; what would wait for ever is an error."""
    async with asyncio.timeout(LONG / 2):
        await asyncio.gather(*(one.run() for one in processes))


WAYS: Mapping[str, Mapping[str, Any]] = {
    "probabilities": {"script": certain},
    "draws": {"script": drawn, "weighting": "samples", "draws": 5},
    "fewer draws than asked for": {"script": two_at_most, "weighting": "samples", "draws": 5},
    "down the ladder": {"script": drawn, "draws": 5},
    "one reply": {"script": drawn, "weighting": "single"},
    "documents": {"script": certain, "judged": judgments(90, source="The report says so. " * 400)},
    "equal texts": {"script": certain, "judged": judgments(90) + judgments(90)},
    "merged": {
        "script": together, "weighting": "single", "judged": judgments(90, "coherence", "relevance", merged=True)
    },
    "questions": {
        "script": certain, "decides": True, "judged": judgments(90, "coherence", "relevance", form="decision")
    },
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", ["same", "reversed"])
def test_what_several_ask_for_is_paid_once(in_time: Callable[..., Any], way: str, order: str) -> None:
    how = dict(WAYS[way])
    alone, store = Process(Store(), "alone", **how), Store()
    judged = how.pop("judged", judgments())
    some = [Process(store, name, judged=judged, **how) for name in "ab"]
    some.append(Process(store, "c", judged=judged[::-1] if order == "reversed" else judged, **how))
    in_time(all_of(alone))
    in_time(all_of(*some))
    assert set(store.paid.values()) == {1}
    once: Counter[str] = alone.cache.store.paid  # type: ignore[attr-defined]
    assert once.keys() <= store.paid.keys()
    assert len(store.paid) - len(once) <= (2 if way == "down the ladder" else 0), "each may try the upper rung once"
    assert not store.claims
    for one in some:
        assert one.values == alone.values
        assert one.counts.done == one.counts.total == len(judged)
        assert one.counts.batch_status == ""
    assert sum(one.counts.sent > 1 for one in some) > 1, "it was shared out"


def test_what_others_brought_counts_as_cached(in_time: Callable[..., Any]) -> None:
    def script(_: Request) -> Reply:
        return Response((Choice("4"),), Usage(10, 1))

    store = Store()
    first, second = (Process(store, name, script, weighting="single") for name in "ab")
    in_time(all_of(first, second))
    for one in (first, second):
        assert one.counts.cached == 150 - one.counts.sent
        assert one.counts.usage == sum([Usage(10, 1)] * one.counts.sent, Usage())
    assert first.counts.sent + second.counts.sent == 150
    assert first.counts.shared == second.counts.shared == 0


def test_it_takes_two_half_of_the_time(in_time: Callable[..., Any]) -> None:
    async def seconds(*names: str) -> float:
        start, store = asyncio.get_running_loop().time(), Store()
        await all_of(*(Process(store, name, certain, judged=judgments(400)) for name in names))
        return asyncio.get_running_loop().time() - start

    assert in_time(seconds("a", "b")) < 0.7 * in_time(seconds("a"))


def test_what_one_is_refused_the_other_asks_for(in_time: Callable[..., Any]) -> None:
    store = Store()
    refused, other = Process(store, "a", lambda _: Refused("content policy")), Process(store, "b", certain)
    in_time(all_of(refused, other))
    assert len(other.values) == 150
    assert set(store.paid.values()) == {1}
    assert len(refused.values) + len(refused.failures) == 150
    assert refused.failures


@pytest.mark.parametrize("weighting", ["single", "samples"])
def test_a_reply_that_one_does_not_keep_is_asked_for_by_the_other(in_time: Callable[..., Any], weighting: str) -> None:
    store = Store()
    how: dict[str, Any] = {"weighting": weighting, "draws": 3}
    vague = Process(store, "a", lambda r: Response((Choice("no idea"),) * r.params.get("n", 1)), **how)
    other = Process(store, "b", drawn, **how)
    in_time(all_of(vague, other))
    assert len(other.values) == 150
    assert len(vague.values) + len(vague.failures) == 150
    assert vague.failures
    assert not store.claims


def test_draws_without_a_score_are_kept_with_the_others_before_anybody_asks_again(in_time: Callable[..., Any]) -> None:
    def script(request: Request) -> Reply:
        """One draw at a time, of which the first says nothing."""
        return Response((Choice(label(request) if request.draw else "no idea"),))

    store = Store()
    some = [Process(store, name, script, weighting="samples", draws=4) for name in "ab"]
    in_time(all_of(*some))
    assert len(store.paid) == 600
    assert set(store.paid.values()) == {1}
    assert some[0].values == some[1].values


class Ghost(Shared):
    """A process that has claimed the replies to some prompts and answers none of them by itself."""

    def haunt(self, process: Process, *texts: str, criterion: str = "coherence") -> list[Request]:
        """Claim what a process will ask about these texts."""
        requests = process.requests(*texts, criterion=criterion)
        self.claim([request.key() for request in requests])
        return requests


TEXTS = ("text 0", "text 1", "text 7")


def test_what_a_dead_process_claimed_is_asked_for_once_the_claim_has_run_out(in_time: Callable[..., Any]) -> None:
    async def work() -> tuple[Process, float, list[str]]:
        loop, store, said = asyncio.get_running_loop(), Store(), list[str]()
        one, start = Process(store, "a", certain), loop.time()
        Ghost(store, "ghost", LEASE).haunt(one, *TEXTS)
        loop.call_at(start + LEASE - 1, lambda: said.extend([one.counts.batch_status, str(one.counts.done)]))
        await all_of(one)
        return one, loop.time() - start, said

    one, seconds, said = in_time(work())
    assert len(one.values) == one.counts.sent == 150
    assert said == ["3 replies asked for by another run", "147"]
    assert LEASE < seconds < 2 * LEASE, "nothing else was to be done by then"
    assert one.counts.batch_status == ""


def test_a_reply_that_comes_late_is_taken(in_time: Callable[..., Any]) -> None:
    async def work() -> Process:
        loop, store = asyncio.get_running_loop(), Store()
        one, ghost = Process(store, "a", certain), Ghost(store, "ghost")
        request, *others = ghost.haunt(one, *TEXTS)
        reply = await ScriptedProvider(lambda _: {"2": 1.0}).complete(request)

        def bring() -> None:
            ghost.put(request.key(), reply, request)
            ghost.flush()
            ghost.release([request.key()])

        loop.call_later(500.0, bring)
        loop.call_later(600.0, ghost.release, [other.key() for other in others])
        await all_of(one)
        return one

    one = in_time(work())
    assert (len(one.values), one.counts.sent, one.counts.cached) == (150, 149, 1)
    assert one.values["0", "coherence"] == 2.0


def test_a_criterion_that_is_given_up_joins_the_others_of_its_prompt(in_time: Callable[..., Any]) -> None:
    """The reply that is under way has it too."""

    class Uneven(Slow):
        async def complete(self, request: Request) -> Response:
            await asyncio.sleep(50.0 if "text 1\n" in request.messages[0]["content"] else 0.0)
            return await super().complete(request)

    async def work() -> Process:
        store = Store()
        judged = judgments(90, "coherence", "relevance", merged=True)
        one = Process(store, "a", together, judged=judged, provider=Uneven, weighting="single")
        Ghost(store, "ghost", 10.0).haunt(one, "text 1", criterion="relevance")
        await all_of(one)
        return one

    one = in_time(work())
    assert (len(one.values), one.counts.sent) == (180, 90)


@pytest.mark.parametrize("end", ["stop", "cancel", "deadline"])
def test_waiting_for_others_comes_to_an_end(in_time: Callable[..., Any], end: str) -> None:
    async def work() -> tuple[Process, float]:
        loop, store = asyncio.get_running_loop(), Store()
        start = loop.time()
        one = Process(store, "a", certain, deadline=start + 200.0 if end == "deadline" else None)
        Ghost(store, "ghost").haunt(one, *TEXTS)
        task = asyncio.ensure_future(all_of(one))
        loop.call_at(start + 200.0, {"stop": one.stop, "cancel": task.cancel}.get(end, int))
        error = {"cancel": asyncio.CancelledError, "deadline": DeadlineReached}.get(end)
        if error is None:
            await task
        else:
            with pytest.raises(error):
                await task
        assert {name for name, _ in store.claims.values()} == {"ghost"}
        return one, loop.time() - start

    one, seconds = in_time(work())
    assert len(one.rows) == 147
    assert 200.0 <= seconds < 201.0
    assert one.counts.batch_status == ""


def test_with_nothing_of_its_own_to_send_a_run_waits(in_time: Callable[..., Any]) -> None:
    async def work() -> Process:
        store = Store()
        one = Process(store, "a", certain, judged=judgments(3))
        Ghost(store, "ghost", LEASE).haunt(one, "text 0", "text 1", "text 2")
        await all_of(one)
        return one

    assert len(in_time(work()).values) == 3


def test_one_that_is_cancelled_leaves_its_share_to_the_other(in_time: Callable[..., Any]) -> None:
    async def work() -> tuple[Store, Process, Process]:
        store = Store()
        first, second = (Process(store, name, certain) for name in "ab")
        task = asyncio.ensure_future(first.run())
        asyncio.get_running_loop().call_later(6.5, task.cancel)
        await all_of(second)
        with suppress(asyncio.CancelledError):
            await task
        return store, first, second

    store, first, second = in_time(work())
    assert 0 < len(first.values) < 150
    assert len(second.values) == 150
    assert set(store.paid.values()) == {1}


def test_an_error_that_ends_one_run_leaves_its_share_to_the_other(in_time: Callable[..., Any]) -> None:
    left = [certain] * 10

    def script(request: Request) -> Reply:
        return left.pop()(request) if left else Refused("out of money", stops="always")

    async def work() -> tuple[Store, Process]:
        store = Store()
        first, second = Process(store, "a", script), Process(store, "b", certain)
        one, other = await asyncio.gather(first.run(), all_of(second), return_exceptions=True)
        assert isinstance(one, Refused)
        assert other is None
        return store, second

    store, second = in_time(work())
    assert len(second.values) == 150
    assert not store.claims


def test_a_rung_that_one_finds_lacking_keeps_nobody_waiting(in_time: Callable[..., Any]) -> None:
    """One asks a server that gives probabilities, the other one that does not."""
    store = Store()
    some = Process(store, "a", certain), Process(store, "b", drawn, draws=3)
    in_time(all_of(*some))
    assert all(len(one.values) == 150 for one in some)
    assert set(store.paid.values()) == {1}
    assert not store.claims


def test_what_is_taken_back_is_free_at_once(in_time: Callable[..., Any]) -> None:
    def script(request: Request) -> Reply:
        """The first reply does not show yet that there are no probabilities."""
        return "no idea" if "text 0\n" in request.messages[0]["content"] else drawn(request)

    async def work() -> tuple[Process, set[str]]:
        loop, store, held = asyncio.get_running_loop(), Store(), set[str]()
        one = Process(store, "a", script, draws=3)
        loop.call_later(10.0, lambda: held.update(store.claims))
        await all_of(one)
        return one, held

    one, held = in_time(work())
    upper = {request.key() for request in _asked(weighting="logprobs")}
    assert held
    assert not held & upper
    assert len(one.values) == 149


def test_a_rung_found_lacking_while_another_holds_it(in_time: Callable[..., Any]) -> None:
    async def work() -> Process:
        store = Store()
        one = Process(store, "a", drawn, draws=3)
        Ghost(store, "ghost", LEASE).haunt(one, *TEXTS)
        await all_of(one)
        return one

    one = in_time(work())
    assert len(one.values) == 150
    assert sum("top_logprobs" in request.params for request in one.provider.seen) == 1


def test_a_kept_reply_that_is_of_no_use_is_asked_for_once_by_all(in_time: Callable[..., Any]) -> None:
    store = Store()
    for request in _asked(weighting="logprobs"):
        store.replies[request.key()] = THIN
    some = [Process(store, name, certain, weighting="logprobs") for name in "ab"]
    in_time(all_of(*some))
    assert set(store.paid.values()) == {1}
    assert len(store.paid) == 150
    assert all(len(one.values) == 150 for one in some)


def test_a_kept_reply_without_a_score_is_asked_for_again(in_time: Callable[..., Any]) -> None:
    """A run keeps none, but recordings that are imported may hold some."""
    store = Store()
    for request in _asked(weighting="single"):
        store.replies[request.key()] = Response((Choice("no idea"),))
    some = [Process(store, name, drawn, weighting="single") for name in "ab"]
    in_time(all_of(*some))
    assert all(len(one.values) == 150 for one in some)
    assert max(store.paid.values()) <= 2
    assert not store.claims


def _asked(**settings: Any) -> list[Request]:
    return Process(Store(), "", certain, **settings).requests(*(f"text {n}" for n in range(150)))


class Gathering:
    """An engine that takes all requests but the first before any is answered."""

    gathers = True

    async def __call__(self, requests: Any, ask: Any, done: Any, *, concurrency: int) -> None:
        if (first := await anext(requests, None)) is not None:
            done(first, await ask(first))
        for request in [request async for request in requests]:
            done(request, await ask(request))


@pytest.mark.parametrize("how", [{"engine": Gathering()}, {"endpoint": ""}], ids=["gathers", "no endpoint"])
def test_who_claims_nothing(in_time: Callable[..., Any], how: dict[str, Any]) -> None:
    class Silent(Shared):
        def put(self, key: str, response: Response, request: Request | None = None) -> None:
            self.pending[key] = response

    store = Store()
    one = Process(store, "a", certain, cache=Silent(store, "a"), **how)
    in_time(all_of(one))
    assert len(one.values) == 150
    assert one.cache.claimed == 0  # type: ignore[attr-defined]


def test_nothing_is_claimed_where_all_is_kept(in_time: Callable[..., Any]) -> None:
    store = Store()
    in_time(all_of(Process(store, "a", certain)))
    again = Process(store, "b", lambda _: Refused("asked again"))
    in_time(all_of(again))
    assert len(again.values) == again.counts.cached == 150
    assert again.cache.claimed == 0  # type: ignore[attr-defined]


def test_a_cache_that_cannot_be_written_leaves_its_share_to_others(in_time: Callable[..., Any]) -> None:
    class Full(Shared):
        def flush(self) -> None:
            if len(self.store.replies) >= 10:
                self.pending.clear()
                raise StorageError("disk full")
            super().flush()

    async def work() -> tuple[Store, Process]:
        store = Store()
        first = Process(store, "a", certain, cache=Full(store, "a"))
        second = Process(store, "b", certain)
        one, other = await asyncio.gather(first.run(), all_of(second), return_exceptions=True)
        assert isinstance(one, StorageError)
        assert other is None
        return store, second

    store, second = in_time(work())
    assert len(second.values) == 150
    assert not store.claims


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_all_is_judged_and_nothing_kept_is_paid_twice(in_time: Callable[..., Any], seed: int) -> None:
    """Orders, places, pauses, refusals, replies without a score, stops and draws as chance has it."""
    chance, store = random.Random(seed), Store()

    class Moody(Slow):
        takes = staticmethod(lambda: chance.choice((0.0, 0.1, 1.0, 20.0)))

    def script(request: Request) -> Reply:
        mood = chance.random()
        if mood < 0.05:
            return Refused("no")
        if mood < 0.1:
            return Transient("busy", status=500)
        if mood < 0.15:
            return Response((Choice("no idea"),))
        return Response((Choice(label(request)),) * chance.randint(1, request.params.get("n", 1)))

    how = [{"weighting": "single"}, {"weighting": "samples", "draws": 6}, {"draws": 3}]

    async def work() -> list[Process]:
        some = []
        for number in range(4):
            judged = judgments(50, "coherence", "relevance")
            chance.shuffle(judged)
            some.append(
                Process(
                    store, str(number), script, judged=judged, provider=Moody, concurrency=chance.randint(1, 9),
                    **how[seed % 3],
                )
            )  # fmt: skip
        asyncio.get_running_loop().call_later(30.0, some[0].stop)
        await all_of(*some)
        return some

    stopped, *some = in_time(work())
    assert len(stopped.rows) < 100
    assert [len(one.values) + len(one.failures) for one in some] == [100] * 3
    assert all(len(one.values) > 70 for one in some)
    assert set(store.paid.values()) == {1}
    assert not store.claims


def asker(store: Store, name: str, takes: Callable[[str], float] = lambda _: 1.0) -> MetricClient:
    class Uneven(ScriptedProvider):
        async def complete(self, request: Request) -> Response:
            await asyncio.sleep(takes(request.messages[0]["content"]))
            return await super().complete(request)

    provider = Uneven(lambda request: request.messages[0]["content"], endpoint="test")
    return MetricClient(provider, cache=Shared(store, name), retrier=Retrier(Policy()), concurrency=4)


def wanted(*prompts: str) -> list[ModelQuestion]:
    return [ModelQuestion(prompt, 64, str.upper) for prompt in prompts]


@pytest.mark.parametrize("on_disk", [False, True])
def test_two_calls_of_one_asker_pay_once_for_what_both_want(
    in_time: Callable[..., Any], on_disk: bool, tmp_path: Path
) -> None:
    async def work() -> tuple[Store, MetricClient, list[Any]]:
        store = Store()
        one = asker(store, "a", lambda prompt: 5.0)
        if on_disk:
            one._cache = DiskCache(tmp_path)
        asked = [one.ask(wanted("one", "two")), one.ask([ModelQuestion("two", 64, str.title), *wanted("three")])]
        async with asyncio.timeout(LONG / 2):
            found = await asyncio.gather(*asked)
        one._cache.close()
        return store, one, found

    store, one, found = in_time(work())
    assert found == [["ONE", "TWO"], ["Two", "THREE"]]
    assert (one.counts.sent, one.counts.cached, one.counts.batch_status) == (3, 1, "")
    assert (store.claims, one._claimed) == ({}, set())


def test_what_one_call_gives_up_another_of_the_asker_asks_for(in_time: Callable[..., Any]) -> None:
    async def work() -> tuple[list[Any], MetricClient]:
        one = asker(Store(), "a", lambda prompt: 5.0)
        task = asyncio.ensure_future(one.ask(wanted("one")))
        asyncio.get_running_loop().call_later(2.0, task.cancel)
        await asyncio.sleep(1.0)
        async with asyncio.timeout(LONG / 2):
            found = await one.ask(wanted("one"))
        with pytest.raises(asyncio.CancelledError):
            await task
        return found, one

    found, one = in_time(work())
    assert (found, one.counts.sent) == (["ONE"], 2)


def test_metrics_that_ask_share_too(in_time: Callable[..., Any]) -> None:
    async def work() -> tuple[Store, list[tuple[list[Any], MetricClient]]]:
        store = Store()
        made = [asker(store, name) for name in "ab"]
        prompts = wanted(*(f"prompt {n % 150}" for n in range(200)))
        message = {"role": "user", "content": "prompt 3"}
        request = Request("script", (message,), {"temperature": 0.0, "max_tokens": 64}, endpoint="test")
        Shared(store, "ghost", LEASE).claim([request.key()])
        async with asyncio.timeout(LONG / 2):
            found = await asyncio.gather(*(one.ask(prompts) for one in made))
        return store, list(zip(found, made, strict=True))

    store, found = in_time(work())
    assert set(store.paid.values()) == {1}
    assert not store.claims
    for said, one in found:
        assert said == [f"PROMPT {n % 150}" for n in range(200)]
        assert 1 < one.counts.sent < 149
        assert one.counts.sent + one.counts.cached == 150
        assert (one.counts.shared, one.counts.batch_status) == (50, "")


def test_a_metric_s_reply_is_settled_for_others_before_all_of_its_replies_are(in_time: Callable[..., Any]) -> None:
    async def work() -> tuple[float, int]:
        start, store = asyncio.get_running_loop().time(), Store()
        first, second = asker(store, "a", lambda prompt: 1000.0 if prompt == "long" else 5.0), asker(store, "b")
        task = asyncio.ensure_future(first.ask([*wanted("one"), ModelQuestion("two", 64, unread), *wanted("long")]))
        await asyncio.sleep(1.0)
        assert await second.ask(wanted("one", "two")) == ["ONE", "TWO"]
        seconds = asyncio.get_running_loop().time() - start
        assert isinstance((await task)[1], ModelError)
        return seconds, second.counts.sent

    def unread(reply: str) -> str:
        raise ParseError("not what was wanted", reply)

    seconds, sent = in_time(work())
    assert (seconds < 20.0, sent) == (True, 1)


def test_a_metric_that_is_cancelled_leaves_its_share_to_others(in_time: Callable[..., Any]) -> None:
    async def work() -> None:
        store = Store()
        first, second = asker(store, "a", lambda _: 1000.0), asker(store, "b")
        task = asyncio.ensure_future(first.ask(wanted("one", "two")))
        asyncio.get_running_loop().call_later(10.0, task.cancel)
        await asyncio.sleep(1.0)
        async with asyncio.timeout(1000.0):
            assert await second.ask(wanted("one", "two")) == ["ONE", "TWO"]
        with pytest.raises(asyncio.CancelledError):
            await task

    in_time(work())


def test_what_another_kept_between_the_look_and_the_claim_is_found(in_time: Callable[..., Any]) -> None:
    """Else it would be paid again: nobody holds it any more."""

    class Late(Shared):
        def claim(self, keys: Sequence[str]) -> set[str]:
            self.store.replies |= dict.fromkeys(keys, THIN)
            return super().claim(keys)

    store = Store()
    one = Process(store, "a", lambda _: Refused("asked again"), cache=Late(store, "a"), weighting="single")
    in_time(all_of(one))
    assert len(one.values) == one.counts.cached == 150
    assert not store.claims


def test_what_is_found_is_let_go_of(in_time: Callable[..., Any]) -> None:
    async def work() -> None:
        store, found = Store(), list[str]()
        store.replies["kept"] = THIN

        def take(key: str, request: Request, response: Response) -> bool:
            found.append(key)
            return True

        claims = RequestLeases(Shared(store, "a"), take, JudgeProgress())
        asked = {key: Request(key, ()) for key in ("kept", "new")}
        assert claims.acquire(asked.items()) == [("new", asked["new"])]
        assert (found, list(store.claims)) == (["kept"], ["new"])

    in_time(work())


def test_claims_say_how_many_they_wait_for(in_time: Callable[..., Any]) -> None:
    async def work() -> None:
        store, counts = Store(), JudgeProgress()
        requests = {f"{n}": Request(f"{n}", ()) for n in range(1200)}
        Shared(store, "other").claim(list(requests))
        claims = RequestLeases(Shared(store, "a"), lambda *_: True, counts)
        assert claims.acquire([("0", requests["0"])]) == []
        assert counts.batch_status == "1 reply asked for by another run"
        assert claims.acquire(requests.items()) == []
        assert counts.batch_status == "1,200 replies asked for by another run"
        claims.close()
        assert (counts.batch_status, claims.waiting) == ("", False)

    in_time(work())
