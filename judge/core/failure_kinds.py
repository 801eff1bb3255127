"""Name the kinds of failures in plain words. Files keep the names of the errors."""

from __future__ import annotations

import re

# "NoReference" is "No" and "Reference"; "HTTPError" is "HTTP" and "Error".
_WORD = re.compile("[A-Z]+(?![a-z])|[A-Z][^A-Z]*|[^A-Z]+")
_NAMES = {
    "DataError": "unsuitable",
    "ParseError": "unreadable",
    "NoScore": "missing",
    "ProviderError": "unanswered",
    "Transient": "unanswered",
    "Unrecorded": "not recorded",
}


def failure_kind(error: str) -> str:
    """Return an error's name in words that follow a count: `unreadable`, `no reference`."""
    if error in _NAMES:
        return _NAMES[error]
    # Plugins may use any name: only one in CamelCase has words.
    if not error.isidentifier() or not error[0].isupper():
        return error
    # An abbreviation, such as JSON, keeps its capitals.
    words = [word if word.isupper() else word.lower() for word in _WORD.findall(error)]
    return " ".join(words)
