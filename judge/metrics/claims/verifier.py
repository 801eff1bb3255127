"""The interface of a verifier, which gives the probability that a text supports each claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from judge.metrics.base import ModelError


class Job(NamedTuple):
    """Claims, at least one, and the text that they are checked against, which is not blank."""

    text: str
    claims: tuple[str, ...]


@runtime_checkable
class Verifier(Protocol):
    """Checks claims against texts.

    `signature` names the model and its settings; it is read after `verify`, which may add to it.
    """

    @property
    def signature(self) -> str: ...

    def verify(self, jobs: Sequence[Job]) -> list[list[float] | ModelError]:
        """Return the probability of support (0–1) of each claim of each job, or why there is none.

        No two jobs are equal.
        """
        ...
