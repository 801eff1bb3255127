"""Draws of one prompt are asked for in one message, as many as the server gives at once."""

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
    """The draws of one prompt that travel together; `answers` has a future for each but the first, who sends it."""

    draws: list[Request]
    answers: list[asyncio.Future[Response | None]]


class Bundled:
    """Asks for draws that come in the same turn of the event loop with one message and the parameter `n`.

    Each draw has its own reply, and the first one the usage. `largest` is the most draws of a message: the server may
    give fewer than it was asked for, and then the others are asked for again, in smaller bundles.
    """

    def __init__(self, following: Layer, largest: int) -> None:
        self.largest = largest
        self._following = following
        self._join = PerTurn(self._form_bundles)

    async def ask(self, request: Request) -> Response:
        while True:
            place = await self._join(request)
            if isinstance(place, _Bundle):
                return await self._send(place)
            if (response := await place) is not None:
                return response

    def _form_bundles(
        self, requests: Sequence[Request]
    ) -> list[_Bundle | asyncio.Future[Response | None]]:
        """Return for each request the bundle that it has to send, or a future of its reply, None if there is none."""
        loop = asyncio.get_running_loop()
        open_bundles: dict[tuple[str, ...], _Bundle] = {}
        places: list[_Bundle | asyncio.Future[Response | None]] = []
        for request in requests:
            texts = [message["content"] for message in request.messages]
            prompt = (request.model, repr(request.params), *texts)
            bundle = open_bundles.get(prompt)
            if bundle is None or not self._has_room(bundle, request):
                open_bundles[prompt] = bundle = _Bundle([request], [])
                places.append(bundle)
            else:
                future: asyncio.Future[Response | None] = loop.create_future()
                bundle.draws.append(request)
                bundle.answers.append(future)
                places.append(future)
        return places

    def _has_room(self, bundle: _Bundle, request: Request) -> bool:
        follows = request.draw == bundle.draws[-1].draw + 1
        return follows and len(bundle.draws) < self.largest

    async def _send(self, bundle: _Bundle) -> Response:
        message = as_message(bundle.draws)
        try:
            response = await self._following.ask(message)
        except (ProviderError, RunStopped) as error:
            for answer in bundle.answers:
                if not answer.done():
                    answer.set_exception(error)
                    answer.exception()  # whoever asked may have been cancelled
            raise
        except BaseException:
            for answer in bundle.answers:
                if not answer.done():
                    answer.set_result(None)  # whoever still wants it has to ask
            raise
        first, *others = replies_of(message, response)
        if len(others) < len(bundle.answers):
            self.largest = min(self.largest, 1 + len(others))
        for answer, reply in zip_longest(bundle.answers, others):
            if not answer.done():
                answer.set_result(reply)
        return first
