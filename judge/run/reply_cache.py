"""Reuse replies that are already paid: from the cache, or else from the recording of the run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from judge.cache import Cache, NoCache, open_cache
from judge.config import RunConfig
from judge.core.errors import StorageError
from judge.core.files import unused_path
from judge.core.records import Request, Response
from judge.execution.layers.cached import ReplyStore
from judge.execution.progress import Progress, UnstoredReplies
from judge.providers.recorded_call import request_of
from judge.providers.recording import Recorder, RecordingFile


class RecordedReplies(Cache):
    """The replies of servers in a recording, as they are when it is opened.

    It stores nothing, because the run itself records. Raises DataError for a file that is no
    recording.
    """

    def __init__(self, path: Path) -> None:
        self._replies: dict[str, Response] = {}
        with RecordingFile(path) as recording:
            for call, endpoint, replies in recording.lines():
                for draw, response in replies.items():
                    self._replies[request_of(call, draw, endpoint).key()] = response

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """The recorded responses among these keys."""
        known_keys = [key for key in keys if key in self._replies]
        return {key: self._replies[key] for key in known_keys}


def open_reply_cache(
    config: RunConfig,
    notes: list[str] | None = None,
    *,
    make: bool = True,
) -> Cache:
    """Open the store of the replies that are already paid.

    Raises StorageError and DataError. Without `make` no folder is made for a cache.
    """
    if config.cache is False and config.record is not None:
        recorded = config.record.is_file()
        return RecordedReplies(config.record) if recorded else NoCache()
    return open_cache(config.cache, notes, make=make)


@contextmanager
def open_replies(
    config: RunConfig,
    recording: Recorder | None,
    progress: Progress,
) -> Iterator[ReplyStore]:
    """Open the replies of a run, and store all of them in the end.

    Replies that cannot be stored are written into another recording, which `progress` names. Raises
    StorageError, DataError, and what the block raises.
    """
    cache = open_reply_cache(config, progress.notes)
    replies = ReplyStore(cache, recording)
    try:
        yield replies
    finally:
        try:
            try:
                replies.flush()
            finally:
                cache.close()
        except StorageError:
            progress.unstored = _rescue(replies.unstored, config)
            raise


def _rescue(
    unstored_replies: Sequence[tuple[Request, Response]], config: RunConfig
) -> UnstoredReplies | None:
    """Write replies into a recording beside the run's folder, or in the temporary folder."""
    if not unstored_replies:
        return None
    name = "judge" if config.out is None else config.out.absolute().name
    folders = [Path(gettempdir())]
    if config.out is not None:
        folders.insert(0, config.out.absolute().parent)
    for folder in folders:
        path = unused_path(folder / f"{name}.rescued.jsonl")
        try:
            with Recorder(path) as recorder:
                for request, response in unstored_replies:
                    recorder.add(request, response)
        except StorageError:
            path.unlink(missing_ok=True)
        else:
            return UnstoredReplies(len(unstored_replies), path)
    return UnstoredReplies(len(unstored_replies), None)


def answered_again(config: RunConfig, unstored: UnstoredReplies | None) -> str:
    """Return sentences on what a new run is not charged for, and how it finds the other replies."""
    keeper = config.replies_kept_in
    answers = f"The {keeper} answers what is already paid for"
    if unstored is None:
        return f"{answers}."
    answers += f", except {unstored.number:,} of the replies"
    if unstored.path is None:
        return f"{answers}, which no folder could take."
    if keeper == "recording":
        first_step = f"append this file to {config.record}"
    else:
        rescued = shlex.quote(str(unstored.path))
        command = f"judge doctor cache import {rescued}"
        if config.cache:
            folder = shlex.quote(str(config.cache))
            command = f"judge doctor cache import {rescued} --cache {folder}"
        first_step = f"run `{command}`"
    return f"{answers}. These are in {unstored.path}: first {first_step}."
