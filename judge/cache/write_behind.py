"""What is on its way to a cache that machines share: a thread sends it, so that nobody waits for the network."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

BLOCK = 500
_MOST = 20_000
"""Texts that may be on their way at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Parcel:
    """Rows to be written, and `new` ones where there are none, with prompts; then claims to be released."""

    rows: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    new: Mapping[str, str] = field(default_factory=dict)
    released: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.rows) + len(self.new)


class Sender:
    """Hands parcels to `send` in their order, several at once, which says whether all of them were taken.

    `beat` is called by the same thread whenever the seconds that `pause` returns have gone by.
    """

    def __init__(
        self, send: Callable[[Sequence[Parcel]], bool], beat: Callable[[], None], pause: Callable[[], float]
    ) -> None:
        self._send, self._beat, self._pause = send, beat, pause
        self._queue: deque[Parcel] = deque()
        self._under_way: list[Parcel] = []
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

    def add(self, parcel: Parcel) -> bool:
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
