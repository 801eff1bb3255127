"""Replies written down, to be read again offline: one line of JSON for each prompt, sorted, without keys.

A line holds `prompt` (the digest of `messages`), `model`, `params`, `messages` and `replies`, one for each draw; where
they came from a server also `endpoint`, its address. A line may be `{"note": "..."}` instead, a sentence that every
report of these replies shows.

`Recorder` appends each reply to the file and sorts it at the end. `RecordingFile` reads replies on demand and keeps
only their positions in memory, and `ReplayProvider` answers from it, offline.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from io import FileIO
from pathlib import Path
from sys import intern
from textwrap import shorten
from typing import IO, Any, NamedTuple, Self
from weakref import finalize

from rapidfuzz import fuzz, process

from judge.core import files
from judge.core.errors import ConfigError, DataError, StorageError, Unrecorded
from judge.core.files import locked
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import Message, Request, Response, Usage
from judge.providers import Provider, recorded_call
from judge.providers.recorded_call import Call, RecordedCall, call_of, digest, encoded

_MAX_DIFFERENCES, _CONTEXT_WORDS, _MAX_CHARACTERS = 5, 4, 160
"""Differences that are shown, words around each, and characters of each."""
_FENCE_DIGEST = re.compile(r" [0-9a-f]{8}(?=>)")
"""That of a fence around a text: another text has another."""
_BEGINNINGS = (b'{"prompt"', b'{"note"')


def _text(call: Call) -> str:
    """The messages as one text, without the digests of fences."""
    messages: list[Message] = json.loads(call.messages)
    return _FENCE_DIGEST.sub(
        "", "\n".join(f"{message['role']}: {message['content']}" for message in messages)
    )


def _differences(recorded: str, asked: str) -> str:
    """Where two texts differ, word by word, with the words around it."""
    before, after = recorded.split(), asked.split()
    changes = []
    for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            lead, rest = (
                " ".join(before[max(0, i - _CONTEXT_WORDS) : i]),
                " ".join(before[j : j + _CONTEXT_WORDS]),
            )
            was, now = (
                shorten(" ".join(words) or "(nothing)", _MAX_CHARACTERS, placeholder="…")
                for words in (before[i:j], after[k:m])
            )
            changes.append(f"\n  … {lead} [- {was}] [+ {now}] {rest} …")
    more = (
        f"\n… {len(changes) - _MAX_DIFFERENCES} more places"
        if len(changes) > _MAX_DIFFERENCES
        else ""
    )
    return "".join(changes[:_MAX_DIFFERENCES]) + more


class _Key(NamedTuple):
    """What identifies a line, in the order of lines."""

    model: str
    prompt: str
    params: str
    endpoint: str


class RecordingFile:
    """The replies in a file: a later one stands in the place of others to the same call.

    It is as the file is when it is opened, whatever is added to it or put in its place meanwhile. `note` is what it
    says of all replies, and `digest` the sha256 of its lines. A last line that is not finished is left out; `cut` says
    so. Takes some 0.5 KB of memory for each prompt. Raises DataError, with the line, for a file that is no recording;
    where `strict` also for a reply that contradicts its tokens, as after an edit by hand.
    """

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        self.note = ""
        self.reasoning: set[str] = set()
        """The models that a reply shows to reason before they answer."""
        self._path = path
        self._places: dict[_Key, dict[int, tuple[int, int]]] = {}
        """The start and the length of the line with each draw."""
        self._servers = {""}
        self._file = _opened(path)
        self._close = finalize(self, self._file.close)
        hashed = hashlib.sha256()
        try:
            self.cut = False
            start = 0
            for number, raw in enumerate(self._file, 1):
                place, start = (start, len(raw)), start + len(raw)
                if not raw.strip():
                    continue
                try:
                    line = recorded_call.read(raw)
                except ValueError as error:
                    self.cut = raw.startswith(_BEGINNINGS) and not raw.endswith(b"\n")
                    if self.cut:
                        break
                    raise DataError(
                        f"{path}:{number}: not a line of a recording: {error}"
                    ) from error
                hashed.update(raw)
                if isinstance(line, str):
                    self.note = self.note if line in self.note else f"{self.note} {line}".strip()
                elif strict and (wrong := recorded_call.contradiction(line)):
                    raise DataError(f"{path}:{number}: {wrong}")
                else:
                    self._index(line, place)
        except DataError:
            self.close()
            raise
        self.digest = hashed.hexdigest()

    def _index(self, line: RecordedCall, place: tuple[int, int]) -> None:
        (model, _, params), endpoint, replies = line
        key = _Key(intern(model), digest(line.call), intern(params), intern(endpoint))
        self._servers.add(key.endpoint)
        if any(response.reasoned for response in replies.values()):
            self.reasoning.add(model)
        self._places.setdefault(key, {}).update(dict.fromkeys(replies, place))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """How many calls have replies."""
        return len(self._places)

    def close(self) -> None:
        """Let go of the file."""
        self._close()

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were asked, sorted."""
        return tuple(sorted({key.model for key in self._places}))

    def draws(self, model: str) -> int:
        """Return the most replies of this model that any prompt has."""
        return max(
            (len(places) for key, places in self._places.items() if key.model == model), default=0
        )

    @property
    def ambiguous_servers(self) -> tuple[str, ...]:
        """The servers of a call that has replies of several; empty where none has."""
        named = sorted(self._servers - {""})
        for key in self._places if len(named) > 1 else ():
            having = [server for server in named if key._replace(endpoint=server) in self._places]
            if len(having) > 1:
                return tuple(having)
        return ()

    def decides(self, model: str) -> bool:
        """Whether all that a model was asked were typed questions."""
        params = {key.params for key in self._places if key.model == model}
        return bool(params) and all('"questions"' in text for text in params)

    def lines(self) -> Iterator[RecordedCall]:
        """Each call with the replies that count. Raises DataError where the file was changed under way."""
        for key, drawn in self._places.items():
            read = {place: self._read(place) for place in set(drawn.values())}
            replies = {draw: read[place].replies[draw] for draw, place in drawn.items()}
            yield RecordedCall(read[next(iter(read))].call, key.endpoint, replies)

    def find(self, request: Request) -> list[Response]:
        """The replies to the draws that a request asks for, as many as there are from the first one on.

        Raises DataError where the file was changed under way.
        """
        call = call_of(request)
        drawn = self._places.get(self._key(call), {})
        lines: dict[tuple[int, int], RecordedCall] = {}
        found: list[Response] = []
        for draw in range(request.draw, request.draw + int(request.params.get("n", 1))):
            if (place := drawn.get(draw)) is None:
                break
            if place not in lines:
                lines[place] = self._read(place)
            if lines[place].call != call:
                return []
            found.append(lines[place].replies[draw])
        return found

    def explain(self, request: Request) -> str:
        """Why there is no reply to a request: what differs from the call that is most like it."""
        call = call_of(request)
        key, keys = self._key(call), [key for key in self._places if key.model == request.model]
        if not keys:
            return f"it holds replies of {', '.join(self.models) or 'no model'}, none of {request.model}"
        if key in self._places:
            last = request.draw + int(request.params.get("n", 1))
            held = len(self._places[key])
            return f"it holds {held} draws of this prompt, and draw {last} was asked for (--draws {held})"
        if same := next((other for other in keys if other.prompt == key.prompt), None):
            recorded, asked = json.loads(same.params), json.loads(call.params)
            differences = [
                f"{name} {recorded.get(name, 'none')!s:.60}, not {asked.get(name, 'none')!s:.60}"
                for name in sorted({*recorded, *asked})
                if recorded.get(name) != asked.get(name)
            ]
            return f"this prompt was recorded with {'; '.join(differences)} (--weighting, --temperature, --max-tokens)"
        text = _text(call)
        texts = (_text(self._call(other)) for other in keys)
        nearest, *_ = process.extractOne(text, texts, scorer=fuzz.ratio)
        return f"the most similar recorded prompt differs (- recorded, + asked):{_differences(nearest, text)}"

    def write(self, path: Path) -> None:
        """Write everything into one file, sorted, whole or not at all. Raises OSError."""
        with files.replacing(path) as file:
            file.write(encoded({"note": self.note}) if self.note else b"")
            for key in sorted(self._places):
                drawn = self._places[key]
                places = set(drawn.values())
                if len(places) == 1:
                    file.write(self._raw(*places))
                    continue
                read = {place: self._read(place) for place in places}
                replies = {draw: read[place].replies[draw] for draw, place in drawn.items()}
                file.write(
                    recorded_call.write(RecordedCall(self._call(key), key.endpoint, replies))
                )

    def _key(self, call: Call) -> _Key:
        plain_key = _Key(call.model, digest(call), call.params, "")
        # "" last: it is older.
        at = (plain_key._replace(endpoint=server) for server in sorted(self._servers, reverse=True))
        return next((key for key in at if key in self._places), plain_key)

    def _call(self, key: _Key) -> Call:
        return self._read(next(iter(self._places[key].values()))).call

    def _read(self, place: tuple[int, int]) -> RecordedCall:
        try:
            line = recorded_call.read(self._raw(place))
        except ValueError:
            line = ""
        if isinstance(line, str):
            raise DataError(
                f"recording {self._path}: it was changed while it was read; start again"
            )
        return line

    def _raw(self, place: tuple[int, int]) -> bytes:
        start, length = place
        self._file.seek(start)
        raw = self._file.read(length)
        return raw if raw.endswith(b"\n") else raw + b"\n"


