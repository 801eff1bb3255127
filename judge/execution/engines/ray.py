"""The Ray engine: the run stays in this process, and an actor on each worker sends its requests.

All judges of this process share one connection to the cluster: the first opens it and the last closes it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import platform
import signal
import socket
import sys
import threading
import traceback
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

from judge.core.errors import ConfigError, JudgeError, MissingExtra, Refused, Transient
from judge.core.format import plural
from judge.core.records import Request, Response
from judge.core.version import __version__
from judge.execution import engines
from judge.execution.engines import Ask, Done, EngineContext
from judge.providers import Capabilities, Provider

_CONNECT_TIMEOUT = 3.0
_SETTINGS = b"\x04"
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)
"""What an HTTP/2 connection begins with, both ways: Ray's server speaks gRPC, and its client waits long for others."""
_STORE = 256 << 20
_NO_TELEMETRY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_DEBUGGER = "PYTHONBREAKPOINT"
_ALL_WAIT, _ONE_WAIT = 30.0, 300.0
"""Seconds for which all workers are waited for, and then one: a cluster that grows on demand starts machines for it."""
_MAX_CONCURRENCY = 10_000
"""Requests that an actor takes at once: how many there are is for the run's own limits to say."""
_DEATHS_BEFORE_ANSWER, _DEATHS_AFTER_ANSWER = 3, 12
"""Deaths without an answer after which a worker has no successor: of all before the first answer, and of one later.
One request that kills who is asked it is given up before that, by itself."""
_MAX_GROUPS, _MAX_LEAD = 10_000, 8
"""Groups that are known by their workers, and requests that a worker may have more than twice those of another before
the other takes some of its groups': about as many as one prefix more is worth."""
_FIRST_RESTART, _MAX_RESTART = 0.1, 5.0
"""Seconds before a lost worker's place is given to another: the first, and doubled with every death up to the most."""
_STARTING = "Ray: workers are starting"


def ray() -> Any:
    """The package, which is imported when it is needed: whoever has workers nowhere need not have it."""
    return import_module("ray")


def check_address() -> None:
    """Raises ConfigError where $RAY_ADDRESS names a cluster that cannot be reached. Starts nothing.

    With $RAY_USE_TLS what answers there is not asked whether it is Ray: it speaks only to who shows a certificate.
    """
    address = os.environ.get("RAY_ADDRESS", "").strip()
    if address in ("", "auto", "local") or ("ray" in sys.modules and ray().is_initialized()):
        return
    if "://" in address:
        raise ConfigError(
            f"--engine ray: $RAY_ADDRESS is {address}, and Ray Client is not supported; start judge on a machine of "
            "the cluster, with RAY_ADDRESS=auto"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ConfigError(f"--engine ray: $RAY_ADDRESS is {address!r}; write HOST:PORT, as ray start says it, or auto")
    why = ""
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_TIMEOUT) as there:
            if os.environ.get("RAY_USE_TLS") != "1":
                there.sendall(_HELLO)
                why = "" if there.recv(4)[3:] == _SETTINGS else "what answers there is not Ray"
    except OSError as error:
        why = str(error)
    if why:
        raise ConfigError(
            f"--engine ray: no Ray cluster answers at $RAY_ADDRESS {address} ({why}); start one there "
            "(ray start --head), or unset the variable for workers on this machine alone"
        )


_lock = threading.Lock()
_connection = ExitStack()
_users = 0


def connect(processes: int) -> None:
    """Connect, or start a cluster on this machine where $RAY_ADDRESS names none; blocks for seconds.

    Raises ConfigError. Once for each `disconnect`.
    """
    global _users
    with _lock:
        if not _users:
            _connection.enter_context(_connected(processes))
        _users += 1


def disconnect() -> None:
    """Let go of the connection, where nobody else uses it."""
    global _users
    with _lock:
        _users -= 1
        if not _users:
            _connection.close()


