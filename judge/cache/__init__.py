"""Paid-for replies, with a score or without: `Request.key()` → `Response`. Nothing is ever evicted.

Stored with diskcache, whose defaults would lose replies (1 GiB, then silent eviction) and run code from the
file (values may be pickles, CVE-2025-69872; its JSONDisk still unpickles). Here values are JSON text, a pickle
stays unread, nothing is culled, and writes are grouped into transactions.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal

from judge.cache.base import Cache, NoCache
from judge.cache.disk import DiskCache, TextDisk
from judge.core.errors import StorageError

__all__ = [
    "Cache", "DiskCache", "NoCache", "TextDisk", "cache_location", "clear_metrics", "default_folder",
    "metrics_folder", "metrics_size", "open_cache",
]  # fmt: skip


def default_folder() -> Path:
    """$JUDGE_CACHE, else judge/ under $XDG_CACHE_HOME or ~/.cache."""
    if configured := os.environ.get("JUDGE_CACHE"):
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "judge"


def metrics_folder(folder: Path) -> Path:
    """Where metrics keep what took them time, such as digests of models, under a cache folder."""
    return folder / "metrics"


def metrics_size(folder: Path) -> int:
    """Bytes that metrics keep under a cache folder."""
    return sum(path.stat().st_size for path in metrics_folder(folder).rglob("*") if path.is_file())


def clear_metrics(folder: Path) -> int:
    """Forget what metrics keep; returns how many bytes that was. Raises StorageError."""
    size = metrics_size(folder)
    try:
        if size:
            shutil.rmtree(metrics_folder(folder))
    except OSError as error:
        raise StorageError(f"{metrics_folder(folder)}: {error.strerror or error}") from error
    return size


def cache_location(folder: Path | None) -> Path:
    """Where a cache is: as given, else the folder for one."""
    return default_folder() if folder is None else folder


def open_cache(
    location: Path | Literal[False] | None, notes: list[str] | None = None, *, make: bool = True
) -> Cache:
    """A plan's cache, with what there will be to say of it in `notes`: the default one for None, none at all for False.

    Without `make` no folder is made, and nothing kept where there is none. Raises StorageError.
    """
    if location is False:
        return NoCache()
    folder = cache_location(location)
    return DiskCache(folder, notes) if make or (folder / "responses").exists() else NoCache()
