"""The cache that several machines share: Redis or Valkey in front of this machine's own SQLite cache."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Self

from judge.cache import base
from judge.cache.disk import DiskCache
from judge.cache.redis import BLOCK, RedisClient, blocks
from judge.core.records import Request, Response

_MAX_UNSENT = 200_000
"""Keys remembered while Redis is away. What is not is sent to it when a run next reads it here."""


class TieredCache:
    """Replies in Redis for all machines, and on the disk of this one as well, which is None for who only looks.

    What Redis has is what all agree on; what it lacks and the disk has is sent to it, so that a Redis which was
    restarted fills again. While it is out of reach everything goes on with the disk alone, which a line on standard
    error and one of the `notes` say; what was put meanwhile is sent when it is back. Nobody waits for what is written
    to Redis, but for `close` and who has no disk. Not for several threads.
    """

    claims = True

    def __init__(self, remote: RedisClient, disk: DiskCache | None, notes: list[str] | None = None) -> None:
        self._remote, self._disk = remote, disk
        self._notes = [] if notes is None else notes
        self._rows: dict[str, str] = {}
        self._prompts: dict[str, str] = {}
        self._unsent: dict[str, None] = {}
        self._messages_by_topic = {"loss": "", "refusal": ""}
        self._notes_lock = threading.Lock()
        remote.on_change = self._update_notes
        self._update_notes()

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """The stored responses among these keys; one that cannot be read back counts as absent."""
        responses: dict[str, Response] = {}
        for block in blocks(keys):
            texts = self._remote.waiting(block) | {key: self._rows[key] for key in block if key in self._rows}
            from_redis = self._remote.get("reply", [key for key in block if key not in texts])
            responses |= _read(texts | from_redis)
            if (disk := self._disk) is not None:
                # Have on the disk, too, what Redis has of what is not there.
                readable = {key: text for key, text in from_redis.items() if key in responses}
                rows = {key: readable[key] for key in disk.missing_keys(readable)}
                digests = _digests(rows)
                prompts = disk.missing_keys({digest for digest in digests.values() if digest}, prompts=True)
                disk.put_rows({key: rows[key] for key in digests}, _undamaged(self._remote.get("prompt", prompts)))
                from_disk = disk.texts([key for key in block if key not in responses])
                responses |= (read := _read(from_disk))
                # Have in Redis what is on the disk: in the place of what cannot be read, or where there still is
                # nothing.
                local_texts = {key: from_disk[key] for key in read}
                if local_texts and self._remote.writable:
                    replaced = {key: text for key, text in local_texts.items() if key in from_redis}
                    absent = {key: text for key, text in local_texts.items() if key not in from_redis}
                    self._remote.put(replaced, _messages(disk, local_texts), new=absent)
        return responses

    def put(self, key: str, response: Response, request: Request | None = None) -> None:
        text, prompt = base.encode(response, request)
        prompts = {} if prompt is None else dict([prompt])
        self._rows[key] = text
        self._prompts.update(prompts)
        if self._disk is not None:
            self._disk.put_rows({key: text}, prompts)
        if len(self._rows) >= BLOCK:
            self.flush()

    def flush(self) -> None:
        """Write what was put to the disk, which is what counts, and have it sent to Redis. Raises StorageError."""
        try:
            if self._disk is not None:
                self._disk.flush()
        finally:
            if self._rows and not self._remote.put(self._rows, self._prompts):
                self._enqueue_unsent(self._rows)
            self._rows, self._prompts = {}, {}
            self._enqueue_unsent(self._remote.rejected())
            self._retry_unsent(BLOCK)
            if self._disk is None:
                self._remote.join()

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Those of these keys that another process is asking for just now; the others are this one's from now on.

        They are until they are released, or up to 15 s after this process ended.
        """
        return self._remote.claim(keys)

    def release(self, keys: Sequence[str]) -> None:
        """Let others ask for these, or find what is kept of them: after the `flush` of what was put."""
        self._remote.release(keys)

    def close(self) -> None:
        try:
            self.flush()
            self._retry_unsent(len(self._unsent))
        finally:
            self._remote.close()
            if self._disk is not None:
                self._disk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stats(self) -> dict[str, int]:
        """Number of `responses`, and `bytes` of these and their prompts, in Redis. Raises StorageError."""
        self._remote.join()
        count, size = self._remote.size("reply")
        return {"responses": count, "bytes": size + self._remote.size("prompt")[1]}

    def clear(self) -> int:
        """Forget every response in Redis, and none on a disk; returns how many there were. Raises StorageError."""
        self._remote.join()
        return self._remote.clear()

    def iter_all(self) -> Iterator[tuple[Response, Request | None]]:
        """Every response in Redis and what was asked for it, as far as it is known; some twice. Raises StorageError.

        What cannot be read back is left out.
        """
        self._remote.join()
        for some in self._remote.names("reply"):
            texts = self._remote.texts("reply", some)
            digests = _digests(texts)
            prompts = _undamaged(self._remote.texts("prompt", list(set(digests.values()))))
            for key, digest in digests.items():
                with suppress(ValueError):
                    yield base.decode_reply(texts[key]), base.decode_request(texts[key], prompts.get(digest))

    # Up to Redis and down to the disk.

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
            texts = disk.texts(block)
            if not self._remote.put(texts, _messages(disk, texts)):
                return
            for key in block:
                del self._unsent[key]

    # What there is to say.

    def _update_notes(self) -> None:
        """Bring the notes up to date; what is new among them is said at once."""
        with self._notes_lock:
            for topic, message in (("loss", self._loss_message()), ("refusal", self._refusal_message())):
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

    def _refusal_message(self) -> str:
        if not self._remote.refusal:
            return ""
        where = "" if self._disk is None else "; this machine has them all"
        return (
            f"The shared cache {self._remote.address} did not take every reply ({self._remote.refusal}){where}. "
            "What several asked for meanwhile may have been paid by each."
        )


def _read(texts: Mapping[str, str]) -> dict[str, Response]:
    responses: dict[str, Response] = {}
    for key, text in texts.items():
        with suppress(ValueError):
            responses[key] = base.decode_reply(text)
    return responses


def _digests(texts: Mapping[str, str]) -> dict[str, str]:
    """The digests of the messages of these rows, empty where a row has none; nothing of what is no row."""
    digests: dict[str, str] = {}
    for key, text in texts.items():
        with suppress(ValueError):
            digests[key] = base.digest_of(text)
    return digests


def _messages(disk: DiskCache, texts: Mapping[str, str]) -> dict[str, str]:
    """The prompts of rows that are on a disk."""
    return disk.messages(list({digest for digest in _digests(texts).values() if digest}))


def _undamaged(prompts: Mapping[str, str]) -> dict[str, str]:
    """Those of these messages that are what their digest says."""
    return {digest: messages for digest, messages in prompts.items() if base.digest_matches(digest, messages)}
