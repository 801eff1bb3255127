"""Read run.json with care, so that a damaged file is an error and no report ends in a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judge.core import merge_conflicts
from judge.core.errors import StorageError
from judge.core.format import MAX_DIGITS
from judge.core.invalid_values import InvalidValue, invalid_values, stored_place
from judge.core.merge_conflicts import conflict_line
from judge.core.messages import option
from judge.core.version import __version__
from judge.results import run_info
from judge.results.run_info import RunInfo
from judge.table import RUN

FORMAT = 3
"""Of run.json. Format 1, up to November 2026, described a run in a mapping without declared
keys.
"""
_NEWER = ("extra_forbidden", "unexpected_keyword_argument")
"""The errors of a field that this version does not know."""
_NOT_A_RUN = "it is not from judge run; run again to replace it"


class OtherFormat(StorageError):
    """A run that an older or a newer judge wrote."""


def read_run(path: Path) -> dict[str, Any]:
    """Return the content of a run.json of this format. Raises StorageError, or OtherFormat."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise StorageError(
            f"cannot read {path}: {error}; run again to replace it"
        ) from error
    try:
        stored = _parse(text)
        format = stored["format"]
        version = stored["info"].get("judge_version", "unknown")
    except (KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"cannot read {path}: {_NOT_A_RUN}") from error
    except ValueError as error:
        line = conflict_line(text)
        if line is not None:
            raise StorageError(f"{path}:{line}: {merge_conflicts.ADVICE}") from error
        raise StorageError(
            f"cannot read {path}: {error}; run again to replace it"
        ) from error
    except RecursionError as error:
        raise StorageError(f"cannot read {path}: {_NOT_A_RUN}") from error
    if type(format) is not int:
        raise StorageError(f"cannot read {path}: {_NOT_A_RUN}")
    if format == FORMAT:
        return dict(stored)
    if format < FORMAT:
        raise OtherFormat(
            f"{path}: written by an older judge (version {version} in format {format}, this is "
            f"{__version__} with format {FORMAT}): run the same command again with another "
            f"{option('out')}; cached replies cost nothing"
        )
    raise OtherFormat(f"{path}: {_from_elsewhere(version)} (format {format})")


def _from_elsewhere(version: str) -> str:
    """Say that this judge did not write a file, and what to do."""
    if version == __version__:
        return f"edited, or written by another build of judge {version}: run again"
    return (
        f"written by a newer judge (version {version}, this is {__version__}): update judge, or "
        "run again"
    )


def read_info(folder: Path) -> RunInfo:
    """Return what a folder's run.json says about its run. Raises StorageError, or OtherFormat."""
    stored = read_run(folder / RUN)
    try:
        return run_info.read(stored["info"])
    except ValidationError as error:
        raise refused_run(folder / RUN, stored, error, within="info") from error


def refused_run(
    path: Path,
    stored: Mapping[str, Any],
    error: ValidationError,
    within: str = "",
) -> StorageError:
    """Return the error of a run.json that pydantic refused: OtherFormat if a newer judge wrote it.

    `within` is the key of what pydantic read, if it was not the whole file.
    """
    refused = invalid_values(error)
    unknown = [value for value in refused if _is_of_newer_judge(value)]
    # What a newer judge added explains the file better than any other problem with it.
    first_refused = (unknown or refused)[0]
    read_part = stored[within] if within else stored
    path_of_value = (within, stored_place(first_refused, read_part))
    location = ".".join(path_part for path_part in path_of_value if path_part)
    if unknown:
        problem = _from_elsewhere(stored["info"].get("judge_version", "unknown"))
        return OtherFormat(f"{path}: {problem} ({location})")
    colon = "" if first_refused.kind == "missing" else ":"
    return StorageError(
        f"cannot read {path}: {location}{colon} {first_refused.problem}; run again to replace it"
    )


def _is_of_newer_judge(refused: InvalidValue) -> bool:
    """Return whether this version does not know a key, or one of the texts that a key may have."""
    is_new_text = refused.kind == "literal_error" and isinstance(refused.value, str)
    return refused.kind in _NEWER or is_new_text


def check_square(matrices: Iterable[Any]) -> None:
    """Raise ValueError for a matrix that is not square."""
    for matrix in matrices:
        size = len(matrix.names)
        for rows in (matrix.values, matrix.low, matrix.high, matrix.n):
            if [len(row) for row in rows] != [size] * size:
                raise ValueError(f"a matrix of {size} columns is not square")


def _parse(text: bytes) -> Any:
    """Return the content of a JSON file. Raises ValueError, also for numbers that no run writes."""
    return json.loads(
        text,
        parse_constant=_refuse,
        parse_float=_finite,
        parse_int=_integer_of_few_digits,
    )


def _integer_of_few_digits(digits: str) -> float:
    # Reading a longer one takes too long, and arithmetic with it fails.
    if len(digits) > MAX_DIGITS:
        return _refuse(f"a number of {len(digits):,} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):  # 1e999
        return _refuse(digits)
    return number


def _refuse(constant: str) -> float:
    """Raise ValueError; the type of the result lets a parser of numbers return it."""
    raise ValueError(f"it holds {constant}, which no run writes")
