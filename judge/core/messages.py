"""Name an option or a command in a message as its reader types it: in a shell or in Python.

`speaking_to` sets which of the two the reader uses. `option` and `command` name things for that
reader.
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
    """Word the messages of this block for this kind of caller; an outer block has precedence."""
    if _door.get() is not None:
        yield
        return
    outer_door = _door.set(door)
    try:
        yield
    finally:
        _door.reset(outer_door)


def in_python() -> bool:
    """Return whether messages are for Python; by default they are for the command line."""
    return _door.get() == "python"


def option(option_name: str, value: Any = _BARE) -> str:
    """Return an option as its reader writes it, alone or with a value.

    `--map output=TEXT` is `map={'output': 'TEXT'}` in Python. `option_name` is the option's name in
    Python. A mapping names columns or options, a list has several values; True and False turn an
    option on or off (`--structured`, `--no-cache`).
    """
    if in_python():
        return option_name if value is _BARE else f"{option_name}={_as_python(value)}"
    dashed_name = option_name.replace("_", "-")
    if value is False:
        return f"--no-{dashed_name}"
    if value is _BARE or value is True:
        return f"--{dashed_name}"
    return f"--{dashed_name} {_as_typed(value)}"


def advice_on_thinking() -> str:
    """Return what to change if thinking takes up all of a model's reply."""
    none = option("reasoning_effort", "none")
    return f"allow more with {option('max_tokens')}, or less thinking with {none} (or low)"


def command(command_name: str) -> str:
    """Return a command as its reader writes it: `judge run`, or `judge.evaluate` in Python."""
    return (
        f"judge.{_FUNCTIONS.get(command_name, command_name)}"
        if in_python()
        else f"judge {command_name}"
    )


def full_report() -> str:
    """Return what shows all of a report and not only its summary."""
    return "report(full=True)" if in_python() else "--full"


def start_again() -> str:
    """Return how the reader repeats what was interrupted."""
    return "make the same call again" if in_python() else "start the same command again"


def making_a_card() -> str:
    """Return what makes the card of a judge from new judgments."""
    return "judge.card(data)" if in_python() else "judge validate DATA --card"


def generating() -> str:
    """Return what writes the outputs of systems that are a prompt and a model."""
    return "judge.generate" if in_python() else "judge run --generate-only FILE"


class Remark(str):
    """A note that warns of nothing: it says what was read or done, and nothing has to be done."""

    __slots__ = ()


FORMER_NAMES = {
    "force": "overwrite",
    "replace": "overwrite",
    "output": "out",
    "file": "out",
    "rival": "opponent",
}
"""Former names of options, here or in other tools, with the present ones."""


def new_name(former: str, option_names: Collection[str]) -> str:
    """Return the present name of a former option if it is one of `option_names`, else ""."""
    present_name = FORMER_NAMES.get(former, "")
    return present_name if present_name in option_names else ""


FORMER_SYSTEM = "system"
"""The former name of `system_message`.

The word now means the author of the texts, and only that.
"""


def two_meanings_of_system(message: str, selected: str = "") -> str:
    """Return why `system` is no setting of a judge.

    `message` is how this file or command sets the system message, and `selected` how it selects the
    texts of a system (by default as a run does).
    """
    selected = selected or option("where", {"system": "NAME"})
    showing = "judge report RUN --item ID --system NAME"
    if in_python():
        showing = "result.where(system='NAME')"
    return (
        f"this word has two meanings. {message} sends the model a system message before the "
        f"prompt. {selected} selects the texts of one system; to look at them after a run, "
        f"use {showing}"
    )


# Commands with another name in Python.
_FUNCTIONS = {"run": "evaluate", "score": "evaluate", "criteria diff": "diff"}


def _as_python(value: Any) -> str:
    if isinstance(value, Mapping):
        entries = [f"{key!r}: {_as_python(inner_value)}" for key, inner_value in value.items()]
        return "{" + ", ".join(entries) + "}"
    return repr(list(value) if isinstance(value, tuple) else value)


def _as_typed(value: Any, prefix: str = "") -> str:
    """Return a value in the form that a user types in a shell; a mapping as `a=1,b.c=2`."""
    if isinstance(value, Mapping):
        assignments = []
        for key, inner_value in value.items():
            if isinstance(inner_value, Mapping):
                assignments.append(_as_typed(inner_value, f"{prefix}{key}."))
            else:
                assignments.append(f"{prefix}{key}={_as_typed(inner_value)}")
        return ",".join(assignments)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
