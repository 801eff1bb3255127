"""The cache that several machines share: Redis or Valkey in front of this machine's own SQLite cache."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from judge.cache import base
from judge.cache.disk import DiskCache
from judge.cache.redis import BLOCK, RedisClient, blocks
from judge.core.records import Response

_MAX_UNSENT = 200_000
"""Keys remembered while Redis is away. What is not is sent to it when a run next reads it here."""


class TieredCache(base.InspectableCache):
    """Replies in Redis for all machines, and on the disk of this one as well, which is None for who only looks.

    What Redis has is what all agree on; what it lacks and the disk has is sent to it, so that a Redis which was
    restarted fills again. While it is out of reach everything goes on with the disk alone, which a line on standard
    error and one of the `notes` say; what was put meanwhile is sent when it is back. Nobody waits for what is written
    to Redis, but for `close` and who has no disk. Not for several threads.
    """

    def __init__(self, remote: RedisClient, disk: DiskCache | None, notes: list[str] | None) -> None:
        self._remote, self._disk = remote, disk
        self._notes = [] if notes is None else notes
        self._rows: dict[str, str] = {}
        self._unsent: dict[str, None] = {}
        self._messages_by_topic = {"loss": "", "refusal": ""}
        self._notes_lock = threading.Lock()
        remote.on_change = self._update_notes
        self._update_notes()

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """Return the stored replies by key, from Redis or from the disk, and copy to each what it lacks."""
        responses: dict[str, Response] = {}
        for block in blocks(keys):
            pending = self._remote.outbox.waiting(block) | {key: self._rows[key] for key in block if key in self._rows}
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
                    replaced = {key: from_disk[key] for key in read if key in from_redis}
                    absent = {key: from_disk[key] for key in read if key not in from_redis}
                    prompts = base.prompt_keys(from_disk[key] for key in read)
                    self._remote.put(self._disk.rows(prompts) | replaced, new=absent)
        return responses

    def put_rows(self, rows: Mapping[str, str]) -> None:
        self._rows.update(rows)
        if self._disk is not None:
            self._disk.put_rows(rows)
        if len(self._rows) >= BLOCK:
            self.flush()

    def flush(self) -> None:
        """Write what was put to the disk, which is what counts, and have it sent to Redis. Raises StorageError."""
        try:
            if self._disk is not None:
                self._disk.flush()
        finally:
            if self._rows and not self._remote.put(self._rows):
                self._enqueue_unsent(self._rows)
            self._rows = {}
            self._enqueue_unsent(self._remote.outbox.rejected())
            self._retry_unsent(BLOCK)
            if self._disk is None:
                self._remote.outbox.drain()

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
            self._retry_unsent(len(self._unsent))
        finally:
            self._remote.close()
            if self._disk is not None:
                self._disk.close()

    def stats(self) -> dict[str, int]:
        """Number of `responses`, and `bytes` of these and their prompts, in Redis."""
        self._remote.outbox.drain()
        return self._remote.stats()

    def clear(self) -> int:
        """Delete every response in Redis, and none on a disk; return how many there were."""
        self._remote.outbox.drain()
        return self._remote.clear()

    def key_blocks(self) -> Iterator[Sequence[str]]:
        self._remote.outbox.drain()
        return self._remote.keys("reply")

    def rows(self, keys: Sequence[str]) -> dict[str, str]:
        return self._remote.rows(keys)

    def _enqueue_unsent(self, keys: Iterable[str]) -> None:
        for key in keys:
            if len(self._unsent) < _MAX_UNSENT:
                self._unsent[key] = None

    def _retry_unsent(self, most: int) -> None:
        """Send some of what was put while Redis did not take it."""
        disk = self._disk
        for block in blocks(list(self._unsent)[:most]):
            if disk is None or not self._remote.writable:
                return
            if not self._remote.put(disk.rows(block)):
                return
            for key in block:
                del self._unsent[key]

    # What there is to say.

    def _update_notes(self) -> None:
        """Bring the notes up to date; what is new among them is said at once."""
        with self._notes_lock:
            where = "" if self._disk is None else "; this machine has them all"
            refusal = self._remote.refusal and (
                f"The shared cache {self._remote.address} did not take every reply ({self._remote.refusal}){where}. "
                "What several asked for meanwhile may have been paid by each."
            )
            for topic, message in (("loss", self._loss_message()), ("refusal", refusal)):
                before, self._messages_by_topic[topic] = self._messages_by_topic[topic], message
                if message and not before:
                    self._notes.append(message)
                    sys.stderr.write(f"judge: {message}\n")
                elif message != before:
                    self._notes[self._notes.index(before)] = message

    def _loss_message(self) -> str:
        losses = self._remote.losses
        if not losses:
            return ""
        clock = time.strftime("%H:%M:%S", time.localtime(losses[0][0]))
        when = f"at {clock}" if len(losses) == 1 else f"{len(losses):,} times, first at {clock}"
        loss = f"The shared cache {self._remote.address} was lost {when} ({losses[-1][1]})"
        where = "kept nowhere" if self._disk is None else "kept on this machine alone"
        if self._remote.is_down:
            return (
                f"{loss}. Until it is back, replies are {where}, what others have paid for is not found, "
                "and what several ask for is paid by each."
            )
        sent = "" if self._disk is None else f"what was {where} has been sent to it since, and "
        away = max(1, round(self._remote.away))
        return (
            f"{loss} and was away for {away:,} s: {sent}what others had paid for was not found meanwhile, "
            "and what several asked for may have been paid by each."
        )
