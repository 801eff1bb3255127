"""The Ray engine: the run stays in this process, and an actor on each worker sends its requests.

All judges of this process share one connection to the cluster: the first opens it and the last closes it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

from judge.core.errors import ConfigError, JudgeError, MissingExtra, Refused, Transient
from judge.core.format import plural
from judge.core.huggingface import first_line
from judge.core.records import Request, Response
from judge.core.version import __version__
from judge.execution.engines import EngineContext, MakeLayer
from judge.execution.layers import Layer
from judge.providers import Capabilities, Provider

_CONNECT_TIMEOUT = 3.0
_STORE = 256 << 20
_NO_TELEMETRY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_ALL_WAIT, _ONE_WAIT = 30.0, 300.0
"""Seconds for which all workers are waited for, and then one: a cluster that grows on demand starts machines for it."""
_MAX_CONCURRENCY = 10_000
"""Requests that an actor takes at once: how many there are is for the run's own limits to say."""
_MAX_DEATHS, _MAX_FIRST_DEATHS = 12, 3
"""Deaths in a row after which a worker is left out: once there are answers, and before the first one.
One request that kills who is asked it is given up before that."""
_MAX_LEAD = 8
"""Requests that a worker may have more than twice those of another before it gets no more of its groups."""
_FIRST_RESTART, _MAX_RESTART = 0.1, 5.0
"""Seconds before a lost worker is started again: the first, and doubled with every death up to the most."""
_STARTING = "Ray: workers are starting"


def ray() -> Any:
    """The package, which is imported when it is needed: whoever has workers nowhere need not have it."""
    return import_module("ray")


def check_address() -> None:
    """Raises ConfigError if $RAY_ADDRESS names a cluster that cannot be reached. Starts nothing."""
    address = os.environ.get("RAY_ADDRESS", "").strip()
    if address in ("", "auto", "local") or ("ray" in sys.modules and ray().is_initialized()):
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ConfigError(
            f"--engine ray: $RAY_ADDRESS is {address!r}; start judge on a machine of the cluster and write auto, or "
            "write HOST:PORT, as ray start says it (Ray Client, ray://, is not supported)"
        )
    try:  # Ray itself would try for a minute
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_TIMEOUT).close()
    except OSError as error:
        raise ConfigError(
            f"--engine ray: no Ray cluster answers at $RAY_ADDRESS {address} ({error}); start one there "
            "(ray start --head), or unset the variable for workers on this machine alone"
        ) from error


_lock = threading.Lock()
_users = 0
_started = False


def connect(processes: int) -> None:
    """Connect, or start a cluster on this machine where $RAY_ADDRESS names none; blocks for seconds.

    A connection that was there before is used, and stays. Raises ConfigError. Once for each `disconnect`.
    """
    global _users, _started
    with _lock:
        if not _users and not ray().is_initialized():
            address = os.environ.get("RAY_ADDRESS", "").strip() or "local"
            own = {"num_cpus": processes, "object_store_memory": _STORE, "include_dashboard": False}
            logging.getLogger("ray").setLevel(logging.CRITICAL)
            # What Ray prints of workers' deaths would stand in a report on standard output; there is no option for it.
            worker: Any = import_module("ray._private.worker")
            worker.print_to_stdstream = lambda *_, **__: None
            os.environ.update(_NO_TELEMETRY)
            try:
                ray().init(
                    address=address, logging_level=logging.ERROR, log_to_driver=False, configure_logging=False,
                    **(own if address == "local" else {}),
                )  # fmt: skip
            except Exception as error:
                where = "on this machine" if address == "local" else f"at $RAY_ADDRESS {address}"
                raise ConfigError(
                    f"--engine ray: no cluster {where}: {first_line(error)}"
                ) from error
            _started = True
        _users += 1


def disconnect() -> None:
    """Let go of the connection, where nobody else uses it."""
    global _users, _started
    with _lock:
        _users -= 1
        if not _users and _started:
            ray().shutdown()
            _started = False


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a worker runs: a node by Ray's id and its name."""

    node: str
    name: str


