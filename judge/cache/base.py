"""What a run needs of a cache, and one that has nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, Self

from judge.core.records import Request, Response


class Cache(Protocol):
    """What a run needs of a cache."""

    @property
    def claims(self) -> bool:
        """Whether another process may ever hold what is to be claimed."""
        ...

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

        They are until they are released, or this process ends. A reply may have come in since it was last looked up.
        """
        ...

    def release(self, keys: Sequence[str]) -> None:
        """Let others ask for these, or find what is kept of them: after the `flush` of what was put."""
        ...

    def close(self) -> None:
        """Flush and let go of the files."""
        ...


class Store(Cache, Protocol):
    """A cache to be counted, copied or forgotten. Each of these may raise StorageError."""

    def stats(self) -> dict[str, int]:
        """Number of `responses`, and `bytes` that are kept."""
        ...

    def clear(self) -> int:
        """Forget every response; returns how many there were."""
        ...

    def everything(self) -> Iterator[tuple[Response, Request | None]]:
        """Every stored response and what was asked for it, as far as it is known; some may come twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class NoCache:
    """Remembers nothing (`--no-cache`)."""

    claims = False

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
