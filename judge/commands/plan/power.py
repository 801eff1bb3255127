"""`judge plan RUN`: which differences a run can detect, and how many items a difference needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.commands.finished_runs import open_run
from judge.core.errors import ConfigError
from judge.core.plugins import unknown_name_message
from judge.results.power import RunPower


def run_power(
    run: Path,
    *,
    difference: float | None = None,
    items: int | None = None,
    pair: str | None = None,
    where: Mapping[str, Any] | None = None,
) -> RunPower:
    """Return the power of a finished run's tests, of all systems or of one pair.

    Raises ConfigError for a ranking, an unknown system, and a difference or a number of items that
    no test can have; StorageError for a folder without a run.
    """
    result = open_run(run)
    selection_notes: Sequence[str] = ()
    if where:
        result = result.where(**where)
        # The first note of a selection says what was selected.
        selection_notes = result.info.notes[:1]
    systems = None if pair is None else _parse_pair(pair, result.table.systems)
    if result.rankings:
        raise ConfigError(
            f"{run}: a ranking compares texts in pairs and has no differences of scores"
        )
    power = result.power(difference, items=items, pair=systems)
    return replace(power, run=str(run), notes=(*selection_notes, *power.notes))


def _parse_pair(pair: str, systems: Sequence[str]) -> tuple[str, str]:
    """Split `A,B` into two systems; their names may contain commas. Raises ConfigError."""
    pieces = pair.split(",")
    candidates = []
    # Any of the commas may be the one between the two names.
    for comma in range(1, len(pieces)):
        first_system = ",".join(pieces[:comma]).strip()
        second_system = ",".join(pieces[comma:]).strip()
        candidates.append((first_system, second_system))
    for first_system, second_system in candidates:
        are_known = first_system in systems and second_system in systems
        if are_known and first_system != second_system:
            return first_system, second_system
    names: tuple[str, ...] = ()
    if len(candidates) == 1:
        names = candidates[0]
    if len(set(names)) < 2:
        example = ",".join(systems[:2]) or "a,b"
        raise ConfigError(f"--pair {pair}: name two systems, such as --pair {example}")
    unknown_names = [name for name in names if name not in systems]
    message = unknown_name_message("system", unknown_names[0], list(systems))
    raise ConfigError(f"--pair: {message}")
