"""The layers of a `ReplyClient`, each with one method: `ask` a request, and return its response.

A layer gets the next one, which it asks. `reply_client` has their order and its reasons.
"""

from __future__ import annotations

from typing import Protocol

from judge.core.records import Request, Response


class Layer(Protocol):
    """Answers requests, by itself or by asking the next layer."""

    async def ask(self, request: Request) -> Response:
        """Return the response. Raises ProviderError."""
        ...


class RunStopped(Exception):
    """Raised instead of sending a request once the run has been asked to stop."""
