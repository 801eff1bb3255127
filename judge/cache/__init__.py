"""Paid-for replies, kept: `Request.key()` → `Response`. Only usable replies are put in; nothing is ever evicted.

Stored with diskcache, whose defaults would lose replies (1 GiB, then silent eviction) and run code from the
file (values may be pickles, CVE-2025-69872; its JSONDisk still unpickles). Here values are JSON text, a pickle
is refused unread, nothing is culled, and writes are synchronous and grouped into transactions. Machines share replies
through a Redis or Valkey above that.
"""

from judge.cache.base import Cache, NoCache, Store
from judge.cache.open import (
    Location,
    clear_metrics,
    default_folder,
    folder_of,
    location_of,
    metrics_folder,
    metrics_size,
    opened,
    reach,
    stored,
)
from judge.cache.sqlite import DiskCache, TextDisk

__all__ = [
    "Cache", "DiskCache", "Location", "NoCache", "Store", "TextDisk", "clear_metrics", "default_folder", "folder_of",
    "location_of", "metrics_folder", "metrics_size", "opened", "reach", "stored",
]  # fmt: skip
