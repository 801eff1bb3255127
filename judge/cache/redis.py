"""What is on its way to a cache that machines share: a thread sends it, so that nobody waits for the network.

A Redis or Valkey as several machines share it: rows and prompts by their keys, and who is asking for what.

Replies are at `judge:reply:KEY` as `rows` writes them, messages at `judge:prompt:DIGEST`, both without an end; who asks
for one is at `judge:claim:KEY`, for as long as that process is alive.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import uuid4

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from judge.core.errors import ConfigError, StorageError
from judge.core.redis_url import RedisUrl

BLOCK = 500
_MOST = 20_000
"""Texts that may be on their way at once."""


@dataclass(frozen=True, slots=True, eq=False)
class WriteBatch:
    """Rows to be written, and `new` ones where there are none, with prompts; then claims to be released."""

    rows: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    new: Mapping[str, str] = field(default_factory=dict)
    released: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.rows) + len(self.new)


class WriteBehindQueue:
    """Hands parcels to `send` in their order, several at once, which says whether all of them were taken.

    `beat` is called by the same thread whenever the seconds that `pause` returns have gone by.
    """

    def __init__(
        self, send: Callable[[Sequence[WriteBatch]], bool], beat: Callable[[], None], pause: Callable[[], float]
    ) -> None:
        self._send, self._beat, self._pause = send, beat, pause
        self._queue: deque[WriteBatch] = deque()
        self._under_way: list[WriteBatch] = []
        self._rows: dict[str, str] = {}
        self._returned: list[str] = []
        self._count, self._over = 0, False
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, or look again for how long to pause."""
        with self._news:
            if self._thread is None and not self._over:
                self._thread = threading.Thread(target=self._run, name="judge-cache", daemon=True)
                self._thread.start()
            self._news.notify_all()

    def add(self, parcel: WriteBatch) -> bool:
        """Have it sent; False where too much is on its way already."""
        with self._news:
            if self._over or (len(parcel) and self._count + len(parcel) > _MOST):
                return False
            self._queue.append(parcel)
            self._rows.update(parcel.rows)
            self._count += len(parcel)
        self.start()
        return True

    def waiting(self, keys: Collection[str]) -> dict[str, str]:
        """The rows with these keys that are on their way."""
        with self._news:
            return {key: self._rows[key] for key in keys if key in self._rows}

    def returned(self) -> list[str]:
        """The keys of rows that were not taken since this was last called."""
        with self._news:
            keys, self._returned = self._returned, []
        return keys

    def drain(self, released: Collection[str] | None = None) -> None:
        """Wait until nothing is on its way; with `released`, none of these."""
        with self._news:
            while self._thread is not None and self._thread.is_alive() and self._holds(released):
                self._news.wait(0.1)

    def close(self) -> bool:
        """Send what is left, and end; False where the thread still waits for an answer."""
        with self._news:
            self._over = True
            self._news.notify_all()
        self.drain()
        if self._thread is not None:
            self._thread.join(0.1)
        return self._thread is None or not self._thread.is_alive()

    def _holds(self, released: Collection[str] | None) -> bool:
        parcels = [*self._under_way, *self._queue]
        if released is None:
            return bool(parcels)
        wanted = set(released)
        return any(not wanted.isdisjoint(parcel.released) for parcel in parcels)

    def _run(self) -> None:
        last = time.monotonic()
        while self._next(last):
            if self._under_way:
                self._sent(self._send(self._under_way))
            if time.monotonic() >= last + self._pause():
                self._beat()
                last = time.monotonic()

    def _next(self, last: float) -> bool:
        """Wait for something to send or the time to beat, and take what there is; False at the end."""
        with self._news:
            while not self._queue and not self._over and (left := last + self._pause() - time.monotonic()) > 0:
                self._news.wait(left)
            count = 0
            while self._queue and count < BLOCK:
                self._under_way.append(self._queue.popleft())
                count += 1 + len(self._under_way[-1])
            return bool(self._under_way) or not self._over

    def _sent(self, taken: bool) -> None:
        with self._news:
            for parcel in self._under_way:
                self._count -= len(parcel)
                for key, text in parcel.rows.items():
                    if self._rows.get(key) is text:
                        del self._rows[key]
                if not taken:
                    self._returned += parcel.rows
            self._under_way = []
            self._news.notify_all()


Kind = Literal["reply", "prompt", "claim"]
_PATIENCE = 3.0
"""Seconds that Redis has to connect, and to say anything."""
_LEASE = 15_000
"""Milliseconds for which a claim is valid unless its process renews it."""
_BEAT = 5.0
"""Seconds between renewals."""
_PROBE = 1.0
"""Seconds between looks whether a Redis that was lost is back."""
_SULK = 30.0
"""Seconds for which nothing is written to a Redis that refused something."""
_BROKEN = (redis.RedisError, OSError, UnicodeError)
_OF_CLUSTERS = (redis.exceptions.ClusterError, redis.exceptions.AskError, redis.exceptions.ClusterCrossSlotError)
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
_WAY_OUT = "mend that, or name another or a folder with --cache"
T = TypeVar("T")


