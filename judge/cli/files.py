"""What a command reads: of a file that is not there, what stands in its place.

Files that a command writes: what speaks against one is said before anything is asked and paid.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from judge.core.errors import ConfigError, StorageError

PLANS = (".yaml", ".yml")
_SHOWN = 3


def require_existing(data: Path) -> None:
    """Raises ConfigError for data or a plan that is not there, which names the files that are; a pattern may be any."""
    from judge.data.rows import SUFFIXES

    folder = data.parent
    if data.exists() or data.is_symlink() or any(sign in str(data) for sign in "*?["):
        return
    if not folder.is_dir():
        raise ConfigError(f"{data}: no such file: there is no folder {folder}")
    kinds = PLANS if data.suffix in PLANS else SUFFIXES
    beside = sorted(one.name for one in folder.iterdir() if one.suffix.lower() in kinds)
    if near := difflib.get_close_matches(data.name, beside, n=_SHOWN):
        raise ConfigError(f"{data}: no such file; near it: {', '.join(near)}")
    if not beside:
        raise ConfigError(
            f"{data}: no such file, and no {'plan' if data.suffix in PLANS else 'data'} file is in {folder}"
        )
    more = f" and {len(beside) - _SHOWN} more" if len(beside) > _SHOWN else ""
    raise ConfigError(f"{data}: no such file; there: {', '.join(beside[:_SHOWN])}{more}")


_INPUTS = (".yaml", ".yml", ".json", ".jsonl", ".csv", ".tsv", ".parquet", ".jinja", ".py", ".ini", ".toml")


def reject_overlap(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Raises ConfigError where two outputs (by flag) are one file, or one is among the inputs."""
    read = {path.resolve() for path in inputs if path is not None}
    first: dict[Path, str] = {}
    for flag, path in outputs.items():
        if path is None:
            continue
        if path.resolve() in read:
            raise ConfigError(f"{flag} {path}: is read here as well; name another file")
        if (other := first.setdefault(path.resolve(), flag)) != flag:
            raise ConfigError(f"{flag} {path}: {other} is the same file; name another one")


def reject_input_as_output(outputs: Mapping[str, Path | None]) -> None:
    """Raises ConfigError for a report in the place of a file that by its name is data, a suite or a prompt."""
    for flag, path in outputs.items():
        if path is not None and path.suffix.lower() in _INPUTS and path.exists():
            raise ConfigError(f"{flag} {path}: is there already, and by its name no report; name another file")


def check_writable(outputs: Mapping[str, Path | None]) -> None:
    """Raises StorageError for a file that cannot be written; its folders may be still to be made."""
    for flag, path in outputs.items():
        if path is None:
            continue
        there = next(one for one in (path, *path.absolute().parents) if one.exists())
        if there.is_dir() == (there == path):
            raise StorageError(f"{flag} {path}: {there} is a {'folder' if there.is_dir() else 'file'}")
        if not os.access(there, os.W_OK):
            raise StorageError(f"{flag} {path}: {there} cannot be written to")


def write(flag: str, path: Path, text: str, *, add: bool = False, folders: bool = False) -> None:
    """Write a file, or `add` behind what is there; its `folders` are made where asked for. Raises StorageError."""
    try:
        if folders:
            path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if add else "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StorageError(f"{flag} {path}: {error.strerror}") from error
