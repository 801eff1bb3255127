"""The cache that several machines share: Redis or Valkey in front of this machine's own SQLite cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from judge.cache import base
from judge.cache.disk import DiskCache
from judge.cache.redis import BLOCK, RedisClient, blocks
from judge.core.records import Response


class TieredCache(base.InspectableCache):
    """Replies in Redis for all machines, and on the disk of this one as well, which is None for who only looks.

    All agree on what Redis has; what it lacks and the disk has is sent to it, so that a Redis which was restarted fills
    again. While it is out of reach everything goes on with the disk alone, and what was put meanwhile is sent when it
    is back. Not for several threads.
    """

    def __init__(self, remote: RedisClient, disk: DiskCache | None) -> None:
        self._remote, self._disk = remote, disk
        self._rows: dict[str, str] = {}
        self._unsent: dict[str, None] = {}

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """Return the stored replies by key, from Redis or from the disk, and copy to each what it lacks."""
        responses: dict[str, Response] = {}
        for block in blocks(keys):
            pending = {key: self._rows[key] for key in block if key in self._rows}
            from_redis = self._remote.get([key for key in block if key not in pending])
            responses |= base.decode_replies(pending | from_redis)
            if self._disk is not None:
                # Down to the disk: what Redis has.
                stored = self._disk.rows([key for key in from_redis if key in responses])
                new = {key: text for key, text in from_redis.items() if key in responses and key not in stored}
                prompts = base.prompt_keys(new.values())
                stored = self._disk.rows(prompts)
                missing = self._remote.get([key for key in prompts if key not in stored])
                self._disk.put_rows({key: text for key, text in missing.items() if base.is_intact(key, text)} | new)
                from_disk = self._disk.rows([key for key in block if key not in responses])
                responses |= (read := base.decode_replies(from_disk))
                # Up to Redis: what is on the disk, in the place of what cannot be read, or if there still is nothing.
                if read and self._remote.writable:
                    found = {key: from_disk[key] for key in read}
                    prompts = base.prompt_keys(found.values())
                    self._remote.put(self._disk.rows(prompts) | found, new=found.keys() - from_redis.keys())
        return responses

    def put_rows(self, rows: Mapping[str, str]) -> None:
        self._rows.update(rows)
        if self._disk is not None:
            self._disk.put_rows(rows)
        if len(self._rows) >= BLOCK:
            self.flush()

    def flush(self) -> None:
        """Write what was put to the disk, which is what counts, and to Redis. Raises StorageError."""
        rows, self._rows = self._rows, {}
        try:
            if self._disk is not None:
                self._disk.flush()
        finally:
            if rows and not self._remote.put(rows):
                self._unsent |= dict.fromkeys(rows)
            self._send_rest(BLOCK)

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Lease these keys, and return those that another process has leased.

        The leases of a process that dies end within 15 s.
        """
        return self._remote.claim(keys)

    def release(self, keys: Sequence[str]) -> None:
        self._remote.release(keys)

    def close(self) -> None:
        try:
            self.flush()
            self._send_rest(len(self._unsent))
        finally:
            self._remote.close()
            if self._disk is not None:
                self._disk.close()

    def stats(self) -> dict[str, int]:
        """Number of `responses`, and `bytes` of these and their prompts, in Redis."""
        return self._remote.stats()

    def clear(self) -> int:
        """Delete every response in Redis, and none on a disk; return how many there were."""
        return self._remote.clear()

    def key_blocks(self) -> Iterator[Sequence[str]]:
        return self._remote.keys("reply")

    def rows(self, keys: Sequence[str]) -> dict[str, str]:
        return self._remote.rows(keys)

    def _send_rest(self, most: int) -> None:
        """Send some of what was put while Redis did not take it."""
        for block in blocks(list(self._unsent)[:most]):
            if self._disk is None or not self._remote.writable or not self._remote.put(self._disk.rows(block)):
                return
            for key in block:
                del self._unsent[key]
