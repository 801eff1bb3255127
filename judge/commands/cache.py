"""Replies out of the cache into a recording and back, so that others need not pay for them again."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from judge.cache import cache_location, open_for_admin
from judge.core.errors import ConfigError, DataError
from judge.core.plugins import unknown_name_message
from judge.core.redis_url import RedisUrl
from judge.providers.http_client import HttpClient
from judge.providers.recording import Recorder, RecordingFile, entries, request_of, server_of


@dataclass(frozen=True, slots=True)
class ExportReport:
    """Replies that were written, and those left in the cache: `older` hold no prompt, `offline` are of no server."""

    written: int = 0
    older: int = 0
    offline: int = 0


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Replies that were put into the cache, and those to requests that it had replies to.

    `servers` are the addresses under which a run finds them, `unfinished` the number of a last line that is cut off.
    """

    added: int
    known: int
    servers: tuple[str, ...]
    unfinished: int | None


def export_replies(
    place: RedisUrl | Path | None, path: Path, *, model: str | None = None, base_url: str | None = None
) -> ExportReport:
    """Add a cache's replies to a recording: all, or those of a model, of a server. Raises JudgeError.

    Where there is none to add, that is a ConfigError, and no file is made.
    """
    wanted = resolve_base_url(base_url) if base_url else None
    counts: Counter[str] = Counter()
    models, servers = set(), set()
    with ExitStack() as opened:
        cache, recorder = opened.enter_context(open_for_admin(place, beneath=False)), None
        for response, request in cache.iter_all():
            server = server_of(request) if request else ""
            if request is None or not server:
                counts["older" if request is None else "offline"] += 1
                continue
            models.add(request.model)
            servers.add(server)
            if model in (None, request.model) and wanted in (None, server):
                recorder = recorder or opened.enter_context(Recorder(path))
                recorder.add(request, response)
                counts["written"] += 1
    done = ExportReport(**counts)
    if model is not None and models and model not in models:
        raise ConfigError(f"--model: {unknown_name_message('model', model, sorted(models))}")
    if wanted is not None and servers and wanted not in servers:
        raise ConfigError(f"--base-url: {unknown_name_message('server', wanted, sorted(servers))}")
    if not done.written:
        raise ConfigError(
            f"cache {cache_location(place)}: no such reply to write ({done.older:,} of an older version, kept without "
            f"their prompts, and {done.offline:,} scripted or replayed, not a server's, are left out)"
        )
    return done


def import_replies(cache: RedisUrl | Path | None, path: Path, *, base_url: str | None = None) -> ImportReport:
    """Put a recording's replies into a cache that has none to the same requests. Raises JudgeError.

    A file of which any line is none of a recording changes nothing. The replies count as those of the server that
    the line names, else of `base_url`, which is by default what a run asks.
    """
    server = resolve_base_url(base_url)
    with RecordingFile([path]) as whole:
        if whole.note:
            raise DataError(
                f"{path}: it says of its replies {whole.note!r}, which out of a cache no report would; use --replay"
            )
    added = known = end = number = 0
    servers = set()
    with open_for_admin(cache) as store:
        for entry in entries(path):
            end, number = entry.start + len(entry.raw), entry.number
            if entry.line is None:
                continue
            call, endpoint, replies = entry.line
            servers.add(endpoint or server)
            requests = {draw: request_of(call, draw, endpoint or server) for draw in replies}
            keys = {draw: request.key() for draw, request in requests.items()}
            there = store.get_many(list(keys.values()))
            for draw, response in replies.items():
                if keys[draw] in there:
                    known += 1
                else:
                    store.put(keys[draw], response, requests[draw])
                    added += 1
    return ImportReport(added, known, tuple(sorted(servers)), _unfinished(path, end, number))


def _unfinished(path: Path, end: int, number: int) -> int | None:
    """The number of the line that is cut off, after the last whole one and where that ends."""
    with path.open("rb") as file:
        file.seek(end)
        rest = file.read()
    return number + 1 + rest.count(b"\n") if rest.strip() else None


def resolve_base_url(base_url: str | None) -> str:
    """The server's address as requests have it: by default $OPENAI_BASE_URL, else OpenAI's. Raises ConfigError."""
    return HttpClient(base_url=base_url, needs_key=False).url
