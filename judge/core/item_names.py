"""Find an item by its name, or by the beginning that a report shows of a long name."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from judge.core.errors import ConfigError
from judge.core.format import first_names, plural

_MOST_NAMED = 3  # items in a message


def item_called(name: str, items: Collection[str]) -> str:
    """Return the item with this name, or else the only one whose name begins with it.

    The beginning may end with "…", as in reports. Raises ConfigError for a name that no item or
    several items begin with.
    """
    if name in items:
        return name
    beginning = name.removesuffix("…")
    candidates = [item for item in items if beginning and item.startswith(beginning)]
    if not candidates:
        raise ConfigError(unknown_item(name, items))
    if len(candidates) > 1:
        number = plural(len(candidates), "item")
        named = first_names(candidates, _MOST_NAMED)
        raise ConfigError(
            f"item {name!r}: {number} begin with it ({named}); write more of the name"
        )
    return candidates[0]


def unknown_item(name: str, items: Collection[str]) -> str:
    """Return the message for an unknown item, with the most similar ones or else the first ones."""
    similar = difflib.get_close_matches(name, items, n=_MOST_NAMED)
    if similar:
        return f"unknown item {name!r}; did you mean {' or '.join(map(repr, similar))}?"
    return f"unknown item {name!r} (known: {first_names(items, _MOST_NAMED)})"
