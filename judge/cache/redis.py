"""Client of the Redis or Valkey server that several machines share as a cache.

A background thread sends the writes, so that a run never waits for the network. Replies are stored at
`judge:reply:KEY` as `base.encode` writes them and prompts at `judge:prompt:DIGEST`, both without an expiry. The
process that is asking for a reply is stored at `judge:claim:KEY` and expires soon after that process ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import uuid4

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from judge.cache import base
from judge.core.errors import ConfigError, StorageError
from judge.core.redis_url import RedisUrl

BLOCK = 500
_MAX_PENDING = 20_000
"""Texts that may be on their way at once."""


@dataclass(slots=True)
class Writes:
    """Rows to be written, those in `new` if there are none yet; then leases to be ended."""

    rows: dict[str, str] = field(default_factory=dict)
    new: set[str] = field(default_factory=set)
    released: set[str] = field(default_factory=set)


class WriteBehindQueue:
    """Hands writes to `send`, many at once; it returns whether they were taken.

    The same thread calls `beat` whenever the seconds that `pause` returns have gone by.
    """

    def __init__(self, send: Callable[[Writes], bool], beat: Callable[[], None], pause: Callable[[], float]) -> None:
        self._send, self._beat, self._pause = send, beat, pause
        self._queued, self._in_flight = Writes(), Writes()
        self._rejected: list[str] = []
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, or look again for how long to pause."""
        with self._changed:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="judge-cache", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def add(self, writes: Writes) -> bool:
        """Have them sent; False if too much is on its way already."""
        with self._changed:
            queued = self._queued
            count = len(self._in_flight.rows) + len(queued.rows) + len(writes.rows)
            if self._closed or (writes.rows and count > _MAX_PENDING):
                return False
            queued.new = (queued.new - writes.rows.keys()) | (writes.new - queued.rows.keys())
            queued.rows |= writes.rows
            queued.released |= writes.released
        self.start()
        return True

    def waiting(self, keys: Collection[str]) -> dict[str, str]:
        """The rows with these keys that are on their way, unless Redis may keep another."""
        with self._changed:
            both = [(writes, key) for writes in (self._in_flight, self._queued) for key in keys if key in writes.rows]
            return {key: writes.rows[key] for writes, key in both if key not in writes.new}

    def rejected(self) -> list[str]:
        """The keys of rows that were not taken since this was last called."""
        with self._changed:
            keys, self._rejected = self._rejected, []
        return keys

    def drain(self, released: Collection[str] | None = None) -> None:
        """Wait until nothing is on its way; with `released`, none of these leases."""

        def busy(writes: Writes) -> bool:
            return (
                bool(writes.rows or writes.released) if released is None else not writes.released.isdisjoint(released)
            )

        with self._changed:
            while (
                self._thread is not None and self._thread.is_alive() and (busy(self._in_flight) or busy(self._queued))
            ):
                self._changed.wait(0.1)

    def close(self) -> bool:
        """Send what is left, and end; False if the thread still waits for an answer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.drain()
        if self._thread is not None:
            self._thread.join(0.1)
        return self._thread is None or not self._thread.is_alive()

    def _run(self) -> None:
        last = time.monotonic()
        while True:
            with self._changed:
                queued = self._queued
                while not (queued.rows or queued.released or self._closed):
                    if (remaining := last + self._pause() - time.monotonic()) <= 0:
                        break
                    self._changed.wait(remaining)
                rows = {key: queued.rows.pop(key) for key in list(islice(queued.rows, BLOCK))}
                self._in_flight = Writes(rows, queued.new & rows.keys())
                queued.new -= rows.keys()
                if not queued.rows:  # a lease ends after its row is written
                    self._in_flight.released, queued.released = queued.released, set()
            if rows or self._in_flight.released:
                taken = self._send(self._in_flight)
                with self._changed:
                    if not taken:
                        self._rejected += rows
                    self._in_flight = Writes()
                    self._changed.notify_all()
            elif self._closed:
                return
            if time.monotonic() >= last + self._pause():
                self._beat()
                last = time.monotonic()


_TIMEOUT = 3.0
"""Seconds that Redis has to connect, and to say anything."""
_LEASE = 15_000
"""Milliseconds for which a claim is valid unless its process renews it."""
_HEARTBEAT = 5.0
"""Seconds between renewals."""
_PROBE_INTERVAL = 1.0
"""Seconds between looks whether a Redis that was lost is back."""
_REFUSAL_PAUSE = 30.0
"""Seconds for which nothing is written to a Redis that refused something."""
_CONNECTION_ERRORS = (redis.RedisError, OSError, UnicodeError)
_CLUSTER_ERRORS = (redis.exceptions.ClusterError, redis.exceptions.AskError, redis.exceptions.ClusterCrossSlotError)
_CLAIM = (  # 0: leased by this process now, 1: leased by another, 2: no text, so nobody's; a lease without an end, too
    "local states = {} for i, key in ipairs(KEYS) do local holder = redis.pcall('get', key) "
    "if type(holder) == 'table' then states[i] = 2 "
    "elseif holder and holder ~= ARGV[1] and redis.call('pttl', key) ~= -1 then states[i] = 1 "
    "else redis.call('set', key, ARGV[1], 'PX', ARGV[2]) states[i] = 0 end end return states"
)
_RENEW = (
    "for i = 1, #KEYS do local own = redis.call('get', KEYS[i]) "
    "if own == ARGV[1] then redis.call('pexpire', KEYS[i], ARGV[2]) "
    "elseif not own then redis.call('set', KEYS[i], ARGV[1], 'PX', ARGV[2]) end end"
)
_RELEASE = "for i = 1, #KEYS do if redis.call('get', KEYS[i]) == ARGV[1] then redis.call('del', KEYS[i]) end end"
_ADVICE = "mend that, or name another or a folder with --cache"
T = TypeVar("T")


class RedisClient:
    """One Redis, for as long as it is in reach: what is asked of it while it is not finds nothing and keeps nothing.

    `on_change` is called, from any thread, when it is lost, back, or refuses to be written to. Methods whose docstring
    names an error raise that instead. Raises ConfigError.
    """

    def __init__(self, address: RedisUrl) -> None:
        self.address = address
        self.on_change: Callable[[], None] = lambda: None
        self.losses: list[tuple[float, str]] = []
        """When it was lost, in seconds since the epoch, and why."""
        self.away = 0.0
        """Seconds that it was out of reach, up to when it last came back."""
        self.refusal = ""
        """What it said when it refused to be written to; empty where it never did."""
        self._down_since: float | None = None
        self._write_after = 0.0
        self._token = uuid4().hex
        self._held: set[str] = set()
        self._claims, self._state = threading.Lock(), threading.Lock()
        self.outbox = WriteBehindQueue(
            self._deliver, self._heartbeat, lambda: _HEARTBEAT if self._down_since is None else _PROBE_INTERVAL
        )
        try:
            self._redis: Any = redis.Redis.from_url(
                address.url, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT, protocol=2,
                retry=Retry(NoBackoff(), 1, (redis.ConnectionError,)),
            )  # fmt: skip
        except (redis.RedisError, ValueError, TypeError):  # whose words may be those of the address
            raise ConfigError(f"the shared cache {address}: no address that redis-py understands; {_ADVICE}") from None

    @property
    def is_down(self) -> bool:
        """Whether it is out of reach."""
        return self._down_since is not None

    @property
    def writable(self) -> bool:
        """Whether there is any use in writing to it now."""
        return self._down_since is None and time.monotonic() >= self._write_after

    def reach(self, *, must: bool) -> None:
        """Ask it for something. Where it does not answer, that is a ConfigError if it `must`, or else a loss."""
        try:
            self._probe()
        except _CONNECTION_ERRORS as error:
            if must:
                self.close()
                raise ConfigError(f"the shared cache {self.address}: {self._explain(error)}; {_ADVICE}") from None
            self._mark_down(error)

    def get(self, keys: Sequence[str]) -> dict[str, str]:
        """The rows with these keys."""
        return self._try(lambda: self._get(keys), {})

    def put(self, rows: dict[str, str], *, new: dict[str, str] | None = None) -> bool:
        """Have rows written, and `new` ones and prompts if there are none; False if that is of no use now.

        Nobody waits for it; rows that are not taken in the end are in `rejected`.
        """
        new = new or {}
        prompts = {key for key in rows if key.startswith(base.PROMPT)}
        return self.writable and self.outbox.add(Writes(rows | new, new.keys() | prompts))

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Lease these keys, as long as Redis can be written to, and return those that another process has leased."""
        others: set[str] = set()
        self.outbox.drain(keys)  # a release that comes after the claim would end it
        for some in blocks(keys):
            states = self._try(lambda some=some: self._run_script(_CLAIM, some), None) if self.writable else None  # type: ignore[misc]
            if states is not None:
                others.update(key for key, state in zip(some, states, strict=True) if state == 1)
                with self._claims:
                    self._held.update(key for key, state in zip(some, states, strict=True) if state == 0)
                self.outbox.start()
        return others

    def release(self, keys: Iterable[str]) -> None:
        """Hold these no longer, once what was put before is written; nobody waits for it."""
        with self._claims:
            held = [key for key in keys if key in self._held]
            self._held.difference_update(held)
        if held and self._down_since is None:
            self.outbox.add(Writes(released=set(held)))

    def close(self) -> None:
        """Write what is on its way, and let go of what is held and of the connection."""
        self.release(tuple(self._held))
        if self.outbox.close():
            with suppress(*_CONNECTION_ERRORS):
                self._redis.close()

    # All that it holds.

    def keys(self, kind: Literal["reply", "prompt"]) -> Iterator[list[str]]:
        """The keys of all rows of a kind, in blocks; some twice. Raises StorageError."""
        start = len("judge:reply:" if kind == "reply" else "judge:")
        with self._strict():
            names = self._redis.scan_iter(match=f"judge:{kind}:*", count=BLOCK)
            while some := list(islice(names, BLOCK)):
                yield [name[start:].decode("utf-8", "replace") for name in some]

    def stats(self) -> dict[str, int]:
        """Number of `responses`, and `bytes` of these and their prompts. Raises StorageError."""
        sizes: dict[str, object] = {}
        for some in chain(self.keys("reply"), self.keys("prompt")):
            with self._strict():
                pipe = self._redis.pipeline(transaction=False)
                for key in some:
                    pipe.strlen(_name(key))
                sizes |= zip(some, pipe.execute(raise_on_error=False), strict=True)
        return {
            "responses": sum(not key.startswith(base.PROMPT) for key in sizes),
            "bytes": sum(size for size in sizes.values() if isinstance(size, int)),
        }

    def rows(self, keys: Sequence[str]) -> dict[str, str]:
        """`get`, which raises StorageError."""
        with self._strict():
            return self._get(keys)

    def clear(self) -> int:
        """Delete every row; return how many replies there were. Raises StorageError."""
        count = 0
        for some in chain(self.keys("reply"), self.keys("prompt")):
            with self._strict():
                deleted = int(self._redis.unlink(*map(_name, some)))
            count += 0 if some[0].startswith(base.PROMPT) else deleted
        return count

    @contextmanager
    def _strict(self) -> Iterator[None]:
        try:
            yield
        except _CONNECTION_ERRORS as error:
            raise StorageError(f"the shared cache {self.address}: {self._explain(error)}; {_ADVICE}") from None

    # One step each, which raises what redis-py raises.

    def _probe(self) -> None:
        self._redis.mget([_name(""), _name(base.PROMPT)])  # two, which a cluster refuses

    def _get(self, keys: Sequence[str]) -> dict[str, str]:
        texts: dict[str, str] = {}
        for some in blocks(keys):
            values = self._redis.mget(list(map(_name, some)))
            pairs = zip(some, values, strict=True)
            texts |= {key: value.decode("utf-8", "replace") for key, value in pairs if value is not None}
        return texts

    def _run_script(self, script: str, keys: Sequence[str]) -> Any:
        """What a script returns for the leases of these keys; None if Redis refuses it."""
        pipe = self._redis.pipeline(transaction=False)
        pipe.eval(script, len(keys), *map(_lease, keys), self._token, _LEASE)
        answers = pipe.execute(raise_on_error=False)
        return answers[0] if self._accepted(answers) else None

    def _deliver(self, writes: Writes) -> bool:
        def write() -> bool:
            pipe = self._redis.pipeline(transaction=False)
            for key in writes.rows.keys() & writes.new:
                pipe.set(_name(key), writes.rows[key], nx=True)
            if texts := {_name(key): text for key, text in writes.rows.items() if key not in writes.new}:
                pipe.mset(texts)
            if names := list(map(_lease, writes.released)):
                pipe.eval(_RELEASE, len(names), *names, self._token)
            return self._accepted(pipe.execute(raise_on_error=False))

        return self._try(write, False)

    def _accepted(self, answers: Iterable[Any]) -> bool:
        """Whether none of these answers is a refusal, for which it is left alone for a while."""
        refusal = next((answer for answer in answers if isinstance(answer, Exception)), None)
        if refusal is not None:
            self._write_after = time.monotonic() + _REFUSAL_PAUSE
            if not self.refusal:
                self.refusal = self._explain(refusal)
                self.on_change()
        return refusal is None

    # Lost and found.

    def _try(self, work: Callable[[], T], without: T) -> T:
        if self._down_since is not None:
            return without
        try:
            return work()
        except _CONNECTION_ERRORS as error:
            self._mark_down(error)
            return without

    def _mark_down(self, error: Exception) -> None:
        with self._state:
            if self._down_since is not None:
                return
            self._down_since = time.monotonic()
            self.losses.append((time.time(), self._explain(error)))
        self.on_change()
        self.outbox.start()

    def _heartbeat(self) -> None:
        """Renew what is held, or look whether what was lost is back."""
        if self._down_since is None:
            with self._claims:
                held = list(self._held)
            for some in blocks(held):  # what is released meanwhile is so after this, by the same thread
                self._try(lambda some=some: self._run_script(_RENEW, some), None)  # type: ignore[misc]
            return
        with suppress(*_CONNECTION_ERRORS):
            self._probe()
            self.away += time.monotonic() - self._down_since
            self._down_since = None
            self.on_change()

    def _explain(self, error: Exception) -> str:
        """What is wrong, without the password."""
        parts = urlsplit(self.address.url)
        if isinstance(error, redis.AuthenticationError):
            has_password = parts.password or "password=" in parts.query
            return (
                "it refuses the password"
                if has_password
                else "it wants a password (redis://:PASSWORD@HOST..., best in $JUDGE_CACHE)"
            )
        if isinstance(error, redis.TimeoutError):
            tls = ", or it speaks no TLS" if parts.scheme == "rediss" else ""
            return f"no answer within {_TIMEOUT:g} seconds{tls}"
        if isinstance(error, redis.InvalidResponse) or "closed by server" in str(error):
            return "what answers there is no Redis" + ("" if parts.scheme == "rediss" else ", or wants TLS (rediss://)")
        if isinstance(error, _CLUSTER_ERRORS):
            return "it is part of a cluster, in which blocks of replies cannot be read; name a single server"
        below = error.__context__
        reason = (below.strerror if isinstance(below, OSError) else "") or str(error) or type(error).__name__
        more = dict(parse_qsl(parts.query))  # an address may have its password there, too
        secrets = (unquote(parts.password or ""), more.get("password"), more.get("ssl_password"))
        return (
            type(error).__name__
            if any(secret and secret in reason for secret in secrets)
            else reason.strip().rstrip(".")
        )


def blocks(keys: Iterable[str]) -> Iterator[list[str]]:
    """These keys, `BLOCK` at a time."""
    remaining = iter(keys)
    while some := list(islice(remaining, BLOCK)):
        yield some


def _name(key: str) -> str:
    return f"judge:{key}" if key.startswith(base.PROMPT) else f"judge:reply:{key}"


def _lease(key: str) -> str:
    return f"judge:claim:{key}"
