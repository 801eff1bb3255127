"""Read finished runs from folders, and leave out ratings that were used in a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from judge.core import files
from judge.core.errors import ConfigError
from judge.core.messages import command
from judge.data import ledger
from judge.results.loading import load
from judge.results.result import Result
from judge.table import RUN


def open_run(run: Result | str | Path) -> Result:
    """Return the result, or load the result of the run in a folder.

    Raises ConfigError for anything else and if the folder has no run, and StorageError.
    """
    if isinstance(run, Result):
        return run
    if not isinstance(run, str | PathLike):
        type_name = type(run).__name__
        run_command = command("run")
        raise ConfigError(
            f"a run is a result or the folder of one, not a {type_name}; {run_command} makes a "
            "result of data"
        )
    check_run(Path(run))
    return load(run)


def check_run(folder: Path) -> None:
    """Raise ConfigError for a folder that holds no run."""
    if not (folder / RUN).exists():
        if files.is_unfinished(folder):
            raise ConfigError(
                f"{folder}: has no results yet; wait until the run has ended, or start it again if "
                "it was killed"
            )
        raise ConfigError(
            f"{folder}: not the folder of a run (no {RUN}); name a folder that {command('run')} "
            "wrote"
        )


def without_seen_ratings(results: Sequence[Result]) -> list[Result]:
    """Return the results without the ratings that were used in a prompt of any of them.

    A comparison with people must not use them. Only the tables change.
    """
    seen = ledger.seen_by(
        column for result in results for column in result.table.columns
    )
    if not seen:
        return list(results)
    without_seen = []
    for result in results:
        samples = tuple(ledger.withhold(result.table.samples, seen))
        table = replace(result.table, samples=samples)
        without_seen.append(replace(result, table=table))
    return without_seen