def placements(count: int | None) -> list[Placement]:
    """Where workers go: one on each node, or as many as wanted in turn."""
    with _lock:  # a connection that is let go of while it is asked takes the whole process with it
        nodes = [node for node in ray().nodes() if node["Alive"]]
    nodes = [node for node in nodes if node["Resources"].get("CPU")] or nodes
    places = [Placement(node["NodeID"], node["NodeManagerHostname"]) for node in nodes]
    return [places[i % len(places)] for i in range(count or len(places))]


# On a worker.


def actor_class() -> type:
    """The class of the actors. It is sent whole: what there is of `judge` is found out where it runs."""

    class Worker:
        async def open(self, version: str, recipe: bytes) -> tuple[str, str]:
            """Return the node's name and the endpoint. Raises what stands in the way."""
            import os
            import pickle
            import platform
            from importlib import import_module

            if (
                os.environ.get("OMP_NUM_THREADS") == "1"
            ):  # Ray's, for an actor that has reserved no CPU
                del os.environ["OMP_NUM_THREADS"]
            here = import_module("judge.core.version").__version__
            if here != version:
                raise RuntimeError(f"{platform.node()} has judge {here}, and this is {version}")
            # By name: a reference to this module would import judge on the worker before its version is checked.
            self.answer = import_module("judge.execution.engines.ray").answer
            self.provider = pickle.loads(recipe)  # noqa: S301  (from the process that started this worker)
            return platform.node(), self.provider.endpoint

        async def complete(self, request: Any, lesson: bytes) -> bytes:
            answer: bytes = await self.answer(self.provider, request, lesson)
            return answer

    return Worker


async def answer(provider: Provider, request: Request, lesson: bytes) -> bytes:
    """Return the provider's reply or its error, and what it has learned meanwhile, None where nothing; pickled.

    `lesson` is what the providers of others have learned, empty where nothing.
    """
    reply: Response | JudgeError
    before = Capabilities.of(provider).shared_state
    if lesson:
        before = provider.shared_state = pickle.loads(lesson)  # type: ignore[attr-defined]  # noqa: S301
    try:
        reply = await provider.complete(request)
    except JudgeError as error:
        reply = error
    state = Capabilities.of(provider).shared_state
    return pickle.dumps((reply, None if state == before else state))


# In the process of the run.


@dataclass(slots=True, eq=False)
class _Worker:
    """One place for an actor. `deaths` counts the actors in a row that died there without an answer.

    `ready` says that its actor takes requests, of which `load` are under way. `shared_state` is what it knows.
    """

    number: int
    placement: Placement
    actor: Any = None
    node: str = ""
    ready: bool = False
    load: int = 0
    deaths: int = 0
    shared_state: Any = None


