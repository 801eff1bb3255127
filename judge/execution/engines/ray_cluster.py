"""The connection to Ray: one for all judges of this process, made for the first of them and let go with the last."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from judge.core.errors import ConfigError, Refused

_REACHED_WITHIN = 3.0
_SETTINGS = b"\x04"
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)
"""What an HTTP/2 connection begins with, both ways: Ray's server speaks gRPC, and its client waits long for others."""
_STORE = 256 << 20
_SAID_NOTHING = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_DEBUGGER = "PYTHONBREAKPOINT"
_lock = threading.Lock()
_users = 0
_ours = False
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
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHED_WITHIN) as there:
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
    global _users, _ours
    with _lock:
        if not _users and not ray().is_initialized():
            _connect(os.environ.get("RAY_ADDRESS", "").strip() or "local", processes)
            _ours = True
        _users += 1


def disconnect() -> None:
    """Let go of the connection, where it was made here and nobody else uses it."""
    global _users, _ours
    with _lock:
        _users -= 1
        if not _users and _ours:
            _ours = False
            ray().shutdown()
            _mute(False)
            _hush(False)


def spots(wanted: int | None, *, gpu: bool) -> list[Placement]:
    """Where workers go: one on each node, or as many as wanted in turn.

    Where they are to have a GPU and there are any, one for each GPU. Raises ConfigError where that is fewer than
    wanted, or where there is no node.
    """
    nodes = _living()
    if not nodes:
        raise ConfigError(
            "--engine ray: no machine of the cluster can be reached from here; its nodes' ports have to be open to the "
            "machine of the run (docs.ray.io, configuring Ray, ports)"
        )
    if gpu and (cards := [Placement(*_of(n), 1) for n in nodes for _ in range(int(n["Resources"].get("GPU", 0)))]):
        if wanted is not None and wanted > len(cards):
            raise ConfigError(
                f"--ray-workers {wanted}: each takes a GPU for this model, of which the cluster has {len(cards)}"
            )
        return cards[:wanted]
    places = [Placement(*_of(n)) for n in nodes if n["Resources"].get("CPU")] or [Placement(*_of(n)) for n in nodes]
    return [places[i % len(places)] for i in range(wanted or len(places))]


def nearest_alive(spot: Placement) -> Placement:
    """The spot if its node is alive, else one like it on another. Raises Refused where there is none."""
    nodes = _living()
    if any(node["NodeID"] == spot.node for node in nodes):
        return spot
    able = [node for node in nodes if node["Resources"].get("GPU", 0) >= spot.gpus] or nodes
    if not able:
        raise Refused(
            "--engine ray: no machine of the cluster is left; Ray has died there or was stopped", stops="always"
        )
    return Placement(*_of(able[0]), spot.gpus)


def _living() -> list[dict[str, Any]]:
    """The nodes that Ray lists as alive and that can be reached: one that has just died stays listed for a while."""
    with _lock:  # a connection that is let go of while it is asked takes the whole process with it
        listed = [node for node in ray().nodes() if node["Alive"]]
    return [node for node in listed if _reached(node["NodeManagerAddress"], node["NodeManagerPort"])]


def _reached(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_REACHED_WITHIN).close()
    except OSError:
        return False
    return True


def restore_signal_handlers() -> None:
    """Have this process's handlers called again, in place of Ray's, which ends the process with a dump of its stack.

    Python can do so in the main thread alone.
    """
    if threading.current_thread() is threading.main_thread():
        for which in (signal.SIGINT, signal.SIGTERM):
            if (own := signal.getsignal(which)) is not None:
                signal.signal(which, own)


def _of(node: dict[str, str]) -> tuple[str, str]:
    return node["NodeID"], node["NodeManagerHostname"]


def _connect(address: str, processes: int) -> None:
    _hush(True)
    own = {"num_cpus": processes, "object_store_memory": _STORE, "include_dashboard": False}
    try:
        with _quiet():
            ray().init(
                address=address, log_to_driver=False, configure_logging=False, logging_level=logging.ERROR,
                **(own if address == "local" else {}),
            )  # fmt: skip
    except Exception as error:
        _hush(False)
        where = "on this machine" if address == "local" else f"at $RAY_ADDRESS {address}"
        raise ConfigError(f"--engine ray: no cluster {where}: {str(error).strip() or type(error).__name__}") from error
    _mute(True)


def _hush(silent: bool) -> None:
    """Have Ray log its errors alone, and those nowhere but where the caller's own handlers put them; and undo it."""
    global _level
    said = logging.getLogger("ray")
    if silent:
        _level = said.level
        said.addHandler(_nowhere)
        said.setLevel(logging.ERROR)
    else:
        said.removeHandler(_nowhere)
        said.setLevel(_level)


def _mute(silent: bool) -> None:
    """Keep what Ray prints about workers' deaths out of a report on standard output; it has no option for that."""
    global _print
    with suppress(ImportError, AttributeError):
        worker: Any = import_module("ray._private.worker")
        _print = _print or worker.print_to_stdstream
        worker.print_to_stdstream = (lambda *_, **__: None) if silent else _print


@contextmanager
def _quiet() -> Iterator[None]:
    """Have Ray neither report its use to its makers nor print about it, nor take over `breakpoint()`."""
    before = {name: os.environ.get(name) for name in (*_SAID_NOTHING, _DEBUGGER)}
    os.environ.update(_SAID_NOTHING)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
