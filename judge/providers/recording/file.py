"""A recording on disk: its replies are read when they are wanted, and memory holds only where each of them is."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from itertools import takewhile
from pathlib import Path
from sys import intern
from typing import IO, NamedTuple, Self
from weakref import finalize

from judge.core import files
from judge.core.errors import DataError, StorageError
from judge.core.records import Request, Response
from judge.providers.recording import format, mismatch
from judge.providers.recording.format import Call, Line, Strange

_BOM = b"\xef\xbb\xbf"
_JOURNAL = ".part-"


class Entry(NamedTuple):
    """A line of a file. `line` is None where it holds the recording's `note` instead of a call."""

    line: Line | None
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


class Archive:
    """The replies in files: those of a later one stand in the place of others to the same call.

    It is as the files are when it is opened, whatever is added to them or put in their place meanwhile. `note` is what
    they say of all replies, `digest` the sha256 of their lines. Takes some 0.5 KB of memory for each prompt. Raises
    DataError, with the line, for a file that is no recording; where `strict` also for a reply that contradicts its
    tokens, as after an edit by hand.
    """

    def __init__(self, paths: Iterable[Path], *, strict: bool = False) -> None:
        self.note = ""
        self._strict = strict
        self._where: dict[_Key, dict[int, int]] = {}
        self._servers = {""}
        self._places = (array("B"), array("Q"), array("L"))
        self._files: list[IO[bytes]] = []
        self._paths = list(paths)
        hashed = hashlib.sha256()
        with ExitStack() as opened:
            for number, path in enumerate(self._paths):
                self._files.append(opened.enter_context(_opened(path)))
                for entry in _entries(path, self._files[-1]):
                    hashed.update(entry.raw)
                    self._enter(number, entry)
            self._close = finalize(self, opened.pop_all().close)
        self.digest = hashed.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """How many calls have replies."""
        return len(self._where)

    def close(self) -> None:
        """Let go of the files."""
        self._close()

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were asked, sorted."""
        return tuple(sorted({key.model for key in self._where}))

    @property
    def draws(self) -> int:
        """The most replies that any prompt has."""
        return max(map(len, self._where.values()), default=0)

    @property
    def doubled(self) -> tuple[str, ...]:
        """The servers of a call that has replies of several; empty where none has."""
        named = sorted(self._servers - {""})
        for key in self._where if len(named) > 1 else ():
            having = [server for server in named if key._replace(endpoint=server) in self._where]
            if len(having) > 1:
                return tuple(having)
        return ()

    def beside(self, taken: Collection[int]) -> int:
        """How many calls have replies and are not among those that a recorder has taken down."""
        return sum(hash((key.model, key.prompt, key.params)) not in taken for key in self._where)

    def decides(self, model: str) -> bool:
        """Whether all that a model was asked were typed questions."""
        params = {key.params for key in self._where if key.model == model}
        return bool(params) and all('"questions"' in one for one in params)

    def exact(self, model: str) -> bool:
        """Whether a model was ever asked for the probabilities of labels that the request names."""
        params = {key.params for key in self._where if key.model == model}
        return any('"labels"' in one and '"questions"' not in one for one in params)

    def find(self, request: Request) -> list[Response]:
        """The replies to the draws that a request asks for, as many as there are from the first one on.

        Raises DataError where the file was changed under way.
        """
        call = format.call_of(request)
        drawn = self._where.get(self._key(call), {})
        wanted = range(request.draw, request.draw + int(request.params.get("n", 1)))
        numbers = list(takewhile(lambda number: number is not None, map(drawn.get, wanted)))
        read = {number: self._read(number) for number in dict.fromkeys(numbers) if number is not None}
        if any(line.call != call for line in read.values()):
            return []
        return [read[number].replies[draw] for draw, number in zip(wanted, numbers, strict=False) if number is not None]

    def explain(self, request: Request) -> str:
        """Why there is no reply to a request: what differs from the call that is most like it."""
        asked = format.call_of(request)
        key = self._key(asked)
        same = [one for one in self._where if one[:2] == key[:2]]
        near: Call | None = None
        if key in self._where or same:
            key = key if key in self._where else same[0]
            near = self._call(key)
        elif any(one.model == request.model for one in self._where):
            near = mismatch.nearest(request, (self._call(one) for one in self._where if one.model == request.model))
            key = self._key(near)
        return mismatch.explain(request, self.models, near, len(self._where.get(key, ())))

    def write(self, path: Path) -> None:
        """Write everything into one file, sorted, whole or not at all. Raises StorageError."""
        with replacing(path) as file:
            file.write(format.encoded({"note": self.note}) if self.note else b"")
            for key in sorted(self._where):
                numbers = set(self._where[key].values())
                file.write(self._raw(*numbers) if len(numbers) == 1 else format.write(self._joined(key)))

    def _enter(self, file: int, entry: Entry) -> None:
        if entry.line is None:
            self.note = self.note if entry.note in self.note else f"{self.note} {entry.note}".strip()
            return
        if self._strict and (wrong := format.contradiction(entry.line)):
            raise DataError(f"{self._paths[file]}:{entry.number}: {wrong}")
        (model, _, params), endpoint, replies = entry.line
        key = _Key(intern(model), format.digest(entry.line.call), intern(params), intern(endpoint))
        self._servers.add(key.endpoint)
        drawn = self._where.setdefault(key, {})
        if _JOURNAL not in self._paths[file].name:  # there the later one stands
            for draw in [draw for draw, number in drawn.items() if self._places[0][number] == file and draw in replies]:
                if self._read(drawn[draw]).replies[draw] != replies[draw]:
                    raise twice(self._paths[file], entry.number)
        number = len(self._places[0])
        for column, value in zip(self._places, (file, entry.start, len(entry.raw)), strict=True):
            column.append(value)
        drawn.update(dict.fromkeys(replies, number))

    def _key(self, call: Call) -> _Key:
        found = _Key(call.model, format.digest(call), call.params, "")
        at = (found._replace(endpoint=server) for server in sorted(self._servers, reverse=True))  # "" last: it is older
        return next((key for key in at if key in self._where), found)

    def _joined(self, key: _Key) -> Line:
        drawn = self._where[key]
        read = {number: self._read(number) for number in set(drawn.values())}
        call = next(iter(read.values())).call
        return Line(call, key.endpoint, {draw: read[number].replies[draw] for draw, number in drawn.items()})

    def _call(self, key: _Key) -> Call:
        return self._read(next(iter(self._where[key].values()))).call

    def _read(self, number: int) -> Line:
        try:
            return format.read(self._raw(number))
        except Strange as error:
            path = self._paths[self._places[0][number]]
            raise DataError(f"recording {path}: it was changed while it was read; start again") from error

    def _raw(self, number: int) -> bytes:
        file, start, length = (column[number] for column in self._places)
        raw = _part(self._files[file], start, length).removeprefix(_BOM if start == 0 else b"")
        return raw if raw.endswith(b"\n") else raw + b"\n"


def twice(path: Path, number: int) -> DataError:
    """What there is to say of a line of a file whose call has other replies further up."""
    return DataError(f"{path}:{number}: other replies to a prompt that stands further up: delete one of the lines")


def journals(path: Path) -> list[Path]:
    """The journals beside a recording: of runs that are recording now, or died before their replies were in it."""
    return sorted(path.parent.glob(f"{escape(path.name)}{_JOURNAL}*"))


def journal_name(path: Path, mark: str) -> Path:
    """The name of a journal beside a recording."""
    return path.with_name(path.name + _JOURNAL + mark)


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
        with open(new, "xb", opener=files.opener) as file:
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


def _part(file: IO[bytes], start: int, length: int) -> bytes:
    """A part of a file, which may be under way of being read."""
    at = file.tell()
    file.seek(start)
    raw = file.read(length)
    file.seek(at)
    return raw


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
        note = format.note_in(raw) if number == 1 else None
        try:
            line = None if note is not None else format.read(raw)
        except Strange as error:
            if error.cut and not raw.endswith(b"\n"):
                if _JOURNAL in path.name:
                    return
                said = "this line is cut off: restore the file, or delete the line"
                raise DataError(f"{path}:{number}: {said}") from error
            raise DataError(f"{path}:{number}: {error}") from error
        yield Entry(line, note or "", whole, at, number)
