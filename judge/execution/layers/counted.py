"""Count messages and answers for the display and for run.json."""

from __future__ import annotations

from judge.core.errors import ProviderError
from judge.core.records import Request, Response
from judge.execution.layers import Layer
from judge.execution.progress import JudgeProgress


class Counted:
    """Counts the answered and the abandoned messages, and the tokens used."""

    def __init__(self, following: Layer, counts: JudgeProgress) -> None:
        self._following = following
        self._counts = counts

    async def ask(self, request: Request) -> Response:
        try:
            response = await self._following.ask(request)
        except ProviderError:
            self._counts.refused += 1
            raise
        self._counts.answered += 1
        self._counts.usage += response.usage
        self._counts.note_server(response)
        return response