class RayEngine:
    """One judge's requests, answered by workers that each have its provider.

    Rate limits, budget, retries, cache and scores are this process's, so that they are the same as without workers.
    Connects with the first request: to the cluster of $RAY_ADDRESS, or to one it starts on this machine and ends again.
    A worker that dies loses the requests it has, which raise Transient, and is started again on its node.
    """

    gathers = False

    def __init__(self, context: EngineContext) -> None:
        self._provider, self._counts, self._requested = (
            context.provider,
            context.counts,
            context.workers,
        )
        self._workers: list[_Worker] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._failure: JudgeError | None = None
        self._connecting: asyncio.Future[None] | None = None
        self._answered = False
        self._lost_workers = self._lost_requests = 0
        self._remark = ""

    @classmethod
    def open(cls, context: EngineContext) -> Self:
        """The engine of a run; starts nothing. Raises MissingExtra without Ray, and ConfigError."""
        if find_spec("ray") is None:
            raise MissingExtra("--engine ray needs the package ray: pip install 'textjudge[ray]'")
        check_address()
        recipe(context.provider)
        return cls(context)

    def layer(self, sending: MakeLayer) -> Layer:
        return sending(self.complete)

    async def complete(self, request: Request) -> Response:
        """The response of a worker's provider, or the error that it raised. Raises Transient where the worker died.

        Raises ConfigError where workers cannot do the work.
        """
        if self._connecting is None:
            await self._start()
        await self._until(any, _ONE_WAIT)
        worker = self._pick(request.prefix[0])
        state, lesson = Capabilities.of(self._provider).shared_state, b""
        if state != worker.shared_state:
            worker.shared_state, lesson = state, pickle.dumps(state)
        actor = worker.actor
        answer = actor.complete.remote(request, lesson)
        worker.load += 1
        try:
            raw = await answer
        except asyncio.CancelledError:
            ray().cancel(answer)
            raise
        except Exception as error:
            if not _is_death(error):
                why = f"--engine ray: the worker on {worker.node} failed: {_cause(error)!r}"
                raise Refused(why, billed=True, stops="if_first") from error
            self._lost_requests += 1
            self._count_losses()
            if worker.actor is actor and worker.ready:
                self._bring_up(worker)
            why = f"the Ray worker on {worker.node} was lost: {first_line(error)}"
            raise Transient(why, stops="if_first") from None
        finally:
            worker.load -= 1
        worker.deaths, self._answered = 0, True
        reply, learned = pickle.loads(raw)  # noqa: S301  (from a worker of this run's own)
        if learned is not None:
            self._provider.shared_state = worker.shared_state = learned  # type: ignore[attr-defined]
        if isinstance(reply, JudgeError):
            raise reply
        result: Response = reply
        return result

    async def aclose(self) -> None:
        """Let go of the workers, and of the cluster where it was started for them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for worker in self._workers:
            _kill(worker)
        self._workers = []
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            await asyncio.wait([connecting])
            if connecting.exception() is None:
                await asyncio.to_thread(disconnect)

    async def _start(self) -> None:
        """Have the workers ready: one of them at least, and the others by and by.

        Raises ConfigError where one that is there by now cannot do this run's work. One that comes later and cannot
        stops the run where nothing has been answered yet, and is else left out, with a remark.
        """
        before, self._counts.batch_status = self._counts.batch_status, _STARTING
        try:
            self._connecting = asyncio.ensure_future(
                asyncio.to_thread(connect, self._requested or 1)
            )
            await asyncio.shield(
                self._connecting
            )  # a thread cannot be stopped: `aclose` undoes what it has done
            if threading.current_thread() is threading.main_thread():
                # This process's handlers again, in place of Ray's, which ends the process with a dump of its stack.
                for which in (signal.SIGINT, signal.SIGTERM):
                    if (handler := signal.getsignal(which)) is not None:
                        signal.signal(which, handler)
            places = await asyncio.to_thread(placements, self._requested)
            self._workers = [
                _Worker(number, place, node=place.name) for number, place in enumerate(places)
            ]
            for worker in self._workers:
                self._bring_up(worker)
            with suppress(Refused):
                await self._until(all, _ALL_WAIT)
            await self._until(any, _ONE_WAIT)
        finally:
            if self._counts.batch_status == _STARTING:
                self._counts.batch_status = before

    async def _until(self, enough: Callable[[Iterable[bool]], bool], seconds: float) -> None:
        """Wait until enough workers are ready, all or any. Raises Refused in the end, and what ends the run."""
        if not (self._failure or enough(worker.ready for worker in self._workers)):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while not (self._failure or enough(worker.ready for worker in self._workers)):
                        self._news.clear()
                        await self._news.wait()
        if self._failure is not None:
            raise self._failure
        if not enough(worker.ready for worker in self._workers):
            raise Refused(
                f"--engine ray: none of {len(self._workers)} workers had a place within {seconds:.0f} s: the cluster "
                "has no room, or its nodes' ports are not open to this machine; see ray status",
                stops="always",
            )

    def _bring_up(self, worker: _Worker) -> None:
        """Have a worker started, which takes no requests until then; one that cannot be is left out."""
        worker.ready = False

        def end(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self._workers.remove(worker)
                # The others go on without a place where workers die: Ray names a lost node for a while.
                if self._workers and (self._answered or isinstance(error, Refused)):
                    self._counts.remarks.append(f"A Ray worker was left out: {error}")
                else:
                    self._failure = (
                        error
                        if isinstance(error, JudgeError)
                        else Refused(f"{error!r}", stops="always")
                    )
            self._news.set()

        task = asyncio.create_task(self._open(worker))
        self._tasks.add(task)
        task.add_done_callback(end)

    async def _open(self, worker: _Worker) -> None:
        """Give a worker an actor, again after each that dies. Raises ConfigError and Refused."""
        if worker.actor is not None:
            await self._bury(worker)
        while True:
            affinity = ray().util.scheduling_strategies.NodeAffinitySchedulingStrategy
            options = {"num_cpus": 0, "num_gpus": 0, "max_concurrency": _MAX_CONCURRENCY}
            placed = ray().remote(
                **options, scheduling_strategy=affinity(worker.placement.node, soft=False)
            )
            worker.actor = placed(actor_class()).remote()
            worker.shared_state = Capabilities.of(self._provider).shared_state
            try:
                node, endpoint = await worker.actor.open.remote(__version__, recipe(self._provider))
                break
            except Exception as error:
                if not _is_death(error):
                    raise ConfigError(
                        f"--engine ray: the worker on {worker.node} cannot ask this judge: {_cause(error)}\n"
                        f"It has the environment in which Ray was started there, and needs textjudge {__version__}."
                    ) from error
                await self._bury(worker)
        if endpoint != self._provider.endpoint:
            raise ConfigError(
                f"--engine ray: the worker on {node} would ask {endpoint}, and not {self._provider.endpoint}: are its "
                "files the same as here?"
            )
        worker.node, worker.ready = node, True

    async def _bury(self, worker: _Worker) -> None:
        """Let go of a dead actor, and wait before there is another. Raises Refused after too many."""
        _kill(worker)
        worker.deaths += 1
        self._lost_workers += 1
        self._count_losses()
        if worker.deaths >= (_MAX_DEATHS if self._answered else _MAX_FIRST_DEATHS):
            raise Refused(
                f"--engine ray: {worker.deaths} workers in a row died on {worker.node} before they had answered "
                "anything. Ray's logs there say why; memory may be short.",
                stops="always",
            )
        await asyncio.sleep(min(_MAX_RESTART, _FIRST_RESTART * 2**worker.deaths))

    def _count_losses(self) -> None:
        """Have the report say how many workers were lost, in one note for all of them."""
        remarks, workers = self._counts.remarks, plural(self._lost_workers, "Ray worker")
        if self._remark in remarks:
            remarks.remove(self._remark)
        self._remark = (
            f"{workers} died; {plural(self._lost_requests, 'request')} in flight there sent again."
        )
        remarks.append(self._remark)

    def _pick(self, group: str) -> _Worker:
        """The worker with the least to do. One of the ready ones; a group has an order of workers of its own.

        So few workers have to read the group's prefix. The next one in that order gets a request if the ones before it
        have over 8 requests more than twice what the least busy one has.
        """
        ready = sorted(
            (worker for worker in self._workers if worker.ready), key=lambda worker: worker.load
        )
        if not group:
            return ready[0]
        order = sorted(ready, key=lambda worker: hash((group, worker.number)))
        return next(worker for worker in order if worker.load <= 2 * ready[0].load + _MAX_LEAD)


def recipe(provider: Provider) -> bytes:
    """The provider as a worker makes it again. Raises ConfigError where it cannot be sent."""
    dumps: Callable[..., bytes] = ray().cloudpickle.dumps
    try:
        return dumps(provider, pickle.HIGHEST_PROTOCOL)
    except JudgeError:
        raise
    except Exception as error:  # whatever an object's own pickling raises
        raise ConfigError(
            f"--engine ray: {provider.name}/{provider.model} cannot be sent to workers ({error}); give its class "
            "__reduce__, which says how to make it again, or leave --engine out"
        ) from error


def _kill(worker: _Worker) -> None:
    actor, worker.actor = worker.actor, None
    if actor is not None:
        with suppress(Exception):  # it is dead already, or Ray is
            ray().kill(actor)


def _is_death(error: BaseException) -> bool:
    """Whether this is about a worker that is no more, and not what a program raised on one."""
    raised = ray().exceptions
    return isinstance(error, raised.RayError) and not isinstance(error, raised.RayTaskError)


def _cause(error: BaseException) -> BaseException:
    """What a program raised on a worker, out of Ray's error around it."""
    while isinstance(error, ray().exceptions.RayTaskError):
        error = error.cause
    return error
