"""The Ray engine: the run stays in this process, and workers on other machines send its requests."""

from __future__ import annotations

import asyncio
import itertools
import pickle
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Self

from judge.core.errors import ConfigError, JudgeError, MissingExtra, Refused, Transient
from judge.core.records import Request, Response
from judge.core.version import __version__
from judge.execution import engines
from judge.execution.engines import Ask, Done, EngineContext, ray_cluster
from judge.execution.engines.ray_cluster import Placement, Reply, WorkerInfo
from judge.execution.progress import JudgeProgress
from judge.providers import Capabilities, Provider

_ALL_WAIT, _ONE_WAIT = 30.0, 300.0
"""Seconds for which all workers are waited for, and then one: a cluster that grows on demand starts machines for it."""
_DEATHS_BEFORE_ANSWER, _DEATHS_AFTER_ANSWER = 3, 12
"""Deaths without an answer after which a worker has no successor: of all before the first answer, and of one later.
One request that kills who is asked it is given up before that, by itself."""
_MAX_GROUPS, _MAX_LEAD = 10_000, 8
"""Groups that are known by their workers, and requests that a worker may have more than twice those of another before
the other takes some of its groups': about as many as one prefix more is worth."""
_FIRST_RESTART, _MAX_RESTART = 0.1, 5.0
"""Seconds before a lost worker's place is given to another: the first, and doubled with every death up to the most."""
_NODE_CHECK = 3.0
"""Seconds between looks whether a node on which a worker is starting is still there."""
_STARTING = "Ray: workers are starting"


@dataclass(slots=True, eq=False)
class _Worker:
    """One place in the pool. `in_flight` are the requests it has, `queued` those of them that are not sent yet.

    `ready` says that its actor takes requests, `deaths` how many actors in a row died there without an answer.
    """

    spot: Placement
    actor: Any = None
    node: str = ""
    ready: bool = False
    deaths: int = 0
    in_flight: dict[int, asyncio.Future[Response]] = field(default_factory=dict)
    queued: dict[int, Request] = field(default_factory=dict)
    dropped: list[int] = field(default_factory=list)
    shared_state: Any = None


