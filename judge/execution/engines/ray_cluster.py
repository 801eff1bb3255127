"""The connection to a Ray cluster, and the worker that runs there.

All judges of this process share one connection: the first opens it and the last closes it. A worker holds a provider
of its own and answers blocks of requests. Blocks are pickled here, so that Ray moves one object for each.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from judge.core.errors import ConfigError, JudgeError, Refused
from judge.core.records import Request, Response
from judge.providers import Capabilities, Provider

_CONNECT_TIMEOUT = 3.0
_SETTINGS = b"\x04"
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)
"""What an HTTP/2 connection begins with, both ways: Ray's server speaks gRPC, and its client waits long for others."""
_STORE = 256 << 20
_NO_TELEMETRY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_DEBUGGER = "PYTHONBREAKPOINT"
_lock = threading.Lock()
_users = 0
_started_here = False
_print: Callable[..., None] | None = None
_level = logging.NOTSET
_nowhere = logging.NullHandler()


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a worker may run: a node by Ray's id and its name, and how many GPUs the worker takes there."""

    node: str
    name: str
    gpus: int = 0


def ray() -> Any:
    """The package, which is imported when it is needed: whoever has workers nowhere need not have it."""
    return import_module("ray")


def check() -> None:
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


def connect(processes: int) -> None:
    """Connect, or start a cluster on this machine where $RAY_ADDRESS names none; blocks for seconds.

    Where this process is connected already, it stays so. Raises ConfigError. Once for each `leave`.
    """
    global _users, _started_here
    with _lock:
        if not _users and not ray().is_initialized():
            address = os.environ.get("RAY_ADDRESS", "").strip() or "local"
            _silence_logging(True)
            local_options = {"num_cpus": processes, "object_store_memory": _STORE, "include_dashboard": False}
            try:
                with _without_telemetry():
                    ray().init(
                        address=address, log_to_driver=False, configure_logging=False, logging_level=logging.ERROR,
                        **(local_options if address == "local" else {}),
                    )  # fmt: skip
            except Exception as error:
                _silence_logging(False)
                where = "on this machine" if address == "local" else f"at $RAY_ADDRESS {address}"
                raise ConfigError(
                    f"--engine ray: no cluster {where}: {str(error).strip() or type(error).__name__}"
                ) from error
            _silence_death_messages(True)
            _started_here = True
        _users += 1


def disconnect() -> None:
    """Let go of the connection, where it was made here and nobody else uses it."""
    global _users, _started_here
    with _lock:
        _users -= 1
        if not _users and _started_here:
            _started_here = False
            ray().shutdown()
            _silence_death_messages(False)
            _silence_logging(False)


def spots(count: int | None, *, gpu: bool) -> list[Placement]:
    """Where workers go: one on each node, or as many as wanted in turn.

    Where they are to have a GPU and there are any, one for each GPU. Raises ConfigError where that is fewer than
    wanted, or where there is no node.
    """
    nodes = _alive_nodes()
    if not nodes:
        raise ConfigError(
            "--engine ray: no machine of the cluster can be reached from here; its nodes' ports have to be open to the "
            "machine of the run (docs.ray.io, configuring Ray, ports)"
        )
    if gpu and (
        cards := [Placement(*_identity(n), 1) for n in nodes for _ in range(int(n["Resources"].get("GPU", 0)))]
    ):
        if count is not None and count > len(cards):
            raise ConfigError(
                f"--ray-workers {count}: each takes a GPU for this model, of which the cluster has {len(cards)}"
            )
        return cards[:count]
    places = [Placement(*_identity(n)) for n in nodes if n["Resources"].get("CPU")] or [
        Placement(*_identity(n)) for n in nodes
    ]
    return [places[i % len(places)] for i in range(count or len(places))]


def nearest_alive(spot: Placement) -> Placement:
    """The spot if its node is alive, else one like it on another. Raises Refused where there is none."""
    nodes = _alive_nodes()
    if any(node["NodeID"] == spot.node for node in nodes):
        return spot
    able = [node for node in nodes if node["Resources"].get("GPU", 0) >= spot.gpus] or nodes
    if not able:
        raise Refused(
            "--engine ray: no machine of the cluster is left; Ray has died there or was stopped", stops="always"
        )
    return Placement(*_identity(able[0]), spot.gpus)


