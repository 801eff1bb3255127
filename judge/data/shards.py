"""Data as files: one, or many shards in a folder or of a pattern, in the order of their names."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from judge.core.errors import DataError

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
"""Of the files that are data."""
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
_RUN = ("run.json", "scores.parquet", "scores.partial.jsonl")
"""What makes a folder that of a run."""


def files(data: str | PathLike[str]) -> list[tuple[Path, str]]:
    """The files of a path, each with what messages call it: one file, or those of a folder or a pattern, by name.

    Of a folder these are the files in it of the kinds that can be read, but for hidden ones; its subfolders are not
    looked into. A pattern (`*`, `?`, `[...]`, `**` for any folders) stands for every file that it fits but hidden ones,
    and a file that is there by that very name for itself. Raises DataError where there is none, for the folder of a
    run, and for a folder with compressed data.
    """
    path, name = Path(data), str(data)
    try:
        if path.is_dir():
            return [(one, str(one)) for one in _inside(path, name)]
        if path.exists():
            return [(path, name)]
        if _is_pattern(path):
            return [(one, str(one)) for one in _matched(path, name)]
        raise DataError(f"{name}: no such file{_near(path)}")
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror or error}") from error


def is_data(path: Path) -> bool:
    """Whether this is no folder, or one where shards lie, and no run."""
    return not path.is_dir() or (not _is_run(path) and next(_shards(path), None) is not None)


def digest(data: str | PathLike[str]) -> str:
    """sha256 of a file's bytes, in hex; of several files that of theirs, a line for each, in the order of their names.

    Raises DataError for what cannot be read.
    """
    each = [_digest(path, name) for path, name in files(data)]
    return each[0] if len(each) == 1 else hashlib.sha256("".join(f"{one}\n" for one in each).encode()).hexdigest()


def title(data: str | PathLike[str]) -> str:
    """What results are called after: a file's name without its suffix, or that of the folder where shards lie."""
    path = Path(data)
    if path.is_dir() or (_is_pattern(path) and not path.exists()):
        return _there(path).resolve().name or "data"
    return path.stem


def _digest(path: Path, name: str) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror or error}") from error


def _inside(folder: Path, name: str) -> list[Path]:
    if _is_run(folder):
        raise DataError(f"{name}: this is the folder of a run and no data; name the data that it was made of")
    if packed := [one.name for one in sorted(folder.iterdir()) if _is_packed(one)]:
        raise DataError(f"{name}: {packed[0]} is compressed: unpack it, or name the files to read by a pattern")
    if found := sorted(_shards(folder)):
        return found
    beneath = next((one for one in sorted(folder.glob("*/*")) if one.suffix.lower() in SUFFIXES), None)
    hint = f"; its subfolders are read as '{folder}/**/*{beneath.suffix}'" if beneath else ""
    raise DataError(f"{name}: no data in this folder (known: {', '.join(SUFFIXES)}){hint}")


def _is_pattern(path: Path) -> bool:
    return any(sign in str(path) for sign in "*?[")


def _shards(folder: Path) -> Iterator[Path]:
    shown = (one for one in folder.iterdir() if not one.name.startswith("."))
    return (one for one in shown if one.suffix.lower() in SUFFIXES and one.is_file())


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() in _PACKED and Path(path.stem).suffix.lower() in SUFFIXES and path.name[0] != "."


def _is_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in _RUN)


def _matched(pattern: Path, name: str) -> list[Path]:
    root = _there(pattern)
    try:
        found = [one for one in root.glob(str(pattern.relative_to(root))) if one.is_file()]
    except ValueError as error:
        raise DataError(f"{name}: {error}") from error
    if shown := [one for one in found if not any(part.startswith(".") for part in one.relative_to(root).parts)]:
        return sorted(set(shown))
    raise DataError(f"{name}: no file has such a name in {root.resolve() if root == Path() else root}")


def _there(path: Path) -> Path:
    """The longest part of a path that is there: what has brackets in its name is not always a pattern."""
    return next(one for one in (path, *path.parents) if one.exists())


def _near(path: Path) -> str:
    beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, beside, n=3)
    return f"; near it: {', '.join(near)}" if near else ""
