"""How a message names an option or a command: as its reader types it, on the command line or in Python.

`speaking_to` says which of the two the reader uses. `option` and `command` name things for that reader.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

Door = Literal["command line", "python"]
_door: ContextVar[Door | None] = ContextVar("judge_door", default=None)
_BARE: Any = object()


@contextmanager
def speaking_to(door: Door) -> Iterator[None]:
    """Word the messages made in this block for this kind of caller; an outer block takes precedence."""
    if _door.get() is not None:
        yield
        return
    before = _door.set(door)
    try:
        yield
    finally:
        _door.reset(before)


def in_python() -> bool:
    """Return whether messages are for Python; by default they are for the command line."""
    return _door.get() == "python"


def option(name: str, value: Any = _BARE) -> str:
    """Return an option as its reader writes it, alone or with a value: `--map output=TEXT`, `map={'output': 'TEXT'}`.

    `name` is the option's name in Python. A mapping names columns or options, a list has several values; True and False
    turn an option on or off (`--structured`, `--no-cache`).
    """
    if in_python():
        return name if value is _BARE else f"{name}={_as_python(value)}"
    flag = f"--{name.replace('_', '-')}"
    if value is False:
        return f"--no-{name.replace('_', '-')}"
    if value is _BARE or value is True:
        return flag
    return f"{flag} {_as_typed(value)}"


def advice_on_thinking() -> str:
    """Return what to change if thinking takes up all of a model's reply."""
    none = option("reasoning_effort", "none")
    return f"allow more with {option('max_tokens')}, or less thinking with {none} (or low)"


def command(name: str) -> str:
    """Return a command as its reader writes it: `judge run`, or `judge.evaluate` in Python."""
    return f"judge.{_FUNCTIONS.get(name, name)}" if in_python() else f"judge {name}"


FORMER_NAMES = {"force": "overwrite", "replace": "overwrite", "output": "out", "file": "out"}
"""What options were called, here or in other tools, and what they are called now."""


def new_name(former: str, names: Collection[str]) -> str:
    """Return what an option of this former name is called, if that is one of `names`, or else an empty string."""
    name = FORMER_NAMES.get(former, "")
    return name if name in names else ""


FORMER_SYSTEM = "system"
"""What `system_message` was called. The word means what wrote the texts, and only that."""


def two_meanings_of_system(message: str, selected: str = "") -> str:
    """Return why `system` is no setting of a judge, if `message` sends its system message, written as in this place.

    `selected` is how this place selects the texts of a system, if it does not select them as a run does.
    """
    selected = selected or option("where", {"system": "NAME"})
    shown = (
        "result.where(system='NAME')" if in_python() else "judge report RUN --item ID --system NAME"
    )
    return (
        f"this word has two meanings. {message} sends the model a system message before the prompt. {selected} selects "
        f"the texts of one system; to look at them after a run, use {shown}"
    )


_FUNCTIONS = {"run": "evaluate", "score": "evaluate", "criteria diff": "diff"}


def _as_python(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_as_python(part)}" for key, part in value.items()) + "}"
    return repr(list(value) if isinstance(value, tuple) else value)


def _as_typed(value: Any, within: str = "") -> str:
    if isinstance(value, Mapping):
        return ",".join(
            _as_typed(part, f"{within}{key}.")
            if isinstance(part, Mapping)
            else f"{within}{key}={_as_typed(part)}"
            for key, part in value.items()
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
