"""The queue that orders requests so that a provider can read documents from its prompt cache.

A prefix is in the cache once a first request with it was answered, not before: of a group of requests on one document
a leader goes first, and the others wait for its answer. OpenAI sends the requests of a key that come faster than about
15 a minute to other machines, which have not seen the prefix.
"""

from __future__ import annotations

import hashlib
import heapq
import sys
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf

from judge.core.records import Example, Message, Request
from judge.execution import budget

SHORTEST = 1_024
"""Tokens of the shortest prefix that providers cache."""
ROOM = 64 * 2**20
"""Bytes of prompts that may wait."""
_WARM_SECONDS = 300.0
"""How long a provider keeps a prefix at least after it was last used."""
_PER_MINUTE = 15
_MINUTE = 60.0
_ID = 32
_estimate = lru_cache(4_096)(budget.estimate_tokens)


def prefix(
    messages: tuple[Message, ...], source: str | None, examples: Sequence[Example] = ()
) -> tuple[str, int]:
    """Return the group of a prompt, and the number of characters that all prompts of the group begin with.

    They end with the source or, if that is short, with the criterion's examples. ("", 0) if they are too few to cache.
    """
    text, body = messages[0]["content"], (source or "").strip()
    start = 0
    for example in examples:
        if (place := text.find(example.output, start)) >= 0:
            start = place + len(example.output)
    end, known = start, 0
    if len(body) >= SHORTEST // 2 and (place := text.find(body, start)) >= 0:
        start, end, known = place, place + len(body), _estimate(body)
    if end < SHORTEST or known + _estimate(text[:start]) < SHORTEST:
        return "", 0
    return hashlib.sha256(text[:end].encode("utf-8", "surrogatepass")).hexdigest()[:_ID], end


@dataclass(slots=True)
class _Group:
    """The waiting requests of one prefix, the times of the last ones sent, and the time of its last reply."""

    waiting: deque[Request] = field(default_factory=deque)
    sent: deque[float] = field(default_factory=lambda: deque(maxlen=_PER_MINUTE))
    answered_at: float = -inf
    leading: bool = False


class PrefixAwareQueue:
    """Requests that wait to be sent. Times are seconds of a monotonic clock.

    `paced` limits a group to 15 requests a minute while others can be sent.
    """

    def __init__(self, *, paced: bool = False) -> None:
        self._paced = paced
        self._plain: deque[Request] = deque()
        self._groups: OrderedDict[str, _Group] = OrderedDict()
        self._warm: deque[str] = deque()
        self._cold: deque[str] = deque()
        self._resting: list[tuple[float, str]] = []
        self._latest = ""
        self._bytes = 0
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    @property
    def grouped(self) -> bool:
        """Whether any request had a group lately."""
        return bool(self._groups)

    @property
    def full(self) -> bool:
        """Whether no more should be added before some are taken."""
        return self._bytes >= ROOM

    def add(self, requests: Iterable[Request], now: float) -> None:
        """Add requests; those of one group must be adjacent."""
        for request in requests:
            self._waiting += 1
            self._bytes += _size(request)
            self._latest = request.prefix[0]
            if not self._latest:
                self._plain.append(request)
                continue
            group = self._groups.setdefault(self._latest, _Group())
            if not group.waiting and not group.leading:
                (self._warm if now - group.answered_at <= _WARM_SECONDS else self._cold).append(
                    self._latest
                )
            group.waiting.append(request)

    def take(self, now: float, *, last: bool) -> Request | None:
        """Return the request to send now; None if all wait for their leaders' replies.

        If `last` is False, also None if more requests should be added first: a single request may turn out to be a
        leader, and a group that has had its 15 requests of this minute can wait.
        """
        while self._resting and self._resting[0][0] <= now:
            self._warm.append(heapq.heappop(self._resting)[1])
        while self._warm:
            name = self._warm[0]
            group = self._groups[name]
            if now - group.answered_at > _WARM_SECONDS:
                self._cold.append(self._warm.popleft())
            elif self._paced and len(group.sent) == _PER_MINUTE and now - group.sent[0] < _MINUTE:
                heapq.heappush(self._resting, (group.sent[0] + _MINUTE, self._warm.popleft()))
            else:
                return self._next_of_group(name, group, now)
        # The first request of a group without a recent reply.
        for _ in range(len(self._cold)):
            name = self._cold[0]
            group = self._groups[name]
            if len(group.waiting) > 1:
                self._cold.popleft()
                group.leading = True
                group.sent.append(now)
                return self._remove(group.waiting.popleft())
            if last or name != self._latest:
                del self._groups[self._cold.popleft()]
                return self._remove(
                    replace(group.waiting.popleft(), prefix=(name, 0))
                )  # nobody will read it again
            self._cold.rotate(-1)
        if self._plain:
            return self._remove(self._plain.popleft())
        if last and self._resting:
            _, name = heapq.heappop(self._resting)
            self._warm.append(name)
            return self._next_of_group(name, self._groups[name], now)
        return None

    def answered(self, request: Request, now: float) -> None:
        """Note the end of a request, with a reply or without."""
        name, length = request.prefix
        group = self._groups.get(name)
        if group is None or not length:
            return
        group.answered_at = now
        self._groups.move_to_end(name)
        if group.leading:
            group.leading = False
            if group.waiting:
                self._warm.append(name)
        # Groups end in this order; a group is forgotten once its prefix is out of the provider's cache.
        for oldest, group in list(self._groups.items())[:2]:
            if group.waiting or group.leading or now - group.answered_at <= _WARM_SECONDS:
                break
            del self._groups[oldest]

    def clear(self) -> None:
        """Forget the waiting requests, but not which prefixes are warm."""
        for line in (self._plain, self._warm, self._cold, self._resting):
            line.clear()
        for group in self._groups.values():
            group.waiting.clear()
        self._waiting = self._bytes = 0

    def _next_of_group(self, name: str, group: _Group, now: float) -> Request:
        """The next request of a warm group."""
        group.sent.append(now)
        request = self._remove(group.waiting.popleft())
        if not group.waiting:
            self._warm.remove(name)
        return request

    def _remove(self, request: Request) -> Request:
        self._waiting -= 1
        self._bytes -= _size(request)
        return request


def _size(request: Request) -> int:
    return sum(sys.getsizeof(message["content"]) for message in request.messages)
