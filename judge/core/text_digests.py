"""Identify a text whose rating helped to write a criterion, so that the rating counts only once."""

from __future__ import annotations

import hashlib
import json
import unicodedata

from judge.core.normalization import whole

ANY_SOURCE = "*"
"""In place of a source, for a text that may have any."""
_encode = json.JSONEncoder(separators=(",", ":")).encode


def seen_digest(source: str | None, output: str) -> str:
    """Return 16 hex digits that identify a text whose rating was used.

    They are the start of the SHA-256 of the JSON list [source, output]. Both texts are `whole`, in
    Unicode NFC, and each run of white space is one blank. An empty source is null.
    """
    plain_source = _normalized(source or "") or None
    text_key = _encode([plain_source, _normalized(output)])
    return hashlib.sha256(text_key.encode()).hexdigest()[:16]


def _normalized(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", whole(text)).split())
