"""Replies written down, to be read again offline: one line of JSON for each prompt, sorted, without keys.

A line holds `prompt` (the digest of `messages`), `model`, `params`, `messages` and `replies`, one for each draw; where
they came from a server also `endpoint`, its address. The first line may be `{"note": "..."}` instead, a sentence
that every report of these replies shows.

`Recorder` writes a journal beside the recording and merges it into one sorted file at the end. `RecordingFile` reads
replies on demand and keeps only their positions in memory, and `ReplayProvider` answers from it, offline.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from difflib import SequenceMatcher
from glob import escape
from io import FileIO
from itertools import takewhile
from pathlib import Path
from sys import intern
from typing import IO, Any, NamedTuple, Self
from weakref import finalize

from rapidfuzz import fuzz

from judge.core import files
from judge.core.errors import ConfigError, DataError, StorageError, Unrecorded
from judge.core.files import is_same_file, locked, try_lock
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import Message, Request, Response, Usage
from judge.providers import Provider, recorded_call
from judge.providers.recorded_call import BadLine, Call, RecordedCall, call_of, digest, encoded

_MAX_DIFFERENCES, _CONTEXT_WORDS, _MAX_CHARACTERS = 5, 4, 160
"""Differences that are shown, words around each, and characters of each."""
_FENCE_DIGEST = re.compile(r" [0-9a-f]{8}(?=>)")
"""That of a fence around a text: another text has another."""


def nearest(request: Request, calls: Iterable[Call]) -> Call:
    """The call whose messages are most like a request's. Raises ValueError where there is none of its model."""
    request_text = _FENCE_DIGEST.sub("", _text(call_of(request)))
    best, nearest_call = -1.0, None
    for call in calls:
        if call.model == request.model:
            # What cannot be better than the best so far is left without being looked at to its end, and counts 0.
            score = fuzz.ratio(request_text, _FENCE_DIGEST.sub("", _text(call)), score_cutoff=max(best, 0.0))
            if score > best:
                best, nearest_call = score, call
    if nearest_call is None:
        raise ValueError(f"no call of {request.model}")
    return nearest_call


def explain(request: Request, models: Sequence[str], near: Call | None, draws: int) -> str:
    """What to tell of a miss. `near` is the nearest call of the request's model, and `draws` its replies."""
    requested_call = call_of(request)
    if near is None:
        return f"it holds replies of {', '.join(models) or 'no model'}, none of {requested_call.model}"
    if near.messages == requested_call.messages:
        # What differs between two calls with the same messages.
        recorded, requested = json.loads(near.params), json.loads(requested_call.params)
        if recorded == requested:
            last = request.draw + int(request.params.get("n", 1))
            return f"it holds {draws} draws of this prompt, and draw {last} was asked for (--draws {draws})"
        names = sorted(name for name in {*recorded, *requested} if recorded.get(name) != requested.get(name))
        differences = [
            f"{name} {recorded.get(name, 'none')!s:.60}, not {requested.get(name, 'none')!s:.60}" for name in names
        ]
        return f"this prompt was recorded with {'; '.join(differences)} (--weighting, --temperature, --max-tokens)"
    # Where the two differ, word by word, with the words around it; the keys of fences say nothing.
    before, after = (_FENCE_DIGEST.sub("", _text(call)).split() for call in (near, requested_call))
    changes = []
    for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            lead, rest = " ".join(before[max(0, i - _CONTEXT_WORDS) : i]), " ".join(before[j : j + _CONTEXT_WORDS])
            was, now = (" ".join(words) or "(nothing)" for words in (before[i:j], after[k:m]))
            was, now = (text if len(text) <= _MAX_CHARACTERS else text[:_MAX_CHARACTERS] + "…" for text in (was, now))
            changes.append(f"  … {lead} [- {was}] [+ {now}] {rest} …")
    more = f"\n… {len(changes) - _MAX_DIFFERENCES} more places" if len(changes) > _MAX_DIFFERENCES else ""
    listed = "\n".join(changes[:_MAX_DIFFERENCES])
    return f"the most similar recorded prompt differs (- recorded, + asked):\n{listed}{more}"


