"""Format numbers, text and durations alike in the console, in reports and in errors."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from judge.core.normalization import whole
from judge.core.signature import Signature

UNNAMED_SYSTEM = "system"
"""The system's name in data without a column `system`."""
MAX_DIGITS = 100
"""Digits of an integer in a file: longer ones take too long to read, and arithmetic fails."""
_MAX_NAME = 60  # characters

# Controls that a terminal obeys or a page cannot have, and the marks that reorder the text around
# them (the Trojan Source set, CVE-2021-42574). The plain direction marks of Arabic and Hebrew stay.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def escape_controls(text: str) -> str:
    """Escape control, reordering and lone surrogate characters, as `\\x1b` or `\\u202e`."""
    if not _UNSAFE.search(text):
        return text

    def escape(match: re.Match[str]) -> str:
        code = ord(match[0])
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _UNSAFE.sub(escape, text.replace("\r\n", "\n"))


def one_line(text: str, limit: int = 0) -> str:
    """Return the text escaped and on one line, of at most `limit` characters (0: any length)."""
    line = " ".join(escape_controls(text).split())
    if not limit or len(line) <= limit:
        return line
    return line[: limit - 1].rstrip() + "…"


def cut_middle(text: str, longest: int) -> str:
    """Return the text, or only its start and end if it has more than `longest` characters.

    A mark between them, which comes in addition, says how long the text was:
    `[… 960 of 1,000 characters left out …]`.
    """
    if len(text) <= longest:
        return text
    half = max(1, longest // 2)
    left_out = len(text) - 2 * half
    mark = f"[… {left_out:,} of {len(text):,} characters left out …]"
    return f"{text[:half]}\n{mark}\n{text[-half:]}"


def text_name(item: str, system: str) -> str:
    """Return `item '7' of system 'bart'`, without the system if the data names none."""
    item_name = f"item {one_line(item, _MAX_NAME)!r}"
    if system == UNNAMED_SYSTEM:
        return item_name
    return f"{item_name} of system {one_line(system, _MAX_NAME)!r}"


def judgment_name(item: str, system: str, criterion: str) -> str:
    """Return `item '7' of system 'bart' by relevance`."""
    judged_text = text_name(item, system)
    criterion_name = one_line(criterion, _MAX_NAME)
    return f"{judged_text} by {criterion_name}"


def decimals(values: Iterable[float]) -> int:
    """Return the number of decimals for a column: 3 for values up to 1, 2 below 1,000, else 1."""
    finite = [abs(value) for value in values if math.isfinite(value)]
    largest = max(finite, default=0.0)
    if largest <= 1:
        return 3
    return 2 if largest < 1000 else 1


def number(value: float, places: int) -> str:
    """Format a value with this many decimals and a typographic minus (U+2212); never `−0.00`."""
    text = f"{value:.{places}f}"
    is_zero = not text.strip("-0.")
    return text.removeprefix("-") if is_zero else text.replace("-", "−")


# "-2", "-.5"; but not "-x" or "--"
_NEGATIVE = re.compile(r"^-(?=[\d.])")


def minus(text: str) -> str:
    """Give a number in a text a typographic minus (U+2212); return other text unchanged."""
    return _NEGATIVE.sub("−", text)


def signed(value: float, places: int) -> str:
    """Format a value with its sign: `+0.12`, `−0.12`; what is rounded to 0 has none."""
    text = number(value, places)
    is_zero = not text.strip("0.")
    return f"+{text}" if value > 0 and not is_zero else text


def format_p(p_value: float) -> str:
    """Format a p-value: `p = 0.012`, `p < 0.001`; see `p_places`."""
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {number(p_value, p_places(p_value))}"


def p_places(p_value: float) -> int:
    """Return 3, or more decimals for a significant p-value that would read as 0.050: 0.0498."""
    places = 3
    while p_value < 0.05 and float(f"{p_value:.{places}f}") >= 0.05 and places < 6:
        places += 1
    return places


def format_interval(
    lower_bound: float | None,
    upper_bound: float | None,
    places: int,
    factor: float = 1,
) -> str:
    """Format an interval multiplied by `factor`: `[2.50, 3.80]`, or "" if there is none.

    Ends that would be equal after rounding have up to three decimals more: `[50.8, 51.2]`.
    """
    if lower_bound is None or upper_bound is None:
        return ""
    lower_end = number(factor * lower_bound, places)
    upper_end = number(factor * upper_bound, places)
    more_places = places
    has_width = lower_bound < upper_bound
    while has_width and lower_end == upper_end and more_places < places + 3:
        more_places += 1
        lower_end = number(factor * lower_bound, more_places)
        upper_end = number(factor * upper_bound, more_places)
    return f"[{lower_end}, {upper_end}]"


def whole_percent(share: float) -> str:
    """Format a share as `64%`, with one or two decimals if `0%` or `100%` would be wrong: `99.5%`.

    A share that differs from 0 or 1 by less than 0.005% is one of rounded probabilities: `100%`.
    """
    rounded = number(100 * share, 0)
    if rounded not in ("0", "100"):
        return f"{rounded}%"
    for places in (1, 2):
        text = number(100 * share, places)
        if float(text) not in (0.0, 100.0):
            return f"{text}%"
    return f"{rounded}%"


def percent(share: float | None) -> str:
    """Format a share as `62.5%`, and None as `–`."""
    if share is None:
        return "–"
    percentage = number(100 * share, 1)
    return f"{percentage}%"


def dollars(amount: float) -> str:
    """Format an amount: `$12.30`; below a dollar with two significant digits: `$0.012`."""
    if amount >= 1 or amount == 0:
        return f"${amount:,.2f}"
    return f"${amount:.2g}" if amount >= 1e-4 else "less than $0.0001"


def rough_duration(seconds: float) -> str:
    """Format an estimated duration, at least a second: `40 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def exact_duration(seconds: float) -> str:
    """Format a measured duration: `0.8 s`, `42 s`, `3 min 05 s`, `2 h 10 min`.

    The spaces before units are no-break spaces (U+00A0).
    """
    if seconds < 10:
        return f"{seconds:.1f}\u00a0s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest}\u00a0s"
    if minutes < 60:
        return f"{minutes}\u00a0min {rest:02d}\u00a0s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}\u00a0h {minutes:02d}\u00a0min"


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: `1 item`, `1,600 items`."""
    ending = "" if count == 1 else "s"
    return f"{count:,} {noun}{ending}"


def rough_count(count: int) -> str:
    """Write an estimated count with two digits: `about 350` for 352."""
    n_zeros = max(0, len(str(count)) - 2)
    return f"about {round(count, -n_zeros):,}"


def listed(parts: Sequence[str]) -> str:
    """Write `one`, `one and two`, `one, two and three`. Raises ValueError without parts."""
    *all_but_last, last = parts
    return f"{', '.join(all_but_last)} and {last}" if all_but_last else last


def first_names(names: Iterable[str], limit: int = 5) -> str:
    """List the first names, and count the others: `a, b and 3 more`."""
    names = list(names)
    listing = ", ".join(names[:limit])
    if len(names) > limit:
        n_more = len(names) - limit
        listing += f" and {n_more:,} more"
    return listing


def no_ansi() -> bool:
    """Return whether control codes are forbidden: $NO_COLOR is set, or the terminal is dumb."""
    is_dumb = os.environ.get("TERM") == "dumb"
    return is_dumb or bool(os.environ.get("NO_COLOR"))


def json_text(value: Any) -> str:
    """Write a document as strict JSON, indented."""
    document = to_json(value)
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    return f"{text}\n"


def to_json(value: Any) -> Any:
    """Convert to strict JSON.

    NaN and infinity become null, lone surrogates U+FFFD, mappings and records objects, and values
    of other types text.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, Mapping):
        return {
            whole(str(key)): to_json(inner_value) for key, inner_value in value.items()
        }
    if isinstance(value, list | tuple):
        return [to_json(inner_value) for inner_value in value]
    if is_dataclass(value) and not isinstance(value, Signature):
        return {
            field.name: to_json(getattr(value, field.name)) for field in fields(value)
        }
    if value is None or isinstance(value, bool | int):
        return value
    return str(value)
