"""A recording in memory: a small one that a program reads whole, or makes by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from judge.core.records import Request, Response
from judge.providers.recording import format, mismatch
from judge.providers.recording.file import entries, replacing, twice
from judge.providers.recording.format import Call, Line


@dataclass(slots=True)
class Recording:
    """Responses by call and draw."""

    note: str = ""
    replies: dict[Call, dict[int, Response]] = field(default_factory=dict)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were asked, sorted."""
        return tuple(sorted({call.model for call in self.replies}))

    def add(self, request: Request, response: Response) -> None:
        """Take down the reply to a request for one draw."""
        if response.choices:
            self.replies.setdefault(format.call_of(request), {})[request.draw] = response

    def nearest(self, request: Request) -> Call:
        """The call whose messages are most like a request's. Raises ValueError where there is none."""
        return mismatch.nearest(request, self.replies)

    def save(self, path: Path) -> None:
        """Write the file anew, whole or not at all. Raises StorageError."""
        with replacing(path) as file:
            file.write(format.encoded({"note": self.note}) if self.note else b"")
            for call in sorted(self.replies, key=lambda call: (call.model, format.digest(call), call.params)):
                file.write(format.write(Line(call, "", self.replies[call])))


def read(path: Path) -> Recording:
    """The recording in a file. Raises DataError, with the line, for what is none."""
    found = Recording()
    for entry in entries(path):
        if entry.line is None:
            found.note = entry.note
        else:
            drawn = found.replies.setdefault(entry.line.call, {})
            if any(drawn.get(draw, reply) != reply for draw, reply in entry.line.replies.items()):
                raise twice(path, entry.number)
            drawn.update(entry.line.replies)
    return found