def _text(call: Call) -> str:
    messages: list[Message] = json.loads(call.messages)
    return "\n".join(f"{message['role']}: {message['content']}" for message in messages)


_BOM = b"\xef\xbb\xbf"
_JOURNAL = ".part-"


class Entry(NamedTuple):
    """A line of a file. `line` is None where it holds the recording's `note` instead of a call."""

    line: RecordedCall | None
    note: str
    raw: bytes
    start: int
    number: int


class _Key(NamedTuple):
    """What identifies a line, in the order of lines."""

    model: str
    prompt: str
    params: str
    endpoint: str


class RecordingFile:
    """The replies in files: those of a later one stand in the place of others to the same call.

    It is as the files are when it is opened, whatever is added to them or put in their place meanwhile. `note` is what
    they say of all replies, `digest` the sha256 of their lines. Takes some 0.5 KB of memory for each prompt. Raises
    DataError, with the line, for a file that is no recording; where `strict` also for a reply that contradicts its
    tokens, as after an edit by hand.
    """

    def __init__(self, paths: Iterable[Path], *, strict: bool = False) -> None:
        self.note = ""
        self._strict = strict
        self._draws_by_key: dict[_Key, dict[int, int]] = {}
        self._servers = {""}
        self.reasoning: set[str] = set()
        """The models that a reply shows to reason before they answer."""
        self._locations = (array("B"), array("Q"), array("L"))
        self._files: list[IO[bytes]] = []
        self._paths = list(paths)
        hashed = hashlib.sha256()
        with ExitStack() as opened:
            for number, path in enumerate(self._paths):
                self._files.append(opened.enter_context(_opened(path)))
                for entry in _entries(path, self._files[-1]):
                    hashed.update(entry.raw)
                    self._index(number, entry)
            self._close = finalize(self, opened.pop_all().close)
        self.digest = hashed.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """How many calls have replies."""
        return len(self._draws_by_key)

    def close(self) -> None:
        """Let go of the files."""
        self._close()

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were asked, sorted."""
        return tuple(sorted({key.model for key in self._draws_by_key}))

    @property
    def draws(self) -> int:
        """The most replies that any prompt has."""
        return max(map(len, self._draws_by_key.values()), default=0)

    @property
    def ambiguous_servers(self) -> tuple[str, ...]:
        """The servers of a call that has replies of several; empty where none has."""
        named = sorted(self._servers - {""})
        for key in self._draws_by_key if len(named) > 1 else ():
            having = [server for server in named if key._replace(endpoint=server) in self._draws_by_key]
            if len(having) > 1:
                return tuple(having)
        return ()

    def unused_count(self, taken: Collection[int]) -> int:
        """How many calls have replies and are not among those that a recorder has taken down."""
        return sum(hash((key.model, key.prompt, key.params)) not in taken for key in self._draws_by_key)

    def decides(self, model: str) -> bool:
        """Whether all that a model was asked were typed questions."""
        params = {key.params for key in self._draws_by_key if key.model == model}
        return bool(params) and all('"questions"' in text for text in params)

    def exact(self, model: str) -> bool:
        """Whether a model was ever asked for the probabilities of labels that the request names."""
        params = {key.params for key in self._draws_by_key if key.model == model}
        return any('"labels"' in text and '"questions"' not in text for text in params)

    def find(self, request: Request) -> list[Response]:
        """The replies to the draws that a request asks for, as many as there are from the first one on.

        Raises DataError where the file was changed under way.
        """
        call = call_of(request)
        drawn = self._draws_by_key.get(self._key(call), {})
        draws = range(request.draw, request.draw + int(request.params.get("n", 1)))
        numbers = list(takewhile(lambda number: number is not None, map(drawn.get, draws)))
        read = {number: self._read(number) for number in dict.fromkeys(numbers) if number is not None}
        if any(line.call != call for line in read.values()):
            return []
        return [read[number].replies[draw] for draw, number in zip(draws, numbers, strict=False) if number is not None]

    def explain(self, request: Request) -> str:
        """Why there is no reply to a request: what differs from the call that is most like it."""
        key = self._key(call_of(request))
        same = [candidate for candidate in self._draws_by_key if candidate[:2] == key[:2]]
        near: Call | None = None
        if key in self._draws_by_key or same:
            key = key if key in self._draws_by_key else same[0]
            near = self._call(key)
        elif any(candidate.model == request.model for candidate in self._draws_by_key):
            near = nearest(
                request, (self._call(candidate) for candidate in self._draws_by_key if candidate.model == request.model)
            )
            key = self._key(near)
        return explain(request, self.models, near, len(self._draws_by_key.get(key, ())))

    def write(self, path: Path) -> None:
        """Write everything into one file, sorted, whole or not at all. Raises StorageError."""
        with replacing(path) as file:
            file.write(encoded({"note": self.note}) if self.note else b"")
            for key in sorted(self._draws_by_key):
                drawn = self._draws_by_key[key]
                numbers = set(drawn.values())
                if len(numbers) == 1:
                    file.write(self._raw(*numbers))
                    continue
                read = {number: self._read(number) for number in numbers}
                call = next(iter(read.values())).call
                replies = {draw: read[number].replies[draw] for draw, number in drawn.items()}
                file.write(recorded_call.write(RecordedCall(call, key.endpoint, replies)))

    def _index(self, file: int, entry: Entry) -> None:
        if entry.line is None:
            self.note = self.note if entry.note in self.note else f"{self.note} {entry.note}".strip()
            return
        if self._strict and (wrong := recorded_call.contradiction(entry.line)):
            raise DataError(f"{self._paths[file]}:{entry.number}: {wrong}")
        (model, _, params), endpoint, replies = entry.line
        key = _Key(intern(model), digest(entry.line.call), intern(params), intern(endpoint))
        self._servers.add(key.endpoint)
        if any(response.reasoned for response in replies.values()):
            self.reasoning.add(model)
        drawn = self._draws_by_key.setdefault(key, {})
        if _JOURNAL not in self._paths[file].name:  # there the later one stands
            for draw, number in drawn.items():
                at_hand = self._locations[0][number] == file and draw in replies
                if at_hand and self._read(number).replies[draw] != replies[draw]:
                    raise DataError(
                        f"{self._paths[file]}:{entry.number}: other replies to a prompt that stands further up: "
                        "delete one of the lines"
                    )
        number = len(self._locations[0])
        for column, value in zip(self._locations, (file, entry.start, len(entry.raw)), strict=True):
            column.append(value)
        drawn.update(dict.fromkeys(replies, number))

    def _key(self, call: Call) -> _Key:
        plain_key = _Key(call.model, digest(call), call.params, "")
        # "" last: it is older.
        at = (plain_key._replace(endpoint=server) for server in sorted(self._servers, reverse=True))
        return next((key for key in at if key in self._draws_by_key), plain_key)

    def _call(self, key: _Key) -> Call:
        return self._read(next(iter(self._draws_by_key[key].values()))).call

    def _read(self, number: int) -> RecordedCall:
        try:
            return recorded_call.read(self._raw(number))
        except BadLine as error:
            path = self._paths[self._locations[0][number]]
            raise DataError(f"recording {path}: it was changed while it was read; start again") from error

    def _raw(self, number: int) -> bytes:
        file, start, length = (column[number] for column in self._locations)
        handle = self._files[file]
        before = handle.tell()
        handle.seek(start)
        raw = handle.read(length).removeprefix(_BOM if start == 0 else b"")
        handle.seek(before)  # somebody may be reading the file line by line
        return raw if raw.endswith(b"\n") else raw + b"\n"


def journals(path: Path) -> list[Path]:
    """The journals beside a recording: of runs that are recording now, or died before their replies were in it."""
    return sorted(path.parent.glob(f"{escape(path.name)}{_JOURNAL}*"))


def entries(path: Path) -> Iterator[Entry]:
    """What the lines of a file hold. Raises DataError, with the line, for a file that is no recording."""
    with _opened(path) as file:
        yield from _entries(path, file)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes this one's place once it is whole and safe. Raises StorageError."""
    new = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.unlink(missing_ok=True)  # left by one that was killed; a link is not followed
        with open(new, "xb", opener=files.private_opener) as file:
            if path.exists():
                new.chmod(path.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException as error:
        with suppress(OSError):
            new.unlink()
        if isinstance(error, OSError):
            raise StorageError(f"recording {path}: {error.strerror or error}") from error
        raise


def _opened(path: Path) -> IO[bytes]:
    try:
        if path.exists() and not path.is_file():
            raise DataError(f"recording {path}: not a file")
        return path.open("rb")
    except OSError as error:
        raise DataError(f"recording {path}: {error.strerror}") from error


def _entries(path: Path, file: IO[bytes]) -> Iterator[Entry]:
    """Those of the lines; one at the end of a journal that is not finished is still being written, and left out."""
    start = 0
    for number, whole in enumerate(file, 1):
        raw = whole.removeprefix(_BOM) if number == 1 else whole
        at, start = start, start + len(whole)
        if not raw.strip():
            continue
        note = recorded_call.note_in(raw) if number == 1 else None
        try:
            line = None if note is not None else recorded_call.read(raw)
        except BadLine as error:
            if error.cut and not raw.endswith(b"\n"):
                if _JOURNAL in path.name:
                    return
                hint = "this line is cut off: restore the file, or delete the line"
                raise DataError(f"{path}:{number}: {hint}") from error
            raise DataError(f"{path}:{number}: {error}") from error
        yield Entry(line, note or "", whole, at, number)


class Recorder:
    """Adds replies to a recording, in the place of others to the same call.

    Each reply is in a file before `add` returns, so that a run that is killed loses none: the journal is put into the
    recording by `close`, or by the next who records there. Several may record into one file at once. `note` is what
    every report of these replies must say. `taken` are the marks of the calls that were taken down.

    Raises DataError for a file that is no recording, and StorageError for one that cannot be written.
    """

    def __init__(self, path: Path, note: str = "") -> None:
        self._path, self._note = path, note
        self.taken: set[int] = set()
        self._open = ExitStack()
        self._journal: Path | None = None
        self._written = 0
        self._pending: list[bytes] = []
        if path.exists() and not path.is_file():
            raise DataError(f"recording {path}: not a file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with locked(path):
                if not self._merge_journals():
                    RecordingFile([path]).close()
        except OSError as error:
            raise StorageError(f"recording {path}: {error.strerror or error}") from error

    def add(self, request: Request, response: Response) -> None:
        """Take down the reply to a request for one draw. What cannot be written is tried again by `flush`."""
        if response.choices:
            line = recorded_call.line_of(request, response)
            self.taken.add(recorded_call.fingerprint(line.call))
            self._pending.append(recorded_call.write(line))
            self._write()

    def flush(self) -> None:
        """Raises StorageError where replies are not in the file yet; they are kept for the next try."""
        if error := self._write():
            raise StorageError(
                f"recording {self._journal or self._path}: {error.strerror or error}; make room on the disk, or record "
                "elsewhere, and start the same command again: what is in the cache is recorded without asking"
            ) from error

    def close(self) -> None:
        """Put what was taken down into the recording. Raises StorageError and DataError; then it is in the journal."""
        try:
            self.flush()
            if self._journal is None:
                return
            with locked(self._path):
                self._merge_journals(self._journal)
        except OSError as error:
            raise StorageError(f"recording {self._path}: {error.strerror or error}; {self._kept_where()}") from error
        except (StorageError, DataError) as error:
            raise type(error)(f"{error}; {self._kept_where()}") from error
        finally:
            self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _kept_where(self) -> str:
        in_journal = self._journal and self._journal.exists()
        return f"what was recorded is in {self._journal}" if in_journal else "not recorded"

    def _write(self) -> OSError | None:
        """Append what is left to write, or nothing of it."""
        try:
            if self._pending:
                text = b"".join(self._pending)
                if self._journal is None:
                    journal = self._path.with_name(f"{self._path.name}{_JOURNAL}{secrets.token_hex(4)}")
                    self._file = self._open.enter_context(locked(journal))
                    self._journal = journal
                    text = (encoded({"note": self._note}) if self._note else b"") + text
                try:
                    while text:
                        text = text[self._file.write(text) or 0 :]
                except OSError:
                    os.ftruncate(self._file.fileno(), self._written)
                    raise
                self._written = os.fstat(self._file.fileno()).st_size
                self._pending.clear()
        except OSError as error:
            return error
        return None

    def _merge_journals(self, own_journal: Path | None = None) -> bool:
        """Put the journals into the recording that nobody writes any more, and one's own. Whether there were any."""
        with ExitStack() as until:  # they are gone: whoever waits for the lock on one then looks, and makes another
            finished = []
            for journal in journals(self._path):
                if journal != own_journal:
                    file = until.enter_context(FileIO(journal, "a", opener=files.private_opener))
                    if not (try_lock(file) and is_same_file(file, journal)):
                        continue
                finished.append(journal)
            if finished:
                with RecordingFile([self._path, *finished]) as whole:
                    whole.write(self._path)
                for journal in finished:
                    journal.unlink()
        return bool(finished)


_MAX_EXPLAINED = 20
"""Misses of which it is said what differs: finding that takes longer than all the rest."""


class ReplayProvider(Provider):
    """Answers what was asked when the recording was made, and refuses everything else, saying what differs.

    `decides` where all that the model was asked were typed questions, `exact` where any of it named its labels, and
    `reasons` where a reply shows it. Nothing
    it answers costs anything: the usage is that of today, not of the recording. `draws` are the most that a prompt has.
    """

    name = "replay"
    splits_merged_criteria = True
    """Each criterion of a merged prompt was recorded by itself."""

    def __init__(self, path: Path, model: str, recorded: RecordingFile) -> None:
        self.model = model
        self.endpoint = f"replay:{recorded.digest[:12]}"
        self.decides, self.full_distribution = recorded.decides(model), recorded.exact(model)
        self.notice = recorded.note or f"Recorded replies ({path.name}): no model was asked in this run."
        self.draws, self.reasons = recorded.draws, model in recorded.reasoning
        self._path, self._recorded = path, recorded
        self._explained = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """How to make it again where the same file is."""
        return _rebuild, (self._path.absolute(), self.model)

    async def complete(self, request: Request) -> Response:
        """The recorded reply. Raises Unrecorded where there is none."""
        questions = request.params.get("questions", [None])
        each = [replace(request, params={"questions": [q]}) for q in questions] if len(questions) > 1 else [request]
        responses = [response for part in each for response in self._recorded.find(part)]
        if len(responses) < (len(questions) if self.decides else 1):
            if any(message["role"] == "assistant" for message in request.messages):
                raise Unrecorded(f"{self._path.name} does not hold the reply to it")
            self._explained += 1
            why = f"another prompt was recorded, or none (the first {_MAX_EXPLAINED} failures say what differs)"
            if self._explained <= _MAX_EXPLAINED:
                why = self._recorded.explain(each[0])
            raise Unrecorded(
                f"{self._path.name} does not hold the reply: {why}\n"
                f"To record it, run this again with {option('model')} and {option('record', str(self._path))} "
                f"instead of {option('replay')}",
                stops="if_first",
            )
        unmet = dict.fromkeys(name for response in responses for name in response.unmet)
        return Response(
            tuple(c for response in responses for c in response.choices), Usage(), responses[0].served_by, tuple(unmet)
        )


def _rebuild(path: Path, model: str) -> ReplayProvider:
    return replayed(path, [model])[0]


def replayed(path: Path, models: Sequence[str]) -> list[ReplayProvider]:
    """A provider for each of these models, or for all that were recorded. Raises DataError and ConfigError.

    What a run that was killed, or is still going, has recorded so far lies beside the file and is replayed too.
    """
    recorded = RecordingFile([path, *journals(path)], strict=True)
    if not recorded:
        raise DataError(f"recording {path}: it holds no replies")
    if servers := recorded.ambiguous_servers:
        raise DataError(
            f"recording {path}: it holds replies of two servers to one prompt, {' and '.join(servers)}: "
            "judge doctor cache export --base-url URL writes those of one"
        )
    for model in models:
        if model not in recorded.models:
            raise ConfigError(f"--replay {path}: {unknown_name_message('model', model, list(recorded.models))}")
    return [ReplayProvider(path, model, recorded) for model in models or recorded.models]
