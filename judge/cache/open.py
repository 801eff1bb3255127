"""Where caches are, and what metrics keep there.

From what a plan says of its cache to one that is open.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from judge.cache.base import Cache, NoCache, Store
from judge.cache.sqlite import DiskCache
from judge.core.errors import ConfigError, MissingExtra, StorageError
from judge.core.redis_url import Address, is_address

if TYPE_CHECKING:
    from judge.cache.redis import Remote


def default_folder() -> Path:
    """$JUDGE_CACHE where that is a folder, else judge/ under $XDG_CACHE_HOME or ~/.cache."""
    if (own := os.environ.get("JUDGE_CACHE")) and not is_address(own):
        return Path(own)
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


Location = Address | Path | Literal[False] | None
"""What `config.Plan.cache` may be: None is the default, False none at all."""


def location_of(given: Address | Path | None) -> Address | Path:
    """Where a cache is: as given, else $JUDGE_CACHE, else the folder for one. Raises ConfigError."""
    if given is not None:
        return given
    own = os.environ.get("JUDGE_CACHE", "")
    if not is_address(own):
        return default_folder()
    try:
        return Address.read(own)
    except ValueError as error:
        raise ConfigError(f"$JUDGE_CACHE: {error}") from None


def folder_of(given: Address | Path | None) -> Path:
    """The folder of a cache on this machine: that beneath one that machines share, too."""
    return given if isinstance(given, Path) else default_folder()


def opened(given: Location, notes: list[str] | None = None, *, must: bool = False, make: bool = True) -> Cache:
    """A plan's cache, with what there will be to say of it in `notes`.

    A shared one that is out of reach is a ConfigError if it `must` answer, else a note, and the folder beneath does.
    Without `make` no folder is made, and nothing kept where there is none. Raises MissingExtra, StorageError.
    """
    if given is False:
        return NoCache()
    return _opened(given, notes, must=must, folder=make or (folder_of(given) / "responses").exists()) or NoCache()


def stored(given: Address | Path | None, *, beneath: bool = True) -> Store:
    """What a cache holds, to be counted, copied or forgotten: of a shared one what Redis does.

    `beneath` it what is put is kept on this machine, too. Raises ConfigError, MissingExtra, StorageError.
    """
    found = _opened(given, must=True, folder=beneath or isinstance(location_of(given), Path))
    assert found is not None  # noqa: S101  (one of the two there is)
    return found


def reach(given: Location) -> None:
    """Raises ConfigError where a shared cache does not answer, or not as one; of any other nothing is looked at."""
    if given is not False and not isinstance(place := location_of(given), Path):
        _reached(place, must=True).close()


def _opened(given: Address | Path | None, notes: list[str] | None = None, *, must: bool, folder: bool) -> Store | None:
    place = location_of(given)
    remote = None if isinstance(place, Path) else _reached(place, must=must)
    disk = DiskCache(folder_of(given), notes) if folder else None
    if remote is None:
        return disk
    from judge.cache.tiered import SharedCache

    return SharedCache(remote, disk, notes)


def _reached(place: Address, *, must: bool) -> Remote:
    try:
        from judge.cache.redis import Remote
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{place}: this cache needs the package redis: pip install 'textjudge[redis]'") from error
    remote = Remote(place)
    remote.reach(must=must)
    return remote
