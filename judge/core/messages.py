"""The wording of messages and reports: options as their reader types them, and the format of numbers and text.

`speaking_to` says whether the reader is on the command line or in Python. `option` and `command` name things for that
reader. The functions below them format text, numbers and durations alike in the console, in reports and in errors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from judge.core.records import whole

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
    """An option by its name in `config.Plan`, alone or with a value: `--map output=TEXT`, `map={'output': 'TEXT'}`.

    A mapping is what names columns and options, a list has several values; True and False are said of what is on or
    off (`--structured`, `--no-cache`).
    """
    if in_python():
        return name if value is _BARE else f"{name}={_as_python(value)}"
    flag = f"--{name.replace('_', '-')}"
    if value is False:
        return f"--no-{name.replace('_', '-')}"
    if value is _BARE or value is True:
        return flag
    return f"{flag} {_as_typed(value)}"


def command(name: str) -> str:
    """A command by its name: `judge run`, or `judge.evaluate` in Python."""
    return f"judge.{_FUNCTIONS.get(name, name)}" if in_python() else f"judge {name}"


_FUNCTIONS = {"run": "evaluate", "score": "evaluate", "criteria diff": "diff"}


def _as_python(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_as_python(part)}" for key, part in value.items()) + "}"
    return repr(list(value) if isinstance(value, tuple) else value)


def _as_typed(value: Any, within: str = "") -> str:
    if isinstance(value, Mapping):
        return ",".join(
            _as_typed(part, f"{within}{key}.") if isinstance(part, Mapping) else f"{within}{key}={_as_typed(part)}"
            for key, part in value.items()
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


# Controls that a terminal obeys or a page cannot hold, and the marks that reorder the text around them (the Trojan
# Source set); the plain direction marks of Arabic and Hebrew stay.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def escape_controls(text: str) -> str:
    """The text with control, reordering and lone surrogate characters written out, as `\\x1b` or `\\u202e`."""
    if not _UNSAFE.search(text):
        return text

    def escape(match: re.Match[str]) -> str:
        code = ord(match[0])
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _UNSAFE.sub(escape, text.replace("\r\n", "\n"))


def one_line(text: str, limit: int = 0) -> str:
    """The text cleaned and on one line, cut to `limit` characters where one is given."""
    flat = " ".join(escape_controls(text).split())
    return flat if not limit or len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def decimals(values: Iterable[float]) -> int:
    """Decimals that suit a column: three for shares, two up to a hundred or so, one above."""
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    return 3 if largest <= 1 else 2 if largest < 1000 else 1


def number(value: float, places: int) -> str:
    """A value with that many decimals and the minus of mathematics (U+2212), for reading; never `−0.00`."""
    text = f"{value:.{places}f}"
    return text.replace("-", "−") if text.strip("-0.") else text.removeprefix("-")


_NEGATIVE = re.compile(r"^-(?=[\d.])")


def minus(text: str) -> str:
    """A text that is a number, with the minus of mathematics; any other as it is."""
    return _NEGATIVE.sub("−", text)


def signed(value: float, places: int) -> str:
    """`+0.12`, `−0.12`; 0 has no sign."""
    text = number(value, places)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def format_p(p: float) -> str:
    """`p = 0.012`, `p < 0.001`."""
    return "p < 0.001" if p < 0.001 else f"p = {number(p, 3)}"


def format_interval(low: float | None, high: float | None, places: int) -> str:
    """`[2.50, 3.80]`, or nothing where there is no interval."""
    return "" if low is None or high is None else f"[{number(low, places)}, {number(high, places)}]"


def percent(share: float | None, none: str = "–") -> str:
    """A share as `62.5%`; `none` where there is no such number."""
    return none if share is None else f"{number(100 * share, 1)}%"


def plural(n: int, noun: str) -> str:
    """`1 item`, `1,600 items`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def seconds(value: float) -> str:
    """A duration as people say it: `0.8 s`, `42 s`, `3 min 05 s`, `2 h 10 min`; no number leaves its unit (U+00A0)."""
    if value < 10:
        return f"{value:.1f}\u00a0s"
    whole = round(value)
    if whole < 60:
        return f"{whole}\u00a0s"
    if whole < 3600:
        return f"{whole // 60}\u00a0min {whole % 60:02d}\u00a0s"
    return f"{whole // 3600}\u00a0h {whole % 3600 // 60:02d}\u00a0min"


def to_json(value: Any) -> Any:
    """The same value as strict JSON can hold it: no NaN or infinity (null), no lone surrogate, mappings as objects."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, Mapping):
        return {str(to_json(str(k))): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    return value if value is None or isinstance(value, bool | int) else str(value)
