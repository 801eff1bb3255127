"""Format numbers, text and durations alike in the console, in reports and in errors."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from judge.core.records import whole

UNNAMED_SYSTEM = "system"
"""The system's name in data without a column `system`."""
MAX_DIGITS = 100
"""The longest integer that a file may hold: reading a longer one takes too long, and arithmetic with it fails."""
_MAX_NAME = 60

# Controls that a terminal obeys or a page cannot hold, and the marks that reorder the text around them (the Trojan
# Source set); the plain direction marks of Arabic and Hebrew stay.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def escape_controls(text: str) -> str:
    """Escape control, reordering and lone surrogate characters, as `\\x1b` or `\\u202e`."""
    if not _UNSAFE.search(text):
        return text

    def escape(match: re.Match[str]) -> str:
        code = ord(match[0])
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _UNSAFE.sub(escape, text.replace("\r\n", "\n"))


def one_line(text: str, limit: int = 0) -> str:
    """Return the text escaped and on one line, cut to `limit` characters unless that is 0."""
    flat = " ".join(escape_controls(text).split())
    return flat if not limit or len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def cut_middle(text: str, longest: int) -> str:
    """Return the text, or if it is longer only its start and its end, with a mark between them.

    The mark says how long the text was: `[… 960 of 1,000 characters left out …]`.
    """
    if len(text) <= longest:
        return text
    half = max(1, longest // 2)
    left_out = len(text) - 2 * half
    mark = f"[… {left_out:,} of {len(text):,} characters left out …]"
    return f"{text[:half]}\n{mark}\n{text[-half:]}"


def text_name(item: str, system: str) -> str:
    """Return `item '7' of system 'bart'`, without the system if the data names none."""
    named = "" if system == UNNAMED_SYSTEM else f" of system {one_line(system, _MAX_NAME)!r}"
    return f"item {one_line(item, _MAX_NAME)!r}{named}"


def decimals(values: Iterable[float]) -> int:
    """Return the number of decimals for a column: 3 for values up to 1, 2 below 1,000, else 1."""
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    return 3 if largest <= 1 else 2 if largest < 1000 else 1


def number(value: float, places: int) -> str:
    """Format a value with this many decimals and a typographic minus (U+2212); never `−0.00`."""
    text = f"{value:.{places}f}"
    return text.replace("-", "−") if text.strip("-0.") else text.removeprefix("-")


_NEGATIVE = re.compile(r"^-(?=[\d.])")


def minus(text: str) -> str:
    """Give a text that is a number a typographic minus (U+2212); return any other text unchanged."""
    return _NEGATIVE.sub("−", text)


def signed(value: float, places: int) -> str:
    """Format a value with its sign: `+0.12`, `−0.12`; 0 has no sign."""
    text = number(value, places)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def format_p(p: float) -> str:
    """Format a p-value: `p = 0.012`, `p < 0.001`."""
    return "p < 0.001" if p < 0.001 else f"p = {number(p, 3)}"


def format_interval(low: float | None, high: float | None, places: int, factor: float = 1) -> str:
    """Format an interval, `[2.50, 3.80]`, multiplied by `factor`; the empty string if there is none."""
    return (
        ""
        if low is None or high is None
        else f"[{number(factor * low, places)}, {number(factor * high, places)}]"
    )


def percent(share: float | None) -> str:
    """Format a share as `62.5%`, and None as `–`."""
    return "–" if share is None else f"{number(100 * share, 1)}%"


def dollars(amount: float) -> str:
    """Format an amount: `$12.30`; below a dollar with two significant digits: `$0.012`."""
    if amount >= 1 or amount == 0:
        return f"${amount:,.2f}"
    return f"${amount:.2g}" if amount >= 1e-4 else "less than $0.0001"


def duration(seconds: float) -> str:
    """Format a duration: `40 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def plural(n: int, noun: str) -> str:
    """Format a count with its noun: `1 item`, `1,600 items`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def listed(parts: Sequence[str]) -> str:
    """Write `one`, `one and two`, `one, two and three`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def first_names(names: Iterable[str], limit: int = 5) -> str:
    """List the first names, and count the others: `a, b and 3 more`."""
    names = list(names)
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def seconds(value: float) -> str:
    """Format a duration: `0.8 s`, `42 s`, `3 min 05 s`, `2 h 10 min`, with no-break spaces before units (U+00A0)."""
    if value < 10:
        return f"{value:.1f}\u00a0s"
    whole = round(value)
    if whole < 60:
        return f"{whole}\u00a0s"
    if whole < 3600:
        return f"{whole // 60}\u00a0min {whole % 60:02d}\u00a0s"
    return f"{whole // 3600}\u00a0h {whole % 3600 // 60:02d}\u00a0min"


def no_ansi() -> bool:
    """Whether control codes are forbidden: $NO_COLOR is set, or the terminal is dumb."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def json_text(value: Any) -> str:
    """Write a document as strict JSON, indented."""
    return json.dumps(to_json(value), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def to_json(value: Any) -> Any:
    """Convert to strict JSON: NaN and infinity become null, lone surrogates U+FFFD, mappings and records objects."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, Mapping):
        return {str(to_json(str(k))): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    if is_dataclass(value):
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    return value if value is None or isinstance(value, bool | int) else str(value)
