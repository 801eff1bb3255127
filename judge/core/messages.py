"""How a message names an option: as it is typed where the caller stands, on the command line or in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

Door = Literal["command line", "python"]
_door: ContextVar[Door | None] = ContextVar("judge_door", default=None)
_BARE: Any = object()


@contextmanager
def speaking_to(door: Door) -> Iterator[None]:
    """Messages made in this block are worded for those who came through this door, or through an outer one."""
    if _door.get() is not None:
        yield
        return
    before = _door.set(door)
    try:
        yield
    finally:
        _door.reset(before)


def in_python() -> bool:
    """Whether the caller came from Python; without a door, messages are for the command line."""
    return _door.get() == "python"


def option(name: str, value: Any = _BARE) -> str:
    """An option by its name in `config.Plan`, alone or with a value: `--map output=TEXT`, `map={'output': 'TEXT'}`.

    A mapping is what names columns and options, a list has several values; True and False are said of what is on or
    off (`--structured`, `--no-cache`).
    """
    if in_python():
        return name if value is _BARE else f"{name}={_literal(value)}"
    flag = f"--{name.replace('_', '-')}"
    if value is False:
        return f"--no-{name.replace('_', '-')}"
    if value is _BARE or value is True:
        return flag
    return f"{flag} {_typed(value)}"


def command(name: str) -> str:
    """A command by its name: `judge run`, or `judge.evaluate` in Python."""
    return f"judge.{_FUNCTIONS.get(name, name)}" if in_python() else f"judge {name}"


_FUNCTIONS = {"run": "evaluate", "score": "evaluate", "criteria diff": "diff"}


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_literal(one)}" for key, one in value.items()) + "}"
    return repr(list(value) if isinstance(value, tuple) else value)


def _typed(value: Any, within: str = "") -> str:
    if isinstance(value, Mapping):
        return ",".join(
            _typed(one, f"{within}{key}.") if isinstance(one, Mapping) else f"{within}{key}={_typed(one)}"
            for key, one in value.items()
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