@contextmanager
def _connected(processes: int) -> Iterator[None]:
    """A connection that is quiet and reports to nobody. One that was there before is used, and stays as it is."""
    if ray().is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS", "").strip() or "local"
    options = {"num_cpus": processes, "object_store_memory": _STORE, "include_dashboard": False}
    logger, nowhere, silent = logging.getLogger("ray"), logging.NullHandler(), {"logging_level": logging.ERROR}
    level, environment = logger.level, {name: os.environ.get(name) for name in (*_NO_TELEMETRY, _DEBUGGER)}
    logger.addHandler(nowhere)  # errors go nowhere but where the caller's own handlers put them
    logger.setLevel(logging.ERROR)
    os.environ.update(_NO_TELEMETRY)
    try:
        try:
            silent |= {"log_to_driver": False, "configure_logging": False}
            ray().init(address=address, **silent, **(options if address == "local" else {}))
        except Exception as error:
            where = "on this machine" if address == "local" else f"at $RAY_ADDRESS {address}"
            raise ConfigError(
                f"--engine ray: no cluster {where}: {str(error).strip() or type(error).__name__}"
            ) from error
        finally:
            for name, value in environment.items():
                os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        with _without_death_messages():
            yield
            ray().shutdown()
    finally:
        logger.removeHandler(nowhere)
        logger.setLevel(level)


@contextmanager
def _without_death_messages() -> Iterator[None]:
    """Keep what Ray prints about workers' deaths out of a report on standard output; it has no option for that."""
    worker: Any = import_module("ray._private.worker")
    before = getattr(worker, "print_to_stdstream", None)
    worker.print_to_stdstream = lambda *_, **__: None
    yield
    worker.print_to_stdstream = before


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a worker may run: a node by Ray's id and its name, and how many GPUs the worker takes there."""

    node: str
    name: str
    gpus: int = 0


def placements(count: int | None, *, gpu: bool) -> list[Placement]:
    """Where workers go: one on each node, or as many as wanted in turn.

    Where they are to have a GPU and there are any, one for each GPU. Raises ConfigError where that is fewer than
    wanted, or where no node can be reached: one that has just died is listed as alive for a while.
    """
    with _lock:  # a connection that is let go of while it is asked takes the whole process with it
        listed = [node for node in ray().nodes() if node["Alive"]]
    nodes = [node for node in listed if _is_reachable(node["NodeManagerAddress"], node["NodeManagerPort"])]
    if not nodes:
        raise ConfigError(
            "--engine ray: no machine of the cluster can be reached from here; its nodes' ports have to be open to the "
            "machine of the run (docs.ray.io, configuring Ray, ports)"
        )
    with_gpus = [node for node in nodes for _ in range(int(node["Resources"].get("GPU", 0)))] if gpu else []
    if cards := [Placement(node["NodeID"], node["NodeManagerHostname"], 1) for node in with_gpus]:
        if count is not None and count > len(cards):
            raise ConfigError(
                f"--ray-workers {count}: each takes a GPU for this model, of which the cluster has {len(cards)}"
            )
        return cards[:count]
    nodes = [node for node in nodes if node["Resources"].get("CPU")] or nodes
    places = [Placement(node["NodeID"], node["NodeManagerHostname"]) for node in nodes]
    return [places[i % len(places)] for i in range(count or len(places))]


def _is_reachable(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT).close()
    except OSError:
        return False
    return True


# On a worker.


