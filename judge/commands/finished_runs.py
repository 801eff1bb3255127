"""Finished runs as several commands read them: from a folder, and without the ratings that a prompt
has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from judge.core.errors import ConfigError
from judge.data import ledger
from judge.results.result import Result, load
from judge.table import RUN


def open_run(run: Result | str | Path) -> Result:
    """Return the result, or load that of the run in a folder. Raises ConfigError if no run is
    there, StorageError.
    """
    if isinstance(run, Result):
        return run
    check_run(Path(run))
    return load(run)


def check_run(folder: Path) -> None:
    """Raise ConfigError for a folder that holds no run."""
    if not (folder / RUN).exists():
        raise ConfigError(
            f"{folder}: no run is there (no {RUN}); name a folder that judge run has written"
        )


def without_seen_ratings(results: Sequence[Result]) -> list[Result]:
    """Return results to compare with people: without the ratings that a criterion of any of them
    has seen.

    Only the tables change.
    """
    seen = ledger.seen_by(column for result in results for column in result.table.columns)
    tables = [
        replace(each.table, samples=tuple(ledger.withhold(each.table.samples, seen)))
        for each in results
    ]
    return (
        [replace(each, table=table) for each, table in zip(results, tables, strict=True)]
        if seen
        else list(results)
    )
