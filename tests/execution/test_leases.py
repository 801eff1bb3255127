"""Several runs on one cache at the same time: each reply is paid for once, and nobody waits for what will not come."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.cache import Cache, DiskCache
from judge.core.errors import DeadlineReached, ParseError, Refused, StorageError, Transient
from judge.core.records import Choice, Criterion, Failure, Request, Response, Sample, Score, Usage
from judge.criteria import load
from judge.execution.metric_client import MetricClient
from judge.execution.pending import Judgment, Row
from judge.execution.progress import JudgeProgress, Progress
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
        retry_failed: bool = False,
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
            concurrency=concurrency, engine=engine, criteria=self.criteria, retry_failed=retry_failed,
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
        Progress(judges={"m": self.counts}).stop()


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
def test_what_several_ask_for_is_paid_once(in_time: Callable[..., Any], way: str) -> None:
    how = dict(WAYS[way])
    alone, store = Process(Store(), "alone", **how), Store()
    judged = how.pop("judged", judgments())
    some = [Process(store, name, judged=judged, **how) for name in "ab"]
    some.append(Process(store, "c", judged=judged[::-1], **how))
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


def test_what_others_brought_counts_as_cached_and_is_not_leased_again(in_time: Callable[..., Any]) -> None:
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
    again = Process(store, "c", lambda _: Refused("asked again"), weighting="single")
    in_time(all_of(again))
    assert len(again.values) == again.counts.cached == 150
    assert again.cache.claimed == 0  # type: ignore[attr-defined]


def vague(request: Request) -> Reply:
    return Response((Choice("no idea"),) * request.params.get("n", 1))


def test_what_one_does_not_get_the_other_asks_for(in_time: Callable[..., Any]) -> None:
    store = Store()
    first, other = Process(store, "a", lambda _: Refused("content policy")), Process(store, "b", certain)
    in_time(all_of(first, other))
    assert len(other.values) == 150
    assert set(store.paid.values()) == {1}
    assert len(first.values) + len(first.failures) == 150
    assert first.failures
    assert not store.claims


@pytest.mark.parametrize(
    "how", [{"weighting": "single"}, {"weighting": "samples", "draws": 3}], ids=["single", "draws"]
)
def test_replies_without_a_score_are_paid_once(in_time: Callable[..., Any], how: dict[str, Any]) -> None:
    store = Store()
    some = [Process(store, name, lambda r: drawn(r) if label(r) == "1" else vague(r), **how) for name in "ab"]
    in_time(all_of(*some))
    assert set(store.paid.values()) == {1}
    assert 100 < len(some[0].failures) == len(some[1].failures) < 150
    assert sum(one.counts.sent for one in some) == 150
    assert not store.claims


def test_two_that_get_no_score_stop_together(in_time: Callable[..., Any]) -> None:
    store = Store()
    some = [Process(store, name, vague, weighting="single") for name in "ab"]
    in_time(all_of(*some))
    assert (len(store.paid), set(store.paid.values())) == (20, {1})
    assert [len(one.failures) for one in some] == [150, 150]
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
    """A process that has leased the replies to some prompts and answers none of them by itself."""

    def haunt(self, process: Process, *texts: str, criterion: str = "coherence") -> list[Request]:
        """Lease what a process will ask about these texts."""
        requests = process.requests(*texts, criterion=criterion)
        self.claim([request.key() for request in requests])
        return requests


TEXTS = ("text 0", "text 1", "text 7")


@pytest.mark.parametrize("count", [3, 150], ids=["nothing else to send", "more to send"])
def test_what_a_dead_process_leased_is_asked_for_once_its_lease_has_ended(
    in_time: Callable[..., Any], count: int
) -> None:
    async def work() -> tuple[Process, float, list[str]]:
        loop, store, said = asyncio.get_running_loop(), Store(), list[str]()
        one, start = Process(store, "a", certain, judged=judgments(count)), loop.time()
        Ghost(store, "ghost", LEASE).haunt(one, *(TEXTS if count > 3 else [f"text {n}" for n in range(3)]))
        loop.call_at(start + LEASE - 1, lambda: said.extend([one.counts.batch_status, str(one.counts.done)]))
        await all_of(one)
        return one, loop.time() - start, said

    one, seconds, said = in_time(work())
    assert len(one.values) == one.counts.sent == count
    assert said == ["3 replies asked for by another run", str(count - 3)]
    assert LEASE < seconds < 2 * LEASE
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
        with pytest.raises(error) if error else nullcontext():
            await task
        assert {name for name, _ in store.claims.values()} == {"ghost"}
        return one, loop.time() - start

    one, seconds = in_time(work())
    assert len(one.rows) == 147
    assert 200.0 <= seconds < 201.0
    assert one.counts.batch_status == ""


class Full(Shared):
    """The cache of a process whose disk is full after ten replies."""

    def flush(self) -> None:
        if len(self.store.replies) >= 10:
            self.pending.clear()
            raise StorageError("disk full")
        super().flush()


@pytest.mark.parametrize("error", [asyncio.CancelledError, Refused, StorageError])
def test_a_run_that_ends_early_leaves_its_share_to_the_other(
    in_time: Callable[..., Any], error: type[BaseException]
) -> None:
    answers = [certain] * 10

    def script(request: Request) -> Reply:
        return answers.pop()(request) if answers else Refused("out of money", stops="always")

    async def work() -> tuple[Store, Process]:
        store = Store()
        cache = Full(store, "a") if error is StorageError else None
        first = Process(store, "a", script if error is Refused else certain, cache=cache)
        second = Process(store, "b", certain)
        task = asyncio.ensure_future(first.run())
        if error is asyncio.CancelledError:
            asyncio.get_running_loop().call_later(6.5, task.cancel)
        await all_of(second)
        with pytest.raises(error):
            await task
        assert len(first.values) < 150
        return store, second

    store, second = in_time(work())
    assert len(second.values) == 150
    assert not store.claims


def test_a_strategy_that_one_finds_lacking_keeps_nobody_waiting(in_time: Callable[..., Any]) -> None:
    """One asks a server that gives probabilities, the other one that does not; a third one holds some up."""
    store = Store()
    some = Process(store, "a", certain), Process(store, "b", drawn, draws=3)
    in_time(all_of(*some))
    assert all(len(one.values) == 150 for one in some)
    assert set(store.paid.values()) == {1}
    assert not store.claims

    async def work() -> Process:
        store = Store()
        one = Process(store, "a", drawn, draws=3)
        Ghost(store, "ghost", LEASE).haunt(one, *TEXTS)
        await all_of(one)
        return one

    one = in_time(work())
    assert len(one.values) == 150
    assert sum("top_logprobs" in request.params for request in one.provider.seen) == 1


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
    assert held
    assert not held & {request.key() for request in asked_by_all(weighting="logprobs")}
    assert len(one.values) == 149


@pytest.mark.parametrize(("weighting", "reply"), [("logprobs", "4"), ("single", "no idea")])
def test_a_stored_reply_that_is_of_no_use_is_retried_by_one(
    in_time: Callable[..., Any], weighting: str, reply: str
) -> None:
    store = Store()
    for request in asked_by_all(weighting=weighting):
        store.replies[request.key()] = Response((Choice(reply),))
    script = certain if reply == "4" else drawn
    some = [Process(store, name, script, weighting=weighting, retry_failed=True) for name in "ab"]
    in_time(all_of(*some))
    assert set(store.paid.values()) == {1}
    assert len(store.paid) == 150
    assert all(len(one.values) == 150 for one in some)
    assert not store.claims


def asked_by_all(**settings: Any) -> list[Request]:
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
def test_who_leases_nothing(in_time: Callable[..., Any], how: dict[str, Any]) -> None:
    class Silent(Shared):
        def put(self, key: str, response: Response, request: Request | None = None) -> None:
            self.pending[key] = response

    store = Store()
    one = Process(store, "a", certain, cache=Silent(store, "a"), **how)
    in_time(all_of(one))
    assert len(one.values) == 150
    assert one.cache.claimed == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(3))
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

    how = [{"weighting": "single"}, {"weighting": "samples", "draws": 6}, {"draws": 3}][seed]

    async def work() -> list[Process]:
        some = []
        for number in range(4):
            judged = judgments(50, "coherence", "relevance")
            chance.shuffle(judged)
            places = chance.randint(1, 9)
            some.append(Process(store, str(number), script, judged=judged, provider=Moody, concurrency=places, **how))
        asyncio.get_running_loop().call_later(30.0, some[0].stop)
        await all_of(*some)
        return some

    stopped, *some = in_time(work())
    assert len(stopped.rows) < 100
    assert [len(one.values) + len(one.failures) for one in some] == [100] * 3
    assert all(len(one.values) > 70 for one in some)
    assert set(store.paid.values()) == {1}
    assert not store.claims


# Metrics that ask


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
            one.cache = DiskCache(tmp_path)
        asked = [one.ask(wanted("one", "two")), one.ask([ModelQuestion("two", 64, str.title), *wanted("three")])]
        async with asyncio.timeout(LONG / 2):
            replies = await asyncio.gather(*asked)
        one.cache.close()
        return store, one, replies

    store, one, replies = in_time(work())
    assert replies == [["ONE", "TWO"], ["Two", "THREE"]]
    assert (one.counts.sent, one.counts.cached, one.counts.batch_status) == (3, 1, "")
    assert not store.claims


@pytest.mark.parametrize("same", [True, False], ids=["of the same process", "of another"])
def test_what_one_call_gives_up_another_asks_for(in_time: Callable[..., Any], same: bool) -> None:
    async def work() -> None:
        store = Store()
        first = asker(store, "a", lambda _: 5.0)
        second = first if same else asker(store, "b")
        task = asyncio.ensure_future(first.ask(wanted("one", "two")))
        asyncio.get_running_loop().call_later(2.0, task.cancel)
        await asyncio.sleep(1.0)
        async with asyncio.timeout(LONG / 2):
            assert await second.ask(wanted("one", "two")) == ["ONE", "TWO"]
        with pytest.raises(asyncio.CancelledError):
            await task
        assert second.counts.sent == (3 if same else 2)

    in_time(work())


def test_metrics_that_ask_share_too(in_time: Callable[..., Any]) -> None:
    async def work() -> tuple[Store, list[tuple[list[Any], MetricClient]]]:
        store = Store()
        clients = [asker(store, name) for name in "ab"]
        prompts = wanted(*(f"prompt {n % 150}" for n in range(200)))
        message = {"role": "user", "content": "prompt 3"}
        request = Request("script", (message,), {"temperature": 0.0, "max_tokens": 64}, endpoint="test")
        Shared(store, "ghost", LEASE).claim([request.key()])
        async with asyncio.timeout(LONG / 2):
            replies = await asyncio.gather(*(one.ask(prompts) for one in clients))
        return store, list(zip(replies, clients, strict=True))

    store, of_clients = in_time(work())
    assert set(store.paid.values()) == {1}
    assert not store.claims
    for replies, one in of_clients:
        assert replies == [f"PROMPT {n % 150}" for n in range(200)]
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
    assert (seconds < 20.0, sent) == (True, 0), "each reads the stored reply by itself"


def test_what_another_stored_between_the_look_and_the_claim_is_taken_and_its_lease_ends(
    in_time: Callable[..., Any],
) -> None:
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