class WorkerPool:
    """Answers requests on workers, each of which has the provider for itself; in one event loop.

    All that is asked in one turn of the loop goes to a worker as one block, and one call brings back all it has
    answered since. A worker that dies loses the requests it has, which raise Transient, and another takes its place.
    """

    def __init__(self, provider: Provider, counts: JudgeProgress, requested: int | None = None) -> None:
        self._provider, self._counts, self._requested = provider, counts, requested
        self._workers: list[_Worker] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._numbers = itertools.count()
        self._groups: OrderedDict[str, list[_Worker]] = OrderedDict()
        self._due: dict[_Worker, None] = {}
        self._news = asyncio.Event()
        self._failure: JudgeError | None = None
        self._joining: asyncio.Future[None] | None = None
        self._answered = False
        self._lost_workers = self._lost_requests = 0
        self._remark_index = -1

    async def start(self) -> None:
        """Have the workers ready, if they are not; one of them at least, and the others by and by.

        Raises ConfigError where one that is there by now cannot do this run's work. One that comes later and cannot
        stops the run where nothing has been answered yet, and is else left out, with a remark.
        """
        if self._tasks:
            return
        before, self._counts.batch_status = self._counts.batch_status, _STARTING
        try:
            self._joining = asyncio.ensure_future(asyncio.to_thread(ray_cluster.connect, self._requested or 1))
            await asyncio.shield(self._joining)  # a thread cannot be stopped: `aclose` undoes what it has done
            ray_cluster.restore_signal_handlers()
            spots = await asyncio.to_thread(ray_cluster.spots, self._requested, gpu=Capabilities.of(self._provider).gpu)
            self._workers = [_Worker(spot, node=spot.name) for spot in spots]
            opening = await self._open_all()
        finally:
            if self._counts.batch_status == _STARTING:
                self._counts.batch_status = before
        keeping = zip(self._workers, opening, strict=True)
        self._tasks = [asyncio.create_task(self._supervise(worker, ready)) for worker, ready in keeping]

    async def _open_all(self) -> list[asyncio.Task[None]]:
        """What opens each worker, once all of them have a place or time is up; one has then. Raises ConfigError."""
        opening = [asyncio.create_task(self._open(worker)) for worker in self._workers]
        try:
            done, _ = await asyncio.wait(opening, timeout=_ALL_WAIT, return_when=asyncio.FIRST_EXCEPTION)
            if not done:
                done, _ = await asyncio.wait(opening, timeout=_ONE_WAIT, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise ConfigError(_no_room(len(opening)))
            for task in done:
                await task
        except BaseException as error:
            for task in opening:
                task.cancel()
            await asyncio.gather(*opening, return_exceptions=True)
            if isinstance(error, ray_cluster.ray().exceptions.RayError):
                reason = _death_reason(error) or repr(_unwrap(error))
                raise ConfigError(f"--engine ray: a worker did not start: {reason}") from error
            raise
        return opening

    async def complete(self, request: Request) -> Response:
        """The response of a worker's provider, or the error that it raised. Raises Transient where the worker died."""
        while (worker := self._pick(request.prefix[0])) is None or self._failure is not None:
            if self._failure is not None:
                raise self._failure
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), _ONE_WAIT)
            except TimeoutError:
                raise Refused(_no_room(len(self._workers)), stops="always") from None
        number = next(self._numbers)
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        worker.in_flight[number] = answer
        worker.queued[number] = request
        self._schedule(worker)
        try:
            return await answer
        except asyncio.CancelledError:
            if worker.in_flight.pop(number, None) is not None and worker.queued.pop(number, None) is None:
                worker.dropped.append(number)
                self._schedule(worker)
            raise

    async def aclose(self) -> None:
        """Let go of the workers, and of the cluster where it was started for them."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for worker in self._workers:
            self._kill(worker)
        self._workers = []
        self._groups.clear()
        joining, self._joining = self._joining, None
        if joining is not None:
            await asyncio.wait([joining])
            if joining.exception() is None:
                await asyncio.to_thread(ray_cluster.disconnect)

    def _pick(self, group: str) -> _Worker | None:
        """The worker with the least to do, of those that have had this group before; None where there is none at all.

        Whoever has had a group has its prefix at hand, which another would have to read anew. So another gets it only
        where it stands idle or nearly so beside them: where the least busy of them has over 8 requests more than twice
        what the least busy of all has. It is then one of those that have had the group.
        """
        free = min((worker for worker in self._workers if worker.ready), key=_load, default=None)
        if free is None or not group:
            return free
        had = [worker for worker in self._groups.pop(group, ()) if worker.ready]
        chosen = min(had, key=_load, default=None)
        if chosen is None or _load(chosen) > 2 * _load(free) + _MAX_LEAD:
            chosen = free
            had.append(free)
        self._groups[group] = had
        if len(self._groups) > _MAX_GROUPS:
            self._groups.popitem(last=False)
        return chosen

    def _schedule(self, worker: _Worker) -> None:
        if not self._due:
            asyncio.get_running_loop().call_soon(self._send)
        self._due[worker] = None

    def _send(self) -> None:
        """Give every worker what has come up for it in this turn of the loop."""
        due, self._due = self._due, {}
        for worker in due:
            if not worker.ready:  # it has died in this very turn
                continue
            queued, worker.queued = worker.queued, {}
            dropped, worker.dropped = worker.dropped, []
            try:
                shared_state = Capabilities.of(self._provider).shared_state
                block = ray_cluster.encode_block(
                    queued.items(), dropped, None if shared_state == worker.shared_state else shared_state
                )
                worker.actor.take.options(num_returns=0).remote(block)
                worker.shared_state = shared_state
            except Exception as error:  # noqa: BLE001  (raised by whoever waits for an answer)
                for number in queued:
                    _settle(worker.in_flight.pop(number), error)

    async def _open(self, worker: _Worker) -> None:
        """Give a place an actor, on another node where its own is no more.

        Raises ConfigError where it cannot do the work there, Refused where no node is left, and Ray's own errors.
        """
        ray = ray_cluster.ray()
        info = None
        while info is None:
            spot = worker.spot = await asyncio.to_thread(ray_cluster.nearest_alive, worker.spot)
            actor = ray.remote(num_cpus=0, num_gpus=spot.gpus)(ray_cluster.actor_class())
            strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(spot.node, soft=False)
            worker.actor = actor.options(scheduling_strategy=strategy).remote()
            worker.shared_state = Capabilities.of(self._provider).shared_state
            info = await _worker_info(worker.actor.open.remote(__version__, provider_factory(self._provider)), spot)
        _check(info, self._provider.endpoint)
        worker.node, worker.ready = info.node, True

    async def _supervise(self, worker: _Worker, opening: asyncio.Task[None]) -> None:
        """Take a worker's answers, and put another in its place when it dies, until there is no hope for it."""
        while True:
            try:
                await opening
                self._news.set()
                while True:
                    self._take(worker, await worker.actor.answers.remote())
            except Exception as error:  # noqa: BLE001  (raised by whoever waits for an answer)
                if (failure := self._on_worker_death(worker, error)) is not None:
                    break
            await asyncio.sleep(
                min(_MAX_RESTART, _FIRST_RESTART * 2**worker.deaths)
            )  # Ray takes a while to see that a node is gone
            opening = asyncio.create_task(self._open(worker))
        self._workers.remove(worker)
        if not self._workers or not self._answered:
            self._failure = failure
        else:
            self._counts.remarks.append(f"A Ray worker was left out, and {len(self._workers):,} went on: {failure}")
        self._news.set()

    def _take(self, worker: _Worker, block: bytes) -> None:
        answers, shared_state = ray_cluster.decode_answers(block)
        if shared_state is not None:
            self._provider.shared_state = worker.shared_state = shared_state  # type: ignore[attr-defined]
        worker.deaths, self._answered = 0, True
        for number, reply in answers:
            answer = worker.in_flight.pop(number, None)
            if answer is not None:
                _settle(answer, reply)

    def _on_worker_death(self, worker: _Worker, error: Exception) -> JudgeError | None:
        """Give up what a worker had. An error, where nobody is to take its place."""
        death, bare = _death_reason(error), _unwrap(error)
        failure = bare if isinstance(bare, JudgeError) else None
        self._kill(worker)
        lost, worker.in_flight, worker.queued, worker.dropped = worker.in_flight, {}, {}, []
        worker.ready = False
        if death is not None:
            worker.deaths += 1
            self._remark_loss(len(lost))
            deaths = worker.deaths if self._answered else self._lost_workers
            if deaths >= (_DEATHS_AFTER_ANSWER if self._answered else _DEATHS_BEFORE_ANSWER):
                failure = Refused(
                    f"--engine ray: {deaths} workers in a row died before they had answered anything, the last on "
                    f"{worker.node}: {death} Ray's logs there say more; memory may be short.",
                    stops="always",
                )
        elif failure is None:
            failure = Refused(f"--engine ray: the worker on {worker.node} failed: {bare!r}", stops="always")
        for answer in lost.values():
            _settle(answer, Transient(f"the Ray worker on {worker.node} was lost: {death or bare}"))
        return failure

    def _remark_loss(self, lost: int) -> None:
        """Have the report say how many workers were lost, in one note for all of them."""
        self._lost_workers += 1
        self._lost_requests += lost
        workers, requests, remarks = self._lost_workers, self._lost_requests, self._counts.remarks
        if self._remark_index < 0:
            self._remark_index = len(remarks)
            remarks.append("")
        were = "A Ray worker was" if workers == 1 else f"{workers:,} Ray workers were"
        had = "1 request under way, which was" if requests == 1 else f"{requests:,} requests under way, which were"
        remarks[self._remark_index] = f"{were} lost, with {had} asked again."

    def _kill(self, worker: _Worker) -> None:
        actor, worker.actor = worker.actor, None
        if actor is not None:
            with suppress(Exception):  # it is dead already, or Ray is
                ray_cluster.ray().kill(actor)


