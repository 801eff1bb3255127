"""Client of the Redis or Valkey server that several machines share as a cache.

A background thread sends the writes, so that a run never waits for the network. Replies are stored at
`judge:reply:KEY` as `base.encode` writes them and prompts at `judge:prompt:DIGEST`, both without an expiry. The
process that is asking for a reply is stored at `judge:claim:KEY` and expires soon after that process ends.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
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


@dataclass(frozen=True, slots=True, eq=False)
class WriteBatch:
    """Rows to be written, and `new` ones where there are none; then claims to be released."""

    rows: dict[str, str] = field(default_factory=dict)
    new: dict[str, str] = field(default_factory=dict)
    released: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.rows) + len(self.new)


class WriteBehindQueue:
    """Hands batches to `send` in their order, several at once; it returns whether all of them were taken.

    `beat` is called by the same thread whenever the seconds that `pause` returns have gone by.
    """

    def __init__(
        self, send: Callable[[Sequence[WriteBatch]], bool], beat: Callable[[], None], pause: Callable[[], float]
    ) -> None:
        self._send, self._beat, self._pause = send, beat, pause
        self._queue: deque[WriteBatch] = deque()
        self._in_flight: list[WriteBatch] = []
        self._rows: dict[str, str] = {}
        self._rejected: list[str] = []
        self._count, self._closed = 0, False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, or look again for how long to pause."""
        with self._changed:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="judge-cache", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def add(self, batch: WriteBatch) -> bool:
        """Have it sent; False where too much is on its way already."""
        with self._changed:
            if self._closed or (len(batch) and self._count + len(batch) > _MAX_PENDING):
                return False
            self._queue.append(batch)
            self._rows.update(batch.rows)
            self._count += len(batch)
        self.start()
        return True

    def waiting(self, keys: Collection[str]) -> dict[str, str]:
        """The rows with these keys that are on their way."""
        with self._changed:
            return {key: self._rows[key] for key in keys if key in self._rows}

    def returned(self) -> list[str]:
        """The keys of rows that were not taken since this was last called."""
        with self._changed:
            keys, self._rejected = self._rejected, []
        return keys

    def drain(self, released: Collection[str] | None = None) -> None:
        """Wait until nothing is on its way; with `released`, none of these."""
        keys = set(released or ())
        with self._changed:
            while self._thread is not None and self._thread.is_alive():
                batches = [*self._in_flight, *self._queue]
                if not any(released is None or not keys.isdisjoint(batch.released) for batch in batches):
                    return
                self._changed.wait(0.1)

    def close(self) -> bool:
        """Send what is left, and end; False where the thread still waits for an answer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.drain()
        if self._thread is not None:
            self._thread.join(0.1)
        return self._thread is None or not self._thread.is_alive()

    def _run(self) -> None:
        last = time.monotonic()
        while self._take_next(last):
            if self._in_flight:
                taken = self._send(self._in_flight)
                with self._changed:
                    for batch in self._in_flight:
                        self._count -= len(batch)
                        for key, text in batch.rows.items():
                            if self._rows.get(key) is text:
                                del self._rows[key]
                        if not taken:
                            self._rejected += batch.rows
                    self._in_flight = []
                    self._changed.notify_all()
            if time.monotonic() >= last + self._pause():
                self._beat()
                last = time.monotonic()

    def _take_next(self, last: float) -> bool:
        """Wait for something to send or the time to beat, and take what there is; False at the end."""
        with self._changed:
            while not self._queue and not self._closed and (remaining := last + self._pause() - time.monotonic()) > 0:
                self._changed.wait(remaining)
            count = 0
            while self._queue and count < BLOCK:
                self._in_flight.append(self._queue.popleft())
                count += 1 + len(self._in_flight[-1])
            return bool(self._in_flight) or not self._closed


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
_HOLDERS = (  # a claim without an end is nobody's
    "local held = redis.call('mget', unpack(KEYS)) for i = 1, #KEYS do "
    "if held[i] and held[i] ~= ARGV[1] and redis.call('pttl', KEYS[i]) == -1 "
    "and redis.pcall('set', KEYS[i], ARGV[1], 'PX', ARGV[2])['ok'] then held[i] = ARGV[1] end end return held"
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
        self._sender = WriteBehindQueue(
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
        """The rows with these keys; what is not text is an empty one."""
        return self._try(lambda: self._get(keys), {})

    def put(self, rows: dict[str, str], *, new: dict[str, str] | None = None) -> bool:
        """Have rows written, and `new` ones and prompts where there are none; False if that is of no use now.

        Nobody waits for it; rows that are not taken in the end are in `rejected`.
        """
        return self.writable and self._sender.add(WriteBatch(rows, new or {}))

    def waiting(self, keys: Sequence[str]) -> dict[str, str]:
        """The rows with these keys that are on their way."""
        return self._sender.waiting(keys)

    def rejected(self) -> list[str]:
        """The keys of rows that were to be written and were not taken, since this was last called."""
        return self._sender.returned()

    def join(self) -> None:
        """Wait until nothing is on its way."""
        self._sender.drain()

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Those of these keys that another holds; the others are held from now on, as long as it can be written to."""
        others: set[str] = set()
        self._sender.drain(keys)  # a release that comes after the claim would end it
        for some in blocks(keys):
            if not self.writable:
                break
            others |= self._try(lambda some=some: self._claim(some), set())  # type: ignore[misc]
        return others

    def release(self, keys: Iterable[str]) -> None:
        """Hold these no longer, once what was put before is written; nobody waits for it."""
        with self._claims:
            held = [key for key in keys if key in self._held]
            self._held.difference_update(held)
        for some in blocks(held if self._down_since is None else ()):
            self._sender.add(WriteBatch(released=some))

    def close(self) -> None:
        """Write what is on its way, and let go of what is held and of the connection."""
        self.release(tuple(self._held))
        if self._sender.close():
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
        replies, prompts, size = set[str](), set[str](), 0
        for seen, blocks_of_keys in ((replies, self.keys("reply")), (prompts, self.keys("prompt"))):
            for some in blocks_of_keys:
                fresh = set(some) - seen
                seen |= fresh
                with self._strict():
                    pipe = self._redis.pipeline(transaction=False)
                    for key in fresh:
                        pipe.strlen(_name(key))
                    size += sum(length for length in pipe.execute(raise_on_error=False) if isinstance(length, int))
        return {"responses": len(replies), "bytes": size}

    def rows(self, keys: Sequence[str]) -> dict[str, str]:
        """`get`, which raises StorageError."""
        with self._strict():
            return self._get(keys)

    def clear(self) -> int:
        """Delete every row; return how many replies there were. Raises StorageError."""
        replies, _ = (sum(map(self._delete, keys)) for keys in (self.keys("reply"), self.keys("prompt")))
        return replies

    def _delete(self, keys: Sequence[str]) -> int:
        with self._strict():
            return int(self._redis.unlink(*map(_name, keys)))

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
            texts |= {key: _text(value) for key, value in zip(some, values, strict=True) if value is not None}
        return texts

    def _claim(self, keys: Sequence[str]) -> set[str]:
        pipe = self._redis.pipeline(transaction=False)
        names = list(map(_lease, keys))
        for name in names:
            pipe.set(name, self._token, nx=True, px=_LEASE)
        pipe.eval(_HOLDERS, len(names), *names, self._token, _LEASE)
        *done, holders = pipe.execute(raise_on_error=False)
        self._accepted([*done, holders])
        if not isinstance(holders, list):
            holders = [None] * len(keys)
        token = self._token.encode()
        with self._claims:
            outcomes = zip(keys, done, holders, strict=True)
            self._held.update(key for key, new, holder in outcomes if new is True or holder == token)
        self._sender.start()
        return {key for key, holder in zip(keys, holders, strict=True) if holder not in (None, token)}

    def _deliver(self, batches: Sequence[WriteBatch]) -> bool:
        def write() -> bool:
            pipe = self._redis.pipeline(transaction=False)
            for batch in batches:
                for key, text in (batch.rows | batch.new).items():
                    pipe.set(_name(key), text, nx=key in batch.new or key.startswith(base.PROMPT))
                if names := list(map(_lease, batch.released)):
                    pipe.eval(_RELEASE, len(names), *names, self._token)
            return self._accepted(pipe.execute(raise_on_error=False))

        return self._try(write, False)

    def _renew(self, keys: Sequence[str]) -> None:
        try:
            self._redis.eval(_RENEW, len(keys), *map(_lease, keys), self._token, _LEASE)
        except redis.ResponseError as error:
            self._accepted([error])

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
        self._sender.start()

    def _heartbeat(self) -> None:
        """Renew what is held, or look whether what was lost is back."""
        if self._down_since is None:
            with self._claims:
                held = list(self._held)
            for some in blocks(held):  # what is released meanwhile is so after this, by the same thread
                self._try(lambda some=some: self._renew(some), None)  # type: ignore[misc]
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


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return ""
