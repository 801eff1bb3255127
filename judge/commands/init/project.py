"""Write the starter project of `judge init`, which runs offline, and other files of the package."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from judge.core.errors import ConfigError, StorageError
from judge.core.files import write_whole

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def write_project(folder: Path) -> list[Path]:
    """Write the starter project into a folder and return its files.

    Raises ConfigError and writes nothing if one of the files exists. Raises StorageError if a file
    cannot be written.
    """
    starter = files("judge.commands.init") / "starter"
    return write_files(starter, folder, advice="Name another: judge init FOLDER")


def write_files(origin: Traversable, folder: Path, *, advice: str) -> list[Path]:
    """Copy the files of a package's folder and return the new ones.

    Raises ConfigError with this advice, and writes nothing, if one exists. Raises StorageError if a
    file cannot be written.
    """
    origin_by_path = {folder / file_name: file for file_name, file in _walk(origin)}
    # A symbolic link to a file that is gone does not exist, but writing would make that file.
    existing = [
        str(path) for path in origin_by_path if path.exists() or path.is_symlink()
    ]
    if existing:
        names = ", ".join(existing)
        verb = "is" if len(existing) == 1 else "are"
        problem = f"{names} {verb} already there, so nothing was written"
        raise ConfigError(f"{problem}. {advice}")
    for path, file in origin_by_path.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, file.read_bytes())
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror or error}") from error
    return list(origin_by_path)


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    """Yield the files of a folder with their relative names, before the files of subfolders."""

    def order(entry: Traversable) -> tuple[bool, str]:
        return entry.is_dir(), entry.name

    for entry in sorted(folder.iterdir(), key=order):
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry
