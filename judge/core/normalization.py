"""Forms of texts: for comparisons, and valid Unicode for files."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

# Characters without width are removed, and every minus becomes that of the keyboard. The super- and
# subscript minus are named because NFKC would turn them into U+2212 after this table was used.
_INVISIBLE = (
    "\u00ad\u034f\u180e\u200b\u200c\u200d\u200e\u200f"
    "\u2060\u2061\u2062\u2063\u2064\ufe0e\ufe0f\ufeff"
)
_MINUS_SIGNS = "\u2010\u2011\u207b\u208b\u2212"
_DROPPED = dict.fromkeys(map(ord, _INVISIBLE))
_FOLDED = _DROPPED | dict.fromkeys(map(ord, _MINUS_SIGNS), "-")


def fold(text: str) -> str:
    """Return a reply or label in the form for comparisons: NFKC, nothing invisible, one minus.

    Idempotent. White space at the ends and upper and lower case are left for the caller to decide
    about.
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_FOLDED))


def whole(text: str) -> str:
    """Return a text in valid Unicode: a lone surrogate becomes U+FFFD, a pair its character."""
    if text.isascii():
        return text
    # In UTF-16, two halves are a pair again, and a half alone is an error.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_value(value: Any) -> Any:
    """Return a value of JSON or Python with all its texts and keys `whole`, at any depth."""
    if isinstance(value, str):
        # Encoding to UTF-8 is quicker than `whole`, and almost always succeeds.
        try:
            value.encode()
        except UnicodeEncodeError:
            return whole(value)
        return value
    if isinstance(value, Mapping):
        return {
            whole_value(key): whole_value(inner_value)
            for key, inner_value in value.items()
        }
    if type(value) in (list, tuple):
        return type(value)(map(whole_value, value))
    return value