def actor_class() -> type:
    """The class of the actors. It is sent whole: what there is of `judge` is found out where it runs."""

    class Worker:
        async def open(self, version: str, recipe: bytes) -> tuple[str, str, str, str]:
            """The node's name, the version of judge, the endpoint, and why it cannot ask it, or ""."""
            import os
            import pickle
            import platform
            from importlib import import_module

            node = platform.node()
            if os.environ.get("OMP_NUM_THREADS") == "1":  # Ray's, for an actor that has reserved no CPU
                del os.environ["OMP_NUM_THREADS"]
            try:
                from judge.core.version import __version__
            except ImportError as error:
                return node, "", "", str(error)
            if __version__ != version:
                return node, __version__, "", ""
            # By name: a reference to this module would import judge on the worker before its version is checked.
            self.module = import_module("judge.execution.engines.ray")
            try:
                self.provider = pickle.loads(recipe)  # noqa: S301  (from the process that started this worker)
            except Exception as error:  # noqa: BLE001  (whatever the provider's own code or a missing package raises)
                return node, version, "", self.module.describe(error)
            return node, version, self.provider.endpoint, ""

        async def complete(self, request: Any, lesson: bytes) -> bytes:
            answer: bytes = await self.module.answer(self.provider, request, lesson)
            return answer

        async def until_death(self) -> None:
            import asyncio

            await asyncio.Event().wait()

    return Worker


def describe(error: Exception) -> str:
    return str(error) if isinstance(error, JudgeError) else f"{type(error).__name__}: {error}"


async def answer(provider: Provider, request: Request, lesson: bytes) -> bytes:
    """The provider's reply or its error, and what it has learned meanwhile, None where nothing; pickled.

    `lesson` is what the providers of others have learned, empty where nothing.
    """
    reply: Response | Exception
    before = Capabilities.of(provider).shared_state
    try:
        if lesson:
            before = provider.shared_state = pickle.loads(lesson)  # type: ignore[attr-defined]  # noqa: S301
        reply = await provider.complete(request)
    except Exception as error:  # noqa: BLE001  (raised again where it is waited for)
        reply = _picklable(error)
    state = Capabilities.of(provider).shared_state
    learned = None if state == before else state
    try:
        return pickle.dumps((reply, learned))
    except Exception as error:  # noqa: BLE001  (whatever an object's own pickling raises)
        return pickle.dumps((_unsendable(error), learned))


def _unsendable(error: Exception) -> Refused:
    """What becomes of one reply that cannot be sent: its price is paid, and asking again would be of no use."""
    return Refused(
        f"--engine ray: a reply cannot be sent back from the worker on {platform.node()} ({describe(error)}); what the "
        "provider's `complete` returns must be of types that pickle can write, or leave --engine out",
        billed=True,
        stops="if_first",
    )


def _picklable(error: Exception) -> Exception:
    """The error as it is where it can be sent, with the place where it arose if that is a mistake of the program."""
    if not isinstance(error, JudgeError):
        error.add_note(f"On {platform.node()}:\n{''.join(traceback.format_exception(error))}")
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301
    except Exception:  # noqa: BLE001  (whatever an exception's own pickling raises)
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


# In the process of the run.


