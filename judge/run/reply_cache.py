"""What answers again what is paid for: the cache, or without one the recording that the run adds
to.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from judge.cache import Cache, NoCache, open_cache
from judge.config import RunConfig
from judge.core.records import Response
from judge.providers.recorded_call import request_of
from judge.providers.recording import RecordingFile


class RecordedReplies(Cache):
    """The replies of servers in a recording, as they are when it is opened. It stores nothing: the
    run records.

    Raises DataError for a file that is no recording.
    """

    def __init__(self, path: Path) -> None:
        self._replies: dict[str, Response] = {}
        with RecordingFile(path) as recording:
            for call, endpoint, replies in recording.lines():
                for draw, response in replies.items():
                    self._replies[request_of(call, draw, endpoint).key()] = response

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """The recorded responses among these keys."""
        known = [key for key in keys if key in self._replies]
        return {key: self._replies[key] for key in known}


def open_reply_cache(
    config: RunConfig, notes: list[str] | None = None, *, make: bool = True
) -> Cache:
    """Return what answers the requests of a run that are already paid for. Raises StorageError and
    DataError.

    Without `make` no folder is made for a cache.
    """
    if config.cache is False and config.record is not None:
        recorded = config.record.is_file()
        return RecordedReplies(config.record) if recorded else NoCache()
    return open_cache(config.cache, notes, make=make)
