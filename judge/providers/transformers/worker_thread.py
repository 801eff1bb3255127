"""Where requests wait for the one thread that computes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

from judge.core.records import Request, Response

_PAUSE, _LONGEST = 0.005, 0.05
"""Seconds without a new request after which those that have come are taken, and after which they are in any case."""

Outcome = Response | Exception


class Job:
    """A request, and the future of its answer in an event loop."""

    __slots__ = ("_loop", "future", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Response] = self._loop.create_future()

    @property
    def over(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.future.done()

    def settle(self, outcome: Outcome) -> None:
        """Hand over the answer, from whichever thread. An error loses its frames, which hold on to job and model."""
        if isinstance(outcome, Exception):
            _unframe(outcome)
        try:
            self._loop.call_soon_threadsafe(self._settle, outcome)
        except RuntimeError:  # the loop is closed: nobody waits
            return

    def _settle(self, outcome: Outcome) -> None:
        if self.future.done():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class Desk:
    """One thread, begun with the first request, that has `work` called with all jobs that have come meanwhile.

    `work` should not lead back to who has the desk, or the two stay in memory until a garbage collection.
    """

    def __init__(self, work: Callable[[Sequence[Job]], None]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._shift: _Shift | None = None

    async def ask(self, request: Request) -> Response:
        """The answer to a request. Raises the error that came in its place."""
        return await self._put(Job(request))

    async def aclose(self) -> None:
        """End the thread, once it is done with what it was asked. A later request begins another, after it."""
        with self._lock:
            shift = self._shift
        if shift is not None:
            shift.close()
            await asyncio.to_thread(shift.join)

    def _put(self, job: Job) -> asyncio.Future[Response]:
        with self._lock:
            if self._shift is None or not self._shift.put(job):
                self._shift = _Shift(self._work, self._shift, job)
                self._shift.start()
        return job.future


class _Shift(threading.Thread):
    """A thread with jobs of its own, which begins when the one before has ended."""

    def __init__(self, work: Callable[[Sequence[Job]], None], before: threading.Thread | None, first: Job) -> None:
        super().__init__(name="judge-local", daemon=True)
        self._work, self._before = work, before
        self._jobs = [first]
        self._condition = threading.Condition()
        self._closing = False

    def put(self, job: Job) -> bool:
        """Whether it takes the job, as it does until it is told to end."""
        with self._condition:
            if not self._closing:
                self._jobs.append(job)
                self._condition.notify()
            return not self._closing

    def close(self) -> None:
        """Tell it to end, once its jobs are done."""
        with self._condition:
            self._closing = True
            self._condition.notify()

    def run(self) -> None:
        if self._before is not None:
            self._before.join()
            self._before = None
        while jobs := self._taken():
            try:
                self._work(jobs)
            except Exception as error:  # noqa: BLE001  (it is raised where the answers are waited for)
                for job in jobs:
                    job.settle(error)

    def _taken(self) -> list[Job]:
        """All jobs that have come, once no more do for a moment; none when it is time to end."""
        with self._condition:
            while not self._jobs:
                if self._closing:
                    return []
                self._condition.wait()
            until, seen = time.monotonic() + _LONGEST, 0
            while seen != len(self._jobs) and time.monotonic() < until and not self._closing:
                seen = len(self._jobs)
                self._condition.wait(_PAUSE)
            taken, self._jobs = self._jobs, []
            return taken


def _unframe(error: BaseException) -> None:
    """Takes the frames off an error, and off those that led to it."""
    one: BaseException | None = error
    while one is not None:
        one.__traceback__ = None
        one = one.__cause__ or one.__context__
