"""Send the first request of a run alone."""

from __future__ import annotations

import asyncio

from judge.core.errors import ProviderError
from judge.core.records import Request, Response
from judge.execution.layers import Layer


class FirstAlone:
    """Holds all requests until the first one is answered.

    So a parameter that the server refuses, or a wrong key, is found once. If the first error ends
    the run, nothing is sent after it, and all other requests raise it, too.
    """

    def __init__(self, following: Layer) -> None:
        self._following = following
        self._first = asyncio.Lock()
        self._learned = False
        self._end: ProviderError | None = None

    async def ask(self, request: Request) -> Response:
        if not self._learned:
            async with self._first:
                # Another request may have been the first one meanwhile.
                if not self._learned:
                    return await self._ask_first(request)
        if self._end is not None:
            raise self._end
        return await self._following.ask(request)

    async def _ask_first(self, request: Request) -> Response:
        try:
            return await self._following.ask(request)
        except ProviderError as error:
            if error.stops != "never":
                self._end = error
            raise
        finally:
            self._learned = True
