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

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Those of these keys that another process is asking for just now; the others are this one's from now on.

        They are until they are released, or this process ends.
        """
        ...

    def release(self, keys: Sequence[str]) -> None:
        """Let others ask for these, or find what is kept of them: after the `flush` of what was put."""
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

    def claim(self, keys: Sequence[str]) -> set[str]:
        return set()

    def release(self, keys: Sequence[str]) -> None:
        return

    def close(self) -> None:
        return
