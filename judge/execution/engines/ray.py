"""The Ray engine: the run stays in this process, and an actor on each worker sends its requests.

All judges of this process share one connection to the cluster: the first opens it and the last
closes it. See docs/decisions/0044-ray-workers-are-plain-actors-that-send-requests.md.
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
from itertools import cycle, islice
from typing import Any, Self

from judge.core.errors import ConfigError, JudgeError, MissingExtra, Refused, Transient
from judge.core.format import plural
from judge.core.huggingface import first_line
from judge.core.messages import option
from judge.core.records import Request, Response
from judge.core.version import __version__
from judge.execution.engines import EngineContext, MakeLayer
from judge.execution.layers import Layer
from judge.providers import Capabilities, Provider

_CONNECT_TIMEOUT = 3.0  # seconds
# Bytes of Ray's object store, which by default takes a third of the memory.
_STORE_BYTES = 256 << 20
_NO_TELEMETRY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
# Seconds to wait for all workers, and then for one: a cluster that grows on demand starts machines.
_ALL_WAIT = 30.0
_ONE_WAIT = 300.0
# Requests that an actor takes at once. The run's own limits decide how many there are.
_MAX_CONCURRENCY = 10_000
# Deaths in a row after which a worker is left out: after the first answer of the run, and before
# it. A request that crashes its worker is abandoned before that.
_MAX_DEATHS = 12
_MAX_FIRST_DEATHS = 3
# A worker gets no more requests of its groups if it has twice as many as the least busy one, and
# more than this.
_MAX_LEAD = 8
# Seconds before a lost worker is started again: at first, and the most after doublings.
_FIRST_RESTART = 0.1
_MAX_RESTART = 5.0
_STARTING = "Ray: workers are starting"


def ray() -> Any:
    """Return the package. It is imported late, because only --engine ray needs it."""
    return import_module("ray")


def check_address() -> None:
    """Raise ConfigError if $RAY_ADDRESS names a cluster that cannot be reached. Starts nothing."""
    address = os.environ.get("RAY_ADDRESS", "").strip()
    if address in ("", "auto", "local"):
        return
    if "ray" in sys.modules and ray().is_initialized():
        return
    host, _, port = address.rpartition(":")
    is_port = port.isdecimal() and 0 < int(port) < 65_536
    if "://" in address or not host or not is_port:
        raise ConfigError(
            f"{option('engine', 'ray')}: $RAY_ADDRESS is {address!r}; start judge on a machine of "
            "the cluster and write auto, or write HOST:PORT, as ray start prints it (Ray Client, "
            "ray://, is not supported)"
        )
    # Ray itself would try for a minute.
    target = (host.strip("[]"), int(port))
    try:
        socket.create_connection(target, timeout=_CONNECT_TIMEOUT).close()
    except OSError as error:
        raise ConfigError(
            f"{option('engine', 'ray')}: no Ray cluster answers at $RAY_ADDRESS {address} "
            f"({error}); start one there (ray start --head), or unset the variable for workers on "
            "this machine alone"
        ) from error


_lock = threading.Lock()
_users = 0
_started = False


def connect(processes: int) -> None:
    """Connect, or start a cluster on this machine if $RAY_ADDRESS names none; blocks for seconds.

    An existing connection is used, and left open at the end. Raises ConfigError. Each call needs
    one call of `disconnect`.
    """
    global _users, _started
    with _lock:
        if not _users and not ray().is_initialized():
            _init(processes)
            _started = True
        _users += 1


def _init(processes: int) -> None:
    address = os.environ.get("RAY_ADDRESS", "").strip() or "local"
    own_cluster: dict[str, Any] = {}
    if address == "local":
        own_cluster = {
            "num_cpus": processes,
            "object_store_memory": _STORE_BYTES,
            "include_dashboard": False,
        }
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    # Ray prints workers' deaths to standard output, where they would be in the middle of a report.
    # There is no option for it.
    worker: Any = import_module("ray._private.worker")
    worker.print_to_stdstream = lambda *_, **__: None
    os.environ.update(_NO_TELEMETRY)
    try:
        ray().init(
            address=address,
            logging_level=logging.ERROR,
            log_to_driver=False,
            configure_logging=False,
            **own_cluster,
        )
    except Exception as error:
        location = f"at $RAY_ADDRESS {address}"
        if address == "local":
            location = "on this machine"
        engine_option = option("engine", "ray")
        problem = f"no cluster {location}: {first_line(error)}"
        raise ConfigError(f"{engine_option}: {problem}") from error


def disconnect() -> None:
    """Close the connection if no other judge uses it, and if `connect` opened it."""
    global _users, _started
    with _lock:
        _users -= 1
        if not _users and _started:
            ray().shutdown()
            _started = False


@dataclass(frozen=True, slots=True)
class Placement:
    """The node of a worker: Ray's id and the node's name."""

    node: str
    name: str


def placements(n_workers: int | None) -> list[Placement]:
    """Return the nodes for workers: each node once, or `n_workers` nodes in turn."""
    # If the connection is closed during the call, Ray ends the whole process.
    with _lock:
        nodes = [node for node in ray().nodes() if node["Alive"]]
    # The head of a cluster often has no CPU for actors.
    nodes_with_cpu = [node for node in nodes if node["Resources"].get("CPU")]
    candidates = [
        Placement(node["NodeID"], node["NodeManagerHostname"])
        for node in nodes_with_cpu or nodes
    ]
    in_turn = cycle(candidates)
    return list(islice(in_turn, n_workers or len(candidates)))


def actor_class() -> type:
    """Return the class of the actors.

    Ray sends its code to the worker, because the judge that is installed there has to be checked.
    """

    class Worker:
        async def open(self, version: str, recipe: bytes) -> tuple[str, str]:
            """Return the node's name and the endpoint. Raises any error of making the provider."""
            import os
            import pickle
            import platform
            from importlib import import_module

            # Ray sets this for an actor that has reserved no CPU.
            if os.environ.get("OMP_NUM_THREADS") == "1":
                del os.environ["OMP_NUM_THREADS"]
            installed = import_module("judge.core.version").__version__
            if installed != version:
                raise RuntimeError(
                    f"{platform.node()} has judge {installed}, and this is {version}"
                )
            # By name: a reference to this module would import judge on the worker before its
            # version is checked.
            self.answer = import_module("judge.execution.engines.ray").answer
            # The bytes are from the process that started this worker.
            self.provider = pickle.loads(recipe)  # noqa: S301
            return platform.node(), self.provider.endpoint

        async def complete(self, request: Any, lesson: bytes) -> bytes:
            answer: bytes = await self.answer(self.provider, request, lesson)
            return answer

    return Worker