def _alive_nodes() -> list[dict[str, Any]]:
    """The nodes that Ray lists as alive and that can be reached: one that has just died stays listed for a while."""
    with _lock:  # a connection that is let go of while it is asked takes the whole process with it
        listed = [node for node in ray().nodes() if node["Alive"]]
    return [node for node in listed if _is_reachable(node["NodeManagerAddress"], node["NodeManagerPort"])]


def _is_reachable(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT).close()
    except OSError:
        return False
    return True


def restore_signal_handlers() -> None:
    """Have this process's handlers called again, in place of Ray's, which ends the process with a dump of its stack.

    Python can do so in the main thread alone.
    """
    if threading.current_thread() is threading.main_thread():
        for which in (signal.SIGINT, signal.SIGTERM):
            if (handler := signal.getsignal(which)) is not None:
                signal.signal(which, handler)


def _identity(node: dict[str, str]) -> tuple[str, str]:
    return node["NodeID"], node["NodeManagerHostname"]


def _silence_logging(silent: bool) -> None:
    """Have Ray log its errors alone, and those nowhere but where the caller's own handlers put them; and undo it."""
    global _level
    logger = logging.getLogger("ray")
    if silent:
        _level = logger.level
        logger.addHandler(_nowhere)
        logger.setLevel(logging.ERROR)
    else:
        logger.removeHandler(_nowhere)
        logger.setLevel(_level)


def _silence_death_messages(silent: bool) -> None:
    """Keep what Ray prints about workers' deaths out of a report on standard output; it has no option for that."""
    global _print
    with suppress(ImportError, AttributeError):
        worker: Any = import_module("ray._private.worker")
        _print = _print or worker.print_to_stdstream
        worker.print_to_stdstream = (lambda *_, **__: None) if silent else _print


@contextmanager
def _without_telemetry() -> Iterator[None]:
    """Have Ray neither report its use to its makers nor print about it, nor take over `breakpoint()`."""
    before = {name: os.environ.get(name) for name in (*_NO_TELEMETRY, _DEBUGGER)}
    os.environ.update(_NO_TELEMETRY)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


Reply = Response | Exception
_LINGER = 0.002
"""Seconds that a finished answer waits for others, so that they share one way back."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker says of itself before it is given anything to do. `why` is what keeps it from that, or ""."""

    node: str
    version: str
    endpoint: str = ""
    why: str = ""


def encode_block(requests: Iterable[tuple[int, Request]], dropped: Sequence[int], shared_state: Any) -> bytes:
    """A block: requests by number, the numbers of those nobody waits for any more, and what others have learned."""
    fields = [(n, r.model, r.messages, r.params, r.draw, r.endpoint, r.prefix) for n, r in requests]
    numbers = [number for number, *_ in fields]  # to be told of, should the rest be of no use there
    return _pickled((numbers, list(dropped), _pickled((fields, shared_state))))


def decode_answers(block: bytes) -> tuple[list[tuple[int, Reply]], Any]:
    """The answers in what a worker sent, by number, and what its provider has learned, None where nothing."""
    answers, shared_state = pickle.loads(block)  # noqa: S301  (from a worker of this run's own)
    return [(number, _reply(raw)) for number, raw in answers], shared_state


def _pickled(value: Any) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def _reply(raw: bytes) -> Reply:
    try:
        reply: Reply = pickle.loads(raw)  # noqa: S301  (from a worker of this run's own)
    except Exception as error:  # noqa: BLE001  (whatever an object's own unpickling raises)
        return _unsendable(error)
    return reply


def _unsendable(error: Exception) -> Refused:
    """What becomes of one reply that cannot be sent: its price is paid, and asking again would be of no use."""
    why = f"{type(error).__name__}: {error}"
    return Refused(
        f"--engine ray: a reply cannot be sent back from the worker on {platform.node()} ({why}); what the provider's "
        "`complete` returns must be of types that pickle can write, or leave --engine out",
        billed=True,
        stops="if_first",
    )