class RedisClient:
    """One Redis, for as long as it is in reach: what is asked of it while it is not finds nothing and keeps nothing.

    `told` is called, from any thread, when it is lost, back, or refuses to be written to. Methods whose docstring
    names an error raise that instead. Raises ConfigError.
    """

    def __init__(self, address: RedisUrl) -> None:
        self.address = address
        self.told: Callable[[], None] = lambda: None
        self.losses: list[tuple[float, str]] = []
        """When it was lost, in seconds since the epoch, and why."""
        self.away = 0.0
        """Seconds that it was out of reach, up to when it last came back."""
        self.refusal = ""
        """What it said when it refused to be written to; empty where it never did."""
        self._lost: float | None = None
        self._until = 0.0
        self._token = uuid4().hex
        self._held: set[str] = set()
        self._claims, self._state = threading.Lock(), threading.Lock()
        self._sender = WriteBehindQueue(self._deliver, self._heartbeat, lambda: _BEAT if self._lost is None else _PROBE)
        try:
            self._redis: Any = redis.Redis.from_url(
                address.url, socket_timeout=_PATIENCE, socket_connect_timeout=_PATIENCE, protocol=2,
                retry=Retry(NoBackoff(), 1, (redis.ConnectionError,)),
            )  # fmt: skip
        except (redis.RedisError, ValueError, TypeError):  # whose words may be those of the address
            raise ConfigError(f"the shared cache {address}: no address that redis-py understands; {_WAY_OUT}") from None

    @property
    def is_down(self) -> bool:
        """Whether it is out of reach."""
        return self._lost is not None

    @property
    def writable(self) -> bool:
        """Whether there is any use in writing to it now."""
        return self._lost is None and time.monotonic() >= self._until

    def reach(self, *, must: bool) -> None:
        """Ask it for something. Where it does not answer, that is a ConfigError if it `must`, or else a loss."""
        try:
            self._probe()
        except _BROKEN as error:
            if must:
                self.close()
                raise ConfigError(f"the shared cache {self.address}: {self._why(error)}; {_WAY_OUT}") from None
            self._mark_down(error)

    def get(self, kind: Kind, keys: Sequence[str]) -> dict[str, str]:
        """The texts at these keys; what is not text is an empty one."""
        return self._try(lambda: self._get(kind, keys), {})

    def put(self, rows: Mapping[str, str], prompts: Mapping[str, str], *, new: Mapping[str, str] | None = None) -> bool:
        """Have rows written, and `new` ones where there are none, with prompts; False where that is of no use now.

        Nobody waits for it; rows that are not taken in the end are in `returned`.
        """
        return self.writable and self._sender.add(WriteBatch(rows, prompts, new or {}))

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
        for some in blocks(held if self._lost is None else ()):
            self._sender.add(WriteBatch(released=some))

    def close(self) -> None:
        """Write what is on its way, and let go of what is held and of the connection."""
        self.release(tuple(self._held))
        if self._sender.close():
            with suppress(*_BROKEN):
                self._redis.close()

    # All that it holds.

    def names(self, kind: Kind) -> Iterator[list[str]]:
        """The keys there are, in blocks; some twice. Raises StorageError."""
        start = len(_name(kind, ""))
        with self._strict():
            found = self._redis.scan_iter(match=_name(kind, "*"), count=BLOCK)
            while some := list(islice(found, BLOCK)):
                yield [name[start:].decode("utf-8", "replace") for name in some]

    def size(self, kind: Kind) -> tuple[int, int]:
        """How many texts there are, and their bytes. Raises StorageError."""
        seen: set[str] = set()
        size = 0
        for some in self.names(kind):
            fresh = set(some) - seen
            seen |= fresh
            with self._strict():
                pipe = self._redis.pipeline(transaction=False)
                for key in fresh:
                    pipe.strlen(_name(kind, key))
                size += sum(one for one in pipe.execute(raise_on_error=False) if isinstance(one, int))
        return len(seen), size

    def texts(self, kind: Kind, keys: Sequence[str]) -> dict[str, str]:
        """`get`, which raises StorageError."""
        with self._strict():
            return self._get(kind, keys)

    def clear(self) -> int:
        """Forget every row and prompt; returns how many rows there were. Raises StorageError."""
        count = {"reply": 0, "prompt": 0}
        kinds: tuple[Kind, ...] = ("reply", "prompt")
        for kind in kinds:
            for some in self.names(kind):
                with self._strict():
                    count[kind] += int(self._redis.unlink(*(_name(kind, key) for key in some)))
        return count["reply"]

    @contextmanager
    def _strict(self) -> Iterator[None]:
        try:
            yield
        except _BROKEN as error:
            raise StorageError(f"the shared cache {self.address}: {self._why(error)}; {_WAY_OUT}") from None

    # One step each, which raises what redis-py raises.

    def _probe(self) -> None:
        self._redis.mget([_name("reply", ""), _name("prompt", "")])  # two, which a cluster refuses

    def _get(self, kind: Kind, keys: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for some in blocks(keys):
            values = self._redis.mget([_name(kind, key) for key in some])
            found |= {key: _text(value) for key, value in zip(some, values, strict=True) if value is not None}
        return found

    def _claim(self, keys: Sequence[str]) -> set[str]:
        pipe = self._redis.pipeline(transaction=False)
        names = [_name("claim", key) for key in keys]
        for name in names:
            pipe.set(name, self._token, nx=True, px=_LEASE)
        pipe.eval(_HOLDERS, len(names), *names, self._token, _LEASE)
        *done, holders = pipe.execute(raise_on_error=False)
        self._accepted([*done, holders])
        if not isinstance(holders, list):
            holders = [None] * len(keys)
        token = self._token.encode()
        with self._claims:
            asked = zip(keys, done, holders, strict=True)
            self._held.update(key for key, new, holder in asked if new is True or holder == token)
        self._sender.start()
        return {key for key, holder in zip(keys, holders, strict=True) if holder not in (None, token)}

    def _deliver(self, parcels: Sequence[WriteBatch]) -> bool:
        def write() -> bool:
            pipe = self._redis.pipeline(transaction=False)
            for parcel in parcels:
                for digest, messages in parcel.prompts.items():
                    pipe.set(_name("prompt", digest), messages, nx=True)
                if parcel.rows:
                    pipe.mset({_name("reply", key): text for key, text in parcel.rows.items()})
                for key, text in parcel.new.items():
                    pipe.set(_name("reply", key), text, nx=True)
                if names := [_name("claim", key) for key in parcel.released]:
                    pipe.eval(_RELEASE, len(names), *names, self._token)
            return self._accepted(pipe.execute(raise_on_error=False))

        return self._try(write, False)

    def _renew(self, keys: Sequence[str]) -> None:
        try:
            self._redis.eval(_RENEW, len(keys), *(_name("claim", key) for key in keys), self._token, _LEASE)
        except redis.ResponseError as error:
            self._accepted([error])

    def _accepted(self, said: Iterable[Any]) -> bool:
        """Whether none of these answers is a refusal, for which it is left alone for a while."""
        refusal = next((one for one in said if isinstance(one, Exception)), None)
        if refusal is not None:
            self._until = time.monotonic() + _SULK
            if not self.refusal:
                self.refusal = self._why(refusal)
                self.told()
        return refusal is None

    # Lost and found.

    def _try(self, work: Callable[[], T], without: T) -> T:
        if self._lost is not None:
            return without
        try:
            return work()
        except _BROKEN as error:
            self._mark_down(error)
            return without

    def _mark_down(self, error: Exception) -> None:
        with self._state:
            if self._lost is not None:
                return
            self._lost = time.monotonic()
            self.losses.append((time.time(), self._why(error)))
        self.told()
        self._sender.start()

    def _heartbeat(self) -> None:
        """Renew what is held, or look whether what was lost is back."""
        if self._lost is None:
            with self._claims:
                held = list(self._held)
            for some in blocks(held):  # what is released meanwhile is so after this, by the same thread
                self._try(lambda some=some: self._renew(some), None)  # type: ignore[misc]
            return
        with suppress(*_BROKEN):
            self._probe()
            self.away += time.monotonic() - self._lost
            self._lost = None
            self.told()

    def _why(self, error: Exception) -> str:
        """What is wrong, without the password."""
        parts = urlsplit(self.address.url)
        if isinstance(error, redis.AuthenticationError):
            given = parts.password or "password=" in parts.query
            return (
                "it refuses the password"
                if given
                else "it wants a password (redis://:PASSWORD@HOST..., best in $JUDGE_CACHE)"
            )
        if isinstance(error, redis.TimeoutError):
            tls = ", or it speaks no TLS" if parts.scheme == "rediss" else ""
            return f"no answer within {_PATIENCE:g} seconds{tls}"
        if isinstance(error, redis.InvalidResponse) or "closed by server" in str(error):
            return "what answers there is no Redis" + ("" if parts.scheme == "rediss" else ", or wants TLS (rediss://)")
        if isinstance(error, _OF_CLUSTERS):
            return "it is part of a cluster, in which blocks of replies cannot be read; name a single server"
        below = error.__context__
        said = (below.strerror if isinstance(below, OSError) else "") or str(error) or type(error).__name__
        more = dict(parse_qsl(parts.query))  # an address may have its password there, too
        secrets = (unquote(parts.password or ""), more.get("password"), more.get("ssl_password"))
        return type(error).__name__ if any(one and one in said for one in secrets) else said.strip().rstrip(".")


def blocks(keys: Iterable[str]) -> Iterator[list[str]]:
    """These keys, `BLOCK` at a time."""
    left = iter(keys)
    while some := list(islice(left, BLOCK)):
        yield some


def _name(kind: Kind, key: str) -> str:
    return f"judge:{kind}:{key}"


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return ""
