"""Replies out of the cache into a recording and back, so that others need not pay for them again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from judge.cache import DiskCache
from judge.errors import ConfigError, DataError
from judge.providers.http import Endpoint
from judge.recording import Recorder, entries, request_of
from judge.registry import unknown


@dataclass(frozen=True, slots=True)
class Exported:
    """Replies that were written, and those left in the cache: `older` hold no prompt, `offline` are of no server."""

    written: int = 0
    older: int = 0
    offline: int = 0


@dataclass(frozen=True, slots=True)
class Imported:
    """Replies that were put into the cache, and those to requests that it had replies to."""

    added: int = 0
    known: int = 0


def export_replies(folder: Path, path: Path, *, model: str | None = None, base_url: str | None = None) -> Exported:
    """Add a cache's replies to a recording: all, or those of a model, of a server. Raises JudgeError."""
    place = address(base_url) if base_url else None
    counts: Counter[str] = Counter()
    models = set()
    with DiskCache(folder) as cache, Recorder(path) as recorder:
        for response, request in cache.everything():
            if request is None:
                counts["older"] += 1
            elif not request.endpoint.startswith(("http://", "https://")):
                counts["offline"] += 1
            else:
                models.add(request.model)
                if model in (None, request.model) and place in (None, request.endpoint):
                    recorder.add(request, response, request.endpoint)
                    counts["written"] += 1
        if model is not None and model not in models:
            raise ConfigError(f"--model: {unknown('model', model, sorted(models))}")
    return Exported(**counts)


def import_replies(folder: Path, path: Path, *, base_url: str | None = None) -> Imported:
    """Put a recording's replies into a cache that has none to the same requests. Raises JudgeError.

    They count as those of the server that the line names, else of `base_url`, which is by default what a run asks.
    """
    place = address(base_url)
    added = known = 0
    with DiskCache(folder) as cache:
        for entry in entries(path):
            if entry.line is None:
                raise DataError(
                    f"{path}: it says of its replies {entry.note!r}, which out of a cache no report would; use --replay"
                )
            call, endpoint, replies = entry.line
            requests = {draw: request_of(call, draw, endpoint or place) for draw in replies}
            keys = {draw: request.key() for draw, request in requests.items()}
            there = cache.get_many(list(keys.values()))
            for draw, response in replies.items():
                if keys[draw] in there:
                    known += 1
                else:
                    cache.put(keys[draw], response, requests[draw])
                    added += 1
    return Imported(added, known)


def address(base_url: str | None) -> str:
    """The server's address as requests have it: by default $OPENAI_BASE_URL, else OpenAI's. Raises ConfigError."""
    return Endpoint(base_url=base_url, needs_key=False).url
