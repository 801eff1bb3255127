"""Names of systems in sentences: cut if they are long, counted if they are many."""

from __future__ import annotations

from collections.abc import Sequence

from judge.core.format import one_line

MAX_NAMED = 3
"""Systems in a sentence; of more, only their number is given."""
MAX_NAME = 60
"""Characters of a name."""


def short_name(system: str) -> str:
    return one_line(system, MAX_NAME)


def listed(names: Sequence[str], word: str = "and") -> str:
    """List the names, or say how many there are."""
    if len(names) > MAX_NAMED:
        return f"{len(names)} systems"
    *most, last = map(short_name, names)
    return f"{', '.join(most)} {word} {last}" if most else last


def first_listed(names: Sequence[str]) -> str:
    """List the names, or the first ones and how many more there are: of the best, some are always
    named."""
    if len(names) <= MAX_NAMED:
        return listed(names)
    shown = ", ".join(map(short_name, names[: MAX_NAMED - 1]))
    return f"{shown} and {len(names) - MAX_NAMED + 1} more"


def the_others(names: Sequence[str]) -> str:
    return short_name(names[0]) if len(names) == 1 else f"the other {len(names)} systems"


def all_others(behind: Sequence[str]) -> str:
    if len(behind) == 1:
        return short_name(behind[0])
    return "both other systems" if len(behind) == 2 else f"all {len(behind)} other systems"
