"""Load the result of a run folder, and check that its files belong together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import filterfalse
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainValidator,
    ValidationError,
    create_model,
)

from judge.core.errors import StorageError
from judge.core.files import recover
from judge.core.records import Column, Estimate, Failure, Score, is_unwritten
from judge.results.estimates import Estimates
from judge.results.rated_criteria import read
from judge.results.result import Result
from judge.results.stored_info import FORMAT, check_square, read_run, refused_run
from judge.stats.human_agreement import Rated
from judge.table import RUN, SAMPLES, SCORES, Table

_LOADS = 3
"""The number of attempts to load a run that another run may replace meanwhile."""


def load(folder: str | Path) -> Result:
    """Load the result of a run folder.

    Raises StorageError if there is none, and if a file is damaged, of another run or of another
    format.
    """
    folder = Path(folder)
    for _ in range(_LOADS - 1):
        recover(folder)
        bytes_before = _run_bytes(folder)
        try:
            result = _load(folder)
        except StorageError:
            # If another run was saved meanwhile, `_load` read files of both runs. Try again.
            if _run_bytes(folder) == bytes_before:
                raise
        else:
            if _run_bytes(folder) == bytes_before:
                return result
    return _load(folder)


def _run_bytes(folder: Path) -> bytes:
    """Return the contents of run.json, or b"" if there is none.

    They differ if another run replaced this one.
    """
    try:
        return (folder / RUN).read_bytes()
    except OSError:
        return b""


def _load(folder: Path) -> Result:
    """Load the result of a run folder that nobody changes meanwhile."""
    path = folder / RUN
    stored = read_run(path)
    try:
        run = dict(_run_model().model_validate(stored))
        check_square(run["matrices"])
    except ValidationError as error:
        raise refused_run(path, stored, error) from error
    except ValueError as error:
        raise StorageError(
            f"cannot read {path}: {error}; run again to replace it"
        ) from error
    # The model has checked the format, and a result has no such field.
    del run["format"]
    table = Table.load(folder)
    _check_same_run(folder, table, run.pop("columns"), run["estimates"])
    return Result(table, **run)


def _by_system_and_column(rows: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the estimates of a run.json by their key. Raises ValueError for other content."""
    problem = "write a list of estimates, each with its system and column"
    if not isinstance(rows, list):
        raise ValueError(problem)
    estimates_by_key: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        estimate = dict(row) if isinstance(row, dict) else {}
        system = estimate.pop("system", None)
        column = estimate.pop("column", None)
        if not (isinstance(system, str) and isinstance(column, str)):
            raise ValueError(problem)
        estimates_by_key[system, column] = estimate
    return estimates_by_key


@cache
def _run_model() -> type[BaseModel]:
    """Return the model of run.json: the fields of a result, with rows for keys of two parts."""
    by_column = Annotated[Estimates, BeforeValidator(_by_system_and_column)]
    types: dict[str, Any] = {"format": Literal[FORMAT], "columns": tuple[Column, ...]}
    types |= get_type_hints(Result)
    types["estimates"] = by_column
    types["repeats"] = by_column
    types["rated"] = tuple[Annotated[Rated, PlainValidator(read)], ...]
    # The table has files of its own.
    del types["table"]
    # Pydantic's `...` marks a required field.
    required_fields: dict[str, Any] = {}
    for field_name, field_type in types.items():
        required_fields[field_name] = (field_type, ...)
    return create_model("Run", __config__=ConfigDict(extra="forbid"), **required_fields)


def _check_same_run(
    folder: Path,
    table: Table,
    columns: tuple[Column, ...],
    estimates: Mapping[tuple[str, str], Estimate],
) -> None:
    """Raise StorageError if the tables are not of the same run as run.json."""
    texts = {sample.key for sample in table.samples}
    column_names = {column.name for column in columns}
    systems = set(table.systems)

    def is_known(row: Score | Failure) -> bool:
        if row.column not in column_names:
            return False
        # The text's system, and in a ranking its opponent.
        row_systems = {name for name in (row.system, row.opponent) if name}
        # A value of all texts of a system has no item.
        if not row.item and row_systems <= systems:
            return True
        row_texts = {(row.item, system) for system in row_systems}
        return row_texts <= texts

    estimated_systems = {system for system, _ in estimates}
    has_same_columns = table.columns == columns and estimated_systems <= systems
    # A text that was not written is not among the samples.
    written_rows = filterfalse(is_unwritten, table.rows())
    if not has_same_columns or not all(is_known(row) for row in written_rows):
        raise StorageError(
            f"{folder}: {SAMPLES}, {SCORES} and {RUN} are of different runs: restore the files of "
            "one run, or run again"
        )
