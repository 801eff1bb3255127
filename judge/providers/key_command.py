"""Keys that expire, such as Bedrock's and Vertex's, and the command that prints them.

The command runs again when a key is refused
(docs/decisions/0074-a-files-key-command-has-to-be-allowed.md).
"""

from __future__ import annotations

import asyncio
import shlex
import subprocess

from judge.core.errors import Refused
from judge.core.request_options import program

_TIMEOUT_SECONDS = 60.0
_MAX_ERROR = 300


class CommandKey:
    """The key that a command prints, for many concurrent requests in one event loop at a time.

    `values` are the keys so far, the current one last. They are never stored. A key's number is its
    position, counted from 1.
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
        """Return the number of the current key, 0 without a command.

        The first call runs the command.
        """
        if self.command and not self.values:
            return await self._renewed(0)
        return len(self.values)

    async def after(self, number: int, *, refused: bool) -> int:
        """Return the number of the key to repeat a request with, 0 if its key is not the problem.

        Runs the command once for all requests whose key is refused.
        """
        if not refused:
            self._accepted = max(self._accepted, number)
            return 0
        if not self.command:
            return 0
        # A renewed key that was never accepted is not replaced: the command prints wrong keys.
        is_current = number == len(self.values)
        if is_current and number > max(1, self._accepted):
            return 0
        return await self._renewed(number)

    async def _renewed(self, number: int) -> int:
        async with self._lock:
            # If there is a newer key, another request ran the command while this one waited.
            if len(self.values) == number:
                self.values.append(await asyncio.to_thread(_run, self.command or ""))
        return len(self.values)


def _run(command: str) -> str:
    """Return what a command prints. Raises Refused, whose message never repeats the output."""
    name = f"key_command {program(command)}"
    try:
        finished = subprocess.run(  # noqa: S603  (the user's own command, without a shell)
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"{name} did not end within {_TIMEOUT_SECONDS:g} s"
        raise Refused(message, stops="always") from None
    except OSError as error:
        raise Refused(f"{name}: {error.strerror or error}", stops="always") from None
    key = finished.stdout.decode("utf-8", "replace").strip()
    if finished.returncode:
        reason = _error_line(finished.stderr, key) or "no message"
        message = f"{name} ended with exit code {finished.returncode}: {reason}"
        raise Refused(message, stops="always")
    if not key:
        raise Refused(f"{name} printed nothing", stops="always")
    if not (key.isascii() and key.isprintable()):
        expected = "one line of printable ASCII is expected"
        raise Refused(f"{name} printed more than a key: {expected}", stops="always")
    return key


def _error_line(stderr: bytes, secret: str) -> str:
    """Return the end of a command's error output as one line, without the key."""
    message = stderr.decode("utf-8", "replace").strip()
    if secret:
        message = message.replace(secret, "***")
    line = " ".join(message.split())[-_MAX_ERROR:]
    return "".join(character if character.isprintable() else "?" for character in line)