def _opened(path: Path) -> IO[bytes]:
    try:
        if path.exists() and not path.is_file():
            raise DataError(f"recording {path}: not a file")
        return path.open("rb")
    except OSError as error:
        raise DataError(f"recording {path}: {error.strerror}") from error


class Recorder:
    """Adds replies to a recording, in the place of others to the same call.

    Each reply is in the file before `add` returns, so that a run that is killed loses none; `close` sorts it. Several
    may record into one file at once. `note` is what every report of these replies must say.

    Raises DataError for a file that is no recording, and StorageError for one that cannot be written.
    """

    def __init__(self, path: Path, note: str = "") -> None:
        self._path = path
        self._has_calls = False
        self._pending: list[bytes] = [encoded({"note": note})] if note else []
        if path.exists() and not path.is_file():
            raise DataError(f"recording {path}: not a file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with locked(path), RecordingFile(path):  # which says what is wrong with it
                pass
        except OSError as error:
            raise StorageError(f"recording {path}: {error.strerror or error}") from error

    def add(self, request: Request, response: Response) -> None:
        """Take down the reply to a request for one draw. What cannot be written is tried again by `flush`."""
        if response.choices:
            line = recorded_call.line_of(request, response)
            self._has_calls = True
            self._pending.append(recorded_call.write(line))
            with suppress(OSError):
                self._write()

    def flush(self) -> None:
        """Raises StorageError where replies are not in the file yet; they are kept for the next try."""
        try:
            if self._has_calls:
                self._write()
        except OSError as error:
            raise StorageError(
                f"recording {self._path}: {error.strerror or error}; make room on the disk, or record elsewhere, and "
                "start the same command again: what is in the cache is recorded without asking"
            ) from error

    def close(self) -> None:
        """Sort the recording. Raises StorageError and DataError; it then holds what was taken down, as it came."""
        self.flush()
        try:
            if self._has_calls:
                with locked(self._path), RecordingFile(self._path) as whole:
                    whole.write(self._path)
        except OSError as error:
            raise StorageError(f"recording {self._path}: {error.strerror or error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self) -> None:
        """Append what is left to write, or nothing of it."""
        if not self._pending:
            return
        with locked(self._path) as file:
            text = self._line_end(file) + b"".join(self._pending)
            size = os.fstat(file.fileno()).st_size
            try:
                while text:
                    text = text[file.write(text) or 0 :]
            except OSError:
                os.ftruncate(file.fileno(), size)
                raise
        self._pending.clear()

    def _line_end(self, file: FileIO) -> bytes:
        """Return what the last line lacks; cut it off if a killed process left it unfinished."""
        with self._path.open("rb") as whole:
            size = whole.seek(0, os.SEEK_END)
            whole.seek(max(size - 1, 0))
            if whole.read(1) in (b"", b"\n"):
                return b""
            whole.seek(0)
            last = deque(whole, maxlen=1)[0]
        try:
            recorded_call.read(last)
        except ValueError:
            os.ftruncate(file.fileno(), size - len(last))
            return b""
        return b"\n"


_MAX_EXPLAINED = 20
"""Misses of which it is said what differs: finding that takes longer than all the rest."""


class ReplayProvider(Provider):
    """Answers what was asked when the recording was made, and refuses everything else, saying what differs.

    `decides` where all that the model was asked were typed questions, `reasons` where a reply shows it. Nothing it
    answers costs anything: the usage is that of today, not of the recording. `draws` are the most that a prompt has.
    """

    name = "replay"
    splits_merged_criteria = True
    """Each question of a checklist was recorded by itself."""

    def __init__(self, path: Path, model: str, recorded: RecordingFile) -> None:
        self.model = model
        self.endpoint = f"replay:{recorded.digest[:12]}"
        self.decides = recorded.decides(model)
        self.notice = (
            recorded.note or f"Recorded replies ({path.name}): no model was asked in this run."
        )
        self.draws, self.reasons = recorded.draws(model), model in recorded.reasoning
        self._path, self._recorded = path, recorded
        self._explained = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """How to make it again where the same file is."""
        return _rebuild, (self._path.absolute(), self.model)

    async def complete(self, request: Request) -> Response:
        """The recorded reply. Raises Unrecorded where there is none."""
        responses = list(self._recorded.find(request))
        if not responses:
            if any(message["role"] == "assistant" for message in request.messages):
                raise Unrecorded(f"{self._path.name} does not hold the reply to it")
            self._explained += 1
            why = f"another prompt was recorded, or none (the first {_MAX_EXPLAINED} failures say what differs)"
            if self._explained <= _MAX_EXPLAINED:
                why = self._recorded.explain(request)
            raise Unrecorded(
                f"{self._path.name} does not hold the reply: {why}\n"
                f"To record it, run this again with {option('model')} and {option('record', str(self._path))} "
                f"instead of {option('replay')}",
                stops="if_first",
            )
        unmet = dict.fromkeys(name for response in responses for name in response.unmet)
        return Response(
            tuple(c for response in responses for c in response.choices),
            Usage(),
            responses[0].served_by,
            tuple(unmet),
        )


def _rebuild(path: Path, model: str) -> ReplayProvider:
    return replayed(path, [model])[0]


def replayed(path: Path, models: Sequence[str]) -> list[ReplayProvider]:
    """A provider for each of these models, or for all that were recorded. Raises DataError and ConfigError."""
    recorded = RecordingFile(path, strict=True)
    if not recorded:
        raise DataError(f"recording {path}: it holds no replies")
    if servers := recorded.ambiguous_servers:
        raise DataError(
            f"recording {path}: it holds replies of two servers to one prompt, {' and '.join(servers)}: "
            "judge doctor cache export --base-url URL writes those of one"
        )
    for model in models:
        if model not in recorded.models:
            raise ConfigError(
                f"--replay {path}: {unknown_name_message('model', model, list(recorded.models))}"
            )
    return [ReplayProvider(path, model, recorded) for model in models or recorded.models]
