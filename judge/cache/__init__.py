"""Paid-for replies, with a score or without: `Request.key()` → `Response`. Nothing is ever evicted.

Stored with diskcache, whose defaults would lose replies (1 GiB, then silent eviction) and run code from the
file (values may be pickles, CVE-2025-69872; its JSONDisk still unpickles). Here values are JSON text, a pickle
stays unread, nothing is culled, and writes are grouped into transactions. Processes that share a folder
lease the requests they send. Machines share replies and leases through a Redis or Valkey above that.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal

from judge.cache.base import Cache, InspectableCache, NoCache
from judge.cache.disk import DiskCache, TextDisk
from judge.core.errors import ConfigError, MissingExtra, StorageError
from judge.core.redis_url import RedisUrl, is_redis_url

__all__ = [
    "Cache", "DiskCache", "InspectableCache", "Location", "NoCache", "TextDisk", "cache_location", "check_reachable",
    "clear_metrics", "default_folder", "local_dir", "metrics_folder", "metrics_size", "open_cache", "open_for_admin",
]  # fmt: skip


def default_folder() -> Path:
    """$JUDGE_CACHE where that is a folder, else judge/ under $XDG_CACHE_HOME or ~/.cache."""
    if (configured := os.environ.get("JUDGE_CACHE")) and not is_redis_url(configured):
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "judge"


def metrics_folder(folder: Path) -> Path:
    """Where metrics keep what took them time, such as embeddings, under a cache folder."""
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


Location = RedisUrl | Path | Literal[False] | None
"""What `config.RunConfig.cache` may be: None is the default, False none at all."""


def cache_location(location: RedisUrl | Path | None) -> RedisUrl | Path:
    """Where a cache is: as given, else $JUDGE_CACHE, else the folder for one. Raises ConfigError."""
    if location is not None:
        return location
    configured = os.environ.get("JUDGE_CACHE", "")
    if not is_redis_url(configured):
        return default_folder()
    try:
        return RedisUrl.read(configured)
    except ValueError as error:
        raise ConfigError(f"$JUDGE_CACHE: {error}") from None


def local_dir(location: RedisUrl | Path | None) -> Path:
    """The folder of a cache on this machine: that beneath one that machines share, too."""
    return location if isinstance(location, Path) else default_folder()


def open_cache(location: Location, notes: list[str] | None = None, *, must: bool = False, make: bool = True) -> Cache:
    """A plan's cache, with what there will be to say of it in `notes`.

    A shared one that is out of reach is a ConfigError if it `must` answer, else a note, and the folder beneath does.
    Without `make` no folder is made, and nothing kept where there is none. Raises MissingExtra, StorageError.
    """
    if location is False:
        return NoCache()
    return _open(location, notes, must=must, folder=make or (local_dir(location) / "responses").exists()) or NoCache()


def open_for_admin(location: RedisUrl | Path | None, *, beneath: bool = True) -> InspectableCache:
    """What a cache holds, to be counted, copied or forgotten: of a shared one what Redis does.

    `beneath` it what is put is kept on this machine, too. Raises ConfigError, MissingExtra, StorageError.
    """
    cache = _open(location, must=True, folder=beneath or isinstance(cache_location(location), Path))
    assert cache is not None  # noqa: S101  (one of the two there is)
    return cache


def check_reachable(location: Location) -> None:
    """Raises ConfigError where a shared cache does not answer, or not as one; of any other nothing is looked at."""
    if location is not False and not isinstance(place := cache_location(location), Path):
        _shared(place, None, None, must=True).close()


def _open(
    location: RedisUrl | Path | None, notes: list[str] | None = None, *, must: bool, folder: bool
) -> InspectableCache | None:
    place = cache_location(location)
    disk = DiskCache(local_dir(location), notes) if folder else None
    return disk if isinstance(place, Path) else _shared(place, disk, notes, must=must)


def _shared(place: RedisUrl, disk: DiskCache | None, notes: list[str] | None, *, must: bool) -> InspectableCache:
    try:
        from judge.cache.redis import RedisCache
        from judge.cache.tiered import TieredCache
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{place}: this cache needs the package redis: pip install 'textjudge[redis]'") from error
    cache = TieredCache(place, disk, notes) if disk else RedisCache(place, notes)
    cache.reach(must=must)
    return cache