async def _worker_info(opening: Awaitable[tuple[str, str, str, str]], spot: Placement) -> WorkerInfo | None:
    """What a worker says of itself; None where its node is no more. Raises Refused where no node is left."""

    async def waited() -> tuple[str, str, str, str]:
        return await opening

    task = asyncio.create_task(waited())
    try:
        while not (await asyncio.wait([task], timeout=_NODE_CHECK))[0]:
            if await asyncio.to_thread(ray_cluster.nearest_alive, spot) != spot:
                return None
        return WorkerInfo(*task.result())
    finally:
        task.cancel()


def provider_factory(provider: Provider) -> bytes:
    """The provider as a worker makes it again. Raises ConfigError where it cannot be sent."""
    dumps: Callable[..., bytes] = ray_cluster.ray().cloudpickle.dumps
    try:
        return dumps(provider, pickle.HIGHEST_PROTOCOL)
    except JudgeError:
        raise
    except Exception as error:  # whatever an object's own pickling raises
        raise ConfigError(
            f"--engine ray: {provider.name}/{provider.model} cannot be sent to workers ({error}); give its class "
            "__reduce__, which says how to make it again, or leave --engine out"
        ) from error


def _check(info: WorkerInfo, endpoint: str) -> None:
    """Raises ConfigError where a worker cannot do what this process would."""
    at = f"--engine ray: the worker on {info.node}"
    if not info.version:
        raise ConfigError(f"{at} has no judge ({info.why}); install textjudge {__version__} there")
    if info.version != __version__:
        raise ConfigError(f"{at} has judge {info.version}, and this is {__version__}; install the same on every node")
    if info.why:
        raise ConfigError(
            f"{at} cannot ask this judge: {info.why}\nWorkers have the environment in which Ray was started there."
        )
    if info.endpoint != endpoint:
        raise ConfigError(f"{at} would ask {info.endpoint}, and not {endpoint}: are its files the same as here?")


