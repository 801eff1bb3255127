"""The cache that several machines share: Redis or Valkey in front of this machine's own SQLite cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge.cache import base
from judge.cache.disk import DiskCache
from judge.cache.redis import BLOCK, RedisCache, blocks
from judge.core.records import Response
from judge.core.redis_url import RedisUrl


class TieredCache(RedisCache):
    """Replies in Redis for all machines, and on the disk of this one as well.

    All agree on what Redis has; what it lacks and the disk has is sent to it, so that a Redis which was restarted fills
    again. While it is out of reach everything goes on with the disk alone, and what was put meanwhile is sent when it
    is back.
    """

    def __init__(self, address: RedisUrl, disk: DiskCache, notes: list[str] | None = None) -> None:
        super().__init__(address, notes)
        self._disk = disk
        self._rows: dict[str, str] = {}
        self._unsent: dict[str, None] = {}

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """Return the stored replies by key, from Redis or from the disk, and copy to each what it lacks."""
        responses: dict[str, Response] = {}
        for block in blocks(keys):
            pending = {key: self._rows[key] for key in block if key in self._rows}
            from_redis = self._found([key for key in block if key not in pending])
            responses |= base.decode_replies(pending | from_redis)
            # Down to the disk: what Redis has.
            stored = self._disk.rows([key for key in from_redis if key in responses])
            new = {key: text for key, text in from_redis.items() if key in responses and key not in stored}
            prompts = base.prompt_keys(new.values())
            stored = self._disk.rows(prompts)
            missing = self._found([key for key in prompts if key not in stored])
            self._disk.put_rows({key: text for key, text in missing.items() if base.is_intact(key, text)} | new)
            from_disk = self._disk.rows([key for key in block if key not in responses])
            responses |= (read := base.decode_replies(from_disk))
            # Up to Redis: what is on the disk, in the place of what cannot be read, or if there still is nothing.
            if read and self.writable:
                found = {key: from_disk[key] for key in read}
                prompts = base.prompt_keys(found.values())
                self._write(self._disk.rows(prompts) | found, new=found.keys() - from_redis.keys())
        return responses

    def put_rows(self, rows: Mapping[str, str]) -> None:
        self._rows.update(rows)
        self._disk.put_rows(rows)
        if len(self._rows) >= BLOCK:
            self.flush()

    def flush(self) -> None:
        """Write what was put to the disk, which is what counts, and to Redis. Raises StorageError."""
        rows, self._rows = self._rows, {}
        try:
            self._disk.flush()
        finally:
            if rows and not self._write(rows):
                self._unsent |= dict.fromkeys(rows)
            self._send_rest(BLOCK)

    def close(self) -> None:
        try:
            self.flush()
            self._send_rest(len(self._unsent))
        finally:
            super().close()
            self._disk.close()

    def _send_rest(self, most: int) -> None:
        """Send some of what was put while Redis did not take it."""
        for block in blocks(list(self._unsent)[:most]):
            if not self.writable or not self._write(self._disk.rows(block)):
                return
            for key in block:
                del self._unsent[key]
