"""What a run needs of a cache, and one that has nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from judge.records import Request, Response


class Cache(Protocol):
    """What a run needs of a cache."""

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """The stored responses among these keys."""
        ...

    def put(self, key: str, response: Response, request: Request | None = None) -> None:
        """Keep a response and what was asked; both are safe on disk after the next `flush`."""
        ...

    def flush(self) -> None:
        """Write what was put. Raises StorageError, keeping everything unwritten for the next try."""
        ...

    def close(self) -> None:
        """Flush and let go of the files."""
        ...


class NoCache:
    """Remembers nothing (`--no-cache`)."""

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        return {}

    def put(self, key: str, response: Response, request: Request | None = None) -> None:
        return

    def flush(self) -> None:
        return

    def close(self) -> None:
        return
