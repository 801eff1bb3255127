"""Keys that expire, such as those of Bedrock and Vertex: a command prints them, and runs again when one is refused."""

from __future__ import annotations

import asyncio
import shlex
import subprocess

from judge.core.errors import Refused
from judge.core.request_options import program

_SECONDS = 60.0
_MAX_ERROR = 300


class CommandKey:
    """The key that a command prints, for many concurrent requests in one event loop at a time.

    `values` are the keys so far, the current one last. They are never stored. A key's number is its place, from 1.
    """

    def __init__(self, command: str | None) -> None:
        self.command = command
        self.values: list[str] = []
        self._accepted = 0
        self.connect()

    def connect(self) -> None:
        """Prepare for another event loop."""
        self._lock = asyncio.Lock()

    async def number(self) -> int:
        """Return the number of the current key, the first time after running the command; 0 without a command."""
        return await self._renewed(0) if self.command and not self.values else len(self.values)

    async def after(self, number: int, *, refused: bool) -> int:
        """Return the number of the key with which to repeat a request: 0 if the one it had is not the problem.

        Runs the command once for all requests whose key is refused. A new key that was never accepted is not replaced.
        """
        if not refused:
            self._accepted = max(self._accepted, number)
            return 0
        if not self.command or (len(self.values) == number > max(1, self._accepted)):
            return 0
        return await self._renewed(number)

    async def _renewed(self, number: int) -> int:
        async with self._lock:
            if len(self.values) == number:  # else another request has run it since
                self.values.append(await asyncio.to_thread(_run, self.command or ""))
        return len(self.values)


def _run(command: str) -> str:
    """Return what a command prints. Raises Refused, which never repeats that."""
    name = f"key_command {program(command)}"
    try:
        done = subprocess.run(  # noqa: S603  (the user's own command, without a shell)
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"{name} did not end within {_SECONDS:g} s", stops="always") from None
    except OSError as error:
        raise Refused(f"{name}: {error.strerror or error}", stops="always") from None
    key = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        said = " ".join((said.replace(key, "***") if key else said).split())[-_MAX_ERROR:]
        said = "".join(character if character.isprintable() else "?" for character in said)
        raise Refused(
            f"{name} ended with exit code {done.returncode}: {said or 'no message'}", stops="always"
        )
    if not (key and key.isascii() and key.isprintable()):
        problem = (
            "printed nothing"
            if not key
            else "printed more than a key: one line of printable ASCII is expected"
        )
        raise Refused(f"{name} {problem}", stops="always")
    return key
