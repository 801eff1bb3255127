"""Everything that `judge` raises on purpose, split by who can fix the problem.

    JudgeError
    ├── ConfigError       the command line, run.yaml or an argument: the caller of the run
    ├── DataError         the data file or frame: the author of the data
    ├── CriterionError    a criterion's template or header: the author of the criterion
    ├── MissingExtra      a package that is not installed: pip (the message has the line)
    ├── StorageError      the disk: a cache or run folder that cannot be read or written
    ├── ParseError        one reply without a usable score; becomes a Failure, never a number
    ├── NotAsked          one judgment that was not requested, as others failed; becomes a Failure
    ├── ProviderError     the judge model's endpoint
    │   ├── Transient     worth a retry: 408, 409, 429, 5xx, time-outs, dropped connections
    │   └── Refused       not worth a retry: 400, 401, 403, 404, content policy, not an API
    │       └── Unrecorded   a recording without a reply to the prompt
    └── Reached           a limit of the run; replies are kept, and the same command resumes
        ├── BudgetReached    the next request might cost more than is left (`--budget`)
        └── DeadlineReached  the time is up (`--deadline`)

A message says what happened, where (file:line, item, URL) and what to do next.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

_JUDGE = Path(__file__).parents[1]
_IPYTHON = {"IPython", "ipykernel"}

Stops = Literal["never", "if_first", "always"]
"""Whether an error ends the run: never, only if no request has succeeded yet, or always."""


class JudgeError(Exception):
    """Base class of the errors that judge raises.

    The message says what is wrong, where, and what to do. A failed judgment raises nothing; it is
    in `result.failures`.
    """

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the message alone if a line of the cell made the call.

        If functions or files of the user made it, their lines are first.
        """
        frames = traceback.extract_tb(self.__traceback__)
        own_frames = [frame for frame in frames if not _is_of_a_package(frame.filename)]
        # A cell is no file, and is right above the message.
        if own_frames and not Path(own_frames[0].filename).exists():
            own_frames = own_frames[1:]
        lines = "".join(traceback.format_list(own_frames)).splitlines()
        return [*lines, f"{type(self).__name__}: {self}"]


def _is_of_a_package(filename: str) -> bool:
    """Return whether a file is judge's or IPython's, and not the user's."""
    path = Path(filename)
    return path.is_relative_to(_JUDGE) or not _IPYTHON.isdisjoint(path.parts)


class ConfigError(JudgeError):
    """An argument or option is wrong."""


class DataError(JudgeError):
    """The data cannot be read as samples."""


class CriterionError(JudgeError):
    """A criterion's header or template is wrong."""


class MissingExtra(JudgeError):
    """An optional package is not installed."""


class StorageError(JudgeError):
    """A folder cannot be read or written."""


class ParseError(JudgeError):
    """A reply holds no usable score.

    `raw` is the unchanged reply, `position` the index of the character at which its score should
    begin, if known.
    """

    def __init__(
        self, message: str, raw: str = "", position: int | None = None
    ) -> None:
        super().__init__(message)
        self.raw = raw
        self.position = position


class NotAsked(JudgeError):
    """A judgment was not requested, because the requests before it all failed for one reason."""


class ProviderError(JudgeError):
    """A request was not answered. `stops` says whether the whole run should end with it."""

    def __init__(self, message: str, *, stops: Stops = "never") -> None:
        super().__init__(message)
        self.stops: Stops = stops


class Transient(ProviderError):
    """A request that may succeed if it is retried, `retry_after` seconds from now if known.

    `status` is the HTTP status, None without a reply; `unreachable` is whether there was no server.
    `billed` marks a time-out, after which the provider may have done (and charged for) the work.
    `limits` are the reply's `x-ratelimit-*` headers, in lower case.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        unreachable: bool = False,
        billed: bool = False,
        stops: Stops = "never",
        limits: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, stops=stops)
        self.status = status
        self.retry_after = retry_after
        self.unreachable = unreachable
        self.billed = billed
        self.limits: Mapping[str, str] = limits or {}


class Refused(ProviderError):
    """A request that the provider will not answer. `param` is the refused parameter, if known.

    `billed` marks a useless reply that has its price nevertheless.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        param: str | None = None,
        billed: bool = False,
        stops: Stops = "never",
    ) -> None:
        super().__init__(message, stops=stops)
        self.status = status
        self.param = param
        self.billed = billed


class NotSent(ProviderError):
    """A request that a dry run would have sent."""


class Unrecorded(Refused):
    """A recording holds no reply to this prompt."""


class Reached(JudgeError):
    """The run has reached one of its limits, and stops."""


class BudgetReached(Reached):
    """The next request might cost more than is left of the budget."""


class DeadlineReached(Reached):
    """The time for judging is up."""
