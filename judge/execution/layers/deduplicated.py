"""Send equal simultaneous requests once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from judge.core.errors import ProviderError
from judge.core.records import Request, Response
from judge.execution.layers import Layer, RunStopped


class Deduplicated:
    """Returns the answer to a request, a reply or an error, to all equal requests meanwhile."""

    def __init__(self, following: Layer) -> None:
        self._following = following
        self._in_flight: dict[str, asyncio.Future[Response]] = {}
        self._announced: set[str] = set()

    def announce(self, requests: Iterable[Request]) -> None:
        """Note the requests that come next.

        If a judgment needs several, they start only in the next turn of the event loop.
        """
        self._announced.update(request.key() for request in requests)

    def is_in_flight(self, request: Request) -> bool:
        """Return whether an equal request waits for its answer, or will soon."""
        return request.key() in self._in_flight or request.key() in self._announced

    async def ask(self, request: Request) -> Response:
        request_key = request.key()
        self._announced.discard(request_key)
        while (in_flight := self._in_flight.get(request_key)) is not None:
            await asyncio.wait([in_flight])
            # If the other caller was cancelled, this one has to ask.
            if not in_flight.cancelled():
                return in_flight.result()
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._in_flight[request_key] = answer
        try:
            response = await self._following.ask(request)
        except (ProviderError, RunStopped) as error:
            answer.set_exception(error)
            # asyncio warns of an exception that nobody retrieves: there may be no other caller.
            answer.exception()
            raise
        except BaseException:
            answer.cancel()
            raise
        else:
            answer.set_result(response)
            return response
        finally:
            del self._in_flight[request_key]
