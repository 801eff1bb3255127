"""Taking down replies as they come: a journal beside the recording, and in the end one sorted file."""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from typing import Self

from judge.core import files
from judge.core.errors import DataError, StorageError
from judge.core.file_lock import held, same, taken
from judge.core.records import Request, Response
from judge.providers.recording import format
from judge.providers.recording.file import Archive, journal_name, journals


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
        self._left: list[bytes] = []
        if path.exists() and not path.is_file():
            raise DataError(f"recording {path}: not a file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with held(path):
                if not self._gather():
                    Archive([path]).close()
        except OSError as error:
            raise StorageError(f"recording {path}: {error.strerror or error}") from error

    def add(self, request: Request, response: Response) -> None:
        """Take down the reply to a request for one draw. What cannot be written is tried again by `flush`."""
        if response.choices:
            line = format.line_of(request, response)
            self.taken.add(format.mark(line.call))
            self._left.append(format.write(line))
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
            with held(self._path):
                self._gather(self._journal)
        except OSError as error:
            raise StorageError(f"recording {self._path}: {error.strerror or error}; {self._kept()}") from error
        except (StorageError, DataError) as error:
            raise type(error)(f"{error}; {self._kept()}") from error
        finally:
            self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _kept(self) -> str:
        return (
            f"what was recorded is in {self._journal}" if self._journal and self._journal.exists() else "not recorded"
        )

    def _write(self) -> OSError | None:
        """Append what is left to write, or nothing of it."""
        try:
            if self._left:
                self._append(b"".join(self._left))
                self._left.clear()
        except OSError as error:
            return error
        return None

    def _append(self, text: bytes) -> None:
        if self._journal is None:
            journal = journal_name(self._path, secrets.token_hex(4))
            self._file = self._open.enter_context(held(journal))
            self._journal = journal
            text = (format.encoded({"note": self._note}) if self._note else b"") + text
        try:
            while text:
                text = text[self._file.write(text) or 0 :]
        except OSError:
            os.ftruncate(self._file.fileno(), self._written)
            raise
        self._written = os.fstat(self._file.fileno()).st_size

    def _gather(self, own: Path | None = None) -> bool:
        """Put the journals into the recording that nobody writes any more, and one's own. Whether there were any."""
        with ExitStack() as until:  # they are gone: whoever waits for the lock on one then looks, and makes another
            found = [one for one in journals(self._path) if one == own or _seized(one, until)]
            if found:
                with Archive([self._path, *found]) as whole:
                    whole.write(self._path)
                for one in found:
                    one.unlink()
        return bool(found)


def _seized(journal: Path, until: ExitStack) -> bool:
    """Lock a journal that nobody writes any more, as long as `until` lasts; False for any other. Raises OSError."""
    file = until.enter_context(FileIO(journal, "a", opener=files.opener))
    return taken(file) and same(file, journal)
