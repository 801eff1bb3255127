"""Equal requests at the same time are sent once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from judge.core.errors import ProviderError
from judge.core.records import Request, Response
from judge.execution.layers import Layer, RunStopped


class Deduplicated:
    """Gives the answer to a request, a reply or an error, to all who ask the same meanwhile."""

    def __init__(self, following: Layer) -> None:
        self._following = following
        self._in_flight: dict[str, asyncio.Future[Response]] = {}
        self._announced: set[str] = set()

    def announce(self, requests: Iterable[Request]) -> None:
        """Note that requests come next: several that one judgment needs start only in the next turn of the loop."""
        self._announced.update(request.key() for request in requests)

    def is_in_flight(self, request: Request) -> bool:
        """Whether an equal request waits for its answer, or is about to."""
        return request.key() in self._in_flight or request.key() in self._announced

    async def ask(self, request: Request) -> Response:
        key = request.key()
        self._announced.discard(key)
        while (other := self._in_flight.get(key)) is not None:
            await asyncio.wait([other])
            if not other.cancelled():  # else nobody asks any more
                return other.result()
        answer = self._in_flight[key] = asyncio.get_running_loop().create_future()
        try:
            response = await self._following.ask(request)
        except (ProviderError, RunStopped) as error:
            answer.set_exception(error)
            answer.exception()  # nobody else may have asked
            raise
        except BaseException:
            answer.cancel()
            raise
        else:
            answer.set_result(response)
            return response
        finally:
            del self._in_flight[key]
