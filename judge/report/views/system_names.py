"""Names of systems in sentences: cut if they are long, counted if they are many."""

from __future__ import annotations

from collections.abc import Sequence

from judge.core.format import one_line

MAX_NAMED = 3
"""Systems in a sentence; if there are more, the sentence has only their number."""
MAX_NAME = 60
"""Characters of a name."""


def short_name(system: str) -> str:
    """Return the name on one line, cut if it is long."""
    return one_line(system, MAX_NAME)


def listed(names: Sequence[str], word: str = "and") -> str:
    """List the names, or say how many there are."""
    if len(names) > MAX_NAMED:
        return f"{len(names)} systems"
    *most, last = map(short_name, names)
    if not most:
        return last
    first_names = ", ".join(most)
    return f"{first_names} {word} {last}"


def first_listed(names: Sequence[str]) -> str:
    """List the names, or the first ones and the number of the others.

    Use it for the best systems, because a sentence always names some of them.
    """
    if len(names) <= MAX_NAMED:
        return listed(names)
    n_named = MAX_NAMED - 1
    first_names = ", ".join(map(short_name, names[:n_named]))
    n_more = len(names) - n_named
    return f"{first_names} and {n_more} more"


def the_others(names: Sequence[str]) -> str:
    """Name the only system, or say how many other systems there are."""
    if len(names) == 1:
        return short_name(names[0])
    return f"the other {len(names)} systems"


def all_others(names: Sequence[str]) -> str:
    """Name the only system, or say that all others are meant."""
    if len(names) == 1:
        return short_name(names[0])
    if len(names) == 2:
        return "both other systems"
    return f"all {len(names)} other systems"
