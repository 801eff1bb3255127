"""The cache of paid replies, with a score or without: `Request.key()` → `Response`.

It uses diskcache, whose defaults would lose replies (1 GiB, then silent eviction) and run code from
the file (values may be pickles, CVE-2025-69872; its JSONDisk still unpickles). Here values are JSON
text, a pickle is never read, nothing is evicted, and writes are grouped into transactions
(docs/decisions/0021-a-reply-counts-once-it-is-on-disk.md).
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
    "Cache",
    "DiskCache",
    "NoCache",
    "TextDisk",
    "cache_location",
    "clear_metrics",
    "default_folder",
    "metrics_folder",
    "metrics_size",
    "open_cache",
]


def default_folder() -> Path:
    """Return $JUDGE_CACHE, by default judge/ under $XDG_CACHE_HOME or ~/.cache."""
    own_folder = os.environ.get("JUDGE_CACHE")
    if own_folder:
        return Path(own_folder)
    # XDG Base Directory Specification: an empty variable counts as unset.
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "judge"


def metrics_folder(folder: Path) -> Path:
    """Return the folder for slow results of metrics, such as digests of models, in a cache."""
    return folder / "metrics"


def metrics_size(folder: Path) -> int:
    """Return the size of the metrics' files in a cache, in bytes."""
    paths = metrics_folder(folder).rglob("*")
    files = [path for path in paths if path.is_file()]
    return sum(file.stat().st_size for file in files)


def clear_metrics(folder: Path) -> int:
    """Delete the metrics' files in a cache, and return their size in bytes. Raises StorageError."""
    size = metrics_size(folder)
    try:
        if size:
            shutil.rmtree(metrics_folder(folder))
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"{metrics_folder(folder)}: {reason}") from error
    return size


def cache_location(folder: Path | None) -> Path:
    """Return the folder of a cache, by default the default one."""
    return default_folder() if folder is None else folder


def open_cache(
    location: Path | Literal[False] | None,
    notes: list[str] | None = None,
    *,
    make: bool = True,
) -> Cache:
    """Open the cache of a run; later warnings are appended to `notes`. Raises StorageError.

    None is the default cache, False is no cache. Without `make`, no folder is created: if there is
    none, nothing is stored.
    """
    if location is False:
        return NoCache()
    folder = cache_location(location)
    if make or (folder / "responses").exists():
        return DiskCache(folder, notes)
    return NoCache()
