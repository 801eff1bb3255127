"""Export cached replies to a recording, and import them so that others need not pay again."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from judge.cache import DiskCache
from judge.core.errors import ConfigError, DataError
from judge.core.plugins import unknown_name_message
from judge.providers.http_client import HttpClient
from judge.providers.recorded_call import request_of, server_of
from judge.providers.recording import Recorder, RecordingFile


@dataclass(frozen=True, slots=True)
class ExportReport:
    """Counts of replies.

    `written` replies are in the file. `skipped` ones have no prompt, or no server sent them.
    """

    written: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Counts of replies that were added to the cache, and of those that were `known` already.

    `servers` are the addresses under which a run finds them; `unfinished` says that the last line
    is truncated.
    """

    added: int
    known: int
    servers: tuple[str, ...]
    unfinished: bool


def export_replies(
    folder: Path,
    path: Path,
    *,
    model: str | None,
    base_url: str | None,
) -> ExportReport:
    """Add a cache's replies to a recording: all of them, or one model's or one server's.

    Raises JudgeError. Raises ConfigError and creates no file if there is no such reply.
    """
    server_url = resolve_base_url(base_url) if base_url else None
    written = 0
    skipped = 0
    models: set[str] = set()
    servers: set[str] = set()
    with ExitStack() as stack:
        cache = stack.enter_context(DiskCache(folder))
        recorder: Recorder | None = None
        for response, request in cache.iter_all():
            server = server_of(request) if request else ""
            if request is None or not server:
                skipped += 1
                continue
            models.add(request.model)
            servers.add(server)
            if model in (None, request.model) and server_url in (None, server):
                # Opened at the first reply, so that no file is made if there is none.
                recorder = recorder or stack.enter_context(Recorder(path))
                recorder.add(request, response)
                written += 1
    if model is not None and models and model not in models:
        message = unknown_name_message("model", model, sorted(models))
        raise ConfigError(f"--model: {message}")
    if server_url is not None and servers and server_url not in servers:
        message = unknown_name_message("server", server_url, sorted(servers))
        raise ConfigError(f"--base-url: {message}")
    if not written:
        raise ConfigError(
            f"cache {folder}: no such reply to write ({skipped:,} are left out, because they are "
            "scripted, replayed, or of an older version, which stored no prompts)"
        )
    return ExportReport(written, skipped)


def import_replies(folder: Path, path: Path, *, base_url: str | None) -> ImportReport:
    """Add a recording's replies to a cache, unless it has replies to the same requests.

    A file with an invalid line changes nothing. A reply is stored for the server that its line
    names, or else for `base_url`, by default the server that a run asks. Raises JudgeError.
    """
    default_server = resolve_base_url(base_url)
    added = 0
    already_stored = 0
    servers = set()
    with RecordingFile(path) as recording:
        if recording.note:
            raise DataError(
                f"{path}: its replies have the note {recording.note!r}, which a cache cannot keep; "
                "use --replay instead"
            )
        with DiskCache(folder) as store:
            for call, endpoint, replies in recording.lines():
                server = endpoint or default_server
                servers.add(server)
                requests = {draw: request_of(call, draw, server) for draw in replies}
                keys = {draw: request.key() for draw, request in requests.items()}
                cached = store.get_many(list(keys.values()))
                for draw, response in replies.items():
                    if keys[draw] in cached:
                        already_stored += 1
                    else:
                        store.put(keys[draw], response, requests[draw])
                        added += 1
        sorted_servers = tuple(sorted(servers))
        return ImportReport(added, already_stored, sorted_servers, recording.cut)


def resolve_base_url(base_url: str | None) -> str:
    """Return the server's address as requests have it.

    It is by default $OPENAI_BASE_URL or OpenAI's. Raises ConfigError.
    """
    return HttpClient(base_url=base_url, needs_key=False).url