async def answer(provider: Provider, request: Request, lesson: bytes) -> bytes:
    """Return the provider's reply or its error, and its new shared state or None; pickled.

    `lesson` is the shared state of other workers' providers, pickled, or empty.
    """
    reply: Response | JudgeError
    before = Capabilities.of(provider).shared_state
    if lesson:
        before = pickle.loads(lesson)  # noqa: S301  (from the process of the run)
        provider.shared_state = before  # type: ignore[attr-defined]
    try:
        reply = await provider.complete(request)
    except JudgeError as error:
        reply = error
    shared_state = Capabilities.of(provider).shared_state
    return pickle.dumps((reply, None if shared_state == before else shared_state))


@dataclass(slots=True, eq=False)
class _Worker:
    """A node for one actor.

    `ready`: its actor takes requests. `load` is the number of its requests in flight, and `deaths`
    the number of actors in a row that died there without an answer. `shared_state` is what its
    provider knows about the server.
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

    Rate limits, budget, retries, cache and scores are in this process, and the same as without
    workers. The first request connects to the cluster of $RAY_ADDRESS, or to one that is started on
    this machine and ended again. If a worker dies, its requests raise Transient, and it is started
    again on its node.
    """

    gathers = False

    def __init__(self, context: EngineContext) -> None:
        self._provider = context.provider
        self._counts = context.counts
        self._requested_workers = context.workers
        self._workers: list[_Worker] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._failure: JudgeError | None = None
        self._connecting: asyncio.Future[None] | None = None
        self._answered = False
        self._lost_workers = 0
        self._lost_requests = 0
        self._remark = ""

    @classmethod
    def open(cls, context: EngineContext) -> Self:
        """Return the engine of a run; starts nothing. Raises MissingExtra without Ray."""
        if find_spec("ray") is None:
            raise MissingExtra(
                f"{option('engine', 'ray')} needs the package ray: pip install 'textjudge[ray]'"
            )
        check_address()
        recipe(context.provider)
        return cls(context)

    def layer(self, sending: MakeLayer) -> Layer:
        return sending(self.complete)

    async def complete(self, request: Request) -> Response:
        """Return the response of a worker's provider, or raise its error.

        Raises Transient if the worker died, and ConfigError if workers cannot do the work.
        """
        if self._connecting is None:
            await self._start()
        await self._until(any, _ONE_WAIT)
        worker = self._pick(request.prefix[0])
        state = Capabilities.of(self._provider).shared_state
        lesson = b""
        if state != worker.shared_state:
            worker.shared_state = state
            lesson = pickle.dumps(state)
        raw_reply = await self._ask_actor(worker, request, lesson)
        worker.deaths = 0
        self._answered = True
        # The bytes are from a worker of this run.
        reply, learned = pickle.loads(raw_reply)  # noqa: S301
        if learned is not None:
            worker.shared_state = learned
            self._provider.shared_state = learned  # type: ignore[attr-defined]
        if isinstance(reply, JudgeError):
            raise reply
        response: Response = reply
        return response

    async def _ask_actor(
        self, worker: _Worker, request: Request, lesson: bytes
    ) -> bytes:
        """Return what `answer` returns on a worker. Raises Refused, and Transient if it died."""
        actor = worker.actor
        reference = actor.complete.remote(request, lesson)
        worker.load += 1
        try:
            raw_reply: bytes = await reference
        except asyncio.CancelledError:
            ray().cancel(reference)
            raise
        except Exception as error:
            if not _is_death(error):
                problem = f"the worker on {worker.node} failed: {_cause(error)!r}"
                raise Refused(
                    f"{option('engine', 'ray')}: {problem}",
                    billed=True,
                    stops="if_first",
                ) from error
            self._lost_requests += 1
            self._count_losses()
            # Only the first of the actor's requests starts a new one.
            if worker.actor is actor and worker.ready:
                self._bring_up(worker)
            problem = f"the Ray worker on {worker.node} was lost: {first_line(error)}"
            raise Transient(problem, stops="if_first") from None
        finally:
            worker.load -= 1
        return raw_reply

    async def aclose(self) -> None:
        """End the workers, and the cluster if it was started for them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for worker in self._workers:
            _kill(worker)
        self._workers = []
        connecting = self._connecting
        self._connecting = None
        if connecting is not None:
            await asyncio.wait([connecting])
            if connecting.exception() is None:
                await asyncio.to_thread(disconnect)

    async def _start(self) -> None:
        """Start the workers, and return when at least one is ready.

        Raises ConfigError if a worker that is ready by then cannot do this run's work. If a later
        one cannot, it stops the run before the first answer, and is left out with a remark after
        it.
        """
        before = self._counts.batch_status
        self._counts.batch_status = _STARTING
        try:
            connecting = asyncio.to_thread(connect, self._requested_workers or 1)
            self._connecting = asyncio.ensure_future(connecting)
            # A thread cannot be cancelled, so `aclose` undoes its work.
            await asyncio.shield(self._connecting)
            _restore_signal_handlers()
            nodes = await asyncio.to_thread(placements, self._requested_workers)
            for number, placement in enumerate(nodes):
                self._workers.append(_Worker(number, placement, node=placement.name))
            for worker in self._workers:
                self._bring_up(worker)
            # A cluster may have no room for all workers; the run begins with those that started.
            with suppress(Refused):
                await self._until(all, _ALL_WAIT)
            await self._until(any, _ONE_WAIT)
        finally:
            if self._counts.batch_status == _STARTING:
                self._counts.batch_status = before

    async def _until(
        self, enough: Callable[[Iterable[bool]], bool], seconds: float
    ) -> None:
        """Wait until enough workers are ready, `all` or `any`.

        Raises Refused after this time, and the error that ends the run.
        """

        def is_over() -> bool:
            are_ready = (worker.ready for worker in self._workers)
            return self._failure is not None or enough(are_ready)

        if not is_over():
            # The checks below say what is wrong.
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while not is_over():
                        self._changed.clear()
                        await self._changed.wait()
        if self._failure is not None:
            raise self._failure
        if not enough(worker.ready for worker in self._workers):
            engine_option = option("engine", "ray")
            raise Refused(
                f"{engine_option}: none of {len(self._workers)} workers started within "
                f"{seconds:.0f} s: the cluster has no room, or its nodes' ports are not open to "
                "this machine; see ray status",
                stops="always",
            )

    def _bring_up(self, worker: _Worker) -> None:
        """Start a worker, which takes no requests until then. If that fails, it is left out."""
        worker.ready = False

        def end(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self._leave_out(worker, error)
            self._changed.set()

        task = asyncio.create_task(self._open(worker))
        self._tasks.add(task)
        task.add_done_callback(end)

    def _leave_out(self, worker: _Worker, error: BaseException) -> None:
        self._workers.remove(worker)
        # The others continue without a node on which workers die: Ray lists a lost node for a
        # while.
        if self._workers and (self._answered or isinstance(error, Refused)):
            self._counts.remarks.append(f"A Ray worker was left out: {error}")
        elif isinstance(error, JudgeError):
            self._failure = error
        else:
            self._failure = Refused(f"{error!r}", stops="always")

    async def _open(self, worker: _Worker) -> None:
        """Give a worker an actor, and another after each that dies.

        Raises ConfigError and Refused.
        """
        if worker.actor is not None:
            await self._bury(worker)
        opened: tuple[str, str] | None = None
        while opened is None:
            worker.actor = _new_actor(worker.placement)
            worker.shared_state = Capabilities.of(self._provider).shared_state
            try:
                provider_recipe = recipe(self._provider)
                opened = await worker.actor.open.remote(__version__, provider_recipe)
            except Exception as error:
                if not _is_death(error):
                    engine_option = option("engine", "ray")
                    cause = _cause(error)
                    raise ConfigError(
                        f"{engine_option}: the worker on {worker.node} cannot ask this judge: "
                        f"{cause}\nIt has the environment in which Ray was started there, and "
                        f"needs textjudge {__version__}."
                    ) from error
                await self._bury(worker)
        node, endpoint = opened
        if endpoint != self._provider.endpoint:
            raise ConfigError(
                f"{option('engine', 'ray')}: the worker on {node} would ask {endpoint}, and not "
                f"{self._provider.endpoint}: are its files the same as here?"
            )
        worker.node = node
        worker.ready = True

    async def _bury(self, worker: _Worker) -> None:
        """Remove a dead actor, and wait before the next one. Raises Refused after too many."""
        _kill(worker)
        worker.deaths += 1
        self._lost_workers += 1
        self._count_losses()
        most_deaths = _MAX_DEATHS if self._answered else _MAX_FIRST_DEATHS
        if worker.deaths >= most_deaths:
            raise Refused(
                f"{option('engine', 'ray')}: {worker.deaths} workers in a row died on "
                f"{worker.node} before they had answered anything. Ray's logs there say why; "
                "memory may be short.",
                stops="always",
            )
        await asyncio.sleep(min(_MAX_RESTART, _FIRST_RESTART * 2**worker.deaths))

    def _count_losses(self) -> None:
        """Replace the remark that says how many workers and requests were lost."""
        remarks = self._counts.remarks
        if self._remark in remarks:
            remarks.remove(self._remark)
        workers = plural(self._lost_workers, "Ray worker")
        requests = plural(self._lost_requests, "request")
        verb = "was" if self._lost_requests == 1 else "were"
        self._remark = f"{workers} died; {requests} in flight there {verb} sent again."
        remarks.append(self._remark)

    def _pick(self, group: str) -> _Worker:
        """Return the ready worker for a request; without a group, the one with the least load.

        A group has an order of workers of its own, so that few workers read its prefix. The next
        worker in that order gets a request if the ones before it have over 8 requests more than
        twice the load of the least busy one.
        """
        ready = [worker for worker in self._workers if worker.ready]
        ready.sort(key=lambda worker: worker.load)
        if not group:
            return ready[0]
        most_load = 2 * ready[0].load + _MAX_LEAD
        order = sorted(ready, key=lambda worker: hash((group, worker.number)))
        return next(worker for worker in order if worker.load <= most_load)


def _restore_signal_handlers() -> None:
    """Set this process's signal handlers again.

    Ray replaces them by one that ends the process with a dump of its stack.
    """
    # Only the main thread can set handlers.
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if handler is not None:
            signal.signal(number, handler)


def _new_actor(placement: Placement) -> Any:
    """Start an actor on a node."""
    affinity = ray().util.scheduling_strategies.NodeAffinitySchedulingStrategy
    make_remote = ray().remote(
        num_cpus=0,
        num_gpus=0,
        max_concurrency=_MAX_CONCURRENCY,
        scheduling_strategy=affinity(placement.node, soft=False),
    )
    return make_remote(actor_class()).remote()


def recipe(provider: Provider) -> bytes:
    """Return a provider as bytes for the workers. Raises ConfigError if it cannot be sent."""
    dumps: Callable[..., bytes] = ray().cloudpickle.dumps
    try:
        return dumps(provider, pickle.HIGHEST_PROTOCOL)
    except JudgeError:
        raise
    except Exception as error:
        # An object's own pickling may raise anything.
        raise ConfigError(
            f"{option('engine', 'ray')}: {provider.name}/{provider.model} cannot be sent to "
            f"workers ({error}); give its class __reduce__, which says how to make it again, or "
            "leave the engine out"
        ) from error


def _kill(worker: _Worker) -> None:
    actor = worker.actor
    worker.actor = None
    if actor is not None:
        # It may be dead already, or Ray itself may.
        with suppress(Exception):
            ray().kill(actor)


def _is_death(error: BaseException) -> bool:
    """Return whether an error is about a dead worker, and not raised by the code on a worker."""
    exceptions = ray().exceptions
    if isinstance(error, exceptions.RayTaskError):
        return False
    return isinstance(error, exceptions.RayError)


def _cause(error: BaseException) -> BaseException:
    """Return the error that the code on a worker raised, without Ray's error around it."""
    while isinstance(error, ray().exceptions.RayTaskError):
        error = error.cause
    return error
