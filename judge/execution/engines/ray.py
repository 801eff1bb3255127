"""Requests on a Ray cluster: the run stays in this process, and workers on other machines ask its judge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import Self

from judge.core.errors import MissingExtra
from judge.core.records import Request, Response
from judge.execution.engines import Ask, Context, Done, local, ray_cluster
from judge.execution.engines.ray_pool import Crew, recipe


class RayEngine:
    """One judge's requests, answered by workers that each have its provider.

    Pace, budget, tries, cache and scores are this process's, so that they are the same as without workers. Connects
    with the first request: to the cluster of $RAY_ADDRESS, or to one it starts on this machine and ends again.
    """

    def __init__(self, crew: Crew) -> None:
        self._crew = crew

    @classmethod
    def open(cls, context: Context) -> Self:
        """The engine of a run; starts nothing. Raises MissingExtra without Ray, and ConfigError."""
        if find_spec("ray") is None:
            raise MissingExtra("--engine ray needs the package ray: pip install 'textjudge[ray]'")
        ray_cluster.check()
        recipe(context.provider)
        return cls(Crew(context.provider, context.counts, context.workers))

    async def __call__(self, requests: AsyncIterator[Request], ask: Ask, done: Done, *, concurrency: int) -> None:
        """Have all requests answered. Raises what ends a run, and ConfigError where workers cannot do the work."""
        first = await anext(requests, None)
        if first is None:
            return
        await self._crew.start()

        async def each() -> AsyncIterator[Request]:
            yield first
            async for request in requests:
                yield request

        await local.run(each(), ask, done, concurrency=concurrency)

    async def complete(self, request: Request) -> Response:
        """The response of a worker's provider. Raises what that raises, and Transient where the worker died."""
        return await self._crew.complete(request)

    async def aclose(self) -> None:
        await self._crew.aclose()
