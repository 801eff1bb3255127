"""Name options and commands in messages as the reader types them: in a shell or in Python.

`speaking_to` sets which interface the reader uses. The other functions return the words for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

Interface = Literal["command line", "python"]
_interface: ContextVar[Interface | None] = ContextVar("judge_interface", default=None)
# Stands for an option that is named without a value.
_NO_VALUE: Any = object()
# Options with another name on the command line: each `--header` names one.
_FLAGS = {"headers": "header"}
# Commands with another name in Python.
_FUNCTIONS = {"run": "evaluate", "score": "evaluate", "criteria diff": "diff"}


@contextmanager
def speaking_to(interface: Interface) -> Iterator[None]:
    """Word the messages of this block for users of an interface; an outer block has precedence."""
    if _interface.get() is not None:
        yield
        return
    token = _interface.set(interface)
    try:
        yield
    finally:
        _interface.reset(token)


def in_python() -> bool:
    """Return whether messages are for Python users; by default they are for the command line."""
    return _interface.get() == "python"


def option(option_name: str, value: Any = _NO_VALUE) -> str:
    """Return an option as its reader writes it, alone or with a value.

    `option_name` is its name in Python. `map={'output': 'TEXT'}` is `--map output=TEXT` on the
    command line, a sequence is `a,b`, and True and False are `--structured` and `--no-cache`.
    """
    if in_python():
        if value is _NO_VALUE:
            return option_name
        return f"{option_name}={_as_python(value)}"
    dashed_name = _FLAGS.get(option_name, option_name.replace("_", "-"))
    if value is False:
        return f"--no-{dashed_name}"
    if value is _NO_VALUE or value is True:
        return f"--{dashed_name}"
    return f"--{dashed_name} {_as_typed(value)}"


def advice_on_thinking() -> str:
    """Return what to change if thinking takes up all of a model's reply."""
    none = option("reasoning_effort", "none")
    longest = option("max_tokens")
    return f"allow more with {longest}, or less thinking with {none} (or low)"


def command(command_name: str) -> str:
    """Return a command as its reader writes it: `judge run`, or `judge.evaluate` in Python."""
    if in_python():
        function_name = _FUNCTIONS.get(command_name, command_name)
        return f"judge.{function_name}"
    return f"judge {command_name}"


def full_report() -> str:
    """Return the call or the option that shows a whole report instead of its summary."""
    return "report(full=True)" if in_python() else "--full"


def start_again() -> str:
    """Return the advice to repeat the command or call that was interrupted."""
    return "make the same call again" if in_python() else "start the same command again"


def card_command() -> str:
    """Return the command or call that makes the card of a judge from new judgments."""
    return "judge.card(data)" if in_python() else "judge validate DATA --card"


def generate_command() -> str:
    """Return the command or function that lets systems (a prompt and a model) write outputs."""
    return "judge.generate" if in_python() else "judge run --generate-only FILE"


class Remark(str):
    """A note that is not a warning: it says what judge read or did, and needs no action."""

    __slots__ = ()


FORMER_NAMES = {
    "force": "overwrite",
    "replace": "overwrite",
    "output": "out",
    "file": "out",
    "rival": "opponent",
}
"""The present name of each option that has another name in an older version or another tool."""


def new_name(former: str, option_names: Collection[str]) -> str:
    """Return the present name of a former option if it is one of `option_names`, else ""."""
    present_name = FORMER_NAMES.get(former, "")
    return present_name if present_name in option_names else ""


FORMER_SYSTEM = "system"
"""The former name of `system_message`.

The word now means the author of the texts, and only that.
"""


def two_meanings_of_system(message: str, selected: str = "") -> str:
    """Return a message for users who set `system` and may mean either of two things.

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


def _as_python(value: Any) -> str:
    if isinstance(value, Mapping):
        entries = []
        for key, inner_value in value.items():
            inner_text = _as_python(inner_value)
            entries.append(f"{key!r}: {inner_text}")
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, tuple):
        value = list(value)
    return repr(value)


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
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
