"""Render the data of a Document as strict JSON."""

from __future__ import annotations

from judge.core.format import json_text
from judge.report.document import Document


def render(document: Document) -> str:
    """Write the data; a number that does not exist is null."""
    return json_text(document.data)
