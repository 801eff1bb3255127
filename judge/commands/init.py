"""A project to begin with: data, a criterion, a plan, a suite and a CI job, which pass at once and offline."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from judge.core.errors import ConfigError, StorageError


def create_project(folder: Path) -> list[Path]:
    """Write the starter project into a folder, which is made where there is none; returns its files as written.

    Raises ConfigError where one of them is there already, and StorageError; of the former nothing was written then.
    """
    wanted = {folder / name: one for name, one in _listed(files("judge.commands") / "starter")}
    there = [str(path) for path in wanted if path.exists() or path.is_symlink()]
    if there:
        verb = "is" if len(there) == 1 else "are"
        raise ConfigError(
            f"{', '.join(there)} {verb} there already, and nothing was written; name another folder: judge init FOLDER"
        )
    for path, one in wanted.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(one.read_bytes())
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror or error}") from error
    return list(wanted)


def _listed(folder: Traversable, under: str = "") -> Iterator[tuple[str, Traversable]]:
    """The files in a folder and its subfolders by their names in it, those of the top first."""
    inside = sorted(folder.iterdir(), key=lambda one: (one.is_dir(), one.name))
    for one in inside:
        if one.is_dir():
            yield from _listed(one, f"{under}{one.name}/")
        else:
            yield f"{under}{one.name}", one