@dataclass(slots=True, eq=False)
class _Worker:
    """One place for an actor. `deaths` counts the actors in a row that died there without an answer.

    `ready` says that its actor takes requests, of which `load` are under way. `shared_state` is what it knows.
    """

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
    A worker that dies loses the requests it has, which raise Transient, and another takes its place.
    """

    def __init__(self, context: EngineContext) -> None:
        self._provider, self._counts, self._requested = context.provider, context.counts, context.workers
        self._workers: list[_Worker] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._groups: OrderedDict[str, list[_Worker]] = OrderedDict()
        self._news = asyncio.Event()
        self._failure: JudgeError | None = None
        self._connecting: asyncio.Future[None] | None = None
        self._answered = False
        self._lost_workers = self._lost_requests = 0
        self._remark_index = -1

    @classmethod
    def open(cls, context: EngineContext) -> Self:
        """The engine of a run; starts nothing. Raises MissingExtra without Ray, and ConfigError."""
        if find_spec("ray") is None:
            raise MissingExtra("--engine ray needs the package ray: pip install 'textjudge[ray]'")
        check_address()
        recipe(context.provider)
        return cls(context)

    async def __call__(self, requests: AsyncIterator[Request], ask: Ask, done: Done, *, concurrency: int) -> None:
        """Have all requests answered. Raises what ends a run, and ConfigError where workers cannot do the work."""

        async def each() -> AsyncIterator[Request]:
            async for request in requests:
                if not self._tasks:
                    await self._start()
                yield request

        await engines.run_local(each(), ask, done, concurrency=concurrency)

    async def complete(self, request: Request) -> Response:
        """The response of a worker's provider, or the error that it raised. Raises Transient where the worker died."""
        worker = self._pick(request.prefix[0])
        if worker is None or self._failure:
            if not await self._until(any, _ONE_WAIT):
                raise Refused(_no_room(len(self._workers)), stops="always")
            return await self.complete(request)
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
            if (death := _death_reason(error)) is None:
                raise _failure(worker, error) from error
            self._lost_requests += 1
            self._remark_loss()
            if worker.actor is actor:
                worker.ready = False
            raise Transient(f"the Ray worker on {worker.node} was lost: {death}") from None
        finally:
            worker.load -= 1
        worker.deaths, self._answered = 0, True
        try:
            reply, learned = pickle.loads(raw)  # noqa: S301  (from a worker of this run's own)
        except Exception as error:
            raise _unsendable(error) from error
        if learned is not None:
            self._provider.shared_state = worker.shared_state = learned  # type: ignore[attr-defined]
        if isinstance(reply, Exception):
            raise reply
        result: Response = reply
        return result

    async def aclose(self) -> None:
        """Let go of the workers, and of the cluster where it was started for them."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for worker in self._workers:
            _kill(worker)
        self._workers = []
        self._groups.clear()
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
            self._connecting = asyncio.ensure_future(asyncio.to_thread(connect, self._requested or 1))
            await asyncio.shield(self._connecting)  # a thread cannot be stopped: `aclose` undoes what it has done
            if threading.current_thread() is threading.main_thread():
                # This process's handlers again, in place of Ray's, which ends the process with a dump of its stack.
                for which in (signal.SIGINT, signal.SIGTERM):
                    if (handler := signal.getsignal(which)) is not None:
                        signal.signal(which, handler)
            gpu = Capabilities.of(self._provider).gpu
            places = await asyncio.to_thread(placements, self._requested, gpu=gpu)
            self._workers = [_Worker(place, node=place.name) for place in places]
            self._tasks = [asyncio.create_task(self._supervise(worker)) for worker in self._workers]
            if not (await self._until(all, _ALL_WAIT) or await self._until(any, _ONE_WAIT)):
                raise ConfigError(_no_room(len(self._workers)))
        finally:
            if self._counts.batch_status == _STARTING:
                self._counts.batch_status = before

    async def _until(self, enough: Callable[[Iterable[bool]], bool], seconds: float) -> bool:
        """Whether enough workers are ready in time, all or any. Raises what ends the run."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._failure is None and not enough(worker.ready for worker in self._workers):
                    self._news.clear()
                    await self._news.wait()
        if self._failure is not None:
            raise self._failure
        return enough(worker.ready for worker in self._workers)

    async def _supervise(self, worker: _Worker) -> None:
        """Keep an actor in a worker's place, until there is no hope for it."""
        failure = None
        while failure is None:
            try:
                # After a death an actor may be on another node.
                # Ray takes a soft affinity for a hint: a place of its own only matters until its node may be lost.
                affinity = ray().util.scheduling_strategies.NodeAffinitySchedulingStrategy
                strategy = affinity(worker.placement.node, soft=worker.deaths > 0)
                options = {"num_cpus": 0, "num_gpus": worker.placement.gpus, "max_concurrency": _MAX_CONCURRENCY}
                worker.actor = ray().remote(**options, scheduling_strategy=strategy)(actor_class()).remote()
                worker.shared_state = Capabilities.of(self._provider).shared_state
                node, version, endpoint, why = await worker.actor.open.remote(__version__, recipe(self._provider))
                at = f"--engine ray: the worker on {node}"
                if not version:
                    raise ConfigError(f"{at} has no judge ({why}); install textjudge {__version__} there")
                if version != __version__:
                    raise ConfigError(
                        f"{at} has judge {version}, and this is {__version__}; install the same on every node"
                    )
                if why:
                    raise ConfigError(
                        f"{at} cannot ask this judge: {why}\n"
                        "Workers have the environment in which Ray was started there."
                    )
                if endpoint != self._provider.endpoint:
                    raise ConfigError(
                        f"{at} would ask {endpoint}, and not {self._provider.endpoint}: are its files the same as here?"
                    )
                worker.node, worker.ready = node, True
                self._news.set()
                await worker.actor.until_death.remote()
            except Exception as error:  # noqa: BLE001  (raised by whoever waits for an answer)
                failure = self._on_death(worker, error)
            # Ray takes a while to see that a node is gone.
            await asyncio.sleep(0 if failure else min(_MAX_RESTART, _FIRST_RESTART * 2**worker.deaths))
        self._workers.remove(worker)
        if not self._workers or not self._answered:
            self._failure = failure
        else:
            self._counts.remarks.append(f"A Ray worker was left out, and {len(self._workers):,} went on: {failure}")
        self._news.set()

    def _on_death(self, worker: _Worker, error: Exception) -> JudgeError | None:
        """An error, where nobody is to take a worker's place."""
        death, bare = _death_reason(error), _unwrap(error)
        worker.ready = False
        _kill(worker)
        if isinstance(bare, JudgeError):
            return bare
        if death is None:
            return _failure(worker, bare)
        worker.deaths += 1
        self._lost_workers += 1
        self._remark_loss()
        deaths = worker.deaths if self._answered else self._lost_workers
        if deaths < (_DEATHS_AFTER_ANSWER if self._answered else _DEATHS_BEFORE_ANSWER):
            return None
        return Refused(
            f"--engine ray: {deaths} workers in a row died before they had answered anything, the last on "
            f"{worker.node}: {death} Ray's logs there say more; memory may be short.",
            stops="always",
        )

    def _remark_loss(self) -> None:
        """Have the report say how many workers were lost, in one note for all of them."""
        workers, requests, remarks = self._lost_workers, self._lost_requests, self._counts.remarks
        if not workers:
            return
        if self._remark_index < 0:
            self._remark_index = len(remarks)
            remarks.append("")
        remarks[self._remark_index] = (
            f"{plural(workers, 'Ray worker')} died; {plural(requests, 'request')} in flight there sent again."
        )

    def _pick(self, group: str) -> _Worker | None:
        """The worker with the least to do, of those that have had this group before; None where there is none at all.

        Whoever has had a group has its prefix at hand, which another would have to read anew. So another gets it only
        where it stands idle or nearly so beside them: where the least busy of them has over 8 requests more than twice
        what the least busy of all has. It is then one of those that have had the group.
        """
        free = min((worker for worker in self._workers if worker.ready), key=lambda worker: worker.load, default=None)
        if free is None or not group:
            return free
        had = [worker for worker in self._groups.pop(group, ()) if worker.ready]
        chosen = min(had, key=lambda worker: worker.load, default=None)
        if chosen is None or chosen.load > 2 * free.load + _MAX_LEAD:
            chosen = free
            had.append(free)
        self._groups[group] = had
        if len(self._groups) > _MAX_GROUPS:
            self._groups.popitem(last=False)
        return chosen


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


def _failure(worker: _Worker, error: BaseException) -> Refused:
    return Refused(f"--engine ray: the worker on {worker.node} failed: {_unwrap(error)!r}", stops="always")


def _kill(worker: _Worker) -> None:
    actor, worker.actor = worker.actor, None
    if actor is not None:
        with suppress(Exception):  # it is dead already, or Ray is
            ray().kill(actor)


def _unwrap(error: BaseException) -> BaseException:
    """What a program raised on a worker, out of Ray's error around it; any other error as it is."""
    while isinstance(error, ray().exceptions.RayTaskError):
        error = error.cause
    return error


def _death_reason(error: BaseException) -> str | None:
    """What Ray says of a worker that is no more, in one sentence or two; None for any other error."""
    error, kind = _unwrap(error), ray().exceptions.RayError
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