def _load(worker: _Worker) -> int:
    return len(worker.in_flight)


def _settle(answer: asyncio.Future[Response], reply: Reply) -> None:
    if answer.done():  # nobody waits for it any more
        return
    if isinstance(reply, Exception):
        answer.set_exception(reply)
    else:
        answer.set_result(reply)


def _unwrap(error: BaseException) -> BaseException:
    """What a program raised on a worker, out of Ray's error around it; any other error as it is."""
    while isinstance(error, ray_cluster.ray().exceptions.RayTaskError):
        error = error.cause
    return error


def _death_reason(error: BaseException) -> str | None:
    """What Ray says of a worker that is no more, in one sentence or two; None for any other error."""
    error, kind = _unwrap(error), ray_cluster.ray().exceptions.RayError
    if not isinstance(error, kind) or type(error) is kind:  # itself it stands for a program's error that has no pickle
        return None
    first, *_ = (line.strip() for line in [*str(error).splitlines(), type(error).__name__] if line.strip())
    _, _, detail = str(error).partition("Worker exit detail:")
    return detail.partition(" Some common causes")[0].strip() or first


def _no_room(workers: int) -> str:
    return (
        f"--engine ray: none of {workers} workers had a place within {_ONE_WAIT:.0f} s: the cluster has no room; "
        "see ray status"
    )


class RayEngine:
    """One judge's requests, answered by workers that each have its provider.

    Pace, budget, tries, cache and scores are this process's, so that they are the same as without workers. Connects
    with the first request: to the cluster of $RAY_ADDRESS, or to one it starts on this machine and ends again.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    @classmethod
    def open(cls, context: EngineContext) -> Self:
        """The engine of a run; starts nothing. Raises MissingExtra without Ray, and ConfigError."""
        if find_spec("ray") is None:
            raise MissingExtra("--engine ray needs the package ray: pip install 'textjudge[ray]'")
        ray_cluster.check()
        provider_factory(context.provider)
        return cls(WorkerPool(context.provider, context.counts, context.workers))

    async def __call__(self, requests: AsyncIterator[Request], ask: Ask, done: Done, *, concurrency: int) -> None:
        """Have all requests answered. Raises what ends a run, and ConfigError where workers cannot do the work."""
        first = await anext(requests, None)
        if first is None:
            return
        await self._pool.start()

        async def each() -> AsyncIterator[Request]:
            yield first
            async for request in requests:
                yield request

        await engines.run_local(each(), ask, done, concurrency=concurrency)

    async def complete(self, request: Request) -> Response:
        """The response of a worker's provider. Raises what that raises, and Transient where the worker died."""
        return await self._pool.complete(request)

    async def aclose(self) -> None:
        await self._pool.aclose()
