"""Where caches are, and what metrics keep there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from judge.core.errors import StorageError
from judge.core.redis_url import is_address


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
