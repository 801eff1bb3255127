"""Ask for several draws of one prompt in one message."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from judge.core.errors import ProviderError
from judge.core.records import Request, Response
from judge.execution.layers import Layer, RunStopped
from judge.execution.layers.draws import as_message, replies_of
from judge.execution.per_turn import PerTurn


@dataclass(slots=True, eq=False)
class _Bundle:
    """The draws of one prompt in one message.

    The caller of the first draw sends it; `answers` has a future for each other draw.
    """

    draws: list[Request]
    answers: list[asyncio.Future[Response | None]]

    def add(self, draw: Request) -> asyncio.Future[Response | None]:
        """Return the future reply to one more draw."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Response | None] = loop.create_future()
        self.draws.append(draw)
        self.answers.append(answer)
        return answer

    def hand_out(self, replies: Sequence[Response]) -> None:
        """Give each draw but the first its reply, None if the server returned fewer."""
        for answer, reply in zip_longest(self.answers, replies):
            if not answer.done():
                answer.set_result(reply)

    def give_up(self, error: BaseException) -> None:
        """Give the other draws an error.

        If only the caller of the first draw was cancelled, the others have to ask themselves.
        """
        if not isinstance(error, ProviderError | RunStopped):
            self.hand_out([])
            return
        for answer in self.answers:
            if not answer.done():
                answer.set_exception(error)
                # asyncio warns of an exception that nobody retrieves: the caller may be cancelled.
                answer.exception()


class Bundled:
    """Asks for the draws of one turn of the event loop with one message and the parameter `n`.

    Each draw has its own reply, and the first one the usage. `largest` is the most draws of a
    message. If the server returns fewer, the missing ones are requested again in smaller bundles.
    """

    def __init__(self, following: Layer, largest: int) -> None:
        self.largest = largest
        self._following = following
        self._join = PerTurn(self._form_bundles)

    async def ask(self, request: Request) -> Response:
        while True:
            joined = await self._join(request)
            if isinstance(joined, _Bundle):
                return await self._send(joined)
            response = await joined
            if response is not None:
                return response

    def _form_bundles(
        self, requests: Sequence[Request]
    ) -> list[_Bundle | asyncio.Future[Response | None]]:
        """Return for each request the bundle that it has to send, or the future of its reply.

        The reply is None if the server returned too few draws.
        """
        last_bundles: dict[_Prompt, _Bundle] = {}
        joined: list[_Bundle | asyncio.Future[Response | None]] = []
        for request in requests:
            prompt = _Prompt.of(request)
            bundle = last_bundles.get(prompt)
            if bundle is not None and self._has_room(bundle, request):
                joined.append(bundle.add(request))
            else:
                bundle = _Bundle([request], [])
                last_bundles[prompt] = bundle
                joined.append(bundle)
        return joined

    def _has_room(self, bundle: _Bundle, request: Request) -> bool:
        follows = request.draw == bundle.draws[-1].draw + 1
        return follows and len(bundle.draws) < self.largest

    async def _send(self, bundle: _Bundle) -> Response:
        message = as_message(bundle.draws)
        try:
            response = await self._following.ask(message)
        except BaseException as error:
            bundle.give_up(error)
            raise
        first_response, *others = replies_of(message, response)
        if len(others) < len(bundle.answers):
            self.largest = min(self.largest, 1 + len(others))
        bundle.hand_out(others)
        return first_response


@dataclass(frozen=True, slots=True)
class _Prompt:
    """What the draws of one prompt have in common."""

    model: str
    params: str
    texts: tuple[str, ...]

    @classmethod
    def of(cls, request: Request) -> _Prompt:
        texts = [message["content"] for message in request.messages]
        return cls(request.model, repr(request.params), tuple(texts))
