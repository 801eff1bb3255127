"""One worker of a crew: it holds a provider of its own and answers blocks of requests.

What passes between the two is pickled here, so that Ray handles one text for a whole block.
"""

from __future__ import annotations

import asyncio
import pickle
import platform
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from judge.core.errors import JudgeError, Refused
from judge.core.records import Request, Response
from judge.providers import Capabilities, Provider

Reply = Response | Exception
_LINGER = 0.002
"""Seconds that a finished answer waits for others, so that they share one way back."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker says of itself before it is given anything to do. `why` is what keeps it from that, or ""."""

    node: str
    version: str
    endpoint: str = ""
    why: str = ""


def encode_block(asked: Iterable[tuple[int, Request]], dropped: Sequence[int], taught: Any) -> bytes:
    """A block: requests by number, the numbers of those nobody waits for any more, and what others have learned."""
    plain = [(n, r.model, r.messages, r.params, r.draw, r.endpoint, r.prefix) for n, r in asked]
    numbers = [number for number, *_ in plain]  # to be told of, should the rest be of no use there
    return _dumped((numbers, list(dropped), _dumped((plain, taught))))


def decode_answers(block: bytes) -> tuple[list[tuple[int, Reply]], Any]:
    """The answers in what a worker sent, by number, and what its provider has learned, None where nothing."""
    answers, taught = pickle.loads(block)  # noqa: S301  (from a worker of this run's own)
    return [(number, _reply(raw)) for number, raw in answers], taught


def _dumped(what: Any) -> bytes:
    return pickle.dumps(what, pickle.HIGHEST_PROTOCOL)


def _reply(raw: bytes) -> Reply:
    try:
        reply: Reply = pickle.loads(raw)  # noqa: S301  (from a worker of this run's own)
    except Exception as error:  # noqa: BLE001  (whatever an object's own unpickling raises)
        return _lost(error)
    return reply


def _lost(error: Exception) -> Refused:
    """What becomes of one reply that cannot be sent: its price is paid, and asking again would be of no use."""
    why = f"{type(error).__name__}: {error}"
    return Refused(
        f"--engine ray: a reply cannot be sent back from the worker on {platform.node()} ({why}); what the provider's "
        "`complete` returns must be of types that pickle can write, or leave --engine out",
        billed=True,
        stops="if_first",
    )


class Worker:
    """Asks its provider all that it is given at once: how many those are is for whoever gives them to say."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._answers: list[tuple[int, bytes]] = []
        self._news = asyncio.Event()
        self._taught = Capabilities.of(provider).shared_state

    def take(self, block: bytes) -> None:
        """Begin with what is in a block, and let go of what is dropped there.

        Nobody waits for the end of this call: an error in it is the reply to all that the block asks.
        """
        numbers, dropped, rest = pickle.loads(block)  # noqa: S301  (from the process that started this worker)
        try:
            asked, taught = pickle.loads(rest)  # noqa: S301
            requests = [(number, Request(*fields)) for number, *fields in asked]
            if taught is not None:
                self._provider.taught = self._taught = taught  # type: ignore[attr-defined]
        except Exception as error:  # noqa: BLE001  (raised again where the replies are waited for)
            requests, failed = [], _portable(error)
            for number in numbers:
                self._put(number, failed)
        for number, request in requests:
            self._tasks[number] = asyncio.create_task(self._answer(number, request))
        for number in dropped:
            if task := self._tasks.pop(number, None):
                task.cancel()

    async def answers(self) -> bytes:
        """All that was answered since the last call, once there is anything."""
        await self._news.wait()
        await asyncio.sleep(_LINGER)
        self._news.clear()
        found, self._answers = self._answers, []
        taught = Capabilities.of(self._provider).shared_state
        news, self._taught = None if taught == self._taught else taught, taught
        return _dumped((found, news))

    async def _answer(self, number: int, request: Request) -> None:
        reply: Reply
        try:
            reply = await self._provider.complete(request)
        except Exception as error:  # noqa: BLE001  (raised again where it is waited for)
            reply = _portable(error)
        self._tasks.pop(number, None)  # it is gone where nobody waits any more, and the provider did not stop
        self._put(number, reply)

    def _put(self, number: int, reply: Reply) -> None:
        """Each by itself: one that cannot be sent keeps back no other."""
        try:
            raw = _dumped(reply)
        except Exception as error:  # noqa: BLE001  (whatever an object's own pickling raises)
            raw = _dumped(_lost(error))
        self._answers.append((number, raw))
        self._news.set()


def _portable(error: Exception) -> Exception:
    """The error as it is where it can be sent, with the place where it arose if that is a mistake of the program."""
    if not isinstance(error, JudgeError):
        error.add_note(f"On {platform.node()}:\n{''.join(traceback.format_exception(error))}")
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301
    except Exception:  # noqa: BLE001  (whatever an exception's own pickling raises)
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def actor_class() -> type:
    """The class that runs on a worker. It is sent whole: what there is of `judge` is found out where it runs."""

    class Worker:
        async def open(self, version: str, recipe: bytes) -> tuple[str, str, str, str]:
            import os
            import platform

            node = platform.node()
            if os.environ.get("OMP_NUM_THREADS") == "1":  # Ray's, for an actor that has reserved no CPU
                del os.environ["OMP_NUM_THREADS"]
            try:
                import judge
            except ImportError as error:
                return node, "", "", str(error)
            if judge.__version__ != version:
                return node, judge.__version__, "", ""

            self.hand, endpoint, why = create_worker(recipe)
            return node, version, endpoint, why

        async def take(self, block: bytes) -> None:
            self.hand.take(block)  # type: ignore[union-attr]

        async def answers(self) -> bytes:
            return await self.hand.answers()  # type: ignore[union-attr]

    return Worker


def create_worker(recipe: bytes) -> tuple[Worker | None, str, str]:
    """The hand that has this recipe's provider and that one's endpoint, or why there is none."""
    try:
        provider: Provider = pickle.loads(recipe)  # noqa: S301  (from the process that started this worker)
        return Worker(provider), provider.endpoint, ""
    except JudgeError as error:
        return None, "", str(error)
    except Exception as error:  # noqa: BLE001  (whatever the provider's own code or a missing package raises)
        return None, "", f"{type(error).__name__}: {error}"