class Worker:
    """Asks its provider all that it is given at once: how many those are is for whoever gives them to say."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._answers: list[tuple[int, bytes]] = []
        self._news = asyncio.Event()
        self._shared_state = Capabilities.of(provider).shared_state

    def take(self, block: bytes) -> None:
        """Begin with what is in a block, and let go of what is dropped there.

        Nobody waits for the end of this call: an error in it is the reply to all that the block asks.
        """
        numbers, dropped, rest = pickle.loads(block)  # noqa: S301  (from the process that started this worker)
        try:
            fields_by_number, shared_state = pickle.loads(rest)  # noqa: S301
            requests = [(number, Request(*fields)) for number, *fields in fields_by_number]
            if shared_state is not None:
                self._provider.shared_state = self._shared_state = shared_state  # type: ignore[attr-defined]
        except Exception as error:  # noqa: BLE001  (raised again where the replies are waited for)
            requests, failed = [], _picklable(error)
            for number in numbers:
                self._put(number, failed)
        for number, request in requests:
            self._tasks[number] = asyncio.create_task(self._answer(number, request))
        for number in dropped:
            if task := self._tasks.pop(number, None):
                task.cancel()

    async def answers(self) -> bytes:
        """All that was answered since the last call, once there is anything."""
        await self._news.wait()
        await asyncio.sleep(_LINGER)
        self._news.clear()
        answers, self._answers = self._answers, []
        shared_state = Capabilities.of(self._provider).shared_state
        news, self._shared_state = None if shared_state == self._shared_state else shared_state, shared_state
        return _pickled((answers, news))

    async def _answer(self, number: int, request: Request) -> None:
        reply: Reply
        try:
            reply = await self._provider.complete(request)
        except Exception as error:  # noqa: BLE001  (raised again where it is waited for)
            reply = _picklable(error)
        self._tasks.pop(number, None)  # it is gone where nobody waits any more, and the provider did not stop
        self._put(number, reply)

    def _put(self, number: int, reply: Reply) -> None:
        """Each by itself: one that cannot be sent keeps back no other."""
        try:
            raw = _pickled(reply)
        except Exception as error:  # noqa: BLE001  (whatever an object's own pickling raises)
            raw = _pickled(_unsendable(error))
        self._answers.append((number, raw))
        self._news.set()


def _picklable(error: Exception) -> Exception:
    """The error as it is where it can be sent, with the place where it arose if that is a mistake of the program."""
    if not isinstance(error, JudgeError):
        error.add_note(f"On {platform.node()}:\n{''.join(traceback.format_exception(error))}")
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301
    except Exception:  # noqa: BLE001  (whatever an exception's own pickling raises)
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def actor_class() -> type:
    """The class that runs on a worker. It is sent whole: what there is of `judge` is found out where it runs."""

    class Worker:
        async def open(self, version: str, recipe: bytes) -> tuple[str, str, str, str]:
            import os
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
            # By name: a reference to `create_worker` would import judge on the worker before its version is checked.
            here = import_module("judge.execution.engines.ray_cluster")
            self.hand, endpoint, why = here.create_worker(recipe)
            return node, version, endpoint, why

        async def take(self, block: bytes) -> None:
            self.hand.take(block)

        async def answers(self) -> bytes:
            answers: bytes = await self.hand.answers()
            return answers

    return Worker


def create_worker(recipe: bytes) -> tuple[Worker | None, str, str]:
    """The hand that has this recipe's provider and that one's endpoint, or why there is none."""
    try:
        provider: Provider = pickle.loads(recipe)  # noqa: S301  (from the process that started this worker)
        return Worker(provider), provider.endpoint, ""
    except JudgeError as error:
        return None, "", str(error)
    except Exception as error:  # noqa: BLE001  (whatever the provider's own code or a missing package raises)
        return None, "", f"{type(error).__name__}: {error}"
