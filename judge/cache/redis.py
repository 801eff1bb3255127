"""The Redis or Valkey server that several machines share as a cache.

Replies are stored at `judge:reply:KEY` as `base.encode` writes them and prompts at `judge:prompt:DIGEST`, both without
an expiry. The process that is asking for a reply is stored at `judge:claim:KEY`, which expires soon after that process
ends.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import uuid4

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from judge.cache import base
from judge.core.errors import ConfigError, StorageError
from judge.core.records import Response
from judge.core.redis_url import RedisUrl

BLOCK = 500
_TIMEOUT = 3.0
"""Seconds that Redis has to connect, and to say anything."""
_LEASE = 15_000
"""Milliseconds for which a claim is valid unless its process renews it."""
_HEARTBEAT = 2.0
"""Seconds between renewals, and between looks whether a Redis that was lost is back."""
_REFUSAL_PAUSE = 30.0
"""Seconds for which nothing is written to a Redis that refused something."""
_ERRORS = (redis.RedisError, OSError, UnicodeError)
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


class RedisCache(base.InspectableCache):
    """One Redis. While it is out of reach, reads find nothing and writes do nothing.

    A thread renews the leases, and looks whether a lost Redis is back. The first loss and the first refusal to be
    written to are printed on standard error and added to `notes`. Raises ConfigError. Not for several threads.
    """

    def __init__(self, address: RedisUrl, notes: list[str] | None = None) -> None:
        self.address = address
        self._notes = [] if notes is None else notes
        self._told = set[str]()
        self._down = False
        self._write_after = 0.0
        self._token = uuid4().hex
        self._held = set[str]()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        try:
            self._redis: Any = redis.Redis.from_url(
                address.url, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT, protocol=2,
                retry=Retry(NoBackoff(), 1, (redis.ConnectionError,)),
            )  # fmt: skip
        except (redis.RedisError, ValueError, TypeError):  # whose words may be those of the address
            raise ConfigError(f"the shared cache {address}: no address that redis-py understands; {_ADVICE}") from None

    @property
    def writable(self) -> bool:
        """Whether there is any use in writing to it now."""
        return not self._down and time.monotonic() >= self._write_after

    def reach(self, *, must: bool) -> None:
        """Ask it for something. If it does not answer, that is a ConfigError if it `must`, else a loss."""
        try:
            self._probe()
        except _ERRORS as error:
            if must:
                self.close()
                raise ConfigError(f"the shared cache {self.address}: {self._explain(error)}; {_ADVICE}") from None
            self._lose(error)

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        return base.decode_replies(self._found(keys))

    def put_rows(self, rows: Mapping[str, str]) -> None:
        self._write(rows)

    def _found(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the rows with these keys."""
        return self._try(lambda: self._get(keys), {})

    def _write(self, rows: Mapping[str, str], *, new: Collection[str] = ()) -> bool:
        """Write rows, prompts and those in `new` only if there are none. Return False if Redis did not take them."""

        def write() -> bool:
            for some in blocks(rows):
                pipe = self._redis.pipeline(transaction=False)
                for key in some:
                    pipe.set(_name(key), rows[key], nx=key in new or key.startswith(base.PROMPT))
                for answer in pipe.execute(raise_on_error=False):  # raised there, an error quotes the row
                    if isinstance(answer, Exception):
                        raise answer
            return True

        return self.writable and self._try(write, False, writes=True)

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Lease these keys, as long as Redis can be written to, and return those that another process has leased.

        The leases of a process that dies end within 15 s.
        """
        others: set[str] = set()
        for some in blocks(keys) if self.writable else ():
            states: list[int] = self._try(partial(self._run_script, _CLAIM, some), [], writes=True)
            others.update(key for key, state in zip(some, states, strict=False) if state == 1)
            with self._lock:
                self._held.update(key for key, state in zip(some, states, strict=False) if state == 0)
            self._start()
        return others

    def release(self, keys: Iterable[str]) -> None:
        """End the leases of these keys."""
        with self._lock:
            held = self._held.intersection(keys)
            self._held -= held
            for some in blocks(held):
                self._try(partial(self._run_script, _RELEASE, some), None, writes=True)

    def close(self) -> None:
        """End all leases, and let go of the connection."""
        self.release(tuple(self._held))
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        with suppress(*_ERRORS):
            self._redis.close()

    # All that it holds. These raise StorageError.

    def key_blocks(self) -> Iterator[Sequence[str]]:
        return self._keys("reply")

    def _keys(self, kind: Literal["reply", "prompt"]) -> Iterator[list[str]]:
        """The keys of all rows of a kind, in blocks; some twice."""
        start = len("judge:reply:" if kind == "reply" else "judge:")
        with self._strict():
            for some in blocks(self._redis.scan_iter(match=f"judge:{kind}:*", count=BLOCK)):
                yield [name[start:].decode("utf-8", "replace") for name in some]

    def stats(self) -> dict[str, int]:
        """Number of `responses`, and `bytes` of these and their prompts."""
        sizes: dict[str, object] = {}
        for some in chain(self._keys("reply"), self._keys("prompt")):
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
        """Return the rows with these keys."""
        with self._strict():
            return self._get(keys)

    def clear(self) -> int:
        """Delete every row in Redis, and none on a disk; return how many replies there were."""
        count = 0
        for some in chain(self._keys("reply"), self._keys("prompt")):
            with self._strict():
                deleted = int(self._redis.unlink(*map(_name, some)))
            count += 0 if some[0].startswith(base.PROMPT) else deleted
        return count

    @contextmanager
    def _strict(self) -> Iterator[None]:
        try:
            yield
        except _ERRORS as error:
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
        return self._redis.eval(script, len(keys), *(f"judge:claim:{key}" for key in keys), self._token, _LEASE)

    # Lost and found.

    def _try(self, work: Callable[[], T], otherwise: T, *, writes: bool = False) -> T:
        """Return what `work` does; if Redis is out of reach, or refuses to be written to, `otherwise`."""
        if self._down:
            return otherwise
        try:
            return work()
        except _ERRORS as error:
            if writes and isinstance(error, redis.ResponseError):
                self._write_after = time.monotonic() + _REFUSAL_PAUSE
                self._tell("did not take every reply", error, "What several asked for may have been paid by each")
            else:
                self._lose(error)
            return otherwise

    def _lose(self, error: Exception) -> None:
        self._down = True
        what = f"was lost at {time.strftime('%H:%M:%S')}"
        self._tell(what, error, "Until it is back, replies stay on this machine, and others may pay for them again")
        self._start()

    def _tell(self, what: str, error: Exception, consequence: str) -> None:
        topic = what.split()[0]
        if topic not in self._told:
            self._told.add(topic)
            self._notes.append(f"The shared cache {self.address} {what} ({self._explain(error)}). {consequence}.")
            sys.stderr.write(f"judge: {self._notes[-1]}\n")

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="judge-cache", daemon=True)
            self._thread.start()

    def _beat(self) -> None:
        """Renew what is held, or look whether a lost Redis is back."""
        while not self._closed.wait(_HEARTBEAT):
            if self._down:
                with suppress(*_ERRORS):
                    self._probe()
                    self._down = False
                continue
            with self._lock:  # what is renewed while it is released would be held on
                for some in blocks(self._held):
                    self._try(partial(self._run_script, _RENEW, some), None, writes=True)

    def _explain(self, error: Exception) -> str:
        """Return what is wrong, without the password."""
        if isinstance(error, redis.AuthenticationError):
            return "it wants another password (redis://:PASSWORD@HOST..., best in $JUDGE_CACHE)"
        if isinstance(error, redis.TimeoutError):
            return f"no answer within {_TIMEOUT:g} seconds"
        if isinstance(error, redis.InvalidResponse) or "closed by server" in str(error):
            return "what answers there is no Redis, or wants TLS (rediss://)"
        if isinstance(error, _CLUSTER_ERRORS):
            return "it is part of a cluster, in which blocks of replies cannot be read; name a single server"
        below = error.__context__
        reason = (below.strerror if isinstance(below, OSError) else "") or str(error) or type(error).__name__
        parts = urlsplit(self.address.url)
        query = dict(parse_qsl(parts.query))  # an address may have its password there, too
        secrets = (unquote(parts.password or ""), query.get("password"), query.get("ssl_password"))
        repeated = any(secret and secret in reason for secret in secrets)
        return type(error).__name__ if repeated else reason.strip().rstrip(".")


def blocks(keys: Iterable[T]) -> Iterator[list[T]]:
    """These keys, `BLOCK` at a time."""
    remaining = iter(keys)
    while some := list(islice(remaining, BLOCK)):
        yield some


def _name(key: str) -> str:
    return f"judge:{key}" if key.startswith(base.PROMPT) else f"judge:reply:{key}"
