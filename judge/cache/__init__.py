"""Paid-for replies, kept: `Request.key()` → `Response`. Only usable replies are put in; nothing is ever evicted.

Stored with diskcache, whose defaults would lose replies (1 GiB, then silent eviction) and run code from the
file (values may be pickles, CVE-2025-69872; its JSONDisk still unpickles). Here values are JSON text, a pickle
is refused unread, nothing is culled, and writes are synchronous and grouped into transactions. Machines share replies
through a Redis or Valkey above that.
"""

from judge.cache.base import Cache, InspectableCache, NoCache
from judge.cache.open import (
    Location,
    cache_location,
    check_reachable,
    clear_metrics,
    default_folder,
    local_dir,
    metrics_folder,
    metrics_size,
    open_cache,
    open_for_admin,
)
from judge.cache.sqlite import DiskCache, TextDisk

__all__ = [
    "Cache",
    "DiskCache",
    "InspectableCache",
    "Location",
    "NoCache",
    "TextDisk",
    "cache_location",
    "check_reachable",
    "clear_metrics",
    "default_folder",
    "local_dir",
    "metrics_folder",
    "metrics_size",
    "open_cache",
    "open_for_admin",
]  # fmt: skip
