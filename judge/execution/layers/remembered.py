"""Let the questions about one text share a reply, even if nothing is stored."""

from __future__ import annotations

from judge.core.records import Request, Response
from judge.execution.layers import Layer


class Remembered:
    """Answers a request that was answered before. Each text has an instance of its own."""

    def __init__(self, following: Layer) -> None:
        self._following = following
        self._responses: dict[str, Response] = {}

    async def ask(self, request: Request) -> Response:
        request_key = request.key()
        if request_key not in self._responses:
            self._responses[request_key] = await self._following.ask(request)
        return self._responses[request_key]
