"""Files and folders that only their owner can read, because texts, replies and templates are in them."""

from __future__ import annotations

import os
from pathlib import Path


def folder(path: Path) -> None:
    """Make a folder, and those above it, where there is none; then it is its owner's alone. Raises OSError.

    One that is there stays as it is, and so do those above it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def opener(path: str, flags: int) -> int:
    """For `open`: a file that this makes is its owner's alone."""
    return os.open(path, flags, 0o600)
