"""Data behind an address: `https://`, `s3://`, `gs://`, `hf://` and whatever else fsspec reads, if it is installed."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from judge.core.errors import DataError, MissingExtra

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):/{1,2}(?=[^/])")
"""The slashes of an address are one in a `Path`. A single letter is a drive."""
_QUERY = re.compile(r"\?[\w.-]+=")
"""A query, and not the pattern `?`."""
_PACKAGES = {
    "http": "aiohttp", "https": "aiohttp", "s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs",
    "hf": "huggingface-hub",
}  # fmt: skip


def address(data: object) -> str | None:
    """Return the address that a path stands for, such as `s3://bucket/data.csv`; None for a local path."""
    match = _SCHEME.match(str(data))
    return f"{match[1].lower()}://{str(data)[match.end() :]}" if match else None


@lru_cache(maxsize=32)
def fetch(url: str) -> tuple[tuple[Path, str], ...]:
    """Download a file, or all that match a pattern, once per process; return the local files and their names.

    Raises DataError, also for an address with a password or a query, which would be stored with the run, and for one
    inside another (`zip://…::https://…`); MissingExtra if a package is not installed.
    """
    scheme = url.partition(":")[0]
    if re.search(r"::\w+:/", url):
        raise DataError(f"{scheme}://…::…: one address in another is not read: download and unpack it first")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise DataError(f"{url}: {error}") from None
    if parts.password or ("@" in parts.netloc and scheme != "abfs"):
        raise DataError(f"{scheme}://…: leave user and password out of the address: it is stored with the run")
    if (scheme in ("http", "https") and (parts.query or parts.fragment)) or _QUERY.search(url):
        plain = url.partition("?" if parts.query else "#")[0]
        raise DataError(f"{plain}…: download this first: the run would store the whole address, signatures too")
    package = _PACKAGES.get(scheme, f"the fsspec package for {scheme}://")
    try:
        import fsspec
    except ImportError:
        raise MissingExtra(f"{url}: needs two packages: pip install fsspec {package}") from None
    try:
        storage, path = fsspec.core.url_to_fs(url)
        found = sorted(storage.glob(path)) if any(sign in path for sign in "*?[") else [path]
        folder, local = Path(_folder().name), []
        for name in found:
            copy = folder / f"{len(list(folder.iterdir()))}{Path(name).suffix}"
            storage.get_file(name, str(copy))
            local.append((copy, f"{scheme}://{name.split('://')[-1].lstrip('/')}"))
    except ImportError as error:
        raise MissingExtra(f"{url}: needs {package}: pip install {package}") from error
    except Exception as error:  # each storage has errors of its own
        reason = "no such file" if isinstance(error, FileNotFoundError) else str(error) or type(error).__name__
        reason = re.sub(r"\?[^\s'\"]+", "?…", reason)  # a redirection may lead to a signed address
        raise DataError(f"{url}: cannot be read: {reason}") from error
    if not local:
        raise DataError(f"{url}: no file has such a name")
    return tuple(local)


@lru_cache(maxsize=1)
def _folder() -> TemporaryDirectory[str]:
    """Return the folder of the downloaded files, which is removed when the process ends."""
    return TemporaryDirectory(prefix="judge-data-")
